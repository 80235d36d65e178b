"""A Prefect server that is down: the commands say so, and a worker that is up goes on until it is back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from envace.errors import StageError
from flows.deployments import require_server
from flows.server import require_answer, start_server
from flows.worker import _Keeper


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def healthy() -> Iterator[int]:
    """The port of something that answers /api/health."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/api/health" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("host", ["127.0.0.1", "user:hunter2@127.0.0.1", "127.1"])
@pytest.mark.parametrize("ask", [require_server, start_server])
def test_an_address_where_nobody_answers_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int, host: str, ask: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("PREFECT_API_URL", f"http://{host}:{free_port}/api")
    with pytest.raises(StageError, match=rf"{free_port}/api: .* PREFECT_API_URL") as caught:
        ask(tmp_path)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1"])
def test_a_server_that_answers_is_taken(monkeypatch: pytest.MonkeyPatch, healthy: int, host: str) -> None:
    monkeypatch.setenv("PREFECT_API_URL", f"http://{host}:{healthy}/api/")
    require_answer()


def test_a_worker_goes_on_whatever_the_client_raises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from websockets.exceptions import InvalidMessage

    keeper = _Keeper(tmp_path)

    def fails(error: BaseException) -> Callable[[], None]:
        def work() -> None:
            raise error

        return work

    for _ in range(2):
        keeper._guarded("looking", fails(InvalidMessage("HTTP 503")))
    told = capsys.readouterr()
    assert (told.out + told.err).count("looking failed, going on: HTTP 503") == 1
    with pytest.raises(KeyboardInterrupt):
        keeper._guarded("looking", fails(KeyboardInterrupt()))
