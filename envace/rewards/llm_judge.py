"""A language model as judge, behind an OpenAI-compatible endpoint (method, section 3; paper: Qwen3-30B-A3B)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Protocol

from envace.config import JudgeParams
from envace.errors import EngineError
from envace.rewards.health import JudgeHealth, UnknownCause, note_unknown, timed_verdict
from envace.rewards.patience import Patience, Slots
from envace.rewards.question import Question
from envace.rewards.steps import steps_to_judge
from envace.rewards.transcript import render_transcript
from envace.rewards.verdict_cache import VerdictCache
from envace.types import Criterion, Task, TurnRecord, Verdict


class HasText(Protocol):
    """The part of a chat reply that is read."""

    @property
    def text(self) -> str: ...


class JudgeClient(Protocol):
    """The part of `envace.endpoints.client.ChatClient` that is used here. Failures are raised as EngineError."""

    async def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        max_tokens: int,
        temperature: float,
        json_schema: dict[str, Any] | None = None,
    ) -> HasText: ...

    async def close(self) -> None: ...


class LlmJudge:
    """Asks about each criterion on each act step until one step passes; the criteria of a turn side by side.

    A verdict is FAIL only if every step was judged and none passed. It is UNKNOWN if a question went unanswered (no
    reply within the deadline, an error, anything but the object of the schema) and no other step passed.
    """

    def __init__(self, client: JudgeClient, params: JudgeParams, cache: VerdictCache | None = None) -> None:
        self._client, self._params = client, params
        self._cache = VerdictCache() if cache is None else cache
        self._slots = Slots(params.endpoint.concurrency)
        self.health = JudgeHealth()

    async def judge_turn(
        self, task: Task, criteria: Sequence[Criterion], turns: Sequence[TurnRecord]
    ) -> dict[str, Verdict]:
        """As in RubricJudge."""
        transcripts = _Transcripts(task, turns, self._params.max_transcript_chars)
        verdicts = await asyncio.gather(*(self._judge(criterion, transcripts) for criterion in criteria))
        made = {c.criterion_id: verdict for c, verdict in zip(criteria, verdicts, strict=True)}
        self.health.count(made)
        return made

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _judge(self, criterion: Criterion, transcripts: _Transcripts) -> Verdict:
        patience = Patience(self._slots, self._params.endpoint.deadline_s)
        causes: list[UnknownCause] = []
        with timed_verdict():
            for step_index in steps_to_judge(criterion, transcripts.turns[-1]):
                question = Question(transcripts.until(step_index, criterion.target == "reasoning"), criterion)
                answer = await self._answer(question, patience)
                if answer is Verdict.PASS:
                    return Verdict.PASS
                if isinstance(answer, UnknownCause):
                    causes.append(answer)
        if not causes:
            return Verdict.FAIL
        note_unknown(criterion.criterion_id, causes[0])
        return Verdict.UNKNOWN

    async def _answer(self, question: Question, patience: Patience) -> Verdict | UnknownCause:
        settings = self._params
        key = self._cache.key(settings.endpoint.model or "", repr(settings.temperature), question.prompt)
        if (kept := self._cache.get(key)) is not None:
            self.health.count_cached()
            return kept
        answer = await self._ask(question, patience)
        if not isinstance(answer, UnknownCause):
            self._cache.put(key, answer)
        return answer

    async def _ask(self, question: Question, patience: Patience) -> Verdict | UnknownCause:
        began = time.monotonic()
        self.health.count_asked()
        try:
            async with patience.slot():
                reply = await self._client.chat(
                    [{"role": "user", "content": question.prompt}],
                    max_tokens=self._params.max_tokens,
                    temperature=self._params.temperature,
                    json_schema=question.json_schema,
                )
            self._slots.answered()
            verdict = question.read(reply.text)
            if verdict is not Verdict.UNKNOWN:
                return verdict
            cause, error = UnknownCause.MALFORMED, f"no verdict but {reply.text[:80]!a}"
        except TimeoutError:
            cause, error = UnknownCause.TIMEOUT, f"no answer within {self._params.endpoint.deadline_s:g} s"
        except EngineError as failure:
            cause = UnknownCause(getattr(failure, "cause", UnknownCause.UNREACHABLE))
            error = str(failure)
        finally:
            self.health.seconds += time.monotonic() - began
        self.health.unanswered += 1
        self.health.last_error = error
        return cause


class _Transcripts:
    """The transcripts of a turn, each rendered once for all criteria."""

    def __init__(self, task: Task, turns: Sequence[TurnRecord], max_chars: int) -> None:
        self._task, self.turns, self._max_chars = task, turns, max_chars
        self._made: dict[tuple[int, bool], str] = {}

    def until(self, step_index: int, show_reasoning: bool) -> str:
        key = (step_index, show_reasoning)
        if key not in self._made:
            self._made[key] = render_transcript(
                self._task, self.turns, step_index, show_reasoning=show_reasoning, max_chars=self._max_chars
            )
        return self._made[key]
