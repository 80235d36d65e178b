"""Checks 12 to 14: are a call's arguments an object, is its tool declared, do the arguments fit the tool's schema.

And 11 for what stands in the arguments only after decoding.
"""

from __future__ import annotations

from typing import Any

from envace.data.checks.row import Exchange, Row
from envace.data.checks.text import BROKEN_CHARACTERS
from envace.data.checks.violation import pointer
from envace.data.checks.walk import texts
from envace.strict_json import NotStrictJsonError, parse_strict


def check_calls(row: Row) -> None:
    """12, 13 and 14 for every call. Leaves the calls with their results in `row.exchanges` for the later checks."""
    are_tools_known = not row.findings.has(20)
    for message_index, message in enumerate(row.messages):
        for call_index, call in enumerate(message["tool_calls"]):
            name, text = call["function"]["name"], call["function"]["arguments"]
            arguments, fault = _object(text)
            validator = row.validators.get(name)
            faults = validator.faults(arguments) if validator and arguments is not None else []
            is_valid = validator is not None and arguments is not None and not faults
            result_index = message_index + 1 + call_index
            row.exchanges.append(Exchange(message_index, call_index, result_index, name, arguments, is_valid))
            if is_valid and "\\" not in text:
                continue
            place = pointer("messages", message_index, "tool_calls", call_index, "function")
            if fault:
                row.findings.add(12, "R", f"{place}/arguments", fault)
            if are_tools_known and name not in row.validators:
                row.findings.add(13, "R", f"{place}/name", f"the tool {name!r} is not among the row's tools")
            for is_structural, detail in faults:
                row.findings.add(14, "R" if is_structural else "W", f"{place}/arguments", f"{name}: {detail}")
            code = _broken_character(arguments) if "\\u" in text else None
            if code is not None:
                detail = f"the decoded arguments hold U+{code:04X}"
                row.findings.add(11, "R", f"{place}/arguments", detail)


def _object(text: str) -> tuple[dict[str, Any] | None, str]:
    try:
        value = parse_strict(text)
    except NotStrictJsonError as error:
        return None, str(error)
    if not isinstance(value, dict):
        return None, f"the arguments must be an object, found {type(value).__name__}"
    return value, ""


def _broken_character(arguments: Any) -> int | None:
    """The first one: `\\ud83d` is plain text in the raw row, and breaks the tables once it is decoded."""
    for _, text, _ in texts(arguments):
        match = BROKEN_CHARACTERS.search(text)
        if match:
            return ord(match.group())
    return None
