"""Role-wise GRPO advantages: each role is compared with its own baseline inside a group (method, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

Labels = Sequence[str] | torch.Tensor


def role_wise_advantages(
    rewards: torch.Tensor,
    groups: Labels,
    roles: Labels,
    rollouts: Labels,
    scorable: torch.Tensor,
    *,
    baseline: Literal["role", "shared"] = "role",
    weighting: Literal["output", "rollout"] = "output",
    normalize_std: bool = False,
    std_floor: float = 1e-3,
) -> torch.Tensor:
    """One advantage for each output: its reward minus the mean reward of its (group, role).

    Args:
        rewards: float tensor (N,), the reward of the rollout that each output belongs to. Ignored where not scorable;
            one that is no finite number counts as not scorable.
        groups, roles, rollouts: N labels each: the task's group, the role, and the rollout of each output. Strings, or
            an integer tensor (N,).
        scorable: bool tensor (N,). Outputs that are not scorable enter no baseline and get 0.
        baseline: "role" compares an output with those of its (group, role), which is the method; "shared" with all of
            its group whatever their role (plain GRPO over both), to compare the method with.
        weighting: "output" counts every output once, so a rollout with more outputs of a role weighs more (the paper);
            "rollout" counts every rollout once in each role.
        normalize_std: divide by the standard deviation of what it is compared with, not below `std_floor`.

    Returns:
        Tensor (N,). 0 where a (group, role) has a single output, equal rewards, or nothing scorable.
    """
    if not len(rewards) == len(groups) == len(roles) == len(rollouts) == len(scorable):
        raise ValueError("rewards, groups, roles, rollouts and scorable must have equal lengths")
    if not rewards.is_floating_point():
        raise ValueError(f"rewards must be a float tensor, not {rewards.dtype}")
    if baseline not in ("role", "shared"):
        raise ValueError(f"baseline must be 'role' or 'shared', not {baseline!r}")
    if weighting not in ("output", "rollout"):
        raise ValueError(f"weighting must be 'output' or 'rollout', not {weighting!r}")
    advantages = torch.zeros_like(rewards)
    kept = (scorable.to(torch.bool) & torch.isfinite(rewards)).nonzero()[:, 0]
    if len(kept) == 0:
        return advantages
    value = rewards[kept].to(torch.float64)
    group = _codes(groups)
    cell = (group if baseline == "shared" else _pairs(group, _codes(roles)))[kept]
    weight = torch.ones_like(value)
    if weighting == "rollout":
        member = _pairs(cell, _codes(rollouts)[kept])
        weight = 1 / _sum_by(weight, member)[member]
    total = _sum_by(weight, cell).clamp(min=torch.finfo(torch.float64).tiny)  # of a code that no row has: 0
    mean = _sum_by(weight * value, cell) / total
    # Equal rewards must give exactly 0, not the rounding residue of their mean: a small std would blow it up.
    one = torch.zeros_like(mean).index_copy_(0, cell, value)  # some reward of each cell
    varies = _sum_by((value != one[cell]).to(torch.float64), cell) > 0
    centred = value - torch.where(varies, mean, one)[cell]
    if normalize_std:
        variance = _sum_by(weight * centred**2, cell) / total
        centred = centred / variance.sqrt().clamp(min=std_floor)[cell]
    advantages[kept] = centred.to(rewards.dtype)
    return advantages


def _codes(labels: Labels) -> torch.Tensor:
    """Labels as integers from 0, equal for equal labels."""
    if isinstance(labels, torch.Tensor):
        low, high = int(labels.min()), int(labels.max())
        # far apart, a difference could overflow
        return labels.long() - low if high - low < 4 * len(labels) else labels.unique(return_inverse=True)[1]
    code = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return torch.tensor([code[label] for label in labels])


def _pairs(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Codes of pairs of codes."""
    return _compact(first * (int(second.max()) + 1) + second)


def _compact(code: torch.Tensor) -> torch.Tensor:
    """Codes that need a table little longer than themselves. Sorting is slow, so what is dense enough stays."""
    return code if int(code.max()) < 4 * len(code) else code.unique(return_inverse=True)[1]


def _sum_by(values: torch.Tensor, code: torch.Tensor) -> torch.Tensor:
    return torch.zeros(int(code.max()) + 1, dtype=values.dtype).index_add_(0, code, values)
