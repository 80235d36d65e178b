"""B6: a step in which one rollout writes ten times as much as each of the others, against the best that can be had.

    ratio = time of the whole step / max(time of the straggler alone, time of the others alone)

The three are measured one after the other on the same engine and model; 1 would mean that the straggler and the others
cost each other nothing. The peer runs the same step in lock-step, padded batches, and is divided by the same time.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_straggler.py
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from lockstep import LockStepEngine
from played import PlayedEngine, Scripts, SmallPolicy, known_call, sample_tasks, shipped_params, small_policy

from envace.engines.cpu import CpuEngine
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Rollout, StopReason, Task

GOAL = 1.2


def main() -> None:
    options = arguments()
    policy = small_policy(options.hidden, options.layers, options.positions)
    (task,) = sample_tasks(1)
    lengths = {f"{task.task_id}#{k}": options.words * (10 if k == 0 else 1) for k in range(options.rollouts)}
    scripts = {session: script(task, words, options.calls) for session, words in lengths.items()}
    first, *others = scripts
    chosen = {"straggler": [first], "others": others, "both": [first, *others]}
    print(f"{len(others)} rollouts of {tokens(policy, scripts, others[:1])} tokens each, ", end="")
    print(f"one of {tokens(policy, scripts, [first])}; {options.rollouts} slots")
    lock_s, lock_steps, lock_rows = lock_step(policy, task, scripts, options.rollouts)
    engine = CpuEngine(policy.model, max_slots=options.rollouts, max_length=options.positions)
    seconds: dict[str, float] = {}
    print(f"{'':24}{'wall s':>8}{'decode steps':>14}{'slots computed':>16}")
    for name, sessions in chosen.items():
        for _ in range(options.tries):
            engine.forget()
            steps, rows = engine.stats.decode_steps, engine.stats.slot_steps
            start = time.perf_counter()
            played = PlayedEngine(engine, policy.layout, {s: scripts[s] for s in sessions})
            asyncio.run(independent(policy, task, played, sessions))
            seconds[name] = min(seconds.get(name, float("inf")), time.perf_counter() - start)
        told = f"{engine.stats.decode_steps - steps:14}{engine.stats.slot_steps - rows:16}"
        print(f"{'independent, ' + name:24}{seconds[name]:8.2f}{told}")
    print(f"{'lock-step, both':24}{lock_s:8.2f}{lock_steps:14}{lock_rows:16}")
    ideal = max(seconds["straggler"], seconds["others"])
    print(f"lock-step: step / max(straggler alone, others alone) = {lock_s / ideal:.2f}")
    print(f"ours: step / max(straggler alone, others alone) = {seconds['both'] / ideal:.2f} (goal <= {GOAL})")


def script(task: Task, words: int, calls: int) -> list[str]:
    """So many rehearsed calls and a reply in every turn, each text of so many words."""
    text = " ".join(["the"] * words)
    texts: list[str] = []
    for turn in task.turns:
        texts += [f"<think>{text}</think>{known_call(task, turn.turn_index)}", f'{{"result": "{text}"}}'] * calls
        texts.append(text)
    return texts


def tokens(policy: SmallPolicy, scripts: Scripts, sessions: list[str]) -> int:
    return sum(len(policy.layout.encode_output(text)) for s in sessions for text in scripts[s])


def rollout(policy: SmallPolicy, task: Task, engine: PlayedEngine, session: str) -> Coroutine[Any, Any, Rollout]:
    params = shipped_params()
    settings = RolloutSettings(params.rollout, params.reward, 0)
    return unfold(task, int(session.rpartition("#")[2]), engine=engine, layout=policy.layout, settings=settings)


async def independent(policy: SmallPolicy, task: Task, engine: PlayedEngine, sessions: list[str]) -> None:
    whole(await asyncio.gather(*(rollout(policy, task, engine, s) for s in sessions)))


def lock_step(policy: SmallPolicy, task: Task, scripts: Scripts, rows: int) -> tuple[float, int, int]:
    """Seconds, decode steps and slots computed."""
    lock = LockStepEngine(policy.model, rows)
    played = PlayedEngine(lock, policy.layout, scripts)

    async def run() -> None:
        whole(await lock.together([rollout(policy, task, played, s) for s in scripts]))

    start = time.perf_counter()
    asyncio.run(run())
    return time.perf_counter() - start, lock.stats.decode_steps, lock.stats.slot_steps


def whole(rollouts: list[Rollout]) -> None:
    assert all(r.stop_reason is StopReason.COMPLETED for r in rollouts), "a script did not play to its end"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=16, help="the straggler among them")
    parser.add_argument("--words", type=int, default=16, help="words of each text of the others; ten times that: its")
    parser.add_argument("--calls", type=int, default=2, help="rehearsed calls a turn")
    parser.add_argument("--tries", type=int, default=2, help="the shortest of so many counts")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--positions", type=int, default=4096)
    return parser.parse_args()


if __name__ == "__main__":
    main()
