"""A command in a process group of its own: its lines handed on as they come, and no member left when it is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from envace.errors import StageError
from envace.processes import child_setup, end_group
from envace.quiet import be_quiet

_GRACE_S = 20.0
_GRACE_LEFT_S = 5.0


def start(command: list[str], root: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start it in `root` with `environment` added to that of this process, both outputs in one pipe."""
    be_quiet()
    return subprocess.Popen(
        command,
        cwd=root,
        # one that is set stays: the GPU image runs its stages in another venv than the pipeline
        env={"ENVACE_PYTHON": sys.executable, **os.environ, **(environment or {}), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=child_setup(os.getpid()),
    )


def run(
    command: list[str], root: Path, on_line: Callable[[str], None], environment: Mapping[str, str] | None = None
) -> int:
    """Run it to its end and return its exit code. On any exception, an interrupt included, the whole group is ended
    and waited for before it goes on.

    A member that is still there when the command has ended (helpers of a stage that was killed outright) is ended too:
    it would keep the pipe open, and this process waiting, for as long as it likes.
    """
    process = start(command, root, environment)
    assert process.stdout is not None
    threading.Thread(target=_end_what_is_left, args=[process], daemon=True).start()
    try:
        for raw in process.stdout:
            on_line(raw.rstrip())
        return process.wait()
    except BaseException:
        end_group(process.pid, grace_s=_GRACE_S)
        process.wait()
        raise


def _end_what_is_left(process: subprocess.Popen[str]) -> None:
    process.wait()
    end_group(process.pid, grace_s=_GRACE_LEFT_S)


def run_step(name: str, root: Path, log: Callable[[str], None], environment: Mapping[str, str]) -> None:
    """Run a step that is outside the stage graph, as DVC would run it. Raises StageError in the step's own words."""
    said: list[str] = []

    def on_line(line: str) -> None:
        said.append(line)
        log(line)

    if run([str(Path("bin") / "step"), name], root, on_line, environment):
        raise StageError(f"{name} failed: {explanation(name, said)}")


def explanation(name: str, said: Sequence[str]) -> str:
    """A stage's own message where it gave one, else the last line of its traceback, else the last lines."""
    own = [i for i, line in enumerate(said) if line.startswith(f"{name}: ")]
    if own:
        return "\n".join([said[own[-1]].removeprefix(f"{name}: "), *said[own[-1] + 1 :]])
    if any(line.startswith("Traceback ") for line in said):
        return f"{said[-1]} (a bug; its traceback is above)"
    return "\n".join(said[-5:])
