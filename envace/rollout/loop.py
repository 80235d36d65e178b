"""Unfolds one task into one rollout: the policy acts, then rehearses the environment's answer (method, section 2).

The loop knows a conversation, not whether it is kept as tokens (training) or as messages (a chat endpoint).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from envace.chat.layout import ChatLayout
from envace.engines.protocol import TokenEngine
from envace.errors import EnvaceError, NotFiniteError
from envace.rollout.answering import Answering
from envace.rollout.conversation import Conversation
from envace.rollout.judging import Scorer, scorer_of
from envace.rollout.limits import Limits, Stop
from envace.rollout.settings import RolloutSettings
from envace.rollout.token_conversation import TokenConversation
from envace.types import Rollout, StepRecord, StopReason, Task, TurnRecord

__all__ = ["OnEnd", "RolloutSettings", "unfold", "unfold_in"]

OnEnd = Callable[[Rollout], None]


async def unfold(
    task: Task,
    index: int,
    *,
    engine: TokenEngine,
    layout: ChatLayout,
    settings: RolloutSettings,
    on_end: OnEnd | None = None,
) -> Rollout:
    """Run one rollout on a token engine to its end. See `unfold_in`."""
    return await unfold_in(
        lambda: TokenConversation(task, index, engine, layout, settings), task, index, settings=settings, on_end=on_end
    )


async def unfold_in(
    open_conversation: Callable[[], Conversation],
    task: Task,
    index: int,
    *,
    settings: RolloutSettings,
    on_end: OnEnd | None = None,
) -> Rollout:
    """Run one rollout to its end in a new conversation. Only cancellation leaves this function as an exception.

    Whatever the engine, the environment or the judge raises, and a rollout that takes longer than
    `rollout.deadline_s`, becomes stop reason `engine_failure` with reward None.

    Args:
        on_end: gets the record however the rollout ends, also when it is cancelled: then its stop reason is
            `cancelled` and its reward None.

    Raises DataError, before anything is sampled, for a task that the settings cannot score.
    """
    scorer = scorer_of(task, settings)
    rollout = Rollout(task_id=task.task_id, rollout_index=index)
    deadline = settings.rollout.deadline_s
    reason, fault = StopReason.ENGINE_FAILURE, ""
    clock = asyncio.timeout(deadline)
    try:
        async with clock:
            reason = await _Loop(task, open_conversation(), settings, scorer, rollout).run()
            await scorer.finish(rollout, reason)
    except asyncio.CancelledError:
        reason = StopReason.CANCELLED
        raise
    except Exception as error:  # one rollout's failure never ends the run
        reason, fault = StopReason.ENGINE_FAILURE, _words(error)
        rollout.not_finite = isinstance(error, NotFiniteError)
        if isinstance(error, TimeoutError) and clock.expired():
            fault = f"the rollout took longer than rollout.deadline_s ({deadline:g} s) and was stopped"
    finally:
        rollout.stop_reason, rollout.error = reason, fault
        if on_end is not None:
            on_end(rollout)
    return rollout


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, EnvaceError) else f"{type(error).__name__}: {error}"


class _Loop:
    """One rollout on its way."""

    def __init__(
        self, task: Task, conversation: Conversation, settings: RolloutSettings, scorer: Scorer, rollout: Rollout
    ) -> None:
        self._task, self._conversation, self._scorer, self._rollout = task, conversation, scorer, rollout
        self._limits = Limits(settings.rollout)
        self._answering = Answering(task, conversation, settings, rollout)

    async def run(self) -> StopReason:
        """All turns of the task, or as many as there are before something stops the rollout."""
        try:
            for turn in self._task.turns:
                record = TurnRecord(turn_index=turn.turn_index, user_message=turn.user_message)
                self._rollout.turns.append(record)
                self._conversation.user(turn.user_message)
                while record.reply is None:
                    await self._act(record)
                await self._scorer.end_turn(self._rollout.turns)
        except Stop as stop:
            return stop.reason
        return StopReason.COMPLETED

    async def _act(self, record: TurnRecord) -> None:
        """One act output and what answers its calls. An output without calls is the reply that ends the turn."""
        self._limits.begin_act()
        acted = await self._conversation.act(len(self._rollout.outputs))
        self._rollout.outputs.append(acted.output)
        if acted.parsed is None:
            raise Stop(StopReason.OUTPUT_TRUNCATED)
        step = StepRecord(acted.parsed.reasoning, acted.parsed.reply)
        record.steps.append(step)
        fault = self._limits.fault_of(acted.parsed)
        if fault is not None:
            self._answering.refuse(step, fault)
        elif acted.parsed.calls:
            await self._answering.answer(step, acted.parsed.calls, record.turn_index)
        else:
            record.reply = acted.parsed.reply
