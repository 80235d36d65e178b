"""A policy folder evaluated as the stage does it: figures by split, rows behind them, the same each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.data.canonical import to_task
from envace.data.sample import build_world, generate_conversations, to_raw_record
from envace.evaluation.evaluate import Evaluation, evaluate_policy
from envace.training.base_model.build import save_policy
from envace.types import Rollout, StopReason, Task


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    """A few held-out and hard tasks, one of them too long for the policy, one without world and outcome."""
    world = build_world(0)
    made = [
        to_task(to_raw_record(world, c), split, [], "")
        for split in ("heldout", "hard")
        for c in generate_conversations(world, 4, 0, split)  # type: ignore[arg-type]
    ]
    long = made[0].turns[0].model_copy(update={"user_message": "word " * 2000})
    made[0] = made[0].model_copy(update={"turns": [long, *made[0].turns[1:]]})
    made[1] = made[1].model_copy(update={"outcome": None, "world": None})
    return made


@pytest.fixture(scope="module")
def evaluated(
    tasks: list[Task], params: Params, random_model: Callable[..., Any], tokenizer: Any, tmp_path_factory: Any
) -> list[Evaluation]:
    """The same random policy evaluated twice."""
    folder: Path = tmp_path_factory.mktemp("evaluated") / "policy"
    save_policy(random_model(), tokenizer, folder)
    small = params.rollout.model_copy(update={"max_act_tokens": 12, "max_rehearse_tokens": 12})
    return [
        evaluate_policy(
            "base", folder, tasks=tasks, evaluation=params.evaluate_policy, rollout=small, reward=params.reward
        )
        for _ in range(2)
    ]


def test_an_evaluation_is_the_same_each_time(evaluated: list[Evaluation]) -> None:
    assert evaluated[0] == evaluated[1]


def test_figures_count_what_was_used(evaluated: list[Evaluation], tasks: list[Task], params: Params) -> None:
    repeats = params.evaluate_policy.repeats
    metrics = evaluated[0].metrics
    assert set(metrics) == {"heldout", "hard"}
    assert metrics["heldout"]["true"]["rollouts"] == 3 * repeats  # the one without outcome is left out
    assert metrics["hard"]["true"]["rollouts"] == metrics["hard"]["rehearsed"]["rollouts"] == 4 * repeats
    recorded = sum(len(s.tool_calls) for t in tasks for u in t.turns for s in u.reference_steps)
    fidelity = [metrics[split]["fidelity"] for split in ("heldout", "hard")]
    assert sum(f["count"] + f["too_long"] for f in fidelity) == recorded


def test_a_task_that_does_not_fit_is_scored_and_ends_nothing(evaluated: list[Evaluation], tasks: list[Task]) -> None:
    long = [row for row in evaluated[0].rows if row["task_id"] == tasks[0].task_id]
    assert long and {(row["stop_reason"], row["reward"]) for row in long} == {("context_overflow", 0.0)}


def test_rewards_of_the_rows_give_the_figures(evaluated: list[Evaluation]) -> None:
    for split, parts in evaluated[0].metrics.items():
        for environment in ("true", "rehearsed"):
            rows = [r for r in evaluated[0].rows if (r["split"], r["environment"]) == (split, environment)]
            assert len(rows) == parts[environment]["rollouts"]
            by_task: dict[str, list[float]] = {}
            for row in rows:
                by_task.setdefault(row["task_id"], []).append(row["reward"])
            means = [sum(v) / len(v) for v in by_task.values()]
            assert parts[environment]["reward"] == pytest.approx(sum(means) / len(means), abs=1e-6)


def test_the_reference_of_every_sample_task_unfolds_to_reward_1(
    sample_tasks: list[Task], make_rollout: Callable[[Task], Rollout]
) -> None:
    for task in sample_tasks[:100]:
        rollout = make_rollout(task)
        assert (rollout.stop_reason, rollout.reward, rollout.success) == (StopReason.COMPLETED, 1.0, True), task.task_id
