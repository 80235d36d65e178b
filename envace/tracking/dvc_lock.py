"""dvc.lock as data: which stage read and wrote what, by content; and the part of it that one file or folder needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from envace.errors import TrackingError

_STAGE = re.compile(r"  ([\w-]+):\s*$")


@dataclass(frozen=True, slots=True)
class LockedStage:
    """One stage as DVC has recorded it: path to content hash of what it read and wrote, and its parameters by key."""

    name: str
    deps: dict[str, str]
    outs: dict[str, str]
    params: dict[str, Any]


def stages_of(text: str, where: str = "dvc.lock") -> list[LockedStage]:
    """The stages in the order of the file. Raises TrackingError where it is no dvc.lock of this DVC."""
    import yaml

    try:
        decoded = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
        found = decoded.get("stages") or {}
        return [_stage(name, entry) for name, entry in found.items()]
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise TrackingError(f"{where}: not a dvc.lock ({type(error).__name__}: {error}); run `envace run`") from None


def behind(stages: Iterable[LockedStage], paths: Iterable[str]) -> list[LockedStage]:
    """The stages that `paths` come from, and those that theirs come from, in the order given."""
    ordered = list(stages)
    wanted, waiting = set[str](), list(paths)
    while waiting:
        path = waiting.pop()
        for stage in ordered:
            if stage.name not in wanted and any(overlap(path, out) for out in stage.outs):
                wanted.add(stage.name)
                waiting += stage.deps
    return [stage for stage in ordered if stage.name in wanted]


def part_of(text: str, names: Iterable[str]) -> str:
    """The text of these stages alone, to the letter: a dvc.lock again."""
    kept, wanted, keep = [], set(names), True
    for line in text.splitlines(keepends=True):
        if found := _STAGE.match(line):
            keep = found[1] in wanted
        elif not line.startswith(" "):
            keep = True
        if keep:
            kept.append(line)
    return "".join(kept)


def content_of(stages: Iterable[LockedStage], path: str) -> str | None:
    """The recorded content hash of a path that a stage wrote, else of one that a stage read; None if unknown."""
    ordered = list(stages)
    for side in ("outs", "deps"):
        for stage in ordered:
            if path in getattr(stage, side):
                return getattr(stage, side)[path]
    return None


def overlap(one: str, other: str) -> bool:
    """Whether two paths are the same, or one lies in the other."""
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")


def _stage(name: str, entry: dict[str, Any]) -> LockedStage:
    params = {key: value for file in (entry.get("params") or {}).values() for key, value in file.items()}
    sides = [{item["path"]: item["md5"] for item in entry.get(side) or []} for side in ("deps", "outs")]
    return LockedStage(name, sides[0], sides[1], params)
