"""A stub endpoint on 127.0.0.1 that plays one behaviour a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


def completion(text: str = "yes", **message: Any) -> bytes:
    """The body of a proper answer."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    return json.dumps({"id": "x", "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}).encode()


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole HTTP response."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def says(response: bytes) -> Behaviour:
    async def play(writer: asyncio.StreamWriter) -> None:
        writer.write(response)

    return play


async def hangs(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def trickles(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


class Stub:
    """Plays its behaviours in order, the last one for ever."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self.behaviours = list(behaviours)
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.running = self.most_at_once = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in lines[1:] if line)}
            body = json.loads(await reader.readexactly(int(headers["content-length"])))
            self.requests.append((headers | {"": lines[0]}, body))
            behaviour = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
            gone = asyncio.create_task(reader.read(1))  # ends when the client hangs up
            play = asyncio.ensure_future(behaviour(writer))
            await asyncio.wait([play, gone], return_when=asyncio.FIRST_COMPLETED)
            play.cancel()
            gone.cancel()
            await writer.drain()
        self.running -= 1
        writer.close()


@asynccontextmanager
async def stub(*behaviours: Behaviour) -> AsyncIterator[Stub]:
    """A running stub endpoint."""
    made = Stub(*behaviours)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
