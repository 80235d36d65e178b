"""One try at an endpoint: the request, its bounded answer, and what kind of failure it was if it failed."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from envace.endpoints.reply import ChatReply, NotAReplyError, decode_reply, excerpt

if TYPE_CHECKING:
    import httpx

MAX_BODY_BYTES = 4 << 20
_MAX_ERROR_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a try gave no reply.

    retry: trying again may help. healthy: the server works (it refused this request, or is busy), so the circuit
    breaker does not count it. wait_s: how long the server asks to be left alone. cause: as in EndpointError.
    """

    reason: str
    retry: bool = False
    healthy: bool = False
    wait_s: float | None = None
    cause: str = "unreachable"


async def try_once(http: httpx.AsyncClient, url: str, body: dict[str, Any], timeout_s: float) -> ChatReply | Failure:
    """Ask once, the whole answer within `timeout_s` seconds. Only cancellation leaves this as an exception."""
    import httpx

    # escaped throughout: a policy may write a lone surrogate, which UTF-8 has no bytes for
    content, kind = json.dumps(body, allow_nan=False).encode(), {"content-type": "application/json"}
    try:
        async with asyncio.timeout(timeout_s), http.stream("POST", url, content=content, headers=kind) as response:
            limit = MAX_BODY_BYTES if response.status_code == 200 else _MAX_ERROR_BYTES
            return _judge(response, await _read(response, limit))
    except (TimeoutError, httpx.TimeoutException):
        return Failure(f"no answer within {timeout_s:.3g} s", retry=True, cause="timeout")
    except httpx.HTTPError as error:  # the connection was refused, cut, or spoke no HTTP
        return Failure(f"{type(error).__name__}: {error}", retry=True)


async def _read(response: httpx.Response, limit: int) -> bytes | None:
    """The body, or None where it has more than `limit` bytes."""
    content = bytearray()
    async for part in response.aiter_raw():
        content += part
        if len(content) > limit:
            return None
    return bytes(content)


def _judge(response: httpx.Response, content: bytes | None) -> ChatReply | Failure:
    status = response.status_code
    if response.is_redirect:
        return Failure(f"status {status}: redirects are not followed; give the final address")
    if status in (401, 403):  # the body may repeat the key
        return Failure(f"status {status}: check the key in the variable that api_key_env names", healthy=True)
    said = "a body beyond the size limit" if content is None else excerpt(content)
    if status == 429:
        return Failure(f"status 429: {said}", retry=True, healthy=True, wait_s=_retry_after(response))
    if status >= 500:
        return Failure(f"status {status}: {said}", retry=True, wait_s=_retry_after(response))
    if status != 200:
        return Failure(f"status {status}: {said}", healthy=True)
    if content is None:
        return Failure(f"an answer of more than {MAX_BODY_BYTES} bytes", cause="malformed")
    if response.headers.get("content-encoding", "identity") != "identity":
        return Failure("a compressed answer, which was not asked for", cause="malformed")
    try:
        return decode_reply(content)
    except NotAReplyError as error:
        return Failure(f"not a chat completion: {error}", cause="malformed")


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds from the Retry-After header: a number or a date. None where there is none that can be read."""
    text = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
