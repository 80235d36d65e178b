"""How a stage runs as a process: exit codes and messages, its lock, and that nothing outlives it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROLOGUE = """
import subprocess, sys, time
from pathlib import Path
from envace.errors import DataError
from envace.files import atomic_path
from envace.stage import stage_main

def run(params):
"""


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    shutil.copy(project_root / "params.yaml", tmp_path)
    return tmp_path


def start(project: Path, body: str, name: str = "fetch_data", **environment: str) -> subprocess.Popen[str]:
    code = PROLOGUE + "".join(f"    {line}\n" for line in body.splitlines()) + f"\nstage_main({name!r}, run)"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(project: Path, body: str, name: str = "fetch_data", **environment: str) -> tuple[int, str, str]:
    process = start(project, body, name, **environment)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def wait_for(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_stage_that_works_exits_0_and_says_nothing_more(project: Path) -> None:
    assert ended(project, "print(params.profile)") == (0, "tiny-cpu\n", "")


def test_a_deliberate_error_is_one_message_and_exit_2(project: Path) -> None:
    code, out, err = ended(project, "raise DataError('x.json: empty; fill it')")
    assert (code, out, err) == (2, "", "fetch_data: x.json: empty; fill it\n")


def test_a_bug_keeps_its_traceback_and_exits_1(project: Path) -> None:
    code, _, err = ended(project, "raise ValueError('bug')")
    assert code == 1 and "Traceback" in err and err.endswith("ValueError: bug\n")


def test_missing_parameters_are_one_message(tmp_path: Path) -> None:
    code, _, err = ended(tmp_path, "pass")
    assert code == 2 and err.startswith("fetch_data: params.yaml: no such file") and "Traceback" not in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_unwinds_so_that_no_part_is_left(project: Path, number: signal.Signals, code: int) -> None:
    body = "with atomic_path(Path('out')) as part:\n    part.mkdir()\n    print('up', flush=True)\n    time.sleep(60)"
    process = start(project, body)
    wait_for(process)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, "")
    assert sorted(p.name for p in project.iterdir()) == [".envace", "params.yaml"]


def test_an_inherited_ignored_interrupt_still_stops_it(project: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start(project, "print('up', flush=True)\ntime.sleep(60)")
        wait_for(process)
    finally:
        signal.signal(signal.SIGINT, before)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130


def test_a_second_holder_is_refused_by_the_pid_of_the_first(project: Path) -> None:
    first = start(project, "print('up', flush=True)\ntime.sleep(60)")
    wait_for(first)
    code, _, err = ended(project, "print('ran')")
    first.kill()
    first.communicate()
    assert code == 2
    assert f"stage fetch_data is held by process {first.pid}" in err and "Traceback" not in err
    assert ended(project, "print('ran')")[:2] == (0, "ran\n"), "the lock must go with its holder"


def test_other_stages_are_not_held_up_but_trainers_share_one_lock(project: Path) -> None:
    lock = "from envace.locks import held\nwith held('gpu', what='x'):\n    print('up', flush=True)\n    time.sleep(60)"
    other = start(project, lock, name="evaluate_policy")
    wait_for(other)
    assert ended(project, "pass", name="fetch_data")[0] == 0
    code, _, err = ended(project, "pass", name="train_policy")
    other.kill()
    other.communicate()
    assert code == 2 and f"this project's trainer is held by process {other.pid}" in err


@pytest.mark.parametrize("ending", ["", "raise DataError('no')", "raise ValueError('bug')"])
def test_every_process_it_started_is_gone_also_orphans_that_changed_session(project: Path, ending: str) -> None:
    body = "subprocess.run(['sh', '-c', 'setsid sleep 300 & echo $!'])\n" + ending
    _, out, _ = ended(project, body)
    assert not runs(int(out))


def test_a_child_that_ignores_sigterm_is_killed(project: Path) -> None:
    stubborn = "trap '' TERM; echo up; while true; do sleep 0.2; done"
    begin = f"child = subprocess.Popen(['sh', '-c', {stubborn!r}], stdout=subprocess.PIPE)"
    body = f"{begin}\nchild.stdout.readline()\nprint(child.pid)"
    code, out, _ = ended(project, body)
    assert code == 0 and not runs(int(out))


def test_it_dies_with_its_parent(project: Path) -> None:
    code = PROLOGUE + "    print('up', flush=True)\n    time.sleep(60)\n\nstage_main('fetch_data', run)"
    relay = (
        "import subprocess, sys\n"
        f"stage = subprocess.Popen([sys.executable, '-c', {code!r}])\n"
        "print(stage.pid, flush=True)\nstage.wait()"
    )
    parent = subprocess.Popen([sys.executable, "-c", relay], cwd=project, stdout=subprocess.PIPE, text=True)
    pid = int(wait_for(parent))
    wait_for(parent)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(pid)


def test_a_parent_that_ended_before_the_start_is_noticed(project: Path) -> None:
    assert ended(project, "print('ran')", ENVACE_PARENT_PID="1")[:2] == (143, "")


def test_it_is_quiet_unless_the_user_says_otherwise(project: Path) -> None:
    body = "import os\nprint(os.environ['DO_NOT_TRACK'], os.environ['HF_HUB_OFFLINE'])"
    assert ended(project, body, HF_HUB_OFFLINE="0", DO_NOT_TRACK="true")[1] == "true 0\n"


def test_the_step_script_says_what_is_missing(project_root: Path, tmp_path: Path) -> None:
    script = project_root / "bin" / "step"
    absent = {**os.environ, "ENVACE_PYTHON": str(tmp_path / "python")}
    done = subprocess.run([script, "fetch_data"], env=absent, capture_output=True, text=True)
    assert done.returncode == 2 and "make run" in done.stderr
    done = subprocess.run([script], env={**os.environ, "ENVACE_PYTHON": sys.executable}, capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr
