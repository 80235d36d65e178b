"""One question to a judge: its prompt, the only answer that counts, and the strict reading of what came back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from envace.files import sha256_text
from envace.prompts import load_prompt
from envace.rewards.escaping import json_line
from envace.strict_json import parse_object
from envace.types import Criterion, Verdict

_LOOKS_AT = {
    "tool_call": "the tool calls of the last step",
    "tool_result": "the tool results of the last step",
    "reasoning": "the reasoning of the last step",
    "reply": "the reply of the last step",
    "user": "the user's message",
}


@dataclass(frozen=True)
class Question:
    """Does the last step of the transcript satisfy the criterion?

    The answer is an object with one boolean whose key is made of a hash of the whole question. Nothing in the
    transcript can know it, so a verdict that stands in the transcript is never the answer, even word for word.
    """

    transcript: str
    criterion: Criterion

    @cached_property
    def key(self) -> str:
        """The name of the boolean: `satisfied_` and 12 hexadecimal digits."""
        return "satisfied_" + sha256_text(f"{self._criterion_block}\n{self.transcript}")[:12]

    @cached_property
    def prompt(self) -> str:
        """Instructions, then the transcript, then the criterion: all criteria of a step have a common prefix."""
        return load_prompt("judge").substitute(
            transcript=self.transcript, criterion=self._criterion_block, key=self.key
        )

    @property
    def json_schema(self) -> dict[str, Any]:
        """The schema of the answer, for structured output."""
        return {
            "type": "object",
            "properties": {self.key: {"type": "boolean"}},
            "required": [self.key],
            "additionalProperties": False,
        }

    def read(self, text: str) -> Verdict:
        """The verdict in a reply: UNKNOWN for anything but the object of the schema, with nothing around it."""
        value = parse_object(text)
        if value is None or set(value) != {self.key} or not isinstance(value[self.key], bool):
            return Verdict.UNKNOWN
        return Verdict.PASS if value[self.key] else Verdict.FAIL

    @cached_property
    def _criterion_block(self) -> str:
        c = self.criterion
        lines: list[dict[str, str | int]] = [
            {"looks_at": _LOOKS_AT[c.target]},
            {"question": c.question},
            {"pass_condition": c.pass_condition},
            *({"fails_for_example": example} for example in c.failure_examples),
        ]
        return "\n".join(map(json_line, lines))
