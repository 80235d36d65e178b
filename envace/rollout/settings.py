"""What a rollout needs besides its task and its engine."""

from __future__ import annotations

from dataclasses import dataclass

from envace.config import RewardParams, RolloutParams
from envace.engines.protocol import Environment
from envace.rewards.protocol import RubricJudge


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """`seed` is any label; with the task and the rollout's index it fixes every draw.

    `reward` None: nothing is scored, for tasks that carry nothing to score by (test-time rehearsal).
    `environment` set: its answers replace the rehearse role's. `judge` decides checklists (method, section 3).
    """

    rollout: RolloutParams
    reward: RewardParams | None
    seed: int | str
    environment: Environment | None = None
    judge: RubricJudge | None = None
