"""Reads one output of either role: reasoning, reply and tool calls, or one typed error. Never raises on any string.

Rules. Reasoning is the text inside think blocks, of which the first may have been opened in the prompt; a call written
there is not a call. A call is one JSON object {"name", "arguments"} inside one tool-call block; the JSON decides where
it ends, so a closing tag inside a string is text. Two objects in one block, a block that is not closed, repeated keys,
NaN, lone surrogates and arguments that are not an object are errors. JSON outside a block (for instance in a code
fence) is reply text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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


Span = tuple[int, int]


@dataclass(slots=True)
class ActOutput:
    """What one act output says. With `error` set there are no calls: a broken output never runs in part.

    `thoughts` are the character spans of the think blocks, tags included, in order. A block that is never closed is
    an error and no reasoning: templates leave it in as well.
    """

    reasoning: str = ""
    reply: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    error: ToolCallError | None = None
    thoughts: list[Span] = field(default_factory=list)


def parse_act(text: str, opened: bool = False) -> ActOutput:
    """Parse the decoded text of a finished act output (end token removed, special tokens kept).

    `opened`: the prompt ends inside a think block, so that the output begins in it.
    """
    calls: list[ToolCall] = []
    thoughts: list[Span] = []
    replies: list[str] = []
    error, at = None, 0
    try:
        if end := _read_thought(text, 0) if opened else _prompted_reasoning(text):
            thoughts.append((0, end))
            at = end
        while tag := _TAG.search(text, at):
            replies.append(text[at : tag.start()])
            at = tag.end()
            if tag[0] == OPEN:
                call, at = _read_block(text, at, len(calls))
                calls.append(call)
            elif tag[0] == THINK_OPEN:
                at = _read_thought(text, at)
                thoughts.append((tag.start(), at))
            else:
                raise ToolCallError(f"{CLOSE} without {OPEN} before it")
        replies.append(text[at:])
    except ToolCallError as broken:
        calls, replies, error = [], [], broken
        thoughts += _thoughts_from(text, at)
    return ActOutput(_joined(_inside(text, s) for s in thoughts), _joined(replies), calls, error, thoughts)


def parse_response(text: str) -> Any | None:
    """A rehearsed response as a JSON object or array, or None where it is neither. Leading reasoning does not count."""
    try:
        value = parse_strict(text[answer_start(text) :])
    except NotStrictJsonError:
        return None
    return value if isinstance(value, dict | list) else None


def answer_start(text: str) -> int:
    """Where the answer of a rehearse output begins: behind its one leading think block, if it has one.

    The block may have been opened in the prompt. A closing tag inside the answer's own JSON is text like any other.
    """
    end = text.find(THINK_CLOSE)
    if end < 0 or _is_json(text):
        return 0
    is_one_block = text.lstrip().startswith(THINK_OPEN) or THINK_OPEN not in text[:end]
    return end + len(THINK_CLOSE) if is_one_block else 0


def as_call(value: Any, where: str, index: int) -> ToolCall:
    """The call that a decoded JSON value is. Raises ToolCallError saying `where` and why it is none."""
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


def _is_json(text: str) -> bool:
    try:
        parse_strict(text)
    except NotStrictJsonError:
        return False
    return True


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(stripped for part in parts if (stripped := part.strip()))


def _inside(text: str, span: Span) -> str:
    return text[slice(*span)].removeprefix(THINK_OPEN).removesuffix(THINK_CLOSE)


def _thoughts_from(text: str, at: int) -> list[Span]:
    """All think blocks from a position on, whatever stands between them. One that is never closed is none."""
    found: list[Span] = []
    start = text.find(THINK_OPEN, at)
    while start >= 0 and (end := text.find(THINK_CLOSE, start)) >= 0:
        at = end + len(THINK_CLOSE)
        found.append((start, at))
        start = text.find(THINK_OPEN, at)
    return found


def _prompted_reasoning(text: str) -> int:
    """Where a block ends, its tag included, that the prompt may have opened; 0 where there is none.

    A closing tag inside the JSON of a call is text like any other.
    """
    at = 0
    while True:
        end = text.find(THINK_CLOSE, at)
        if end < 0 or THINK_OPEN in text[at:end]:
            return 0
        start = text.find(OPEN, at, end)
        if start < 0:
            return end + len(THINK_CLOSE)
        try:
            _, at = _read_block(text, start + len(OPEN), 0)
        except ToolCallError:
            return end + len(THINK_CLOSE)


def _read_thought(text: str, at: int) -> int:
    end = text.find(THINK_CLOSE, at)
    if end < 0:
        raise ToolCallError(f"{THINK_OPEN} is never closed")
    return end + len(THINK_CLOSE)


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
    return as_call(value, where, index), len(text) - len(rest) + len(CLOSE)
