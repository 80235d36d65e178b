"""Criteria, turns and tasks made by hand, and a judge's client that answers from a function."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from envace.config import JudgeParams, Params
from envace.types import Criterion, Evidence, Observation, Rubric, StepRecord, Task, ToolCall, Turn, TurnRecord


@dataclass(frozen=True)
class Said:
    """A reply of the endpoint."""

    text: str


def key_of(schema: dict[str, Any]) -> str:
    """The key of the one boolean that a schema asks for."""
    (name,) = schema["properties"]
    return name


def by_schema(answer: bool) -> Callable[[str, dict[str, Any]], str]:
    """Always that answer, in the form asked for."""
    return lambda prompt, schema: json.dumps({key_of(schema): answer})


@dataclass
class FakeClient:
    """Has the shape of ChatClient. `answer` gives the text for (prompt, schema), or an exception to raise."""

    answer: Callable[[str, dict[str, Any]], str | BaseException]
    delay_s: float = 0.0
    prompts: list[str] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    running: int = 0
    most_at_once: int = 0
    closed: bool = False

    async def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        max_tokens: int,
        temperature: float,
        json_schema: dict[str, Any] | None = None,
    ) -> Said:
        assert json_schema is not None
        prompt = messages[-1]["content"]
        self.prompts.append(prompt)
        self.options.append({"max_tokens": max_tokens, "temperature": temperature, "json_schema": json_schema})
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await asyncio.sleep(self.delay_s)
        finally:
            self.running -= 1
        said = self.answer(prompt, json_schema)
        if isinstance(said, BaseException):
            raise said
        return Said(said)

    async def close(self) -> None:
        self.closed = True


def judge_params(params: Params, kind: str = "llm", *, port: int = 9, **endpoint: Any) -> JudgeParams:
    """The shipped judge with an endpoint on loopback; keywords change the endpoint's settings."""
    shipped = params.reward.judge.model_dump()
    address = {"base_url": f"http://127.0.0.1:{port}/v1", "model": "judge"}
    return JudgeParams.model_validate(shipped | {"kind": kind, "endpoint": shipped["endpoint"] | address | endpoint})


def criterion(number: int = 0, target: str = "reply", condition: str = "The reply is kind.", **more: Any) -> Criterion:
    """A criterion of turn 0 with an even weight that two would share."""
    fields: dict[str, Any] = {
        "criterion_id": f"t0.c{number}",
        "turn_index": 0,
        "target": target,
        "question": f"Question {number}?",
        "pass_condition": condition,
        "failure_examples": [],
        "evidence": [],
        "prerequisite_ids": [],
        "weight": 0.5,
        "source_weight": 0.5,
        "is_gating": False,
    }
    return Criterion.model_validate(fields | more)


def quoting(source: str, snippet: str, turn: int = 0) -> list[Evidence]:
    """One piece of evidence."""
    return [Evidence(turn=turn, step=1, source=source, snippet=snippet)]


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call."""
    return ToolCall(tool_name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def step(*calls: ToolCall, results: Sequence[str] = (), reply: str = "", reasoning: str = "") -> StepRecord:
    """An act step; the k-th result answers the k-th call."""
    observed = [Observation(calls[k] if k < len(calls) else None, text, "rehearsed") for k, text in enumerate(results)]
    return StepRecord(reasoning, reply, list(calls), observed)


def turn(*steps: StepRecord, user: str = "Hello.", index: int = 0) -> TurnRecord:
    """A turn; its reply is that of the last step, if that has no calls."""
    reply = steps[-1].reply if steps and not steps[-1].calls else None
    return TurnRecord(index, user, list(steps), reply)


def task(criteria: Sequence[Criterion] = (), turns: Sequence[Turn] = (), **more: Any) -> Task:
    """A task without outcome."""
    fields: dict[str, Any] = {
        "task_id": "t",
        "content_sha256": "",
        "split": "train",
        "system_prompt": None,
        "tools": [],
        "turns": list(turns) or [Turn(turn_index=0, user_message="Hello.", reference_steps=[])],
        "rubrics": [Rubric(variant_index=0, criteria=list(criteria))] if criteria else [],
        "outcome": None,
        "world": None,
        "flags": [],
        "provenance": "made by hand",
    }
    return Task.model_validate(fields | more)


def as_recorded(reference: Turn) -> TurnRecord:
    """The reference turn as if a rollout had done just that."""
    steps = [
        StepRecord(
            s.reasoning,
            s.reply,
            list(s.tool_calls),
            [Observation(c, r.content, "rehearsed") for c, r in zip(s.tool_calls, s.tool_results, strict=True)],
        )
        for s in reference.reference_steps
    ]
    return TurnRecord(reference.turn_index, reference.user_message, steps, steps[-1].reply)
