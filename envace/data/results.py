"""How a recorded tool result says that the call failed."""

from __future__ import annotations

from typing import Any

from envace.strict_json import parse_object


def is_error_result(content: str) -> bool:
    """True for a JSON object with a telling `error`, `is_error: true`, or `status: "error"`."""
    value = parse_object(content)
    return value is not None and is_error_value(value)


def is_error_value(value: dict[str, Any]) -> bool:
    """The same for a decoded object. An `error` that is null, false or empty tells of no error."""
    return bool(value.get("error")) or value.get("is_error") is True or value.get("status") == "error"
