"""Reads one act output: its reasoning, its reply and its tool calls, or one typed error. Never raises on any string.

Rules. Reasoning is the text inside think blocks, of which the first may have been opened in the prompt; a call written
there is not a call. A call is one JSON object {"name", "arguments"} inside one tool-call block; the JSON decides where
it ends, so a closing tag inside a string is text. Two objects in one block, a block that is not closed, repeated keys,
NaN, lone surrogates and arguments that are not an object are errors. JSON outside a block (for instance in a code
fence) is reply text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from envace.errors import ToolCallError
from envace.files import compact_json
from envace.strict_json import NotStrictJsonError, parse_prefix, parse_strict
from envace.types import ToolCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"
THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
_TAG = re.compile("|".join((OPEN, CLOSE, THINK_OPEN)))
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class ActOutput:
    """What one act output says. With `error` set there are no calls: a broken output never runs in part."""

    reasoning: str = ""
    reply: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    error: ToolCallError | None = None


def parse_act(text: str) -> ActOutput:
    """Parse the decoded text of a finished act output (end token removed, special tokens kept)."""
    end = _prompted_reasoning(text)
    thoughts, replies, at = [text[:end]], [], end + len(THINK_CLOSE) if end else 0
    calls: list[ToolCall] = []
    error = None
    try:
        while tag := _TAG.search(text, at):
            replies.append(text[at : tag.start()])
            if tag[0] == OPEN:
                call, at = _read_block(text, tag.end(), len(calls))
                calls.append(call)
            elif tag[0] == THINK_OPEN:
                thought, at = _read_thought(text, tag.end())
                thoughts.append(thought)
            else:
                raise ToolCallError(f"{CLOSE} without {OPEN} before it")
        replies.append(text[at:])
    except ToolCallError as broken:
        calls, replies, error = [], [], broken
    return ActOutput(_joined(thoughts), _joined(replies), calls, error)


def parse_response(text: str) -> Any | None:
    """A rehearsed response as a JSON object or array, or None where it is neither."""
    try:
        value = parse_strict(text)
    except NotStrictJsonError:
        return None
    return value if isinstance(value, dict | list) else None


def _joined(parts: list[str]) -> str:
    return "\n".join(stripped for part in parts if (stripped := part.strip()))


def _prompted_reasoning(text: str) -> int:
    """Where reasoning ends that the prompt has opened (some templates do); 0 where there is none.

    A closing tag inside the JSON of a call is text like any other.
    """
    at = 0
    while True:
        end = text.find(THINK_CLOSE, at)
        if end < 0 or THINK_OPEN in text[at:end]:
            return 0
        start = text.find(OPEN, at, end)
        if start < 0:
            return end
        try:
            _, at = _read_block(text, start + len(OPEN), 0)
        except ToolCallError:
            return end


def _read_thought(text: str, at: int) -> tuple[str, int]:
    end = text.find(THINK_CLOSE, at)
    if end < 0:
        raise ToolCallError(f"{THINK_OPEN} is never closed")
    return text[at:end], end + len(THINK_CLOSE)


def _read_block(text: str, at: int, index: int) -> tuple[ToolCall, int]:
    where = f"tool-call block {index + 1}"
    at += len(text[at:]) - len(text[at:].lstrip())
    try:
        value, end = parse_prefix(text, at)
    except NotStrictJsonError as error:
        raise ToolCallError(f"{where}: not one JSON object: {str(error)[:120]}") from None
    rest = text[end:].lstrip()
    if not rest.startswith(CLOSE):
        raise ToolCallError(f"{where}: {CLOSE} must follow its one JSON object")
    return _as_call(value, where, index), len(text) - len(rest) + len(CLOSE)


def _as_call(value: Any, where: str, index: int) -> ToolCall:
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise ToolCallError(f'{where}: expected an object with exactly "name" and "arguments"')
    name, arguments = value["name"], value["arguments"]
    if not isinstance(name, str) or not name:
        raise ToolCallError(f'{where}: "name" must be a non-empty string')
    if not isinstance(arguments, dict):
        raise ToolCallError(f'{where}: "arguments" must be an object')
    written = compact_json(arguments)
    if _SURROGATE.search(name) or _SURROGATE.search(written):
        raise ToolCallError(f"{where}: contains a lone surrogate")
    return ToolCall(tool_name=name, arguments=written, call_id=f"call_{index}")
