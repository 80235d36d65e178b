"""Curves over training steps, computed from the saved rollouts and nothing else."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """Mean and standard error of the mean over the scorable rollouts of one step."""

    step: int
    mean: float
    error: float
    rollouts: int


@dataclass(frozen=True, slots=True)
class Curves:
    """All curves of a training. Shares and means are by training step; validation points stand apart."""

    reward: list[Point]
    validation_reward: list[Point]
    validation_success: list[Point]
    reward_by_role: dict[str, list[Point]]
    stop_reasons: dict[int, dict[str, float]]
    outputs: dict[int, dict[str, float]]
    unscorable: int


def curves(rows: Iterable[Row]) -> Curves:
    """Rows as `read_rollouts` gives them. A rollout without a reward is counted, never averaged in as 0."""
    by_phase: dict[str, dict[int, list[Row]]] = {"train": defaultdict(list), "validation": defaultdict(list)}
    for row in rows:
        by_phase[row["phase"]][row["step"]].append(row)
    train, validation = (dict(sorted(by_phase[p].items())) for p in ("train", "validation"))
    return Curves(
        reward=_points(train, "reward"),
        validation_reward=_points(validation, "reward"),
        validation_success=_points(validation, "success"),
        reward_by_role={role: _points_of_outputs(train, role) for role in ("act", "rehearse")},
        stop_reasons={step: _shares(r["stop_reason"] for r in found) for step, found in train.items()},
        outputs={step: _outputs_by_role(found) for step, found in train.items()},
        unscorable=sum(r["reward"] is None for found in train.values() for r in found),
    )


def _points(steps: Mapping[int, list[Row]], figure: str) -> list[Point]:
    points = []
    for step, rows in steps.items():
        values = [float(r[figure]) for r in rows if r["reward"] is not None]
        if values:
            points.append(Point(step, fmean(values), _standard_error(values), len(values)))
    return points


def _points_of_outputs(steps: Mapping[int, list[Row]], role: str) -> list[Point]:
    """The mean reward over a role's outputs: the role's baseline. A rollout counts once for each of its outputs."""
    points = []
    for step, rows in steps.items():
        counted = [(sum(o["role"] == role for o in r["outputs"]), r["reward"]) for r in rows if r["reward"] is not None]
        outputs = sum(count for count, _ in counted)
        if outputs:
            points.append(Point(step, sum(count * reward for count, reward in counted) / outputs, 0.0, len(counted)))
    return points


def _standard_error(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = fmean(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def _shares(names: Iterable[str]) -> dict[str, float]:
    counted = Counter(names)
    return {name: count / counted.total() for name, count in sorted(counted.items())}


def _outputs_by_role(rows: list[Row]) -> dict[str, float]:
    """Mean outputs a rollout, by role."""
    counted = Counter(output["role"] for row in rows for output in row["outputs"])
    return {role: counted[role] / len(rows) for role in ("act", "rehearse")}
