"""The shared prefix: what of a prompt an engine has been through before, counted against plain comparison."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.evaluation.summary import summarise
from envace.rollout.prefixes import ComputedPrefixes, shared_prefix_shares
from envace.rollout.records import rollout_row
from envace.training.step_metrics import rollout_metrics
from envace.types import Role, Rollout, Task

Play = Callable[..., Rollout]
Write = Callable[..., str]
CALLS = [("get_weather", {"city": city}) for city in ("Oslo", "Rome", "Bern")]
ids = st.lists(st.integers(0, 2), max_size=12)


def common(a: list[int], b: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


@given(st.lists(st.tuples(ids, ids), max_size=6), ids)
def test_the_longest_common_beginning_is_found(earlier: list[tuple[list[int], list[int]]], prompt: list[int]) -> None:
    computed = ComputedPrefixes()
    for sequence, output in earlier:
        computed.add(sequence, output)
    assert computed.shared(prompt) == max(
        (common(sequence + output, prompt) for sequence, output in earlier), default=0
    )


def by_hand(rollout: Rollout) -> list[int]:
    """For each output of a sequential rollout, by comparing with all outputs before it."""
    return [
        max((common(e.prompt_ids + e.token_ids, o.prompt_ids) for e in rollout.outputs[:i]), default=0)
        for i, o in enumerate(rollout.outputs)
    ]


def test_a_rehearsal_pays_only_for_the_header_where_it_continues_one(
    play: Play, make_task: Callable[..., Task], write: Write, layout: ChatLayout
) -> None:
    task = make_task(("Sky?", CALLS, []), ("And now?", CALLS, []))
    rollout = play(task, [write(*CALLS), *['{"sky": "blue"}'] * 3, "Blue."] * 2)
    assert [o.shared_tokens for o in rollout.outputs] == by_hand(rollout)
    rehearsals = [o for o in rollout.outputs if o.role is Role.REHEARSE]
    paid = len(layout.rehearse_header) + 1  # and the separator behind the message before
    assert [len(o.prompt_ids) - o.shared_tokens for o in rehearsals] == [paid] * 6
    record = rollout_row(rollout, step=1, phase="train")
    share = 1 - 6 * paid / sum(len(o.prompt_ids) for o in rehearsals)
    assert abs(rollout_metrics([record])["engine/shared_prefix_share"] - share) < 1e-6
    assert summarise([rollout])["shared_prefix_share"] == round(share, 6) and share > 0.9


def test_instructions_pay_for_the_instruction_and_reasoning_for_the_output_behind_it(
    play: Play, make_task: Callable[..., Task], write: Write, qwen_layout: ChatLayout
) -> None:
    texts = ["<think>\nhm\n</think>\n\n" + write(*CALLS), *['{"sky": "blue"}'] * 3, "Blue."]
    rollout = play(
        make_task(("Sky?", CALLS, [])), texts, on=qwen_layout, role_prompts="instructions", max_prompt_tokens=4000
    )
    assert [o.shared_tokens for o in rollout.outputs] == by_hand(rollout)
    act, first, second, third, reply = rollout.outputs
    assert first.shared_tokens == len(act.prompt_ids)  # behind it the reasoning is missing
    assert second.shared_tokens > len(act.prompt_ids) and third.shared_tokens > second.shared_tokens
    assert reply.shared_tokens >= len(act.prompt_ids) + len(act.token_ids)


def test_concurrent_rehearsals_do_not_count_each_other(
    play: Play, make_task: Callable[..., Task], write: Write, layout: ChatLayout
) -> None:
    class Slow(ScriptedEngine):
        async def generate(self, request: GenerationRequest) -> Generation:
            generation = await super().generate(request)
            await asyncio.sleep(0.01)
            return generation

    engine = Slow(layout, [write(*CALLS), *['{"sky": "blue"}'] * 3, "Blue."])
    rollout = play(make_task(("Sky?", CALLS, [])), engine, parallel_calls="concurrent")
    act, *rehearsals, _ = rollout.outputs
    assert {o.shared_tokens for o in rehearsals} == {len(act.prompt_ids) + len(act.token_ids)}


def test_outputs_without_tokens_are_not_counted() -> None:
    nothing: list[dict[str, Any]] = [{"role": "rehearse", "prompt_tokens": 50, "shared_tokens": None}]
    assert shared_prefix_shares(nothing) == {}
    some = [*nothing, {"role": "rehearse", "prompt_tokens": 40, "shared_tokens": 30}]
    assert shared_prefix_shares(some, "engine/") == {"engine/shared_prefix_share": 0.75}
