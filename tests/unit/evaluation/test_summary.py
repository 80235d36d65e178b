"""Means over rollouts: what cannot be scored is counted and never averaged in; margins without a figure are None."""

from __future__ import annotations

import math
from typing import Any

import pytest

from envace.evaluation.margins import margins
from envace.evaluation.summary import is_malformed, summarise
from envace.types import Output, Role, Rollout, StopReason


def rollout(task: str, reward: float | None, *, success: bool = False, responses: tuple[str, ...] = ()) -> Rollout:
    outputs = [Output(Role.ACT, 0, [1], [2], [0.0], "Hello.")]
    outputs += [Output(Role.REHEARSE, 0, [1], [2], [0.0], text) for text in responses]
    reason = StopReason.COMPLETED if reward is not None else StopReason.ENGINE_FAILURE
    return Rollout(task, 0, outputs, [], reason, reward, success)


def test_unscorable_rollouts_are_counted_and_not_averaged() -> None:
    figures = summarise([rollout("a", 1.0, success=True), rollout("a", None), rollout("b", 0.5), rollout("c", None)])
    assert figures["reward"] == 0.75 and figures["success"] == 0.5
    assert figures["rollouts"] == 4 and figures["unscorable"] == 2


def test_nothing_scorable_has_no_reward_and_not_zero() -> None:
    figures = summarise([rollout("a", None), rollout("b", None)])
    assert figures["reward"] is figures["reward_se"] is figures["success"] is figures["success_se"] is None
    assert figures["unscorable"] == 2
    assert summarise([])["reward"] is None and summarise([])["malformed_share"] is None


def test_standard_errors_are_over_tasks_not_over_rollouts() -> None:
    rewards = {"a": [0.0, 0.2], "b": [1.0, 0.8], "c": [0.5, 0.5]}
    figures = summarise([rollout(t, r) for t, values in rewards.items() for r in values])
    assert figures["reward"] == pytest.approx(0.5)
    means = [0.1, 0.9, 0.5]
    expected = math.sqrt(sum((m - 0.5) ** 2 for m in means) / 2 / 3)
    assert figures["reward_se"] == pytest.approx(expected, abs=1e-6)


def test_one_task_has_no_standard_error() -> None:
    figures = summarise([rollout("a", 0.2), rollout("a", 0.6)])
    assert figures["reward"] == pytest.approx(0.4) and figures["reward_se"] is None


def test_malformed_rehearsals_are_a_share_of_rehearsals_in_all_rollouts() -> None:
    some = rollout("a", 1.0, responses=('{"a": 1}', '{"a": 1', "sunny"))
    figures = summarise([some, rollout("b", None, responses=("[]",)), rollout("c", 0.0)])
    assert figures["rehearsals"] == 4 and figures["malformed_share"] == 0.5
    assert [is_malformed(o) for o in some.outputs[1:]] == [False, True, True]


def figures(reward: float | None = 0.5, malformed: float | None = 0.1, recall: float | None = 0.2) -> dict[str, Any]:
    return {
        "true": {"reward": reward, "success": 0.1},
        "rehearsed": {"reward": 0.4, "malformed_share": malformed},
        "fidelity": {"exact": 0.7, "error_recall": recall},
    }


def test_margins_are_differences_and_a_ratio() -> None:
    trained = figures(0.75, 0.025, 0.1)
    assert margins(figures(), trained) == {
        "reward": 0.25,
        "success": 0.0,
        "rehearsed_reward": 0.0,
        "fidelity_exact": 0.0,
        "fidelity_error_recall": -0.1,
        "malformed_ratio": 0.25,
    }


@pytest.mark.parametrize("side", [0, 1])
def test_a_figure_that_is_missing_on_either_side_gives_none(side: int) -> None:
    pair = [figures(), figures()]
    pair[side] = figures(reward=None, malformed=None, recall=None)
    found = margins(*pair)
    assert found["reward"] is found["malformed_ratio"] is found["fidelity_error_recall"] is None
    assert found["success"] == found["fidelity_exact"] == 0
    pair[side] = {"true": None, "rehearsed": None}
    assert set(margins(*pair).values()) == {None}


def test_a_ratio_to_nothing_is_none() -> None:
    assert margins(figures(malformed=0.0), figures())["malformed_ratio"] is None
    assert margins(figures(), figures(malformed=0.0))["malformed_ratio"] == 0
