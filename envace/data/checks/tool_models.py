"""Check 23: would a row's tools load in the narrower tool models of CM2's and of EnvACE's public training code.

Both drop a whole row where one of its tools does not load, so a row that is kept here may be missing there. What the
two models demand (facts of these sources, in rules of our own):

- CM2: `verl/tools/schemas.py` as changed in github.com/namezhenzhang/CM2-RLCR-Tool-Agent, commit 2758991. Describe the
  function; `parameters` may be left out, or has `type`, `properties` and `required`. A property is an object whose
  `enum` holds texts, numbers or truth values and whose `default` is one of them or null.
- EnvACE: the same file in github.com/Within-yao/EnvACE, commit 173e941, that is verl's own before 0.6.1. `parameters`
  must be there; a property has a `type` that is one text (no list), and an `enum` of texts.

Neither looks deeper than the properties. Limits on types that check 22 enforces anyway are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from envace.data.checks.row import Row
from envace.data.checks.violation import pointer
from envace.tools.schema import CallValidator

Fault = tuple[tuple[str, ...], str]
"""Which part of the tool's function would not load, and what was expected of it."""
_TRUTH_WORDS = frozenset({"0", "1", "f", "false", "n", "no", "off", "on", "t", "true", "y", "yes"})


@dataclass(frozen=True)
class ToolModel:
    """What one public code base demands of a tool. `property_fault` judges one property's schema."""

    name: str
    flag: str
    needs_parameters: bool
    property_fault: Callable[[dict[str, Any]], str | None]


def _cm2_property_fault(schema: dict[str, Any]) -> str | None:
    if not all(isinstance(value, str | int | float) for value in schema.get("enum") or ()):
        return "expected an enum of texts, numbers or truth values"
    if not isinstance(schema.get("default"), str | int | float | None):
        return "expected a default that is text, a number, a truth value or null"
    return None


def _envace_property_fault(schema: dict[str, Any]) -> str | None:
    if not isinstance(schema.get("type"), str):
        return "expected a type that is one word"
    if not all(isinstance(value, str) for value in schema.get("enum") or ()):
        return "expected an enum of texts"
    return None


CM2 = ToolModel("CM2", "narrow_tools_cm2", False, _cm2_property_fault)
ENVACE = ToolModel("EnvACE", "narrow_tools_envace", True, _envace_property_fault)


def check_tool_models(row: Row) -> None:
    """23, one finding for a tool and a model. Tools that check 20 or 22 rejects are left to those."""
    tools = row.record.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        validator = row.validators.get(name) if isinstance(name, str) else None
        if validator is None:
            continue
        for model in (CM2, ENVACE):
            fault = tool_fault(tool, validator, model)
            if fault:
                place = pointer("tools", index, *fault[0])
                row.findings.add(23, "W", place, f"{name} does not load in {model.name}: {fault[1]}", model.flag)


def tool_fault(tool: dict[str, Any], validator: CallValidator, model: ToolModel) -> Fault | None:
    """What keeps a tool with a valid schema from loading in a model, or None."""
    function = tool["function"]
    if not isinstance(tool.get("type"), str):
        return ("type",), "expected a text"
    if not isinstance(function.get("description"), str):
        return ("function", "description"), "expected a text"
    if not _is_truth(function.get("strict", False)):
        return ("function", "strict"), "expected a truth value"
    if "parameters" not in function:
        return (("function", "parameters"), "expected an object") if model.needs_parameters else None
    return _parameters_fault(validator, model)


@lru_cache(maxsize=8192)
def _parameters_fault(validator: CallValidator, model: ToolModel) -> Fault | None:
    """Remembered by validator, of which there is one for each schema text (`judged_schema`)."""
    parameters, place = validator.parameters, ("function", "parameters")
    for key in ("type", "properties", "required"):
        if key not in parameters:
            return place, f"the key {key!r} is missing"
    for name, schema in parameters["properties"].items():
        fault = model.property_fault(schema) if isinstance(schema, dict) else "expected an object"
        if fault:
            return (*place, "properties", name), fault
    return None


def _is_truth(value: Any) -> bool:
    return value in (0, 1) or (isinstance(value, str) and value.lower() in _TRUTH_WORDS)
