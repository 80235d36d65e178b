"""File locks: one holder, named; waiting; freed by every kind of end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envace.errors import StageError
from envace.locks import held, holder

HOLD = """
import sys, time
from pathlib import Path
from envace.locks import held
with held("thing", what="the thing", folder=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
Other = Callable[[float], subprocess.Popen[str]]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Other]:
    """Starts a process that holds the lock for some seconds; returns it once the lock is held."""
    started: list[subprocess.Popen[str]] = []

    def start(seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(tmp_path), str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_second_holder_is_refused_and_told_who_holds_it(tmp_path: Path, other: Other) -> None:
    process = other(60)
    with pytest.raises(StageError, match=rf"the thing is held by process {process.pid} .*thing\.lock"):
        held("thing", what="the thing", folder=tmp_path).__enter__()
    assert holder("thing", folder=tmp_path) == process.pid


def test_a_killed_holder_frees_it(tmp_path: Path, other: Other) -> None:
    process = other(60)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with held("thing", what="the thing", folder=tmp_path):
        assert holder("thing", folder=tmp_path) == os.getpid()


def test_waiting_gets_it_when_the_holder_ends(tmp_path: Path, other: Other) -> None:
    other(0.5)
    with held("thing", what="the thing", wait_s=20, folder=tmp_path):
        pass


def test_waiting_ends(tmp_path: Path, other: Other) -> None:
    other(60)
    began = time.monotonic()
    with pytest.raises(StageError):
        held("thing", what="the thing", wait_s=0.3, folder=tmp_path).__enter__()
    assert 0.3 <= time.monotonic() - began < 5


def test_it_is_free_again_after_an_error_and_names_do_not_meet(tmp_path: Path) -> None:
    with pytest.raises(ValueError), held("a", what="a", folder=tmp_path):
        raise ValueError
    with held("a", what="a", folder=tmp_path), held("b", what="b", folder=tmp_path):
        pass
    assert holder("never", folder=tmp_path) is None
