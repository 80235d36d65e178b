"""What the CPU engine does when requests are impossible, cancelled, or the model itself breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from envace.engines.cpu import CpuEngine
from envace.engines.protocol import Generation, GenerationRequest
from envace.errors import EngineError

Engines = Callable[..., CpuEngine]
Requests = Callable[..., list[GenerationRequest]]
Answer = Callable[..., list[Generation]]


async def all_settled(engine: CpuEngine, requests: list[GenerationRequest]) -> list[Any]:
    work = (engine.generate(r) for r in requests)
    return await asyncio.wait_for(asyncio.gather(*work, return_exceptions=True), timeout=60)


@pytest.mark.parametrize("length, tokens", [(390, 11), (401, 1), (0, 5), (5, 0), (5, -1)])
def test_a_request_that_cannot_fit_is_refused_and_says_why(
    engine_of: Engines, requests_of: Requests, length: int, tokens: int
) -> None:
    engine, (good,) = engine_of(max_length=400), requests_of(1)
    bad = replace(good, prompt_ids=[50] * length, max_tokens=tokens, session="bad")
    refused, answered = asyncio.run(all_settled(engine, [bad, good]))
    assert isinstance(refused, EngineError) and str(length) in str(refused) and str(tokens) in str(refused)
    assert isinstance(answered, Generation)


def test_a_request_that_just_fits_is_answered(engine_of: Engines, requests_of: Requests, answer: Answer) -> None:
    (request,) = requests_of(1)
    fitting = replace(request, prompt_ids=[50] * 390, max_tokens=10)
    (generation,) = answer(engine_of(max_length=400), [fitting])
    assert len(generation.token_ids) == 10


def test_a_cancelled_request_disturbs_no_other(engine_of: Engines, requests_of: Requests, answer: Answer) -> None:
    requests = [replace(r, max_tokens=25) for r in requests_of(12)]
    wanted = answer(engine_of(), requests)

    async def main(engine: CpuEngine, after: int) -> list[Any]:
        running = [asyncio.create_task(engine.generate(r)) for r in requests]
        while engine.stats.decode_steps < after:
            await asyncio.sleep(0)
        for index in (0, 2, 3, 9, 11):  # some are running, some still wait for one of the four slots
            running[index].cancel()
        return await asyncio.wait_for(asyncio.gather(*running, return_exceptions=True), timeout=60)

    for after in (0, 3):
        engine = engine_of(max_slots=4)
        for index, result in enumerate(asyncio.run(main(engine, after))):
            if index in (0, 2, 3, 9, 11):
                assert isinstance(result, asyncio.CancelledError)
            else:
                assert result.token_ids == wanted[index].token_ids
        assert [g.token_ids for g in answer(engine, requests)] == [g.token_ids for g in wanted]


def test_an_event_loop_that_ends_in_the_middle_leaves_a_sound_engine(
    engine_of: Engines, requests_of: Requests, answer: Answer
) -> None:
    engine, requests = engine_of(max_slots=3), [replace(r, max_tokens=25) for r in requests_of(8)]

    async def leave() -> None:
        running = [asyncio.create_task(engine.generate(r)) for r in requests]
        while engine.stats.decode_steps < 2:
            await asyncio.sleep(0)
        assert not any(t.done() for t in running)

    asyncio.run(leave())
    assert [g.token_ids for g in answer(engine, requests)] == [g.token_ids for g in answer(engine_of(), requests)]


@pytest.mark.parametrize("good_passes", [0, 1, 2, 3])
def test_a_model_that_breaks_is_told_to_every_request(
    engine_of: Engines, requests_of: Requests, answer: Answer, good_passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(max_slots=3)
    # one ends with its prefill, one with the first decoded token, others run on, and some still wait for a slot
    lengths = [1, 2, 5, 5, 1]
    requests = [replace(r, max_tokens=n) for r, n in zip(requests_of(5), lengths, strict=True)]
    forward, passes = engine.model.base_model.forward, 0

    def breaking(*args: Any, **kwargs: Any) -> Any:
        nonlocal passes
        passes += 1
        if passes > good_passes:
            raise RuntimeError("out of memory")
        return forward(*args, **kwargs)

    monkeypatch.setattr(engine.model.base_model, "forward", breaking)
    for result in asyncio.run(all_settled(engine, requests)):
        assert isinstance(result, Generation) or (isinstance(result, EngineError) and "out of memory" in str(result))
    monkeypatch.undo()
    wanted = answer(engine_of(), requests)
    assert [g.token_ids for g in answer(engine, requests)] == [g.token_ids for g in wanted]


def test_a_model_without_an_end_token_is_refused(random_model: Callable[..., Any]) -> None:
    model = random_model()
    model.generation_config.eos_token_id = None
    with pytest.raises(EngineError, match="eos_token_id"):
        CpuEngine(model)
