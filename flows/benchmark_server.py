"""A checkpoint served for as long as a benchmark takes: by vLLM where it is installed, else by our own server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from envace.errors import BenchmarkError
from envace.processes import child_setup, end_group
from flows.server import free_port

_START_S = 900.0
"""vLLM reads large weights and compiles before it answers."""
_POLL_S = 0.2


@contextmanager
def served(checkpoint: Path, concurrency: int, say: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """`envace serve` on a free port of this machine. Gives address and model name. Raises BenchmarkError.

    That it is ready is asked of the server itself, since each says it in other words.
    """
    name, port = checkpoint.resolve().name, free_port()
    command = [sys.executable, "-c", "from flows.cli import main; main()", "serve", "--model", str(checkpoint)]
    command += ["--port", str(port), "--name", name, "--max-concurrency", str(concurrency)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=child_setup(os.getpid()),
        )
        try:
            address = f"http://127.0.0.1:{port}/v1"
            deadline = time.monotonic() + _START_S
            while not _answers(address, name) or process.poll() is not None:
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    said = [line.strip() for line in log.read().splitlines() if line.strip()]
                    raise BenchmarkError(f"{checkpoint} could not be served: {'; '.join(said[-3:]) or 'no word of it'}")
                time.sleep(_POLL_S)
            say(f"serving {checkpoint} at {address} for this run")
            yield address, name
        finally:
            end_group(process.pid, grace_s=10.0)
            process.wait()


def _answers(address: str, name: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{address}/models", timeout=5) as answer:
            return name in {model["id"] for model in json.load(answer)["data"]}
    except (OSError, ValueError, LookupError, TypeError):
        return False
