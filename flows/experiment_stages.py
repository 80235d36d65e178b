"""Runs the pipeline's stages for experiments: one process at a time, in a folder that is not the project's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

import envace
from envace.errors import StageError
from envace.processes import child_setup, end_group
from envace.quiet import be_quiet
from flows.dvc import STAGES

_GRACE_S = 20.0
_TAIL_LINES = 40
_CODE = Path(envace.__file__).resolve().parent.parent


def module_of(name: str) -> str:
    """The module of a stage of the pipeline, or of a job of envace.experiment."""
    return f"pipeline_steps.{name}" if name in STAGES else f"envace.experiment.{name}"


def stage_runner(log: Callable[[str], None]) -> Callable[[str, Path], None]:
    """What runs a stage in a folder, handing each line it prints to `log`.

    Raises StageError with the stage's own last words if it fails. On any other exception, an interrupt included, its
    process group is ended and waited for first.
    """

    def run(name: str, folder: Path) -> None:
        tail = deque[str](maxlen=_TAIL_LINES)
        process = _start(module_of(name), folder)
        assert process.stdout is not None
        try:
            for raw in process.stdout:
                tail.append(raw.rstrip())
                log(tail[-1])
            code = process.wait()
        except BaseException:
            end_group(process.pid, grace_s=_GRACE_S)
            process.wait()
            raise
        if code:
            said = "\n".join(list(tail)[-5:]) or "it said nothing"
            raise StageError(f"stage {name} in {folder} ended with code {code}: {said}")

    return run


def _start(module: str, folder: Path) -> subprocess.Popen[str]:
    be_quiet()
    searched = os.pathsep.join([str(_CODE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": searched,
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",  # as bin/step says
            "ENVACE_PARENT_PID": str(os.getpid()),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=child_setup(os.getpid()),
    )
