"""B5: our judging (concurrent, stops at the step that passes) against every criterion on every step, one after another.

Both sides ask the same questions of the same endpoint through the same client, without a verdict cache, and must reach
the same verdicts. The endpoint, in this process, knows the answers and takes a fixed time for each.

    calls = questions the peer asks / questions we ask        wall = the peer's time / ours

The fewer criteria pass, the more both sides ask; `--pass-rate` says how many do.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_judge.py
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from late_judge import Case, late_judge, make_cases

from envace.config import JudgeParams, load_params
from envace.endpoints.client import ChatClient
from envace.rewards.llm_judge import LlmJudge
from envace.rewards.question import Question
from envace.rewards.transcript import render_transcript
from envace.types import Task, Verdict

CALLS_GOAL, WALL_GOAL = 2.0, 12.0
Verdicts = list[dict[str, Verdict]]
TASK = Task(
    task_id="bench",
    content_sha256="",
    split="train",
    system_prompt="You help.",
    tools=[],
    turns=[],
    rubrics=[],
    outcome=None,
    world=None,
    flags=[],
    provenance="made up",
)


async def ours(client: ChatClient, params: JudgeParams, cases: list[Case]) -> Verdicts:
    """All turns at once, as the rollouts of a training step end them."""
    judge = LlmJudge(client, params)
    return list(await asyncio.gather(*(judge.judge_turn(TASK, case.criteria, [case.turn]) for case in cases)))


async def peer(client: ChatClient, params: JudgeParams, cases: list[Case]) -> Verdicts:
    """Each criterion on each step, one question after another."""
    made: Verdicts = []
    for case in cases:
        made.append({})
        for criterion in case.criteria:
            answers = []
            for step_index in range(len(case.turn.steps)):
                shown = render_transcript(
                    TASK,
                    [case.turn],
                    step_index,
                    show_reasoning=criterion.target == "reasoning",
                    max_chars=params.max_transcript_chars,
                )
                question = Question(shown, criterion)
                reply = await client.chat(
                    [{"role": "user", "content": question.prompt}],
                    max_tokens=params.max_tokens,
                    temperature=params.temperature,
                    json_schema=question.json_schema,
                )
                answers.append(question.read(reply.text))
            made[-1][criterion.criterion_id] = Verdict.PASS if Verdict.PASS in answers else Verdict.FAIL
    return made


async def compare(options: argparse.Namespace) -> None:
    cases = make_cases(options.turns, options.criteria, options.most_calls, options.pass_rate, options.seed)
    expected = [
        {
            c.criterion_id: Verdict.FAIL if at is None else Verdict.PASS
            for c, at in zip(case.criteria, case.passes_at, strict=True)
        }
        for case in cases
    ]
    steps = sum(len(case.turn.steps) for case in cases)
    print(
        f"{len(cases)} turns of {options.criteria} criteria and {steps / len(cases):.1f} steps; "
        f"{options.pass_rate:.0%} of criteria pass; {options.latency_ms:g} ms an answer; {options.concurrency} at once"
    )
    print(f"{'':28}{'calls':>8}{'wall s':>10}")
    walls, calls = {}, {}
    sides: dict[str, Callable[[ChatClient, JudgeParams, list[Case]], Awaitable[Verdicts]]] = {
        "ours": ours,
        "peer": peer,
    }
    for name, judge_all in sides.items():
        async with late_judge(cases, options.latency_ms / 1000) as server:
            params = judge_params(server.port, options.concurrency)
            client = ChatClient(params.endpoint)
            await ours(client, params, cases[:1])  # imports and first connections
            server.asked = 0
            began = time.perf_counter()
            made = await judge_all(client, params, cases)
            walls[name], calls[name] = time.perf_counter() - began, server.asked
            await client.close()
        if made != expected:
            raise SystemExit(f"{name}: wrong verdicts")
        print(f"{name:28}{calls[name]:8}{walls[name]:10.2f}")
    print(f"calls: {calls['peer'] / calls['ours']:.2f}x fewer (goal {CALLS_GOAL:g}x)")
    print(f"wall: {walls['peer'] / walls['ours']:.1f}x (goal {WALL_GOAL:g}x)")


def judge_params(port: int, concurrency: int) -> JudgeParams:
    """The shipped judge, at that port."""
    shipped = load_params(Path(__file__).resolve().parents[1] / "params.yaml").reward.judge.model_dump()
    address = {"base_url": f"http://127.0.0.1:{port}/v1", "model": "judge", "concurrency": concurrency}
    return JudgeParams.model_validate(shipped | {"kind": "llm", "endpoint": shipped["endpoint"] | address})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=32)
    parser.add_argument("--criteria", type=int, default=5, help="of each turn")
    parser.add_argument("--most-calls", type=int, default=4, help="steps with a call, at most; a reply follows")
    parser.add_argument("--pass-rate", type=float, default=0.7)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(compare(arguments()))
