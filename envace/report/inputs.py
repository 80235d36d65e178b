"""The files a report is made of, read and checked for being there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.files import read_json
from envace.report.headline import METRICS
from envace.report.recorded import recorded_rows
from envace.stage_outputs import read_record, written_by

RESULTS = Path("reports/evaluation/results.json")
ROLLOUTS = Path("reports/training/rollouts.parquet")
VALIDATION = Path("reports/validation/validation.json")
MANIFEST = Path("data/prepared/manifest.json")
REGISTRATION = Path("reports/registration/registration.json")
TIMINGS = Path("reports/timings/timings.json")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Decoded: the evaluation, results by benchmark, the training's rollouts as rows, the data's checks and splits, the
    gate's decision."""

    evaluation: dict[str, Any]
    results: dict[str, Any]
    rollouts: list[dict[str, Any]]
    validation: dict[str, Any]
    manifest: dict[str, Any]
    registration: dict[str, Any]


def read_inputs(root: Path = Path()) -> Inputs:
    """Raises DataError naming the stage that writes a missing or broken file."""
    return Inputs(
        evaluation=read_record("evaluate_policy", root / METRICS),
        results=read_record("evaluate_policy", root / RESULTS),
        rollouts=recorded_rows(written_by("train_policy", root / ROLLOUTS)),
        validation=read_record("validate_data", root / VALIDATION),
        manifest=read_record("prepare_data", root / MANIFEST),
        registration=read_record("register_model", root / REGISTRATION),
    )


def read_timings(model_sha256: Any, root: Path = Path()) -> dict[str, Any] | None:
    """The durations of the training that made this policy, None where there are none or those of another."""
    try:
        timings = read_json(root / TIMINGS)
    except (OSError, ValueError):
        return None
    known = isinstance(timings, dict) and bool(timings.get("steps"))
    return timings if known and timings.get("model_sha256") == model_sha256 else None
