"""The quick yes never says yes to a schema in which the whole validation finds a fault."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.tools import schema as whole
from envace.tools.plain_schema import is_plain

WORDS = ["type", "required", "enum", "default", "const", "title", "description", "format", "minimum", "maxLength"]
MORE = ["minItems", "exclusiveMaximum", "items", "additionalProperties", "properties", "$ref", "pattern", "anyOf", "x"]
VALUES = (
    st.sampled_from(
        ["object", "string", "array", "dict", ["string", "null"], ["string", "string"], [], ["a"], {}, None]
    )
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(allow_nan=False, allow_infinity=False)
)
SCHEMAS: Any = st.recursive(
    st.dictionaries(st.sampled_from(WORDS + MORE), VALUES, max_size=3) | st.booleans(),
    lambda inside: st.fixed_dictionaries(
        {},
        optional={
            "type": VALUES,
            "properties": st.dictionaries(st.sampled_from("ab"), inside, max_size=2) | VALUES,
            "items": inside | VALUES,
            "additionalProperties": inside | VALUES,
            "required": st.lists(st.sampled_from(["a", "b", 1]), max_size=2),
        },
    ),
    max_leaves=4,
)


@given(SCHEMAS)
def test_a_plain_schema_is_valid(part: Any) -> None:
    parameters = {"type": "object", "properties": {"a": part}, "required": ["a"]}
    if is_plain(parameters):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(whole, "is_plain", lambda schema: False)
            assert whole.schema_fault(parameters) is None


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"type": "object", "properties": {"a": {"type": "string", "description": "b"}}, "required": ["a"]}, True),
        ({"type": "object", "properties": {"a": {"type": ["integer", "null"], "enum": [1], "default": None}}}, True),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}}, True),
        ({"type": "object", "properties": {}, "required": ["a"]}, False),
        ({"type": "object", "required": ["a"]}, False),
        ({"type": "object", "properties": {"a": {"type": "dict"}}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, False),
        ({"type": "object", "properties": {"a": {"anyOf": []}}}, False),
        ({"type": "object", "properties": {"a": {"description": None}}}, False),
        ({"type": "object", "properties": {"a": {"minLength": -1}}}, False),
    ],
)
def test_what_is_plain(schema: dict[str, Any], plain: bool) -> None:
    assert is_plain(schema) is plain


def test_a_deep_schema_is_left_to_the_whole_validation() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(50):
        schema = {"type": "object", "properties": {"a": schema}}
    assert not is_plain(schema) and whole.schema_fault(schema) is None
