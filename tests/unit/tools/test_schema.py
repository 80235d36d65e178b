"""Schemas of tools judge arguments, whatever a schema holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envace.tools.schema import CallValidator, judged_schema


def test_a_pattern_that_backtracks_without_end_is_a_fault_and_not_a_hang() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a|aa)+$"}}}
    validator = CallValidator(schema)
    assert validator.faults({"a": "aaaa"}) == []
    assert validator.faults({"a": "aab"}) == [(False, "a: 'aab' does not match '^(a|aa)+$'")]
    ((is_structural, detail),) = validator.faults({"a": "a" * 90 + "b"})
    assert is_structural and "takes too long" in detail


TEXT = {"type": "string"}


def _object(**words: Any) -> dict[str, Any]:
    return {"type": "object", **words}


B = _object(properties={"b": TEXT})
ONE_OF = _object(properties={"a": TEXT, "b": TEXT}, oneOf=[{"required": ["a"]}, {"required": ["b"]}])
INNER = _object(properties={"l": {"anyOf": [_object(properties={"a": TEXT}), {"type": "null"}]}})
JOINED = {**_object(properties={"a": TEXT}, allOf=[{"$ref": "#/$defs/B"}]), "$defs": {"B": B}}


@pytest.mark.parametrize(
    ("schema", "arguments", "is_valid"),
    [
        (ONE_OF, {"a": "x"}, True),
        (ONE_OF, {"a": "x", "zz": 3}, False),
        (_object(), {}, True),
        (_object(), {"x": 1}, False),
        (INNER, {"l": {"a": "x"}}, True),
        (INNER, {"l": {"zz": 1}}, False),
        (JOINED, {"a": "x", "b": "y"}, True),
        (JOINED, {"a": "x", "c": "y"}, False),
        (_object(properties={"a": TEXT, "child": {"$ref": "#"}}), {"a": "x", "child": {"a": "y"}}, True),
        (_object(properties={"a": TEXT, "b": {"$ref": "#/properties/a"}}), {"b": "y"}, True),
        (_object(properties={"free": _object()}), {"free": {"any": 1}}, True),
    ],
)
def test_nothing_undeclared_gets_through_and_everything_declared_does(
    schema: dict[str, Any], arguments: dict[str, Any], is_valid: bool
) -> None:
    fault, validator = judged_schema(json.dumps(schema))
    assert fault is None and validator is not None
    faults = validator.faults(arguments)
    assert (faults == []) is is_valid and all(is_structural for is_structural, _ in faults)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "a.b@c.de"), (r"^\p{L}+$", "Łódź"), (r"^(?<y>\d{4})$", "2024")],
)
def test_patterns_of_json_schema_are_read_as_they_are_meant(pattern: str, text: str) -> None:
    fault, validator = judged_schema(json.dumps(_object(properties={"a": {**TEXT, "pattern": pattern}})))
    assert fault is None and validator is not None
    assert validator.faults({"a": text}) == [] and validator.faults({"a": "?"}) != []


@pytest.mark.parametrize("reference", ["#/x", "#/$defs/none", "http://localhost/x", "other.json"])
def test_a_reference_that_leads_nowhere_is_a_fault(reference: str) -> None:
    fault, _ = judged_schema(json.dumps(_object(properties={"a": {"$ref": reference}})))
    assert fault is not None and "leads nowhere" in fault
