"""Role-wise GRPO as one of verl's advantage estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from verl.trainer.ppo.core_algos import register_adv_est

from envace.algo.advantage import role_wise_advantages
from envace.errors import TrainingError
from envace.training.labels import current_labels

ESTIMATOR = "role_wise_grpo"


@register_adv_est(ESTIMATOR)
def role_wise_grpo(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: np.ndarray,
    config: Any = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages (B, T) and returns (B, T), the same on every token of a row (method, section 4).

    Rows that do not count get 0. What a loss is divided by is the trainer's part (envace.training.trainer).
    """
    batch = current_labels()
    if batch is None or len(batch.rows) != len(index):
        raise TrainingError(f"the {ESTIMATOR} estimator needs row labels: set trainer.v1.trainer_mode to envace_sync")
    counts = torch.tensor([row.counts for row in batch.rows])
    scalar = role_wise_advantages(
        token_level_rewards.sum(-1),
        [str(uid) for uid in index],
        [row.role for row in batch.rows],
        [row.rollout for row in batch.rows],
        counts,
        weighting=batch.advantage.weighting,
        normalize_std=batch.advantage.normalize_std,
        std_floor=batch.advantage.std_floor,
    )
    batch.scalar_advantages = scalar.tolist()
    advantages = scalar[:, None] * response_mask
    return advantages, advantages
