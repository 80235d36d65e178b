"""Decides by code whether a call may be sent to its tool, and words the error observation where it may not."""

from __future__ import annotations

from envace.files import compact_json
from envace.tools.schema import argument_validator
from envace.types import Task, ToolCall


def validate_call(call: ToolCall, task: Task) -> str | None:
    """None for a good call, else what is wrong with it in a few words (method, section 2, `validation: code`)."""
    tool = task.tool(call.tool_name)
    if tool is None:
        return "unknown tool"
    fault = next(iter(argument_validator(tool.parameters_schema).iter_errors(call.parsed())), None)
    if fault is None:
        return None
    where = "/".join(str(p) for p in fault.absolute_path)
    return f"bad arguments: {where + ': ' if where else ''}{fault.message}"[:160]


def error_observation(message: str) -> str:
    """The tool message that code writes in the environment's place."""
    return compact_json({"error": message})
