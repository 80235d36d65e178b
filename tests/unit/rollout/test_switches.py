"""What each switch of the method's section 2 means: grounding, parallel_calls, keep_reasoning, role_prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.types import Output, Role, Rollout, Step, StopReason, Task, ToolCall, ToolResult

Play = Callable[..., Rollout]
Maker = Callable[..., Task]
Write = Callable[..., str]
CITIES = ["Oslo", "Rome", "Bern"]
CALLS = [("get_weather", {"city": city}) for city in CITIES]
ANSWERS = [f'{{"sky": "over {city}"}}' for city in CITIES]
THOUGHT = "<think>\nI know a secret.\n</think>\n\n"


@pytest.fixture
def recorded(make_task: Maker) -> Task:
    """Three turns, each with one recorded call and its result, told apart by their city."""
    task = make_task(*[(f"How is {city}?", [call], []) for city, call in zip(CITIES, CALLS, strict=True)])
    turns = []
    for turn, city in zip(task.turns, CITIES, strict=True):
        call = ToolCall(tool_name="get_weather", arguments=f'{{"city":"{city}"}}', call_id="c0")
        result = ToolResult(call_id="c0", content=f'{{"true sky":"{city}!"}}', is_error=False)
        step = Step(step_index=0, reasoning="", reply="", tool_calls=[call], tool_results=[result])
        turns.append(turn.model_copy(update={"reference_steps": [step]}))
    return task.model_copy(update={"turns": turns})


def rehearsals(rollout: Rollout) -> list[Output]:
    return [o for o in rollout.outputs if o.role is Role.REHEARSE]


def acts(rollout: Rollout) -> list[Output]:
    return [o for o in rollout.outputs if o.role is Role.ACT]


@pytest.mark.parametrize("prompts", ["header", "instructions"])
@pytest.mark.parametrize(
    ("grounding", "visible"),
    [
        ("none", [[], [], []]),
        ("past", [[], CITIES[:1], CITIES[:2]]),
        ("reference", [CITIES, CITIES, CITIES]),  # this leaks the future, which is why it is never the default
    ],
)
def test_grounding_decides_which_recorded_results_a_rehearsal_sees(
    play: Play, recorded: Task, write: Write, tokenizer: Any, grounding: str, visible: list[list[str]], prompts: str
) -> None:
    script = [text for call, a in zip(CALLS, ANSWERS, strict=True) for text in (write(call), a, "Fine.")]
    limits = {"max_prompt_tokens": 5000, "grounding": grounding, "role_prompts": prompts}
    rollout = play(recorded, script, **limits)
    assert rollout.stop_reason is StopReason.COMPLETED
    shown = [tokenizer.decode(o.prompt_ids) for o in rehearsals(rollout)]
    lines = {city: f'get_weather {{"city":"{city}"}} -> {{"true sky":"{city}!"}}' for city in CITIES}
    assert [[city for city in CITIES if lines[city] in prompt] for prompt in shown] == visible
    assert not any("true sky" in tokenizer.decode(o.prompt_ids) for o in acts(rollout))  # the act role never sees them


def test_without_recorded_results_a_rehearsal_continues_the_bare_header(
    play: Play, recorded: Task, write: Write, layout: ChatLayout
) -> None:
    rollout = play(recorded, [write(CALLS[0]), ANSWERS[0], "Fine."] * 3, grounding="past")
    first, second, _ = rehearsals(rollout)
    before = len(acts(rollout)[0].prompt_ids) + len(acts(rollout)[0].token_ids)
    assert first.prompt_ids[before + 1 :] == layout.rehearse_header  # behind the separator of one token
    assert second.prompt_ids[-len(layout.rehearse_header) :] == layout.rehearse_header


class Together:
    """Answers a request only once so many are waiting; plays one script for the acts, one for the rehearsals."""

    def __init__(self, layout: ChatLayout, script: list[str], at_once: int) -> None:
        self._inner, self._at_once = ScriptedEngine(layout, script), at_once
        self._waiting = 0
        self._all = asyncio.Event()
        self.requests = self._inner.requests

    async def generate(self, request: GenerationRequest) -> Generation:
        generation = await self._inner.generate(request)
        if len(self.requests) in range(2, self._at_once + 2):
            self._waiting += 1
            if self._waiting == self._at_once:
                self._all.set()
            await self._all.wait()
        return generation


@pytest.mark.parametrize("prompts", ["header", "instructions"])
def test_concurrent_rehearsals_run_at_the_same_time_and_none_sees_the_others(
    play: Play, make_task: Maker, write: Write, layout: ChatLayout, tokenizer: Any, prompts: str
) -> None:
    engine = Together(layout, [write(*CALLS), *ANSWERS, "All fine."], at_once=3)
    task = make_task(("How is the sky?", CALLS, []))
    rollout = play(task, engine, parallel_calls="concurrent", role_prompts=prompts)
    assert rollout.stop_reason is StopReason.COMPLETED  # with one after the other the engine would wait forever
    assert [o.content for o in rollout.turns[0].observations] == ANSWERS
    for output in rehearsals(rollout):
        assert not any(answer in tokenizer.decode(output.prompt_ids) for answer in ANSWERS)
    assert all(answer in tokenizer.decode(acts(rollout)[1].prompt_ids) for answer in ANSWERS)
    assert len({r.seed for r in engine.requests}) == 5


def test_concurrent_rehearsals_all_continue_the_same_prefix_in_header_mode(
    play: Play, make_task: Maker, write: Write
) -> None:
    task = make_task(("How is the sky?", CALLS, []))
    rollout = play(task, [write(*CALLS), *ANSWERS, "All fine."], parallel_calls="concurrent")
    assert len({tuple(o.prompt_ids) for o in rehearsals(rollout)}) == 1


def test_the_order_in_which_concurrent_rehearsals_end_changes_nothing(
    play: Play, make_task: Maker, write: Write, layout: ChatLayout
) -> None:
    class Shuffled(ScriptedEngine):
        def __init__(self, texts: list[str], pauses: list[float]) -> None:
            super().__init__(layout, texts)
            self.pauses = pauses

        async def generate(self, request: GenerationRequest) -> Generation:
            generation = await super().generate(request)
            await asyncio.sleep(self.pauses[len(self.requests) - 1])
            return generation

    task, script = make_task(("How is the sky?", CALLS, [])), [write(*CALLS), *ANSWERS, "All fine."]
    made = [
        play(task, Shuffled(script, [0, *pauses, 0]), parallel_calls="concurrent")
        for pauses in ([0, 0, 0], [0.02, 0.01, 0], [0.01, 0, 0.02])
    ]
    assert made[0] == made[1] == made[2]


def test_a_rehearsal_that_fails_leaves_the_concurrent_ones_on_record(
    play: Play, make_task: Maker, write: Write
) -> None:
    task = make_task(("How is the sky?", CALLS, []))
    rollout = play(task, [write(*CALLS), ANSWERS[0], "no JSON", ANSWERS[2]], parallel_calls="concurrent")
    assert rollout.stop_reason is StopReason.INVALID_REHEARSAL
    assert [o.text for o in rehearsals(rollout)] == [ANSWERS[0], "no JSON", ANSWERS[2]]
    assert [o.content for o in rollout.turns[0].observations] == ANSWERS[:1]
    assert len(rollout.turns[0].calls) == 3


def test_code_refuses_bad_calls_of_a_concurrent_output_in_their_place(
    play: Play, make_task: Maker, write: Write
) -> None:
    calls = write(("get_news", {}), CALLS[0], ("get_weather", {}))
    rollout = play(make_task(("Sky?", [], [])), [calls, ANSWERS[0], "Fine."], parallel_calls="concurrent")
    assert [o.source for o in rollout.turns[0].observations] == ["code", "rehearsed", "code"]


@pytest.mark.parametrize("keep", ["all", "current_turn"])
def test_reasoning_of_earlier_turns_is_kept_or_cut_by_its_ids(
    play: Play, make_task: Maker, write: Write, layout: ChatLayout, keep: str
) -> None:
    task = make_task(("Sky?", [CALLS[0]], []), ("And now?", [], []))
    texts = [THOUGHT + write(CALLS[0]), ANSWERS[0], THOUGHT + "Fine.", THOUGHT + "Still fine."]
    rollout = play(task, texts, keep_reasoning=keep)
    first, second, third = acts(rollout)
    whole = first.prompt_ids + first.token_ids
    assert second.prompt_ids[: len(whole)] == whole  # within a turn reasoning always stays
    both = second.prompt_ids + second.token_ids
    if keep == "all":
        assert third.prompt_ids[: len(both)] == both
        return
    thought = layout.encode_output(THOUGHT)[:-1]
    without = [output.token_ids[len(thought) :] for output in (first, second)]
    assert [output.token_ids[: len(thought)] for output in (first, second)] == [thought] * 2
    between = second.prompt_ids[len(whole) :]
    expected = first.prompt_ids + without[0] + between + without[1]
    assert third.prompt_ids[: len(expected)] == expected
    assert "secret" not in layout.text(third.prompt_ids)


@pytest.mark.parametrize("prompts", ["header", "instructions"])
def test_the_environment_sees_the_act_output_without_its_reasoning(
    play: Play, make_task: Maker, write: Write, layout: ChatLayout, prompts: str
) -> None:
    task = make_task(("Sky?", [CALLS[0]], []))
    said = "One moment. " + write(CALLS[0])
    rollout = play(task, [THOUGHT + said, ANSWERS[0], "Fine."], role_prompts=prompts)
    act, rehearsal = rollout.outputs[0], rollout.outputs[1]
    shown = layout.text(rehearsal.prompt_ids[len(act.prompt_ids) :])
    assert rehearsal.prompt_ids[: len(act.prompt_ids)] == act.prompt_ids and shown.startswith(said)
    assert "secret" not in shown and "secret" in layout.text(rollout.outputs[2].prompt_ids)


def test_instructions_come_last_and_leave_no_trace_in_the_history(
    play: Play, make_task: Maker, write: Write, qwen_layout: ChatLayout
) -> None:
    task = make_task(("Sky?", CALLS[:2], []))
    texts = [write(*CALLS[:2]), *ANSWERS[:2], "Fine."]
    rollout = play(task, texts, on=qwen_layout, role_prompts="instructions", max_prompt_tokens=4000)
    act, first, second, reply = rollout.outputs
    shared = act.prompt_ids + act.token_ids
    for number, output in enumerate((first, second), 1):
        assert output.prompt_ids[: len(shared)] == shared
        text = qwen_layout.text(output.prompt_ids[len(shared) :])
        assert text.endswith(
            f"Answer call {number} of the 2 in the last assistant message.<|im_end|>\n<|im_start|>assistant\n"
        )
    assert "Answer call" not in qwen_layout.text(reply.prompt_ids)
    assert all(answer in qwen_layout.text(reply.prompt_ids) for answer in ANSWERS[:2])


@pytest.mark.parametrize("tiny", [True, False])
def test_what_the_rehearse_role_thought_never_reaches_the_act_role(
    play: Play, make_task: Maker, write: Write, layout: ChatLayout, qwen_layout: ChatLayout, tiny: bool
) -> None:
    used = layout if tiny else qwen_layout
    task = make_task(("Sky?", CALLS[:2], []), ("And now?", [], []))
    answers = ["<think>\nhidden state\n</think>\n\n" + answer for answer in ANSWERS[:2]]
    texts = [write(*CALLS[:2]), *answers, "Fine.", "Still fine."]
    rollout = play(task, texts, on=used, role_prompts="instructions", max_prompt_tokens=4000)
    assert rollout.stop_reason is StopReason.COMPLETED
    assert [o.content for o in rollout.turns[0].observations] == ANSWERS[:2]
    for output in rollout.outputs:
        assert "hidden" not in used.text(output.prompt_ids)
    kept = rollout.outputs[1].token_ids[len(used.encode_output("<think>\nhidden state\n</think>\n\n")) - 1 : -1]
    spliced = rollout.outputs[3].prompt_ids
    assert any(spliced[i : i + len(kept)] == kept for i in range(len(spliced)))


def test_a_rehearsal_with_reasoning_and_no_json_is_invalid(
    play: Play, make_task: Maker, write: Write, qwen_layout: ChatLayout
) -> None:
    texts = [write(CALLS[0]), "<think>\nhm\n</think>\n\nIt is sunny."]
    rollout = play(make_task(("Sky?", [], [])), texts, on=qwen_layout, role_prompts="instructions")
    assert rollout.stop_reason is StopReason.INVALID_REHEARSAL


def test_a_layout_that_does_not_allow_the_header_says_so(
    play: Play, make_task: Maker, write: Write, qwen_layout: ChatLayout
) -> None:
    rollout = play(make_task(("Sky?", [], [])), ["Fine."], on=qwen_layout, role_prompts="header")
    assert rollout.stop_reason is StopReason.ENGINE_FAILURE and "role_prompts to instructions" in rollout.error
