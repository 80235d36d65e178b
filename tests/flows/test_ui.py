"""Both pages come up on loopback in a fresh project, and Ctrl-C takes everything away again."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from flows.in_project import MARKS
from flows.server import answers


@pytest.mark.slow
def test_both_pages_answer_until_an_interrupt(tmp_path: Path) -> None:
    for name in MARKS:
        (tmp_path / name).touch()
    code = "from flows.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, "ui"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    addresses: list[str] = []
    for line in process.stdout:
        addresses += re.findall(r"http://127\.0\.0\.1:\d+", line)
        if "Ctrl-C" in line:
            break
    assert len(addresses) == 2 and all(answers(a) for a in addresses)
    below = psutil.Process(process.pid).children(recursive=True)
    assert below
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not psutil.wait_procs(below, timeout=10)[1]
    assert not any(answers(a) for a in addresses)
