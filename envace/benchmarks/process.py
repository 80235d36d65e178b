"""A driver as a process of its own group: its log kept, its progress shown, nothing of it left when it stops."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from envace.benchmarks.protocol import PROGRESS
from envace.processes import child_setup, end_group
from envace.quiet import QUIET_ENVIRONMENT

_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
_GRACE_S = 5.0


def run_driver(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    on_progress: Callable[[int, int], None],
    log: Path,
) -> int:
    """Run it to its end in `folder` and return its exit code; all else that it prints is added to `log`.

    On any exception, an interrupt included, the whole group is ended and waited for before it goes on.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=child_setup(os.getpid()),
    )
    assert process.stdout is not None
    try:
        with log.open("a", encoding="utf-8") as kept:
            for line in process.stdout:
                counted = _counted(line)
                if counted:
                    on_progress(*counted)
                else:
                    kept.write(line)
                    kept.flush()
        return process.wait()
    finally:
        # also after a good end: a harness may leave helpers behind
        end_group(process.pid, grace_s=_GRACE_S)
        process.wait()


def driver_environment(root: Path, keys: list[str], extra: Mapping[str, str]) -> dict[str, str]:
    """What a driver sees: little of this environment, so that no secret but the keys it needs can reach a harness.

    `keys`: names of variables that are handed on where they are set.
    """
    handed = {name: os.environ[name] for name in (*_PASSED, *keys) if name in os.environ}
    ours = {"PYTHONPATH": str(root.absolute()), "PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    return {**QUIET_ENVIRONMENT, **handed, **ours, **extra}


def last_lines(log: Path, count: int = 6) -> str:
    """The end of a run's log, for an error message."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]) if log.is_file() else ""


def _counted(line: str) -> tuple[int, int] | None:
    if not line.startswith(PROGRESS):
        return None
    parts = line.split(maxsplit=3)
    try:
        return int(parts[1]), int(parts[2])
    except (IndexError, ValueError):
        return None
