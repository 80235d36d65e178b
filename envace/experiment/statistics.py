"""Paired bootstrap over tasks: by how much one policy is better than another, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LEVEL = 0.95
_CHUNK = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference with its bootstrap interval, over so many tasks."""

    mean: float
    low: float
    high: float
    tasks: int

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside the interval, on either side."""
        return self.low > 0 or self.high < 0

    def record(self) -> dict[str, Any]:
        """As JSON."""
        figures = {"mean": round(self.mean, 6), "low": round(self.low, 6), "high": round(self.high, 6)}
        return {**figures, "tasks": self.tasks, "excludes_zero": self.excludes_zero}


def paired_interval(
    before: Mapping[str, float], after: Mapping[str, float], *, resamples: int, seed: int = 0, level: float = LEVEL
) -> Interval:
    """The percentile interval of mean(after - before), tasks drawn with replacement.

    Args:
        before, after: a figure for each task, of the same tasks. What varies inside a task (samples) is in its mean.
        level: 0.95 for the 2.5th to the 97.5th percentile.

    Raises ValueError where the tasks differ, are fewer than two, or a figure is not finite.
    """
    if before.keys() != after.keys():
        alone = sorted(before.keys() ^ after.keys())
        raise ValueError(f"not the same tasks: {len(alone)} are in one of the two only, first {alone[0]!r}")
    if len(before) < 2:
        raise ValueError(f"{len(before)} task(s): an interval over tasks needs at least two")
    if resamples < 1 or not 0 < level < 1:
        raise ValueError("resamples must be at least 1 and level between 0 and 1")
    tasks = sorted(before)
    differences = np.array([after[t] - before[t] for t in tasks], dtype=np.float64)
    if not np.isfinite(differences).all():
        raise ValueError("a figure is not finite")
    means = _resampled_means(differences, resamples, seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(differences.mean()), float(low), float(high), len(tasks))


def mean_over_seeds(per_seed: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """For each task the mean over seeds. Raises ValueError where the seeds have different tasks or there are none."""
    if not per_seed:
        raise ValueError("no seed")
    if any(one.keys() != per_seed[0].keys() for one in per_seed):
        raise ValueError("not the same tasks in every seed")
    return {task: float(np.mean([one[task] for one in per_seed])) for task in per_seed[0]}


def spread(values: Sequence[float]) -> dict[str, float | int | None]:
    """Mean, standard deviation (None for a single value), least and greatest. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values")
    deviation = round(float(np.std(values, ddof=1)), 6) if len(values) > 1 else None
    low, high = round(min(values), 6), round(max(values), 6)
    return {"mean": round(float(np.mean(values)), 6), "sd": deviation, "min": low, "max": high, "seeds": len(values)}


def _resampled_means(differences: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    rng, count = np.random.default_rng(seed), len(differences)
    means = []
    for done in range(0, resamples, _CHUNK):  # in parts, so that memory does not grow with the resamples
        drawn = rng.integers(0, count, size=(min(_CHUNK, resamples - done), count))
        means.append(differences[drawn].mean(axis=1))
    return np.concatenate(means)
