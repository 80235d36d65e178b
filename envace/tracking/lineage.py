"""The lineage of a registered version, as it was recorded: where it comes from, and what was measured on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.errors import TrackingError
from envace.tracking.dvc_lock import LockedStage, stages_of
from envace.tracking.promotion import find_version
from envace.tracking.provenance import FOLDER, LOCK, RECORD
from envace.tracking.store import local_path, open_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

EVALUATION = "evaluation/metrics.json"
"""The artifact with the figures of the version."""


@dataclass(frozen=True, slots=True)
class LaterEvaluation:
    """The newest evaluation of a version since its registration: the folder of its run, and what it was measured on."""

    artifacts: Path
    benchmark_sha256: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the registry holds of one version. `texts`: the kept files by name; `metrics`: the figures in MLflow.

    `artifacts` is the folder of the version's run, `model` the address of the model's artifacts.
    """

    name: str
    version: str
    aliases: list[str]
    tags: dict[str, str]
    record: dict[str, Any]
    texts: dict[str, str]
    lock: list[LockedStage]
    metrics: dict[str, float]
    artifacts: Path
    model: str
    later: LaterEvaluation | None = None

    @property
    def where(self) -> str:
        """NAME/VERSION."""
        return f"{self.name}/{self.version}"

    @property
    def git_commit(self) -> str | None:
        """The commit that was checked out when the version was registered."""
        return self.record.get("git_commit")


def read_lineage(name: str, version: str, root: Path = Path()) -> Lineage:
    """Look a version up by number or alias. Raises TrackingError where it is unknown or nothing was kept with it.

    What was kept is read as it is: `verify` says whether it is still what it was.
    """
    client = open_store(root)
    found = find_version(client, name, version)
    run_id = found.tags.get("run_id", "")
    run = client.get_run(run_id) if run_id else None
    folder = local_path(str(run.info.artifact_uri)) if run is not None else Path()
    kept = folder / FOLDER
    if run is None or not (kept / RECORD).is_file():
        raise TrackingError(
            f"{name}/{found.version}: no lineage is kept with it ({kept / RECORD} is not there); "
            "`envace run --force register_model` records that of the present models/policy"
        )
    texts = {p.name: p.read_text(encoding="utf-8", errors="replace") for p in sorted(kept.iterdir()) if p.is_file()}
    return Lineage(
        name=name,
        version=str(found.version),
        aliases=sorted(found.aliases),
        tags=dict(found.tags),
        record=json_object(texts[RECORD], kept / RECORD),
        texts=texts,
        lock=stages_of(texts[LOCK], str(kept / LOCK)) if LOCK in texts else [],
        metrics=dict(run.data.metrics),
        artifacts=folder,
        model=client.get_model_version_download_uri(name, found.version),
        later=_later(client, found.tags),
    )


def _later(client: MlflowClient, tags: dict[str, str]) -> LaterEvaluation | None:
    # the benchmark's tag is the last to be set: without it an evaluation was being recorded when its process ended
    if "evaluated_benchmark_sha256" not in tags or "evaluated_run_id" not in tags:
        return None
    run = client.get_run(tags["evaluated_run_id"])
    return LaterEvaluation(local_path(str(run.info.artifact_uri)), run.data.tags.get("benchmark_sha256", "unknown"))


def json_object(text: str, path: Path | str) -> dict[str, Any]:
    """A kept file's text, decoded. Raises TrackingError naming it where it is no JSON object any more."""
    try:
        record = json.loads(text)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise TrackingError(f"{path}: damaged, not a JSON object any more; the lineage cannot be read")
    return record
