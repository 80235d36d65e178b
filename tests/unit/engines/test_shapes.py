"""What is generated does not depend, to the last bit, on what is generated beside it, nor on when requests come in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from envace.engines.cpu import CpuEngine
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.shapes import padded

LENGTH = 600


def requests(count: int, low: int = 3, high: int = 540) -> list[GenerationRequest]:
    rng = random.Random(0)
    common = [rng.randrange(7, 500) for _ in range(40)]
    made = []
    for i in range(count):
        own = [rng.randrange(7, 500) for _ in range(rng.randrange(low, high))]
        prompt = [*common, *own][-high:] if i % 2 else own
        made.append(GenerationRequest(f"s{i}", prompt, rng.randrange(1, 30), 1.0, 0.9 if i % 3 else 1.0, seed=i))
    return made


def generate(model: Any, asked: Sequence[GenerationRequest], slots: int, rng: random.Random | None) -> list[Generation]:
    """All requests on a new engine; with `rng` in random order and at random moments. In the order of `asked`."""
    engine = CpuEngine(model, max_slots=slots, max_length=LENGTH)

    async def one(request: GenerationRequest) -> Generation:
        for _ in range(rng.randrange(40) if rng else 0):
            await asyncio.sleep(0)
        return await engine.generate(request)

    async def run() -> list[Generation]:
        order = list(range(len(asked)))
        if rng:
            rng.shuffle(order)
        found = await asyncio.gather(*(one(asked[i]) for i in order))
        return [g for _, g in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]

    return asyncio.run(run())


@pytest.mark.parametrize("slots", [1, 3, 16])
def test_every_bit_is_the_same_alone_and_in_any_company(random_model: Callable[..., Any], slots: int) -> None:
    torch.set_num_threads(1)
    asked, model = requests(16), random_model().eval()
    alone = [generate(model, [request], 1, None)[0] for request in asked]
    for seed in range(3):
        together = generate(model, asked, slots, random.Random(seed))
        assert [g.token_ids for g in together] == [g.token_ids for g in alone]
        assert [g.log_probs for g in together] == [g.log_probs for g in alone]


def test_a_prompt_gives_the_same_bits_from_the_cache_and_from_its_beginning(random_model: Callable[..., Any]) -> None:
    """However much of a prompt another one has left in the cache, one token or hundreds remaining."""
    torch.set_num_threads(1)
    model = random_model().eval()
    (whole,) = requests(1, low=300, high=301)
    (wanted,) = generate(model, [whole], 4, None)
    for left in (1, 2, 3, 4, 5, 33, 250):
        beginning = GenerationRequest("other", whole.prompt_ids[: -left or None], 1, 1.0, 1.0, seed=9)
        engine = CpuEngine(model, max_slots=4, max_length=LENGTH)

        async def both(engine: CpuEngine = engine, beginning: GenerationRequest = beginning) -> Generation:
            await engine.generate(beginning)
            return await engine.generate(whole)

        found = asyncio.run(both())
        assert engine.stats.prefilled_tokens < 2 * len(whole.prompt_ids) - left + 2, "the cache was used"
        assert (found.token_ids, found.log_probs) == (wanted.token_ids, wanted.log_probs), left


def test_padding_reaches_the_next_multiple() -> None:
    assert [padded(n, 4) for n in (1, 4, 5, 8)] == [4, 4, 8, 8]
