"""Prompts that begin alike are computed once: the answers stay what a fresh engine gives, the work is counted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.engines.cpu import CpuEngine
from envace.engines.prefixes import PrefixTable, common_prefix, followers, passes
from envace.engines.protocol import Generation, GenerationRequest
from envace.errors import EngineError

Engines = Callable[..., CpuEngine]
Answer = Callable[..., list[Generation]]
ENDS = list(range(100, 130))


def tokens(count: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(7, 500) for _ in range(count)]


def ask(prompt: list[int], session: str, seed: int, most: int = 12) -> GenerationRequest:
    return GenerationRequest(session, prompt, most, 1.0, 1.0, seed)


def check(engine: CpuEngine, requests: list[GenerationRequest], answer: Answer, fresh: Callable[[], CpuEngine]) -> None:
    """The same ids, and log-probabilities to 1e-5, as each request alone on an engine that has seen nothing."""
    for request, found in zip(requests, answer(engine, requests), strict=True):
        (wanted,) = answer(fresh(), [request])
        assert found.token_ids == wanted.token_ids
        assert found.log_probs == pytest.approx(wanted.log_probs, abs=1e-5)


def test_the_rollouts_of_a_task_compute_their_first_prompt_once(engine_of: Engines, answer: Answer) -> None:
    engine, prompt = engine_of(), tokens(90)
    requests = [ask(prompt, f"t#{k}", seed=k) for k in range(6)]
    check(engine, requests, answer, engine_of)
    assert (engine.stats.prompt_tokens, engine.stats.prefilled_tokens) == (6 * 90, 90)
    assert engine.stats.sampled_tokens == 6 * 12


def test_a_later_rollout_of_the_task_starts_from_the_prompt_of_an_earlier_one(
    engine_of: Engines, answer: Answer
) -> None:
    engine, prompt = engine_of(max_slots=2), tokens(90)
    check(engine, [ask(prompt, f"t#{k}", seed=k) for k in range(7)], answer, engine_of)  # two at a time
    assert engine.stats.prompt_tokens == 7 * 90
    assert engine.stats.prefilled_tokens == 90 + 3  # each later pair computes the last token once


def test_tasks_with_the_same_system_prompt_share_it(engine_of: Engines, answer: Answer) -> None:
    engine, system = engine_of(), tokens(200)
    requests = [ask(system + tokens(20, seed=s + 1), f"t{s}", seed=s) for s in range(5)]
    check(engine, requests, answer, engine_of)
    assert engine.stats.prefilled_tokens == 200 + 5 * 20


def test_nested_prompts_share_the_longest(engine_of: Engines, answer: Answer) -> None:
    engine, whole = engine_of(), tokens(300)
    requests = [ask(whole[:length], "same task", seed=length) for length in (100, 150, 200, 300)]
    check(engine, requests, answer, engine_of)
    assert engine.stats.prefilled_tokens == 300 + 3


def test_little_in_common_is_not_worth_a_second_pass(engine_of: Engines, answer: Answer) -> None:
    engine, header = engine_of(), tokens(10)
    requests = [ask(header + tokens(50, seed=s + 1), f"t{s}", seed=s) for s in range(4)]
    check(engine, requests, answer, engine_of)
    assert engine.stats.prefilled_tokens == engine.stats.prompt_tokens


def test_random_trees_of_prompts_give_what_a_fresh_engine_gives(engine_of: Engines, answer: Answer) -> None:
    for trial in range(4):
        rng = random.Random(trial)
        engine = engine_of(max_slots=rng.choice([1, 3, 8]), ends=ENDS)
        prompts = [tokens(rng.randrange(1, 80), seed=rng.randrange(3)) for _ in range(4)]
        for turn in range(3):
            chosen = [rng.choice(prompts) + tokens(rng.randrange(0, 30), seed=rng.randrange(3)) for _ in range(9)]
            requests = [
                ask(p, f"s{rng.randrange(5)}", seed=i + turn, most=rng.randrange(1, 9)) for i, p in enumerate(chosen)
            ]
            check(engine, requests, answer, lambda: engine_of(ends=ENDS))
            prompts += chosen
        assert engine.stats.prefilled_tokens < engine.stats.prompt_tokens


def test_reuse_can_be_switched_off(random_model: Callable[..., Any], answer: Answer, engine_of: Engines) -> None:
    engine, prompt = CpuEngine(random_model(), max_slots=4, max_length=400, reuse_prefixes=False), tokens(90)
    check(engine, [ask(prompt, "t#0", seed=k) for k in range(5)], answer, engine_of)
    assert engine.stats.prefilled_tokens == engine.stats.prompt_tokens == 5 * 90


def test_rows_of_old_weights_serve_nobody(engine_of: Engines, answer: Answer, random_model: Callable[..., Any]) -> None:
    import torch

    engine, prompt = engine_of(max_slots=2), tokens(60)

    async def main() -> Generation:
        running = asyncio.create_task(engine.generate(ask(prompt, "old", seed=1, most=200)))
        while engine.stats.decode_steps < 3:
            await asyncio.sleep(0)
        with torch.no_grad():
            for mine, new in zip(engine.model.parameters(), random_model(1).parameters(), strict=True):
                mine.copy_(new)
        engine.forget()
        found = await engine.generate(ask(prompt, "new", seed=2))
        await running
        return found

    found = asyncio.run(main())
    (wanted,) = answer(engine_of(seed=1), [ask(prompt, "new", seed=2)])
    assert found.token_ids == wanted.token_ids
    (again,) = answer(engine, [ask(prompt, "old", seed=2)])
    assert again.token_ids == wanted.token_ids


def test_a_request_whose_time_is_up_is_an_error_and_frees_its_slot(engine_of: Engines, answer: Answer) -> None:
    engine = engine_of(max_slots=1, max_length=2000)
    slow = replace(ask(tokens(5), "slow", seed=0, most=1900), deadline_s=0.05)

    async def main() -> list[Any]:
        work = (engine.generate(r) for r in (slow, ask(tokens(6), "next", seed=1)))
        return await asyncio.wait_for(asyncio.gather(*work, return_exceptions=True), timeout=30)

    late, good = asyncio.run(main())
    assert isinstance(late, EngineError) and "0.05 s" in str(late)
    assert isinstance(good, Generation) and engine.stats.sampled_tokens < 1900


def test_a_driver_that_is_cancelled_leaves_nobody_waiting(engine_of: Engines, answer: Answer) -> None:
    engine = engine_of(max_slots=2)

    async def main() -> list[Any]:
        waiting = [asyncio.create_task(engine.generate(ask(tokens(9), f"s{k}", seed=k, most=90))) for k in range(4)]
        while engine.stats.decode_steps < 2:
            await asyncio.sleep(0)
        assert engine._driver is not None
        engine._driver.cancel()
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), timeout=30)

    assert all(isinstance(r, EngineError) for r in asyncio.run(main()))
    check(engine, [ask(tokens(40), f"s{k}", seed=k) for k in range(4)], answer, engine_of)


@given(st.lists(st.integers(0, 2), max_size=200), st.lists(st.integers(0, 2), max_size=200), st.integers(0, 150))
def test_the_common_prefix_is_exact(one: list[int], other: list[int], shared: int) -> None:
    one, other = [5] * shared + one, [5] * shared + other
    wanted = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    assert common_prefix(one, other) == wanted


def test_who_waits_for_whom() -> None:
    long, other = tokens(100), tokens(100, seed=1)
    assert followers([long, long[:60], long[:60] + other[:10], other], [0, 0, 0, 0]) == {1, 2}
    assert followers([long, long[:60]], [0, 59]) == set()  # it is cached already
    assert followers([long, long[:12]], [0, 0]) == set()
    assert followers([], []) == set()


def test_long_prompts_are_computed_in_passes_that_fit_into_memory(
    engine_of: Engines, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert passes([]) == [] and passes([512] * 128) == [slice(0, 128)] and passes([40_000]) == [slice(0, 1)]
    assert passes([8192, 10, 8192]) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    monkeypatch.setattr("envace.engines.prefixes._MASK_ELEMENTS", 20_000)
    assert passes([90, 80, 70, 10]) == [slice(0, 2), slice(2, 4)]
    requests = [ask(tokens(90 - s, seed=s), f"t{s}", seed=s) for s in range(7)]
    check(engine_of(), requests, answer, engine_of)


def test_the_own_row_is_taken_unless_another_has_clearly_more() -> None:
    table, prompt = PrefixTable(range(4)), tokens(100)
    mine, other = table.park("mine", prompt[:40]), table.park("other", prompt[:50])
    assert table.match("mine", prompt) == (mine, 40)
    assert table.match("mine", prompt, [(9, prompt[:99])]) == (9, 99)
    assert table.match("new", prompt) == (other, 50)
    table.clear()
    assert table.match("mine", prompt)[1] == 0
