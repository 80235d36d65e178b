"""One row as the checks read it: the normalised record, its bounds, and what earlier checks have established."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from envace.config import ValidateDataParams
from envace.data.checks.violation import Findings
from envace.files import compact_json
from envace.tools.schema import CallValidator

Message = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """One call with its result: where both stand among the messages, and the decoded arguments (None if invalid)."""

    message_index: int
    call_index: int
    result_index: int
    tool_name: str
    arguments: dict[str, Any] | None
    is_valid: bool


@dataclass
class Row:
    """A row under examination. `text_bytes` is the size of its raw text in UTF-8.

    The parts below `findings` are filled in by the checks, in order. `whole` is the record as one line of JSON, after
    repairs: what is scanned for characters and secrets, and what is kept.
    """

    record: dict[str, Any]
    text_bytes: int
    bounds: ValidateDataParams
    findings: Findings
    whole: str = ""
    validators: dict[str, CallValidator | None] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    results: dict[int, Any] = field(default_factory=dict)
    """Decoded tool results by message index."""
    error_results: set[int] = field(default_factory=set)
    """Indices of the messages that record an error."""

    estimated_tokens: tuple[int, int] = (0, 0)
    """Of the first prompt and of the whole reference (check 33)."""

    @cached_property
    def tools_text(self) -> str:
        """The tools as one line of JSON, keys in their order."""
        return compact_json(self.record["tools"])

    @property
    def messages(self) -> list[Message]:
        """The messages; read only after check 6 has passed."""
        return self.record["messages"]

    def turns(self) -> list[list[int]]:
        """Message indices by turn, the user message first. A leading system message belongs to no turn."""
        turns: list[list[int]] = []
        for index, message in enumerate(self.messages):
            if message["role"] == "user":
                turns.append([])
            if turns:
                turns[-1].append(index)
        return turns
