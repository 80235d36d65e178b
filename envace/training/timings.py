"""Where the time of a training step goes. Durations differ from run to run, so no stage depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from envace.files import write_json

PARTS = ("generation", "judging", "update", "sync", "checkpoint", "waiting")
"""generation: rollouts, both roles. judging: the share of their time that they wait for a judge. update: log-probs,
advantages, the optimizer step. sync: new weights to the rollout server. waiting: all else of the step (queues, polls).
Validation is not part of a step and stands beside it."""

_UPDATE = ("old_log_prob", "ref", "values", "adv", "update_critic", "update_actor")
JUDGE_S, ROLLOUTS_S = "rollouts/judge", "rollouts/all"
"""Seconds that the rollouts of a step waited for a judge, and took in all, summed over rollouts."""
JUDGED = "judge/"
"""Before the sums of `envace.rewards.health.JudgeWork` over a step: questions asked and found in the cache, verdicts
that needed an endpoint, and the seconds of those verdicts."""


def step_split(timings: Mapping[str, float], metrics: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of a step by part, of the whole step and of the validation after it, and its tokens a second.

    `timings` are verl's, and the two sums above where they were recorded: rollouts run side by side, so the wall time
    of the rollouts is divided in the proportion of the sums. Tokens are those that both roles wrote, for each second
    of generation. Where a judge's endpoint was needed: its calls, cache hits and mean seconds a verdict.
    """
    inside = timings.get(ROLLOUTS_S, 0.0)
    judged = min(1.0, timings.get(JUDGE_S, 0.0) / inside) if inside > 0 else 0.0
    rollouts = timings.get("gen", 0.0)
    parts = {
        "generation": rollouts * (1 - judged),
        "judging": rollouts * judged + timings.get("reward", 0.0),
        "update": sum(timings.get(name, 0.0) for name in _UPDATE),
        "sync": timings.get("update_weights", 0.0),
        "checkpoint": timings.get("save_checkpoint", 0.0),
    }
    whole = timings.get("step", 0.0)
    parts["waiting"] = max(0.0, whole - sum(parts.values()))
    tokens = written_tokens(metrics)
    speed = tokens / parts["generation"] if parts["generation"] > 0 else 0.0
    figures = {**parts, "whole": whole, "validation": timings.get("testing", 0.0), "tokens_per_s": speed}
    return {name: round(value, 3) for name, value in (figures | _judged(timings)).items()}


def _judged(timings: Mapping[str, float]) -> dict[str, float]:
    waited = timings.get(f"{JUDGED}waited", 0.0)
    if not waited:
        return {}
    calls, cached = (timings.get(JUDGED + name, 0.0) for name in ("asked", "cached"))
    return {"judge_calls": calls, "judge_cached": cached, "verdict_s": timings.get(f"{JUDGED}seconds", 0.0) / waited}


def written_tokens(metrics: Mapping[str, Any]) -> float:
    """Tokens that both roles wrote in a step."""
    return sum(metrics.get(f"{r}/outputs", 0) * metrics.get(f"{r}/tokens_mean", 0) for r in ("act", "rehearse"))


def write_timings(target: Path, splits: Mapping[int, Mapping[str, float]], model_sha256: str) -> None:
    """Write the steps and their mean, with the hash of the policy that they belong to."""
    steps = [{"step": step, **split} for step, split in sorted(splits.items())]
    names = dict.fromkeys(name for split in splits.values() for name in split)
    mean = {name: round(fmean(split[name] for split in splits.values() if name in split), 3) for name in names}
    write_json(target, {"model_sha256": model_sha256, "unit": "s", "mean": mean, "steps": steps})
