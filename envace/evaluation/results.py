"""The results format that every benchmark shares: what was measured, on what, and null for what was not run.

reports/evaluation/results.json holds one object:

    {"format": 1, "results": [{
        "benchmark": "heldout",            what was run: a split of this project, or a benchmark by its name
        "environment": "code",             who answered the calls: code | rehearsed | recorded | a harness's own name
        "policy": "trained",
        "metric": "reward",
        "digest": "<hex SHA-256>",         of the tasks and of how they were run: other digests cannot be compared
        "groups": {"all": {"n": 120, "mean": 0.8, "se": 0.02}, "turns: 1": {...}, "turns: 3 or more": null}
    }, ...]}

`n` counts tasks, `mean` is over tasks, `se` its standard error (null for one task). A group of null was not run or had
nothing to score; `"groups": null` says so of a whole benchmark, whose digest is then null too. No 0 in their place.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, variance
from typing import Any

from envace.config import EvaluatePolicyParams, RewardParams, RolloutParams
from envace.files import canonical_json, sha256_text
from envace.types import Task

FORMAT = 1
NOT_RUN = ("BFCL v4", "τ²-bench", "VitaBench", "FinMCP-Bench")
"""Public benchmarks: no stage of the pipeline runs them, which the results state instead of leaving them out."""

_ENVIRONMENTS = {"true": "code", "rehearsed": "rehearsed"}
_METRICS = ("reward", "success")
_TURNS = ("turns: 1", "turns: 2", "turns: 3 or more")


def results(
    rows: Iterable[Mapping[str, Any]],
    tasks: Sequence[Task],
    policies: Sequence[str],
    *,
    evaluation: EvaluatePolicyParams,
    rollout: RolloutParams,
    reward: RewardParams,
) -> dict[str, Any]:
    """The whole file, from rows of `rollout_row` with the labels policy, split and environment."""
    turns = {task.task_id: _TURNS[min(len(task.turns), len(_TURNS)) - 1] for task in tasks}
    measured: dict[tuple[str, str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["reward"] is not None:
            for metric in _METRICS:
                key = (row["split"], row["environment"], row["policy"], metric)
                measured[key][row["task_id"]].append(float(row[metric]))
    found = []
    for split in sorted({task.split for task in tasks}):
        digest = benchmark_digest([t for t in tasks if t.split == split], evaluation, rollout, reward)
        for environment in _ENVIRONMENTS:
            for policy in policies:
                for metric in _METRICS:
                    by_task = measured.get((split, environment, policy, metric))
                    groups = _groups(by_task, turns) if by_task else None
                    where = _ENVIRONMENTS[environment]
                    found.append(_result(split, where, policy, metric, digest if groups else None, groups))
    found += [_result(name, None, "trained", None, None, None) for name in NOT_RUN]
    return {"format": FORMAT, "results": found}


def benchmark_digest(
    tasks: Iterable[Task], evaluation: EvaluatePolicyParams, rollout: RolloutParams, reward: RewardParams
) -> str:
    """Hex SHA-256 of what decides a result besides the policy: tasks by content, sampling, limits, reward, judge.

    The address of a judge is left out, its model is not: the same judge may be served elsewhere.
    """
    how_scored = reward.model_dump(mode="json")
    how_scored["judge"]["endpoint"] = {"model": reward.judge.endpoint.model}
    parts = {
        "tasks": sorted(task.content_sha256 for task in tasks),
        "evaluation": evaluation.model_dump(mode="json"),
        "rollout": rollout.model_dump(mode="json", exclude={"act", "rehearse"}),
        "reward": how_scored,
    }
    return sha256_text(canonical_json(parts))


def figure(values: Sequence[float]) -> dict[str, float | int | None] | None:
    """`{n, mean, se}` of one value a task; None for nothing measured."""
    if not values:
        return None
    error = math.sqrt(variance(values) / len(values)) if len(values) > 1 else None
    return {"n": len(values), "mean": round(fmean(values), 6), "se": None if error is None else round(error, 6)}


def _groups(by_task: Mapping[str, list[float]], turns: Mapping[str, str]) -> dict[str, Any]:
    means = {task: fmean(values) for task, values in by_task.items()}
    parts = {name: figure([mean for task, mean in means.items() if turns[task] == name]) for name in _TURNS}
    return {"all": figure(list(means.values())), **parts}


def _result(
    benchmark: str,
    environment: str | None,
    policy: str,
    metric: str | None,
    digest: str | None,
    groups: dict[str, Any] | None,
) -> dict[str, Any]:
    return {
        "benchmark": benchmark,
        "environment": environment,
        "policy": policy,
        "metric": metric,
        "digest": digest,
        "groups": groups,
    }
