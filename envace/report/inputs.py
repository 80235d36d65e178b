"""The files a report is made of, read and checked for being there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.report.headline import METRICS
from envace.rollout.records import read_rollouts
from envace.stage_outputs import read_record, written_by

ROLLOUTS = Path("reports/training/rollouts.parquet")
VALIDATION = Path("reports/validation/validation.json")
MANIFEST = Path("data/prepared/manifest.json")
REGISTRATION = Path("reports/registration/registration.json")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Decoded: the evaluation, the training's rollouts as rows, the data's checks and splits, the gate's decision."""

    evaluation: dict[str, Any]
    rollouts: list[dict[str, Any]]
    validation: dict[str, Any]
    manifest: dict[str, Any]
    registration: dict[str, Any]


def read_inputs(root: Path = Path()) -> Inputs:
    """Raises DataError naming the stage that writes a missing or broken file."""
    return Inputs(
        evaluation=read_record("evaluate_policy", root / METRICS),
        rollouts=read_rollouts(written_by("train_policy", root / ROLLOUTS)),
        validation=read_record("validate_data", root / VALIDATION),
        manifest=read_record("prepare_data", root / MANIFEST),
        registration=read_record("register_model", root / REGISTRATION),
    )
