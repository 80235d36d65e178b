"""Runs the pipeline's stages for experiments: one process at a time, in a folder that is not the project's."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

import envace
from envace.errors import StageError
from flows import group
from flows.dvc import STAGES

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

        def on_line(line: str) -> None:
            tail.append(line)
            log(line)

        searched = os.pathsep.join([str(_CODE), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {
            "PYTHONPATH": searched,
            "OMP_NUM_THREADS": "1",  # as bin/step says
            "ENVACE_PARENT_PID": str(os.getpid()),
        }
        code = group.run([sys.executable, "-m", module_of(name)], folder, on_line, environment)
        if code:
            said = "\n".join(list(tail)[-5:]) or "it said nothing"
            raise StageError(f"stage {name} in {folder} ended with code {code}: {said}")

    return run
