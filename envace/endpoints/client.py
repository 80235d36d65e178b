"""Asks an OpenAI-compatible chat endpoint: bounded in time, tries, size and concurrency, and quiet about its key."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from envace.config import EndpointParams
from envace.endpoints.address import checked_base_url, forbidden
from envace.endpoints.breaker import CircuitBreaker
from envace.endpoints.reply import ChatReply
from envace.endpoints.transport import Failure, try_once
from envace.errors import ConfigError, EndpointError

if TYPE_CHECKING:
    import httpx

_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.5, 8.0


@dataclass(slots=True)
class _Connections:
    """What belongs to one event loop."""

    loop: asyncio.AbstractEventLoop
    http: httpx.AsyncClient
    slots: asyncio.Semaphore
    address_checked: bool = False


class ChatClient:
    """A client of one endpoint, to be shared: its calls have a common circuit breaker and concurrency bound.

    The key is read once, from the environment variable that `api_key_env` names; it is in no error, repr or log.
    Proxies of the environment are not used. Raises ConfigError where the address or the key cannot be used.
    """

    def __init__(self, params: EndpointParams) -> None:
        if not params.base_url or not params.model:
            raise ConfigError("an endpoint needs base_url and model")
        self._params = params
        self._base = checked_base_url(params.base_url, params.allowed_hosts)
        self._headers = {"accept-encoding": "identity", "user-agent": "envace"} | _authorization(params.api_key_env)
        self._breaker = CircuitBreaker(params.breaker_failures, params.breaker_pause_s)
        self._connections: _Connections | None = None
        self._last_answer = float("-inf")  # in the time of the event loop

    async def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
        seed: int | None = None,
        json_schema: dict[str, Any] | None = None,
    ) -> ChatReply:
        """One completion of `messages` (OpenAI form). `json_schema` asks for structured output.

        Timeouts, cut connections, status 429 and 5xx are tried again, up to `retries` times. All of it ends within
        `deadline_s` of the call, or of the server's last good answer to another call while this one waited for a slot:
        a server that hangs holds nobody longer than that, a busy one fails nobody that is merely in the queue.

        Raises EndpointError with the last failure once tries, deadline or circuit breaker are used up.
        """
        body: dict[str, Any] = {"model": self._params.model, "messages": messages, "max_tokens": max_tokens}
        body |= {"temperature": temperature, "top_p": top_p}
        body |= {"tools": tools} if tools else {}
        body |= {"seed": seed} if seed is not None else {}
        if json_schema is not None:
            wanted = {"name": "answer", "schema": json_schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        connections = self._connect()
        deadline = await self._take_slot(connections)
        try:
            return await self._ask(connections, body, deadline)
        finally:
            connections.slots.release()

    async def close(self) -> None:
        """Close the connections. The client may be used again."""
        connections, self._connections = self._connections, None
        if connections is not None and connections.loop is asyncio.get_running_loop():
            await connections.http.aclose()

    def _connect(self) -> _Connections:
        """Connections belong to an event loop; a client may see several, one after another."""
        import httpx

        loop = asyncio.get_running_loop()
        if self._connections is None or self._connections.loop is not loop:
            limit = self._params.concurrency
            http = httpx.AsyncClient(
                headers=self._headers,
                verify=httpx.create_ssl_context() if self._base.startswith("https:") else False,
                trust_env=False,
                follow_redirects=False,
                timeout=None,  # each try has its own
                limits=httpx.Limits(max_connections=limit, max_keepalive_connections=limit),
            )
            self._connections = _Connections(loop, http, asyncio.Semaphore(limit))
            self._last_answer = float("-inf")
        return self._connections

    async def _take_slot(self, connections: _Connections) -> float:
        """Wait for a slot; returns when the call's time is up."""
        now = connections.loop.time
        began, patience = now(), self._params.deadline_s
        while (deadline := max(began, self._last_answer) + patience) > now():
            try:
                async with asyncio.timeout_at(deadline):
                    await connections.slots.acquire()
            except TimeoutError:
                continue  # another call may have been answered meanwhile
            return max(began, self._last_answer) + patience
        waited = f"nothing was answered for {patience:g} s while this call waited for one of its slots"
        raise self._error(waited, cause="timeout")

    async def _ask(self, connections: _Connections, body: dict[str, Any], deadline: float) -> ChatReply:
        call, now = object(), connections.loop.time
        failure: Failure | None = None
        try:
            for attempt in range(self._params.retries + 1):
                left = deadline - now()
                wait = _backoff(attempt, failure)
                if left - wait <= 0:
                    late = f"{self._params.deadline_s:g} s are not enough"
                    raise self._error(late, failure, failure.cause if failure else "timeout")
                await asyncio.sleep(wait)
                if not self._breaker.enter(call):
                    alone = "not asked: it failed too often and is left alone for a while"
                    raise self._error(alone, failure, "breaker")
                outcome = await self._try(connections, body, min(self._params.timeout_s, left - wait))
                if isinstance(outcome, ChatReply):
                    self._breaker.answered()
                    self._last_answer = now()
                    return outcome
                failure = outcome
                self._breaker.answered() if failure.healthy else self._breaker.failed(call)
                if not failure.retry:
                    break
        finally:
            self._breaker.leave(call)
        raise self._error("no reply", failure, failure.cause if failure else "unreachable")

    async def _try(self, connections: _Connections, body: dict[str, Any], timeout_s: float) -> ChatReply | Failure:
        if not connections.address_checked:
            try:
                async with asyncio.timeout(timeout_s):
                    refused = await _resolves_to_forbidden(self._base)
            except TimeoutError:
                return Failure("its name could not be looked up in time", retry=True, cause="timeout")
            if refused:
                return Failure(refused)
            connections.address_checked = True
        return await try_once(connections.http, f"{self._base}/chat/completions", body, timeout_s)

    def _error(self, what: str, failure: Failure | None = None, cause: str = "unreachable") -> EndpointError:
        text = f"endpoint {self._base}: {what}" + (f" (last: {failure.reason})" if failure else "")
        key = self._headers.get("authorization", "").removeprefix("Bearer ")
        return EndpointError(text.replace(key, "***") if key else text, cause)


def _authorization(variable: str | None) -> dict[str, str]:
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"the environment variable {variable} (api_key_env) is not set; export the endpoint's key")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"the environment variable {variable} (api_key_env) holds no key: it has odd characters")
    return {"authorization": f"Bearer {key}"}


def _backoff(attempt: int, failure: Failure | None) -> float:
    """Seconds to wait before a try: jittered and doubling, or at least what the server asked for."""
    if attempt == 0:
        return 0.0
    longest = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (attempt - 1))
    asked = failure.wait_s if failure and failure.wait_s is not None else 0.0
    return max(asked, random.uniform(longest / 2, longest))


async def _resolves_to_forbidden(base: str) -> str | None:
    """Why the host's addresses must not be asked, or None (also where it cannot be resolved: connecting will tell)."""
    parts = urlsplit(base)
    host = parts.hostname or ""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, parts.port, type=socket.SOCK_STREAM)
    except OSError:
        return None
    reasons = (forbidden(str(entry[4][0])) for entry in found)
    return next((f"{host} resolves to {reason}" for reason in reasons if reason), None)
