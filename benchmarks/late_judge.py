"""A judge endpoint on loopback that answers each question of a made-up step rightly, after a fixed latency."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from envace.types import Criterion, Observation, StepRecord, ToolCall, TurnRecord

Target = Literal["tool_call", "tool_result", "reasoning", "reply"]
_MIX: dict[Target, int] = {"tool_call": 4, "tool_result": 2, "reasoning": 1, "reply": 5}
"""What criteria look at, and how often."""


@dataclass(frozen=True)
class Case:
    """A finished turn, its criteria, and for each criterion the step that passes it (None: no step does)."""

    turn: TurnRecord
    criteria: list[Criterion]
    passes_at: list[int | None]


def make_cases(turns: int, criteria: int, most_calls: int, pass_rate: float, seed: int) -> list[Case]:
    """Turns of 1 to `most_calls` calls, one a step, and a reply; a criterion passes at one of the steps that have what
    it looks at, with probability `pass_rate`."""
    rng = random.Random(seed)
    return [_case(number, criteria, rng.randint(1, most_calls), pass_rate, rng) for number in range(turns)]


def _case(number: int, criteria: int, calls: int, pass_rate: float, rng: random.Random) -> Case:
    steps = []
    for n in range(calls):
        call = ToolCall(tool_name="find", arguments=json.dumps({"n": n}))
        steps.append(StepRecord("I look.", "", [call], [Observation(call, json.dumps({"found": n}), "rehearsed")]))
    steps.append(StepRecord("I know.", "Here it is.", [], []))
    targets = rng.choices(list(_MIX), list(_MIX.values()), k=criteria)
    having: dict[Target, list[int]] = {
        "tool_call": list(range(calls)),
        "tool_result": list(range(calls)),
        "reasoning": list(range(calls + 1)),
        "reply": [calls],
    }
    passes_at = [rng.choice(having[t]) if rng.random() < pass_rate else None for t in targets]
    made = [_criterion(n, target, 1 / criteria) for n, target in enumerate(targets)]
    return Case(TurnRecord(0, f"Case {number}", steps, "Here it is."), made, passes_at)


def _criterion(number: int, target: Target, weight: float) -> Criterion:
    return Criterion(
        criterion_id=f"t0.c{number}",
        turn_index=0,
        target=target,
        question=f"Question {number}",
        pass_condition="It is as it should be.",
        failure_examples=[],
        evidence=[],
        prerequisite_ids=[],
        weight=weight,
        source_weight=weight,
        is_gating=False,
    )


class LateJudge:
    """The server's side. `asked` counts the questions."""

    def __init__(self, cases: list[Case], latency_s: float) -> None:
        self._cases, self._latency_s = cases, latency_s
        self.asked = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests until it is closed."""
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(re.search(rb"content-length: *(\d+)", head)[1])  # type: ignore[index]
                body = json.loads(await reader.readexactly(length))
                self.asked += 1
                await asyncio.sleep(self._latency_s)
                answer = self._answer(body)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer)
                await writer.drain()
        writer.close()

    def _answer(self, body: dict) -> bytes:
        prompt = body["messages"][-1]["content"]
        (key,) = body["response_format"]["json_schema"]["schema"]["properties"]
        record, _, rest = prompt.partition("\nEND RECORD\n")
        case = self._cases[int(re.search(r'"text": "Case (\d+)"', record)[1])]  # type: ignore[index]
        number = int(re.search(r'"Question (\d+)"', rest)[1])  # type: ignore[index]
        step = json.loads(record.rpartition("\n")[2])["step"]
        text = json.dumps({key: case.passes_at[number] == step})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return json.dumps({"choices": [choice]}).encode()


@asynccontextmanager
async def late_judge(cases: list[Case], latency_s: float) -> AsyncIterator[LateJudge]:
    """A running endpoint."""
    judge = LateJudge(cases, latency_s)
    server = await asyncio.start_server(judge.serve, "127.0.0.1", 0)
    judge.port = server.sockets[0].getsockname()[1]
    async with server:
        yield judge
