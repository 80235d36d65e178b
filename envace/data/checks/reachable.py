"""Check 40, second part: could anybody fulfil the row's `outcome`, the recorded conversation for instance."""

from __future__ import annotations

from typing import Any

from envace.data.checks.row import Row
from envace.data.checks.violation import pointer
from envace.data.content import split_content


def check_reachable(row: Row) -> None:
    """40, W: what no rollout, or not even the reference, can satisfy. Needs a row that is otherwise right."""
    outcome = row.record.get("outcome")
    if outcome is None:
        return
    for index, (turn, messages) in enumerate(zip(outcome["turns"], row.turns(), strict=True)):
        place = pointer("outcome", "turns", index)
        forbidden = turn.get("forbidden_tools", [])
        for name in forbidden:
            if name not in row.validators:
                row.findings.add(40, "W", f"{place}/forbidden_tools", f"{name!r} is not among the row's tools")
        for number, call in enumerate(turn["required_calls"]):
            fault = _fault(row, call, forbidden)
            if fault:
                row.findings.add(40, "W", f"{place}/required_calls/{number}", fault)
        reply = split_content(row.messages[messages[-1]]["content"]).reply
        for fact in turn["required_facts"]:
            if fact not in reply:
                row.findings.add(40, "W", f"{place}/required_facts", f"{fact!r} is not in the reference's own reply")


def _fault(row: Row, call: dict[str, Any], forbidden: list[str]) -> str | None:
    name = call["name"]
    if name in forbidden:
        return f"{name} is both required and forbidden"
    validator = row.validators.get(name)
    faults = validator.faults(call["arguments"]) if validator else []
    return f"{name}: {faults[0][1]}" if faults else None
