"""`envace ui`: the pages of MLflow and Prefect on loopback, until Ctrl-C."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from pathlib import Path

from envace.errors import StageError
from envace.processes import adopt_orphans, child_setup, end_descendants, unwind_on_signals
from envace.tracking.store import artifact_root, open_store, store_uri
from flows.access import SECRET, use_access
from flows.progress import say
from flows.server import announce_page, answers, free_port, only_page, stop, use_prefect_home

_START_TIMEOUT_S = 120.0
_UNWIND_S = 20.0


def serve(root: Path = Path()) -> None:
    """Start both, print both addresses, and stop both on Ctrl-C, or with a StageError when one of them ends."""
    adopt_orphans()
    atexit.register(end_descendants)
    unwind_on_signals(_UNWIND_S)
    home = use_prefect_home(root)
    open_store(root)  # sets up a fresh one under its lock
    mlflow, prefect = f"http://127.0.0.1:{free_port(5000)}", f"http://127.0.0.1:{free_port(4200)}"
    use_access(root, prefect)
    with only_page(root):
        say("starting both pages (a few seconds; the first time longer)")
        # no background jobs of MLflow's: nothing here uses them, and they are eight processes
        jobs = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        own = {"PREFECT_UI_API_URL": f"{prefect}/api", "PREFECT_API_URL": f"{prefect}/api"}
        started = [_start(_mlflow(root, mlflow), home / "ui-mlflow.log", jobs)]
        started.append(_start(_prefect(prefect), home / "ui-prefect.log", own))
        _wait([f"{mlflow}/health", f"{prefect}/api/health"], started, home)
        announce_page(root, prefect)
        say(f"MLflow   {mlflow}\nPrefect  {prefect}   asks once for what is in {SECRET}\nCtrl-C stops both")
        try:
            while all(process.poll() is None for process in started):
                time.sleep(0.5)
        except KeyboardInterrupt:
            say("stopping both")
            for process in started:
                stop(process)
            return
    raise StageError(f"one of the pages ended by itself; its last words are in {home}/ui-*.log")


def _mlflow(root: Path, address: str) -> list[str]:
    store = ["--backend-store-uri", store_uri(root), "--artifacts-destination", str(artifact_root(root))]
    return ["mlflow", "server", "--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--workers", "1", *store]


def _prefect(address: str) -> list[str]:
    return ["prefect", "server", "start", "--host", "127.0.0.1", "--port", address.rpartition(":")[2]]


def _start(arguments: list[str], log: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=child_setup(os.getpid()),
        )


def _wait(urls: list[str], started: list[subprocess.Popen[bytes]], home: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not all(answers(url) for url in urls):
        if time.monotonic() > deadline or any(process.poll() is not None for process in started):
            raise StageError(f"a page did not start; see {home}/ui-mlflow.log and {home}/ui-prefect.log")
        time.sleep(0.2)
