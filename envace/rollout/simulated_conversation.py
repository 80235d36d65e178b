"""A conversation whose calls an outside LLM answers: acts on a token engine, results from a chat endpoint.

The baseline method `grpo` (docs/training.md). The LLM is asked exactly as a rehearse role on a chat endpoint is. Its
answers are rehearse outputs without token ids: they are recorded, and never trained on.
"""

from __future__ import annotations

import re
from dataclasses import replace

from envace.chat.layout import ChatLayout, Item
from envace.chat.parser import parse_response
from envace.engines.protocol import TokenEngine
from envace.errors import EngineError
from envace.rollout.asking import Ask
from envace.rollout.chat_conversation import ChatConversation, ChatEndpoint
from envace.rollout.conversation import Acted, Rehearsed
from envace.rollout.loop import OnEnd, unfold_in
from envace.rollout.settings import RolloutSettings
from envace.rollout.token_conversation import TokenConversation
from envace.types import Rollout, Task

_CONTROL = re.compile(r"<(?=[|\uff5c]|/?(?:think|tool_call|tool_response)>)")
"""Where text would become a control token of a chat template once it is encoded."""


class SimulatedConversation:
    """See envace.rollout.conversation. `settings.rollout.rehearse` is how the simulator samples."""

    def __init__(
        self,
        task: Task,
        index: int,
        engine: TokenEngine,
        layout: ChatLayout,
        settings: RolloutSettings,
        simulator: ChatEndpoint,
    ) -> None:
        self._policy = TokenConversation(task, index, engine, layout, settings)
        self._simulator = ChatConversation(task, index, simulator, settings)

    def user(self, text: str) -> None:
        """Append the next user message."""
        self._policy.user(text)
        self._simulator.user(text)

    async def act(self, number: int) -> Acted:
        """Let the policy go on."""
        acted = await self._policy.act(number)
        if acted.parsed is not None:
            self._simulator.acted(acted.output.text, acted.parsed)
        return acted

    async def rehearse(self, ask: Ask, number: int) -> Rehearsed:
        """Let the simulator answer a call.

        Raises EngineError where it cannot be reached or gives no JSON object or array: no fault of the policy, so the
        rollout must not be scored.
        """
        answered = await self._simulator.rehearse(ask, number)
        if answered.answer is None or parse_response(answered.answer) is None:
            raise EngineError(f"the simulator answered no whole JSON object or array: {answered.output.text[:200]!r}")
        # inside JSON a "<" stands in a string, where this spelling of it means the same
        safe = _CONTROL.sub(r"\\u003c", answered.answer)
        return replace(answered, answer=safe, item=safe)

    def result(self, item: Item) -> None:
        """Append what answered the next call."""
        self._policy.result(item)
        self._simulator.result(item)


async def unfold_simulated(
    task: Task,
    index: int,
    *,
    engine: TokenEngine,
    layout: ChatLayout,
    simulator: ChatEndpoint,
    settings: RolloutSettings,
    on_end: OnEnd | None = None,
) -> Rollout:
    """Run one rollout to its end (see unfold_in): acts on the engine, calls answered by the simulator."""
    return await unfold_in(
        lambda: SimulatedConversation(task, index, engine, layout, settings, simulator),
        task,
        index,
        settings=settings,
        on_end=on_end,
    )
