"""A CPU engine around any transformers causal LM: continuous batching over slots of one preallocated KV cache.

A finished output frees its slot at once and the next waiting request takes it, so no rollout waits for the slowest.
The history of a rollout stays cached between its outputs, so its next prompt costs only what was added since, and a
prompt that begins like any other one in the cache costs only what is new in it.

transformers 5.9 has continuous batching of its own (`generate_batch`), which is right on a CPU: the same greedy tokens
for 32 prompts, log-probabilities equal to 5e-6. It is not used since all its requests draw from one seed, and since it
took 1.0 to 1.4 s where this engine took 0.6 s (tiny policy, one thread, its manager kept alive and warm).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import torch

from envace.engines.attention import use_grouped_attention
from envace.engines.kv_slots import SlotCache
from envace.engines.prefixes import PrefixTable, followers, passes
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.sampling import sample_tokens
from envace.engines.shapes import DECODE_WIDTH, FEWEST_ROWS, PREFILL_WIDTH, padded
from envace.errors import EngineError


@dataclass(slots=True)
class EngineStats:
    """Work counters: exact, unlike times. Prompt tokens that were not prefilled came from cached rows."""

    prompt_tokens: int = 0
    prefilled_tokens: int = 0
    sampled_tokens: int = 0
    decode_steps: int = 0
    slot_steps: int = 0


@dataclass(slots=True)
class _Running:
    request: GenerationRequest
    future: asyncio.Future[Generation]
    draws: torch.Tensor
    weights: int  # which weights its cached keys and values come from
    cached: int = 0  # tokens whose keys and values are in this output's row
    token_ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)

    def pending(self) -> list[int]:
        """The tokens to feed next: what of the prompt is not cached yet, or the last sampled one."""
        return self.token_ids[-1:] or self.request.prompt_ids[self.cached :]


class CpuEngine:
    """TokenEngine on a transformers model in this process.

    Args:
        model: a causal LM in evaluation mode, for this engine alone (its attention is switched). After its weights
            change in place, call `forget`.
        max_slots: how many outputs are generated side by side; further requests wait.
        max_length: longest prompt plus output in tokens.
        reuse_prefixes: False computes every prompt from its beginning (to measure what reuse saves).
    """

    def __init__(
        self, model: Any, *, max_slots: int = 64, max_length: int | None = None, reuse_prefixes: bool = True
    ) -> None:
        use_grouped_attention(model)
        self.model = model
        eos = model.generation_config.eos_token_id
        self._stop = frozenset([eos] if isinstance(eos, int) else eos or [])
        if not self._stop:
            raise EngineError("the model's generation_config names no eos_token_id, so outputs could never end")
        self._limit = max_length or model.config.max_position_embeddings
        self._max_slots = max_slots
        self._reuse = reuse_prefixes
        self._weights = 0
        rows = max(2 * max_slots, FEWEST_ROWS)
        self._cache = SlotCache(model.config, rows, padded(self._limit, PREFILL_WIDTH))
        self._prefixes = PrefixTable(range(max_slots, 2 * max_slots))
        self._waiting: list[_Running] = []
        self._running: list[_Running] = []
        self._ended: list[_Running] = []
        self._driver: asyncio.Task[None] | None = None
        self.stats = EngineStats()

    async def generate(self, request: GenerationRequest) -> Generation:
        """Sample one output. Raises EngineError where the request cannot fit, its time is up, or the model fails."""
        length, more = len(request.prompt_ids), request.max_tokens
        if length < 1 or more < 1 or length + more > self._limit:
            raise EngineError(
                f"prompt of {length} + {more} new tokens: each must be 1 or more, both {self._limit} at most"
            )
        generator = torch.Generator().manual_seed(request.seed)
        draws = torch.rand(request.max_tokens, generator=generator, dtype=torch.float64)
        future: asyncio.Future[Generation] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Running(request, future, draws, self._weights))
        if self._driver is None or self._driver.done():
            self._driver = asyncio.create_task(self._drive())
        try:
            async with asyncio.timeout(request.deadline_s):
                return await future
        except TimeoutError:
            raise EngineError(f"no output within {request.deadline_s:g} s") from None

    @property
    def max_length(self) -> int:
        """Longest prompt plus output, in tokens."""
        return self._limit

    def forget(self) -> None:
        """Drop all cached prefixes. Call after the model's weights changed."""
        self._weights += 1  # what is still running may end, but its row serves no other
        self._prefixes.clear()

    async def _drive(self) -> None:
        try:
            while self._waiting or self._running:
                self._drop_abandoned()
                free = self._max_slots - len(self._running)
                joining, self._waiting = self._waiting[:free], self._waiting[free:]
                await asyncio.to_thread(self._step, joining)
                self._deliver()
                await asyncio.sleep(0)  # let the rollouts that just got an answer ask for more
        except asyncio.CancelledError:  # a step may still be under way in its thread, so the lists are left alone
            self._fail([*self._running, *self._waiting], "the engine was stopped")
            raise
        except Exception as error:  # every waiting rollout must learn of it, whatever it is
            self._deliver()  # what had ended before the fault is whole
            failed, self._running, self._waiting = [*self._running, *self._waiting], [], []
            self._fail(failed, f"{type(error).__name__}: {error}")

    def _fail(self, runs: list[_Running], reason: str) -> None:
        for run in runs:
            if not run.future.done():
                run.future.set_exception(EngineError(reason))

    def _deliver(self) -> None:
        ended, self._ended = self._ended, []
        for run in ended:
            if not run.future.done():
                run.future.set_result(Generation(run.token_ids, run.log_probs))

    def _drop_abandoned(self) -> None:
        self._waiting = [r for r in self._waiting if not r.future.done()]
        for slot in reversed(range(len(self._running))):
            if self._running[slot].future.done():
                self._free(slot)

    @torch.inference_mode()
    def _step(self, joining: list[_Running]) -> None:
        """Prefill the joining requests, then decode one token in every slot."""
        for wave in self._waves(joining):
            self._prefill(wave)
        if self._running:
            self.stats.decode_steps += 1
            self.stats.slot_steps += len(self._running)
            self._sample(0, self._feed(0, prefill=False))

    def _waves(self, joining: list[_Running]) -> list[list[list[_Running]]]:
        """Requests by prompt: first those whose prompts are computed, then those that copy most of theirs from them."""
        alike: dict[Any, list[_Running]] = {}
        for run in joining:
            alike.setdefault(tuple(run.request.prompt_ids) if self._reuse else id(run), []).append(run)
        groups = list(alike.values())
        prompts = [group[0].request.prompt_ids for group in groups]
        late = followers(prompts, [self._match(group[0])[1] for group in groups]) if self._reuse else set()
        waves = []
        for second in (False, True):
            wave = [group for i, group in enumerate(groups) if (i in late) is second]
            waves += [wave[part] for part in passes([len(group[0].request.prompt_ids) for group in wave])]
        return waves

    def _prefill(self, wave: list[list[_Running]]) -> None:
        """Compute each group's prompt once, copy its row for the others of the group, and sample in every row."""
        first = len(self._running)
        self._running.extend(group[0] for group in wave)
        for slot, group in enumerate(wave, start=first):
            self._reuse_prefix(slot, group[0])
        hidden, source = self._feed(first, prefill=True), list(range(len(wave)))
        for index, (original, *others) in enumerate(wave):
            for run in others:
                self._cache.copy_row(first + index, len(self._running), original.cached)
                run.cached, run.weights = original.cached, original.weights
                self._running.append(run)
                source.append(index)
            self.stats.prompt_tokens += len(others) * len(original.request.prompt_ids)
        self._sample(first, hidden[source])

    def _match(self, run: _Running) -> tuple[int, int]:
        """(row, tokens) of the longest cached beginning of a prompt, among parked and running rows."""
        if not self._reuse:
            return 0, 0
        held = (
            (slot, other.request.prompt_ids)
            for slot, other in enumerate(self._running)
            if other.weights == self._weights and other.cached >= len(other.request.prompt_ids)
        )
        return self._prefixes.match(run.request.session, run.request.prompt_ids, held)

    def _reuse_prefix(self, slot: int, run: _Running) -> None:
        prompt = run.request.prompt_ids
        row, run.cached = self._match(run)
        run.weights = self._weights
        if run.cached:
            self._cache.copy_row(row, slot, run.cached)
        self.stats.prompt_tokens += len(prompt)
        self.stats.prefilled_tokens += len(prompt) - run.cached

    def _feed(self, first: int, *, prefill: bool) -> torch.Tensor:
        """Feed the pending tokens of slots `first`..; the last hidden state of each, (slots, hidden size).

        Padded (envace.engines.shapes): a prefill in its queries, a decoding step, which has one query, in its rows.
        """
        runs = self._running[first:]
        pending = [r.pending() for r in runs]
        rows = len(runs) if prefill else max(len(runs), FEWEST_ROWS)
        more = [0] * (rows - len(runs))
        lengths = torch.tensor([len(p) for p in pending] + more)
        start = torch.tensor([r.cached for r in runs] + more)
        queries = torch.arange(padded(int(lengths.max()), FEWEST_ROWS) if prefill else 1)
        ids = torch.zeros(rows, len(queries), dtype=torch.long)
        for row, tokens in enumerate(pending):
            ids[row, : len(tokens)] = torch.tensor(tokens)
        positions = start[:, None] + queries
        width = padded(int((start + lengths).max()), PREFILL_WIDTH if prefill else DECODE_WIDTH)
        self._cache.plan(slice(first, first + rows), positions, queries < lengths[:, None], width)
        mask = (torch.arange(width) <= positions[:, :, None])[:, None]
        hidden = self.model.base_model(
            input_ids=ids,
            position_ids=positions.clamp(max=self._limit - 1),
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
        ).last_hidden_state[torch.arange(len(runs)), lengths[: len(runs)] - 1]
        for run, tokens in zip(runs, pending, strict=True):
            run.cached += len(tokens)
        return hidden

    def _sample(self, first: int, hidden: torch.Tensor) -> None:
        """Sample one token in each of the slots `first`.., and end what is finished."""
        runs = self._running[first:]
        enough = torch.nn.functional.pad(hidden, (0, 0, 0, max(0, FEWEST_ROWS - len(runs))))
        tokens, log_probs = sample_tokens(
            self.model.get_output_embeddings()(enough)[: len(runs)].float(),
            temperature=torch.tensor([r.request.temperature for r in runs]),
            top_p=torch.tensor([r.request.top_p for r in runs]),
            draws=torch.stack([r.draws[len(r.token_ids)] for r in runs]),
        )
        self.stats.sampled_tokens += len(runs)
        for offset, (token, log_prob) in reversed(
            list(enumerate(zip(tokens.tolist(), log_probs.tolist(), strict=True)))
        ):
            run = runs[offset]
            run.token_ids.append(token)
            run.log_probs.append(log_prob)
            if token in self._stop or len(run.token_ids) >= run.request.max_tokens:
                self._ended.append(run)
                self._park(first + offset, run)
                self._free(first + offset)

    def _park(self, slot: int, run: _Running) -> None:
        if not self._reuse or run.weights != self._weights:
            return
        ids = [*run.request.prompt_ids, *run.token_ids][: run.cached]
        self._cache.copy_row(slot, self._prefixes.park(run.request.session, ids), run.cached)

    def _free(self, slot: int) -> None:
        last = self._running.pop()
        if slot < len(self._running):
            self._cache.copy_row(len(self._running), slot, last.cached)
            self._running[slot] = last
