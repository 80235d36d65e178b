"""No process outlives its purpose: parent-death signals, adoption of orphans, and ending everything one has started."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 5
_POLL_S = 0.05
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before any fork


class Terminated(BaseException):
    """SIGTERM, raised in the main thread so that open files and temporary folders are cleaned up on the way out."""


def unwind_on_signals(last_resort_s: float) -> None:
    """SIGINT and SIGTERM raise KeyboardInterrupt or Terminated once; later ones are ignored, so that cleaning up is
    not cut short. If this process is still there `last_resort_s` seconds later, it ends all that it started and leaves.
    """

    def unwind(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        last_resort = threading.Timer(last_resort_s, _leave, args=(128 + number,))
        last_resort.daemon = True
        last_resort.start()
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    # set both outright: a process started in the background of a script inherits an ignored SIGINT
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, unwind)


def die_with_parent() -> None:
    """Ask the kernel for a SIGTERM when the parent (its thread that started this process) ends. Linux only."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that they can still be found and ended. Linux only."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def child_setup(parent_pid: int) -> Callable[[], None]:
    """A `preexec_fn` for Popen: the child dies with `parent_pid`, and at once if that one is already gone."""

    def setup() -> None:
        die_with_parent()
        if os.getppid() != parent_pid:
            os._exit(128 + signal.SIGTERM)

    return setup


def end_descendants(grace_s: float = 5.0) -> int:
    """End every process below this one: SIGTERM, `grace_s` seconds, SIGKILL. Returns how many there were.

    Repeats while any is left, as ending a parent hands its children to this process (see `adopt_orphans`).
    """
    import psutil

    ended = 0
    for _ in range(_ROUNDS):
        processes = psutil.Process().children(recursive=True)
        if not processes:
            break
        ended += len(processes)
        for process in processes:
            _send(process, signal.SIGTERM)
        _, stubborn = psutil.wait_procs(processes, timeout=grace_s)
        for process in stubborn:
            _send(process, signal.SIGKILL)
        psutil.wait_procs(stubborn, timeout=grace_s)
    return ended


def end_group(group: int, grace_s: float) -> None:
    """End a process group and wait until no member is left: SIGTERM, `grace_s` seconds, SIGKILL.

    For a group whose leader this process has started; its leader alone is not enough, as it may end before the rest.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + grace_s
        while time.monotonic() < deadline:
            if not _alive_in(group):
                return
            time.sleep(_POLL_S)


def _alive_in(group: int) -> bool:
    """True if a member of the group still runs. A dead one that nobody has waited for does not count."""
    import psutil

    for process in psutil.process_iter(["status"]):
        try:
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
        except ProcessLookupError:
            continue
    return False


def _send(process: object, number: signal.Signals) -> None:
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def _leave(code: int) -> None:
    """Some library swallowed the interrupt or hangs in its own shutdown: go without it."""
    end_descendants(grace_s=1.0)
    os._exit(code)
