"""A version's tags, by which the gate decides and people find it, against the files that were kept with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envace.errors import TrackingError
from envace.tracking.gate import heldout
from envace.tracking.lineage import EVALUATION, Lineage, json_object
from envace.tracking.provenance import DECISION, LOCK

FIGURES = ("reward", "success")


def wrong_tags(lineage: Lineage) -> list[str]:
    """What each tag that is not as recorded should be. The files themselves are compared with their hashes elsewhere.

    Raises TrackingError where a file that a tag was made from is gone or damaged.
    """
    return [
        f"{tag} is {lineage.tags.get(tag, 'not set')}, recorded was {value}"
        for tag, value in _recorded(lineage)
        if lineage.tags.get(tag) != value
    ]


def _recorded(lineage: Lineage) -> Iterator[tuple[str, str]]:
    if lineage.git_commit:
        yield "git_commit", lineage.git_commit
    if LOCK in lineage.record["files"]:
        yield "dvc_lock_sha256", lineage.record["files"][LOCK]
    if DECISION in lineage.texts:
        decision = json_object(lineage.texts[DECISION], DECISION)
        hashes = ("model_sha256", "data_sha256", "benchmark_sha256")
        yield from ((tag, decision[tag]) for tag in hashes if tag in decision)
    yield from _figures(_file(lineage.artifacts / EVALUATION), "heldout")
    if lineage.later is not None:
        yield "evaluated_benchmark_sha256", lineage.later.benchmark_sha256
        figures = dict(_figures(_file(lineage.later.artifacts / EVALUATION), "evaluated"))
        yield from ((f"evaluated_{f}", figures.get(f"evaluated_{f}", "not measured")) for f in FIGURES)


def _figures(evaluation: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for figure in FIGURES:
        value = heldout(evaluation, "trained", figure)
        if value is not None:
            yield f"{prefix}_{figure}", repr(value)


def _file(path: Path) -> Any:
    if not path.is_file():
        raise TrackingError(f"{path}: not found")
    return json_object(path.read_text(encoding="utf-8", errors="replace"), path)
