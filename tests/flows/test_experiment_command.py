"""`envace experiment` at the command line, and how it runs stages: errors in one line, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from envace.errors import StageError
from flows import experiment_stages
from flows.cli import app
from flows.dvc import STAGES
from flows.experiment_stages import module_of, stage_runner

RUNNER = CliRunner()
PLAN = "title: T\nquestion: Q\nseeds: [0]\narms:\n  one: {label: the first}\n"


@pytest.fixture
def project(tmp_path: Path, project_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the shipped params and one plan."""
    (tmp_path / "params.yaml").write_bytes((project_root / "params.yaml").read_bytes())
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/mine.yaml").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_plans_are_listed_with_what_is_finished(project: Path) -> None:
    for arguments in (["experiment"], ["experiment", "--list"]):
        found = RUNNER.invoke(app, arguments)
        assert found.exit_code == 0 and "mine: T" in found.output and "one: the first (seeds 0)" in found.output
    assert not (project / ".envace").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["theirs"], "no such plan; those in experiments/ are: mine"),
        (["mine", "--arm", "two"], "--arm two: not in this plan"),
        (["mine", "--seed", "5"], "--seed 5: not in this plan"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_runs(project: Path, arguments: list[str], told: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", "from flows.cli import main; main()", "experiment", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(Path(experiment_stages.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2 and told in found.stderr and "Traceback" not in found.stderr
    assert not (project / ".envace").exists()


def test_stages_are_the_pipelines_and_jobs_are_the_experiments(project_root: Path) -> None:
    names = [module_of(name) for name in (*STAGES, "evaluation_job", "loss_job")]
    for name in names:
        assert (project_root / f"{name.replace('.', '/')}.py").is_file()


@pytest.fixture
def modules(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runner finds its modules instead: in the folder itself."""
    monkeypatch.setattr(experiment_stages, "module_of", lambda name: name)
    return project


def test_a_stage_runs_in_its_folder_and_its_lines_are_handed_on(modules: Path) -> None:
    (modules / "good.py").write_text(
        "import os, envace\nprint(os.getcwd())\nprint(envace.__file__)\n", encoding="utf-8"
    )
    lines: list[str] = []
    stage_runner(lines.append)("good", modules)
    assert lines == [str(modules), str(Path(experiment_stages.__file__).parents[1] / "envace/__init__.py")]


def test_a_stage_that_fails_is_told_by_its_own_last_words(modules: Path) -> None:
    (modules / "bad.py").write_text("import sys\nprint('first')\nsys.exit('bad: no disk')\n", encoding="utf-8")
    with pytest.raises(StageError, match=r"(?s)stage bad in .* ended with code 1: .*bad: no disk"):
        stage_runner(lambda line: None)("bad", modules)


def test_an_interrupt_ends_the_stage_and_what_it_started(modules: Path) -> None:
    (modules / "long.py").write_text(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\nchild.wait()\n",
        encoding="utf-8",
    )
    pids: list[int] = []

    def interrupt(line: str) -> None:
        pids.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage_runner(interrupt)("long", modules)
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pids[0]) and psutil.Process(pids[0]).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)
