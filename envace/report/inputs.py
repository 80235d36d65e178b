"""The files a report is made of, read and checked for being there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envace.files import read_json
from envace.report.headline import METRICS
from envace.rollout.records import read_rollouts
from envace.stage_outputs import read_record, written_by

ROLLOUTS = Path("reports/training/rollouts.parquet")
VALIDATION = Path("reports/validation/validation.json")
MANIFEST = Path("data/prepared/manifest.json")
REGISTRATION = Path("reports/registration/registration.json")
TIMINGS = Path("reports/timings/timings.json")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Decoded: the evaluation, the training's rollouts as rows, the data's checks and splits, the gate's decision.

    `timings` are durations, which no stage's output may depend on: shown where they are those of the same policy.
    """

    evaluation: dict[str, Any]
    rollouts: list[dict[str, Any]]
    validation: dict[str, Any]
    manifest: dict[str, Any]
    registration: dict[str, Any]
    timings: dict[str, Any] | None = None


def read_inputs(root: Path = Path()) -> Inputs:
    """Raises DataError naming the stage that writes a missing or broken file."""
    inputs = Inputs(
        evaluation=read_record("evaluate_policy", root / METRICS),
        rollouts=read_rollouts(written_by("train_policy", root / ROLLOUTS)),
        validation=read_record("validate_data", root / VALIDATION),
        manifest=read_record("prepare_data", root / MANIFEST),
        registration=read_record("register_model", root / REGISTRATION),
    )
    return replace(inputs, timings=_timings_of(inputs.registration.get("model_sha256"), root / TIMINGS))


def _timings_of(model_sha256: Any, path: Path) -> dict[str, Any] | None:
    """The timings of the training that made this policy, None where there are none or those of another."""
    try:
        timings = read_json(path)
    except (OSError, ValueError):
        return None
    known = isinstance(timings, dict) and bool(timings.get("steps"))
    return timings if known and timings.get("model_sha256") == model_sha256 else None
