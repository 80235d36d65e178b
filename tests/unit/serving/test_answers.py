"""What the policy wrote, in the API's shape: reasoning, text, tool calls, and why it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from envace.chat.layout import ChatLayout

Make = Callable[[str], tuple[Any, Any]]
Post = Callable[..., tuple[int, Any]]
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Łódź"}}</tool_call>'


@pytest.mark.parametrize(
    ("said", "content", "reasoning", "calls", "reason"),
    [
        ("It is sunny.", "It is sunny.", None, 0, "stop"),
        ("<think>Hm.</think>It is sunny.", "It is sunny.", "Hm.", 0, "stop"),
        (CALL, None, None, 1, "tool_calls"),
        (CALL + CALL, None, None, 2, "tool_calls"),
        ("<think>Hm.</think>Let me look." + CALL, "Let me look.", "Hm.", 1, "tool_calls"),
        (f"<think>{CALL}</think>No.", "No.", CALL, 0, "stop"),  # written in reasoning, it is no call
        ("<tool_call>{broken</tool_call>", "<tool_call>{broken</tool_call>", None, 0, "stop"),
        ("", "", None, 0, "stop"),
    ],
)
def test_an_output_is_taken_apart(
    scripted: Make,
    post: Post,
    ask: Any,
    tool: Any,
    said: str,
    content: str | None,
    reasoning: str | None,
    calls: int,
    reason: str,
) -> None:
    service, _ = scripted(said)
    status, body = post(service, ask(tools=[tool]))
    message = body["choices"][0]["message"]
    assert status == 200 and body["object"] == "chat.completion" and body["model"] == "policy"
    assert (message["content"], message.get("reasoning_content")) == (content, reasoning)
    assert body["choices"][0]["finish_reason"] == reason and len(message.get("tool_calls", [])) == calls
    for call in message.get("tool_calls", []):
        assert call["type"] == "function" and call["function"]["name"] == "get_weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Łódź"}
    ids = [call["id"] for call in message.get("tool_calls", [])]
    assert len(set(ids)) == calls
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


def test_a_cut_output_is_never_taken_for_a_call(
    scripted: Make, post: Post, ask: Any, tool: Any, layout: ChatLayout
) -> None:
    service, _ = scripted(CALL + " and more text follows here")
    tokens = len(layout.encode_output(CALL)) + 2  # the call is whole
    _, body = post(service, ask(tools=[tool], max_tokens=tokens))
    choice = body["choices"][0]
    assert choice["finish_reason"] == "length" and "tool_calls" not in choice["message"]
    assert choice["message"]["content"].startswith(CALL) and body["usage"]["completion_tokens"] == tokens


@pytest.mark.parametrize("more", [{}, {"tools": []}, {"tool_choice": "none"}])
def test_without_tools_on_offer_nothing_is_a_call(
    scripted: Make, post: Post, ask: Any, tool: Any, more: dict[str, Any]
) -> None:
    service, engine = scripted(CALL)
    offered = {"tools": [tool]} if "tool_choice" in more else {}
    _, body = post(service, ask(**offered, **more))
    assert body["choices"][0]["message"]["content"] == CALL and body["choices"][0]["finish_reason"] == "stop"
    assert "get_weather" not in service._layout._decode(engine.requests[0].prompt_ids)


def test_a_stream_carries_the_same(scripted: Make, post: Post, ask: Any, tool: Any) -> None:
    service, _ = scripted("<think>Hm.</think>Let me look." + CALL + CALL)
    status, text = post(service, ask(tools=[tool], stream=True, stream_options={"include_usage": True}))
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    chunks = [json.loads(line) for line in lines[:-1]]
    assert status == 200 and lines[-1] == "[DONE]"
    assert all(c["object"] == "chat.completion.chunk" and c["id"] == chunks[0]["id"] for c in chunks)
    delta = chunks[0]["choices"][0]["delta"]
    assert (delta["role"], delta["content"], delta["reasoning_content"]) == ("assistant", "Let me look.", "Hm.")
    assert [call["index"] for call in delta["tool_calls"]] == [0, 1]
    assert chunks[-1]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "tool_calls", "logprobs": None}
    assert chunks[-1]["usage"]["completion_tokens"] > 0
