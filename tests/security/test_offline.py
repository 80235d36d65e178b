"""P1: the guard that blocks the network, and a training under it. The other stages are in test_guarded_stages.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envace.config import Params
from tests.e2e.project import MARK, changed, make_base, make_project, make_tasks
from tests.security.conftest import GUARD, foreign


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request; urllib.request.urlopen('http://example.org')",
        "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)",
        "import socket; socket.gethostbyname('example.org')",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    ],
)
def test_the_guard_blocks_and_notes(code: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    variables = {**os.environ, "PYTHONPATH": str(GUARD), "ENVACE_GUARD_LOG": str(log)}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "the network is blocked" in done.stderr
    assert len(foreign(log.read_text(encoding="utf-8").splitlines())) == 1


@pytest.mark.slow
def test_a_training_needs_no_network(params: Params, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", make_base(params, tmp_path / "base"), changed(params), make_tasks())
    log = tmp_path / "log"
    log.touch()
    path = os.pathsep.join([str(GUARD), str(GUARD.parents[2])])
    variables = {**os.environ, MARK: str(project), "PYTHONPATH": path, "ENVACE_GUARD_LOG": str(log)}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_steps.train_policy"],
        cwd=project,
        env={**variables, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert not foreign(log.read_text(encoding="utf-8").splitlines())
