"""Reports about the context: limits that crashed, were eaten by one output, or were not there at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.types import Role, Rollout, StopReason, Task

Play = Callable[..., Rollout]
Maker = Callable[..., Task]
Write = Callable[..., str]
SUNNY = '{"sky": "sunny"}'


class Limited:
    """An engine with a context of its own: it raises where prompt and output together would not fit."""

    def __init__(self, layout: ChatLayout, script: list[str], context: int) -> None:
        self._layout, self._texts, self._context = layout, iter(script), context

    async def generate(self, request: GenerationRequest) -> Generation:
        assert len(request.prompt_ids) + request.max_tokens <= self._context, "the request does not fit"
        ids = self._layout.encode_output(next(self._texts))[: request.max_tokens]
        return Generation(ids, [0.0] * len(ids))


def test_tinker_cookbook_506_every_limit_around_the_history_ends_in_a_stop_reason(
    play: Play, layout: ChatLayout, make_task: Maker, write: Write
) -> None:
    """The history at limit − 1, at the limit and one token over it, for every prompt of the rollout."""
    script = [write(), SUNNY, "It is sunny."] * 2
    lengths = [len(o.prompt_ids) for o in play(make_task(2), script).outputs]
    for at, length in enumerate(lengths):
        longest = max(lengths[: at + 1])
        for limit in (longest - 1, longest, longest + 1):
            limits = {"max_prompt_tokens": limit, "max_act_tokens": 60, "max_rehearse_tokens": 60}
            rollout = play(make_task(2), Limited(layout, script, limit + 60), **limits)
            fits = max(lengths) <= limit
            assert rollout.stop_reason is (StopReason.COMPLETED if fits else StopReason.CONTEXT_OVERFLOW), length
            assert rollout.reward is not None and rollout.error == ""


def test_tinker_cookbook_506_a_first_prompt_that_is_too_long_is_scored_and_asks_nobody(
    play: Play, layout: ChatLayout, make_task: Maker
) -> None:
    rollout = play(make_task(), Limited(layout, [], 0), max_prompt_tokens=1)
    assert (rollout.stop_reason, rollout.outputs, rollout.reward) == (StopReason.CONTEXT_OVERFLOW, [], 0.0)


@pytest.mark.parametrize("limit", [1, 2, 50, 300])
def test_verl_6404_an_output_that_never_ends_is_cut_and_called_truncated(
    play: Play, layout: ChatLayout, make_task: Maker, limit: int
) -> None:
    rollout = play(make_task(3), ["and on " * 500], max_act_tokens=limit)
    assert rollout.stop_reason is StopReason.OUTPUT_TRUNCATED
    assert [len(o.token_ids) for o in rollout.outputs] == [limit]
    assert len(rollout.turns) == 1 and rollout.turns[0].calls == [] and rollout.reward == 0.0


def test_verl_6404_a_first_turn_that_eats_the_budget_leaves_a_scored_rollout(
    play: Play, layout: ChatLayout, make_task: Maker, write: Write
) -> None:
    """The first turn is good but long: the second one cannot begin, which is told and scored, not crashed."""
    long = f"<think>{'so ' * 200}</think>It is sunny."
    rollout = play(
        make_task(2), [write(), SUNNY, long], max_prompt_tokens=160, max_act_tokens=900, keep_reasoning="all"
    )
    assert rollout.stop_reason is StopReason.CONTEXT_OVERFLOW
    assert rollout.turns[0].score == 1.0 and rollout.reward == 0.5


def test_verl_6404_a_rehearsal_that_never_ends_is_truncated_too(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(), [write(), '{"a": "' + "on " * 500])
    assert rollout.stop_reason is StopReason.OUTPUT_TRUNCATED and rollout.outputs[-1].role is Role.REHEARSE
    assert rollout.turns[0].observations == []


@pytest.mark.parametrize("limit", [1, 2, 7, 30])
def test_trl_4751_a_policy_that_always_calls_stops_at_max_outputs(
    play: Play, make_task: Maker, write: Write, limit: int
) -> None:
    rollout = play(make_task(), [write(), SUNNY] * 100, max_outputs=limit)
    assert rollout.stop_reason is StopReason.MAX_OUTPUTS
    assert rollout.count(Role.ACT) == limit and rollout.count(Role.REHEARSE) == limit
    assert rollout.reward is not None


def test_trl_4751_the_cap_counts_over_turns_and_over_calls_that_code_refuses(
    play: Play, make_task: Maker, write: Write
) -> None:
    over_turns = play(make_task(5), [write(), SUNNY, "It is sunny."] * 5, max_outputs=5)
    assert over_turns.stop_reason is StopReason.MAX_OUTPUTS and over_turns.count(Role.ACT) == 5
    refused = '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>'
    only_refused = play(make_task(), [refused] * 100, max_outputs=6)
    assert only_refused.stop_reason is StopReason.MAX_OUTPUTS and only_refused.count(Role.REHEARSE) == 0


def test_trl_4751_many_calls_in_one_output_are_capped_as_well(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(), [write() * 50] * 3, max_parallel_calls=20, max_act_tokens=2000)
    assert rollout.stop_reason is StopReason.INVALID_CALL and rollout.count(Role.REHEARSE) == 0
