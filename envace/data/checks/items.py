"""Check 26: has one checklist item all its parts, of the right type and with known words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envace.data.checks.violation import Findings
from envace.data.schema_names import EVIDENCE_KEYS, FOCUS, ITEM_KEYS

MAX_PLACE = 1_000_000
"""Turns and steps are below this: more of them do not fit a row."""


_TEXT = frozenset([str])


def _are_texts(values: list[Any]) -> bool:
    return _TEXT.issuperset(map(type, values))


def _is_place(value: int) -> bool:
    return 0 <= value < MAX_PLACE


def _accept(_: Any) -> bool:
    return True


_Part = tuple[str, type, Callable[[Any], Any], str]
"""Key, type of the decoded JSON value (which keeps true and 1 apart), what else it must be, and both in words."""
_WORDS = f"one of {', '.join(FOCUS)}"
_ITEM: tuple[_Part, ...] = (
    ("id", str, _accept, "text"),
    ("evidence", list, _accept, "a list"),
    ("focus_on", str, FOCUS.__contains__, _WORDS),
    ("question", str, str.strip, "text that is not blank"),
    ("pass_condition", str, str.strip, "text that is not blank"),
    ("failure_examples", list, _are_texts, "a list of texts"),
    ("required_for_next_turn", bool, _accept, "true or false"),
    ("dependence", list, _are_texts, "a list of texts"),
)
_EVIDENCE: tuple[_Part, ...] = (
    ("turn", int, _is_place, "a whole number from 0"),
    ("step", int, _is_place, "a whole number from 0"),
    ("from", str, FOCUS.__contains__, _WORDS),
    ("snippet", str, _accept, "text"),
)
_ITEM_KEYS, _EVIDENCE_KEYS = frozenset(ITEM_KEYS), frozenset(EVIDENCE_KEYS)
_MISSING = object()


def check_item(findings: Findings, item: Any, place: str) -> bool:
    """26. True where the item can be read by the other checks."""
    if type(item) is not dict:
        findings.add(26, "R", place, f"an item must be an object, found {type(item).__name__}")
        return False
    is_right = _check_parts(findings, item, place, _ITEM)
    if "weight" not in item:  # what it may be is check 28's
        findings.add(26, "R", place, "the key 'weight' is missing")
        is_right = False
    if not _ITEM_KEYS.issuperset(item):
        findings.add(26, "W", place, f"unknown keys {[key for key in item if key not in _ITEM_KEYS]}")
    if is_right:
        for index, entry in enumerate(item["evidence"]):
            if not _check_entry(findings, entry, f"{place}/evidence/{index}"):
                is_right = False
    return is_right


def _check_entry(findings: Findings, entry: Any, place: str) -> bool:
    if type(entry) is not dict:
        findings.add(26, "R", place, f"evidence must be an object, found {type(entry).__name__}")
        return False
    if not _EVIDENCE_KEYS.issuperset(entry):
        findings.add(26, "W", place, f"unknown keys {[key for key in entry if key not in _EVIDENCE_KEYS]}")
    return _check_parts(findings, entry, place, _EVIDENCE)


def _check_parts(findings: Findings, value: dict[str, Any], place: str, parts: tuple[_Part, ...]) -> bool:
    is_right = True
    for key, kind, holds, expected in parts:
        part = value.get(key, _MISSING)
        if type(part) is kind and holds(part):
            continue
        is_right = False
        if part is _MISSING:
            findings.add(26, "R", place, f"the key {key!r} is missing")
        else:
            findings.add(26, "R", f"{place}/{key}", f"expected {expected}, found {part!r:.80}")
    return is_right
