"""Two at once, and kill -9 of flow, DVC and stage: no orphan, no partial output, and the next run ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

# One stage with the plumbing of the shipped ones: its locks, its death with its parent, all-or-nothing writes.
STAGE = """
import subprocess, sys, time
from pathlib import Path
from envace.files import atomic_path
from envace.stage import stage_main
def run(params):
    with atomic_path(Path("made")) as part:
        part.mkdir()
        (part / "first").write_text("1")
        if Path("slow").exists():
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
            print("half done", flush=True)
            time.sleep(300)
        (part / "second").write_text("2")
stage_main("train_policy", run)
"""
COMMAND = """
import flows.dvc
flows.dvc.STAGES = ("train_policy",)
import pipeline_steps.register_model as step
step.is_registered = lambda params, root: True
from flows.cli import main
main()
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Iterator[Path]:
    shutil.copy(project_root / "params.yaml", tmp_path)
    (tmp_path / "stage.py").write_text(STAGE, encoding="utf-8")
    command = f"exec {sys.executable} stage.py"
    graph = f"stages:\n  train_policy:\n    cmd: {command}\n    deps: [stage.py]\n    outs: [made]\n"
    (tmp_path / "dvc.yaml").write_text(graph, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "slow").touch()
    yield tmp_path
    assert not below(tmp_path)


@pytest.fixture
def start(project: Path, prefect_api: str) -> Start:
    """Starts a command of envace, or a bare DVC, in the project."""

    def begin(*arguments: str, dvc: bool = False) -> subprocess.Popen[str]:
        command = ["-m", "dvc", "repro"] if dvc else ["-c", COMMAND, *arguments]
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=project,
            env={**os.environ, "PREFECT_API_URL": prefect_api},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


def below(folder: Path) -> list[psutil.Process]:
    """Every process that works in the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()) == folder and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def half_done(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.strip() == "half done":
            return
    raise AssertionError("".join(seen))


def one(folder: Path, word: str) -> psutil.Process:
    """The process in the folder whose command has this word."""
    return next(p for p in below(folder) if word in p.cmdline())


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["flow", "repro", "stage.py"])
def test_a_kill_leaves_nothing_and_the_next_run_ends(project: Path, start: Start, victim: str) -> None:
    process = start("run")
    half_done(process)
    target = psutil.Process(process.pid) if victim == "flow" else one(project, victim)
    target.send_signal(signal.SIGKILL)
    code, output = finished(process)
    assert code == (-signal.SIGKILL if victim == "flow" else 1), output
    deadline = time.monotonic() + 40
    while below(project) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not below(project)
    assert not (project / "made").exists()
    (project / "slow").unlink()
    code, output = finished(start("run"))
    assert code == 0 and "1 stages run" in output, output
    assert sorted(p.name for p in (project / "made").iterdir()) == ["first", "second"]
    assert not list(project.glob(".made.part-*")), "what the killed one had begun is gone"


def test_of_two_runs_the_second_is_told_who_holds_the_pipeline(project: Path, start: Start) -> None:
    first = start("run")
    half_done(first)
    code, output = finished(start("run"))
    assert code == 1
    assert f"this project's pipeline is held by process {first.pid}" in output and "Traceback" not in output
    code, output = finished(start(dvc=True))
    assert code != 0 and "lock" in output.lower(), "a bare dvc is refused too"
    assert first.poll() is None, "the first one goes on"
    first.send_signal(signal.SIGINT)
    assert finished(first)[0] == 130


def test_a_run_beside_a_bare_dvc_is_told_who_is_at_work(project: Path, start: Start) -> None:
    bare = start(dvc=True)
    half_done(bare)
    code, output = finished(start("run"))
    assert code == 1 and str(bare.pid) in output and "Traceback" not in output, output
    bare.terminate()
    finished(bare)
