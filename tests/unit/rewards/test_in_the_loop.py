"""Rollouts scored by their checklist: right ones get 1, and a judge that is down never makes a 0."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from envace.chat.layout import ChatLayout, render_calls
from envace.config import Params
from envace.engines.scripted import ScriptedEngine
from envace.errors import EndpointError
from envace.rewards.health import unknown_fraction
from envace.rewards.llm_judge import LlmJudge
from envace.rewards.protocol import RubricJudge
from envace.rewards.rule_judge import RuleJudge
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Rollout, StopReason, Task
from tests.unit.rewards.fakes import FakeClient, judge_params, key_of

ROOMY = {"max_prompt_tokens": 1500, "max_act_tokens": 400, "max_rehearse_tokens": 200, "max_outputs": 30}
Unfold = Callable[..., list[Rollout]]


def reference_script(task: Task) -> list[str]:
    """What the policy writes to do exactly what the reference did, results included."""
    texts: list[str] = []
    for reference in (step for turn in task.turns for step in turn.reference_steps):
        texts.append(render_calls(reference.tool_calls) if reference.tool_calls else reference.reply)
        texts += [result.content for result in reference.tool_results]
    return texts


@pytest.fixture
def unfolded(layout: ChatLayout, params: Params) -> Unfold:
    """Unfolds tasks side by side, each by its script, scored by its checklist."""
    reward = params.reward.model_copy(update={"kind": "checklist"})
    rollout = params.rollout.model_copy(update=ROOMY)

    def run(tasks: list[Task], judge: RubricJudge, scripts: list[list[str]] | None = None) -> list[Rollout]:
        async def all_of_them() -> list[Rollout]:
            settings = RolloutSettings(rollout, reward, 0, judge=judge)
            written = scripts or [reference_script(task) for task in tasks]
            engines = [ScriptedEngine(layout, script) for script in written]
            jobs = zip(tasks, engines, strict=True)
            return await asyncio.gather(
                *(unfold(t, k, engine=e, layout=layout, settings=settings) for k, (t, e) in enumerate(jobs))
            )

        return asyncio.run(all_of_them())

    return run


def test_doing_what_the_reference_did_scores_1_by_the_checklist(unfolded: Unfold, sample_tasks: list[Task]) -> None:
    for made in unfolded(sample_tasks[:60], RuleJudge()):
        assert (made.stop_reason, made.success) == (StopReason.COMPLETED, True)
        assert made.reward == pytest.approx(1.0)
        assert unknown_fraction(t.verdicts for t in made.turns) == 0


def test_a_missed_gate_ends_the_rollout_and_later_turns_count_0(unfolded: Unfold, sample_tasks: list[Task]) -> None:
    tasks = [t for t in sample_tasks if len(t.turns) == 2 and t.turns[0].reference_steps[0].tool_calls][:5]
    for made in unfolded(tasks, RuleJudge(), [["I do not know."]] * len(tasks)):
        assert (made.stop_reason, made.reward, len(made.turns)) == (StopReason.GATE_FAILED, 0.0, 1)


def judge_failing_for(params: Params, failing: Callable[[str], bool]) -> LlmJudge:
    def answer(prompt: str, schema: dict[str, Any]) -> str | BaseException:
        return EndpointError("status 503") if failing(prompt) else json.dumps({key_of(schema): True})

    return LlmJudge(FakeClient(answer), judge_params(params))


def test_a_judge_that_is_down_leaves_every_rollout_without_a_reward(
    unfolded: Unfold, sample_tasks: list[Task], params: Params
) -> None:
    made = unfolded(sample_tasks[:20], judge_failing_for(params, lambda prompt: True))
    assert {r.reward for r in made} == {None}
    assert {r.stop_reason for r in made} <= {StopReason.JUDGE_UNAVAILABLE, StopReason.COMPLETED}
    assert unknown_fraction(t.verdicts for r in made for t in r.turns) == 1.0
    assert not any(r.success for r in made)


def test_a_judge_that_fails_for_some_leaves_the_others_as_they_are(
    unfolded: Unfold, sample_tasks: list[Task], params: Params
) -> None:
    tasks = sample_tasks[:40]
    hit = tasks[0].turns[0].user_message
    judge = judge_failing_for(params, lambda prompt: json.dumps(hit, ensure_ascii=False) in prompt)
    affected = [any(turn.user_message == hit for turn in task.turns) for task in tasks]
    made = unfolded(tasks, judge)
    assert 0 < sum(affected) < len(tasks)
    assert [r.reward is None for r in made] == affected
    assert all(r.reward == pytest.approx(1.0) for r in made if r.reward is not None)
    assert judge.health.metrics()["judge/unknown_fraction"] == unknown_fraction(
        t.verdicts for r in made for t in r.turns
    )
