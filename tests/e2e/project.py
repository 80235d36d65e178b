"""A small project for trainings on the real verl trainer: its parameters, tasks and base policy, and how it is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import yaml

from envace.config import Params, parse_params
from envace.data.canonical import to_task
from envace.data.sample import build_world, generate_conversations, to_raw_record
from envace.data.tables import write_tables
from envace.types import Outcome, Task

STEPS, TRAIN_TASKS, ROLLOUTS, VALIDATION_TASKS = 2, 3, 4, 21
TIMEOUT_S = 900  # a minute and a half where nothing else runs
MARK = "ENVACE_TEST_TRAINING"  # inherited by every process that a training starts


def changed(params: Params, **train_policy: Any) -> dict[str, Any]:
    """The shipped parameters, smaller: a step an epoch, a checkpoint a step."""
    raw = params.model_dump()
    raw["build_base_model"]["architecture"] |= {"hidden_size": 64, "layers": 2, "intermediate_size": 128}
    raw["build_base_model"] |= {"demonstrations": 400}
    raw["build_base_model"]["clean"] |= {"steps": 200, "batch_tokens": 1024}
    raw["build_base_model"]["faulty"] |= {"steps": 0}
    raw["train_policy"] |= {"steps": STEPS, "tasks_per_step": TRAIN_TASKS, "rollouts_per_task": ROLLOUTS}
    raw["train_policy"] |= {"checkpoint_every": 1, "validate_every": STEPS, "warmup_steps": 0, "micro_batch_rows": 8}
    raw["train_policy"] |= train_policy
    parse_params(raw, "the test's parameters")
    return raw


def make_tasks(validation: int = VALIDATION_TASKS) -> list[Task]:
    """Sample tasks of the splits that training uses; before them one for training whose prompt is too long."""
    world = build_world(0)
    conversations = generate_conversations(world, 1 + TRAIN_TASKS + validation, 3, "train")
    tasks = [
        to_task(to_raw_record(world, c), "train" if i <= TRAIN_TASKS else "validation", [], "sample")
        for i, c in enumerate(conversations)
    ]
    # no facts asked for: a weak policy then differs in what it is rewarded for, by ending its turns at all
    tasks = [
        t.model_copy(
            update={"outcome": Outcome(turns=[o.model_copy(update={"required_facts": []}) for o in t.outcome.turns])}
        )
        for t in tasks
        if t.outcome
    ]
    long = tasks[0].turns[0].model_copy(update={"user_message": "Please! " * 1000})
    return [tasks[0].model_copy(update={"turns": [long, *tasks[0].turns[1:]]}), *tasks[1:]]


def make_base(params: Params, folder: Path) -> Path:
    """A base policy that has seen two hundred batches: it writes calls and replies, most of them wrong."""
    import torch

    from envace.training.base_model.build import build_base_policies, save_policy

    torch.set_num_threads(1)
    smaller = parse_params(changed(params), "")
    policies = build_base_policies(smaller.build_base_model, smaller.fetch_data.sample)
    save_policy(policies.base, policies.tokenizer, folder)
    return folder


def make_project(folder: Path, base: Path, raw: Mapping[str, Any], tasks: list[Task]) -> Path:
    """A project folder as it is before the stage train_policy, with the parameters `raw`."""
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "base").symlink_to(base)
    (folder / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    write_tables(folder / "data/prepared", tasks)
    return folder


def start(project: Path) -> subprocess.Popen[str]:
    """The stage as a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline_steps.train_policy"],
        cwd=project,
        env={**os.environ, MARK: str(project), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What a training prints until it ends well."""
    try:
        said, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"the training took over {TIMEOUT_S} s:\n{process.communicate()[0]}") from None
    assert process.returncode == 0, said
    return said


def left_over(project: Path) -> list[str]:
    """Processes that a training of this project has left behind, after some time to end."""
    found: list[str] = []
    for _ in range(60):
        found = []
        for process in psutil.process_iter(["status", "cmdline"]):
            try:
                mine = process.environ().get(MARK) == str(project)
            except (psutil.Error, OSError):
                continue
            if mine and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.info["cmdline"] or [])[:120])
        if not found:
            break
        time.sleep(0.5)
    return found


def metrics_of(project: Path) -> list[dict[str, Any]]:
    """The lines of a finished training's metrics file."""
    return [json.loads(x) for x in (project / "reports/training/metrics.jsonl").read_text().splitlines()]
