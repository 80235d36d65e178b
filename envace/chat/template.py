"""What a chat template writes around each kind of message, read off the template itself by rendering probes.

A template can be used if a conversation can be put together message by message. That is so where the text of a message
does not depend on what follows it, once the reasoning of earlier turns is gone (which the history cuts itself). Tool
results may be messages of their own or stand together inside one user message, as in Qwen3's template.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from envace.chat.parser import THINK_CLOSE, THINK_OPEN
from envace.errors import EngineError
from envace.types import ToolCall

Message = dict[str, Any]

# White space around the texts shows whether the template trims what it is given.
_USER, _LATER, _LAST, _RESULT, _NEXT = (f" \u241f{name}\u241f " for name in ("user", "later", "last", "result", "next"))
_REPLY, _CALLER = "\u241freply\u241f", "\u241fcaller\u241f"
_PROBE_TOOL = {"type": "function", "function": {"name": "probe", "description": "", "parameters": {"type": "object"}}}


@dataclass(frozen=True, slots=True)
class Frames:
    """The template's text around contents. Concatenating frames and contents gives what rendering whole gives.

    `results_*` stand before the first of the tool results that answer one output, between two, and after the last.
    `generation` is the header that an assistant message is asked for with; it may open a think block.
    """

    user_before: str
    user_after: str
    assistant_before: str
    assistant_after: str
    results_before: str
    results_between: str
    results_after: str
    generation: str

    @property
    def results_are_messages(self) -> bool:
        """Whether each tool result is a message of its own."""
        return self.results_between == self.results_after + self.results_before

    @property
    def opens_reasoning(self) -> bool:
        """Whether the policy begins to write inside a think block."""
        return THINK_OPEN in self.generation.rpartition(THINK_CLOSE)[2]


class ChatTemplate:
    """Renders conversations as text. Raises EngineError for a template that cannot be used, saying why."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.frames = self._read_frames()
        self._opened = len(self.render([_said("user", _USER)]))

    def render(self, messages: list[Message], tools: list[dict[str, Any]] | None = None, generate: bool = False) -> str:
        """The text of a whole conversation."""
        try:
            return self._tokenizer.apply_chat_template(
                messages, tools=tools or None, add_generation_prompt=generate, tokenize=False
            )
        except Exception as error:  # a template is a program of others: it may fail in any way
            roles = [message["role"] for message in messages]
            raise EngineError(f"chat template: cannot render the messages {roles}: {error}") from error

    def written(self, reply: str, calls: list[ToolCall]) -> str:
        """A reply with its calls as the template writes them (for reference outputs: policies write on their own)."""
        if not calls:
            return reply
        for as_text in (True, False):
            text = self._written(reply, calls, as_text)
            if all(call.arguments in text for call in calls):  # not quoted once more
                return text
        return text

    def _written(self, reply: str, calls: list[ToolCall], as_text: bool) -> str:
        shaped = [
            {
                "type": "function",
                "function": {"name": c.tool_name, "arguments": c.arguments if as_text else json.loads(c.arguments)},
            }
            for c in calls
        ]
        caller = {"role": "assistant", "content": reply, "tool_calls": shaped}
        whole = self.render([_said("user", _USER), caller, _said("user", _LAST)])
        frames = self.frames
        behind = frames.assistant_after + frames.user_before + _LAST + frames.user_after
        return whole[self._opened + len(frames.assistant_before) : -len(behind)]

    def _read_frames(self) -> Frames:
        asked = [_said("user", _USER), _said("assistant", _REPLY)]
        called = [*asked, _said("user", _LATER), _said("assistant", _CALLER), _said("tool", _RESULT)]
        texts = [_USER, _REPLY, _LATER, _CALLER, _RESULT, _NEXT, _LAST]
        whole = self.render([*called, _said("tool", _NEXT), _said("user", _LAST)])
        _, to_reply, to_later, to_caller, to_result, between, to_last, user_after = _around(whole, texts)
        assistant_after = _around(self.render(asked), [_REPLY])[-1]
        user_before = _without(to_later, assistant_after, "an assistant message ends otherwise where another follows")
        opening = self.render(asked[:1])
        frames = Frames(
            user_before=user_before,
            user_after=user_after,
            assistant_before=_without(to_reply, user_after, "a user message ends otherwise where another follows"),
            assistant_after=assistant_after,
            results_before=_without(to_result, assistant_after, "an assistant message ends otherwise before a result"),
            results_between=between,
            results_after=to_last.removesuffix(user_before),
            generation=_without(
                self.render(asked[:1], generate=True), opening, "asking for an output changes the text before it"
            ),
        )
        self._check(frames, whole, called, to_reply == to_caller and to_last.endswith(user_before))
        return frames

    def _check(self, frames: Frames, whole: str, called: list[Message], is_regular: bool) -> None:
        _require(is_regular, "what stands around a message depends on the messages around it")
        _require(whole.startswith(self.render(called[:1])), "later messages change the text before them")
        with_tools = [self.render(messages, [_PROBE_TOOL]) for messages in (called[:1], called[:3])]
        _require(with_tools[1].startswith(with_tools[0]), "later messages change the text before them")
        waiting = self.render(called, generate=True)
        _require(
            waiting.endswith(_RESULT + frames.results_after + frames.generation),
            "the header of an output after a tool result is another one",
        )
        _require(
            frames.generation.startswith(frames.assistant_before),
            "the header that outputs are asked for with does not begin an assistant message",
        )


def _said(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _around(text: str, contents: list[str]) -> list[str]:
    """The text before, between and after the contents, each of which must stand there once, in this order."""
    cuts = [0]
    for content in contents:
        at = text.find(content, cuts[-1])
        _require(
            at >= 0 and text.count(content.strip()) == 1,
            f"the text of a message ({content.strip()[1:-1]}) is not in it exactly as given, once and in its place",
        )
        cuts += [at, at + len(content)]
    return [text[start:end] for start, end in list(pairwise([*cuts, len(text)]))[::2]]


def _without(text: str, beginning: str, otherwise: str) -> str:
    _require(text.startswith(beginning), otherwise)
    return text[len(beginning) :]


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise EngineError(
            f"chat template: {otherwise}, so prompts cannot be put together from token ids; "
            "use a tokenizer whose template writes every message by itself, as Qwen3's does"
        )
