"""`envace run` and `envace profile`: what is refused before anything starts, and taking over a profile."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envace.config import load_params
from envace.errors import ConfigError
from flows.cli import app
from flows.git import git

WHO = ("-c", "user.name=t", "-c", "user.email=t@t")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with the shipped parameters and profiles, as the working directory."""
    shutil.copy(project_root / "params.yaml", tmp_path)
    shutil.copytree(project_root / "profiles", tmp_path / "profiles")
    git(tmp_path, "init", "--quiet", ".")
    git(tmp_path, "add", "--all")
    git(tmp_path, *WHO, "commit", "--quiet", "-m", "start")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not (tmp_path / ".envace" / "prefect").exists(), "nothing was started"


def said(*arguments: str) -> str:
    """What a command that ends well prints, or the message of the error that it ends with."""
    done = CliRunner().invoke(app, list(arguments))
    if isinstance(done.exception, ConfigError):
        return str(done.exception)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--profile", "qwen3-8"), "there are: qwen3-1.7b"),
        (("--profile", "qwen3-8b"), "fetch_data.hub.revision"),
        (("--set", "train_policy.stepz=3"), "train_policy.stepz: the profile has no such key"),
        (("--set", "train_policy.steps"), "write KEY=VALUE"),
        (("--set", "train_policy.steps=[1"), "not YAML"),
        (("--set", "train_policy.steps=few"), "train_policy.steps"),
        (("--name", "../x"), "--name"),
        (("--name", "evaluation"), "choose another name"),
        (("--force", "train"), "no such stage"),
    ],
)
def test_what_is_wrong_is_told_at_once(arguments: tuple[str, ...], told: str) -> None:
    assert told in said("run", *arguments)
    assert not git(Path(), "branch", "--list", "runs/*")


@pytest.mark.parametrize(
    "given",
    [
        "base_url=http://user:hunter2@127.0.0.1/v1",
        "base_url=http://user:hunter2@[127.0.0.1: x",
        "base_url=[http://user:hunter2@127.0.0.1",
        "api_key_env=sk-hunter2",
    ],
)
def test_a_secret_that_is_set_is_refused_and_not_repeated(given: str) -> None:
    told = said("run", "--set", f"reward.judge.endpoint.{given}")
    assert f"reward.judge.endpoint.{given.partition('=')[0]}" in told and "hunter2" not in told


def test_profiles_are_listed_with_the_one_in_use(project: Path) -> None:
    lines = said("profile", "list").splitlines()
    assert "* tiny-cpu" in lines
    assert any(line.startswith("  qwen3-8b") and "values to fill in" in line for line in lines)


def test_a_profile_is_taken_over_and_given_back(project: Path) -> None:
    shipped = (project / "params.yaml").read_bytes()
    assert "fill in fetch_data.hub.revision" in said("profile", "use", "qwen3-8b")
    assert (project / "params.yaml").read_bytes() == (project / "profiles" / "qwen3-8b.yaml").read_bytes()
    assert "* qwen3-8b" in said("profile", "list")
    said("profile", "use", "tiny-cpu")
    assert (project / "params.yaml").read_bytes() == shipped
    said("profile", "use", "qwen3-8b")
    git(project, *WHO, "commit", "--quiet", "--all", "-m", "big")
    said("profile", "use", "tiny-cpu")
    assert load_params(project / "params.yaml").profile == "tiny-cpu"


def test_edits_that_are_not_committed_are_not_lost(project: Path) -> None:
    edited = (project / "params.yaml").read_text(encoding="utf-8").replace("  steps: 20", "  steps: 21")
    (project / "params.yaml").write_text(edited, encoding="utf-8")
    assert "not committed and would be lost" in said("profile", "use", "qwen3-8b")
    assert (project / "params.yaml").read_text(encoding="utf-8") == edited
    assert "unknown; there are" in said("profile", "use", "nothing")
