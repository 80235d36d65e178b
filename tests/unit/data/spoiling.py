"""What the seeded faults share: the record of one fault, and small changes of a clean raw row that spoil one thing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from envace.data.checks import CHECKS

RawRow = dict[str, Any]
Finding = tuple[int, str, str, str]
"""Check, severity, JSON pointer, flag."""
SCHEMA = {"type": "object", "properties": {}, "required": []}


@dataclass(frozen=True)
class RowFault:
    """One fault of one row: what it is called, how a clean row gets it, and where it must be found.

    `beside` has what cannot be had without it: an error that contradicts a schema is also an error.
    """

    check: int
    severity: str
    name: str
    spoil: Callable[[RawRow], object]
    places: tuple[str, ...]
    flag: str | None = None
    beside: tuple[Finding, ...] = ()

    @property
    def findings(self) -> set[Finding]:
        """Everything that is to be found in the spoiled row."""
        own = CHECKS[self.check].flag if self.flag is None else self.flag
        flag = own if self.severity == "W" else ""
        return {(self.check, self.severity, place, flag) for place in self.places} | set(self.beside)


def fault(
    check: int, severity: str, name: str, spoil: Callable[[RawRow], object], *places: str, **more: Any
) -> RowFault:
    """A row fault in one line."""
    return RowFault(check, severity, name, spoil, places, **more)


def message(row: RawRow, index: int = 0) -> dict[str, Any]:
    """A message; 0 to 4 are the first turn (user, two calls, two results, reply), 5 to 8 the second."""
    return row["messages"][index]


def item(row: RawRow, n: int = 0, t: int = 0) -> dict[str, Any]:
    """An item. In the first turn 0 and 1 are about calls, 2 and 3 about results, the others about the reply."""
    return row["checklists"][0][t][n]


def function(row: RawRow, call: int = 0) -> dict[str, Any]:
    """The function of a call of the first turn."""
    return message(row, 1)["tool_calls"][call]["function"]


def arguments(row: RawRow, call: int = 0) -> dict[str, Any]:
    """The decoded arguments of a call of the first turn."""
    return json.loads(function(row, call)["arguments"])


def first_argument(row: RawRow) -> str:
    """The name of an argument of the first call."""
    return next(iter(arguments(row)))


def set_arguments(row: RawRow, text: str) -> None:
    """Change the arguments of the first call, and what its evidence quotes."""
    function(row)["arguments"] = text
    item(row)["evidence"][0]["snippet"] = json.dumps(text, ensure_ascii=False)


def with_argument(row: RawRow, **change: Any) -> None:
    """Change single arguments of the first call."""
    set_arguments(row, json.dumps({**arguments(row), **change}, ensure_ascii=False))


def set_result(row: RawRow, content: str) -> None:
    """Change the first result, and what evidence quotes of it."""
    for each in row["checklists"][0][0]:
        for entry in each["evidence"]:
            if entry["snippet"] == message(row, 2)["content"]:
                entry["snippet"] = content
    message(row, 2)["content"] = content


def add_tool(row: RawRow, name: str = "a", **change: Any) -> None:
    """Offer one more tool, in front of the others."""
    described = {"name": name, "description": "A tool", "parameters": SCHEMA, **change}
    row["tools"].insert(0, {"type": "function", "function": described})


def add_property(row: RawRow, schema: Any) -> None:
    """Offer one more tool, in front of the others, that has one optional argument."""
    add_tool(row, parameters={**SCHEMA, "properties": {"x": schema}})


def declare(row: RawRow, **change: Any) -> None:
    """Change the schema of the tool of the first call."""
    for tool in row["tools"]:
        if tool["function"]["name"] == function(row)["name"]:
            tool["function"]["parameters"].update(change)


def plain_second_turn(row: RawRow, focus: str) -> None:
    """Take the calls out of the second turn, but let an item look at them. Its evidence is in the first turn."""
    row["messages"] = [*row["messages"][:6], row["messages"][-1]]
    sources = {"assistant.tool_calls": 0, "tool.content": 2}
    row["checklists"][0][1] = [{**item(row, sources[focus]), "weight": 1.0, "required_for_next_turn": False}]
