"""What the training benchmarks share: the generation of one training step of the shipped tiny profile, without Ray.

By default the policy is random and its words come from scripts (see played.py): drawn as the warm start's
demonstrations are, with their faults, so that the rollouts of one task differ as a trained policy's do. Everybody then
has the same work. With a model folder (`models/base` of a run) that policy samples for itself.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from played import Scripts, small_policy
from transformers.utils.logging import disable_progress_bar

from envace.chat.layout import render_calls
from envace.config import Params, load_params
from envace.data.canonical import to_task
from envace.data.sample import (
    Conversation,
    World,
    build_world,
    faulty_demonstration,
    generate_conversations,
    to_raw_record,
)
from envace.tools.validation import validate_call
from envace.training.base_model.build import save_policy
from envace.types import Task


@dataclass(frozen=True, slots=True)
class TinyStep:
    """The tasks of a step, the folder of the policy, and the texts of every rollout (None: the policy's own)."""

    params: Params
    tasks: list[Task]
    repeats: int
    folder: Path
    scripts: Scripts | None

    @property
    def max_length(self) -> int:
        """Tokens of prompt and output that the rollout server has room for."""
        rollout = self.params.rollout
        return rollout.max_prompt_tokens + max(rollout.max_act_tokens, rollout.max_rehearse_tokens)


def step_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tiny_step`; the defaults are the profile's."""
    train = load_params(_root() / "params.yaml").train_policy
    parser.add_argument("--tasks", type=int, default=train.tasks_per_step)
    parser.add_argument("--rollouts", type=int, default=train.rollouts_per_task, help="rollouts a task")
    parser.add_argument("--model", type=Path, help="a policy that samples for itself, for instance models/base")
    parser.add_argument("--tries", type=int, default=3, help="the best of so many counts")


@contextmanager
def tiny_step(options: argparse.Namespace) -> Iterator[TinyStep]:
    """The step that the options ask for."""
    disable_progress_bar()
    params, world = load_params(_root() / "params.yaml"), build_world(0)
    made = generate_conversations(world, options.tasks, 0, "train")
    tasks = [to_task(to_raw_record(world, c), "train", [], "sample") for c in made]
    if options.model is not None:
        yield TinyStep(params, tasks, options.rollouts, options.model, None)
        return
    scripts = {
        f"{task.task_id}#{k}": _script(world, task, conversation, random.Random(f"{task.task_id}#{k}"), params)
        for task, conversation in zip(tasks, made, strict=True)
        for k in range(options.rollouts)
    }
    architecture = params.build_base_model.architecture
    policy = small_policy(architecture.hidden_size, architecture.layers, architecture.max_positions)
    with tempfile.TemporaryDirectory() as folder:
        save_policy(policy.model, policy.tokenizer, folder)
        yield TinyStep(params, tasks, options.rollouts, Path(folder), scripts)


def _script(world: World, task: Task, conversation: Conversation, rng: random.Random, params: Params) -> list[str]:
    """What one rollout writes, in order: act outputs, and rehearsals of the calls that code does not refuse."""
    rates = params.build_base_model.faulty
    # a malformed rehearsal would end the rollout there; the few there are at the start of a training are left out
    shown = faulty_demonstration(world, conversation, rng, rates.act_random, rates.act_dominant, result=0)
    texts: list[str] = []
    for turn in shown.rehearse:
        for calls, results in turn.steps:
            texts.append(render_calls(list(calls)))
            texts += [r for call, r in zip(calls, results, strict=True) if validate_call(call, task) is None]
        texts.append(turn.reply)
    return texts


def _root() -> Path:
    return Path(__file__).resolve().parents[1]
