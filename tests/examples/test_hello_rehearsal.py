"""The example, run as a newcomer runs it: what it must show, and that it needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NO_NETWORK = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("the example wanted the network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
import runpy
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.fixture(scope="module")
def said(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What it prints, from any folder, with connections refused."""
    environment = {**os.environ, "PYTHONPATH": str(project_root)}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-c", NO_NETWORK, str(project_root / "examples" / "hello_rehearsal.py")],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,  # 4 s on an idle machine
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_it_shows_the_task_both_roles_and_who_answered(said: str) -> None:
    for wanted in ("cancel_order", "refund", "scripted", "USER", "ACT ", "REHEARSE ", "CODE ", "(thinks)"):
        assert wanted in said, wanted
    assert "\x1b[" not in said  # a pipe gets no colours


def test_it_shows_stop_reasons_verdicts_and_rewards(said: str) -> None:
    assert said.count("PASS") == 11 and said.count("FAIL") == 5
    assert "completed" in said and "gate_failed" in said
    assert re.findall(r"^reward +(\d\.\d{3})", said, re.M) == ["1.000", "0.450", "0.850", "0.300"]


def test_its_baselines_are_those_of_the_method(said: str) -> None:
    act, rehearse = (3 * 1 + 2 * 0.45 + 4 * 0.85 + 0.3) / 10, (2 * 1 + 0.45 + 2 * 0.85) / 5
    assert f"act {act:.3f}" in said and f"rehearse {rehearse:.3f}" in said
    assert f"{1 - act:+.3f}" in said and f"{0.45 - rehearse:+.3f}" in said


def test_the_files_it_points_to_are_there(said: str, project_root: Path) -> None:
    named = re.findall(r"[\w/]+\.(?:py|yaml|md)\b", said)
    assert {"envace/rollout/loop.py", "envace/algo/advantage.py", "params.yaml"} <= set(named)
    assert all((project_root / name).is_file() for name in named)


def test_a_terminal_of_another_encoding_does_not_stop_it(project_root: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(project_root)}
    command = [sys.executable, str(project_root / "examples" / "hello_rehearsal.py")]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    assert done.returncode == 0 and b"REHEARSE" in done.stdout
