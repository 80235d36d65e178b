"""A service on a scripted engine, and one on a small random policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.scripted import ScriptedEngine
from envace.serving.service import ChatService

WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture
def scripted(layout: ChatLayout) -> Callable[[str], tuple[ChatService, ScriptedEngine]]:
    """Makes a service whose policy always says one text."""

    def make(text: str) -> tuple[ChatService, ScriptedEngine]:
        engine = ScriptedEngine(layout, [text])
        return ChatService(engine, layout, name="policy", max_length=300), engine

    return make


@pytest.fixture
def random_service(saved_policy: Path) -> ChatService:
    """A service on the small random policy."""
    from envace.engines.load import load_policy

    policy = load_policy(saved_policy, max_slots=4, max_length=300)
    return ChatService(policy.engine, policy.layout, name="policy", max_length=300)


@pytest.fixture
def post() -> Callable[..., tuple[int, Any]]:
    """Posts a body (an object, or bytes) to the application of a service; status and decoded answer."""

    def send(service: ChatService, body: Any, path: str = "/v1/chat/completions", **headers: str) -> tuple[int, Any]:
        import httpx

        from envace.serving.app import build_app

        async def main() -> tuple[int, Any]:
            transport = httpx.ASGITransport(build_app(service, 4), raise_app_exceptions=False)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                kind = {"content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
                response = await client.post(path, content=content, headers=kind)
                is_json = response.headers["content-type"] == "application/json"
                return response.status_code, response.json() if is_json else response.text

        return asyncio.run(main())

    return send


def asking(text: str = "What is the weather in Oslo?", **more: Any) -> dict[str, Any]:
    """A request body."""
    return {"model": "policy", "messages": [{"role": "user", "content": text}], "max_tokens": 60, **more}


@pytest.fixture
def ask() -> Callable[..., dict[str, Any]]:
    """Makes request bodies."""
    return asking


@pytest.fixture
def tool() -> dict[str, Any]:
    """A tool to offer."""
    return WEATHER_TOOL
