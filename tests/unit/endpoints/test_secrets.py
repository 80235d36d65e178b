"""The key reaches the endpoint and nothing else; proxies of the environment and forbidden addresses are not asked."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from envace.config import EndpointParams
from envace.endpoints.client import ChatClient
from envace.errors import ConfigError, EndpointError
from tests.unit.endpoints.stub import Stub, completion, http, says, stub

Endpoint = Callable[..., EndpointParams]
ASK = [{"role": "user", "content": "?"}]
KEY = "sk-canary-8F3K2"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    return "JUDGE_KEY"


async def ask(make: Endpoint, response: bytes, **more: Any) -> tuple[ChatClient, Stub, BaseException | None]:
    async with stub(says(response)) as server:
        client = ChatClient(make(server.port, **more))
        try:
            await client.chat(ASK, max_tokens=8, temperature=0.0)
        except EndpointError as error:
            return client, server, error
        finally:
            await client.close()
        return client, server, None


@pytest.mark.parametrize(
    "response",
    [
        http(completion()),
        http(f"Incorrect key: {KEY}".encode(), "401 Unauthorized"),
        http(f"Incorrect key: {KEY}".encode(), "400 Bad Request"),
        http(f"<html>{KEY}</html>".encode()),
        b"garbage\r\n\r\n",
    ],
)
def test_the_key_is_sent_but_never_shown(
    endpoint: Endpoint, key: str, response: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    client, server, error = asyncio.run(ask(endpoint, response, api_key_env=key, retries=0))
    assert server.requests[0][0]["authorization"] == f"Bearer {KEY}"
    shown = [caplog.text, *capfd.readouterr(), repr(client), str(client)]
    if error is not None:
        shown.append("".join(traceback.TracebackException.from_exception(error, capture_locals=False).format()))
        assert error.__context__ is None and error.__cause__ is None
    assert not any(KEY in text for text in shown)


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "line\nbreak", "schlüssel"])
def test_a_missing_or_odd_key_is_refused_without_showing_it(
    endpoint: Endpoint, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv("JUDGE_KEY", raising=False)
    else:
        monkeypatch.setenv("JUDGE_KEY", value)
    with pytest.raises(ConfigError, match="JUDGE_KEY") as caught:
        ChatClient(endpoint(1, api_key_env="JUDGE_KEY"))
    assert not (value and value.strip() and value in str(caught.value))


def test_proxies_of_the_environment_are_not_used(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    _, server, error = asyncio.run(ask(endpoint, http(completion())))
    assert error is None and len(server.requests) == 1


def test_an_allowed_name_that_resolves_to_a_metadata_address_is_not_asked(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async def resolve(*args: Any, **kwargs: Any) -> list[Any]:
            return [(2, 1, 6, "", ("169.254.169.254", 80))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        client = ChatClient(endpoint(1, base_url="http://judge.example/v1", allowed_hosts=["judge.example"]))
        with pytest.raises(EndpointError, match=r"judge\.example resolves to a link-local"):
            await client.chat(ASK, max_tokens=8, temperature=0.0)

    asyncio.run(main())


@pytest.mark.parametrize("missing", ["base_url", "model"])
def test_an_endpoint_without_address_or_model_is_refused(endpoint: Endpoint, missing: str) -> None:
    with pytest.raises(ConfigError, match="base_url and model"):
        ChatClient(endpoint(1, **{missing: None}))
