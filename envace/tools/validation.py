"""Decides by code whether a call may be sent to its tool, and words the error observation where it may not."""

from __future__ import annotations

from envace.files import compact_json
from envace.tools.schema import judged_schema
from envace.types import Task, ToolCall

_MAX_WORDS = 160


def validate_call(call: ToolCall, task: Task) -> str | None:
    """None for a good call, else what is wrong with it in a few words (method, section 2, `validation: code`)."""
    tool = task.tool(call.tool_name)
    if tool is None:
        return "unknown tool"
    fault, validator = judged_schema(tool.parameters_schema)
    if validator is None:
        return f"the tool's schema cannot be used: {fault}"[:_MAX_WORDS]
    faults = validator.faults(call.parsed())
    return f"bad arguments: {faults[0][1]}"[:_MAX_WORDS] if faults else None


def error_observation(message: str) -> str:
    """The tool message that code writes in the environment's place."""
    return compact_json({"error": message})
