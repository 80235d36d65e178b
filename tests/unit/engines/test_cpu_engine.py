"""The CPU engine gives what plain transformers gives, whatever runs beside it and however often slots change hands."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from envace.engines.cpu import CpuEngine
from envace.engines.protocol import Generation, GenerationRequest

Engines = Callable[..., CpuEngine]
Requests = Callable[..., list[GenerationRequest]]
Answer = Callable[..., list[Generation]]
LogProbs = Callable[..., list[float]]
ENDS = list(range(100, 130))


def same(found: list[Generation], wanted: list[Generation]) -> None:
    assert [g.token_ids for g in found] == [g.token_ids for g in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_probs_equal_a_plain_forward_pass(
    engine_of: Engines, requests_of: Requests, answer: Answer, forward_log_probs: LogProbs, temperature: float
) -> None:
    requests = requests_of(24, temperature=temperature)
    for request, generation in zip(requests, answer(engine_of(), requests), strict=True):
        expected = forward_log_probs(request.prompt_ids, generation.token_ids, temperature)
        assert generation.log_probs == pytest.approx(expected, abs=1e-5)


def test_log_probs_of_a_continued_session_equal_a_plain_forward_pass(
    engine_of: Engines, requests_of: Requests, answer: Answer, forward_log_probs: LogProbs
) -> None:
    engine, rng = engine_of(max_slots=4, max_length=2000), random.Random(1)
    requests = requests_of(6)
    for _ in range(6):
        before = replace(engine.stats)
        generations = answer(engine, requests)
        for request, generation in zip(requests, generations, strict=True):
            expected = forward_log_probs(request.prompt_ids, generation.token_ids)
            assert generation.log_probs == pytest.approx(expected, abs=1e-5)
        prompts = engine.stats.prompt_tokens - before.prompt_tokens
        assert prompts == sum(len(r.prompt_ids) for r in requests)
        requests = [
            replace(r, prompt_ids=r.prompt_ids + g.token_ids + [rng.randrange(7, 500) for _ in range(rng.randrange(9))])
            for r, g in zip(requests, generations, strict=True)
        ]
    assert engine.stats.prefilled_tokens < engine.stats.prompt_tokens / 2


def test_greedy_equals_generate_of_transformers(
    engine_of: Engines, requests_of: Requests, answer: Answer, plain: Any
) -> None:
    import torch

    requests = requests_of(12, temperature=0.0)
    for request, generation in zip(requests, answer(engine_of(), requests), strict=True):
        with torch.no_grad():
            ids = plain.generate(
                torch.tensor([request.prompt_ids]),
                attention_mask=torch.ones(1, len(request.prompt_ids), dtype=torch.long),
                do_sample=False,
                max_new_tokens=request.max_tokens,
            )
        assert generation.token_ids == ids[0, len(request.prompt_ids) :].tolist()


def test_an_output_does_not_depend_on_what_runs_beside_it(
    engine_of: Engines, requests_of: Requests, answer: Answer
) -> None:
    requests, others = requests_of(16, top_p=0.9), requests_of(5, seed=9)
    alone = [answer(engine_of(ends=ENDS), [r])[0] for r in requests]
    assert any(g.token_ids[-1] in ENDS for g in alone) and any(g.token_ids[-1] not in ENDS for g in alone)
    for slots in (1, 3, 8, 64):
        together = engine_of(max_slots=slots, ends=ENDS)
        same(answer(together, requests), alone)
        same(answer(together, requests[::-1]), alone[::-1])  # from cached prefixes now
        same(answer(together, others[:2] + requests[3:9] + others[2:])[2:8], alone[3:9])


def test_the_seed_decides_the_output(engine_of: Engines, requests_of: Requests, answer: Answer) -> None:
    (request,) = requests_of(1)
    longer = replace(request, max_tokens=20)
    first, again, other = answer(engine_of(), [longer, longer, replace(longer, seed=99)])
    assert first == again and first.token_ids != other.token_ids


def test_outputs_end_with_an_end_token_or_at_their_limit(
    engine_of: Engines, requests_of: Requests, answer: Answer
) -> None:
    requests = requests_of(40)
    for request, generation in zip(requests, answer(engine_of(ends=ENDS), requests), strict=True):
        assert 1 <= len(generation.token_ids) <= request.max_tokens
        assert not set(generation.token_ids[:-1]) & set(ENDS)
        assert len(generation.token_ids) == request.max_tokens or generation.token_ids[-1] in ENDS


def test_work_is_counted_exactly(engine_of: Engines, requests_of: Requests, answer: Answer) -> None:
    engine, requests = engine_of(max_slots=3), requests_of(10)
    generations = answer(engine, requests)
    assert engine.stats.sampled_tokens == sum(len(g.token_ids) for g in generations)
    assert engine.stats.prompt_tokens == engine.stats.prefilled_tokens == sum(len(r.prompt_ids) for r in requests)
    assert engine.stats.slot_steps == engine.stats.sampled_tokens - len(
        requests
    )  # the first token comes with the prefill
    assert engine.stats.slot_steps <= 3 * engine.stats.decode_steps


def test_a_continued_session_prefills_only_what_was_added(
    engine_of: Engines, requests_of: Requests, answer: Answer
) -> None:
    engine = engine_of()
    (request,) = requests_of(1)
    (generation,) = answer(engine, [request])
    history = request.prompt_ids + generation.token_ids
    engine.stats = type(engine.stats)()
    answer(engine, [replace(request, prompt_ids=[*history, 50, 51])])
    # the last sampled token was never fed to the model, so it comes with what was added
    assert (engine.stats.prompt_tokens, engine.stats.prefilled_tokens) == (len(history) + 2, 3)


def test_a_history_that_parts_ways_reuses_only_what_it_shares(
    engine_of: Engines, requests_of: Requests, answer: Answer
) -> None:
    engine, (request,) = engine_of(), requests_of(1, seed=4)
    answer(engine, [request])
    middle = len(request.prompt_ids) // 2
    parted = replace(request, prompt_ids=[*request.prompt_ids[:middle], 7, 8, 9], seed=5)
    engine.stats = type(engine.stats)()
    same(answer(engine, [parted]), answer(engine_of(), [parted]))
    assert engine.stats.prefilled_tokens == 3
    shorter = replace(request, prompt_ids=request.prompt_ids[:middle])
    same(answer(engine, [shorter]), answer(engine_of(), [shorter]))


def test_sessions_beyond_the_cache_are_given_up_but_answered_right(
    engine_of: Engines, requests_of: Requests, answer: Answer
) -> None:
    engine, requests = engine_of(max_slots=2), requests_of(9)
    first = answer(engine, requests)
    longer = [replace(r, prompt_ids=r.prompt_ids + g.token_ids + [60]) for r, g in zip(requests, first, strict=True)]
    same(answer(engine, longer), answer(engine_of(), longer))


def test_requests_of_one_session_at_once_do_not_mix(engine_of: Engines, requests_of: Requests, answer: Answer) -> None:
    requests = [replace(r, session="same") for r in requests_of(10)]
    wanted = [answer(engine_of(), [r])[0] for r in requests]
    engine = engine_of(max_slots=4)
    same(answer(engine, requests), wanted)
    same(answer(engine, requests), wanted)


def test_new_weights_answer_after_forget(
    engine_of: Engines, requests_of: Requests, answer: Answer, random_model: Callable[..., Any]
) -> None:
    import torch

    engine, requests = engine_of(), requests_of(6)
    old = answer(engine, requests)
    with torch.no_grad():
        for mine, new in zip(engine.model.parameters(), random_model(1).parameters(), strict=True):
            mine.copy_(new)
    engine.forget()
    new = answer(engine, requests)
    same(new, answer(engine_of(seed=1), requests))
    assert [g.token_ids for g in new] != [g.token_ids for g in old]
    assert engine.stats.prefilled_tokens == engine.stats.prompt_tokens


def test_one_engine_serves_one_event_loop_after_another(
    engine_of: Engines, requests_of: Requests, answer: Answer
) -> None:
    engine, requests = engine_of(), requests_of(5)
    same(answer(engine, requests), answer(engine, requests))
