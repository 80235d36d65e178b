"""B8: role-wise advantages of one large step, vectorised against a plain Python loop.

Both sides get the same step as numbers: rewards, and integers for the group, the role and the rollout of each output.
The peer is the loop one would write: it puts the rewards of each (group, role) into a list, takes the means, and
subtracts; no row is visited more often than needed. Both answers are compared to 1e-6. For information, the column
"from names" is our time with names (as the trainer has them) in place of integers; most of it turns names into numbers.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_advantage.py
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch

from envace.algo.advantage import role_wise_advantages

GOAL = 20.0
Row = tuple[float, int, int, int, bool]  # reward, group, role, rollout, scorable


def main() -> None:
    options = arguments()
    rows = make_rows(options.outputs, options.rollouts, random.Random(options.seed))
    cells = len({row[1:3] for row in rows})
    print(f"{len(rows)} outputs, {cells} (group, role) cells, {len({r[1:4:2] for r in rows})} rollouts")
    columns = list(zip(*rows, strict=True))
    rewards, scorable = torch.tensor(columns[0], dtype=torch.float64), torch.tensor(columns[4])
    groups, roles, rollouts = (torch.tensor(c) for c in columns[1:4])
    names = [[f"task-{g}" for g in columns[1]], [("act", "rehearse")[r] for r in columns[2]]]
    names.append([f"task-{r[1]}#{r[3]}" for r in rows])
    print(f"{'weighting':10}{'vectorised ms':>14}{'from names ms':>14}{'loop ms':>10}{'ratio':>8}{'difference':>12}")
    ratios = []
    weightings: list[Literal["output", "rollout"]] = ["output", "rollout"]
    for weighting in weightings:
        ours = partial(role_wise_advantages, scorable=scorable, weighting=weighting)
        fast_s, fast = best(partial(ours, rewards, groups, roles, rollouts), options.tries)
        named_s, also = best(partial(ours, rewards, *names), options.tries)
        slow_s, slow = best(partial(loop, rows, weighting), options.tries)
        wanted = torch.tensor(slow, dtype=torch.float64)
        difference = max(float((made - wanted).abs().max()) for made in (fast, also))
        assert difference <= 1e-6, difference
        ratios.append(slow_s / fast_s)
        print(f"{weighting:10}{1e3 * fast_s:14.2f}{1e3 * named_s:14.2f}{1e3 * slow_s:10.1f}", end="")
        print(f"{ratios[-1]:8.1f}{difference:12.1e}")
    print(f"loop / vectorised, the default weighting: {ratios[0]:.1f} (goal >= {GOAL:.0f}, equal to 1e-6)")


def make_rows(outputs: int, per_group: int, rng: random.Random) -> list[Row]:
    """Groups of rollouts, each with one reward and 1 to 15 outputs of either role; one in twenty is not scorable."""
    rows: list[Row] = []
    group = 0
    while len(rows) < outputs:
        for rollout in range(per_group):
            reward, scorable = rng.choice([0.0, 0.25, 0.5, rng.random(), 1.0]), rng.random() > 0.05
            acts = rng.randrange(1, 16)
            for role in [0] * acts + [1] * (acts - 1):
                rows.append((reward, group, role, rollout, scorable))
        group += 1
    rng.shuffle(rows)
    return rows[:outputs]


def loop(rows: list[Row], weighting: str) -> list[float]:
    """The method, section 4, row by row."""
    cells: dict[tuple[int, int], list[tuple[float, int]]] = defaultdict(list)
    for reward, group, role, rollout, scorable in rows:
        if scorable and math.isfinite(reward):
            cells[group, role].append((reward, rollout))
    baselines = {}
    for cell, members in cells.items():
        if len(members) < 2:
            continue
        if weighting == "output":
            baselines[cell] = sum(reward for reward, _ in members) / len(members)
        else:
            each = dict((rollout, reward) for reward, rollout in members)
            baselines[cell] = sum(each.values()) / len(each)
    advantages = []
    for reward, group, role, _, scorable in rows:
        baseline = baselines.get((group, role))
        counts = scorable and math.isfinite(reward) and baseline is not None
        advantages.append(reward - baseline if counts else 0.0)  # type: ignore[operator]
    return advantages


def best(run: Callable[[], Any], tries: int) -> tuple[float, Any]:
    """The shortest of several tries, in seconds, and what the last one gave."""
    times, made = [], None
    for _ in range(tries):
        start = time.perf_counter()
        made = run()
        times.append(time.perf_counter() - start)
    return min(times), made


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, default=65_536)
    parser.add_argument("--rollouts", type=int, default=4, help="rollouts a group")
    parser.add_argument("--tries", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
