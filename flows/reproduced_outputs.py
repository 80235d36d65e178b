"""A reproduction held against what was recorded: which files differ, and by how much where they hold figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.errors import TrackingError
from envace.files import sha256_text
from envace.tracking.dvc_content import cached_listing, cached_object, files_in, listing_md5
from envace.tracking.lineage import Lineage
from envace.tracking.names import leaves
from envace.tracking.provenance import DECISION
from envace.tracking.register import DECISION as DECISION_FILE

_SHOWN = 5
_BIGGEST = 20_000_000  # bytes of a JSON file whose figures are compared


@dataclass(frozen=True, slots=True)
class Difference:
    """One file that did not come out as recorded."""

    path: str
    detail: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many files were compared, and those that differ, in the order of the stages."""

    files: int
    differences: list[Difference]


def compare(lineage: Lineage, stage: str, folder: Path, cache: Path) -> Comparison:
    """The outputs of one stage in `folder` against those that were recorded, file by file."""
    if stage not in {locked.name for locked in lineage.lock}:
        return _decision(lineage, folder)
    count, found = 0, list[Difference]()
    (locked,) = (s for s in lineage.lock if s.name == stage)
    for path, content in locked.outs.items():
        made = files_in(folder / path)
        count += len(made)
        now = listing_md5(made) if (folder / path).is_dir() else made[""]
        if now != content:
            found += _files_that_differ(path, content, made, folder, cache)
    return Comparison(count, found)


def _decision(lineage: Lineage, folder: Path) -> Comparison:
    """What the gate's floors came to: in no dvc.lock yet when it was recorded, so it is kept with the version."""
    expected = lineage.record["files"].get(DECISION)
    if expected is None:
        return Comparison(0, [])
    text = (folder / DECISION_FILE).read_text(encoding="utf-8")
    if sha256_text(text) == expected:
        return Comparison(1, [])
    return Comparison(1, [Difference(str(DECISION_FILE), figures_apart(lineage.texts.get(DECISION, ""), text))])


def _files_that_differ(path: str, content: str, made: dict[str, str], folder: Path, cache: Path) -> list[Difference]:
    try:
        recorded = cached_listing(cache, content)
    except TrackingError:
        return [Difference(path, "differs; the files it was made of are no longer in DVC's cache to say which")]
    found = []
    for name in sorted({*recorded, *made}):
        whole = f"{path}/{name}" if name else path
        if name not in made:
            found.append(Difference(whole, "was not made"))
        elif name not in recorded:
            found.append(Difference(whole, "was made, but not recorded"))
        elif recorded[name] != made[name]:
            found.append(Difference(whole, _how(cached_object(cache, recorded[name]), folder / whole)))
    return found


def _how(recorded: Path, made: Path) -> str:
    if not recorded.is_file():
        return "differs"
    if made.suffix in (".json", ".jsonl") and max(recorded.stat().st_size, made.stat().st_size) <= _BIGGEST:
        return figures_apart(recorded.read_text(encoding="utf-8"), made.read_text(encoding="utf-8"))
    sizes = recorded.stat().st_size, made.stat().st_size
    return "differs" if sizes[0] == sizes[1] else f"differs: {sizes[1]} bytes, {sizes[0]} were recorded"


def figures_apart(before: str, after: str) -> str:
    """The figures of two JSON texts that differ, the widest apart first, and what else does."""
    try:
        old, new = _values(before), _values(after)
    except ValueError:
        return "differs"
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    apart = {n: abs(new[n] - old[n]) for n in names if _is_number(old.get(n)) and _is_number(new.get(n))}
    ordered = sorted(apart, key=lambda name: (-apart[name], name))
    told = [f"{name} {old[name]} -> {new[name]} ({new[name] - old[name]:+.3g})" for name in ordered[:_SHOWN]]
    told += (
        [f"{len(ordered) - _SHOWN} more figures, at most {apart[ordered[0]]:.3g} apart"]
        if len(ordered) > _SHOWN
        else []
    )
    others = sorted(set(names) - set(apart))
    told += [f"{', '.join(others[:_SHOWN])} other than recorded"] if others else []
    return "; ".join(told) or "the same values, written differently"


def _values(text: str) -> dict[str, Any]:
    """Key path to value; of JSON lines, with the number of the line in front."""
    try:
        decoded = json.loads(text)
    except ValueError:
        decoded = {f"line {number}": json.loads(line) for number, line in enumerate(text.splitlines(), start=1)}
    return {".".join(path): value for path, value in leaves(decoded if isinstance(decoded, dict) else {"": decoded})}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
