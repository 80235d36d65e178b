"""The HTTP side of the thin server: routes, bounds on what clients may send, and errors in the API's shape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from envace.serving.answers import Answered, completion, events
from envace.serving.errors import ApiError
from envace.serving.requests import read_request
from envace.serving.service import ChatService
from envace.serving.settings import BODY_TIMEOUT_S, MAX_BODY_BYTES, QUEUE_FACTOR


def build_app(service: ChatService, max_concurrency: int) -> Starlette:
    """The application. Requests beyond `max_concurrency` wait; far beyond it they are refused with status 429."""
    routes = _Routes(service, max_concurrency)
    return Starlette(
        routes=[
            Route("/health", routes.health),
            Route("/v1/models", routes.models),
            Route("/v1/chat/completions", routes.chat, methods=["POST"]),
        ],
        exception_handlers={ApiError: _refuse, HTTPException: _refuse_path, 500: _apologise},
    )


class _Routes:
    def __init__(self, service: ChatService, max_concurrency: int) -> None:
        self._service = service
        self._slots = asyncio.Semaphore(max_concurrency)
        self._most = max_concurrency * QUEUE_FACTOR
        self._admitted = 0

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        service = self._service
        model = {"id": service.name, "object": "model", "owned_by": "envace", "max_model_len": service.max_length}
        return JSONResponse({"object": "list", "data": [model]})

    async def chat(self, request: Request) -> Response:
        if self._admitted >= self._most:
            raise ApiError(429, f"{self._most} requests are being answered already; try again", code="overloaded")
        self._admitted += 1
        try:
            asked = read_request(await _body(request))
            answer = await _unless_gone(request, self._in_turn(asked))
        finally:
            self._admitted -= 1
        if asked.stream:
            return StreamingResponse(_as_stream(answer), media_type="text/event-stream")
        return JSONResponse(completion(answer))

    async def _in_turn(self, asked: Any) -> Answered:
        async with self._slots:
            return await self._service.answer(asked)


async def _body(request: Request) -> bytes:
    """The whole body. Only JSON is taken: a web page of another origin cannot send that unasked."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "content-type must be application/json", code="unsupported_media_type")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise ApiError(413, f"the body has more than {MAX_BODY_BYTES} bytes", code="request_too_large")
    except TimeoutError:
        raise ApiError(408, f"the body did not arrive within {BODY_TIMEOUT_S:g} s", code="request_timeout") from None
    return bytes(body)


async def _unless_gone(request: Request, work: Awaitable[Answered]) -> Answered:
    """Do the work; give it up when the client hangs up."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ApiError(499, "the client has gone", code="client_closed_request")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _as_stream(answer: Answered) -> AsyncIterator[str]:
    for event in events(answer):
        yield event


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    headers = {"retry-after": "1"} if error.status == 429 else {}
    headers |= {"connection": "close"} if error.status in (408, 413) else {}  # the rest of the body is not read
    return JSONResponse(error.body(), status_code=error.status, headers=headers)


async def _refuse_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = ApiError(error.status_code, f"{request.method} {request.url.path}: {error.detail}", code="not_found")
    return JSONResponse(told.body(), status_code=error.status_code, headers=error.headers)


async def _apologise(request: Request, error: Exception) -> Response:
    told = ApiError(500, f"{type(error).__name__} while answering; the server's own output says more", code="internal")
    return JSONResponse(told.body(), status_code=500)
