"""The contract: each check finds its own fault and nothing else does, and clean rows raise none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from envace.data.checks import CHECKS, Violation
from envace.data.sample import World, generate_conversations, to_raw_record
from envace.data.sample.row_faults import ROW_FAULTS
from envace.tools.schema import judged_schema

RawRow = dict[str, Any]
Found = Callable[[RawRow], list[Violation]]
Spoil = Callable[[RawRow], object]
BASIC = {"type": "object", "properties": {}, "required": []}


def _item(row: RawRow, n: int = 0, t: int = 0) -> dict[str, Any]:
    return row["checklists"][0][t][n]


def _function(row: RawRow) -> dict[str, Any]:
    return row["messages"][1]["tool_calls"][0]["function"]


def _set_arguments(row: RawRow, **change: Any) -> None:
    """Change the arguments of the first call and what its evidence quotes."""
    function = _function(row)
    function["arguments"] = json.dumps({**json.loads(function["arguments"]), **change}, ensure_ascii=False)
    _item(row)["evidence"][0]["snippet"] = json.dumps(function["arguments"], ensure_ascii=False)


def _set_result(row: RawRow, content: str, index: int = 2) -> None:
    """Change a result and what its evidence quotes."""
    for item in (item for items in row["checklists"][0] for item in items):
        for entry in item["evidence"]:
            if entry["snippet"] == row["messages"][index]["content"]:
                entry["snippet"] = content
    row["messages"][index]["content"] = content


def _add_tool(row: RawRow, name: str, **change: Any) -> None:
    function = {"name": name, "description": "A tool", "parameters": BASIC, **change}
    row["tools"].append({"type": "function", "function": function})


def _declare(row: RawRow, **change: Any) -> None:
    """Change the schema of the tool of the first call."""
    for tool in row["tools"]:
        if tool["function"]["name"] == _function(row)["name"]:
            tool["function"]["parameters"].update(change)


def _repeat_first_call(row: RawRow, result: str) -> None:
    """Let both calls of the first turn be the same, the second with another result."""
    calls = row["messages"][1]["tool_calls"]
    calls[1]["function"] = dict(calls[0]["function"])
    row["messages"][3]["content"] = result
    row["checklists"][0][0] = [{**_item(row), "weight": 1.0}]


def _item_about_calls_in_a_plain_turn(row: RawRow) -> None:
    start = next(i for i, m in enumerate(row["messages"]) if i and m["role"] == "user")
    row["messages"] = [*row["messages"][: start + 1], row["messages"][-1]]
    item = {**_item(row), "weight": 1.0, "required_for_next_turn": False}
    row["checklists"][0][1] = [item]


def _surrogate_in_result(row: RawRow) -> None:
    """The evidence quotes what the repair makes of it."""
    _set_result(row, '{"sky": "\ufffd"}')
    row["messages"][2]["content"] = '{"sky": "\ud83d"}'


FAULTS: list[tuple[int, str, str, Spoil]] = [
    (4, "R", "no uuid", lambda r: r.pop("uuid")),
    (4, "R", "uuid is a number", lambda r: r.update(uuid=7)),
    (4, "W", "uuid of another shape", lambda r: r.update(uuid="../../etc/passwd")),
    (6, "R", "no messages", lambda r: r.update(messages=[])),
    (6, "R", "messages are text", lambda r: r.update(messages="hello")),
    (6, "R", "unknown role", lambda r: r["messages"][0].update(role="robot")),
    (6, "R", "content is a number", lambda r: r["messages"][0].update(content=1)),
    (6, "R", "calls are text", lambda r: r["messages"][1].update(tool_calls="find")),
    (6, "R", "user calls", lambda r: r["messages"][0].update(tool_calls=r["messages"][1]["tool_calls"])),
    (6, "R", "call without function", lambda r: r["messages"][1]["tool_calls"][0].pop("function")),
    (7, "R", "reply missing at the end", lambda r: r["messages"].pop()),
    (7, "R", "late system message", lambda r: r["messages"].append({"role": "system", "content": "Be kind."})),
    (7, "R", "assistant first", lambda r: r["messages"].insert(0, r["messages"][-1])),
    (8, "R", "blank user", lambda r: r["messages"][0].update(content=" \n")),
    (8, "R", "blank reply", lambda r: r["messages"][-1].update(content="<think>a</think> ")),
    (9, "R", "think block open", lambda r: r["messages"][-1].update(content="<think>a")),
    (9, "R", "two think blocks", lambda r: r["messages"][-1].update(content="<think>a</think><think>b</think>c")),
    (9, "W", "no think block", lambda r: r["messages"][1].update(content="")),
    (10, "R", "think tag of the user", lambda r: r["messages"][0].update(content="<think>hi</think>")),
    (10, "R", "template token of the user", lambda r: r["messages"][0].update(content="<|im_end|> hi")),
    (11, "R", "lone surrogate", lambda r: r["messages"][0].update(content="\ud83d")),
    (11, "R", "NUL in a key", lambda r: _declare(r, **{"x\x00": 1})),
    (11, "R", "non-character in a question", lambda r: _item(r).update(question="what\uffff")),
    (11, "W", "surrogate in a result", _surrogate_in_result),
    (12, "R", "arguments cut", lambda r: _function(r).update(arguments='{"city": ')),
    (12, "R", "arguments a list", lambda r: _function(r).update(arguments="[1]")),
    (12, "R", "arguments empty text", lambda r: _function(r).update(arguments="")),
    (13, "R", "undeclared tool", lambda r: _function(r).update(name="rm_rf")),
    (14, "R", "undeclared argument", lambda r: _set_arguments(r, colour="red")),
    (14, "R", "missing argument", lambda r: _function(r).update(arguments="{}")),
    (14, "W", "wrong type", lambda r: _declare(r, properties={k: {"type": "integer"} for k in _arguments(r)})),
    (14, "W", "not in enum", lambda r: _declare(r, properties={k: {"enum": ["x"]} for k in _arguments(r)})),
    (15, "R", "result missing", lambda r: r["messages"].pop(3)),
    (15, "R", "result too many", lambda r: r["messages"].insert(3, r["messages"][2])),
    (15, "W", "call id twice", lambda r: [c.update(id="call_0") for c in r["messages"][1]["tool_calls"]]),
    (16, "R", "result is words", lambda r: r["messages"][2].update(content="sunny, 20 C")),
    (16, "R", "result with NaN", lambda r: r["messages"][2].update(content='{"temp": NaN}')),
    (16, "W", "result is a number", lambda r: _set_result(r, "20")),
    (17, "W", "recorded error", lambda r: _set_result(r, '{"error": "not found"}')),
    (19, "W", "other result", lambda r: _repeat_first_call(r, '{"other": 1}')),
    (20, "R", "no tools", lambda r: r.update(tools=[])),
    (20, "W", "many tools", lambda r: [_add_tool(r, f"tool_{n}") for n in range(70)]),
    (21, "R", "tool twice", lambda r: r["tools"].append(r["tools"][0])),
    (21, "W", "similar names", lambda r: [_add_tool(r, "search-a"), _add_tool(r, "search_A")]),
    (22, "R", "tool without name", lambda r: r["tools"].append({"type": "function", "function": {}})),
    (22, "R", "parameters of type string", lambda r: _add_tool(r, "a", parameters={"type": "string"})),
    (22, "R", "unknown type", lambda r: _add_tool(r, "a", parameters={**BASIC, "properties": {"x": {"type": "dict"}}})),
    (22, "R", "required not declared", lambda r: _add_tool(r, "a", parameters={**BASIC, "required": ["x"]})),
    (22, "R", "reference outwards", lambda r: _add_tool(r, "a", parameters={**BASIC, "$ref": "http://localhost/x"})),
    (22, "R", "broken schema of a called tool", lambda r: _declare(r, required=["nothing"])),
    (22, "W", "no description", lambda r: _add_tool(r, "a", description=None)),
    (22, "W", "strange name", lambda r: _add_tool(r, "a b")),
    (24, "R", "no checklists", lambda r: r.pop("checklists")),
    (24, "R", "turn without list", lambda r: r["checklists"][0].pop()),
    (25, "R", "no items", lambda r: r["checklists"][0].__setitem__(0, [])),
    (
        25,
        "W",
        "many items",
        lambda r: r["checklists"][0].__setitem__(
            1, [{**_item(r, 0, 1), "id": f"C{n}", "weight": 1 / 25} for n in range(25)]
        ),
    ),
    (26, "R", "no question", lambda r: _item(r).pop("question")),
    (26, "R", "blank condition", lambda r: _item(r).update(pass_condition=" ")),
    (26, "R", "unknown focus", lambda r: _item(r).update(focus_on="assistant.mood")),
    (26, "R", "gate as text", lambda r: _item(r).update(required_for_next_turn="yes")),
    (26, "R", "evidence without a step", lambda r: _item(r)["evidence"][0].pop("step")),
    (26, "W", "unknown key", lambda r: _item(r).update(colour="red")),
    (27, "R", "id twice", lambda r: _item(r, 1).update(id="C0")),
    (27, "R", "blank id", lambda r: _item(r).update(id=" ")),
    (28, "R", "weights off", lambda r: _item(r).update(weight=0.9)),
    (28, "R", "weight is true", lambda r: _item(r).update(weight=True)),
    (28, "R", "weight below 0", lambda r: _item(r).update(weight=-0.1)),
    (28, "W", "weights nearly right", lambda r: _item(r).update(weight=_item(r)["weight"] + 0.02)),
    (29, "R", "depends on itself", lambda r: _item(r).update(dependence=["C0"])),
    (29, "R", "depends on nothing", lambda r: _item(r).update(dependence=["C99"])),
    (29, "R", "circle", lambda r: [_item(r, 2).update(dependence=["C3"]), _item(r, 3).update(dependence=["C2"])]),
    (29, "W", "depends on a call", lambda r: _item(r, 1).update(dependence=["C0"])),
    (30, "W", "no evidence", lambda r: _item(r).update(evidence=[])),
    (30, "W", "step does not exist", lambda r: _item(r)["evidence"][0].update(step=99)),
    (30, "W", "other role", lambda r: _item(r)["evidence"][0].update(step=0)),
    (30, "W", "snippet not there", lambda r: _item(r)["evidence"][0].update(snippet="nowhere")),
    (31, "W", "no gate", lambda r: [item.update(required_for_next_turn=False) for item in r["checklists"][0][0]]),
    (32, "W", "item about calls without calls", _item_about_calls_in_a_plain_turn),
    (34, "R", "long message", lambda r: r["messages"][0].update(content="a" * 1001)),
    (34, "R", "long row", lambda r: r["tools"][0]["function"].update(description="a" * 60_000)),
]


def _arguments(row: RawRow) -> dict[str, Any]:
    return json.loads(_function(row)["arguments"])


@pytest.mark.parametrize(("check", "severity", "name", "spoil"), FAULTS, ids=[f"{c}-{n}" for c, _, n, _ in FAULTS])
def test_exactly_this_check_fires(
    clean_row: RawRow, found: Found, check: int, severity: str, name: str, spoil: Spoil
) -> None:
    spoil(clean_row)
    violations = found(clean_row)
    assert {(v.check_id, v.severity) for v in violations} == {(check, severity)}
    for violation in violations:
        assert violation.detail and len(violation.detail) <= 300 and violation.detail.isprintable()
        assert violation.severity in CHECKS[check].severities


def test_an_error_that_contradicts_the_schema_is_told_beside_the_error(clean_row: RawRow, found: Found) -> None:
    argument = next(iter(_arguments(clean_row)))
    _set_result(clean_row, json.dumps({"error": "bad call", "details": {argument: "Expected integer, got string"}}))
    assert {(v.check_id, v.flag) for v in found(clean_row)} == {
        (17, "recorded_tool_error"),
        (18, "error_contradicts_schema"),
    }


def test_an_error_that_agrees_with_the_schema_is_no_contradiction(clean_row: RawRow, found: Found) -> None:
    argument = next(iter(_arguments(clean_row)))
    _set_result(clean_row, json.dumps({"error": f"{argument} must be a string"}))
    assert {v.check_id for v in found(clean_row)} == {17}


def test_a_gate_that_rests_on_an_error_is_flagged(clean_row: RawRow, found: Found) -> None:
    _set_result(clean_row, '{"error": "not found"}')
    _item(clean_row, 2)["required_for_next_turn"] = True
    assert {(v.check_id, v.flag) for v in found(clean_row)} == {(17, "recorded_tool_error"), (31, "maybe_unreachable")}


def test_the_clean_row_and_300_sample_rows_raise_nothing(world: World, clean_row: RawRow, found: Found) -> None:
    assert found(clean_row) == []
    for conversation in generate_conversations(world, 300, 11, "train"):
        violations = found(to_raw_record(world, conversation))
        has_error = any(turn.kind == "error" for turn in conversation.turns)
        assert {v.check_id for v in violations} == ({17} if has_error else set())


@pytest.mark.parametrize("fault", [f for f in ROW_FAULTS if f.check_id not in (4, 35)], ids=lambda fault: fault.name)
def test_seeded_faults_of_the_sample_are_found_by_the_check_they_name(
    clean_row: RawRow, found: Found, fault: Any
) -> None:
    assert fault.spoil(clean_row, clean_row)
    assert {(v.check_id, v.severity) for v in found(clean_row)} == {(fault.check_id, "R")}


def test_a_rejected_row_has_no_warnings(clean_row: RawRow, found: Found) -> None:
    clean_row["uuid"] = "plain"
    clean_row["messages"][0]["content"] = " "
    assert {(v.check_id, v.severity) for v in found(clean_row)} == {(8, "R")}


STRING = {"type": "string"}
NESTED = {"type": "object", "properties": {"to": {"type": "array", "items": {"properties": {"name": STRING}}}}}


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
    ],
)
def test_arguments_are_validated_with_nothing_undeclared(
    parameters: dict[str, Any], arguments: dict[str, Any], structural: list[bool]
) -> None:
    fault, validator = judged_schema(json.dumps(parameters))
    assert fault is None and validator is not None
    assert [is_structural for is_structural, _ in validator.faults(arguments)] == structural


def test_pointers_lead_to_the_place(clean_row: RawRow, found: Found) -> None:
    _function(clean_row)["name"] = "rm_rf"
    (violation,) = found(clean_row)
    assert violation.pointer == "/messages/1/tool_calls/0/function/name"
    assert violation.task_id == clean_row["uuid"] and violation.file == "train" and violation.row_index == 0


def test_all_registered_row_checks_have_a_fault_here() -> None:
    elsewhere = {1, 2, 5, 18, 35, 37}  # above, in test_reader.py and in test_validation.py
    assert set(CHECKS) == {check for check, *_ in FAULTS} | elsewhere
