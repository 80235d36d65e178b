"""The honest peer of the rollout benchmarks: all rollouts take one micro-step together, in padded batches.

A micro-step starts when every rollout that is still going waits for its next output. The requests are sorted by the
length of their prompts (which is kind to the peer), cut into batches of the engine's size, left-padded, and each batch
runs until its longest output is done; rows that are done are computed on. Keys and values are cached within an output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.sampling import sample_tokens

Result = TypeVar("Result")


@dataclass(slots=True)
class LockStepStats:
    """Work counters. A decode step is a forward pass that gives each row of a batch one token after its first."""

    decode_steps: int = 0
    prefilled_tokens: int = 0
    sampled_tokens: int = 0
    slot_steps: int = 0  # rows of each decode step, done or not


class LockStepEngine:
    """A TokenEngine for rollouts that run under `together`. `max_rows` is the batch size."""

    def __init__(self, model: Any, max_rows: int) -> None:
        self._model, self._rows = model, max_rows
        self._going = 0
        self._waiting: list[tuple[GenerationRequest, asyncio.Future[Generation]]] = []
        self.stats = LockStepStats()

    async def together(self, rollouts: Sequence[Awaitable[Result]]) -> list[Result]:
        """Run rollouts to their ends, micro-step by micro-step."""
        self._going = len(rollouts)

        async def one(rollout: Awaitable[Result]) -> Result:
            try:
                return await rollout
            finally:
                self._going -= 1
                self._step_if_all_wait()

        return list(await asyncio.gather(*map(one, rollouts)))

    async def generate(self, request: GenerationRequest) -> Generation:
        """Waits until all the others wait too."""
        future: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        self._step_if_all_wait()
        return await future

    def _step_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._going:
            return
        ordered, self._waiting = sorted(self._waiting, key=lambda w: len(w[0].prompt_ids)), []
        for start in range(0, len(ordered), self._rows):
            batch = ordered[start : start + self._rows]
            for (_, future), made in zip(batch, self._batch([r for r, _ in batch]), strict=True):
                future.set_result(made)

    @torch.inference_mode()
    def _batch(self, requests: list[GenerationRequest]) -> list[Generation]:
        longest, width = max(r.max_tokens for r in requests), max(len(r.prompt_ids) for r in requests)
        ids = torch.zeros(len(requests), width, dtype=torch.long)
        mask = torch.zeros(len(requests), width + longest, dtype=torch.long)
        mask[:, width:] = 1
        draws = torch.zeros(len(requests), longest, dtype=torch.float64)
        for row, r in enumerate(requests):
            ids[row, width - len(r.prompt_ids) :] = torch.tensor(r.prompt_ids)
            mask[row, width - len(r.prompt_ids) : width] = 1
            drawn = torch.rand(r.max_tokens, generator=torch.Generator().manual_seed(r.seed), dtype=torch.float64)
            draws[row, : r.max_tokens] = drawn
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        made = [Generation([], []) for _ in requests]
        temperature = torch.tensor([r.temperature for r in requests])
        top_p = torch.tensor([r.top_p for r in requests])
        cache, fed, start = None, ids, 0
        for step in range(longest):
            end = width + step
            out = self._model(
                input_ids=fed,
                attention_mask=mask[:, :end],
                position_ids=positions[:, start:end],
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache, start = out.past_key_values, end
            tokens, log_probs = sample_tokens(
                out.logits[:, -1].float(), temperature=temperature, top_p=top_p, draws=draws[:, step]
            )
            fed = tokens[:, None]
            for row, r in enumerate(requests):
                if step < r.max_tokens:
                    made[row].token_ids.append(int(tokens[row]))
                    made[row].log_probs.append(float(log_probs[row]))
        self.stats.decode_steps += longest - 1  # the first token comes with the prompt
        self.stats.prefilled_tokens += len(requests) * width
        self.stats.slot_steps += (longest - 1) * len(requests)
        self.stats.sampled_tokens += sum(r.max_tokens for r in requests)
        return made
