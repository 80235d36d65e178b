"""A small Hugging Face hub on this machine, for tests: one repository, and whatever can go wrong with it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

REVISION = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_this_must_not_be_shown"


@dataclass
class Hub:
    """What the small hub holds, and what it was asked. `place` is the repository in its addresses."""

    place: str = "datasets/someone/cm2"
    files: dict[str, bytes] = field(default_factory=dict)
    large: tuple[str, ...] = ()
    licence: Any = "cc-by-4.0"
    spoil: Callable[[bytes], bytes] = bytes
    refusal: tuple[int, str] | None = None
    page: bytes | None = None
    asked: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    port: int = 0

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        if self.refusal:
            return self.refusal[0], {"X-Error-Code": self.refusal[1]}, b""
        if self.page is not None:
            return 200, {}, self.page
        if path.startswith("/api/"):
            kind = "" if self.place.startswith("datasets/") else "models/"
            if not path.startswith(f"/api/{kind}{self.place}/revision/"):
                return 404, {"X-Error-Code": "RepoNotFound"}, b""
            if REVISION not in path:
                return 404, {"X-Error-Code": "RevisionNotFound"}, b""
            return 200, {"Content-Type": "application/json"}, json.dumps(self._info()).encode()
        name = path.removeprefix(f"/{self.place}/resolve/{REVISION}/").replace("%2F", "/")
        if name not in self.files:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        return 200, {}, self.spoil(self.files[name])

    def _info(self) -> dict[str, Any]:
        card = {"license": self.licence} if self.licence else {}
        siblings = [self._sibling(name, data) for name, data in self.files.items()]
        return {"id": self.place.removeprefix("datasets/"), "sha": REVISION, "cardData": card, "siblings": siblings}

    def _sibling(self, name: str, data: bytes) -> dict[str, Any]:
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        found: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": blob}
        if name in self.large:
            found["lfs"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "pointerSize": 130}
        return found


@contextmanager
def serving(state: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub on a port of this machine, and the environment pointing there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            state.authorizations.append(self.headers.get("Authorization", ""))
            status, headers, body = state.answer(self.path.split("?")[0])
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{state.port}")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield state
    server.shutdown()
    server.server_close()
    thread.join()
