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
    """Advantages (B, T) and returns (B, T), the same on every token of an output (method, section 4).

    In a row of several outputs each is scaled by (tokens trained in the row / tokens of the output): the clipped
    objective is proportional to the advantage, so verl's mean over the row's tokens, times the row's outputs over all
    outputs, becomes the mean over each output. Rows that do not count get 0. What a loss is divided by is the
    trainer's part (envace.training.trainer).
    """
    batch = current_labels()
    if batch is None or len(batch.rows) != len(index):
        raise TrainingError(f"the {ESTIMATOR} estimator needs row labels: set trainer.v1.trainer_mode to envace_sync")
    of = torch.tensor([i for i, row in enumerate(batch.rows) for _ in row.spans])  # the row of each output
    outputs = batch.outputs
    scalar = role_wise_advantages(
        token_level_rewards.sum(-1)[of],
        [str(index[i]) for i in of],
        [span.role for _, span in outputs],
        [row.rollout for row, _ in outputs],
        torch.tensor([row.counts for row, _ in outputs]),
        baseline=batch.advantage.baseline,
        weighting=batch.advantage.weighting,
        normalize_std=batch.advantage.normalize_std,
        std_floor=batch.advantage.std_floor,
    )
    batch.scalar_advantages = scalar.tolist()
    advantages = torch.zeros_like(response_mask, dtype=scalar.dtype)
    for i, (_, span), value in zip(of.tolist(), outputs, scalar, strict=True):
        own = response_mask[i, span.begin : span.end].sum()
        if own:  # the loss takes the mean over a row's tokens: scaled so that it is the mean over each output's
            advantages[i, span.begin : span.end] = value * (response_mask[i].sum() / own)
    advantages = advantages * response_mask
    return advantages, advantages
