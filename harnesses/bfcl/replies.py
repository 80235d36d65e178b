"""What came back from the policy for one question, and whether it is a failure of the policy, however it is scored.

The harness forgives much: on a task without a fitting tool, whatever cannot be read as a call counts as an abstention
(gorilla#1362). Strictly that is a failure, so each reply is looked at here, by rules that know nothing of the task.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from harnesses.bfcl.calls import UnsafeCallError, arguments_of

_MARKUP = re.compile(r"</?tool_call>|<\|?tool[_▁]calls?|\[TOOL_CALLS\]|<function[=s]|<\|python_tag\|>|<TOOLCALL>", re.I)
_DATA = re.compile(r"^\s*[\[{`]")
_CALL_AS_DATA = re.compile(r"""["'](name|function)["']\s*:.*["'](arguments|parameters)["']\s*:""", re.S)
_WANTS_DATA = ("memory_", "web_search_")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff\ud800-\udfff]")
_LEAST_LETTERS = 0.4


@dataclass(slots=True)
class Call:
    """One call as the API gives it: `arguments` is text, hopefully JSON."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Reply:
    """One answer, as plain data, so that it can cross to the sandbox as JSON."""

    text: str | None
    calls: list[Call] = field(default_factory=list)
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Reply:
        """Back from plain data."""
        return cls(**{**value, "calls": [Call(**call) for call in value["calls"]]})

    @property
    def message(self) -> dict[str, Any]:
        """As the assistant's message of the conversation; reasoning is left out, as templates want it."""
        said: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            said["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.calls
            ]
        return said


def too_long(reply: Reply, limit: int) -> str | None:
    """Why a reply is not even handed to the harness, or None. `limit`: bytes of one call's arguments or name."""
    for call in reply.calls:
        if max(len(call.arguments), len(call.name)) > limit:
            return f"a call of {len(call.arguments) + len(call.name)} characters, more than {limit}"
    if len(reply.calls) > 128:
        return f"{len(reply.calls)} calls at once"
    if reply.text and len(reply.text) > 16 * limit:
        return f"a reply of {len(reply.text)} characters, more than {16 * limit}"
    return None


def wants_data(task: str) -> bool:
    """Whether the harness demands the answer of this task as {'answer': …, 'context': …}, as it does where tools are
    to find something out (`ADDITIONAL_SYSTEM_PROMPT_FOR_AGENTIC_RESPONSE_FORMAT`).
    """
    return task.startswith(_WANTS_DATA)


def failure_of(reply: Reply, *, free_form: bool = False) -> str | None:
    """What is wrong with a reply as such, or None. `free_form`: data or a bare number is a proper answer."""
    for call in reply.calls:
        try:
            arguments_of(call.arguments)
        except UnsafeCallError as error:
            return f"malformed call of {call.name[:80]!r}: {error}"
    if reply.calls:
        return None
    text = (reply.text or "").strip()
    if not text:
        return "empty reply"
    if reply.finish_reason == "length":
        return "reply cut at max_tokens"
    if _MARKUP.search(text) or (_CALL_AS_DATA if free_form else _DATA).search(text):
        return "a call or data in the text that is no call of the API"
    if _CONTROL.search(text):
        return "garbage: control or replacement characters"
    letters = sum(c.isspace() or (c.isalnum() if free_form else c.isalpha()) for c in text)
    if letters < _LEAST_LETTERS * len(text):
        return f"garbage: hardly a letter{' or digit' if free_form else ''} in it"
    return None
