"""An OpenAI-compatible judge on 127.0.0.1 that is right, obedient, broken or asleep."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a judge sends back. `body` None: the connection is cut."""

    body: bytes | None
    status: str = "200 OK"
    content_type: str = "application/json"
    after_s: float = 0.0


Mode = Callable[[str, str, int], Answer]
"""From (prompt, key of the boolean asked for, number of the request) to an answer."""


def says(text: str, *, after_s: float = 0.0) -> Answer:
    """A proper completion with that text."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return Answer(json.dumps({"id": "x", "choices": [choice], "usage": {}}).encode(), after_s=after_s)


def right(decide: Callable[[str], bool]) -> Mode:
    """Answers in the form asked for."""
    return lambda prompt, key, number: says(json.dumps({key: decide(prompt)}))


def broken(status: str) -> Mode:
    """Always that HTTP status."""
    return lambda prompt, key, number: Answer(b'{"error": "down"}', status)


def html(prompt: str, key: str, number: int) -> Answer:
    """A page of a proxy instead of a completion."""
    return Answer(b"<html><body>502 Bad Gateway <b>true</b></body></html>", content_type="text/html")


def cut(prompt: str, key: str, number: int) -> Answer:
    """Closes the connection without a word."""
    return Answer(None)


def hangs(prompt: str, key: str, number: int) -> Answer:
    """Answers after an hour."""
    return says(json.dumps({key: True}), after_s=3600)


def slow(seconds: float) -> Mode:
    """Right, but late."""
    return lambda prompt, key, number: says(json.dumps({key: True}), after_s=seconds)


@dataclass
class JudgeStub:
    """The server's side: how it answers, and what it was asked."""

    mode: Mode
    prompts: list[str] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        body = json.loads(await reader.readexactly(length))
        prompt, key = body["messages"][-1]["content"], _key(body)
        self.prompts.append(prompt)
        answer = self.mode(prompt, key, len(self.prompts))
        if answer.after_s:
            gone = asyncio.create_task(reader.read(1))  # ends when the client hangs up
            if (await asyncio.wait([gone], timeout=answer.after_s))[0]:
                return False
            gone.cancel()
        if answer.body is None:
            return False
        head = f"HTTP/1.1 {answer.status}\r\ncontent-type: {answer.content_type}\r\ncontent-length: {len(answer.body)}"
        writer.write(f"{head}\r\n\r\n".encode() + answer.body)
        await writer.drain()
        return not answer.after_s


def _key(body: dict[str, Any]) -> str:
    schema = body["response_format"]["json_schema"]["schema"]
    (key,) = schema["properties"]
    return key


@asynccontextmanager
async def judge_stub(mode: Mode) -> AsyncIterator[JudgeStub]:
    """A running judge."""
    made = JudgeStub(mode)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=1 << 22)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
