"""Unfinished runs of other parameters or inputs: never resumed, so it is said that they are there and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envace.files import read_json, write_json

_MADE_OF = "made_of.json"
_SHOWN = 4


def note_parts(run: Path, parts: dict[str, Any]) -> None:
    """Keep what the run's fingerprint was made of."""
    write_json(run / _MADE_OF, parts)


def tell_other_runs(state: Path, run: Path, parts: dict[str, Any], say: Any = print) -> None:
    """Say of every other run's folder below `state` how it differs from this one."""
    for other in sorted(p for p in state.glob("*") if p.is_dir() and p.name != run.name):
        say(
            f"{other} holds a training that was stopped under {_difference(other, parts)}: it is not resumed. To go on "
            "with it, set that back; to free its space, remove the folder"
        )


def _difference(other: Path, parts: dict[str, Any]) -> str:
    try:
        theirs = dict(_flat(read_json(other / _MADE_OF)))
    except (OSError, ValueError, AttributeError):
        return "other parameters or inputs"
    ours = dict(_flat(parts))
    keys = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
    shown = [_worded(key, theirs.get(key)) for key in sorted(keys)]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) or "another version of EnvACE") + more


def _worded(key: str, value: Any) -> str:
    if not key.startswith("params."):
        return f"other {key.split('.')[0].replace('_', ' ')}"
    return f"{key.removeprefix('params.')} {value}"


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its dotted name; a list is a leaf."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value
