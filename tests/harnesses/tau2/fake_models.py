"""A chat endpoint whose models misbehave, each in the way that its name says."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any

from tests.policy_server import policy_server

WORDS = "I am afraid that is not possible."


def _call(name: str, arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}]}


MODELS: dict[str, dict[str, Any]] = {
    "words": {"content": WORDS},
    "empty": {"content": ""},
    "markup": {"content": "<tool_call>{name: cancel"},
    "garbage": {"content": "\ufffd\ufffd %% \ufffd"},
    "thinking": {"content": None, "reasoning_content": "I think that I should say something."},
    "malformed": _call("calculate", '{"expression": '),
    "no-object": _call("calculate", "[1]"),
    "unknown-tool": _call("format_disk", "{}"),
    "runaway": _call("calculate", '{"expression": "9**9**9**9"}'),
    "huge": _call("calculate", json.dumps({"expression": "1" * 1_000_000})),
}


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, **_reply(asked)}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": asked["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
    }


def _reply(asked: dict[str, Any]) -> dict[str, Any]:
    if asked["model"] != "vandal":
        return MODELS[asked["model"]]
    answered = any(message["role"] == "tool" for message in asked["messages"])
    return MODELS["words"] if answered else _call("cancel_reservation", '{"reservation_id": "EHGLP3"}')


def fake_models() -> AbstractContextManager[str]:
    """Serve them on a free port of this machine. Gives the address."""
    return policy_server(_answer)
