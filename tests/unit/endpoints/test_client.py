"""The chat client against a stub: every way an endpoint fails, and what is done about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from envace.config import EndpointParams
from envace.endpoints.client import ChatClient
from envace.endpoints.reply import ChatReply
from envace.errors import EndpointError
from tests.unit.endpoints.stub import Behaviour, Stub, completion, hangs, http, says, stub, trickles

Endpoint = Callable[..., EndpointParams]
ASK = [{"role": "user", "content": "Did it rain?"}]
GOOD = says(http(completion()))
BUSY = says(http(b"overloaded", "503 Service Unavailable"))


def play(make: Endpoint, *behaviours: Behaviour, calls: int = 1, **more: Any) -> tuple[Stub, list[Any]]:
    """Send `calls` calls one after another through one client; their replies or errors."""

    async def main() -> tuple[Stub, list[Any]]:
        async with stub(*behaviours) as server:
            client = ChatClient(make(server.port, **more))
            results: list[Any] = []
            for _ in range(calls):
                try:
                    results.append(await client.chat(ASK, max_tokens=8, temperature=0.0))
                except EndpointError as error:
                    results.append(str(error))
            await client.close()
            return server, results

    return asyncio.run(main())


def test_a_call_is_sent_and_decoded_whole(endpoint: Endpoint) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = completion("ok", tool_calls=[call], reasoning_content="hm")
    tools = [{"type": "function", "function": {"name": "f"}}]
    schema = {"type": "object"}

    async def main() -> tuple[Stub, ChatReply]:
        async with stub(says(http(answer))) as server:
            client = ChatClient(endpoint(server.port))
            reply = await client.chat(
                ASK, tools=tools, max_tokens=8, temperature=0.5, top_p=0.9, seed=7, json_schema=schema
            )
            return server, reply

    server, reply = asyncio.run(main())
    assert reply == ChatReply("ok", [call], "stop", {"prompt_tokens": 3, "completion_tokens": 1}, "hm")
    headers, body = server.requests[0]
    assert headers[""] == "POST /v1/chat/completions HTTP/1.1" and "authorization" not in headers
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    assert body == {
        "model": "judge",
        "messages": ASK,
        "max_tokens": 8,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "tools": tools,
        "response_format": wanted,
    }


@pytest.mark.parametrize(
    ("behaviour", "told", "tries"),
    [
        (hangs, "no answer within", 3),
        (trickles, "no answer within", 3),
        (says(b""), "disconnected", 3),
        (says(b"not http at all\r\n\r\n"), "ProtocolError", 3),
        (says(http(b'{"a"' * 10)[:-5]), "ProtocolError", 3),  # the body is cut
        (BUSY, "503: overloaded", 3),
        (says(http(b"slow down", "429 Too Many Requests")), "429", 3),
        (says(http(b"<html><body>Sign in</body></html>")), "not JSON.*<html>", 1),
        (says(http(b"")), r"\(empty\)", 1),
        (says(http(b"\xff\xfe")), "UTF-8", 1),
        (says(http(b'{"choices": []}')), "not one choice", 1),
        (says(http(b'{"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]}')), "content is not text", 1),
        (says(http(b'{"choices": [{"message": {"content": "a"}}]}')), "finish_reason", 1),
        (says(http(completion(tool_calls=[{"function": "f"}]))), "tool_calls", 1),
        (says(http(completion(), content_encoding="gzip")), "compressed", 1),
        (says(http(completion("x" * (5 << 20)))), "more than 4194304 bytes", 1),
        (says(http(b"x" * (1 << 20), "500 Internal Server Error")), "size limit", 3),
        (says(http(b"", "302 Found", location="http://127.0.0.1:1/")), "redirect", 1),
        (says(http(b"no such model", "404 Not Found")), "404: no such model", 1),
        (says(http(b"\x1b[31mbad", "400 Bad Request")), r"400: \?\[31mbad", 1),
    ],
)
def test_every_failure_is_one_error_that_says_what_came(
    endpoint: Endpoint, behaviour: Behaviour, told: str, tries: int
) -> None:
    import re

    server, (error,) = play(endpoint, behaviour)
    assert isinstance(error, str) and re.search(told, error) and "http://127.0.0.1" in error and len(error) < 500
    assert len(server.requests) == tries


def test_text_that_has_no_bytes_in_utf_8_is_sent_escaped(endpoint: Endpoint) -> None:
    async def main() -> Any:
        async with stub(GOOD) as server:
            client = ChatClient(endpoint(server.port))
            await client.chat([{"role": "user", "content": "Łódź \ud800"}], max_tokens=8, temperature=0.0)
            await client.close()
            return server.requests[0][1]["messages"][0]["content"]

    assert asyncio.run(main()) == "Łódź \ud800"


def test_a_server_that_is_down_is_tried_again_and_then_told(endpoint: Endpoint) -> None:
    async def main() -> None:
        async with stub(GOOD) as server:
            port = server.port
        client = ChatClient(endpoint(port))
        with pytest.raises(EndpointError, match="ConnectError"):
            await client.chat(ASK, max_tokens=8, temperature=0.0)
        await client.close()

    asyncio.run(main())


def test_a_passing_fault_is_survived(endpoint: Endpoint) -> None:
    for fault in (BUSY, hangs, says(b""), says(http(b"", "429 Too Many Requests", retry_after="0"))):
        server, (reply,) = play(endpoint, fault, GOOD)
        assert isinstance(reply, ChatReply) and reply.text == "yes" and len(server.requests) == 2


def test_the_wait_that_a_server_asks_for_is_kept_within_the_deadline(endpoint: Endpoint) -> None:
    began = time.monotonic()
    _, (reply,) = play(endpoint, says(http(b"", "429 Too Many Requests", retry_after="1")), GOOD)
    assert isinstance(reply, ChatReply) and 1.0 <= time.monotonic() - began < 3
    for wait in ("3600", "Fri, 31 Dec 2100 23:59:59 GMT"):
        began = time.monotonic()
        server, (error,) = play(endpoint, says(http(b"", "503 Busy", retry_after=wait)), GOOD)
        assert "5 s are not enough" in error and len(server.requests) == 1 and time.monotonic() - began < 1


@pytest.mark.parametrize("behaviour", [hangs, trickles, BUSY])
def test_the_deadline_bounds_all_tries_together(endpoint: Endpoint, behaviour: Behaviour) -> None:
    began = time.monotonic()
    _, (error,) = play(endpoint, behaviour, timeout_s=30, retries=20, deadline_s=0.6)
    assert isinstance(error, str) and time.monotonic() - began < 1.5


def test_a_server_that_hangs_holds_no_queued_call_beyond_the_deadline(endpoint: Endpoint) -> None:
    async def main() -> tuple[list[Any], list[float]]:
        async with stub(hangs) as server:
            client = ChatClient(endpoint(server.port, timeout_s=0.4, retries=5, deadline_s=0.8, concurrency=1))
            began, times = time.monotonic(), []

            async def one() -> Any:
                try:
                    return await client.chat(ASK, max_tokens=8, temperature=0.0)
                finally:
                    times.append(time.monotonic() - began)

            found = await asyncio.gather(*(one() for _ in range(20)), return_exceptions=True)
            await client.close()
            return found, times

    found, times = asyncio.run(main())
    assert all(isinstance(f, EndpointError) for f in found) and max(times) < 1.6


def test_a_busy_server_fails_no_call_that_merely_queues(endpoint: Endpoint) -> None:
    async def slowly(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await GOOD(writer)

    async def main() -> tuple[list[Any], int]:
        async with stub(slowly) as server:
            client = ChatClient(endpoint(server.port, deadline_s=0.5, concurrency=3))
            work = (client.chat(ASK, max_tokens=8, temperature=0.0) for _ in range(30))  # a second in all
            return await asyncio.gather(*work), server.most_at_once

    replies, most = asyncio.run(main())
    assert len(replies) == 30 and most == 3


def test_the_breaker_opens_and_one_probe_closes_it_again(endpoint: Endpoint) -> None:
    async def main() -> None:
        async with stub(BUSY, BUSY, BUSY, BUSY, GOOD) as server:
            client = ChatClient(endpoint(server.port, retries=0, breaker_failures=3))

            async def one() -> bool:
                try:
                    return bool(await client.chat(ASK, max_tokens=8, temperature=0.0))
                except EndpointError:
                    return False

            assert [await one() for _ in range(6)] == [False] * 6
            assert len(server.requests) == 3  # the others were not sent
            await asyncio.sleep(0.35)
            assert await asyncio.gather(*(one() for _ in range(4))) == [False] * 4
            assert len(server.requests) == 4  # one probe, which failed
            await asyncio.sleep(0.35)
            assert sorted(await asyncio.gather(*(one() for _ in range(4)))) == [False, False, False, True]
            assert all(await asyncio.gather(*(one() for _ in range(8))))
            await client.close()

    asyncio.run(main())


def test_a_refused_request_does_not_open_the_breaker(endpoint: Endpoint) -> None:
    refusing = says(http(b"too long", "400 Bad Request"))
    server, _ = play(endpoint, refusing, calls=10, breaker_failures=2)
    assert len(server.requests) == 10


def test_a_cancelled_call_hangs_up_and_gives_its_slot_back(endpoint: Endpoint) -> None:
    async def main() -> None:
        async with stub(hangs, GOOD) as server:
            client = ChatClient(endpoint(server.port, timeout_s=30, concurrency=1, deadline_s=60))
            call = asyncio.create_task(client.chat(ASK, max_tokens=8, temperature=0.0))
            while not server.requests:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            async with asyncio.timeout(5):
                assert (await client.chat(ASK, max_tokens=8, temperature=0.0)).text == "yes"
                while server.running:
                    await asyncio.sleep(0.01)
            await client.close()

    asyncio.run(main())


def test_a_cancelled_probe_lets_the_next_call_probe(endpoint: Endpoint) -> None:
    async def main() -> None:
        async with stub(BUSY, hangs, GOOD) as server:
            client = ChatClient(endpoint(server.port, timeout_s=30, retries=0, breaker_failures=1, deadline_s=60))
            with pytest.raises(EndpointError):
                await client.chat(ASK, max_tokens=8, temperature=0.0)
            await asyncio.sleep(0.35)
            probe = asyncio.create_task(client.chat(ASK, max_tokens=8, temperature=0.0))
            while len(server.requests) < 2:
                await asyncio.sleep(0.01)
            probe.cancel()
            await asyncio.gather(probe, return_exceptions=True)
            assert (await client.chat(ASK, max_tokens=8, temperature=0.0)).text == "yes"
            await client.close()

    asyncio.run(main())


def test_one_client_serves_one_event_loop_after_another(endpoint: Endpoint) -> None:
    client: ChatClient | None = None

    async def main() -> None:
        nonlocal client
        async with stub(GOOD) as server:
            client = client or ChatClient(endpoint(server.port))
            client._base = f"http://127.0.0.1:{server.port}/v1"
            assert (await client.chat(ASK, max_tokens=8, temperature=0.0)).text == "yes"

    asyncio.run(main())
    asyncio.run(main())
