"""B4: tokens through the trunk, and wall time, of one policy-gradient update over the rows of a tiny step, by layout.

Every layout computes the same sum (clipped policy gradient, mean over an output's tokens, then over rows; forward and
backward, no optimizer step) on the same rows, and its gradient is compared with that of the rows one at a time.

- padded, widest: micro-batches in the order in which rollouts ended, every row padded on the right to the longest of
  the step, as trainers do that pad a whole batch at once
- padded, arrival: the same, each micro-batch padded to its own longest row
- padded, sorted: rows sorted by length first: what `train_policy` runs on a CPU where rows cannot be merged
- packed: rows end to end in sequences of at most `--pack` tokens, positions starting anew, attention inside each row
  only: verl's `use_remove_padding`, which we run on a GPU (there with flash attention)
- merged, ...: outputs whose prompts continue each other share a row (envace.training.row_merging): what `train_policy`
  runs, sorted and padded on a CPU, packed on a GPU. Not with KL or entropy terms, nor with method per_role

"useful": tokens of rows / tokens through the trunk. Advantages are drawn from a seed, since what is measured does not
depend on them; the old log-probabilities are the policy's own, as in the first update after a generation.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_train_packing.py [--model models/base]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

import torch
from played import PlayedEngine
from row_layouts import MicroBatch, Row, merged, packed, padded
from tiny_step import TinyStep, step_arguments, tiny_step
from transformers import AutoModelForCausalLM

from envace.engines.load import load_policy
from envace.rollout.batch import unfold_all
from envace.rollout.loop import RolloutSettings
from envace.types import Rollout

GOAL, EQUAL = 2.0, 1e-5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    step_arguments(parser)
    parser.add_argument("--pack", type=int, default=1024, help="tokens of a packed sequence")
    options = parser.parse_args()
    with tiny_step(options) as step:
        rows = step_rows(step)
        micro = step.params.train_policy.micro_batch_rows
        clip = step.params.train_policy.clip_ratio
        model = AutoModelForCausalLM.from_pretrained(
            step.folder, dtype=torch.float32, attn_implementation="sdpa"
        ).eval()
    lengths = sorted(len(r.ids) for r in rows)
    print(
        f"{len(rows)} rows of {lengths[0]} to {lengths[-1]} tokens (median {lengths[len(lengths) // 2]}), "
        f"{sum(lengths)} in all; micro-batches of {micro} rows, packed sequences of {options.pack} tokens"
    )
    alone = [[i] for i in range(len(rows))]
    by_length = sorted(alone, key=lambda line: len(rows[line[0]].ids))
    shared = sorted(merged(rows), key=lambda line: len(rows[line[0]].ids))
    layouts = {
        "padded, widest": padded(alone, rows, micro, lengths[-1]),
        "padded, arrival": padded(alone, rows, micro),
        "padded, sorted": padded(by_length, rows, micro),
        "packed": packed(by_length, rows, options.pack),
        "merged, sorted": padded(shared, rows, micro),
        "merged, packed": packed(shared, rows, options.pack),
    }
    one_by_one = padded(alone, rows, 1)
    with torch.inference_mode():
        old = old_log_probs(model, one_by_one, rows)
    gradient(model, one_by_one, rows, old, clip)
    wanted = taken(model)
    print(f"{'':18}{'trunk tokens':>14}{'useful':>8}{'wall s':>8}{'gradient differs by':>21}")
    tokens, walls = {}, {}
    for name, batches in layouts.items():
        walls[name] = float("inf")
        for _ in range(options.tries):
            start = time.perf_counter()
            gradient(model, batches, rows, old, clip)
            walls[name] = min(walls[name], time.perf_counter() - start)
        found = taken(model)
        apart = float((found - wanted).abs().max() / wanted.abs().max())
        tokens[name] = sum(b.ids.numel() for b in batches)
        print(f"{name:18}{tokens[name]:14}{sum(lengths) / tokens[name]:8.0%}{walls[name]:8.2f}{apart:21.1e}")
        assert apart <= EQUAL, f"{name}: the gradient is not that of the rows one at a time"
    for peer in ("padded, widest", "padded, arrival"):
        for name in list(layouts)[2:]:
            less, faster = tokens[peer] / tokens[name], walls[peer] / walls[name]
            print(f"{name:16} against {peer}: {less:5.2f}x fewer tokens, wall ratio {faster:.2f}")
    for name, what in (("merged, sorted", "CPU"), ("merged, packed", "GPU"), ("packed", "GPU with a KL term")):
        ratio = tokens["padded, arrival"] / tokens[name]
        print(f"tokens through the trunk, padded in arrival order / ours on a {what}: {ratio:.2f} (goal >= {GOAL})")


def step_rows(step: TinyStep) -> list[Row]:
    """The rows of the step, those of each rollout together, in the order in which the rollouts ended."""
    policy = load_policy(step.folder, max_slots=len(step.tasks) * step.repeats, max_length=step.max_length)
    engine = policy.engine if step.scripts is None else PlayedEngine(policy.engine, policy.layout, step.scripts)
    ended: list[Rollout] = []
    settings = RolloutSettings(step.params.rollout, step.params.reward, "packing")
    running = unfold_all(
        step.tasks,
        step.repeats,
        engine=engine,
        layout=policy.layout,
        settings_of=lambda task: settings,
        concurrency=len(step.tasks) * step.repeats,
        on_end=ended.append,
    )
    asyncio.run(running)
    rng = random.Random(0)
    return [
        Row(
            [*o.prompt_ids, *o.token_ids],
            len(o.prompt_ids),
            f"{rollout.task_id}#{rollout.rollout_index}",
            rng.gauss(0, 0.3),
        )
        for rollout in ended
        for o in rollout.outputs
    ]


def log_probs(model: Any, batch: MicroBatch) -> torch.Tensor:
    """Of the outputs' tokens, (tokens,). Logits at every position, as verl computes them."""
    logits = model(
        input_ids=batch.ids, position_ids=batch.positions, attention_mask=batch.mask, use_cache=False
    ).logits.flatten(0, 1)
    return logits[batch.before].log_softmax(-1).gather(1, batch.targets[:, None])[:, 0]


def old_log_probs(model: Any, batches: Sequence[MicroBatch], rows: Sequence[Row]) -> list[torch.Tensor]:
    """Of every row's output."""
    found: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for batch in batches:
        values = log_probs(model, batch)
        for i in batch.rows.unique().tolist():
            found[i] = values[batch.rows == i].clone()
    return found


def gradient(
    model: Any, batches: Sequence[MicroBatch], rows: Sequence[Row], old: Sequence[torch.Tensor], clip: float
) -> None:
    """Leave the update's gradient in the model."""
    model.zero_grad()
    for batch in batches:
        outputs = batch.rows.unique_consecutive().tolist()
        before = torch.cat([old[i] for i in outputs])
        advantage = torch.tensor([rows[i].advantage for i in outputs]).repeat_interleave(
            torch.tensor([len(old[i]) for i in outputs])
        )
        weight = torch.cat([torch.full((len(old[i]),), 1 / (len(old[i]) * len(rows))) for i in outputs])
        ratio = (log_probs(model, batch) - before).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
        (-(weight * gain).sum()).backward()


def taken(model: Any) -> torch.Tensor:
    """All gradients as one vector."""
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


if __name__ == "__main__":
    main()
