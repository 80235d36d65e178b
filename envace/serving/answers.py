"""A sampled output in the shape of the OpenAI API: reasoning, text and tool calls apart; whole, or as event stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from envace.chat.parser import ActOutput, parse_act


@dataclass(frozen=True, slots=True)
class Answered:
    """A sampled output with what the API tells about it."""

    completion_id: str
    created: int
    model: str
    text: str
    finished: bool
    opened: bool
    offers_tools: bool
    prompt_tokens: int
    completion_tokens: int


def completion(answer: Answered) -> dict[str, Any]:
    """The body of a `chat.completion`."""
    message, reason = _message(answer)
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {**_head(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}


def events(answer: Answered) -> Iterator[str]:
    """The same as server-sent events: one chunk with everything, one with the reason and the usage, the end mark."""
    message, reason = _message(answer)
    delta = {k: v for k, v in message.items() if v is not None}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(delta["tool_calls"])]
    head = _head(answer, "chat.completion.chunk")
    first = {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}
    last = {"index": 0, "delta": {}, "finish_reason": reason, "logprobs": None}
    for chunk in ({**head, "choices": [first]}, {**head, "choices": [last], "usage": _usage(answer)}):
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def _message(answer: Answered) -> tuple[dict[str, Any], str]:
    """The assistant's message and why it ended.

    An output that was cut, or whose calls cannot be read, stands as text: a broken output never runs in part.
    """
    parsed = parse_act(answer.text, answer.opened)
    calls = parsed.calls if answer.finished and answer.offers_tools else []
    content = parsed.reply if calls else _without_thoughts(answer.text, parsed)
    message: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
    if parsed.reasoning:
        message["reasoning_content"] = parsed.reasoning
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{answer.completion_id}_{index}",
                "type": "function",
                "function": {"name": call.tool_name, "arguments": call.arguments},
            }
            for index, call in enumerate(calls)
        ]
    return message, "tool_calls" if calls else "stop" if answer.finished else "length"


def _without_thoughts(text: str, parsed: ActOutput) -> str:
    for start, end in reversed(parsed.thoughts):
        text = text[:start] + text[end:]
    return text.strip()


def _head(answer: Answered, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.completion_id}",
        "object": kind,
        "created": answer.created,
        "model": answer.model,
    }


def _usage(answer: Answered) -> dict[str, int]:
    prompt, new = answer.prompt_tokens, answer.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": new, "total_tokens": prompt + new}
