"""Registration on one store, step by step: each test goes on from the registry that the one before it left."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from envace.config import Params
from envace.errors import DataError, TrackingError
from envace.files import read_json, write_json
from envace.tracking.presence import is_registered
from envace.tracking.promotion import promote
from envace.tracking.register import register
from envace.tracking.store import database, open_store
from tests.conftest import write_tasks


def change_model(project: Path, note: str) -> None:
    """Other bytes, same behaviour."""
    (project / "models/policy/note.json").write_text(f'"{note}"', encoding="utf-8")


def score(project: Path, reward: float) -> None:
    path = project / "reports/evaluation/metrics.json"
    evaluation = read_json(path)
    evaluation["policies"]["trained"]["heldout"]["true"]["reward"] = reward
    write_json(path, evaluation)


def test_a_first_good_model_becomes_champion(project: Path, params: Params) -> None:
    assert not is_registered(params, project)
    done = register(params, project)
    assert (done.version, done.aliases, done.refusal) == ("1", ["challenger", "champion"], None)
    assert is_registered(params, project)
    client = open_store(project)
    run = client.get_run(done.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params["train_policy.learning_rate"] == "0.0003"
    assert [m.value for m in client.get_metric_history(done.run_id, "reward/mean")] == pytest.approx([0.2, 0.4, 0.6])
    assert [m.step for m in client.get_metric_history(done.run_id, "pass:40:1")] == [1, 2, 3]
    assert run.data.metrics["evaluation/trained.heldout.true.reward"] == 0.83
    assert all(math.isfinite(v) for v in run.data.metrics.values())
    assert "kl" not in run.data.metrics and run.data.tags["nonfinite_values"] == "1"
    version = client.get_model_version(done.model_name, "1")
    assert version.tags["gate"] == "promoted"
    assert not [p for p in (project / ".envace").rglob("*") if p.suffix in (".pkl", ".pickle", ".pt", ".bin")]


def test_the_same_model_again_is_the_same_version(project: Path, params: Params) -> None:
    done = register(params, project)
    assert (done.version, done.aliases) == ("1", ["challenger", "champion"])
    assert len(open_store(project).search_model_versions(f"name = '{done.model_name}'")) == 1


def test_a_new_evaluation_of_it_is_a_new_run_of_the_same_version(project: Path, params: Params) -> None:
    score(project, 0.84)
    done = register(params, project)
    client = open_store(project)
    assert done.version == "1"
    assert client.get_model_version(done.model_name, "1").tags["heldout_reward"] == "0.84"
    assert client.get_run(done.run_id).data.metrics["evaluation/trained.heldout.true.reward"] == 0.84


def test_a_kill_between_the_tags_leaves_no_wrong_score_and_heals(
    project: Path, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    name, whole = params.register_model.model_name, MlflowClient.set_model_version_tag

    def cut_short(client: MlflowClient, name: str, version: str, key: str, value: str) -> None:
        if key == "heldout_reward":
            raise KeyboardInterrupt
        whole(client, name, version, key, value)

    score(project, 0.835)
    monkeypatch.setattr(MlflowClient, "set_model_version_tag", cut_short)
    with pytest.raises(KeyboardInterrupt):
        register(params, project)
    tags = open_store(project).get_model_version(name, "1").tags
    assert tags["lineage_sha256"] == "" and "heldout_reward" not in tags and "heldout_success" not in tags
    monkeypatch.undo()
    score(project, 0.84)
    done = register(params, project)
    tags = open_store(project).get_model_version(name, "1").tags
    assert done.recorded and done.version == "1" and tags["lineage_sha256"] and tags["heldout_reward"] == "0.84"
    assert not register(params, project).recorded


def test_a_worse_model_is_challenger_only(project: Path, params: Params) -> None:
    change_model(project, "worse")
    done = register(params, project)
    assert (done.version, done.aliases) == ("2", ["challenger"])
    assert done.refusal == "held-out reward 0.83 does not beat the champion's 0.84"
    client = open_store(project)
    assert client.get_model_version(done.model_name, "2").tags["gate"] == f"refused: {done.refusal}"
    assert client.get_model_version_by_alias(done.model_name, "champion").version == 1


def test_another_benchmark_is_no_comparison(project: Path, params: Params) -> None:
    change_model(project, "other tasks")
    score(project, 0.9)
    write_tasks(project, ["t0"], ["h0", "h2"])
    done = register(params, project)
    assert done.aliases == ["challenger"] and "another benchmark" in (done.refusal or "")


def test_a_better_model_takes_over_also_with_other_training_tasks(project: Path, params: Params) -> None:
    change_model(project, "better")
    score(project, 0.86)
    write_tasks(project, ["t7", "t8", "t9"], ["h1", "h0"])
    write_json(project / "data/prepared/manifest.json", {"splits": {"train": 1}})
    done = register(params, project)
    assert done.aliases == ["challenger", "champion"]


def test_a_missing_figure_stops_it_and_moves_nothing(project: Path, params: Params) -> None:
    change_model(project, "unmeasured")
    path = project / "reports/evaluation/metrics.json"
    evaluation = read_json(path)
    del evaluation["policies"]["trained"]["heldout"]
    write_json(path, evaluation)
    with pytest.raises(TrackingError, match=r"policies\.trained\.heldout; run stage evaluate_policy again"):
        register(params, project)
    assert not is_registered(params, project)
    assert open_store(project).get_model_version_by_alias("envace-tiny", "champion").version == 4


def test_the_gate_can_be_asked_again(project: Path, params: Params) -> None:
    open_store(project).set_registered_model_alias("envace-tiny", "champion", "1")
    assert promote(params, "envace-tiny", "4", project) is None
    assert "does not beat" in (promote(params, "envace-tiny", "2", project) or "")
    assert open_store(project).get_model_version_by_alias("envace-tiny", "champion").version == 4
    with pytest.raises(TrackingError, match=r"envace-tiny/9: .* envace-tiny/1, envace-tiny/2, envace-tiny/3"):
        promote(params, "envace-tiny", "9", project)


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("reports/evaluation/metrics.json", "evaluate_policy"),
        ("reports/training/metrics.jsonl", "train_policy"),
        ("reports/training/summary.json", "train_policy"),
        ("data/prepared/manifest.json", "prepare_data"),
        ("data/prepared/tasks.parquet", "prepare_data"),
        ("models/policy", "train_policy"),
    ],
)
def test_a_missing_file_names_the_stage_that_writes_it(project: Path, params: Params, path: str, stage: str) -> None:
    target = project / path
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    with pytest.raises(DataError, match=f"{path}: not found; stage {stage} writes it"):
        register(params, project)


def test_a_broken_line_of_the_curve_is_named(project: Path, params: Params) -> None:
    (project / "reports/training/metrics.jsonl").write_text('{"step": 1}\n{"step": 2, \n', encoding="utf-8")
    with pytest.raises(DataError, match=r"metrics\.jsonl, line 2"):
        register(params, project)


def test_artifacts_that_are_gone_are_noticed_and_made_anew(project: Path, params: Params) -> None:
    assert is_registered(params, project)
    shutil.rmtree(project / ".envace/mlflow/artifacts/models")
    assert not is_registered(params, project)
    assert register(params, project).version == "5"
    assert is_registered(params, project)


def test_a_wiped_or_damaged_database_is_noticed(project: Path, params: Params) -> None:
    database(project).unlink()
    assert not is_registered(params, project)
    database(project).write_bytes(b"no database" * 500)
    assert not is_registered(params, project)
