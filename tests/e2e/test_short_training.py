"""A short training on the real verl trainer, by the stage itself; and one killed, run again, that ends the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
import pytest
import yaml
from safetensors.torch import load_file

from envace.config import Params, parse_params
from envace.data.canonical import to_task
from envace.data.sample import build_world, generate_conversations, to_raw_record
from envace.data.tables import write_tables
from envace.files import read_json, sha256_tree
from envace.rollout.records import read_rollouts
from envace.training.timings import PARTS
from envace.types import Outcome, Task

STEPS, TRAIN_TASKS, ROLLOUTS, VALIDATION_TASKS = 2, 3, 4, 21
TIMEOUT_S = 400
MARK = "ENVACE_TEST_TRAINING"  # inherited by every process that a training starts


def changed(params: Params) -> dict[str, Any]:
    """The shipped parameters, smaller: a step an epoch, a checkpoint a step."""
    raw = params.model_dump()
    raw["build_base_model"]["architecture"] |= {"hidden_size": 64, "layers": 2, "intermediate_size": 128}
    raw["build_base_model"] |= {"demonstrations": 400}
    raw["build_base_model"]["clean"] |= {"steps": 200, "batch_tokens": 1024}
    raw["build_base_model"]["faulty"] |= {"steps": 0}
    raw["train_policy"] |= {"steps": STEPS, "tasks_per_step": TRAIN_TASKS, "rollouts_per_task": ROLLOUTS}
    raw["train_policy"] |= {"checkpoint_every": 1, "validate_every": STEPS, "warmup_steps": 0, "micro_batch_rows": 8}
    parse_params(raw, "the test's parameters")
    return raw


def make_tasks() -> list[Task]:
    """Sample tasks of the splits that training uses; before them one for training whose prompt is too long."""
    world = build_world(0)
    conversations = generate_conversations(world, 1 + TRAIN_TASKS + VALIDATION_TASKS, 3, "train")
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


@pytest.fixture(scope="module")
def base(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base policy that has seen a hundred batches: it writes calls and replies, most of them wrong."""
    import torch

    from envace.training.base_model.build import build_base_policies, save_policy

    torch.set_num_threads(1)
    smaller = parse_params(changed(params), "")
    policies = build_base_policies(smaller.build_base_model, smaller.fetch_data.sample)
    folder = tmp_path_factory.mktemp("base") / "base"
    save_policy(policies.base, policies.tokenizer, folder)
    return folder


def make_project(folder: Path, params: Params, base: Path) -> Path:
    """A project folder as it is before the stage train_policy."""
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "base").symlink_to(base)
    (folder / "params.yaml").write_text(yaml.safe_dump(changed(params)), encoding="utf-8")
    write_tables(folder / "data/prepared", make_tasks())
    return folder


def start(project: Path) -> subprocess.Popen[str]:
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
    return [json.loads(x) for x in (project / "reports/training/metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(params: Params, base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project whose training ran through, and what it said."""
    project = make_project(tmp_path_factory.mktemp("through") / "project", params, base)
    return project, finish(start(project))


def test_a_training_runs_through_and_says_how_it_goes(finished: tuple[Path, str]) -> None:
    project, said = finished
    for step in range(1, STEPS + 1):
        assert f"step {step}/{STEPS}: reward " in said
    assert "validation at step 0" in said and f"validation at step {STEPS}" in said
    assert left_over(project) == []
    assert not list((project / ".envace/checkpoints").iterdir())


def test_the_policy_loads_and_has_moved(finished: tuple[Path, str], base: Path) -> None:
    from transformers import AutoModelForCausalLM

    before = AutoModelForCausalLM.from_pretrained(base).state_dict()
    after = AutoModelForCausalLM.from_pretrained(finished[0] / "models/policy").state_dict()
    assert before.keys() == after.keys() and all(before[n].shape == after[n].shape for n in before)
    moved = max(float((after[n] - before[n]).abs().max()) for n in before)
    assert 1e-5 < moved < 0.1  # by more than weight decay alone could


def test_the_best_and_the_last_policy_come_home(finished: tuple[Path, str]) -> None:
    project, said = finished
    summary = read_json(project / "reports/training/summary.json")
    assert summary["last"] == {"step": STEPS, "validation_reward": summary["last_validation_reward"]}
    assert summary["best"] == summary["last"] and summary["exported"] == "last"  # no other step is validated and saved
    assert f"best: step {STEPS} " in said and f"last: step {STEPS} " in said
    trees = {sha256_tree(project / "models" / name) for name in ("policy", "trained/last", "trained/best")}
    assert len(trees) == 1


def test_the_time_of_a_step_is_split(finished: tuple[Path, str]) -> None:
    timings = read_json(finished[0] / "reports/timings/timings.json")
    assert timings["model_sha256"] == sha256_tree(finished[0] / "models/policy")
    assert [split["step"] for split in timings["steps"]] == list(range(1, STEPS + 1))
    for split in timings["steps"]:
        assert sum(split[part] for part in PARTS) == pytest.approx(split["whole"], abs=0.01)
        assert split["generation"] > 0 and split["update"] > 0 and split["sync"] > 0 and split["tokens_per_s"] > 0
        assert split["judging"] == 0  # outcomes are scored by code, no judge is asked


def test_the_records_are_whole_and_give_the_metrics(finished: tuple[Path, str]) -> None:
    lines = metrics_of(finished[0])
    assert [(x["step"], x["phase"]) for x in lines] == [
        (0, "validation"),
        *((step, "train") for step in range(1, STEPS + 1)),
        (STEPS, "validation"),
    ]
    rewards: dict[tuple[int, str], list[float | None]] = defaultdict(list)
    for row in read_rollouts(finished[0] / "reports/training/rollouts.parquet"):
        rewards[row["step"], row["phase"]].append(row["reward"])
    for line in lines:
        mine = rewards[line["step"], line["phase"]]
        training = line["phase"] == "train"
        assert len(mine) == (TRAIN_TASKS * ROLLOUTS if training else VALIDATION_TASKS)
        expected = fmean(r for r in mine if r is not None)
        assert line["reward/mean" if training else "validation/reward/mean"] == pytest.approx(expected, abs=1e-6)
    assert any(len(set(found)) > 1 for found in rewards.values())
    trained = [x for x in lines if x["phase"] == "train"]
    assert sum(x["rehearse/outputs"] for x in trained) > 0 and all(x["act/outputs"] > 0 for x in trained)
    assert any(x["update/grad_norm"] > 0 for x in trained)


def test_a_task_whose_prompt_does_not_fit_is_left_out_by_name(finished: tuple[Path, str]) -> None:
    project, said = finished
    long = make_tasks()[0].task_id
    rows = read_rollouts(project / "reports/training/rollouts.parquet")
    assert len({r["task_id"] for r in rows}) == TRAIN_TASKS + VALIDATION_TASKS and long not in {
        r["task_id"] for r in rows
    }
    (left_out,) = read_json(project / "reports/training/summary.json")["lengths"]["left_out"]
    assert left_out["task_id"] == long and long in said


@pytest.mark.slow
def test_a_killed_training_resumes_at_the_epoch_boundary_and_ends_the_same(
    finished: tuple[Path, str], params: Params, base: Path, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", params, base)
    process = start(project)
    deadline = time.monotonic() + TIMEOUT_S
    while not list(project.glob(".envace/checkpoints/*/checkpoints/global_step_1/sealed.json")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left_over(project) == []
    assert not (project / "models/policy").exists() and not (project / "reports/training").exists()
    said = finish(start(project))
    assert "resuming after step 1 of 2" in said and "step 1/2" not in said and "step 2/2" in said
    (trained_on,) = [x for x in metrics_of(project) if (x["step"], x["phase"]) == (2, "train")]
    assert trained_on["act/outputs"] > 0 and trained_on["update/grad_norm"] > 0
    assert_same_results(finished[0], project, base)


def assert_same_results(one: Path, other: Path, base: Path) -> None:
    """Equal rollouts, equal steps, and weights and figures that differ by rounding alone.

    Which outputs are decoded side by side depends on timing, and with it the last bits of their log-probabilities.
    """
    rollouts = [p / "reports/training/rollouts.parquet" for p in (one, other)]
    assert rollouts[0].read_bytes() == rollouts[1].read_bytes()
    for line, again in zip(metrics_of(one), metrics_of(other), strict=True):
        assert line == {name: pytest.approx(value, abs=1e-5) for name, value in again.items()}
    start_weights, first, second = (load_file(p / "model.safetensors") for p in (base, *policies(one, other)))
    moved = max(float((first[n] - start_weights[n]).abs().max()) for n in first)
    apart = max(float((first[n] - second[n]).abs().max()) for n in first)
    assert apart < 0.02 * moved


def policies(*projects: Path) -> list[Path]:
    return [p / "models/policy" for p in projects]
