"""A flow started from the command line: in this process, with an API, and everything gone when it ends."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from envace.processes import adopt_orphans, end_descendants, unwind_on_signals
from flows.progress import say
from flows.server import start_server, wait_for_server

Flow = TypeVar("Flow")
_UNWIND_S = 45.0  # a stage has 20 s to clean up, the API 10 s to stop


def prepared(load: Callable[[], Flow], root: Path = Path()) -> Flow:
    """What `load` imports, ready to be called: a flow that finds an API, and signals that clean up on the way out."""
    adopt_orphans()
    atexit.register(end_descendants)  # first in, last out: after Prefect and its server have gone in order
    unwind_on_signals(_UNWIND_S)
    server = start_server(root)
    say(
        "starting Prefect (its records are kept in .envace/prefect)"
        if server
        else "using the Prefect server that is up"
    )
    flow = load()  # takes its seconds while the server takes its own
    if server is not None:
        wait_for_server(server)
        _tidy(root)
    return flow


def _tidy(root: Path) -> None:
    """A run that was killed while no server was up still counts as running: nobody could note its end."""
    from prefect.client.orchestration import get_client

    from flows.queue import crash_dead

    with get_client(sync_client=True) as client:
        crash_dead(client, root, shared=False)
