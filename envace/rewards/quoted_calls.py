"""The recorded call that a piece of evidence quotes, however it is quoted."""

from __future__ import annotations

import re
from typing import Any

from envace.files import compact_json
from envace.strict_json import NotStrictJsonError, parse_object, parse_prefix
from envace.types import Criterion, Task, ToolCall

_MAX_ESCAPES = 3
_NAME = re.compile(r'\\*"name\\*"\s*:\s*\\*"([^"\\]+)\\*"\s*,\s*\\*"arguments\\*"\s*:\s*')


def quoted_call(criterion: Criterion, task: Task) -> ToolCall | None:
    """The one call that the criterion's evidence quotes; None where it quotes none, or several different ones.

    Evidence quotes the JSON text of a message, in which the arguments are JSON text themselves; who wrote it down may
    have unescaped that text, decoded it to an object, cut its end off, or quoted the tool's name only. What cannot be
    read by itself is looked up in the reference conversation, and counts if one call there agrees with it.
    """
    found: dict[str, ToolCall] = {}
    for evidence in criterion.evidence:
        if evidence.source != "tool_call":
            continue
        calls = read_calls(evidence.snippet) or _recorded(task, evidence.turn, evidence.snippet)
        if not calls:
            return None
        found |= {call.canonical: call for call in calls}
    return next(iter(found.values())) if len(found) == 1 else None


def read_calls(snippet: str) -> list[ToolCall]:
    """The calls whose name and whole arguments stand in the snippet; none where one of them cannot be read."""
    calls = []
    for match in _NAME.finditer(snippet):
        arguments = _arguments(snippet, match.end())
        if arguments is None:
            return []
        calls.append(ToolCall(tool_name=match[1], arguments=compact_json(arguments)))
    return calls


def _arguments(snippet: str, at: int) -> dict[str, Any] | None:
    try:
        value, _ = parse_prefix(snippet, at)
    except NotStrictJsonError:
        value = None
    if isinstance(value, str):
        return parse_object(value)
    if isinstance(value, dict):
        return value
    # unescaped, but still between quotes; or the whole snippet escaped once or twice more
    opened = re.compile(r'\\*"?\s*(?=\{)').match(snippet, at)
    body = snippet[opened.end() :] if opened else ""
    for _ in range(_MAX_ESCAPES):
        try:
            value, _ = parse_prefix(body)
        except NotStrictJsonError:
            body = re.sub(r"\\(.)", r"\1", body)
            continue
        return value if isinstance(value, dict) else None
    return None


def _recorded(task: Task, turn_index: int, snippet: str) -> list[ToolCall]:
    """The calls of the reference turn that the snippet is a part of, or that it names without arguments."""
    if turn_index >= len(task.turns):
        return []
    wanted = _folded(snippet)
    made = {c.canonical: c for step in task.turns[turn_index].reference_steps for c in step.tool_calls}
    return [call for call in made.values() if wanted and _agrees(call, wanted)]


def _agrees(call: ToolCall, wanted: str) -> bool:
    name = re.escape(_folded(call.tool_name))
    written = _folded(f'{{"name": "{call.tool_name}", "arguments": "{call.arguments}"}}')
    return re.search(rf"(?<![\w-]){name}(?![\w-])", wanted) is not None and wanted in written


def _folded(text: str) -> str:
    """Without white space and backslashes, which quoting adds and takes away."""
    return re.sub(r"[\s\\]+", "", text)
