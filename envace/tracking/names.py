"""Names and values that MLflow can store: a stated mapping without collisions, and no NaN or infinity as a number.

The mapping of one name: letters, digits and `_ - . /` stay; every other character becomes `:` its code point in
hexadecimal `:`, as does a `/` or `.` where MLflow would read the name as a path that is not normal. A name that is then
too long keeps its beginning, followed by `:h` and a hash of the whole. So `val/pass@1` becomes `val/pass:40:1`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from envace.files import canonical_json, sha256_text

MAX_NAME = 250
MAX_VALUE = 6000
_HASH_DIGITS = 32
_EMPTY = "::"
_UNSAFE = re.compile(r"[^A-Za-z0-9_\-.]")
_UNSAFE_IN_PATH = re.compile(r"[^A-Za-z0-9_\-]")


def safe_name(name: str) -> str:
    """`name` as MLflow takes it. Different names give different results."""
    if not name:
        return _EMPTY
    # what MLflow reads as this folder or one above has its dots spelled out
    segments = [_spell(s, _UNSAFE_IN_PATH if s == "." or s.startswith("..") else _UNSAFE) for s in name.split("/")]
    # an empty segment (a slash at either end, or two in a row) has no normal form: its slash is spelled out
    text = segments[0]
    for previous, segment in pairwise(segments):
        text += ("/" if previous and segment else ":2f:") + segment
    return _fit(text)


def path_name(path: Sequence[str]) -> str:
    """The keys that lead to a nested value, joined by dots. Different paths give different results."""
    return _fit(".".join(_spell(key, _UNSAFE_IN_PATH) or _EMPTY for key in path))


def leaves(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values at the ends of nested mappings, with the keys that lead to them."""
    for key, inner in value.items():
        here = (*path, str(key))
        if isinstance(inner, Mapping) and inner:
            yield from leaves(inner, here)
        else:
            yield here, inner


def parameter_texts(values: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Nested parameters as (stored texts, long texts). What is too long to store is stored as its hash."""
    stored, long = {}, {}
    for path, value in leaves(values):
        name, text = path_name(path), value if isinstance(value, str) else _text(value)
        if len(text) > MAX_VALUE:
            long[name] = text
            text = f"sha256:{sha256_text(text)}"
        stored[name] = text
    return stored, long


def numbers(named: Iterable[tuple[str, Any]]) -> tuple[dict[str, float], dict[str, str]]:
    """The numeric ones of (safe name, value) as (finite numbers, words for those that are none: nan, inf, -inf)."""
    finite, flagged = {}, {}
    for name, value in named:
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        number = _as_float(value)
        if math.isfinite(number):
            finite[name] = number
        else:
            flagged[name] = str(number)
    return finite, flagged


def _text(value: Any) -> str:
    try:
        return canonical_json(value)
    except ValueError:  # NaN or an infinity in it, which JSON has no word for
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _fit(text: str) -> str:
    if len(text) <= MAX_NAME:
        return text
    tail = ":h" + sha256_text(text)[:_HASH_DIGITS]
    return text[: MAX_NAME - len(tail)] + tail


def _spell(text: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(lambda found: f":{ord(found[0]):x}:", text)
