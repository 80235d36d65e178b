"""Role-wise GRPO advantages: each role is compared with its own baseline inside a group (method, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch


def role_wise_advantages(
    rewards: torch.Tensor,
    groups: Sequence[str],
    roles: Sequence[str],
    rollouts: Sequence[str],
    scorable: torch.Tensor,
    *,
    weighting: Literal["output", "rollout"] = "output",
    normalize_std: bool = False,
    std_floor: float = 1e-3,
) -> torch.Tensor:
    """One advantage for each output: its reward minus the mean reward of its (group, role).

    Args:
        rewards: float tensor (N,), the reward of the rollout that each output belongs to. Ignored where not scorable;
            one that is no finite number counts as not scorable.
        groups, roles, rollouts: N labels each: the task's group, the role, and the rollout of each output.
        scorable: bool tensor (N,). Outputs that are not scorable enter no baseline and get 0.
        weighting: "output" counts every output once, so a rollout with more outputs of a role weighs more (the paper);
            "rollout" counts every rollout once in each role.
        normalize_std: divide by the (group, role) standard deviation, not below `std_floor`.

    Returns:
        Tensor (N,). 0 where a (group, role) has a single output, equal rewards, or nothing scorable.
    """
    if not len(rewards) == len(groups) == len(roles) == len(rollouts) == len(scorable):
        raise ValueError("rewards, groups, roles, rollouts and scorable must have equal lengths")
    if len(rewards) == 0:
        return rewards.clone()
    cell = _codes(list(zip(groups, roles, strict=True)))
    member = _codes(list(zip(groups, roles, rollouts, strict=True)))
    keep = scorable.to(torch.bool) & torch.isfinite(rewards)
    value = torch.where(keep, rewards, torch.zeros_like(rewards)).to(torch.float64)
    weight = keep.to(torch.float64)
    if weighting == "rollout":
        weight = weight / _sum_by(weight, member).clamp(min=1)[member]
    total = _sum_by(weight, cell).clamp(min=torch.finfo(torch.float64).tiny)
    mean = (_sum_by(weight * value, cell) / total)[cell]
    centred = torch.where(keep, value - mean, torch.zeros_like(value))
    # Equal rewards must give exactly 0, not the rounding residue of their mean: a small std would blow it up.
    centred = torch.where(_spread(value, keep, cell)[cell] > 0, centred, torch.zeros_like(centred))
    if normalize_std:
        variance = _sum_by(weight * centred**2, cell) / total
        centred = centred / variance.sqrt().clamp(min=std_floor)[cell]
    return centred.to(rewards.dtype)


def _codes(labels: list[tuple[str, ...]]) -> torch.Tensor:
    seen: dict[tuple[str, ...], int] = {}
    return torch.tensor([seen.setdefault(label, len(seen)) for label in labels])


def _sum_by(values: torch.Tensor, code: torch.Tensor) -> torch.Tensor:
    return torch.zeros(int(code.max()) + 1, dtype=values.dtype).index_add_(0, code, values)


def _spread(value: torch.Tensor, keep: torch.Tensor, code: torch.Tensor) -> torch.Tensor:
    size = int(code.max()) + 1
    low = torch.full((size,), torch.inf, dtype=value.dtype).scatter_reduce(0, code[keep], value[keep], "amin")
    high = torch.full((size,), -torch.inf, dtype=value.dtype).scatter_reduce(0, code[keep], value[keep], "amax")
    return high - low
