"""A short training on the real verl trainer, by the stage itself; and one killed, run again, that ends the same."""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
import torch
from safetensors.torch import load_file

from envace.config import Params
from envace.files import read_json, sha256_tree
from envace.rollout.records import read_rollouts
from envace.training.timings import PARTS
from tests.e2e.project import (
    ROLLOUTS,
    STEPS,
    TIMEOUT_S,
    TRAIN_TASKS,
    VALIDATION_TASKS,
    changed,
    finish,
    left_over,
    make_base,
    make_project,
    make_tasks,
    metrics_of,
    start,
)


@pytest.fixture(scope="module")
def base(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base policy of all trainings here."""
    return make_base(params, tmp_path_factory.mktemp("base") / "base")


def make(folder: Path, params: Params, base: Path) -> Path:
    """The project of all trainings here."""
    return make_project(folder, base, changed(params), make_tasks())


@pytest.fixture(scope="module")
def finished(params: Params, base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project whose training ran through, and what it said."""
    project = make(tmp_path_factory.mktemp("through") / "project", params, base)
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
    project = make(tmp_path / "project", params, base)
    process = start(project)
    deadline = time.monotonic() + TIMEOUT_S
    while not list(project.glob(".envace/checkpoints/*/checkpoints/global_step_1/sealed.json")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left_over(project) == []
    (lines,) = project.glob(".envace/checkpoints/*/metrics.jsonl")
    assert [json.loads(line)["step"] for line in lines.read_text().splitlines()][:2] == [0, 1]
    assert not (project / "models/policy").exists() and not (project / "reports/training").exists()
    said = finish(start(project))
    assert "resuming after step 1 of 2" in said and "step 1/2" not in said and "step 2/2" in said
    (trained_on,) = [x for x in metrics_of(project) if (x["step"], x["phase"]) == (2, "train")]
    assert trained_on["act/outputs"] > 0 and trained_on["update/grad_norm"] > 0
    assert_same_results(finished[0], project)


def assert_same_results(one: Path, other: Path) -> None:
    """The same rollouts, metrics and policies, byte by byte.

    Which outputs are decoded side by side depends on timing; with the engine's padded shapes it changes no bit of their
    log-probabilities (docs/training.md).
    """
    for name in ("reports/training/rollouts.parquet", "reports/training/metrics.jsonl"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    for name in ("policy", "trained/last", "trained/best"):
        first, second = (load_file(p / "models" / name / "model.safetensors") for p in (one, other))
        assert first.keys() == second.keys()
        assert [n for n in first if not torch.equal(first[n], second[n])] == [], name
