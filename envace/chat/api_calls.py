"""Tool calls in the shape of the OpenAI API: read as strictly as those in text, and written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envace.chat.parser import ActOutput, as_call, parse_act
from envace.errors import ToolCallError
from envace.strict_json import NotStrictJsonError, parse_strict
from envace.types import Task, ToolCall


def parse_chat(text: str, reasoning: str, tool_calls: Sequence[dict[str, Any]], task: Task) -> ActOutput:
    """An act output that came as text and calls apart. Never raises.

    Where the endpoint gave calls, they are the calls, and the text is reasoning and reply. Where it gave none, a
    call block in the text counts like anywhere else (the server may have no tool-call parser).
    """
    parsed = parse_act(text)
    if tool_calls:
        reply = outside(text, parsed.thoughts) if parsed.calls or parsed.error else parsed.reply
        parsed = ActOutput(parsed.reasoning, reply, thoughts=parsed.thoughts)
        try:
            parsed.calls = [_read(call, i, task) for i, call in enumerate(tool_calls)]
        except ToolCallError as error:
            parsed.error = error
    parsed.reasoning = "\n".join(part for part in (reasoning.strip(), parsed.reasoning) if part)
    return parsed


def outside(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without these spans of it."""
    kept, at = "", 0
    for start, end in spans:
        kept, at = kept + text[at:start], end
    return (kept + text[at:]).strip()


def api_call(call: ToolCall, call_id: str) -> dict[str, Any]:
    """A call as it stands in an assistant message of the API."""
    return {"id": call_id, "type": "function", "function": {"name": call.tool_name, "arguments": call.arguments}}


def calls_as_text(calls: Sequence[ToolCall]) -> str:
    """Calls as Qwen3's template writes them into an assistant message."""
    blocks = (f'{{"name": {json.dumps(c.tool_name, ensure_ascii=False)}, "arguments": {c.arguments}}}' for c in calls)
    return "\n".join(f"<tool_call>\n{block}\n</tool_call>" for block in blocks)


def _read(call: dict[str, Any], index: int, task: Task) -> ToolCall:
    where = f"tool call {index + 1}"
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        raise ToolCallError(f"{where}: expected a function with its arguments as JSON text")
    name, written = function.get("name"), function["arguments"]
    if not written.strip() and _takes_nothing(name, task):
        written = "{}"
    try:
        arguments = parse_strict(written)
    except NotStrictJsonError as error:
        raise ToolCallError(f"{where}: its arguments are not JSON: {str(error)[:120]}") from None
    return as_call({"name": name, "arguments": arguments}, where, index)


def _takes_nothing(name: Any, task: Task) -> bool:
    tool = task.tool(name) if isinstance(name, str) else None
    return tool is not None and not json.loads(tool.parameters_schema).get("properties")
