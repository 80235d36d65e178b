"""What every flow's process does first: die with its worker, hold the lock that says it is alive, and its turn."""

from __future__ import annotations

import atexit
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from envace.locks import LOCKS, held, is_held
from envace.processes import adopt_orphans, die_with_parent

_TURN_S = 12 * 3600.0


@contextmanager
def alone(lock: str, what: str, log: Callable[[str], None], root: Path = Path()) -> Iterator[None]:
    """Run the block while holding `lock`. A run of a deployment waits its turn; one of the command line is refused at
    once, with a StageError that names the holder.
    """
    from prefect.runtime import deployment, flow_run

    scheduled = bool(deployment.id)
    if scheduled:
        _settle_under_worker()
    _say_alive(str(flow_run.id), root)
    wait_s = _TURN_S if scheduled else 0.0
    with held(lock, what=what, wait_s=wait_s, folder=root / LOCKS, on_wait=log):
        yield


def _say_alive(flow_run_id: str, root: Path) -> None:
    """Hold the run's own lock until this process ends: its state is final only after the flow has returned."""
    folder = (root / LOCKS).resolve()
    holding = ExitStack()
    holding.callback((folder / f"{alive(flow_run_id)}.lock").unlink, missing_ok=True)
    holding.enter_context(held(alive(flow_run_id), what="this run", folder=folder))
    atexit.register(holding.close)


def alive(flow_run_id: str) -> str:
    """The name of the lock that the process of a flow run holds as long as it lives."""
    return f"run-{flow_run_id}"


def lives(flow_run_id: str, root: Path = Path()) -> bool:
    """Whether the process of a flow run is there at this moment. False also for one that has not begun to work."""
    return is_held(alive(flow_run_id), folder=root / LOCKS)


def run_name() -> str:
    """A name for a run that was given none: when it started, and four digits by chance."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _settle_under_worker() -> None:
    """A worker that is killed outright must not leave its runs behind, nor a run its stages."""
    adopt_orphans()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # inherited from a script's background
    die_with_parent()
    if os.getppid() == 1:
        os.kill(os.getpid(), signal.SIGTERM)  # it had ended before
