"""B2: prompt tokens that are computed, with the history kept in the cache against prefilling it at every output.

Rollouts of several turns go through the CPU engine, both roles: each turn is a call, its rehearsed result and a reply,
and each output's prompt is the history so far with what was sampled spliced in, as the loop does it. The peer is the
same engine with `reuse_prefixes=False`: the same requests, slots and batching, every prompt computed from its
beginning. Both must sample the same tokens; log-probabilities are compared. A policy of random weights writes no calls,
so lengths are drawn (act 40, result 20, reply 15 tokens, each times 0.5 to 1.5); openings, tools and user messages are
the sample's. More rollouts than slots share fewer cached rows than they are, which costs some of the reuse.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_prefix.py
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from dataclasses import dataclass, replace

import torch
from played import SmallPolicy, sample_tasks, small_policy

from envace.engines.cpu import CpuEngine, EngineStats
from envace.engines.protocol import Generation, GenerationRequest
from envace.rollout.seeds import derive_seed
from envace.types import Task

GOAL = 4.0
LENGTHS = (40, 20, 15)  # a call with its reasoning, its result, a reply


@dataclass(frozen=True, slots=True)
class Done:
    """What one side did: time, exact counters, and everything it sampled."""

    seconds: float
    stats: EngineStats
    outputs: list[Generation]


def main() -> None:
    options = arguments()
    torch.set_num_threads(1)
    policy, tasks = small_policy(options.hidden, options.layers, 4096), sample_tasks(options.tasks)
    rollouts, sides = options.tasks * options.rollouts, {}
    print(f"{rollouts} rollouts of {options.tasks} tasks, {options.turns} turns, {3 * options.turns} outputs each")
    for name, reuse in (("ours", True), ("peer", False)):
        tries = [run(policy, tasks, options, reuse) for _ in range(options.tries)]
        sides[name] = min(tries, key=lambda done: done.seconds)
    print(f"{'':6}{'prompt tokens':>14}{'prefilled':>11}{'sampled':>9}{'decode steps':>14}{'s':>8}")
    for name, done in sides.items():
        stats = done.stats
        print(
            f"{name:6}{stats.prompt_tokens:14}{stats.prefilled_tokens:11}{stats.sampled_tokens:9}"
            f"{stats.decode_steps:14}{done.seconds:8.2f}"
        )
    ours, peer = sides["ours"], sides["peer"]
    assert [g.token_ids for g in ours.outputs] == [g.token_ids for g in peer.outputs]
    difference = max(
        abs(a - b)
        for one, other in zip(ours.outputs, peer.outputs, strict=True)
        for a, b in zip(one.log_probs, other.log_probs, strict=True)
    )
    assert difference <= 1e-5, difference
    print(f"same tokens sampled; log-probabilities differ by {difference:.1e} at most")
    fewer = peer.stats.prefilled_tokens / ours.stats.prefilled_tokens
    print(
        f"prefilled tokens {fewer:.1f} times fewer (goal >= {GOAL:.0f}), wall {peer.seconds / ours.seconds:.2f} times"
    )


def run(policy: SmallPolicy, tasks: list[Task], options: argparse.Namespace, reuse: bool) -> Done:
    """All rollouts side by side on a fresh engine."""
    engine = CpuEngine(policy.model, max_slots=options.slots, max_length=4096, reuse_prefixes=reuse)

    async def all_rollouts() -> list[list[Generation]]:
        work = (rollout(engine, policy, task, k, options.turns) for task in tasks for k in range(options.rollouts))
        return list(await asyncio.gather(*work))

    began = time.perf_counter()
    made = asyncio.run(all_rollouts())
    return Done(time.perf_counter() - began, replace(engine.stats), [g for outputs in made for g in outputs])


async def rollout(engine: CpuEngine, policy: SmallPolicy, task: Task, index: int, turns: int) -> list[Generation]:
    """One rollout: the user's messages are the task's, again from the first where it has fewer turns."""
    layout, rng = policy.layout, random.Random(derive_seed(task.task_id, index))
    history, outputs = layout.opening(task), []
    for turn in range(turns):
        if turn:
            history = history + layout.user(task.turns[turn % len(task.turns)].user_message)
        for header, typical in zip(
            (layout.act_header, layout.rehearse_header, layout.act_header), LENGTHS, strict=True
        ):
            request = GenerationRequest(
                session=f"{task.task_id}#{index}",
                prompt_ids=history + header,
                max_tokens=round(typical * rng.uniform(0.5, 1.5)),
                temperature=1.0,
                top_p=1.0,
                seed=derive_seed(task.task_id, index, len(outputs)),
            )
            outputs.append(await engine.generate(request))
            history = request.prompt_ids + layout.closed(outputs[-1].token_ids)
    return outputs


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--rollouts", type=int, default=4, help="rollouts a task")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=128, help="width of the random model")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--tries", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
