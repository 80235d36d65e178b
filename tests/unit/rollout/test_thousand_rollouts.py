"""1,000 scripted rollouts of both roles, in every way of prompting: recorded is what the engine saw, token by token."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.chat.parser import parse_act
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.files import compact_json
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Output, Role, Rollout, StopReason, Task

COUNT = 1000
MARK = "⌖"  # stands in every sampled text and nowhere else
HEADER = {"role_prompts": "header", "max_prompt_tokens": 6000}
INSTRUCTIONS = {"role_prompts": "instructions", "max_prompt_tokens": 6000}
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("tiny", HEADER | {"parallel_calls": "sequential", "keep_reasoning": "current_turn"}),
    ("tiny", HEADER | {"parallel_calls": "concurrent", "keep_reasoning": "all"}),
    ("qwen", INSTRUCTIONS | {"parallel_calls": "sequential", "keep_reasoning": "current_turn"}),
    ("qwen", INSTRUCTIONS | {"parallel_calls": "concurrent", "keep_reasoning": "current_turn"}),
]


class Spy:
    """A tokenizer that notes what it encodes."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.encoded = inner, []

    def encode(self, text: str, **settings: Any) -> list[int]:
        self.encoded.append(text)
        return self._inner.encode(text, **settings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@dataclass
class Played:
    """A rollout with how it was played and what its engine saw and gave."""

    task: Task
    rollout: Rollout
    seen: list[tuple[GenerationRequest, Generation]]
    tokenizer: Any
    layout: ChatLayout
    settings: dict[str, Any]


def thought(rng: random.Random) -> str:
    return f"<think>\nplan {MARK}\nfor 東京\n</think>\n\n" if rng.random() < 0.5 else ""


def script(rng: random.Random, write: Callable[..., str]) -> list[str]:
    """Good calls, refused ones, broken blocks, reasoning and replies, as a policy of any quality writes."""
    texts: list[str] = []
    for _ in range(rng.randrange(1, 7)):
        kind = rng.randrange(8)
        if kind < 4:
            calls = [("get_weather", {"city": f"{MARK} {rng.choice(['Łódź', '東京', 'a b', '</tool_call>', '{}'])}"})]
            calls *= rng.randrange(1, 4)
            texts.append(thought(rng) + rng.choice(["", "One moment.\n"]) + write(*calls))
            texts += [thought(rng) + compact_json({"sky": f"{MARK} blue", "n": rng.random()}) for _ in calls]
            if rng.random() < 0.04:
                texts[-1] = f"no JSON {MARK}"
        elif kind == 4:
            texts.append(thought(rng) + write(("get_news", {"about": MARK})))
        elif kind == 5:
            texts.append(
                rng.choice([f"<tool_call>oops {MARK}</tool_call>", f"<think>open {MARK}", f"{MARK}</tool_call>"])
            )
        else:
            texts.append(thought(rng) + f"It is {MARK} sunny. 😀")
    return [*texts, f"Fine {MARK}."]


@pytest.fixture(scope="module")
def played(
    layout: ChatLayout,
    tokenizer: Any,
    qwen_layout: ChatLayout,
    qwen_tokenizer: Any,
    make_task: Callable[..., Task],
    settings_with: Callable[..., RolloutSettings],
    write: Callable[..., str],
) -> list[Played]:
    """The rollouts. The engine writes with a layout of its own, so that the loop's tokenizer is watched alone."""
    writers = {"tiny": layout, "qwen": qwen_layout}
    spies = {"tiny": Spy(tokenizer), "qwen": Spy(qwen_tokenizer)}
    watched = {name: ChatLayout(spy) for name, spy in spies.items()}
    made: list[Played] = []

    class Recording(ScriptedEngine):
        seen: list[tuple[GenerationRequest, Generation]]

        async def generate(self, request: GenerationRequest) -> Generation:
            generation = await super().generate(request)
            self.seen.append((request, generation))
            return generation

    async def main() -> None:
        for number in range(COUNT):
            rng, (name, changes) = random.Random(number), WAYS[number % len(WAYS)]
            asked = ("What is the weather?", [("get_weather", {"city": "Łódź"})], ["sunny"])
            task = make_task(*[asked] * rng.randrange(1, 4), task_id=f"t{number}")
            engine = Recording(writers[name], [text for _ in range(3) for text in script(rng, write)])
            engine.seen = []
            limits = {"max_act_tokens": rng.choice([60, 400, 400]), "max_outputs": rng.choice([3, 12])}
            settings = changes | limits | {"max_rehearse_tokens": 100}
            rollout = await unfold(task, 0, engine=engine, layout=watched[name], settings=settings_with(**settings))
            made.append(Played(task, rollout, engine.seen, spies[name], watched[name], settings))

    asyncio.run(main())
    return made


def test_all_of_it_happens(played: list[Played]) -> None:
    assert len(played) == COUNT
    reasons = {p.rollout.stop_reason for p in played}
    assert reasons >= {
        StopReason.COMPLETED,
        StopReason.MAX_OUTPUTS,
        StopReason.OUTPUT_TRUNCATED,
        StopReason.INVALID_CALL,
        StopReason.INVALID_REHEARSAL,
    }
    assert StopReason.ENGINE_FAILURE not in reasons and StopReason.CONTEXT_OVERFLOW not in reasons
    both = [p for p in played if len(p.rollout.turns) > 1 and p.rollout.count(Role.REHEARSE) > 1]
    assert len(both) > COUNT / 4


def test_recorded_ids_are_what_the_engine_saw_and_every_trained_token_is_one_it_sampled(played: list[Played]) -> None:
    for p in played:
        outputs = p.rollout.outputs
        assert [o.prompt_ids for o in outputs] == [request.prompt_ids for request, _ in p.seen]
        assert [o.token_ids for o in outputs] == [generation.token_ids for _, generation in p.seen]
        assert [o.log_probs for o in outputs] == [generation.log_probs for _, generation in p.seen]
        assert all(len(o.log_probs) == len(o.token_ids) > 0 for o in outputs)


def test_nothing_that_was_sampled_is_ever_encoded(played: list[Played]) -> None:
    for spy in {id(p.tokenizer): p.tokenizer for p in played}.values():
        assert len(spy.encoded) > COUNT and not [text for text in spy.encoded if MARK in text]
    assert all(MARK in p.rollout.outputs[0].text for p in played)


def as_template_text(p: Played, before: Output) -> str:
    """What the template renders for everything before an act output, from the record of the steps alone."""
    messages: list[dict[str, Any]] = []
    texts = iter([o.text for o in p.rollout.outputs if o.role is Role.ACT])
    left = sum(1 for o in p.rollout.outputs[: p.rollout.outputs.index(before)] if o.role is Role.ACT)
    for turn in p.rollout.turns[: before.turn_index + 1]:
        messages.append({"role": "user", "content": turn.user_message})
        is_earlier = turn.turn_index < before.turn_index
        for step in turn.steps[: left if not is_earlier else None]:
            left -= 1
            text = next(texts)
            if is_earlier and p.settings["keep_reasoning"] == "current_turn" and "</think>\n\n" in text:
                text = text.split("</think>\n\n", 1)[1]
            messages.append({"role": "assistant", "content": text})
            messages += [{"role": "tool", "content": o.content} for o in step.observations]
    tools = [t.openai() for t in p.task.tools]
    return p.tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)


def test_every_act_prompt_reads_as_the_template_renders_the_conversation(played: list[Played]) -> None:
    checked = 0
    for p in played:
        for output in p.rollout.outputs:
            if output.role is Role.ACT:
                assert p.layout.text(output.prompt_ids) == as_template_text(p, output)
                checked += 1
        first = p.rollout.outputs[0]
        rendered = as_template_text(p, first)
        assert first.prompt_ids == p.tokenizer._inner.encode(rendered, add_special_tokens=False)
    assert checked > 2 * COUNT


def as_text(ids: list[int]) -> str:
    """Ids as characters, so that runs of them can be searched for."""
    return "".join(map(chr, ids))


def test_every_prompt_holds_the_sampled_ids_of_the_outputs_before_it_in_order(played: list[Played]) -> None:
    cuts = 0
    for p in played:
        for i, later in enumerate(p.rollout.outputs):
            prompt, at = as_text(later.prompt_ids), 0
            for earlier in (o for o in p.rollout.outputs[:i] if o.role is Role.ACT):
                last = earlier is [o for o in p.rollout.outputs[:i] if o.role is Role.ACT][-1]
                is_cut = (earlier.turn_index < later.turn_index and p.settings["keep_reasoning"] == "current_turn") or (
                    later.role is Role.REHEARSE and last
                )
                thoughts = parse_act(earlier.text).thoughts if is_cut else []
                kept = p.layout.cut(earlier.token_ids, thoughts)
                cuts += bool(thoughts)
                at = prompt.find(as_text(kept), at)
                assert at >= 0
                at += len(kept)
    assert cuts > COUNT


def test_a_rehearsal_shares_the_whole_act_prompt(played: list[Played]) -> None:
    for p in played:
        act: Output | None = None
        for output in p.rollout.outputs:
            if output.role is Role.ACT:
                act = output
                continue
            assert act is not None and output.prompt_ids[: len(act.prompt_ids)] == act.prompt_ids
            assert output.shared_tokens >= len(act.prompt_ids)
            shown = p.layout.text(output.prompt_ids[len(act.prompt_ids) :])
            assert f"plan {MARK}" not in shown


def test_within_a_turn_act_prompts_only_grow(played: list[Played]) -> None:
    for p in played:
        acts = [o for o in p.rollout.outputs if o.role is Role.ACT]
        for earlier, later in pairwise(acts):
            if earlier.turn_index == later.turn_index or p.settings["keep_reasoning"] == "all":
                before = earlier.prompt_ids + earlier.token_ids
                assert later.prompt_ids[: len(before)] == before
