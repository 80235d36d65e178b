"""Checks 16 to 18: are results JSON, do they record errors, do errors contradict the declared schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from envace.data.checks.registry import Severity
from envace.data.checks.row import Exchange, Row
from envace.data.checks.violation import pointer
from envace.data.results import is_error_value
from envace.strict_json import NotStrictJsonError, parse_strict

_TYPES = "string|integer|number|boolean|array|object"
_COMPLAINT = re.compile(rf"(?:expected|must be|should be|requires)\s+(?:an?\s+|of type\s+)?({_TYPES})\b", re.IGNORECASE)


def check_results(row: Row) -> None:
    """16 to 18 for every call with its result. Leaves `row.results` and `row.error_results`."""
    for exchange in row.exchanges:
        for check_id, severity, detail in _check_result(row, exchange):
            row.findings.add(check_id, severity, pointer("messages", exchange.result_index, "content"), detail)


def _check_result(row: Row, exchange: Exchange) -> Iterator[tuple[int, Severity, str]]:
    content, name = row.messages[exchange.result_index]["content"], exchange.tool_name
    try:
        value = parse_strict(content)
    except NotStrictJsonError as error:
        yield 16, "R", f"result of {name}: {error}"
        return
    row.results[exchange.result_index] = value
    if not isinstance(value, dict | list):
        yield 16, "W", f"result of {name} is a bare {type(value).__name__}"
    if isinstance(value, dict) and is_error_value(value):
        row.error_results.add(exchange.result_index)
        yield 17, "W", f"{name} answered {content}"
        complaint = _contradiction(row, exchange, value) if exchange.is_valid else None
        if complaint:
            yield 18, "W", complaint


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
