"""Reads one act output: its reasoning, its reply and its tool calls, or one typed error. Never raises on any string.

Rules. Reasoning is the text inside a leading think block; a call written there is not a call. A call is one JSON object
{"name", "arguments"} inside one tool-call block; the JSON decides where it ends, so a closing tag inside a string is
text. Two objects in one block, a block that is not closed, repeated keys, NaN, lone surrogates and arguments that are
not an object are errors. JSON outside a block (for instance in a code fence) is reply text.
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
    reasoning, visible, error = _split_reasoning(text)
    if error:
        return ActOutput(reasoning=reasoning, error=error)
    replies: list[str] = []
    calls: list[ToolCall] = []
    at = 0
    while True:
        start = visible.find(OPEN, at)
        before = visible[at:] if start < 0 else visible[at:start]
        if CLOSE in before:
            return ActOutput(reasoning=reasoning, error=ToolCallError(f"{CLOSE} without {OPEN} before it"))
        replies.append(before.strip())
        if start < 0:
            break
        try:
            call, at = _read_block(visible, start + len(OPEN), len(calls))
        except ToolCallError as broken:
            return ActOutput(reasoning=reasoning, error=broken)
        calls.append(call)
    return ActOutput(reasoning=reasoning, reply="\n".join(r for r in replies if r), calls=calls)


def parse_response(text: str) -> Any | None:
    """A rehearsed response as a JSON object or array, or None where it is neither."""
    try:
        value = parse_strict(text)
    except NotStrictJsonError:
        return None
    return value if isinstance(value, dict | list) else None


def _split_reasoning(text: str) -> tuple[str, str, ToolCallError | None]:
    body = text.lstrip()
    if not body.startswith(THINK_OPEN):
        if THINK_CLOSE in body and THINK_OPEN not in body:  # templates that open the block in the prompt
            reasoning, _, visible = body.partition(THINK_CLOSE)
            return reasoning.strip(), visible, None
        return "", text, None
    reasoning, closed, visible = body[len(THINK_OPEN) :].partition(THINK_CLOSE)
    if not closed:
        return reasoning.strip(), "", ToolCallError(f"{THINK_OPEN} is never closed")
    return reasoning.strip(), visible, None


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
