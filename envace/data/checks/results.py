"""Checks 16 to 19: are results JSON, do they record errors, do errors contradict the schema, are they consistent."""

from __future__ import annotations

import re
from typing import Any

from envace.data.checks.row import Exchange, Row
from envace.data.checks.violation import pointer
from envace.data.results import is_error_result
from envace.files import canonical_json
from envace.strict_json import NotStrictJsonError, parse_strict

_TYPES = "string|integer|number|boolean|array|object"
_COMPLAINT = re.compile(rf"(?:expected|must be|should be|requires)\s+(?:an?\s+|of type\s+)?({_TYPES})\b", re.IGNORECASE)


def check_results(row: Row) -> None:
    """16 to 19 for every call with its result."""
    answers: dict[str, str] = {}
    for exchange in row.exchanges:
        content = row.messages[exchange.result_index]["content"]
        place = pointer("messages", exchange.result_index, "content")
        try:
            value = parse_strict(content)
        except NotStrictJsonError as error:
            row.findings.add(16, "R", place, f"result of {exchange.tool_name}: {error}")
            continue
        if not isinstance(value, dict | list):
            row.findings.add(16, "W", place, f"result of {exchange.tool_name} is a bare {type(value).__name__}")
        if is_error_result(content):
            row.findings.add(17, "W", place, f"{exchange.tool_name} answered {content}")
            complaint = _contradiction(row, exchange, value) if exchange.is_valid else None
            if complaint:
                row.findings.add(18, "W", place, complaint)
        if exchange.arguments is not None:
            call = canonical_json([exchange.tool_name, exchange.arguments])
            result = canonical_json(value)
            if answers.setdefault(call, result) != result:
                row.findings.add(19, "W", place, f"{exchange.tool_name} answered otherwise to the same call before")


def _contradiction(row: Row, exchange: Exchange, error: Any) -> str | None:
    """Where an error demands another type of an argument than the tool's schema declares (the call itself is valid)."""
    validator = row.validators[exchange.tool_name]
    if validator is None:
        return None
    for name in exchange.arguments or {}:
        declared = validator.declared_types(name)
        for text in _texts_about(name, error):
            demanded = _COMPLAINT.search(text)
            wanted = demanded[1].lower() if demanded else None
            if declared and wanted and wanted not in _accepted(declared):
                return f"the error demands {wanted} for {name}, the schema declares {' or '.join(declared)}"
    return None


def _accepted(declared: list[str]) -> set[str]:
    return {*declared, *(["integer"] if "number" in declared else [])}


def _texts_about(name: str, node: Any, is_about: bool = False) -> list[str]:
    """Texts that stand under the key `name` or mention it."""
    if isinstance(node, dict):
        return [text for key, child in node.items() for text in _texts_about(name, child, is_about or key == name)]
    if isinstance(node, list):
        return [text for child in node for text in _texts_about(name, child, is_about)]
    if not isinstance(node, str):
        return []
    return [node] if is_about or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", node) else []
