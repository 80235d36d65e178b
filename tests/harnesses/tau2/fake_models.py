"""A chat endpoint whose models misbehave, each in the way that its name says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = "I am afraid that is not possible."


def _call(name: str, arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}]}


MODELS: dict[str, dict[str, Any]] = {
    "words": {"content": WORDS},
    "empty": {"content": ""},
    "markup": {"content": "<tool_call>{name: cancel"},
    "garbage": {"content": "\ufffd\ufffd %% \ufffd"},
    "thinking": {"content": None, "reasoning_content": "I think that I should say something."},
    "malformed": _call("calculate", '{"expression": '),
    "no-object": _call("calculate", "[1]"),
    "unknown-tool": _call("format_disk", "{}"),
    "runaway": _call("calculate", '{"expression": "9**9**9**9"}'),
    "huge": _call("calculate", json.dumps({"expression": "1" * 1_000_000})),
}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": None, **self._reply(asked)}
        body = json.dumps(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": asked["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["model"] != "vandal":
            return MODELS[asked["model"]]
        answered = any(message["role"] == "tool" for message in asked["messages"])
        return MODELS["words"] if answered else _call("cancel_reservation", '{"reservation_id": "EHGLP3"}')

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@contextmanager
def fake_models() -> Iterator[str]:
    """Serve them on a free port of this machine. Gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
