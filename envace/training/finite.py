"""Stops a run whose numbers are no longer finite, by name, before its weights or records can take harm."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

import torch

from envace.errors import TrainingError
from envace.rollout.records import NOT_FINITE

LOSSES = ("loss", "pg_loss", "kl_loss", "entropy_loss", "grad_norm")


def require_finite_rollouts(step: int, phase: str, records: Iterable[str]) -> None:
    """Raise TrainingError if the rollout server gave a number that is not finite in one of the rollouts.

    `records` are JSON texts of `rollout_row`. Called before anything is updated or recorded.
    """
    faulty = [row for text in records if NOT_FINITE in text and (row := json.loads(text)).get(NOT_FINITE) is True]
    if faulty:
        raise TrainingError(
            f"step {step}: {len(faulty)} {phase} rollout(s) were sampled with a log-probability that is not finite "
            f"(the first is of task {faulty[0]['task_id']}), so the weights are no longer sound; nothing was updated, "
            "and the last checkpoint is untouched. Lower train_policy.learning_rate, and run again to go on from it"
        )


def require_finite_rows(name: str, step: int, rows: Iterable[torch.Tensor], counts: Iterable[bool]) -> None:
    """Raise TrainingError, before an update, if a row that counts has a value in `rows` that is no finite number."""
    faulty = [i for i, (row, counted) in enumerate(zip(rows, counts, strict=True)) if counted and not _finite(row)]
    if faulty:
        raise TrainingError(
            f"step {step}: {name} of {len(faulty)} row(s) are not finite (the first is row {faulty[0]}); nothing was "
            "updated, and the last checkpoint is untouched. Look at the rollouts of the step before, lower "
            "train_policy.learning_rate, and run again to go on from that checkpoint"
        )


def require_finite_update(step: int, metrics: Mapping[str, float], prefix: str = "actor/") -> None:
    """Raise TrainingError, before a step is recorded, if its loss or gradient was no finite number.

    verl itself leaves the weights as they are where the gradient's norm is not finite, and goes on in silence.
    """
    found = {name: float(metrics[prefix + name]) for name in LOSSES if prefix + name in metrics}
    faulty = [f"{name} {value}" for name, value in found.items() if not math.isfinite(value)]
    if faulty:
        raise TrainingError(
            f"step {step}: the update is not finite ({', '.join(faulty)}); the step is not recorded, and the last "
            "checkpoint is untouched. Lower train_policy.learning_rate or grad_clip, and run again to go on from it"
        )


def _finite(row: torch.Tensor) -> bool:
    return bool(torch.isfinite(row).all())
