"""The results format: one value a task, digests that tell other measurements apart, null for what was not run."""

from __future__ import annotations

from typing import Any

import pytest

from envace.config import Params
from envace.evaluation.results import FORMAT, NOT_RUN, benchmark_digest, figure, results
from envace.types import Task


def row(task: Task, reward: float | None, **labels: Any) -> dict[str, Any]:
    known = {"split": "heldout", "environment": "true", "policy": "trained", "success": reward == 1.0}
    return {"task_id": task.task_id, "reward": reward, **known, **labels}


@pytest.fixture
def tasks(sample_tasks: list[Task]) -> list[Task]:
    """Two tasks of one turn and one of two turns, held out."""
    chosen = [t for t in sample_tasks if len(t.turns) == 1][:2] + [t for t in sample_tasks if len(t.turns) == 2][:1]
    return [t.model_copy(update={"split": "heldout"}) for t in chosen]


def measured(rows: list[dict[str, Any]], tasks: list[Task], params: Params) -> dict[tuple[str, ...], dict[str, Any]]:
    how: Any = {"evaluation": params.evaluate_policy, "rollout": params.rollout, "reward": params.reward}
    found = results(rows, tasks, ["base", "trained"], **how)
    assert found["format"] == FORMAT
    return {(r["benchmark"], r["environment"], r["policy"], r["metric"]): r for r in found["results"]}


def test_a_task_counts_once_whatever_its_rollouts(tasks: list[Task], params: Params) -> None:
    one, other, long = tasks
    rows = [row(one, 1.0), row(one, 0.0), row(other, 1.0), row(long, 0.0), row(long, None)]
    groups = measured(rows, tasks, params)["heldout", "code", "trained", "reward"]["groups"]
    assert groups["all"] == {"n": 3, "mean": 0.5, "se": pytest.approx(0.288675)}
    assert groups["turns: 1"] == {"n": 2, "mean": 0.75, "se": 0.25}
    assert groups["turns: 2"] == {"n": 1, "mean": 0.0, "se": None} and groups["turns: 3 or more"] is None


def test_what_was_not_run_is_null_and_never_0(tasks: list[Task], params: Params) -> None:
    found = measured([row(tasks[0], 0.0), row(tasks[1], None, policy="base")], tasks, params)
    assert found["heldout", "code", "trained", "reward"]["groups"]["all"]["mean"] == 0.0
    unscorable = found["heldout", "code", "base", "reward"]
    assert unscorable["groups"] is None and unscorable["digest"] is None
    assert found["heldout", "rehearsed", "trained", "success"]["groups"] is None
    public = [r for r in found.values() if r["benchmark"] in NOT_RUN]
    assert len(public) == len(NOT_RUN) and {str(r["groups"]) for r in public} == {"None"}
    assert figure([]) is None


def test_the_digest_tells_other_measurements_apart(tasks: list[Task], params: Params) -> None:
    how = (params.evaluate_policy, params.rollout, params.reward)
    known = benchmark_digest(tasks, *how)
    assert benchmark_digest(tasks[::-1], *how) == known
    moved = params.reward.judge.endpoint.model_copy(update={"base_url": "http://127.0.0.1:9/v1"})
    judge = params.reward.judge.model_copy(update={"endpoint": moved})
    assert benchmark_digest(tasks, *how[:2], params.reward.model_copy(update={"judge": judge})) == known
    asked = judge.model_copy(update={"endpoint": moved.model_copy(update={"model": "another"})})
    others = [
        benchmark_digest(tasks[1:], *how),
        benchmark_digest(tasks, params.evaluate_policy.model_copy(update={"repeats": 3}), *how[1:]),
        benchmark_digest(tasks, how[0], params.rollout.model_copy(update={"max_act_tokens": 7}), how[2]),
        benchmark_digest(tasks, *how[:2], params.reward.model_copy(update={"judge": asked})),
        benchmark_digest(tasks, *how[:2], params.reward.model_copy(update={"kind": "checklist"})),
    ]
    assert len({known, *others}) == len(others) + 1
