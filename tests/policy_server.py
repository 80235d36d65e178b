"""A policy on 127.0.0.1 for tests: a function from the request's body to what is answered."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], "dict[str, Any] | bytes | int | tuple[int, bytes]"]


def says(text: str | None = None, *calls: tuple[str, str], finish_reason: str | None = None) -> dict[str, Any]:
    """A completion with a text, or with calls of (name, arguments as text)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
        message["tool_calls"] = [{"id": f"c{n}", "type": "function", "function": f} for n, f in enumerate(functions)]
    reason = finish_reason or ("tool_calls" if calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "x", "choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}


@contextmanager
def policy_server(answer: Answer) -> Iterator[str]:
    """Serve for the length of the block; gives the base URL. Bytes are sent as they are; a number is a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = answer(body)
            status, content = (
                (said, b"{}") if isinstance(said, int) else said if isinstance(said, tuple) else (200, said)
            )
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
