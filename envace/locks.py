"""File locks that say who holds them: one process a stage, one trainer a machine, one writer of the model store."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from envace.errors import StageError

LOCKS = Path(".envace/locks")
_POLL_S = 0.05


@contextmanager
def held(
    name: str,
    *,
    what: str,
    wait_s: float = 0.0,
    folder: Path = LOCKS,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the lock `name` for the length of the block; the kernel frees it when the process dies, however it dies.

    `what` names the guarded thing for people. Waits up to `wait_s` seconds, then raises StageError naming the holder.
    `on_wait` is told once, at the beginning of a wait, who holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.lock"
    # flock, not lockf: it belongs to this open file, so that a helper which reads the file does not free it
    with path.open("a+", encoding="utf-8") as file:
        deadline = time.monotonic() + wait_s
        while not _try_lock(file.fileno()):
            if time.monotonic() >= deadline:
                raise StageError(f"{_held_by(path, what)}; wait until it ends, or stop it, then run again")
            if on_wait is not None:
                on_wait(f"waiting: {_held_by(path, what)}")
                on_wait = None
            time.sleep(_POLL_S)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            # outright, as a forked helper shares the open file and would keep the lock
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def holder(name: str, *, folder: Path = LOCKS) -> int | None:
    """The pid last written into a lock file, or None where there is none. It may have ended since."""
    try:
        return int((folder / f"{name}.lock").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def is_held(name: str, *, folder: Path = LOCKS) -> bool:
    """Whether a process that is alive holds the lock at this moment."""
    path = folder / f"{name}.lock"
    if not path.is_file():
        return False
    with path.open("r", encoding="utf-8") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _held_by(path: Path, what: str) -> str:
    pid = holder(path.stem, folder=path.parent)
    who = f"process {pid}" if pid else "another process"
    return f"{what} is held by {who} (lock {path})"
