"""The ports that `make ui` asks for first: free, or taken by whom."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

from envace.doctor.finding import Finding, ok, warning

_PAGES = {"MLflow": (5000, "/health"), "Prefect": (4200, "/api/health")}
_TIMEOUT_S = 3.0


def services() -> Iterator[Finding]:
    """A line for each page."""
    for name, (port, path) in _PAGES.items():
        yield page_finding(name, port, path)


def page_finding(name: str, port: int, path: str) -> Finding:
    """Whether the loopback port is free, serves that page, or is another program's."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S).close()
    except OSError:
        return ok(name, f"port {port} is free")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=_TIMEOUT_S) as answer:
            if answer.status == 200:
                return ok(name, f"something answers {path} on port {port}: its page is up")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):  # Prefect asks for the project's secret first
            return ok(name, f"something answers {path} on port {port} and asks who you are: its page is up")
    except (urllib.error.URLError, OSError, ValueError):
        pass
    return warning(name, f"port {port} is taken by another program", "`make ui` takes another port and prints it")
