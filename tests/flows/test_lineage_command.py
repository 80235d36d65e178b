"""`envace lineage` on a real registry, git and DVC: what it prints, and that every kind of tampering is found."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from envace.config import Params
from envace.tracking.lineage import read_lineage
from envace.tracking.policy_model import registered_checkpoint
from envace.tracking.register import register
from envace.tracking.store import database, open_store
from envace.tracking.verification import Check, verify
from envace.tracking.version_evaluation import record_evaluation, version_to_evaluate
from tests.flows.small_project import envace, make_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, tiny_policy: Path, params: Params) -> Path:
    folder = make_project(tmp_path_factory.mktemp("project"), tiny_policy)
    register(params, folder)
    return folder


def wrong(project: Path) -> list[Check]:
    """The checks that did not pass."""
    found = read_lineage("envace-tiny", "1", project)
    return [check for check in verify(found, project, project / ".dvc" / "cache") if check.status != "ok"]


@contextmanager
def changed(path: Path, change: Callable[[Path], object]) -> Iterator[None]:
    """A file for the length of the block as `change` leaves it; DVC makes what it caches read-only."""
    before = path.read_bytes()
    path.chmod(0o644)
    change(path)
    try:
        yield
    finally:
        path.write_bytes(before)


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def test_a_version_is_told_and_verified(project: Path, params: Params) -> None:
    code, out, err = envace(project, "lineage", "envace-tiny/champion")
    assert code == 0, out + err
    for said in (
        "envace-tiny/1 (challenger, champion; gate: promoted)",
        "data data/raw",
        "rule (reward: auto)",
        "train_policy 0",
        "reward 0.8300, success 0.4700",
        "OK       models/policy",
        "commit ",
        "checks passed",
    ):
        assert said in out, said
    code, out, _ = envace(project, "lineage", "envace-tiny/1", "--json")
    told = json.loads(out)
    assert code == 0 and told["verified"] and len(told["git_commit"]) == 40 and told["seeds"]["train_policy"] == 0
    assert {c["what"] for c in told["checks"]} >= {"record", "registered model", "parameters", "figures", "code"}
    assert told["outputs"]["models/policy"].endswith(".dir")


def test_a_file_of_the_project_that_was_changed_is_named(project: Path) -> None:
    with changed(project / "data/prepared/manifest.json", append):
        code, out, _ = envace(project, "lineage", "envace-tiny/1")
    assert code == 1
    assert "DIFFERS  data/prepared" in out and "not what dvc.lock recorded: data/prepared/manifest.json" in out
    assert out.strip().endswith("not verified: data/prepared")


@pytest.mark.parametrize("kept", ["params.yaml", "dvc.lock", "dvc.yaml", "registration.json", "record.json"])
def test_a_kept_file_that_was_changed_is_found(project: Path, kept: str) -> None:
    folder = read_lineage("envace-tiny", "1", project).artifacts / "lineage"
    with changed(folder / kept, append):
        (check,) = [check for check in wrong(project) if check.what == "record"]
    assert check.status == "differs" and kept in check.detail


def test_weights_in_the_registry_that_were_changed_are_found(project: Path) -> None:
    folder = registered_checkpoint(read_lineage("envace-tiny", "1", project).model)
    with changed(folder / "model.safetensors", append):
        (check,) = wrong(project)
    assert (check.what, check.status) == ("registered model", "differs")


def test_figures_that_were_changed_are_found(project: Path) -> None:
    folder = read_lineage("envace-tiny", "1", project).artifacts
    with changed(folder / "evaluation" / "metrics.json", append):
        assert [(c.what, c.status) for c in wrong(project)] == [("figures", "differs")]
    with closing(sqlite3.connect(database(project))) as connection:
        for table in ("latest_metrics", "metrics"):
            connection.execute(f"update {table} set value = 0.99 where key = 'evaluation/trained.heldout.true.reward'")
        connection.commit()
        (check,) = wrong(project)
        for table in ("latest_metrics", "metrics"):
            connection.execute(f"update {table} set value = 0.83 where key = 'evaluation/trained.heldout.true.reward'")
        connection.commit()
    assert check.what == "figures" and "evaluation/trained.heldout.true.reward" in check.detail


@pytest.mark.parametrize("tag", ["heldout_reward", "benchmark_sha256", "dvc_lock_sha256", "git_commit"])
def test_a_tag_that_the_gate_or_a_person_goes_by_is_checked(project: Path, tag: str) -> None:
    client = open_store(project)
    before = client.get_model_version("envace-tiny", "1").tags[tag]
    client.set_model_version_tag("envace-tiny", "1", tag, "0.99")
    try:
        (check,) = wrong(project)
    finally:
        client.set_model_version_tag("envace-tiny", "1", tag, before)
    assert (check.what, check.status) == ("tags", "differs")
    assert check.detail == f"{tag} is 0.99, recorded was {before}"


def test_a_later_evaluation_is_told_and_its_tags_are_checked(project: Path, params: Params, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.json"
    shutil.copy(project / "reports/evaluation/metrics.json", metrics)
    record_evaluation(params, version_to_evaluate("envace-tiny", "1", project), metrics, project, project)
    code, out, _ = envace(project, "lineage", "envace-tiny/1")
    assert code == 0 and "evaluated later" in out and "the later evaluation too" in out
    open_store(project).set_model_version_tag("envace-tiny", "1", "evaluated_reward", "0.99")
    (check,) = wrong(project)
    assert check.what == "tags" and "evaluated_reward is 0.99, recorded was 0.83" in check.detail
    open_store(project).set_model_version_tag("envace-tiny", "1", "evaluated_reward", "0.83")


def test_dvcs_cache_is_read_and_a_later_run_in_the_folder_is_no_fault(project: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    shutil.copytree(project, later, symlinks=True)
    (later / "dvc.lock").unlink()
    shutil.rmtree(later / "models")
    found = read_lineage("envace-tiny", "1", project)
    cache = later / ".dvc" / "cache"
    assert [c for c in verify(found, later, cache) if c.status != "ok"] == []
    some = next(p for p in (cache / "files" / "md5").rglob("*") if p.is_file() and p.stat().st_size > 20_000)
    with changed(some, append):
        damaged = [c for c in verify(found, later, cache) if c.status != "ok"]
    assert damaged and all(c.status == "differs" and "cache is damaged" in c.detail for c in damaged)
    some.unlink()
    gone = [c for c in verify(found, later, cache) if c.status != "ok"]
    assert gone and all(c.status == "missing" and "not in DVC's cache" in c.detail for c in gone)


def test_a_commit_that_is_not_there_is_told(project: Path, tmp_path: Path) -> None:
    found = read_lineage("envace-tiny", "1", project)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (check,) = [c for c in verify(found, elsewhere, project / ".dvc" / "cache") if c.status != "ok"]
    assert (check.what, check.status) == ("code", "missing") and "fetch it" in check.detail


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("envace-tiny/7", "its versions are envace-tiny/1"),
        ("other/1", "models are: envace-tiny"),
        ("1", "NAME/VERSION"),
    ],
)
def test_an_unknown_version_is_one_message(project: Path, version: str, said: str) -> None:
    code, out, err = envace(project, "lineage", version)
    assert code == 2 and not out and said in err and "Traceback" not in err
