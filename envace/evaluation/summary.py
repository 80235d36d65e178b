"""Means over rollouts, with their standard errors, and how often rehearsals were malformed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from envace.chat.parser import parse_response
from envace.types import Output, Role, Rollout


def summarise(rollouts: Sequence[Rollout]) -> dict[str, float | int | None]:
    """Reward and success over scorable rollouts; unscorable ones are counted, never averaged in.

    Standard errors are over tasks (rollouts of one task are not independent).
    """
    scored = [r for r in rollouts if r.reward is not None]
    rewards, successes = defaultdict(list), defaultdict(list)
    for rollout in scored:
        assert rollout.reward is not None
        rewards[rollout.task_id].append(rollout.reward)
        successes[rollout.task_id].append(float(rollout.success))
    rehearsals = [o for r in rollouts for o in r.outputs if o.role is Role.REHEARSE]
    reward, reward_se = _mean_and_error([fmean(v) for v in rewards.values()])
    success, success_se = _mean_and_error([fmean(v) for v in successes.values()])
    return {
        "reward": reward,
        "reward_se": reward_se,
        "success": success,
        "success_se": success_se,
        "rollouts": len(rollouts),
        "unscorable": len(rollouts) - len(scored),
        "rehearsals": len(rehearsals),
        "malformed_share": _round(fmean([is_malformed(o) for o in rehearsals])) if rehearsals else None,
        "shared_prefix_share": _shared_prefix(rehearsals),
    }


def is_malformed(output: Output) -> bool:
    """Whether a rehearsed response is no JSON object or array (a truncated one is not either)."""
    return parse_response(output.text) is None


def _shared_prefix(rehearsals: Sequence[Output]) -> float | None:
    """Share of the rehearse prompts' tokens that an engine's prefix cache has from the rollout's earlier outputs."""
    total = sum(len(o.prompt_ids) for o in rehearsals)
    return _round(sum(o.shared_tokens for o in rehearsals) / total) if total else None


def _mean_and_error(values: list[float]) -> tuple[float | None, float | None]:
    if not values:
        return None, None
    mean = fmean(values)
    if len(values) == 1:
        return _round(mean), None
    variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return _round(mean), _round(math.sqrt(variance / len(values)))


def _round(value: float) -> float:
    return round(value, 6)
