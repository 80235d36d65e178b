"""A conversation on a token engine: every prompt is spliced, every sampled id recorded. What training uses."""

from __future__ import annotations

import math

from envace.chat.history import TokenHistory
from envace.chat.layout import ChatLayout, Item
from envace.chat.parser import answer_start, parse_act
from envace.config import SamplingParams
from envace.engines.protocol import GenerationRequest, TokenEngine
from envace.errors import EngineError, NotFiniteError
from envace.rollout.asking import Ask, note_for
from envace.rollout.conversation import Acted, Rehearsed
from envace.rollout.limits import Stop
from envace.rollout.prefixes import ComputedPrefixes
from envace.rollout.seeds import derive_seed
from envace.rollout.settings import RolloutSettings
from envace.types import Output, Role, StopReason, Task, ToolCall


class TokenConversation:
    """See envace.rollout.conversation. Raises EngineError where the layout does not allow the settings."""

    def __init__(
        self, task: Task, index: int, engine: TokenEngine, layout: ChatLayout, settings: RolloutSettings
    ) -> None:
        self._task, self._index = task, index
        self._engine, self._layout, self._settings = engine, layout, settings
        self._params = params = settings.rollout
        self._history = TokenHistory(layout, params.keep_reasoning, params.role_prompts)
        self._computed = ComputedPrefixes()
        self._turn = -1

    def user(self, text: str) -> None:
        """Append the next user message; the first one comes with the system prompt and the tools."""
        self._turn += 1
        if self._turn == 0:
            self._history.open(self._task)
        else:
            self._history.user(text)

    async def act(self, number: int) -> Acted:
        """Let the act role go on."""
        params, layout = self._params, self._layout
        prompt = self._history.act_prompt()
        output = await self._generate(Role.ACT, prompt, params.max_act_tokens, params.act, number)
        if not layout.finished(output.token_ids):
            return Acted(output, None)
        parsed = parse_act(output.text, layout.opens_reasoning)
        self._history.act(output.token_ids, parsed.thoughts)
        return Acted(output, parsed)

    async def rehearse(self, ask: Ask, number: int) -> Rehearsed:
        """Let the rehearse role answer a call."""
        params, layout = self._params, self._layout
        note = note_for(params, self._task, ask)
        prompt = self._history.rehearse_prompt(note, with_results=ask.sees_results)
        limit, sampling = params.max_rehearse_tokens, params.rehearse
        output = await self._generate(Role.REHEARSE, prompt, limit, sampling, number, ask.call)
        start = answer_start(output.text)
        kept = layout.cut(output.token_ids, [(0, start)] if start else [])
        return Rehearsed(output, layout.text(kept) if layout.finished(output.token_ids) else None, kept)

    def result(self, item: Item) -> None:
        """Append what answered the next call."""
        self._history.result(item)

    async def _generate(
        self,
        role: Role,
        prompt: list[int],
        max_tokens: int,
        sampling: SamplingParams,
        number: int,
        call: ToolCall | None = None,
    ) -> Output:
        if len(prompt) > self._params.max_prompt_tokens:
            raise Stop(StopReason.CONTEXT_OVERFLOW)
        task_id = self._task.task_id
        request = GenerationRequest(
            session=f"{task_id}#{self._index}",
            prompt_ids=prompt,
            max_tokens=max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=derive_seed(self._settings.seed, task_id, self._index, number),
            role=role,
        )
        shared = self._computed.shared(prompt)
        sampled = await self._engine.generate(request)
        if not sampled.token_ids or len(sampled.token_ids) != len(sampled.log_probs):
            raise EngineError("the engine gave no tokens, or not one log-probability for each")
        if not all(map(math.isfinite, sampled.log_probs)):
            raise NotFiniteError("the engine gave a log-probability that is no finite number")
        self._computed.add(prompt, sampled.token_ids)
        return Output(
            role=role,
            turn_index=self._turn,
            prompt_ids=prompt,
            token_ids=sampled.token_ids,
            log_probs=sampled.log_probs,
            text=self._layout.text(sampled.token_ids),
            call=call,
            shared_tokens=shared,
            engine_fields=sampled.fields,
        )
