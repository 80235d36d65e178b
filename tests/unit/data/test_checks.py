"""What a list of single faults cannot show: what is no fault, how findings are told, and that the bounds are obeyed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.config import Params
from envace.data.aliases import normalise_row
from envace.data.canonical import to_task
from envace.data.checks import Findings, Row, Violation, examine
from envace.data.sample.row_faults import ROW_FAULTS
from envace.tools.schema import judged_schema
from tests.unit.data.spoiling import (
    RawRow,
    add_tool,
    declare,
    first_argument,
    function,
    item,
    message,
    set_arguments,
    set_result,
    with_argument,
)

Found = Callable[[RawRow], list[Violation]]


def test_an_error_that_agrees_with_the_schema_is_no_contradiction(clean_row: RawRow, found: Found) -> None:
    set_result(clean_row, json.dumps({"error": f"{first_argument(clean_row)} must be a string"}))
    assert {v.check_id for v in found(clean_row)} == {17}


def test_a_key_that_tells_of_no_error_is_none(clean_row: RawRow, found: Found) -> None:
    set_result(clean_row, '{"error": null, "is_error": false, "status": "ok"}')
    assert found(clean_row) == []


@pytest.mark.parametrize("fault", [f for f in ROW_FAULTS if f.check_id not in (4, 35)], ids=lambda fault: fault.name)
def test_seeded_faults_of_the_sample_are_found_by_the_check_they_name(
    clean_row: RawRow, found: Found, fault: Any
) -> None:
    assert fault.spoil(clean_row, clean_row)
    assert {(v.check_id, v.severity) for v in found(clean_row)} == {(fault.check_id, "R")}


def test_a_rejected_row_has_no_warnings(clean_row: RawRow, found: Found) -> None:
    clean_row["uuid"] = "plain"
    message(clean_row)["content"] = " "
    assert {(v.check_id, v.severity) for v in found(clean_row)} == {(8, "R")}


def test_all_that_is_wrong_is_told_at_once(clean_row: RawRow, found: Found) -> None:
    clean_row["uuid"] = 7
    message(clean_row)["content"] = " "
    function(clean_row)["name"] = "rm_rf"
    item(clean_row)["weight"] = 0
    assert [v.check_id for v in found(clean_row)] == [4, 28, 8, 13]


def test_findings_say_which_row_they_are_about(clean_row: RawRow, found: Found) -> None:
    function(clean_row)["name"] = "rm_rf"
    (violation,) = found(clean_row)
    assert violation.task_id == clean_row["uuid"] and violation.file == "train" and violation.row_index == 0


def test_a_whole_number_weight_and_unicode_escapes_in_arguments_are_fine(clean_row: RawRow, found: Found) -> None:
    clean_row["checklists"][0][1] = [{**item(clean_row, 0, 1), "weight": 1}]
    set_arguments(clean_row, json.dumps({first_argument(clean_row): "Zo\u00eb \U0001f600"}))
    assert found(clean_row) == []


def test_a_dependence_on_thousands_of_items_is_followed_quickly(clean_row: RawRow, found: Found) -> None:
    about_result = item(clean_row, 2)
    chain = [{**about_result, "id": f"C{n}", "dependence": [f"C{n + 1}"], "weight": 1 / 4000} for n in range(4000)]
    chain[-1]["dependence"] = []
    clean_row["checklists"][0][0] = chain
    assert 29 not in {v.check_id for v in found(clean_row)}


BOUNDS: list[tuple[dict[str, Any], int, Callable[[RawRow], object]]] = [
    ({"max_tools": 3}, 20, lambda row: [add_tool(row, f"t{n}") for n in range(4 - len(row["tools"]))]),
    ({"max_items": 5}, 25, lambda row: None),
    ({"weight_tolerance": 0.03}, 28, lambda row: item(row).update(weight=item(row)["weight"] + 0.04)),
    ({"weight_repairable": 0.03}, 28, lambda row: item(row).update(weight=item(row)["weight"] + 0.04)),
    ({"max_row_bytes": 2_000}, 34, lambda row: None),
    ({"max_message_bytes": 20}, 34, lambda row: None),
    ({"max_prompt_tokens": 100}, 33, lambda row: None),
    ({"max_reference_tokens": 100}, 33, lambda row: None),
]


@pytest.mark.parametrize(("bound", "check", "change"), BOUNDS, ids=[next(iter(bound)) for bound, *_ in BOUNDS])
def test_bounds_are_those_of_the_parameters(
    clean_row: RawRow, params: Params, bound: dict[str, Any], check: int, change: Callable[[RawRow], object]
) -> None:
    change(clean_row)
    before, after = (
        _checks(clean_row, params.validate_data.model_copy(update=update))
        for update in ({"weight_repairable": 0.05, "weight_tolerance": 0.041}, {"weight_tolerance": 0.001, **bound})
    )
    assert check not in before and check in after


def _checks(raw: RawRow, bounds: Any) -> set[int]:
    row = Row(normalise_row(deepcopy(raw)), len(json.dumps(raw)), bounds, Findings("train", 0))
    examine(row)
    return {violation.check_id for violation in row.findings.settled()}


STRING = {"type": "string"}
NESTED = {"type": "object", "properties": {"to": {"type": "array", "items": {"properties": {"name": STRING}}}}}
ONE = {"type": "object", "properties": {"a": STRING}}


@pytest.mark.parametrize(
    ("parameters", "arguments", "structural"),
    [
        ({}, {}, []),
        ({}, {"a": 1}, [True]),
        (NESTED, {"to": [{"name": "Ana"}]}, []),
        (NESTED, {"to": [{"name": "Ana", "age": 3}]}, [True]),
        (NESTED, {"to": [{"name": 3}]}, [False]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": True}, [False]),
        ({"type": "object", "properties": {}, "additionalProperties": STRING}, {"a": "b"}, []),
        ({"type": "object", "properties": {"required": STRING, "$ref": STRING}}, {"required": "a", "$ref": "b"}, []),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": STRING}}, {"a": 1}, [False]),
        ({"type": "object", "properties": {"a": {"anyOf": [STRING, {"type": "null"}]}}}, {"a": None}, []),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}},
            {"a": 1},
            [True],
        ),
        ({"type": "object", "properties": {"a": {"x-note": {"required": True, "$ref": 5}}}}, {"a": 1}, []),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "http://localhost/x"}}}, {"a": 1}, [True]),
    ],
)
def test_arguments_are_validated_with_nothing_undeclared(
    parameters: dict[str, Any], arguments: dict[str, Any], structural: list[bool]
) -> None:
    fault, validator = judged_schema(json.dumps(parameters))
    assert fault is None and validator is not None
    assert [is_structural for is_structural, _ in validator.faults(arguments)] == structural


@pytest.mark.parametrize(
    "more",
    [
        {"patternProperties": {"^a": {"$ref": "http://localhost/x"}}},
        {"dependentSchemas": {"a": {"$ref": "#/x"}}},
        {"unevaluatedProperties": {"$ref": "#/x"}},
    ],
)
def test_a_reference_that_leads_nowhere_is_found_wherever_it_stands(more: dict[str, Any]) -> None:
    fault, validator = judged_schema(json.dumps({**ONE, **more}))
    assert fault and "leads nowhere" in fault and validator is None


def _record() -> Path:
    folder = os.environ.get("ENVACE_SHARED_DATA") or Path(__file__).resolve().parents[3].parent / "shared/data"
    return Path(folder) / "cm2_public_example.json"


@pytest.mark.skipif(not _record().is_file(), reason="cm2_public_example.json is not here")
def test_the_public_record_has_its_three_flags_and_no_more(params: Params) -> None:
    (raw,) = json.loads(_record().read_text(encoding="utf-8"))
    row = Row(normalise_row(raw), 60_000, params.validate_data, Findings("train", 0))
    examine(row)
    assert {(v.check_id, v.severity, v.flag) for v in row.findings.settled()} == {
        (17, "W", "recorded_tool_error"),
        (18, "W", "error_contradicts_schema"),
        (31, "W", "maybe_unreachable"),
    }


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=6,
)


def _places(node: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all parts of a value, the outer ones first."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place, *(inner for key, child in children for inner in _places(child, (*place, key)))]


@given(st.data())
def test_a_row_that_is_kept_becomes_a_task(rich_row: RawRow, params: Params, data: st.DataObject) -> None:
    raw = deepcopy(rich_row)
    for _ in range(data.draw(st.integers(1, 2))):
        *outer, last = data.draw(st.sampled_from(_places(raw)[1:]))
        holder: Any = raw
        for key in outer:
            holder = holder[key]
        change = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "replace":
            holder[last] = data.draw(ANYTHING)
        elif change == "remove":
            del holder[last]
        elif isinstance(holder, list):
            holder.insert(last, data.draw(ANYTHING | st.just(holder[last])))
        else:
            holder[data.draw(st.text(max_size=5) | st.sampled_from(["default", "enum", "items"]))] = data.draw(ANYTHING)
    row = Row(normalise_row(raw), 60_000, params.validate_data, Findings("train", 0))
    examine(row)
    if not row.findings.rejected:
        assert to_task(json.loads(row.whole), "train", [], "here").task_id


def test_the_declared_schema_may_be_open(clean_row: RawRow, found: Found) -> None:
    declare(clean_row, additionalProperties=True)
    with_argument(clean_row, colour="red")
    assert found(clean_row) == []


def test_evidence_may_be_quoted_with_or_without_escapes(clean_row: RawRow, found: Found) -> None:
    set_arguments(clean_row, json.dumps({first_argument(clean_row): "Zo\u00eb \U0001f600"}))
    item(clean_row)["evidence"][0]["snippet"] = "Zo\u00eb \U0001f600"
    assert found(clean_row) == []
