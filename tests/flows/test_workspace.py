"""Runs of their own: the worktree, its parameters, the branch that keeps it, and a project that stays as it was."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envace.config import load_params
from envace.errors import ConfigError
from flows.dvc import run_stage
from flows.git import git
from flows.workspace import EVALUATION, WORKTREES, check_name, check_parameters, ended, open_workspace, remove_old

WHO = ("-c", "user.name=t", "-c", "user.email=t@t")


@pytest.fixture
def project(dvc_project: Callable[[dict[str, str]], Path], project_root: Path) -> Path:
    """One quick stage, the shipped parameters and profiles, and a first commit."""
    folder = dvc_project({"greet": "echo hello; echo 1 > greet.out"})
    shutil.copy(project_root / "params.yaml", folder)
    shutil.copytree(project_root / "profiles", folder / "profiles")
    (folder / ".gitignore").write_text(".envace\n*.out\n", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, *WHO, "commit", "--quiet", "-m", "start")
    return folder


def state_of(project: Path) -> tuple[str, str, bytes]:
    head, status = git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain")
    return head, status, (project / "params.yaml").read_bytes()


def test_a_run_is_kept_on_its_branch_and_the_project_stays_as_it_was(project: Path) -> None:
    before = state_of(project)
    place = open_workspace(project, "try", values={"train_policy.steps": 3})
    assert (place.folder / ".envace").resolve() == (project / ".envace").resolve()
    assert git(project, "show", "runs/try:params.yaml") != git(project, "show", "HEAD:params.yaml")
    assert run_stage("greet", root=place.folder, log=lambda _: None).outcome == "ran"
    assert not ended(project, "try")
    commit = place.keep()
    assert commit == git(project, "rev-parse", "runs/try") and ended(project, "try")
    assert "greet" in git(project, "show", "runs/try:dvc.lock")
    assert load_params(place.folder / "params.yaml").train_policy.steps == 3
    assert place.keep() is None, "nothing has changed since"
    assert state_of(project) == before
    git(project, "checkout", "--quiet", "runs/try")
    assert (project / "dvc.lock").is_file(), "the worktree has let go of the branch"


def test_runs_share_what_the_project_has_computed(project: Path) -> None:
    assert run_stage("greet", root=project, log=lambda _: None).ran
    place = open_workspace(project, "again")
    assert run_stage("greet", root=place.folder, log=lambda _: None).outcome == "cached"
    assert (place.folder / "greet.out").read_text(encoding="utf-8") == "1\n"


def test_a_run_that_never_ended_goes_on_with_the_code_of_today_and_its_own_parameters(project: Path) -> None:
    place = open_workspace(project, "try", values={"train_policy.steps": 3})
    (project / "greet.sh").write_text("echo mended; echo 2 > greet.out\n", encoding="utf-8")
    git(project, *WHO, "commit", "--quiet", "--all", "-m", "mended")
    again = open_workspace(project, "try")
    assert again.folder == place.folder
    assert "mended" in (again.folder / "greet.sh").read_text(encoding="utf-8")
    assert load_params(again.folder / "params.yaml").train_policy.steps == 3
    shutil.rmtree(again.folder)  # deleted by hand, as a folder
    assert load_params(open_workspace(project, "try").folder / "params.yaml").train_policy.steps == 3


def set_steps(project: Path, steps: int, *how: str) -> None:
    text = (project / "params.yaml").read_text(encoding="utf-8")
    (project / "params.yaml").write_text(re.sub(r"(?m)^  steps: \d+", f"  steps: {steps}", text), encoding="utf-8")
    git(project, *WHO, "commit", "--quiet", "--all", "-m", "steps", *how)


@pytest.mark.parametrize("name", ["try", EVALUATION])
def test_what_is_opened_again_has_the_parameters_of_the_commit_that_is_checked_out(project: Path, name: str) -> None:
    git(project, "checkout", "--quiet", "-b", "other")
    set_steps(project, 7)
    assert load_params(open_workspace(project, name).folder / "params.yaml").train_policy.steps == 7
    set_steps(project, 8, "--amend")
    assert load_params(open_workspace(project, name).folder / "params.yaml").train_policy.steps == 8
    git(project, "checkout", "--quiet", "-")
    first = load_params(project / "params.yaml").train_policy.steps
    assert load_params(open_workspace(project, name).folder / "params.yaml").train_policy.steps == first != 8


def test_an_ended_run_is_opened_as_it_was(project: Path) -> None:
    place = open_workspace(project, "try")
    run_stage("greet", root=place.folder, log=lambda _: None)
    place.keep()
    (project / "greet.sh").write_text("echo other; echo 2 > greet.out\n", encoding="utf-8")
    git(project, *WHO, "commit", "--quiet", "--all", "-m", "other")
    again = open_workspace(project, "try")
    assert "other" not in (again.folder / "greet.sh").read_text(encoding="utf-8")
    assert run_stage("greet", root=again.folder, log=lambda _: None).outcome == "unchanged"


def test_a_lock_in_the_last_commit_is_not_the_end_of_a_run(project: Path) -> None:
    run_stage("greet", root=project, log=lambda _: None)
    git(project, "add", "--force", "dvc.lock")
    git(project, *WHO, "commit", "--quiet", "-m", "with its lock")
    first = open_workspace(project, "first")
    assert not ended(project, "first")
    assert run_stage("greet", root=first.folder, log=lambda _: None).outcome != "ran"
    assert first.keep() is not None and ended(project, "first"), "a commit although nothing had changed"
    git(project, "checkout", "--quiet", "runs/first")
    for name in ("second", "fir"):
        open_workspace(project, name)
        assert not ended(project, name), "it began at the branch of another run"


def test_a_run_goes_on_after_the_project_was_moved(project: Path) -> None:
    for name in ("old", "try"):
        place = open_workspace(project, name, values={"train_policy.steps": 3})
        run_stage("greet", root=place.folder, log=lambda _: None)
        place.keep()
    open_workspace(project, "never-ended")
    moved = project.with_name("moved")
    project.rename(moved)
    try:
        assert load_params(open_workspace(moved, "try").folder / "params.yaml").train_policy.steps == 3
        open_workspace(moved, "never-ended")
        assert remove_old(moved, keep=1) == ["old"]
        assert {folder.name for folder in (moved / WORKTREES).iterdir()} == {"try", "never-ended"}
    finally:
        moved.rename(project)


def test_the_worktree_of_evaluations_is_no_run_of_the_user(project: Path) -> None:
    with pytest.raises(ConfigError, match="another name"):
        check_name(EVALUATION)
    assert open_workspace(project, EVALUATION).folder.is_dir()


def test_a_profile_is_merged_and_the_open_values_of_another_are_told(project: Path) -> None:
    (project / "profiles" / "short.yaml").write_text("profile: short\ntrain_policy: {steps: 2}\n", encoding="utf-8")
    params = load_params(open_workspace(project, "s", "short").folder / "params.yaml")
    assert (params.profile, params.train_policy.steps) == ("short", 2)
    assert params.train_policy.seed == load_params(project / "params.yaml").train_policy.seed
    with pytest.raises(ConfigError, match=r"fetch_data\.hub\.revision"):
        open_workspace(project, "big", "qwen3-8b")
    with pytest.raises(ConfigError, match=r"fetch_data\.hub\.revision"):
        check_parameters(project, "qwen3-8b", {})


@pytest.mark.parametrize(
    ("values", "told"),
    [({"train_policy.stepz": 3}, "no such key"), ({"train_policy.steps": "many"}, r"train_policy\.steps")],
)
def test_wrong_parameters_leave_nothing_behind(project: Path, values: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_workspace(project, "wrong", values=values)
    assert not git(project, "branch", "--list", "runs/*")
    assert not (project / WORKTREES / "wrong").exists()


@pytest.mark.parametrize("name", ["", "../up", "a..b", "a/b", ".hidden", "x.lock", "-f", "a b"])
def test_a_name_that_is_none_is_refused(project: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="--name"):
        open_workspace(project, name)
    assert not (project / WORKTREES).exists()


def test_without_git_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not a git repository.*git init.*in place"):
        open_workspace(tmp_path, "try")
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    with pytest.raises(ConfigError, match="with a commit"):
        open_workspace(tmp_path, "try")


def test_the_files_of_the_user_that_are_not_in_git_come_along(project: Path) -> None:
    (project / "corpus").mkdir()
    (project / "corpus" / "mine.jsonl").write_text("{}\n", encoding="utf-8")
    own = {"fetch_data.source": "file", "fetch_data.train_path": "corpus/*.jsonl", "fetch_data.licence": "MIT"}
    place = open_workspace(project, "own", values=own)
    assert (place.folder / "corpus" / "mine.jsonl").read_text(encoding="utf-8") == "{}\n"
    (project.parent / "outside.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="absolute path"):
        open_workspace(project, "out", values={**own, "fetch_data.train_path": "../outside.jsonl"})


def test_old_worktrees_go_and_their_branches_stay(project: Path) -> None:
    open_workspace(project, EVALUATION)
    for name in ("gave-up", "a", "b", "c", "never-ended"):
        place = open_workspace(project, name)
        run_stage("greet", root=place.folder, log=lambda _: None)
        if name in ("a", "b", "c"):
            place.keep()
    (project / ".envace" / "kept").write_text("shared", encoding="utf-8")
    assert "gave-up" in (gone := remove_old(project, keep=1)) and len(gone) == 3
    left = {folder.name for folder in (project / WORKTREES).iterdir()}
    assert len(left) == 3 and {"never-ended", EVALUATION} < left
    assert len(git(project, "branch", "--list", "runs/*").splitlines()) == 6
    assert (project / ".envace" / "kept").read_text(encoding="utf-8") == "shared"
