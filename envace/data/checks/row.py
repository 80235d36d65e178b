"""One row as the checks read it: the normalised record, its bounds, and what earlier checks have established."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from envace.data.checks.violation import Findings
from envace.tools.schema import CallValidator

Message = dict[str, Any]


@dataclass(frozen=True)
class Bounds:
    """Sizes in bytes of UTF-8."""

    max_row_bytes: int
    max_message_bytes: int


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
    """A row under examination. The parts below `record` are filled in by the checks, in order."""

    record: dict[str, Any]
    text_bytes: int
    bounds: Bounds
    findings: Findings
    validators: dict[str, CallValidator | None] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)

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
