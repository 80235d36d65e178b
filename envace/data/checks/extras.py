"""Check 40: have the two optional keys of ours, `outcome` and `world`, the shape that docs/data.md shows."""

from __future__ import annotations

from typing import Any

from envace.data.checks.row import Row
from envace.data.checks.violation import pointer

_TURN_KEYS = ("required_calls", "ordered", "forbidden_tools", "required_facts")
_CALL_KEYS = ("name", "arguments")
_WORLD_KEYS = ("domain", "seed")
SEED_LIMIT = 2**63
"""Seeds are stored as 64-bit whole numbers."""


def check_extras(row: Row, user_messages: int | None) -> None:
    """40. A null says the same as nothing. `user_messages` is None where the messages cannot be read."""
    outcome, world = row.record.get("outcome"), row.record.get("world")
    if outcome is not None and _is_object(row, outcome, ("turns",), ("turns",), ("outcome",)):
        _check_turns(row, outcome["turns"], user_messages)
    if world is not None and _is_object(row, world, _WORLD_KEYS, _WORLD_KEYS, ("world",)):
        _expect(row, _is_filled(world["domain"]), "text that is not blank", "world", "domain")
        seed = world["seed"]
        _expect(
            row, type(seed) is int and -SEED_LIMIT <= seed < SEED_LIMIT, "a whole number of 64 bits", "world", "seed"
        )


def _check_turns(row: Row, turns: Any, user_messages: int | None) -> None:
    if not _expect(row, isinstance(turns, list), "a list", "outcome", "turns"):
        return
    if user_messages is not None and len(turns) != user_messages:
        detail = f"{len(turns)} turns of outcomes for {user_messages} user messages"
        row.findings.add(40, "R", pointer("outcome", "turns"), detail)
    for index, turn in enumerate(turns):
        place = ("outcome", "turns", index)
        if not _is_object(row, turn, _TURN_KEYS, ("required_calls", "required_facts"), place):
            continue
        _expect(row, isinstance(turn.get("ordered", True), bool), "true or false", *place, "ordered")
        for key in ("forbidden_tools", "required_facts"):
            texts = turn.get(key, [])
            is_right = isinstance(texts, list) and all(_is_filled(text) for text in texts)
            _expect(row, is_right, "a list of texts that are not blank", *place, key)
        calls = turn["required_calls"]
        if _expect(row, isinstance(calls, list), "a list", *place, "required_calls"):
            for number, call in enumerate(calls):
                _check_call(row, call, (*place, "required_calls", number))


def _check_call(row: Row, call: Any, place: tuple[str | int, ...]) -> None:
    if not _is_object(row, call, _CALL_KEYS, _CALL_KEYS, place):
        return
    is_known = isinstance(call["name"], str) and (call["name"] in row.validators or not row.validators)
    _expect(row, is_known, "the name of one of the row's tools", *place, "name")
    _expect(row, isinstance(call["arguments"], dict), "an object", *place, "arguments")


def _is_object(
    row: Row, value: Any, known: tuple[str, ...], needed: tuple[str, ...], place: tuple[str | int, ...]
) -> bool:
    """True where the value is an object with all the needed keys. Keys that are not known are named."""
    if not _expect(row, isinstance(value, dict), "an object", *place):
        return False
    unknown = [key for key in value if key not in known]
    missing = [key for key in needed if key not in value]
    if unknown:
        row.findings.add(40, "R", pointer(*place), f"unknown keys {unknown}; known are {', '.join(known)}")
    if missing:
        row.findings.add(40, "R", pointer(*place), f"missing keys {missing}")
    return not missing


def _expect(row: Row, holds: bool, expected: str, *place: str | int) -> bool:
    if not holds:
        row.findings.add(40, "R", pointer(*place), f"expected {expected}")
    return holds


def _is_filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
