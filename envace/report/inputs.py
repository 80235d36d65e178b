"""The files a report is made of, read and checked for being there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.errors import DataError
from envace.files import read_json
from envace.report.headline import METRICS
from envace.rollout.records import read_rollouts

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
    rollouts = root / ROLLOUTS
    if not rollouts.is_file():
        raise DataError(f"{rollouts}: not found; stage train_policy writes it")
    return Inputs(
        evaluation=_decode(root / METRICS, "evaluate_policy"),
        rollouts=read_rollouts(rollouts),
        validation=_decode(root / VALIDATION, "validate_data"),
        manifest=_decode(root / MANIFEST, "prepare_data"),
        registration=_decode(root / REGISTRATION, "register_model"),
    )


def _decode(path: Path, stage: str) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(f"{path}: not found; stage {stage} writes it")
    try:
        value = read_json(path)
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); run `envace run --force {stage}`") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected an object, found {type(value).__name__}; run stage {stage} again")
    return value
