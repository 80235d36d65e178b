"""The recipe of a finished training once more, in one process and in plain torch: the peer that verl is compared with.

Nothing of verl is used. From the base policy, for each step: roll out the tasks that the recorded step had, with the
same seeds; role-wise advantages by the method's words; the loss by hand, an output at a time; torch's AdamW. If verl
did anything else than this recipe, the policies would drift apart, and with them what they sample.

Run: python -m tests.e2e.plain_trainer PROJECT [--change NAME]...
PROJECT has run the stage train_policy, method envace. Printed is, step by step, how many rollouts are word by word
those that verl had, and both rewards; in the end how far the weights are apart. Each `--change` departs from the recipe
in one way, to see what that alone makes of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from safetensors.torch import load_file

from envace.config import Params, load_params
from envace.data.task_reader import read_tasks
from envace.engines.load import LoadedPolicy, load_policy
from envace.rollout.batch import unfold_all
from envace.rollout.loop import RolloutSettings
from envace.rollout.records import read_rollouts
from envace.types import Output, Rollout, Task

CHANGES = ("update-at-once", "divide-by-padded", "no-clipping", "no-decay", "beta2-0.95")
"""update-at-once: the first update has the first warm-up rate, not 0. divide-by-padded: the loss is divided by a fifth
more rows than there are. The others change AdamW."""


@dataclass(slots=True)
class Step:
    """One step of both: rollouts in all, those with the same texts, and the two mean rewards."""

    step: int
    rollouts: int
    same: int
    reward: float
    verl_reward: float
    gradient_norm: float


@dataclass(slots=True)
class Comparison:
    """All steps, and the largest difference of a weight beside how far the weights have moved at most."""

    steps: list[Step] = field(default_factory=list)
    apart: float = 0.0
    moved: float = 0.0


def compare(project: Path, changes: Sequence[str] = (), say: Callable[[str], None] = lambda text: None) -> Comparison:
    """Train as the project's run did, and compare step by step."""
    torch.set_num_threads(1)
    params = load_params(project / "params.yaml")
    recorded = recorded_steps(project)
    rollout = params.rollout
    room = rollout.max_prompt_tokens + max(rollout.max_act_tokens, rollout.max_rehearse_tokens)
    policy = load_policy(project / "models/base", max_slots=64, max_length=room)
    model: Any = policy.engine.model
    start = {name: value.clone() for name, value in model.state_dict().items()}
    tasks = {t.task_id: t for t in read_tasks(project / "data/prepared/tasks.parquet", splits=("train",))}
    optimizer = make_optimizer(params, model, changes)
    result = Comparison()
    for step, theirs in sorted(recorded.items()):
        chosen = [tasks[task_id] for task_id in dict.fromkeys(task_id for task_id, _ in theirs)]
        policy.engine.forget()
        ours = roll_out(params, policy, chosen, step)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(params, step, changes)
        norm = update(model, optimizer, ours, params, changes)
        same = sum(_texts(r.outputs) == theirs[r.task_id, r.rollout_index][0] for r in ours)
        rewards = [r.reward for r in ours if r.reward is not None]
        made = Step(step, len(ours), same, fmean(rewards), fmean(r for _, r in theirs.values() if r is not None), norm)
        result.steps.append(made)
        say(
            f"step {step}: {same} of {len(ours)} rollouts are verl's, reward {made.reward:.4f} (verl "
            f"{made.verl_reward:.4f}), gradient norm {norm:.4f}"
        )
    theirs_last = load_file(project / "models/trained/last/model.safetensors")
    mine = model.state_dict()
    result.apart = max(float((theirs_last[n] - mine[n]).abs().max()) for n in theirs_last)
    result.moved = max(float((mine[n] - start[n]).abs().max()) for n in theirs_last)
    say(f"weights: {result.apart:.1e} apart at most, after moving by {result.moved:.1e} at most")
    return result


Recorded = dict[tuple[str, int], tuple[list[str], float | None]]


def recorded_steps(project: Path) -> dict[int, Recorded]:
    """Texts and reward of each rollout that verl trained on, by step."""
    steps: dict[int, Recorded] = defaultdict(dict)
    for row in read_rollouts(project / "reports/training/rollouts.parquet"):
        if row["phase"] == "train":
            texts = [o["text"] for o in row["outputs"]]
            steps[row["step"]][row["task_id"], row["rollout_index"]] = texts, row["reward"]
    return steps


def roll_out(params: Params, policy: LoadedPolicy, tasks: list[Task], step: int) -> list[Rollout]:
    """The rollouts of one step: random numbers come from seed, step, task, rollout and output alone."""
    settings = RolloutSettings(params.rollout, params.reward, f"{params.train_policy.seed}/train/{step}")
    repeats = params.train_policy.rollouts_per_task
    parts: dict[str, Any] = {"engine": policy.engine, "layout": policy.layout, "settings_of": lambda _: settings}
    return asyncio.run(unfold_all(tasks, repeats, concurrency=64, **parts))


def advantages(rollouts: Sequence[Rollout]) -> Iterator[tuple[Output, float]]:
    """Method, section 4: an output's reward minus the mean over the outputs of its role in its group."""
    cells: dict[tuple[str, str], list[float]] = defaultdict(list)
    scored = [(r, o, r.reward) for r in rollouts if r.reward is not None for o in r.outputs]
    for rollout, output, reward in scored:
        cells[rollout.task_id, output.role].append(reward)
    for rollout, output, reward in scored:
        yield output, reward - fmean(cells[rollout.task_id, output.role])


def update(
    model: Any, optimizer: torch.optim.Optimizer, rollouts: list[Rollout], params: Params, changes: Sequence[str]
) -> float:
    """One update on all outputs of a step; returns the gradient's norm before clipping."""
    rows = list(advantages(rollouts))
    divisor = len(rows) * (1.2 if "divide-by-padded" in changes else 1.0)
    optimizer.zero_grad()
    for output, advantage in rows:
        ids = torch.tensor([[*output.prompt_ids, *output.token_ids]])
        logits = model(input_ids=ids).logits[0, len(output.prompt_ids) - 1 : -1] / params.rollout.act.temperature
        chosen = logits.log_softmax(-1).gather(1, torch.tensor(output.token_ids)[:, None])
        ratio = (chosen - chosen.detach()).exp()  # one update a step: the policy is the one that sampled
        (-(ratio * advantage).mean() / divisor).backward()
    limit = float("inf") if "no-clipping" in changes else params.train_policy.grad_clip
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), limit))
    optimizer.step()
    return norm


def make_optimizer(params: Params, model: Any, changes: Sequence[str]) -> torch.optim.AdamW:
    """torch's AdamW with its own defaults besides."""
    decay = 0.0 if "no-decay" in changes else params.train_policy.weight_decay
    betas = (0.9, 0.95 if "beta2-0.95" in changes else 0.999)
    return torch.optim.AdamW(model.parameters(), lr=0.0, betas=betas, eps=1e-8, weight_decay=decay)


def learning_rate(params: Params, step: int, changes: Sequence[str]) -> float:
    """Rises from 0, the rate of the first update, over the warm-up."""
    train = params.train_policy
    done = step if "update-at-once" in changes else step - 1
    return train.learning_rate * min(1.0, done / train.warmup_steps if train.warmup_steps else 1.0)


def _texts(outputs: Sequence[Output]) -> list[str]:
    return [output.text for output in outputs]


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("--change", action="append", choices=CHANGES, default=[])
    options = parser.parse_args()
    compare(options.project, options.change, print)
    return 0


if __name__ == "__main__":
    sys.exit(main())
