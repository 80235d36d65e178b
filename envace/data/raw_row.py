"""One row of a raw file, whatever kind of file it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from envace.strict_json import NotStrictJsonError, parse_strict

OnBytes = Callable[[int, int], None]
"""Told how many bytes of a file have been read, and how many it has."""


@dataclass(frozen=True)
class RawRow:
    """One row of a raw file. `value` is the decoded object; where `fault` says what is wrong with the text, it is None.

    `index` counts rows from 0, `place` says where the row begins for a person ("line 12"). `text` is the row's JSON;
    of a row that is longer than allowed it is only the beginning. `fault_check` is the number of the check that the
    fault is a finding of: 5 for what is no strict JSON object, 34 for a row that is too long to be worth parsing.
    """

    index: int
    place: str
    text: str
    value: dict[str, Any] | None
    fault: str | None = None
    fault_check: int = 5


def row_of_text(index: int, place: str, text: str) -> RawRow:
    """Parse a row's text; what is wrong with it becomes the row's fault."""
    try:
        return row_of_value(index, place, text, parse_strict(text))
    except NotStrictJsonError as error:
        return RawRow(index, place, text, None, str(error))


def row_of_value(index: int, place: str, text: str, value: Any) -> RawRow:
    """A row of a value that has been decoded already."""
    if not isinstance(value, dict):
        return RawRow(index, place, text, None, f"a row must be an object, found {type(value).__name__}")
    return RawRow(index, place, text, value)


def overlong_row(index: int, place: str, text: str, limit: int) -> RawRow:
    """A row that is longer than `limit`; `text` is its beginning."""
    return RawRow(index, place, text, None, f"the row has over {limit} bytes", fault_check=34)
