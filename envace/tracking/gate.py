"""The promotion gate: the floors over the base policy, and the comparison with the present champion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envace.config import RegisterModelParams
from envace.errors import TrackingError

_MEASURED = (("evaluated_benchmark_sha256", "evaluated_reward"), ("benchmark_sha256", "heldout_reward"))


@dataclass(frozen=True, slots=True)
class Floor:
    """One condition on held-out tasks: trained minus base must be at least `required`. None: one was not measured."""

    figure: str
    required: float
    gained: float | None

    @property
    def holds(self) -> bool:
        """Whether the condition is met. A figure that was not measured, or is no number, meets nothing."""
        return self.gained is not None and math.isfinite(self.gained) and self.gained >= self.required

    @property
    def says(self) -> str:
        """The condition and what was found, in words."""
        gained = "was not measured" if self.gained is None else f"gained {self.gained:+.3f}"
        return f"held-out {self.figure} {gained}, at least {self.required:+.3f} is required"


def floors(evaluation: Mapping[str, Any], params: RegisterModelParams) -> list[Floor]:
    """Both floors. Raises TrackingError where the evaluation lacks the base or the trained policy."""
    required = {"reward": params.reward_margin, "success": params.success_margin}
    return [Floor(figure, margin, _gain(evaluation, figure)) for figure, margin in required.items()]


def refusal(conditions: list[Floor], measured: Mapping[str, float], champion: Mapping[str, float] | None) -> str | None:
    """Why the model must not become champion, or None if it may.

    `measured` and `champion` hold the held-out reward by benchmark digest, the newest benchmark first, of the model
    and of the present champion (None if there is none).
    """
    missed = [floor.says for floor in conditions if not floor.holds]
    if missed:
        return "; ".join(missed)
    if champion is None:
        return None
    if not measured:
        return "its held-out reward is not recorded, so it cannot be compared with the champion's"
    if not champion:
        return "the champion's held-out reward is not recorded, so the two cannot be compared"
    common = next((digest for digest in measured if digest in champion), None)
    if common is None:
        return (
            "the champion was measured on another benchmark, so the two cannot be compared; "
            "run `envace evaluate champion`, then `envace promote`"
        )
    score, best = measured[common], champion[common]
    return None if score > best else f"held-out reward {score} does not beat the champion's {best}"


def rewards_by_benchmark(tags: Mapping[str, str]) -> dict[str, float]:
    """Held-out reward of a version on every benchmark that its tags name: the newest evaluation first."""
    found: dict[str, float] = {}
    for digest, reward in _MEASURED:
        value = _number(tags.get(reward))
        if tags.get(digest) and value is not None:
            found.setdefault(tags[digest], value)
    return found


def heldout(evaluation: Mapping[str, Any], policy: str, figure: str) -> float | None:
    """A figure of one policy on held-out tasks with true tools; None where the tasks have none to execute."""
    here: Any = evaluation
    path = ("policies", policy, "heldout", "true")
    for depth, key in enumerate(path):
        if not isinstance(here, Mapping) or key not in here:
            raise TrackingError(
                f"reports/evaluation/metrics.json: no {'.'.join(path[: depth + 1])}; run stage evaluate_policy again"
            )
        here = here[key]
    if here is None:
        return None
    if figure not in here:
        raise TrackingError(f"reports/evaluation/metrics.json: no {'.'.join(path)}.{figure}; evaluate_policy writes it")
    return here[figure]


def _gain(evaluation: Mapping[str, Any], figure: str) -> float | None:
    base, trained = heldout(evaluation, "base", figure), heldout(evaluation, "trained", figure)
    return None if base is None or trained is None else round(trained - base, 6)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
