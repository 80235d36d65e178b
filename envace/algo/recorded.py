"""Role-wise advantages of recorded rollouts: what the trainer computed for a group, from its rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

ROLES = ("act", "rehearse")


@dataclass(frozen=True, slots=True)
class RoleFigures:
    """One role in one rollout: how many outputs it has, what it is compared with, and the advantage of each of them.

    `baseline` is None where the rollout has no output of the role or is not scorable; its advantage is then 0.
    """

    outputs: int
    baseline: float | None
    advantage: float


def group_figures(
    rows: Sequence[Mapping[str, Any]],
    *,
    baseline: Literal["role", "shared"] = "role",
    weighting: Literal["output", "rollout"] = "output",
    normalize_std: bool = False,
    std_floor: float = 1e-3,
) -> list[dict[str, RoleFigures]]:
    """For each rollout of one group (one task, one step), the figures of each role.

    Args:
        rows: all rows of the group as `envace.rollout.records.rollout_row` makes them.
        baseline, weighting, normalize_std, std_floor: as of `envace.algo.advantage.role_wise_advantages`.
    """
    import torch

    from envace.algo.advantage import role_wise_advantages

    owners = [(index, output["role"]) for index, row in enumerate(rows) for output in row["outputs"]]
    rewards = [rows[index]["reward"] for index, _ in owners]

    def advantages(normalize: bool) -> list[float]:
        return role_wise_advantages(
            torch.tensor([0.0 if r is None else r for r in rewards], dtype=torch.float64),
            ["group"] * len(owners),
            [role for _, role in owners],
            [str(index) for index, _ in owners],
            torch.tensor([r is not None for r in rewards], dtype=torch.bool),
            baseline=baseline,
            weighting=weighting,
            normalize_std=normalize,
            std_floor=std_floor,
        ).tolist()

    found = dict(zip(owners, advantages(normalize_std), strict=True))
    centred = dict(zip(owners, advantages(False), strict=True))
    return [
        {
            role: RoleFigures(
                outputs=owners.count((index, role)),
                baseline=row["reward"] - centred[index, role]
                if row["reward"] is not None and (index, role) in centred
                else None,
                advantage=found.get((index, role), 0.0),
            )
            for role in ROLES
        }
        for index, row in enumerate(rows)
    ]
