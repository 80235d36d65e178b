"""Unfolds one task into one rollout: the policy acts, then rehearses the environment's answer (method, section 2)."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from envace.chat.layout import ChatLayout
from envace.chat.parser import parse_act, parse_response
from envace.config import RewardParams, RolloutParams, SamplingParams
from envace.engines.protocol import Environment, GenerationRequest, TokenEngine
from envace.errors import DataError, EngineError
from envace.files import compact_json
from envace.rewards.outcome import score_turn
from envace.rollout.seeds import derive_seed
from envace.tools.validation import error_observation, validate_call
from envace.types import Observation, Output, Role, Rollout, StopReason, Task, ToolCall, TurnRecord


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What a rollout needs besides its task. `environment` set: its answers replace the rehearse role's.

    `seed` is any label; with the task and the rollout's index it fixes every draw.
    """

    rollout: RolloutParams
    reward: RewardParams
    seed: int | str
    environment: Environment | None = None


class _Stop(Exception):
    """Ends the unfolding with a reason; internal to this module."""

    def __init__(self, reason: StopReason) -> None:
        self.reason = reason


async def unfold(
    task: Task, index: int, *, engine: TokenEngine, layout: ChatLayout, settings: RolloutSettings
) -> Rollout:
    """Run one rollout to its end. Only cancellation leaves this function as an exception.

    Whatever the engine or the environment raises becomes stop reason `engine_failure` with reward None. Raises
    DataError for a task whose reward code cannot decide.
    """
    if task.outcome is None:
        raise DataError(f"task {task.task_id}: no verifiable outcome, so code cannot score it")
    unfolding = _Unfolding(task, index, engine, layout, settings)
    rollout = unfolding.rollout
    try:
        await unfolding.run()
        rollout.stop_reason = StopReason.COMPLETED
    except _Stop as stop:
        rollout.stop_reason = stop.reason
    except EngineError as error:
        rollout.stop_reason, rollout.error = StopReason.ENGINE_FAILURE, str(error)
    except asyncio.CancelledError:
        rollout.stop_reason = StopReason.CANCELLED
        raise
    except Exception as error:  # one rollout's failure never ends the run
        rollout.stop_reason, rollout.error = StopReason.ENGINE_FAILURE, f"{type(error).__name__}: {error}"
    unfolding.score()
    return rollout


class _Unfolding:
    """The state of one rollout: its history as token ids, and its record."""

    def __init__(
        self, task: Task, index: int, engine: TokenEngine, layout: ChatLayout, settings: RolloutSettings
    ) -> None:
        self.task, self.engine, self.layout, self.settings = task, engine, layout, settings
        self.rollout = Rollout(task_id=task.task_id, rollout_index=index)
        self.history: list[int] = []
        self.act_outputs = 0
        self.invalid_in_a_row = 0

    async def run(self) -> None:
        for turn in self.task.turns:
            if turn.turn_index == 0:
                self.history = self.layout.opening(self.task)
            else:
                self.history = self.history + self.layout.user(turn.user_message)
            record = TurnRecord(turn_index=turn.turn_index, user_message=turn.user_message)
            self.rollout.turns.append(record)
            while record.reply is None:
                await self._act(record)

    async def _act(self, record: TurnRecord) -> None:
        limits = self.settings.rollout
        if self.act_outputs >= limits.max_outputs:
            raise _Stop(StopReason.MAX_OUTPUTS)
        self.act_outputs += 1
        header = self.layout.act_header
        output = await self._generate(Role.ACT, header, limits.max_act_tokens, limits.act, record)
        parsed = parse_act(output.text)
        self.history = self.history + header + self.layout.closed(output.token_ids)
        error = str(parsed.error) if parsed.error else None
        if error is None and len(parsed.calls) > limits.max_parallel_calls:
            error = f"at most {limits.max_parallel_calls} calls at once"
        if error is not None:
            self.invalid_in_a_row += 1
            if self.invalid_in_a_row >= limits.max_invalid_calls:
                raise _Stop(StopReason.INVALID_CALL)
            self._observe(record, None, error_observation(error), "code")
            return
        self.invalid_in_a_row = 0
        if not parsed.calls:
            record.reply = parsed.reply
            return
        for call in parsed.calls:
            await self._respond(record, call)

    async def _respond(self, record: TurnRecord, call: ToolCall) -> None:
        record.calls.append(call)
        fault = validate_call(call, self.task) if self.settings.rollout.validation == "code" else None
        if fault is not None:
            self._observe(record, call, error_observation(fault), "code")
        elif self.settings.environment is not None:
            answer = self.settings.environment.respond(call.tool_name, call.parsed())
            self._observe(record, call, compact_json(answer), "environment")
        else:
            await self._rehearse(record, call)

    async def _rehearse(self, record: TurnRecord, call: ToolCall) -> None:
        limits, header = self.settings.rollout, self.layout.rehearse_header
        output = await self._generate(Role.REHEARSE, header, limits.max_rehearse_tokens, limits.rehearse, record, call)
        if parse_response(output.text) is None:
            raise _Stop(StopReason.INVALID_REHEARSAL)
        self.history = self.history + header + self.layout.closed(output.token_ids)
        record.observations.append(Observation(call, output.text, "rehearsed"))

    async def _generate(
        self,
        role: Role,
        header: list[int],
        max_tokens: int,
        sampling: SamplingParams,
        record: TurnRecord,
        call: ToolCall | None = None,
    ) -> Output:
        prompt = self.history + header
        if len(prompt) > self.settings.rollout.max_prompt_tokens:
            raise _Stop(StopReason.CONTEXT_OVERFLOW)
        task_id, index = self.task.task_id, self.rollout.rollout_index
        request = GenerationRequest(
            session=f"{task_id}#{index}",
            prompt_ids=prompt,
            max_tokens=max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=derive_seed(self.settings.seed, task_id, index, len(self.rollout.outputs)),
        )
        sampled = await self.engine.generate(request)
        if not sampled.token_ids or len(sampled.token_ids) != len(sampled.log_probs):
            raise EngineError("the engine gave no tokens, or not one log-probability for each")
        if not all(map(math.isfinite, sampled.log_probs)):
            raise EngineError("the engine gave a log-probability that is no finite number")
        output = Output(
            role=role,
            turn_index=record.turn_index,
            prompt_ids=prompt,
            token_ids=sampled.token_ids,
            log_probs=sampled.log_probs,
            text=self.layout.text(sampled.token_ids),
            call=call,
            engine_fields=sampled.fields,
        )
        self.rollout.outputs.append(output)
        if not self.layout.finished(sampled.token_ids):
            raise _Stop(StopReason.OUTPUT_TRUNCATED)
        return output

    def _observe(self, record: TurnRecord, call: ToolCall | None, content: str, source: str) -> None:
        record.observations.append(Observation(call, content, source))  # type: ignore[arg-type]
        self.history = self.history + self.layout.observation(content)

    def score(self) -> None:
        """Set the reward: the mean score over all turns of the task, a turn that was not reached counting 0."""
        rollout, outcome = self.rollout, self.task.outcome
        assert outcome is not None and rollout.stop_reason is not None
        if not rollout.stop_reason.scorable:
            return
        for record in rollout.turns:
            result = score_turn(
                outcome.turns[record.turn_index], record.calls, record.reply, self.settings.reward.weights
            )
            record.score, record.satisfied = result.score, result.satisfied
        rollout.reward = sum(t.score for t in rollout.turns) / len(self.task.turns)
        rollout.success = rollout.stop_reason is StopReason.COMPLETED and all(t.satisfied for t in rollout.turns)
