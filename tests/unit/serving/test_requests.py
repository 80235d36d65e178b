"""Requests that are refused: each with the right status, in the API's error shape, naming what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envace.errors import EngineError
from envace.serving.service import ChatService

Make = Callable[[str], tuple[ChatService, Any]]
Post = Callable[..., tuple[int, Any]]
USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("change", "status", "told"),
    [
        ({"model": "gpt-9"}, 404, "gpt-9"),
        ({"model": 5}, 400, "model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": "hi"}, 400, "messages"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, 400, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, 400, "has content"),
        ({"messages": [{"role": "user", "content": 5}]}, 400, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]}, 400, "content"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]}, 400, "arguments"),
        ({"tools": [{"type": "function"}]}, 400, "tools.0.function"),
        ({"tools": [{"type": "web_search"}]}, 400, "tools.0.type"),
        ({"tool_choice": "required"}, 400, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, 400, "tool_choice"),
        ({"temperature": -1}, 400, "temperature"),
        ({"temperature": "hot"}, 400, "temperature"),
        ({"top_p": 0}, 400, "top_p"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 1.5}, 400, "max_tokens"),
        ({"max_tokens": True}, 400, "max_tokens"),
        ({"seed": 2**70}, 400, "seed"),
        ({"stream": "yes"}, 400, "stream"),
        ({"n": 2}, 400, "n is not supported"),
        ({"stop": ["\n"]}, 400, "stop is not supported"),
        ({"logprobs": True}, 400, "logprobs"),
        ({"response_format": {"type": "json_schema"}}, 400, "response_format"),
        ({"frequency_penalty": 0.5}, 400, "frequency_penalty"),
        ({"temprature": 1.0}, 400, "temprature: unknown parameter"),
        ({"max_tokens": 299}, 400, "more than the 300"),
        ({"messages": [{"role": "user", "content": "word " * 2000}]}, 400, "more than the 300"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(
    scripted: Make, post: Post, ask: Any, change: dict[str, Any], status: int, told: str
) -> None:
    service, engine = scripted("yes")
    found, body = post(service, ask() | change)
    assert found == status and set(body["error"]) == {"message", "type", "param", "code"}
    assert told in body["error"]["message"] and body["error"]["type"] == "invalid_request_error"
    assert not engine.requests


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"model": NaN}', b'{"a":' * 5000, b'{"model": "a", "model": "b"}', b"5"]
)
def test_a_body_that_is_no_json_object_is_refused(scripted: Make, post: Post, body: bytes) -> None:
    status, answer = post(scripted("yes")[0], body)
    assert status == 400 and answer["error"]["code"] == "invalid_json"


def test_a_huge_body_is_refused_without_reading_it_all(scripted: Make, post: Post) -> None:
    status, answer = post(scripted("yes")[0], b" " * (5 << 20))
    assert status == 413 and "4194304" in answer["error"]["message"]


def test_other_content_types_and_paths_are_refused(scripted: Make, post: Post, ask: Any) -> None:
    service, _ = scripted("yes")
    assert post(service, ask(), content_type="text/plain")[0] == 415
    assert post(service, ask(), "/v1/completions")[0] == 404
    status, answer = post(service, ask(), "/v1/models")
    assert status == 405 and answer["error"]["message"].startswith("POST /v1/models")


def test_what_asks_for_nothing_special_is_accepted(scripted: Make, post: Post, ask: Any) -> None:
    service, engine = scripted("yes")
    usual = {"n": 1, "stop": None, "logprobs": False, "frequency_penalty": 0.0, "user": "me", "seed": None}
    body = {k: v for k, v in ask().items() if k != "max_tokens"} | usual | {"max_completion_tokens": 7, "top_p": 1}
    assert post(service, body)[0] == 200 and engine.requests[0].max_tokens == 7
    assert post(service, {k: v for k, v in ask().items() if k != "max_tokens"})[0] == 200
    room = engine.requests[1]
    assert room.max_tokens + len(room.prompt_ids) == 300  # what is left, where nothing is asked


def test_an_engine_that_fails_is_a_server_error(scripted: Make, post: Post, ask: Any, monkeypatch: Any) -> None:
    service, engine = scripted("yes")

    async def fail(request: Any) -> Any:
        raise EngineError("out of memory")

    monkeypatch.setattr(engine, "generate", fail)
    status, body = post(service, ask())
    assert status == 500 and "out of memory" in body["error"]["message"] and body["error"]["type"] == "server_error"

    async def break_down(request: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(engine, "generate", break_down)
    status, body = post(service, ask())
    assert status == 500 and "RuntimeError" in body["error"]["message"] and "secret" not in str(body)
