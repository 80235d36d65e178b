"""A quick yes for the many tool schemas that use nothing but the common words of JSON Schema, each as it must be.

The metaschema of Draft 2020-12 takes milliseconds a schema, and a data set may have tens of thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))


def is_plain(schema: Any, depth: int = 20) -> bool:
    """True only for a valid schema without references, patterns and alternatives that requires what it declares.

    False says nothing: the schema may well be valid.
    """
    if type(schema) is not dict or not depth:
        return False
    for key, value in schema.items():
        holds = _WORDS.get(key)
        if holds is not None:
            if not holds(value):
                return False
        elif key == "properties":
            if type(value) is not dict or not all(is_plain(child, depth - 1) for child in value.values()):
                return False
        elif key not in ("items", "additionalProperties") or not (type(value) is bool or is_plain(value, depth - 1)):
            return False
    return not schema.get("required") or schema.get("properties", {}).keys() >= set(schema["required"])


def _is_type(value: Any) -> bool:
    if type(value) is str:
        return value in _TYPES
    return _are_names(value) and bool(value) and _TYPES.issuperset(value)


def _are_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value) and len(set(value)) == len(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_anything(_: Any) -> bool:
    return True


_WORDS: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "required": _are_names,
    "enum": lambda value: type(value) is list,
    "default": _is_anything,
    "const": _is_anything,
    **dict.fromkeys(("title", "description", "format"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
}
