"""One stage at a time through DVC: what it did, what it said, and that nothing is left when it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from envace.errors import StageError
from flows.dvc import changed_stages, run_stage

Project = Callable[[dict[str, str]], Path]


def test_all_stages_are_asked_about_at_once(dvc_project: Callable[[dict[str, str]], Path]) -> None:
    project = dvc_project({"greet": "echo 1 > greet.out", "wait": "echo 2 > wait.out"})
    assert changed_stages(project) == {"greet", "wait"}
    run_stage("greet", root=project, log=lambda _: None)
    assert changed_stages(project) == {"wait"}
    run_stage("wait", root=project, log=lambda _: None)
    assert changed_stages(project) == set()
    (project / "greet.out").unlink()
    with (project / "wait.sh").open("a") as script:
        script.write("# changed\n")
    assert changed_stages(project) == {"greet", "wait"}
    (project / "dvc.yaml").write_text("stages: [", encoding="utf-8")
    assert changed_stages(project) is None


def test_a_stage_runs_once_then_is_unchanged_and_comes_back_from_the_cache(dvc_project: Project) -> None:
    project = dvc_project({"greet": "echo hello; echo 1 > greet.out"})
    lines: list[str] = []
    assert run_stage("greet", root=project, log=lines.append).outcome == "ran"
    assert lines == ["hello"]
    lock = (project / "dvc.lock").read_bytes()
    assert run_stage("greet", root=project, log=lines.append).outcome == "unchanged"
    assert lines == ["hello"], "what dvc says about itself is left out"
    (project / "greet.out").unlink()
    assert run_stage("greet", root=project, log=lines.append).outcome == "cached"
    assert (project / "greet.out").read_text() == "1\n"
    assert run_stage("greet", root=project, log=lines.append, force=True).outcome == "ran"
    assert (project / "dvc.lock").read_bytes() == lock


def test_a_failing_stage_is_reported_in_its_own_words(dvc_project: Project) -> None:
    said = "echo noise; echo 'greet: the file x.json is empty' >&2; echo '  - refill it'; exit 2"
    project = dvc_project({"greet": said})
    with pytest.raises(StageError) as caught:
        run_stage("greet", root=project, log=lambda _: None)
    assert str(caught.value) == "stage greet failed: the file x.json is empty\n  - refill it"


def test_a_bug_in_a_stage_is_reported_by_its_last_line(dvc_project: Project) -> None:
    project = dvc_project({"greet": f"exec {sys.executable} -c 'raise ValueError(\"boom\")'"})
    seen: list[str] = []
    with pytest.raises(StageError, match=r"ValueError: boom \(a bug; its traceback is above\)"):
        run_stage("greet", root=project, log=seen.append)
    assert any("Traceback" in line for line in seen)


def test_a_stage_that_writes_nothing_fails(dvc_project: Project) -> None:
    with pytest.raises(StageError, match=r"greet\.out"):
        run_stage("greet", root=dvc_project({"greet": "true"}), log=lambda _: None)


def test_a_stage_that_another_dvc_runs_is_refused_by_its_pid(dvc_project: Project) -> None:
    project = dvc_project({"wait": "echo started; sleep 60"})
    command = [sys.executable, "-m", "dvc", "repro", "wait"]
    other = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert other.stdout is not None
    assert any(line.strip() == "started" for line in other.stdout)
    with pytest.raises(StageError, match=rf"(?s)is busy, it is being blocked by.*PID {other.pid}"):
        run_stage("wait", root=project, log=lambda _: None)
    os.killpg(other.pid, signal.SIGKILL)
    other.communicate()


def test_an_interrupt_ends_the_stage_and_its_children(dvc_project: Project) -> None:
    project = dvc_project({"wait": "echo started; sleep 300 & echo $!; sleep 301; wait"})
    children: list[int] = []

    def stop_after_start(line: str) -> None:
        if line.isdigit():
            children.append(int(line))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stage("wait", root=project, log=stop_after_start)
    assert not any(psutil.pid_exists(pid) and _runs(pid) for pid in children)
    assert not [p for p in psutil.Process().children(recursive=True) if "wait.sh" in " ".join(_command(p))]
    assert not (project / "wait.out").exists()


def test_killing_the_caller_outright_ends_the_stage(dvc_project: Project) -> None:
    stage = (
        f"{sys.executable} - <<'EOF'\nimport os, time\n"
        "from envace.processes import die_with_parent\ndie_with_parent()\n"
        "print(os.getpid(), flush=True)\ntime.sleep(300)\nEOF"
    )
    project = dvc_project({"wait": "exec " + stage})
    code = "from flows.dvc import run_stage; run_stage('wait', log=lambda line: print(line, flush=True))"
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=project, stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    pid = int(next(line for line in caller.stdout if line.strip().isdigit()))
    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()
    deadline = time.monotonic() + 20
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
