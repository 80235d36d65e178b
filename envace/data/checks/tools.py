"""Checks 20 to 22: the tools that a row offers. Leaves a validator for each one for the checks of calls."""

from __future__ import annotations

import re
from typing import Any

from envace.data.checks.row import Row
from envace.data.checks.violation import pointer
from envace.files import compact_json
from envace.tools.schema import CallValidator, judged_schema

PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_tools(row: Row) -> None:
    """20, 21 and 22."""
    tools = row.record.get("tools")
    if not isinstance(tools, list) or not tools:
        row.findings.add(20, "R", "/tools", "a row needs a list with at least one tool")
        return
    if len(tools) > row.bounds.max_tools:
        detail = f"{len(tools)} tools; more than {row.bounds.max_tools} rarely fit a prompt"
        row.findings.add(20, "W", "/tools", detail)
    folded: dict[str, str] = {}
    for index, tool in enumerate(tools):
        usable = _check_tool(row, tool, index)
        if usable is None:
            continue
        name, validator = usable
        place = f"/tools/{index}/function/name"
        other = folded.setdefault(name.casefold().replace("-", "_"), name)
        if name in row.validators:
            row.findings.add(21, "R", place, f"the tool name {name!r} stands twice")
        elif other != name:
            row.findings.add(21, "W", place, f"the tool names {other!r} and {name!r} are easily confused")
        row.validators.setdefault(name, validator)


def _check_tool(row: Row, tool: Any, index: int) -> tuple[str, CallValidator | None] | None:
    """22. The tool's name with a validator (None where its schema is broken); None where it has no name."""
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        row.findings.add(22, "R", pointer("tools", index), "a tool must be {type, function: {name, ...}}")
        return None
    if tool.get("type", "function") != "function":
        row.findings.add(22, "R", pointer("tools", index, "type"), f"unknown type of tool {tool['type']!r:.80}")
    name, place = function["name"], f"/tools/{index}/function"
    fault, validator = judged_schema(compact_json(function.get("parameters", {})))
    if fault:
        row.findings.add(22, "R", f"{place}/parameters", f"{name}: {fault}")
    if not PLAIN_NAME.fullmatch(name):
        row.findings.add(22, "W", f"{place}/name", f"{name!r} is not made of letters, digits, '_', '-' and '.' only")
    description = function.get("description")
    if not isinstance(description, str) or not description.strip():
        row.findings.add(22, "W", f"{place}/description", f"{name} has no description")
    return name, validator
