"""A small DVC project whose stages are shell commands, for trying what runs them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def dvc_project(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Makes a git and DVC project: stage name -> shell command. Each stage must write `<name>.out`."""

    def make(stages: dict[str, str]) -> Path:
        blocks = []
        for name, command in stages.items():
            (tmp_path / f"{name}.sh").write_text(command + "\n", encoding="utf-8")
            # dash, bash and others differ in when they replace themselves by the command: exec settles it
            blocks.append(f"  {name}:\n    cmd: exec sh {name}.sh\n    deps: [{name}.sh]\n    outs: [{name}.out]\n")
        (tmp_path / "dvc.yaml").write_text("stages:\n" + "".join(blocks), encoding="utf-8")
        subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
        subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet"], cwd=tmp_path, check=True)
        return tmp_path

    return make


@pytest.fixture(scope="session")
def prefect_api() -> Iterator[str]:
    """The address of a Prefect server with a database of its own, shared by all tests of this process."""
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=300):
        yield str(PREFECT_API_URL.value())
