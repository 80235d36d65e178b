"""Strict JSON: what Python's parser lets through in silence (NaN, repeated keys, endless nesting) is named here."""

from __future__ import annotations

import json
import math
from typing import Any

_SPACE = " \t\n\r"
MAX_DEPTH = 100
"""Deepest nesting that is accepted. Real rows have about ten levels."""


class NotStrictJsonError(ValueError):
    """The text is not strict JSON. `syntax` is True where it is no JSON at all."""

    def __init__(self, reason: str, syntax: bool = False) -> None:
        super().__init__(reason)
        self.syntax = syntax


def parse_strict(text: str) -> Any:
    """Decode strict JSON text. Raises NotStrictJsonError with the reason in words."""
    body = text.strip(_SPACE)
    value, end = parse_prefix(body)
    if end != len(body):
        raise NotStrictJsonError(f"not JSON: Extra data at character {end}", syntax=True)
    return value


def parse_prefix(text: str, at: int = 0) -> tuple[Any, int]:
    """Decode the strict JSON value beginning at `at`; gives it and the index behind it. Raises like parse_strict."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except NotStrictJsonError:
        raise
    except json.JSONDecodeError as error:
        raise NotStrictJsonError(f"not JSON: {error.msg} at character {error.pos}", syntax=True) from None
    except RecursionError:
        raise NotStrictJsonError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # for example an integer of more than 4,300 digits
        raise NotStrictJsonError(str(error)) from None
    if _deeper_than(value, MAX_DEPTH):
        raise NotStrictJsonError(f"nested deeper than {MAX_DEPTH} levels")
    return value, end


def parse_object(text: str) -> dict[str, Any] | None:
    """The strict JSON object in `text`, or None where it is anything else."""
    try:
        value = parse_strict(text)
    except NotStrictJsonError:
        return None
    return value if isinstance(value, dict) else None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [key for key, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise NotStrictJsonError(f"the key {repeated!a:.80} stands twice in one object")
    return made


def _no_constant(name: str) -> Any:
    raise NotStrictJsonError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotStrictJsonError(f"the number {text:.40} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite)


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node if type(node) is list else ())
            if type(child) is dict or type(child) is list  # the parser makes no subclasses; this is run for every row
        ]
        if not level:
            return False
    return True
