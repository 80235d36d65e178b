"""Strict validation of calls by code: what may be sent to a tool, and what is refused in a few words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.data.sample import World, build_world, tool_spec
from envace.data.sample.catalogue import CATALOGUE
from envace.files import compact_json
from envace.tools.validation import error_observation, validate_call
from envace.types import Task, ToolCall, ToolSpec

WORLD: World = build_world(0)
NESTED = {
    "type": "object",
    "properties": {
        "who": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "stops": {"type": "array", "items": {"type": "object", "properties": {"city": {"type": "string"}}}},
        "extra": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9},
        "price": {"type": "number"},
        "cabin": {"enum": ["economy", "first"]},
        "note": {"type": ["string", "null"]},
        "enum": {"type": "string"},
    },
    "required": ["who"],
}
WHO = {"who": {"name": "Ana"}}


def task_with(*tools: tuple[str, Any]) -> Task:
    specs = [
        ToolSpec(name=n, description="", parameters_schema=compact_json(schema), schema_sha256="")
        for n, schema in tools
    ]
    empty: dict[str, Any] = {"turns": [], "rubrics": [], "outcome": None, "world": None, "flags": [], "provenance": ""}
    return Task(task_id="t", content_sha256="", split="train", system_prompt=None, tools=specs, **empty)


def fault(schema: Any, arguments: dict[str, Any]) -> str | None:
    return validate_call(ToolCall(tool_name="t", arguments=compact_json(arguments)), task_with(("t", schema)))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"seats": 1},
        {"seats": 9},
        {"price": 2},
        {"price": 2.5},
        {"note": None},
        {"note": ""},
        {"cabin": "first"},
        {"extra": {"a": "x", "b": 1}},
        {"stops": []},
        {"stops": [{"city": "Łódź"}, {}]},
        {"enum": "x"},
    ],
)
def test_a_good_call_passes(more: dict[str, Any]) -> None:
    assert fault(NESTED, WHO | more) is None


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"who": {}},
        {"who": {"name": 1}},
        {"who": None},
        {"who": "Ana"},
        WHO | {"unknown": 1},
        {"who": {"name": "Ana", "age": 3}},
        WHO | {"stops": [{"city": "Łódź", "day": "Monday"}]},
        WHO | {"stops": {"city": "Łódź"}},
        WHO | {"extra": {"a": 1}},
        WHO | {"seats": True},
        WHO | {"seats": False},
        WHO | {"seats": 0},
        WHO | {"seats": 10},
        WHO | {"seats": "1"},
        WHO | {"seats": 1.5},
        WHO | {"price": True},
        WHO | {"price": "2"},
        WHO | {"cabin": "second"},
        WHO | {"note": 1},
    ],
)
def test_a_bad_call_is_refused_in_a_few_words(arguments: dict[str, Any]) -> None:
    words = fault(NESTED, arguments)
    assert words is not None and words.startswith("bad arguments: ") and len(words) <= 160


def test_the_place_of_a_nested_fault_is_named() -> None:
    assert "who.name" in str(fault(NESTED, {"who": {"name": 1}}))


@pytest.mark.parametrize("schema", [{}, {"type": "object", "properties": {}}])
def test_a_tool_without_parameters_takes_only_an_empty_object(schema: Any) -> None:
    assert fault(schema, {}) is None
    assert fault(schema, {"x": 1}) is not None


def test_an_unknown_tool_is_refused() -> None:
    call = ToolCall(tool_name="search_a", arguments="{}")
    assert validate_call(call, task_with(("search-a", {}), ("Search_a", {}))) == "unknown tool"


def test_names_that_differ_in_one_character_are_kept_apart() -> None:
    task = task_with(("search-a", {}), ("search_a", NESTED))
    assert validate_call(ToolCall(tool_name="search-a", arguments="{}"), task) is None
    assert validate_call(ToolCall(tool_name="search_a", arguments="{}"), task) is not None


values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(sorted(CATALOGUE)), st.data())
def test_the_sample_tools_take_what_their_world_takes(name: str, data: st.DataObject) -> None:
    kinds = CATALOGUE[name].parameters
    keys = st.lists(st.sampled_from([*kinds, "other"]), unique=True)
    arguments = {key: data.draw(values) for key in data.draw(keys)}
    if any(isinstance(v, float) and v.is_integer() for v in arguments.values()):
        return  # 3.0 is an integer in JSON Schema; whether the tool takes it is its own affair
    (spec,) = [tool_spec(name)]
    task = task_with((name, json.loads(spec.parameters_schema)))
    refused = validate_call(ToolCall(tool_name=name, arguments=compact_json(arguments)), task) is not None
    assert refused == (WORLD.execute(name, arguments) == {"error": "bad arguments"})


@settings(deadline=None, max_examples=100)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_error_observation_is_json_with_one_key(message: str) -> None:
    assert json.loads(error_observation(message)) == {"error": message}
