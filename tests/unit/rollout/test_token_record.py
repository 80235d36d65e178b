"""The token record: what is trained is what the engine saw and sampled, and prompts only ever grow by splicing."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.rollout.seeds import derive_seed
from envace.types import Role, Rollout, StopReason, Task

Play = Callable[..., Rollout]
Maker = Callable[..., Task]
Write = Callable[..., str]
Recording = Callable[[list[str]], Any]


def random_script(rng: random.Random, write: Write) -> list[str]:
    """Texts as a policy of any quality writes them: good calls, refused ones, broken blocks, replies."""

    def city() -> str:
        return rng.choice(["Łódź", "Kraków", "東京", "a\nb", '"quoted"', "</tool_call>"])

    texts: list[str] = []
    for _ in range(rng.randrange(1, 8)):
        kind = rng.randrange(6)
        if kind < 3:
            calls = [("get_weather", {"city": city()}) for _ in range(rng.randrange(1, 4))]
            texts.append(("One moment. " if kind == 1 else "") + write(*calls))
            texts += [f'{{"weather": "{rng.choice(["sunny", "窓", "rain"])}", "n": {rng.random()}}}' for _ in calls]
            texts[-1] = texts[-1][: rng.choice([-1, *[None] * 19])]
        elif kind == 3:
            texts.append(write((rng.choice(["get_news", "get_alert"]), {})))
        elif kind == 4:
            texts.append(rng.choice(["<tool_call>oops</tool_call>", "<think>open", "</tool_call>"]))
        else:
            texts.append(rng.choice(["It is sunny.", "", "  spaces  ", "Où? 😀\n\n"]))
    return [*texts, "It is sunny."]


def messages_of(rollout: Rollout) -> list[dict[str, Any]]:
    """The whole history as chat messages, from the record alone."""
    messages: list[dict[str, Any]] = []
    for turn in rollout.turns:
        messages.append({"role": "user", "content": turn.user_message})
        observations = iter(turn.observations)
        for output in (o for o in rollout.outputs if o.turn_index == turn.turn_index and o.role is Role.ACT):
            messages.append({"role": "assistant", "content": output.text})
            for _ in range(observations_after(output.text)):
                messages.append({"role": "tool", "content": next(observations).content})
        assert next(observations, None) is None
    return messages


def observations_after(text: str) -> int:
    from envace.chat.parser import parse_act

    parsed = parse_act(text)
    return 1 if parsed.error else len(parsed.calls)


@pytest.fixture(scope="module")
def rollouts(
    play: Play, layout: ChatLayout, make_task: Maker, write: Write
) -> list[tuple[Task, Rollout, list[tuple[Any, Any]]]]:
    """200 scripted rollouts of every kind, each with what its engine saw."""
    from envace.engines.scripted import ScriptedEngine

    made = []
    for seed in range(200):
        rng = random.Random(seed)
        turn = ("What is the weather in Łódź?", [("get_weather", {"city": "Łódź"})], ["sunny"])
        task = make_task(*[turn] * rng.randrange(1, 4), task_id=f"t{seed}")
        engine = ScriptedEngine(layout, [text for _ in range(3) for text in random_script(rng, write)])
        seen: list[tuple[Any, Any]] = []

        class Watched:
            async def generate(self, request: Any, engine: Any = engine, seen: Any = seen) -> Any:
                generation = await engine.generate(request)
                seen.append((request, generation))
                return generation

        limits = {"max_act_tokens": rng.choice([60, 400]), "max_outputs": rng.choice([3, 12])}
        made.append((task, play(task, Watched(), **limits), seen))
    return made


def test_every_kind_of_end_is_among_the_scripted_rollouts(rollouts: list[Any]) -> None:
    reasons = {rollout.stop_reason for _, rollout, _ in rollouts}
    assert reasons >= {
        StopReason.COMPLETED,
        StopReason.MAX_OUTPUTS,
        StopReason.OUTPUT_TRUNCATED,
        StopReason.INVALID_CALL,
        StopReason.INVALID_REHEARSAL,
    }
    assert sum(len(rollout.outputs) for _, rollout, _ in rollouts) > 1000


def test_recorded_ids_are_exactly_what_the_engine_saw_and_sampled(rollouts: list[Any]) -> None:
    for _, rollout, seen in rollouts:
        assert [o.prompt_ids for o in rollout.outputs] == [request.prompt_ids for request, _ in seen]
        assert [o.token_ids for o in rollout.outputs] == [generation.token_ids for _, generation in seen]
        assert [o.log_probs for o in rollout.outputs] == [generation.log_probs for _, generation in seen]


def test_no_prompt_changes_what_stood_before_it(rollouts: list[Any]) -> None:
    for _, rollout, _ in rollouts:
        for earlier, later in pairwise(rollout.outputs):
            before = earlier.prompt_ids + earlier.token_ids
            assert later.prompt_ids[: len(before)] == before


def test_a_rehearsal_continues_the_act_prompt_and_the_act_output(rollouts: list[Any], layout: ChatLayout) -> None:
    for _, rollout, _ in rollouts:
        for earlier, later in pairwise(rollout.outputs):
            if later.role is Role.REHEARSE:
                between = later.prompt_ids[len(earlier.prompt_ids) + len(earlier.token_ids) :]
                assert between[-len(layout.rehearse_header) :] == layout.rehearse_header
                assert later.call is not None
            else:
                assert later.prompt_ids[-len(layout.act_header) :] == layout.act_header and later.call is None


def test_the_spliced_history_is_what_the_template_renders_whole(rollouts: list[Any], tokenizer: Any) -> None:
    checked = 0
    for task, rollout, _ in rollouts:
        if rollout.stop_reason is not StopReason.COMPLETED:
            continue
        messages, last = messages_of(rollout)[:-1], rollout.outputs[-1]
        text = tokenizer.apply_chat_template(
            messages, tools=[t.openai() for t in task.tools], add_generation_prompt=True, tokenize=False
        )
        assert last.prompt_ids == tokenizer.encode(text, add_special_tokens=False)
        checked += 1
    assert checked >= 50


def test_each_output_has_a_session_and_a_seed_of_its_own(rollouts: list[Any]) -> None:
    seeds = [request.seed for _, _, seen in rollouts for request, _ in seen]
    assert len(set(seeds)) == len(seeds) and all(0 <= s < 2**63 for s in seeds)
    for task, _, seen in rollouts:
        assert {request.session for request, _ in seen} == {f"{task.task_id}#0"}


def test_roles_sample_with_their_own_settings(play: Play, recording: Recording, make_task: Maker, write: Write) -> None:
    from envace.config import SamplingParams

    task = make_task(("Weather?", [], []))
    engine = recording([write(("get_weather", {"city": "Łódź"})), "{}", "Done."])
    act, rehearse = SamplingParams(temperature=0.6, top_p=0.95), SamplingParams(temperature=1.0, top_p=1.0)
    play(task, engine, act=act, rehearse=rehearse, max_act_tokens=77, max_rehearse_tokens=33)
    assert [(r.temperature, r.top_p, r.max_tokens) for r, _ in engine.seen] == [
        (0.6, 0.95, 77),
        (1.0, 1.0, 33),
        (0.6, 0.95, 77),
    ]


def test_seeds_depend_on_every_label_and_on_nothing_else() -> None:
    assert derive_seed(0, "t", 1, 2) == derive_seed(0, "t", 1, 2) == derive_seed("0", "t", "1", "2")
    variants = [
        (0, "t", 1, 2),
        (1, "t", 1, 2),
        (0, "u", 1, 2),
        (0, "t", 2, 2),
        (0, "t", 1, 3),
        (0, "t", 12),
        (0, "t1", 2),
    ]
    assert len({derive_seed(*v) for v in variants}) == len(variants)
