"""What the run of a stage shows: the parameters and data versions that it read, the figures and versions it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.files import read_json
from envace.tracking.dvc_lock import stages_of
from envace.tracking.evidence import TRAINING, read_curve
from envace.tracking.live_curve import LiveCurve
from envace.tracking.run_content import log_figures, log_inputs

if TYPE_CHECKING:
    from mlflow import MlflowClient

_DATA = ("data/", "models/", "reports/")
_FIGURES = ("metrics.json", "summary.json", "validation.json")


def parameters_of(root: Path, stage: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of all parameters that dvc.yaml lists for the stage, nested as in params.yaml."""
    import yaml

    graph = yaml.safe_load((root / "dvc.yaml").read_text(encoding="utf-8"))
    chosen: dict[str, Any] = {}
    for key in graph["stages"].get(stage, {}).get("params", []):
        *parents, last = str(key).split(".")
        source, target = values, chosen
        for name in parents:
            source, target = source[name], target.setdefault(name, {})
        target[last] = source[last]
    return chosen


def log_outcome(client: MlflowClient, run_id: str, root: Path, stage: str, curve: LiveCurve) -> None:
    """From dvc.lock, in which DVC has just recorded the stage, and from the reports that it names.

    `curve` knows which steps of a training were logged while it ran.
    """
    lock = root / "dvc.lock"
    stages = stages_of(lock.read_text(encoding="utf-8"), str(lock)) if lock.is_file() else []
    found = next((entry for entry in stages if entry.name == stage), None)
    if found is None:
        return
    data = {path: content for path, content in found.deps.items() if path.startswith(_DATA)}
    log_inputs(client, run_id, data, stage)
    client.log_dict(run_id, {"deps": found.deps, "outs": found.outs}, "dvc.json")
    for path in found.outs:
        if Path(path) == TRAINING:
            curve.log_rest(client, run_id, read_curve(root / path))
        elif path.startswith("reports/") and Path(path).name in _FIGURES:
            log_figures(client, run_id, read_json(root / path), prefix=Path(path).stem)
