"""The promotion gate: the floors over the base policy, and the comparison with the present champion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envace.config import RegisterModelParams
from envace.errors import TrackingError


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


def refusal(
    conditions: list[Floor], score: float | None, digest: str, champion: Mapping[str, str] | None
) -> str | None:
    """Why the model must not become champion, or None if it may.

    `score` is its held-out reward, `digest` names the data it was measured on, `champion` holds the tags of the
    present champion (None if there is none).
    """
    missed = [floor.says for floor in conditions if not floor.holds]
    if missed:
        return "; ".join(missed)
    if champion is None:
        return None
    if champion.get("data_sha256") != digest:
        return "the champion was measured on other data, which is no comparison; move the alias by hand if it is due"
    best = _number(champion.get("heldout_reward"))
    if best is None:
        return "the champion's held-out reward is not recorded, so the two cannot be compared"
    if score is None or score < best:
        return f"held-out reward {score} is below the champion's {best}"
    return None


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
