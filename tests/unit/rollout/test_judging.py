"""Judging inside the loop: at the end of each turn, gates stop, unknown verdicts never become a number by default."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.scripted import ScriptedEngine
from envace.errors import DataError
from envace.rollout.batch import unfold_all
from envace.rollout.loop import RolloutSettings, unfold
from envace.rollout.records import rollout_row
from envace.types import Criterion, Rollout, Rubric, StopReason, Task, TurnRecord, Verdict

Play = Callable[..., Rollout]
Maker = Callable[..., Task]
WEATHER = ("get_weather", {"city": "Oslo"})
SUNNY = '{"weather": "sunny"}'


class Judge:
    """Gives the verdicts that its table names, pass where it names none, and notes what it was shown."""

    def __init__(self, **verdicts: str) -> None:
        self.verdicts = {key.replace("_", "."): Verdict(value) for key, value in verdicts.items()}
        self.asked: list[tuple[list[str], list[tuple[int, str | None]]]] = []

    async def judge_turn(
        self, task: Task, criteria: Sequence[Criterion], turns: Sequence[TurnRecord]
    ) -> dict[str, Verdict]:
        await asyncio.sleep(0)
        self.asked.append(([c.criterion_id for c in criteria], [(len(t.steps), t.reply) for t in turns]))
        return {c.criterion_id: self.verdicts.get(c.criterion_id, Verdict.PASS) for c in criteria}


def criterion(turn: int, number: int, weight: float, gating: bool = False, needs: Sequence[str] = ()) -> Criterion:
    return Criterion(
        criterion_id=f"t{turn}.c{number}",
        turn_index=turn,
        target="reply",
        question="Is it so?",
        pass_condition="It is so.",
        failure_examples=[],
        evidence=[],
        prerequisite_ids=list(needs),
        weight=weight,
        source_weight=weight,
        is_gating=gating,
    )


@pytest.fixture
def judged(make_task: Maker) -> Task:
    """Three turns without an outcome, each with a gating criterion of weight 0.6 and another of 0.4."""
    task = make_task(*[("Sky?", [], [])] * 3)
    criteria = [c for t in range(3) for c in (criterion(t, 0, 0.6, gating=True), criterion(t, 1, 0.4))]
    return task.model_copy(update={"outcome": None, "rubrics": [Rubric(variant_index=0, criteria=criteria)]})


@pytest.fixture
def script(write: Callable[..., str]) -> list[str]:
    """A call, its result and a reply in each of three turns."""
    return [write(WEATHER), SUNNY, "It is sunny."] * 3


def test_all_turns_satisfied_is_reward_1_and_success(play: Play, judged: Task, script: list[str]) -> None:
    judge = Judge()
    rollout = play(judged, script, judge=judge)
    assert (rollout.stop_reason, rollout.reward, rollout.success) == (StopReason.COMPLETED, 1.0, True)
    assert [ids for ids, _ in judge.asked] == [[f"t{t}.c0", f"t{t}.c1"] for t in range(3)]
    assert [shown for _, shown in judge.asked] == [[(2, "It is sunny.")] * n for n in (1, 2, 3)]


def test_each_turn_is_judged_before_the_next_one_begins(
    judged: Task, script: list[str], layout: ChatLayout, settings_with: Callable[..., RolloutSettings]
) -> None:
    engine, seen = ScriptedEngine(layout, script), []

    class Watching(Judge):
        async def judge_turn(self, *args: Any) -> dict[str, Verdict]:
            seen.append(len(engine.requests))
            return await super().judge_turn(*args)

    asyncio.run(unfold(judged, 0, engine=engine, layout=layout, settings=settings_with(judge=Watching())))
    assert seen == [3, 6, 9]


def test_a_criterion_that_fails_costs_its_weight_in_its_turn(play: Play, judged: Task, script: list[str]) -> None:
    rollout = play(judged, script, judge=Judge(t1_c1="fail"))
    assert rollout.stop_reason is StopReason.COMPLETED and not rollout.success
    assert rollout.reward == pytest.approx((1 + 0.6 + 1) / 3)
    assert [t.score for t in rollout.turns] == [1, 0.6, 1] and [t.satisfied for t in rollout.turns] == [1, 0, 1]


def test_a_gate_that_fails_at_the_end_of_its_turn_stops_and_is_scored(
    play: Play, judged: Task, script: list[str]
) -> None:
    rollout = play(judged, script, judge=Judge(t1_c0="fail"))
    assert rollout.stop_reason is StopReason.GATE_FAILED and len(rollout.turns) == 2
    assert rollout.reward == pytest.approx((1 + 0.4 + 0) / 3) and not rollout.success


def test_a_gate_of_the_last_turn_is_no_success_either(play: Play, judged: Task, script: list[str]) -> None:
    rollout = play(judged, script, judge=Judge(t2_c0="fail"))
    assert rollout.stop_reason is StopReason.GATE_FAILED and rollout.reward == pytest.approx((1 + 1 + 0.4) / 3)


def test_an_unknown_gate_stops_without_a_reward(play: Play, judged: Task, script: list[str]) -> None:
    rollout = play(judged, script, judge=Judge(t1_c0="unknown"))
    assert rollout.stop_reason is StopReason.JUDGE_UNAVAILABLE and not rollout.stop_reason.scorable
    assert rollout.reward is None and not rollout.success and len(rollout.turns) == 2


def test_an_unknown_that_could_change_the_reward_leaves_none_and_never_zero(
    play: Play, judged: Task, script: list[str]
) -> None:
    rollout = play(judged, script, judge=Judge(t0_c1="unknown"))
    assert rollout.stop_reason is StopReason.COMPLETED and len(rollout.turns) == 3
    assert rollout.reward is None and not rollout.success


@pytest.mark.parametrize(("dependencies", "reward"), [("gate", (0.4 + 1 + 1) / 3), ("ignore", None)])
def test_an_unknown_that_cannot_change_the_reward_counts_as_not_satisfied(
    play: Play, judged: Task, script: list[str], dependencies: str, reward: float | None
) -> None:
    own = [criterion(0, 0, 0.4), criterion(0, 1, 0.3), criterion(0, 2, 0.3, needs=["t0.c1"])]
    others = [c for c in judged.rubrics[0].criteria if c.turn_index > 0]
    task = judged.model_copy(update={"rubrics": [Rubric(variant_index=0, criteria=own + others)]})
    judge = Judge(t0_c1="fail", t0_c2="unknown")
    rollout = play(task, script, judge=judge, reward={"dependencies": dependencies})
    assert rollout.reward == (None if reward is None else pytest.approx(reward))


def test_a_turn_that_the_policy_broke_off_is_judged_by_what_it_did(
    play: Play, judged: Task, script: list[str], write: Callable[..., str]
) -> None:
    judge = Judge(t1_c1="fail")
    rollout = play(judged, [*script[:3], write(WEATHER), "no JSON"], judge=judge)
    assert rollout.stop_reason is StopReason.INVALID_REHEARSAL
    assert judge.asked[-1] == (["t1.c0", "t1.c1"], [(2, "It is sunny."), (1, None)])
    assert rollout.reward == pytest.approx((1 + 0.6 + 0) / 3)


def test_a_gate_cannot_stop_what_has_stopped(play: Play, judged: Task, script: list[str]) -> None:
    rollout = play(judged, [*script[:3], "<think>"] * 1, judge=Judge(t1_c0="fail"), max_invalid_calls=1)
    assert rollout.stop_reason is StopReason.INVALID_CALL and rollout.reward == pytest.approx((1 + 0.4) / 3)


def test_an_infrastructure_failure_is_not_judged(play: Play, judged: Task, script: list[str]) -> None:
    judge = Judge()
    rollout = play(judged, script[:4], judge=judge)
    assert rollout.stop_reason is StopReason.ENGINE_FAILURE and rollout.reward is None and len(judge.asked) == 1


def test_a_judge_that_breaks_ends_only_its_rollout_without_a_reward(
    play: Play, judged: Task, script: list[str]
) -> None:
    class Broken(Judge):
        async def judge_turn(self, *args: Any) -> dict[str, Verdict]:
            raise ZeroDivisionError("odd")

    rollout = play(judged, script, judge=Broken())
    assert rollout.stop_reason is StopReason.ENGINE_FAILURE and rollout.reward is None and "odd" in rollout.error


def test_the_kind_of_reward_is_what_the_task_carries(
    play: Play, judged: Task, make_task: Maker, script: list[str]
) -> None:
    outcome = make_task(*[("Sky?", [], [])] * 3).outcome
    both, judge = judged.model_copy(update={"outcome": outcome}), Judge()
    assert play(both, script, judge=judge).reward is not None and judge.asked == []
    assert play(both, script, judge=judge, reward={"kind": "checklist"}).reward == 1.0 and len(judge.asked) == 3


def test_a_task_that_cannot_be_scored_is_refused_before_anything_is_sampled(
    judged: Task, layout: ChatLayout, settings_with: Callable[..., RolloutSettings]
) -> None:
    engine = ScriptedEngine(layout, ["Hello."] * 3)

    def start(task: Task, settings: RolloutSettings) -> Any:
        return asyncio.run(
            unfold_all([judged, task], 1, engine=engine, layout=layout, settings_of=lambda _: settings, concurrency=2)
        )

    with pytest.raises(DataError, match="t0"):
        start(judged.model_copy(update={"rubrics": []}), settings_with(judge=Judge()))
    with pytest.raises(DataError, match="no judge"):
        start(judged, settings_with())
    assert engine.requests == []
    assert [r.reward for r in start(judged, settings_with(reward=None))] == [None, None]  # scoring is off


def test_verdicts_are_kept_in_the_rows(play: Play, judged: Task, script: list[str]) -> None:
    import json

    rollout = play(judged, script, judge=Judge(t1_c1="fail", t0_c1="unknown"))
    turns = json.loads(rollout_row(rollout)["turns"])
    assert [t["verdicts"] for t in turns[:2]] == [
        {"t0.c0": "pass", "t0.c1": "unknown"},
        {"t1.c0": "pass", "t1.c1": "fail"},
    ]
    assert [s["reply"] for s in turns[0]["steps"]] == ["", "It is sunny."]
    assert turns[0]["steps"][0]["calls"][0]["name"] == "get_weather"
