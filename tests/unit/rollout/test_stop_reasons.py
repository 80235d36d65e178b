"""Why a rollout ends: every reason that this loop can give, what it does to the reward, and the limits behind it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.errors import DataError, EngineError
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Role, Rollout, StopReason, Task

Play = Callable[..., Rollout]
Maker = Callable[..., Task]
Write = Callable[..., str]
WEATHER = ("get_weather", {"city": "Łódź"})
SUNNY = '{"weather": "sunny"}'
ASKED = ("What is the weather in Łódź?", [WEATHER], ["sunny"])
BROKEN = "<tool_call>oops</tool_call>"


def perfect(write: Write) -> list[str]:
    return [write(WEATHER), SUNNY, "It is sunny."]


def test_a_perfect_rollout_is_completed_with_reward_1(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(ASKED, ASKED), perfect(write) * 2)
    assert (rollout.stop_reason, rollout.reward, rollout.success) == (StopReason.COMPLETED, 1.0, True)
    assert [o.role for o in rollout.outputs] == [Role.ACT, Role.REHEARSE, Role.ACT] * 2
    assert [o.turn_index for o in rollout.outputs] == [0, 0, 0, 1, 1, 1]
    assert [t.score for t in rollout.turns] == [1.0, 1.0] and all(t.satisfied for t in rollout.turns)


def test_a_completed_rollout_with_a_mistake_is_no_success(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(ASKED, ASKED), [*perfect(write), "It is cold."])
    assert rollout.stop_reason is StopReason.COMPLETED and not rollout.success
    assert rollout.reward == pytest.approx(0.5)


def test_turns_that_are_not_reached_count_zero(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(ASKED, ASKED, ASKED), [*perfect(write), write(WEATHER), "not JSON"])
    assert rollout.stop_reason is StopReason.INVALID_REHEARSAL and not rollout.success
    assert len(rollout.turns) == 2
    assert rollout.reward == pytest.approx((1.0 + 0.5 + 0.2 * 0) / 3)


def test_a_policy_that_always_calls_stops_at_max_outputs(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(ASKED), [write(WEATHER), SUNNY] * 20, max_outputs=5)
    assert rollout.stop_reason is StopReason.MAX_OUTPUTS
    assert rollout.count(Role.ACT) == 5 and rollout.count(Role.REHEARSE) == 5
    assert rollout.reward is not None and rollout.reward < 1


def test_max_outputs_counts_over_all_turns_and_allows_exactly_so_many(
    play: Play, make_task: Maker, write: Write
) -> None:
    task = make_task(ASKED, ASKED)
    assert play(task, perfect(write) * 2, max_outputs=4).stop_reason is StopReason.COMPLETED
    assert play(task, perfect(write) * 2, max_outputs=3).stop_reason is StopReason.MAX_OUTPUTS


def test_a_history_at_its_limit_fits_and_one_token_more_overflows(play: Play, make_task: Maker, write: Write) -> None:
    task, script = make_task(ASKED), perfect(write)
    longest = max(len(o.prompt_ids) for o in play(task, script).outputs)
    assert play(task, script, max_prompt_tokens=longest).stop_reason is StopReason.COMPLETED
    over = play(task, script, max_prompt_tokens=longest - 1)
    assert over.stop_reason is StopReason.CONTEXT_OVERFLOW and len(over.outputs) == 2
    assert over.reward is not None and 0 < over.reward < 1


def test_a_first_prompt_that_does_not_fit_is_recorded_and_scored(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(ASKED), perfect(write), max_prompt_tokens=5)
    assert (rollout.stop_reason, rollout.reward, rollout.outputs) == (StopReason.CONTEXT_OVERFLOW, 0.0, [])


def test_an_act_output_cut_by_length_is_never_parsed_for_calls(
    play: Play, layout: ChatLayout, make_task: Maker, write: Write
) -> None:
    tokens = len(layout.encode_output(write(WEATHER)))
    rollout = play(make_task(ASKED), perfect(write), max_act_tokens=tokens - 1)  # all but its end token
    assert rollout.stop_reason is StopReason.OUTPUT_TRUNCATED
    assert rollout.outputs[0].text == write(WEATHER) and rollout.turns[0].calls == [] and rollout.reward == 0


def test_a_valid_output_cut_at_any_byte_is_never_executed(
    play: Play, layout: ChatLayout, make_task: Maker, write: Write
) -> None:
    class Cut:
        """Gives what the policy had written of an output when its tokens ran out."""

        def __init__(self, text: str) -> None:
            self.ids = layout.encode_output(text)[:-1] or layout.encode_output("x")[:-1]

        async def generate(self, request: GenerationRequest) -> Generation:
            return Generation(self.ids, [0.0] * len(self.ids))

    whole = "<think>\nI ask.\n</think>\n\nOne moment. " + write(WEATHER, WEATHER)
    assert play(make_task(ASKED), [whole, SUNNY, SUNNY, "It is sunny."]).turns[0].calls
    written = whole.encode()
    for end in range(len(written) + 1):
        rollout = play(make_task(ASKED), Cut(written[:end].decode("utf-8", "replace")))
        assert rollout.stop_reason is StopReason.OUTPUT_TRUNCATED
        assert rollout.turns[0].steps == [] and rollout.turns[0].calls == [] and len(rollout.outputs) == 1


def test_a_policy_that_never_stops_is_truncated(play: Play, make_task: Maker) -> None:
    rollout = play(make_task(ASKED), ["and on " * 1000], max_act_tokens=30)
    assert rollout.stop_reason is StopReason.OUTPUT_TRUNCATED and len(rollout.outputs[0].token_ids) == 30


def test_a_rehearsal_cut_by_length_ends_the_rollout(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(ASKED), [write(WEATHER), SUNNY], max_rehearse_tokens=3)
    assert rollout.stop_reason is StopReason.OUTPUT_TRUNCATED and rollout.turns[0].observations == []
    assert rollout.outputs[-1].role is Role.REHEARSE and len(rollout.outputs[-1].token_ids) == 3


@pytest.mark.parametrize("answer", ["sunny", "", "null", "3", '"sunny"', '{"a": 1', '{"a": NaN}', "{} {}"])
def test_a_rehearsal_that_is_no_json_object_or_array_ends_the_rollout(
    play: Play, make_task: Maker, write: Write, answer: str
) -> None:
    rollout = play(make_task(ASKED), [write(WEATHER), answer, "It is sunny."])
    assert rollout.stop_reason is StopReason.INVALID_REHEARSAL and rollout.reward == pytest.approx(0.5)


def test_the_third_unparsable_output_in_a_row_stops(play: Play, make_task: Maker) -> None:
    rollout = play(make_task(ASKED), [BROKEN] * 5, max_invalid_calls=3)
    assert rollout.stop_reason is StopReason.INVALID_CALL and len(rollout.outputs) == 3
    assert [o.source for o in rollout.turns[0].observations] == ["code", "code"] and rollout.reward == 0


def test_a_good_output_between_unparsable_ones_starts_the_count_again(
    play: Play, make_task: Maker, write: Write
) -> None:
    script = [BROKEN, BROKEN, write(WEATHER), SUNNY, BROKEN, BROKEN, "It is sunny."]
    rollout = play(make_task(ASKED), script, max_invalid_calls=3)
    assert (rollout.stop_reason, rollout.reward) == (StopReason.COMPLETED, 1.0)


def test_more_calls_at_once_than_allowed_are_refused_like_an_unparsable_output(
    play: Play, make_task: Maker, write: Write
) -> None:
    many = write(*[WEATHER] * 3)
    rollout = play(make_task(ASKED), [many] * 3, max_parallel_calls=2, max_invalid_calls=3)
    assert rollout.stop_reason is StopReason.INVALID_CALL and rollout.turns[0].calls == []
    assert "at most 2 calls" in rollout.turns[0].observations[0].content


class Failing:
    """An engine that answers some requests of a script and then misbehaves."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def generate(self, request: GenerationRequest) -> Generation:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        EngineError("the server is gone"),
        RuntimeError("the server is gone"),
        ConnectionResetError("the server is gone"),
        Generation([], []),
        Generation([1, 2], [-0.5]),
        Generation([1, 2], []),
        Generation([1], [math.nan]),
        Generation([1], [-math.inf]),
    ],
)
def test_a_failing_engine_gives_no_reward_and_never_zero(play: Play, make_task: Maker, answer: Any) -> None:
    rollout = play(make_task(ASKED), Failing(answer))
    assert rollout.stop_reason is StopReason.ENGINE_FAILURE and not rollout.stop_reason.scorable
    assert rollout.reward is None and not rollout.success and rollout.error and rollout.outputs == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_marked_and_other_failures_are_not(
    play: Play, make_task: Maker, value: float
) -> None:
    assert play(make_task(ASKED), Failing(Generation([1], [value]))).not_finite
    assert not play(make_task(ASKED), Failing(Generation([1], []))).not_finite
    assert not play(make_task(ASKED), ["Hello."]).not_finite


def test_a_number_that_is_not_finite_is_marked_beside_a_rehearsal_that_ends_the_rollout_otherwise(
    play: Play, make_task: Maker, write: Write, layout: ChatLayout
) -> None:
    script = ScriptedEngine(layout, [write(WEATHER, WEATHER), "not JSON", SUNNY])

    class Broken:
        async def generate(self, request: GenerationRequest) -> Generation:
            found = await script.generate(request)
            last = len(script.requests) == 3
            return Generation(found.token_ids, [math.nan] * len(found.token_ids)) if last else found

    rollout = play(make_task(ASKED), Broken(), parallel_calls="concurrent")
    assert rollout.not_finite and rollout.stop_reason is StopReason.ENGINE_FAILURE


def test_an_engine_that_fails_late_keeps_what_was_there(play: Play, make_task: Maker, write: Write) -> None:
    rollout = play(make_task(ASKED), [write(WEATHER), SUNNY])  # the script runs out before the reply
    assert rollout.stop_reason is StopReason.ENGINE_FAILURE and rollout.reward is None
    assert "run out" in rollout.error and len(rollout.outputs) == 2 and len(rollout.turns[0].observations) == 1


def test_cancellation_leaves_at_once(
    layout: ChatLayout, make_task: Maker, settings_with: Callable[..., RolloutSettings]
) -> None:
    class Hanging:
        async def generate(self, request: GenerationRequest) -> Generation:
            await asyncio.Event().wait()
            raise AssertionError

    async def main() -> None:
        work = unfold(make_task(ASKED), 0, engine=Hanging(), layout=layout, settings=settings_with())
        running = asyncio.create_task(work)
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_a_task_that_code_cannot_score_is_refused(play: Play, make_task: Maker) -> None:
    with pytest.raises(DataError, match="t0"):
        play(make_task(ASKED).model_copy(update={"outcome": None}), ["Hello."])


@pytest.mark.parametrize("reason", StopReason)
def test_only_the_infrastructure_makes_a_rollout_unscorable(reason: StopReason) -> None:
    assert reason.scorable == (reason.value not in ("judge_unavailable", "engine_failure", "cancelled"))
