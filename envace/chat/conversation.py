"""Renders a conversation that comes from outside, in the OpenAI form, up to the header of the next act output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from envace.errors import EngineError

Message = dict[str, Any]


class Renderer(Protocol):
    """What `envace.chat.template.ChatTemplate` does."""

    def render(self, messages: list[Message], tools: list[Message] | None = None, generate: bool = False) -> str:
        """The text of a conversation."""
        ...


def render_conversation(template: Renderer, messages: list[Message], tools: list[Message] | None) -> str:
    """The text of `messages`, in which the arguments of calls are JSON text as the policy wrote them.

    Some templates put such text as it stands, others quote it once more and want objects: whichever leaves it as it
    was. Raises EngineError where the template cannot render these messages.
    """
    text = template.render(messages, tools, generate=True)
    if all(call["function"]["arguments"] in text for call in _calls(messages)):
        return text
    try:
        return template.render([_with_objects(message) for message in messages], tools, generate=True)
    except ValueError as error:
        raise EngineError(f"the arguments of a call in the messages are not JSON: {error}") from None


def _calls(messages: list[Message]) -> Iterator[Message]:
    return (call for message in messages for call in message.get("tool_calls") or [])


def _with_objects(message: Message) -> Message:
    if not message.get("tool_calls"):
        return message
    calls = [
        call | {"function": call["function"] | {"arguments": json.loads(call["function"]["arguments"])}}
        for call in message["tool_calls"]
    ]
    return message | {"tool_calls": calls}
