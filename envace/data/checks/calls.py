"""Checks 12 to 14: are a call's arguments an object, is its tool declared, do the arguments fit the tool's schema."""

from __future__ import annotations

from envace.data.checks.row import Exchange, Row
from envace.data.checks.violation import pointer
from envace.strict_json import NotStrictJsonError, parse_strict


def check_calls(row: Row) -> None:
    """12, 13 and 14 for every call. Leaves the calls with their results in `row.exchanges` for the later checks."""
    for message_index, message in enumerate(row.messages):
        for call_index, call in enumerate(message["tool_calls"]):
            name, text = call["function"]["name"], call["function"]["arguments"]
            place = pointer("messages", message_index, "tool_calls", call_index, "function")
            arguments, fault = _object(text)
            if fault:
                row.findings.add(12, "R", f"{place}/arguments", fault)
            validator = row.validators.get(name)
            if name not in row.validators and not row.findings.has(20):
                row.findings.add(13, "R", f"{place}/name", f"the tool {name!r} is not among the row's tools")
            faults = validator.faults(arguments) if validator and arguments is not None else []
            for is_structural, detail in faults:
                row.findings.add(14, "R" if is_structural else "W", f"{place}/arguments", f"{name}: {detail}")
            is_valid = validator is not None and arguments is not None and not faults
            result_index = message_index + 1 + call_index
            row.exchanges.append(Exchange(message_index, call_index, result_index, name, arguments, is_valid))


def _object(text: str) -> tuple[dict | None, str]:
    try:
        value = parse_strict(text)
    except NotStrictJsonError as error:
        return None, str(error)
    if not isinstance(value, dict):
        return None, f"the arguments must be an object, found {type(value).__name__}"
    return value, ""
