"""`envace worker`: runs what is due, and keeps the queue in order, until Ctrl-C."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from envace.errors import StageError
from envace.locks import LOCKS, held
from envace.processes import adopt_orphans, child_setup, end_descendants, unwind_on_signals
from flows.deployments import POOL, deployed, require_deployed
from flows.new_data import announce
from flows.progress import say
from flows.server import page_address, stop

_UNWIND_S = 60.0
_TICK_S = 2.0
_LOOK_AT_DATA_S = 30.0


def work(root: Path = Path()) -> None:
    """Serve the deployments. Raises StageError without a server or deployments, or when the worker ends by itself."""
    adopt_orphans()
    atexit.register(end_descendants)
    unwind_on_signals(_UNWIND_S)
    require_deployed(root)
    with held("worker", what="this project's worker", folder=root / LOCKS):
        keeper = _Keeper(root)
        keeper.tick()  # what has piled up while no worker was there is thinned out before one starts
        process = _start(root)
        say(f"serving {', '.join(deployed())}\nits log: .envace/prefect/worker.log\nCtrl-C stops it and what it runs")
        try:
            while process.poll() is None:
                time.sleep(_TICK_S)
                keeper.tick()
        except KeyboardInterrupt:
            say("stopping")
            return
        finally:
            stop(process)
    raise StageError("the worker ended by itself; its last words are in .envace/prefect/worker.log")


class _Keeper:
    """What has to be looked at again and again. A server that does not answer for a while is no reason to stop."""

    def __init__(self, root: Path) -> None:
        self._root, self._next_look = root, 0.0
        self._told: dict[str, str] = {}

    def tick(self) -> None:
        """Tidy the queue, and look for new data from time to time."""
        self._guarded("looking after the queue", self._tidy)
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_AT_DATA_S
            self._guarded("looking for new data", self._look)

    def _tidy(self) -> None:
        from prefect.client.orchestration import get_client

        from flows.queue import crash_dead, one_waits

        shared = os.environ["PREFECT_API_URL"] != f"{page_address(self._root)}/api"
        with get_client(sync_client=True) as client:
            for name in one_waits(client, POOL):
                say(f"run {name} cancelled: a later one waits already")
            for name in crash_dead(client, self._root, shared=shared):
                say(f"run {name} marked as crashed: its process is gone")

    def _look(self) -> None:
        if content := announce(self._root):
            say(f"new data {content[:16]} announced")

    def _guarded(self, what: str, work: Callable[[], None]) -> None:
        """Say a failure once, not every time it is met again."""
        text = ""
        try:
            work()
        except Exception as error:  # whatever the client or the websocket below it raises
            text = f"{what} failed, going on: {error}"
        if text and text != self._told.get(what):
            say(text)
        self._told[what] = text


def _start(root: Path) -> subprocess.Popen[bytes]:
    log = (root / ".envace" / "prefect" / "worker.log").open("ab")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--limit", "1"],
            cwd=root,
            env={**os.environ, "ENVACE_PYTHON": os.environ.get("ENVACE_PYTHON", sys.executable)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=child_setup(os.getpid()),
        )
