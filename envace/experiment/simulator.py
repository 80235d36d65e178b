"""A perfect simulator for method grpo: an OpenAI-compatible endpoint on 127.0.0.1 that executes calls in the sample's
world.

The paper's baseline asks a strong LLM. This one knows the world's own code, so it never answers wrongly: the upper end
of what a simulator can be. It is asked as an LLM is (envace.rollout.simulated_conversation).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from envace.data.sample.environment import SampleEnvironment
from envace.files import compact_json

LABEL = "simulator: the world's own code, i.e. a perfect simulator"
_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_POSITION = re.compile(r"Answer call (\d+) of the \d+ in the last assistant message")


class WorldServer(ThreadingHTTPServer):
    """Counts what it is asked; answers status 503 while `down`."""

    daemon_threads = True
    request_queue_size = 128  # a step's rollouts ask side by side

    def __init__(self, seed: int, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.environment, self.asked, self.down = SampleEnvironment(seed), 0, False

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, messages: list[dict[str, Any]]) -> str:
        """The result of the call that the last message asks about; anything else is a greeting."""
        wanted = _POSITION.search(messages[-1]["content"])
        if wanted is None:
            return "yes"
        written = _CALL.findall(messages[-2]["content"])[int(wanted.group(1)) - 1]
        call = json.loads(written)
        return compact_json(self.environment.respond(call["name"], call["arguments"]))


class _Handler(BaseHTTPRequestHandler):
    server: WorldServer
    protocol_version = "HTTP/1.1"  # keeps connections: a call costs less than making one
    disable_nagle_algorithm = True  # else a kept connection waits 40 ms for an acknowledgement between head and body

    def do_POST(self) -> None:
        """One completion."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked += 1
        message = {"role": "assistant", "content": "" if self.server.down else self.server.answer(request["messages"])}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}).encode()
        self.send_response(503 if self.server.down else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def world_simulator(seed: int = 0, port: int = 0) -> Iterator[WorldServer]:
    """A running one. A port that is taken is given up for a free one."""
    try:
        server = WorldServer(seed, port)
    except OSError:
        server = WorldServer(seed)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
