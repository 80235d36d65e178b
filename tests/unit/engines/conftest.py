"""Runs requests on a CPU engine, and the same policy in plain transformers to compare with."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from envace.engines.cpu import CpuEngine
from envace.engines.protocol import Generation, GenerationRequest


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """As in training: one thread, so that runs compare."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def plain(random_model: Callable[..., Any]) -> Any:
    """The policy in transformers, untouched by any engine."""
    return random_model()


@pytest.fixture
def engine_of(random_model: Callable[..., Any]) -> Callable[..., CpuEngine]:
    """Makes an engine on the same weights. `ends` are tokens that end an output, besides the end token."""

    def make(max_slots: int = 8, max_length: int = 400, ends: Sequence[int] = (), seed: int = 0) -> CpuEngine:
        model = random_model(seed)
        model.generation_config.eos_token_id = [model.config.eos_token_id, *ends]
        return CpuEngine(model, max_slots=max_slots, max_length=max_length)

    return make


def ask(
    prompt: Sequence[int],
    *,
    seed: int = 0,
    tokens: int = 12,
    temperature: float = 1.0,
    top_p: float = 1.0,
    session: str,
) -> GenerationRequest:
    return GenerationRequest(session, list(prompt), tokens, temperature, top_p, seed)


@pytest.fixture(scope="session")
def requests_of() -> Callable[..., list[GenerationRequest]]:
    """Makes so many requests of different lengths, each of its own session."""

    def make(count: int, *, seed: int = 0, **more: Any) -> list[GenerationRequest]:
        rng = random.Random(seed)
        made = []
        for i in range(count):
            prompt = [rng.randrange(7, 500) for _ in range(rng.randrange(1, 120))]
            made.append(ask(prompt, seed=seed * 1000 + i, tokens=rng.randrange(1, 30), session=f"s{seed}-{i}", **more))
        return made

    return make


@pytest.fixture(scope="session")
def answer() -> Callable[..., list[Generation]]:
    """Sends requests all at once and waits for all answers."""

    def run(engine: CpuEngine, requests: Sequence[GenerationRequest]) -> list[Generation]:
        async def main() -> list[Generation]:
            return list(await asyncio.gather(*(engine.generate(r) for r in requests)))

        return asyncio.run(main())

    return run


@pytest.fixture(scope="session")
def forward_log_probs(plain: Any) -> Callable[..., list[float]]:
    """Log-probabilities of sampled ids by one plain forward pass over prompt and output."""

    def compute(
        prompt: Sequence[int], sampled: Sequence[int], temperature: float = 1.0, model: Any = None
    ) -> list[float]:
        import torch

        with torch.no_grad():
            logits = (model or plain)(torch.tensor([[*prompt, *sampled]])).logits[0, len(prompt) - 1 : -1]
        return (logits / temperature).log_softmax(-1).gather(1, torch.tensor(sampled)[:, None])[:, 0].tolist()

    return compute
