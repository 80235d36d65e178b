"""The promotion gate: every way in which it must refuse, and that it says why."""

from __future__ import annotations

from typing import Any

import pytest

from envace.config import RegisterModelParams
from envace.errors import TrackingError
from envace.tracking.gate import floors, heldout, refusal, rewards_by_benchmark

PARAMS = RegisterModelParams(experiment="e", model_name="m", reward_margin=0.08, success_margin=0.2)


def evaluated(base: tuple[Any, Any], trained: tuple[Any, Any]) -> dict[str, Any]:
    made = {"base": base, "trained": trained}
    return {"policies": {p: {"heldout": {"true": {"reward": r, "success": s}}} for p, (r, s) in made.items()}}


HERE = {"benchmark_sha256": "digest"}
CHAMPION = {**HERE, "heldout_reward": "0.8"}


def decided(base: tuple[Any, Any], trained: tuple[Any, Any], champion: dict[str, str] | None = None) -> str | None:
    evaluation = evaluated(base, trained)
    reward = heldout(evaluation, "trained", "reward")
    mine = rewards_by_benchmark({**HERE, "heldout_reward": repr(reward)})
    best = rewards_by_benchmark(champion) if champion is not None else None
    return refusal(floors(evaluation, PARAMS), mine, best)


def test_the_first_good_one_passes_and_so_does_one_that_beats_the_champion() -> None:
    assert decided((0.7, 0.1), (0.78, 0.3)) is None
    assert decided((0.7, 0.1), (0.81, 0.3), CHAMPION) is None


@pytest.mark.parametrize(
    ("trained", "champion", "said"),
    [
        ((0.77, 0.5), None, "held-out reward gained +0.070, at least +0.080 is required"),
        ((0.9, 0.29), None, "held-out success gained +0.190, at least +0.200 is required"),
        ((None, 0.9), None, "held-out reward was not measured"),
        ((float("nan"), 0.9), None, "held-out reward gained +nan"),
        ((0.79, 0.5), CHAMPION, "held-out reward 0.79 does not beat the champion's 0.8"),
        ((0.8, 0.5), CHAMPION, "held-out reward 0.8 does not beat the champion's 0.8"),
        ((0.9, 0.5), {**CHAMPION, "benchmark_sha256": "other"}, "another benchmark"),
        ((0.9, 0.5), {"benchmark_sha256": "digest"}, "is not recorded"),
        ((0.9, 0.5), {**CHAMPION, "heldout_reward": "nan"}, "is not recorded"),
        ((0.9, 0.5), {**CHAMPION, "evaluated_benchmark_sha256": "digest", "evaluated_reward": "0.95"}, "0.95"),
    ],
)
def test_a_gate_that_should_refuse_refuses_and_says_why(
    trained: tuple[Any, Any], champion: dict[str, str] | None, said: str
) -> None:
    reason = decided((0.7, 0.1), trained, champion)
    assert reason is not None and said in reason


def test_a_champion_that_was_evaluated_later_on_this_benchmark_can_be_compared() -> None:
    moved = {"benchmark_sha256": "old", "heldout_reward": "0.99"}
    assert "another benchmark" in (decided((0.7, 0.1), (0.9, 0.5), moved) or "")
    later = {**moved, "evaluated_benchmark_sha256": "digest", "evaluated_reward": "0.85"}
    assert decided((0.7, 0.1), (0.9, 0.5), later) is None


def test_all_missed_floors_are_told() -> None:
    assert (decided((0.7, 0.1), (0.7, 0.1)) or "").count("is required") == 2


@pytest.mark.parametrize(
    "path", ["policies", "policies.base", "policies.trained.heldout", "policies.base.heldout.true"]
)
def test_a_part_that_is_missing_is_named(path: str) -> None:
    evaluation = evaluated((0.7, 0.1), (0.9, 0.5))
    *parents, last = path.split(".")
    here = evaluation
    for key in parents:
        here = here[key]
    del here[last]
    with pytest.raises(TrackingError, match=path.replace(".", r"\.")):
        floors(evaluation, PARAMS)


def test_tasks_without_a_world_are_not_measured() -> None:
    evaluation = evaluated((0.7, 0.1), (0.9, 0.5))
    evaluation["policies"]["trained"]["heldout"]["true"] = None
    assert [f.gained for f in floors(evaluation, PARAMS)] == [None, None]
