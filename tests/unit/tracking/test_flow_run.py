"""A flow in MLflow: parent and children, how each ends, links to the run before, and no secret in any of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.errors import StageError
from envace.files import write_json
from envace.processes import Terminated
from envace.rollout.records import rollout_row, write_rollouts
from envace.tracking import flow_run as module
from envace.tracking.flow_run import flow_run
from envace.tracking.register import register
from envace.tracking.store import open_store
from tests.conftest import rollout

CANARY = "canary-5f2e9c1d7b"
GRAPH = """
stages:
  prepare_data: {cmd: "true", params: [prepare_data]}
  train_policy: {cmd: "true", params: [train_policy, rollout]}
"""
LOCK = """schema: '2.0'
stages:
  train_policy:
    cmd: 'true'
    deps:
    - {path: data/prepared/tasks.parquet, md5: 0123456789abcdef0123456789abcdef}
    - {path: envace/types.py, md5: 1123456789abcdef0123456789abcdef}
    outs:
    - {path: reports/training/metrics.jsonl, md5: 2123456789abcdef0123456789abcdef}
    - {path: reports/training/summary.json, md5: 3123456789abcdef0123456789abcdef}
"""


@pytest.fixture
def project(project: Path) -> Path:
    """With a graph and what DVC has recorded of it."""
    (project / "dvc.yaml").write_text(GRAPH, encoding="utf-8")
    (project / "dvc.lock").write_text(LOCK, encoding="utf-8")
    return project


def with_learning_rate(params: Params, rate: float) -> Params:
    training = params.train_policy.model_copy(update={"learning_rate": rate})
    return params.model_copy(update={"train_policy": training})


def runs(project: Path, asked: str) -> list[Any]:
    client = open_store(project)
    experiment = client.get_experiment_by_name("envace")
    assert experiment is not None
    return client.search_runs([experiment.experiment_id], asked, order_by=["attributes.start_time DESC"])


def test_a_flow_is_a_parent_and_each_stage_a_child(project: Path, params: Params) -> None:
    with flow_run("retrain", params, project, {"prefect_run": "p1"}) as record:
        with record.stage("prepare_data"):
            pass
        with record.stage("train_policy") as stage:
            stage.outcome = "ran"
    (parent,) = runs(project, "tags.kind = 'flow'")
    assert parent.info.status == "FINISHED" and parent.data.tags["prefect_run"] == "p1"
    assert parent.data.params["train_policy.learning_rate"] == "0.0003" and "dvc_lock_sha256" in parent.data.tags
    children = runs(project, f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    told = {r.info.run_name: (r.info.status, r.data.tags["outcome"]) for r in children}
    assert told == {"prepare_data": ("FINISHED", "unchanged"), "train_policy": ("FINISHED", "ran")}
    trained = next(r for r in children if r.info.run_name == "train_policy")
    assert "train_policy.steps" in trained.data.params and "fetch_data.source" not in trained.data.params
    history = open_store(project).get_metric_history(trained.info.run_id, "reward/mean")
    assert [(m.step, m.value) for m in history] == [(1, 0.2), (2, 0.4), (3, pytest.approx(0.6))]
    assert trained.data.metrics["summary/steps"] == 3
    (used,) = trained.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest[:4]) == ("data/prepared/tasks.parquet", "0123")


def test_a_failed_stage_and_other_parameters_are_a_new_run_that_names_the_old(project: Path, params: Params) -> None:
    (before,) = runs(project, "tags.stage = 'train_policy'")
    with (
        pytest.raises(StageError),
        flow_run("retrain", with_learning_rate(params, 1.0), project) as record,
        record.stage("train_policy"),
    ):
        raise StageError("stage train_policy failed: loss is not finite")
    after = runs(project, "tags.stage = 'train_policy'")[0]
    assert after.info.status == "FAILED" and "loss is not finite" in after.data.tags["error"]
    assert after.data.tags["previous_run"] == before.info.run_id
    assert after.data.tags["changed_parameters"] == "train_policy.learning_rate"
    assert after.data.params["train_policy.learning_rate"] == "1.0"
    assert before.data.params["train_policy.learning_rate"] == "0.0003"
    assert runs(project, "tags.kind = 'flow'")[0].info.status == "FAILED"


def test_an_interrupted_stage_is_shown_while_it_runs_and_ends_as_killed(
    project: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_AFTER_S", 0.0)
    with (
        pytest.raises(Terminated),
        flow_run("retrain", with_learning_rate(params, 1.0), project) as record,
        record.stage("train_policy") as stage,
    ):
        while stage.run_id is None:
            pass
        assert open_store(project).get_run(stage.run_id).info.status == "RUNNING"
        records = project / ".envace/checkpoints/abc/records"
        write_json(records / "validation-000000.metrics.json", {"step": 0, "phase": "validation", "reward": 0.25})
        write_json(records / "train-000001.metrics.json", {"step": 1, "phase": "train", "reward": 0.5})
        raise Terminated
    killed = runs(project, "tags.stage = 'train_policy'")[0]
    assert killed.info.status == "KILLED" and killed.data.tags["changed_parameters"] == ""
    assert runs(project, "tags.kind = 'flow'")[0].info.status == "KILLED"
    history = open_store(project).get_metric_history(killed.info.run_id, "reward")
    assert [(m.step, m.value) for m in history] == [(0, 0.25), (1, 0.5)], "what was trained until then"


def test_the_curve_of_a_training_grows_while_it_runs(
    project: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_AFTER_S", 0.0)
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.05)
    with flow_run("retrain", with_learning_rate(params, 2.0), project) as record, record.stage("train_policy") as stage:
        write_json(
            project / ".envace/checkpoints/abd/records/train-000001.metrics.json",
            {"step": 1, "reward/mean": 0.2},  # as in the fixture's metrics.jsonl
        )
        while stage.run_id is None or not open_store(project).get_metric_history(stage.run_id, "reward/mean"):
            time.sleep(0.05)
        stage.outcome = "ran"
    history = open_store(project).get_metric_history(stage.run_id, "reward/mean")
    assert [(m.step, m.value) for m in history] == [(1, 0.2), (2, 0.4), (3, pytest.approx(0.6))], "each step once"


def test_nothing_to_do_leaves_no_run(project: Path, params: Params) -> None:
    before = len(runs(project, ""))
    with flow_run("retrain", params, project) as record, record.stage("prepare_data"):
        pass
    assert len(runs(project, "")) == before


def test_a_run_whose_process_was_killed_outright_ends_as_killed(project: Path, params: Params) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from envace.tracking.store import *; from envace.tracking.runs import *\n"
        "root = Path(sys.argv[1]); client = open_store(root)\n"
        "print(start_run(client, experiment_id(client, 'envace', root), 'lost', {}), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code, str(project)]
    lost = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=180, check=False)
    assert lost.returncode == -signal.SIGKILL
    run_id = lost.stdout.split()[-1]
    assert open_store(project).get_run(run_id).info.status == "RUNNING"
    with flow_run("retrain", params, project) as record, record.stage("train_policy") as stage:
        stage.outcome = "ran"
    assert open_store(project).get_run(run_id).info.status == "KILLED"


def test_a_store_that_cannot_be_written_does_not_stop_the_flow(project: Path, params: Params) -> None:
    (project / ".envace").unlink()
    (project / ".envace" / "mlflow").mkdir(parents=True)
    (project / ".envace" / "mlflow" / "mlflow.db").write_bytes(b"no database" * 500)
    said: list[str] = []
    with flow_run("retrain", params, project, say=said.append) as record:
        for name in ("prepare_data", "train_policy"):
            with record.stage(name) as stage:
                stage.outcome = "ran"
    assert len(said) == 1 and "not recorded in MLflow" in said[0]


def test_no_secret_reaches_the_store(project: Path, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", CANARY)
    # the address of a remote may hold a password, and MLflow would keep it
    subprocess.run(["git", "init", "--quiet", "."], cwd=project, check=True)
    remote = f"https://user:{CANARY}@git.example/x.git"
    subprocess.run(["git", "remote", "add", "origin", remote], cwd=project, check=True)
    who = ["-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", *who, "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=project, check=True)
    monkeypatch.chdir(project)
    judge = params.reward.judge
    endpoint = judge.endpoint.model_copy(update={"api_key_env": "JUDGE_KEY"})
    reward = params.reward.model_copy(update={"judge": judge.model_copy(update={"endpoint": endpoint})})
    with_key = params.model_copy(update={"reward": reward})
    rollouts = project / "reports/training/rollouts.parquet"
    leaky = [rollout_row(rollout("t0", 0, 1.0, f"I used {CANARY}."), step=1, phase="train")]
    write_rollouts(rollouts, leaky, ("step", "phase"))
    with pytest.raises(StageError), flow_run("retrain", with_key, project) as record, record.stage("train_policy"):
        raise StageError(f"stage train_policy failed: 401 for key {CANARY}")
    register(with_key, project)
    found = [p for p in (project / ".envace").resolve().rglob("*") if p.is_file() and CANARY.encode() in p.read_bytes()]
    assert found == []
    failed = runs(project, "tags.stage = 'train_policy'")[0]
    assert failed.data.tags["error"] == "stage train_policy failed: 401 for key [secret]"
