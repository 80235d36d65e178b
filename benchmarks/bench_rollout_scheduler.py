"""B1: independent rollouts with continuous batching against a lock-step padded batch, on the same model and scripts.

Both sides unfold the same rollouts with the project's own loop and compute the same tokens (their log-probabilities are
compared). Ours computes every prompt from its beginning, as the peer does: what differs is the scheduling alone
(`--reuse-prefixes` shows the engine as it is used).

    useful share = tokens that rollouts got / (slots of the engine × decode steps)

Run: OMP_NUM_THREADS=1 python benchmarks/bench_rollout_scheduler.py
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable

from lockstep import LockStepEngine
from played import PlayedEngine, Scripts, largest_difference, sample_tasks, shipped_params, small_policy, varied_script

from envace.engines.cpu import CpuEngine
from envace.rollout.batch import unfold_all
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Rollout, StopReason, Task

WALL_GOAL, SHARE_GOAL = 2.0, 2.5


def main() -> None:
    options = arguments()
    params = shipped_params()
    policy = small_policy(options.hidden, options.layers, options.positions)
    tasks, rng = sample_tasks(options.tasks), random.Random(options.seed)
    scripts: Scripts = {
        f"{t.task_id}#{k}": varied_script(t, rng, options.typical, options.longest)
        for t in tasks
        for k in range(options.repeats)
    }
    lengths = sorted(len(policy.layout.encode_output(t)) for texts in scripts.values() for t in texts)
    counts = sorted(map(len, scripts.values()))
    print(
        f"{len(scripts)} rollouts of {counts[0]} to {counts[-1]} outputs (median {counts[len(counts) // 2]}), "
        f"{len(lengths)} outputs of {lengths[0]} to {lengths[-1]} tokens (median {lengths[len(lengths) // 2]}), "
        f"{options.slots} slots"
    )

    def settings_of(task: Task) -> RolloutSettings:
        return RolloutSettings(params.rollout, params.reward, options.seed)

    def independent(engine: PlayedEngine) -> list[Rollout]:
        return asyncio.run(
            unfold_all(
                tasks,
                options.repeats,
                engine=engine,
                layout=policy.layout,
                settings_of=settings_of,
                concurrency=len(scripts),
            )
        )

    def in_step(engine: PlayedEngine, lock: LockStepEngine) -> list[Rollout]:
        async def run() -> list[Rollout]:
            pairs = [(t, k) for t in tasks for k in range(options.repeats)]
            one = [unfold(t, k, engine=engine, layout=policy.layout, settings=settings_of(t)) for t, k in pairs]
            return await lock.together(one)

        return asyncio.run(run())

    lock = LockStepEngine(policy.model, options.slots)  # first: the CPU engine switches the model's attention
    peer = PlayedEngine(lock, policy.layout, scripts)
    peer_s, theirs = timed(lambda: in_step(peer, lock))
    engine = CpuEngine(
        policy.model, max_slots=options.slots, max_length=options.positions, reuse_prefixes=options.reuse_prefixes
    )
    ours = PlayedEngine(engine, policy.layout, scripts)
    ours_s, made = timed(lambda: independent(ours))

    assert all(r.stop_reason is StopReason.COMPLETED for r in (*made, *theirs)), "a script did not play to its end"
    assert [[o.token_ids for o in r.outputs] for r in made] == [[o.token_ids for o in r.outputs] for r in theirs]
    tokens = sum(lengths)
    assert lock.stats.sampled_tokens == engine.stats.sampled_tokens == tokens

    shares = [tokens / (options.slots * steps) for steps in (engine.stats.decode_steps, lock.stats.decode_steps)]
    print(f"equal work: {tokens} tokens each, log-probabilities differ by {largest_difference(ours, peer):.1e} at most")
    print(f"{'':12}{'wall s':>9}{'decode steps':>14}{'useful share':>14}{'prefilled':>11}")
    print(f"{'independent':12}{ours_s:9.2f}{engine.stats.decode_steps:14}{shares[0]:14.3f}", end="")
    print(f"{engine.stats.prefilled_tokens:11}")
    print(f"{'lock-step':12}{peer_s:9.2f}{lock.stats.decode_steps:14}{shares[1]:14.3f}{lock.stats.prefilled_tokens:11}")
    print(f"useful share, ratio: {shares[0] / shares[1]:.2f} (goal >= {SHARE_GOAL})")
    print(f"wall, ratio: {peer_s / ours_s:.2f} (goal >= {WALL_GOAL})")


def timed(run: Callable[[], list[Rollout]]) -> tuple[float, list[Rollout]]:
    start = time.perf_counter()
    made = run()
    return time.perf_counter() - start, made


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=4, help="rollouts a task")
    parser.add_argument("--slots", type=int, default=16, help="outputs generated side by side")
    parser.add_argument("--typical", type=int, default=24, help="median words of a piece of text")
    parser.add_argument("--longest", type=int, default=256, help="most words of a piece of text")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--positions", type=int, default=8192)
    parser.add_argument("--reuse-prefixes", action="store_true", help="keep prefixes on our side")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
