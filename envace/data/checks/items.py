"""Check 26: has one checklist item all its parts, of the right type and with known words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envace.data.checks.violation import Findings
from envace.data.schema_names import EVIDENCE_KEYS, FOCUS, ITEM_KEYS


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(child, str) for child in value)


def _is_focus(value: Any) -> bool:
    return isinstance(value, str) and value in FOCUS


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000


_ITEM: dict[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_is_text, "text"),
    "evidence": (lambda value: isinstance(value, list), "a list"),
    "focus_on": (_is_focus, f"one of {', '.join(FOCUS)}"),
    "question": (_is_filled, "text that is not blank"),
    "pass_condition": (_is_filled, "text that is not blank"),
    "failure_examples": (_is_texts, "a list of texts"),
    "required_for_next_turn": (lambda value: isinstance(value, bool), "true or false"),
    "dependence": (_is_texts, "a list of texts"),
    "weight": (lambda value: True, "a number"),  # judged by check 28
}
_EVIDENCE: dict[str, tuple[Callable[[Any], bool], str]] = {
    "turn": (_is_place, "a whole number from 0"),
    "step": (_is_place, "a whole number from 0"),
    "from": (_is_focus, f"one of {', '.join(FOCUS)}"),
    "snippet": (_is_text, "text"),
}


def check_item(findings: Findings, item: Any, place: str) -> bool:
    """26. True where the item can be read by the other checks."""
    if not isinstance(item, dict):
        findings.add(26, "R", place, f"an item must be an object, found {type(item).__name__}")
        return False
    is_right = _check_parts(findings, item, place, _ITEM)
    unknown = [key for key in item if key not in ITEM_KEYS]
    if unknown:
        findings.add(26, "W", place, f"unknown keys {unknown}")
    if not is_right:
        return False
    return all([_check_entry(findings, entry, f"{place}/evidence/{n}") for n, entry in enumerate(item["evidence"])])


def _check_entry(findings: Findings, entry: Any, place: str) -> bool:
    if not isinstance(entry, dict):
        findings.add(26, "R", place, f"evidence must be an object, found {type(entry).__name__}")
        return False
    unknown = [key for key in entry if key not in EVIDENCE_KEYS]
    if unknown:
        findings.add(26, "W", place, f"unknown keys {unknown}")
    return _check_parts(findings, entry, place, _EVIDENCE)


def _check_parts(
    findings: Findings, value: dict[str, Any], place: str, parts: dict[str, tuple[Callable[[Any], bool], str]]
) -> bool:
    is_right = True
    for key, (holds, expected) in parts.items():
        if key not in value:
            findings.add(26, "R", place, f"the key {key!r} is missing")
            is_right = False
        elif not holds(value[key]):
            findings.add(26, "R", f"{place}/{key}", f"expected {expected}, found {value[key]!r:.80}")
            is_right = False
    return is_right
