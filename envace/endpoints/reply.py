"""Decodes a chat completion strictly: anything that is not one is an error that says what came instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from envace.strict_json import NotStrictJsonError, parse_strict


class NotAReplyError(ValueError):
    """The body is no chat completion. The message says why, with a short excerpt."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One answer. `tool_calls` are in the API's shape; `reasoning` is there where the server parts it from the text."""

    text: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str
    usage: dict[str, int]
    reasoning: str = field(default="")


def decode_reply(body: bytes) -> ChatReply:
    """Decode a response body. Raises NotAReplyError."""
    try:
        value = parse_strict(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise NotAReplyError(f"not UTF-8: {excerpt(body)}") from None
    except NotStrictJsonError as error:
        raise NotAReplyError(f"{error}: {excerpt(body)}") from None
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise NotAReplyError(f"not one choice: {excerpt(body)}")
    message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    if not isinstance(message, dict) or not isinstance(finish, str):
        raise NotAReplyError(f"a choice without message or finish_reason: {excerpt(body)}")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return ChatReply(
        text=_text(message.get("content"), "content"),
        tool_calls=_tool_calls(message.get("tool_calls")),
        finish_reason=finish,
        usage=_usage(value.get("usage")),
        reasoning=_text(reasoning, "reasoning"),
    )


def excerpt(body: bytes, length: int = 160) -> str:
    """The beginning of a body as one printable line."""
    text = " ".join(body[: 4 * length].decode("utf-8", "replace").split())
    return "".join(c if c.isprintable() else "?" for c in text)[:length] or "(empty)"


def _text(value: Any, name: str) -> str:
    if value is not None and not isinstance(value, str):
        raise NotAReplyError(f"the message's {name} is not text")
    return value or ""


def _tool_calls(value: Any) -> list[dict[str, Any]]:
    calls = value if value is not None else []
    if not isinstance(calls, list) or not all(map(_is_call, calls)):
        raise NotAReplyError("the message's tool_calls are not calls of functions")
    return calls


def _is_call(value: Any) -> bool:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict) or not isinstance(value.get("id"), str):
        return False
    return isinstance(function.get("name"), str) and isinstance(function.get("arguments"), str)


def _usage(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, int) and not isinstance(v, bool)}
