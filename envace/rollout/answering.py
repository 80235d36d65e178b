"""Who answers the calls of one act output, and in which order: code that refuses, a true environment, or rehearsals."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from envace.chat.layout import Item
from envace.chat.parser import parse_response
from envace.errors import NotFiniteError
from envace.files import compact_json
from envace.rollout.asking import Ask
from envace.rollout.conversation import Conversation, Rehearsed
from envace.rollout.limits import Stop
from envace.rollout.settings import RolloutSettings
from envace.tools.validation import error_observation, validate_call
from envace.types import Observation, Rollout, StepRecord, StopReason, Task, ToolCall


@dataclass(frozen=True, slots=True)
class Answering:
    """Answers for one rollout."""

    task: Task
    conversation: Conversation
    settings: RolloutSettings
    rollout: Rollout

    async def answer(self, step: StepRecord, calls: list[ToolCall], turn_index: int) -> None:
        """Answer all calls of an output and record it. Raises Stop where a rehearsal ends the rollout."""
        if self.settings.rollout.parallel_calls == "sequential":
            await self._one_after_the_other(step, calls, turn_index)
        else:
            await self._at_the_same_time(step, calls, turn_index)

    def refuse(self, step: StepRecord, fault: str) -> None:
        """Answer, by code, an output that holds no usable call."""
        message = error_observation(fault)
        self._give(step, Observation(None, message, "code"), message)

    async def _one_after_the_other(self, step: StepRecord, calls: list[ToolCall], turn_index: int) -> None:
        for position, call in enumerate(calls):
            step.calls.append(call)
            if known := self._without_rehearsal(call):
                self._give(step, known, known.content)
                continue
            ask = Ask(turn_index, tuple(calls), position, sees_results=True)
            rehearsed = await self.conversation.rehearse(ask, len(self.rollout.outputs))
            self.rollout.outputs.append(rehearsed.output)
            self._give_rehearsed(step, call, rehearsed)

    async def _at_the_same_time(self, step: StepRecord, calls: list[ToolCall], turn_index: int) -> None:
        step.calls.extend(calls)
        known = [self._without_rehearsal(call) for call in calls]
        asks = [Ask(turn_index, tuple(calls), i, sees_results=False) for i, k in enumerate(known) if k is None]
        found = await self._rehearse_all(asks)
        if broken := next((r for r in found if isinstance(r, NotFiniteError)), None):
            raise broken  # whatever the calls before it came to
        rehearsals = iter(found)
        for call, observation in zip(calls, known, strict=True):
            if observation is not None:
                self._give(step, observation, observation.content)
                continue
            rehearsed = next(rehearsals)
            if isinstance(rehearsed, BaseException):
                raise rehearsed
            self._give_rehearsed(step, call, rehearsed)

    async def _rehearse_all(self, asks: list[Ask]) -> list[Rehearsed | BaseException]:
        """Rehearse side by side; one that fails ends no other. Outputs are recorded in the order of the calls, also
        those that had ended when all of it is cancelled."""
        first = len(self.rollout.outputs)
        tasks = [asyncio.ensure_future(self.conversation.rehearse(ask, first + i)) for i, ask in enumerate(asks)]
        try:
            return await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            ended = [t for t in tasks if t.done() and not t.cancelled() and t.exception() is None]
            self.rollout.outputs.extend(t.result().output for t in ended)

    def _without_rehearsal(self, call: ToolCall) -> Observation | None:
        """What code or a true environment answers; None where the rehearse role must."""
        fault = validate_call(call, self.task) if self.settings.rollout.validation == "code" else None
        if fault is not None:
            return Observation(call, error_observation(fault), "code")
        if self.settings.environment is None:
            return None
        answer = self.settings.environment.respond(call.tool_name, call.parsed())
        return Observation(call, compact_json(answer), "environment")

    def _give_rehearsed(self, step: StepRecord, call: ToolCall, rehearsed: Rehearsed) -> None:
        if rehearsed.answer is None:
            raise Stop(StopReason.OUTPUT_TRUNCATED)
        if parse_response(rehearsed.answer) is None:
            raise Stop(StopReason.INVALID_REHEARSAL)
        self._give(step, Observation(call, rehearsed.answer, "rehearsed"), rehearsed.item)

    def _give(self, step: StepRecord, observation: Observation, item: Item) -> None:
        step.observations.append(observation)
        self.conversation.result(item)
