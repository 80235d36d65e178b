"""Check 23: which tools load in the narrower tool models of two public code bases, decided as those models decide."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envace.data.checks.tool_models import CM2, ENVACE, tool_fault
from envace.tools.schema import judged_schema

SCHEMA = {"type": "object", "properties": {}, "required": []}


def _tool(**change: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "description": "A tool", "parameters": SCHEMA, **change}}


def _with(schema: Any) -> dict[str, Any]:
    return _tool(parameters={**SCHEMA, "properties": {"x": schema}})


def _without(tool: dict[str, Any], key: str) -> dict[str, Any]:
    return {**tool, "function": {k: v for k, v in tool["function"].items() if k != key}}


@pytest.mark.parametrize(
    ("tool", "in_cm2", "in_envace"),
    [
        (_tool(), True, True),
        (_with({"type": "string", "enum": ["a"], "default": "a", "description": "b"}), True, True),
        (_with({"type": "array", "items": {"type": ["string", "null"], "enum": [1]}}), True, True),
        (_with({"type": "object", "properties": {"y": {}}}), True, True),
        (_with({"type": ["string", "null"]}), True, False),
        (_with({"anyOf": [{"type": "string"}]}), True, False),
        (_with({}), True, False),
        (_with({"type": "integer", "enum": [1, 2.5, True]}), True, False),
        (_with({"type": "string", "enum": ["a", None]}), False, False),
        (_with({"type": "array", "default": []}), False, True),
        (_with({"type": "object", "default": {"y": 1}}), False, True),
        (_with({"type": "string", "default": None}), True, True),
        (_with(True), False, False),
        (_tool(parameters={}), False, False),
        (_tool(parameters={"type": "object", "properties": {}}), False, False),
        (_tool(parameters={"type": "object", "required": []}), False, False),
        (_without(_tool(), "parameters"), True, False),
        (_without(_tool(), "description"), False, False),
        (_tool(description=None), False, False),
        (_tool(description=""), True, True),
        (_tool(strict=True), True, True),
        (_tool(strict="yes"), True, True),
        (_tool(strict="maybe"), False, False),
        (_tool(strict=None), False, False),
        ({"function": _tool()["function"]}, False, False),
        ({**_tool(), "type": None}, False, False),
    ],
)
def test_a_tool_loads_where_the_public_models_load_it(tool: dict[str, Any], in_cm2: bool, in_envace: bool) -> None:
    fault, validator = judged_schema(json.dumps(tool["function"].get("parameters", {})))
    assert fault is None and validator is not None
    assert [tool_fault(tool, validator, model) is None for model in (CM2, ENVACE)] == [in_cm2, in_envace]
