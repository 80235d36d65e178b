"""The Prefect API of a run: that of `envace ui` where it is up, else one on loopback that is gone with this process."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from envace.errors import StageError
from envace.files import read_json, write_json
from envace.locks import LOCKS, held, is_held
from envace.processes import child_setup
from envace.quiet import be_quiet
from flows.access import use_access

PAGE = "prefect-page"
"""The lock that `envace ui` holds as long as its Prefect server is up."""

_ADDRESS = Path(".envace/prefect/address.json")
_HEARTBEAT_S = 30
_START_TIMEOUT_S = 240.0  # a fresh home takes 20 s and more to set up on a small machine, minutes on a busy one
_STOP_TIMEOUT_S = 10.0
_SERVER = ("--factory", "prefect.server.api.server:create_app", "--log-level", "error", "--lifespan", "on")


def use_prefect_home(root: Path) -> Path:
    """Point Prefect at the project's own records. Must come before the first import of prefect."""
    be_quiet()
    home = (root / ".envace" / "prefect").resolve()
    home.mkdir(parents=True, exist_ok=True)
    os.environ["PREFECT_HOME"] = str(home)
    # its own console lines repeat what the flow prints; the API still gets every line
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", str(int(_START_TIMEOUT_S)))
    # a run that gives no sign of life for some of these is marked crashed (flows/deployments.py)
    os.environ.setdefault("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", str(_HEARTBEAT_S))
    return home


def use_running_server(root: Path) -> bool:
    """Point Prefect at the address that the user gives in PREFECT_API_URL, else at the server of `envace ui`.

    False where there is neither. Must come before the first import of prefect.
    """
    use_prefect_home(root)
    if os.environ.get("PREFECT_API_URL"):
        return True  # not ours, perhaps: it gets the secret that the user sets for it, and never our own
    address = page_address(root)
    if address is None:
        return False
    use_access(root, address)
    os.environ["PREFECT_API_URL"] = f"{address}/api"
    return True


def page_address(root: Path) -> str | None:
    """Where the Prefect server of `envace ui` is, for example http://127.0.0.1:4200; None while it is not up."""
    if not is_held(PAGE, folder=root / LOCKS):
        return None
    try:
        return str(read_json(root / _ADDRESS)["address"])
    except FileNotFoundError:
        return None


@contextmanager
def only_page(root: Path) -> Iterator[None]:
    """Be the one that serves Prefect's page of this project. Raises StageError where another process does."""
    with held(PAGE, what="Prefect's page of this project", folder=root / LOCKS):
        (root / _ADDRESS).unlink(missing_ok=True)  # left by one that was killed
        try:
            yield
        finally:
            (root / _ADDRESS).unlink(missing_ok=True)


def announce_page(root: Path, address: str) -> None:
    """Let other commands find the server, which answers from now on."""
    write_json(root / _ADDRESS, {"address": address})


def start_server(root: Path) -> subprocess.Popen[bytes] | None:
    """Start an API and set PREFECT_API_URL to it; None where one is up already (see `use_running_server`).

    Does not wait: call `wait_for_server` before the first flow. Raises StageError where one is named that does not
    answer. Ends at this process's exit, after Prefect has sent what it still holds: import prefect only afterwards.
    """
    home = use_prefect_home(root)
    if use_running_server(root):
        require_answer()
        return None
    port = free_port()
    use_access(root, f"http://127.0.0.1:{port}")
    os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", *_SERVER, "--host", "127.0.0.1", "--port", str(port)],
            # the names by which Prefect's own ephemeral server leaves out the page and the schedulers
            env={**os.environ, "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C must reach the flow first, which then tells the server
            preexec_fn=child_setup(os.getpid()),
        )
    atexit.register(stop, process)
    return process


def wait_for_server(process: subprocess.Popen[bytes]) -> None:
    """Return when the API answers. Raises StageError if it ends or stays silent, naming its log."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not answers(os.environ["PREFECT_API_URL"] + "/health"):
        if process.poll() is not None or time.monotonic() > deadline:
            log = Path(os.environ["PREFECT_HOME"], "server.log")
            said = log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
            raise StageError(
                f"Prefect's server did not start. It said last: {said[:300] or 'nothing'}. See {log}; if its "
                f"records are broken, move {log.parent} away"
            )
        time.sleep(0.1)


def require_answer() -> None:
    """Raises StageError if the server at PREFECT_API_URL does not answer within five seconds."""
    import httpx

    url = os.environ["PREFECT_API_URL"].rstrip("/")
    named = urlsplit(url)
    if named.hostname in ("127.0.0.1", "localhost", "::1"):
        up = answers(f"{url}/health")
    else:
        try:  # any answer but a fault of the server's: a gateway may want a key for this page
            up = httpx.get(f"{url}/health", timeout=5.0).status_code < 500
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            up = False
    if not up:
        shown = f"{named.scheme}://{named.netloc.rpartition('@')[2]}{named.path}"  # without credentials
        raise StageError(
            f"no Prefect server answers at {shown}: start it, or correct PREFECT_API_URL, or unset it to use the "
            "project's own"
        )


def answers(url: str) -> bool:
    """True if a GET of a loopback address gives a page."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def free_port(preferred: int = 0) -> int:
    """`preferred` if nothing listens there on loopback, else any free port."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise StageError("no free port on 127.0.0.1")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server: asked first, then killed."""
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
