"""The folders of runs: those of other parameters or inputs are named, never resumed; that of a finished one goes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envace.files import read_json, write_json

_MADE_OF = "made_of.json"
_SHOWN = 4
_REMOVED = ".removed-"


def note_parts(run: Path, parts: dict[str, Any]) -> None:
    """Keep what the run's fingerprint was made of."""
    write_json(run / _MADE_OF, parts)


def tell_other_runs(state: Path, run: Path, parts: dict[str, Any], say: Any = print) -> None:
    """Say of every other run's folder below `state` how it differs from this one."""
    others = [p for p in state.glob("*") if p.is_dir() and p.name != run.name and not p.name.startswith(_REMOVED)]
    for other in sorted(others):
        say(
            f"{other} holds a training that was stopped under {_difference(other, parts)}: it is not resumed. To go on "
            "with it, set that back; to free its space, remove the folder"
        )


def remove_run(run: Path) -> None:
    """Remove a run's folder under another name: what a kill leaves of it is nobody's run, neither resumed nor named."""
    shutil.rmtree(run.rename(run.with_name(_REMOVED + run.name)))


def remove_leftovers(state: Path) -> None:
    """Remove what a killed `remove_run` has left below `state`."""
    for left in state.glob(f"{_REMOVED}*"):
        shutil.rmtree(left)


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
