"""Seeded faults of the tools, the checklists and our two keys: checks 20 to 32 and 40."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from envace.data.checks.registry import NO_GATING_FLAG
from tests.unit.data.seeded_message_faults import RECORDED_ERROR
from tests.unit.data.spoiling import (
    SCHEMA,
    RawRow,
    RowFault,
    add_property,
    add_tool,
    fault,
    item,
    plain_second_turn,
    set_result,
)

CM2, ENVACE = "narrow_tools_cm2", "narrow_tools_envace"
PARAMETERS = "/tools/0/function/parameters"
X = f"{PARAMETERS}/properties/x"
ITEM, TURN, EVIDENCE = "/checklists/0/0/0", "/checklists/0/0", "/checklists/0/0/0/evidence/0"
OUTCOME, CALL = "/outcome/turns/0", "/outcome/turns/0/required_calls/0"


def _evidence(row: RawRow) -> dict[str, Any]:
    return item(row)["evidence"][0]


def _many_items(row: RawRow) -> None:
    row["checklists"][0][1] = [{**item(row, 0, 1), "id": f"C{n}", "weight": 1 / 25} for n in range(25)]


def _circle(row: RawRow) -> None:
    item(row, 2)["dependence"], item(row, 3)["dependence"] = ["C3"], ["C2"]


def _gate_on_an_error(row: RawRow) -> None:
    set_result(row, '{"error": "not found"}')
    item(row, 2)["required_for_next_turn"] = True


def _bad_pattern(row: RawRow) -> None:
    add_property(row, {"type": "string", "pattern": "("})


def _second_variant(row: RawRow) -> None:
    row["checklists"].append(deepcopy(row["checklists"][0]))
    del row["checklists"][1][0][0]["question"]


def _turn(row: RawRow, **change: Any) -> None:
    row["outcome"]["turns"][0].update(change)


def _forbid_what_is_required(row: RawRow) -> None:
    _turn(row, forbidden_tools=[_call(row)["name"]])
    del row["outcome"]["turns"][0]["required_calls"][1:]


def _call(row: RawRow) -> dict[str, Any]:
    return row["outcome"]["turns"][0]["required_calls"][0]


TOOL_FAULTS: tuple[RowFault, ...] = (
    fault(20, "R", "no tools", lambda r: r.update(tools=[]), "/tools"),
    fault(20, "R", "tools are words", lambda r: r.update(tools="find, send"), "/tools"),
    fault(20, "W", "many tools", lambda r: [add_tool(r, f"tool_{n}") for n in range(9)], "/tools"),
    fault(21, "R", "tool twice", lambda r: r["tools"].insert(1, r["tools"][0]), "/tools/1/function/name"),
    fault(21, "W", "similar names", lambda r: [add_tool(r, "s-a"), add_tool(r, "s_A")], "/tools/1/function/name"),
    fault(
        22, "R", "tool without name", lambda r: r["tools"].insert(0, {"type": "function", "function": {}}), "/tools/0"
    ),
    fault(22, "R", "tool is text", lambda r: r["tools"].insert(0, "find"), "/tools/0"),
    fault(22, "R", "parameters are a list", lambda r: add_tool(r, parameters=[]), PARAMETERS),
    fault(22, "R", "parameters of type string", lambda r: add_tool(r, parameters={"type": "string"}), PARAMETERS),
    fault(22, "R", "unknown type", lambda r: add_property(r, {"type": "dict"}), PARAMETERS),
    fault(22, "R", "not declared", lambda r: add_tool(r, parameters={**SCHEMA, "required": ["x"]}), PARAMETERS),
    fault(22, "R", "reference outwards", lambda r: add_property(r, {"$ref": "http://localhost/x"}), PARAMETERS),
    fault(22, "R", "bad pattern", _bad_pattern, PARAMETERS),
    fault(22, "W", "blank description", lambda r: add_tool(r, description=" "), "/tools/0/function/description"),
    fault(22, "W", "strange name", lambda r: add_tool(r, "a b"), "/tools/0/function/name"),
    fault(23, "W", "default is a list", lambda r: add_property(r, {"type": "array", "default": []}), X, flag=CM2),
    fault(23, "W", "enum of numbers", lambda r: add_property(r, {"type": "integer", "enum": [1]}), X, flag=ENVACE),
    fault(23, "W", "two types", lambda r: add_property(r, {"type": ["string", "null"]}), X, flag=ENVACE),
    fault(23, "W", "no type", lambda r: add_property(r, {"anyOf": [{"type": "string"}]}), X, flag=ENVACE),
    fault(24, "R", "no checklists", lambda r: r.pop("checklists"), "/checklists"),
    fault(24, "R", "no variant", lambda r: r.update(checklists=[]), "/checklists"),
    fault(24, "R", "variant is text", lambda r: r.update(checklists=["a"]), "/checklists/0"),
    fault(24, "R", "turn without list", lambda r: r["checklists"][0].pop(), "/checklists/0"),
    fault(25, "R", "no items", lambda r: r["checklists"][0].__setitem__(0, []), TURN),
    fault(25, "R", "items are text", lambda r: r["checklists"][0].__setitem__(0, "a"), TURN),
    fault(25, "W", "many items", _many_items, "/checklists/0/1"),
    fault(26, "R", "item is text", lambda r: r["checklists"][0][0].__setitem__(0, "a"), ITEM),
    fault(26, "R", "no question", lambda r: item(r).pop("question"), ITEM),
    fault(26, "R", "no weight", lambda r: item(r).pop("weight"), ITEM),
    fault(26, "R", "blank question", lambda r: item(r).update(question=""), f"{ITEM}/question"),
    fault(26, "R", "blank condition", lambda r: item(r).update(pass_condition=" "), f"{ITEM}/pass_condition"),
    fault(26, "R", "unknown focus", lambda r: item(r).update(focus_on="assistant.mood"), f"{ITEM}/focus_on"),
    fault(26, "R", "id is a number", lambda r: item(r).update(id=0), f"{ITEM}/id"),
    fault(26, "R", "examples are text", lambda r: item(r).update(failure_examples="a"), f"{ITEM}/failure_examples"),
    fault(
        26,
        "R",
        "gate is text",
        lambda r: item(r).update(required_for_next_turn="yes"),
        f"{ITEM}/required_for_next_turn",
    ),
    fault(26, "R", "dependence on a number", lambda r: item(r).update(dependence=[1]), f"{ITEM}/dependence"),
    fault(26, "R", "evidence is text", lambda r: item(r).update(evidence=["a"]), EVIDENCE),
    fault(26, "R", "evidence without a step", lambda r: _evidence(r).pop("step"), EVIDENCE),
    fault(26, "R", "step is true", lambda r: _evidence(r).update(step=True), f"{EVIDENCE}/step"),
    fault(26, "R", "step below 0", lambda r: _evidence(r).update(step=-1), f"{EVIDENCE}/step"),
    fault(26, "R", "unknown source", lambda r: _evidence(r).update({"from": "world"}), f"{EVIDENCE}/from"),
    fault(26, "R", "in a second variant", _second_variant, "/checklists/1/0/0"),
    fault(26, "W", "unknown key", lambda r: item(r).update(colour="red"), ITEM),
    fault(26, "W", "unknown key of evidence", lambda r: _evidence(r).update(colour="red"), EVIDENCE),
    fault(27, "R", "id twice", lambda r: item(r, 1).update(id="C0"), "/checklists/0/0/1/id"),
    fault(27, "R", "blank id", lambda r: item(r).update(id=" "), f"{ITEM}/id"),
    fault(28, "R", "weights off", lambda r: item(r).update(weight=0.9), TURN),
    fault(28, "R", "weight is true", lambda r: item(r).update(weight=True), f"{ITEM}/weight"),
    fault(28, "R", "weight is text", lambda r: item(r).update(weight="0.25"), f"{ITEM}/weight"),
    fault(28, "R", "weight below 0", lambda r: item(r).update(weight=-0.1), f"{ITEM}/weight"),
    fault(28, "R", "weight of 0", lambda r: item(r).update(weight=0), f"{ITEM}/weight"),
    fault(28, "R", "weight above 1", lambda r: item(r).update(weight=1.01), f"{ITEM}/weight"),
    fault(28, "W", "weights nearly right", lambda r: item(r).update(weight=item(r)["weight"] + 0.02), TURN),
    fault(29, "R", "depends on itself", lambda r: item(r).update(dependence=["C0"]), f"{ITEM}/dependence/0"),
    fault(29, "R", "depends on nothing", lambda r: item(r).update(dependence=["C99"]), f"{ITEM}/dependence/0"),
    fault(29, "R", "circle", _circle, TURN),
    fault(
        29, "W", "depends on a call", lambda r: item(r, 1).update(dependence=["C0"]), "/checklists/0/0/1/dependence/0"
    ),
    fault(30, "W", "no evidence", lambda r: item(r).update(evidence=[]), f"{ITEM}/evidence"),
    fault(30, "W", "no such step", lambda r: _evidence(r).update(step=99), EVIDENCE),
    fault(30, "W", "no such turn", lambda r: _evidence(r).update(turn=9), EVIDENCE),
    fault(30, "W", "other role", lambda r: _evidence(r).update(step=0), EVIDENCE),
    fault(30, "W", "snippet not there", lambda r: _evidence(r).update(snippet="nowhere"), EVIDENCE),
    fault(30, "W", "blank snippet", lambda r: _evidence(r).update(snippet=" "), EVIDENCE),
    fault(
        31,
        "W",
        "no gate",
        lambda r: [each.update(required_for_next_turn=False) for each in r["checklists"][0][0]],
        TURN,
        flag=NO_GATING_FLAG,
    ),
    fault(31, "W", "gate on an error", _gate_on_an_error, "/checklists/0/0/2", beside=(RECORDED_ERROR,)),
    fault(
        32, "W", "about no calls", lambda r: plain_second_turn(r, "assistant.tool_calls"), "/checklists/0/1/0/focus_on"
    ),
    fault(32, "W", "about no results", lambda r: plain_second_turn(r, "tool.content"), "/checklists/0/1/0/focus_on"),
    fault(22, "R", "tool of another type", lambda r: r["tools"][0].update(type="func"), "/tools/0/type"),
    fault(40, "W", "required and forbidden", _forbid_what_is_required, CALL),
    fault(40, "W", "a call that its schema refuses", lambda r: _call(r)["arguments"].update(dayy="Monday"), CALL),
    fault(
        40, "W", "forbidden and unknown", lambda r: _turn(r, forbidden_tools=["rm_rf"]), f"{OUTCOME}/forbidden_tools"
    ),
    fault(40, "W", "another fact", lambda r: _turn(r, required_facts=["sunny all day"]), f"{OUTCOME}/required_facts"),
    fault(40, "R", "outcome is a list", lambda r: r.update(outcome=[1]), "/outcome"),
    fault(40, "R", "outcome without turns", lambda r: r.update(outcome={}), "/outcome"),
    fault(40, "R", "unknown key of the outcome", lambda r: r["outcome"].update(score=1), "/outcome"),
    fault(40, "R", "turns are text", lambda r: r.update(outcome={"turns": "a"}), "/outcome/turns"),
    fault(40, "R", "a turn less", lambda r: r["outcome"]["turns"].pop(), "/outcome/turns"),
    fault(40, "R", "no facts", lambda r: r["outcome"]["turns"][0].pop("required_facts"), OUTCOME),
    fault(40, "R", "unknown key of a turn", lambda r: _turn(r, score=1), OUTCOME),
    fault(40, "R", "order is text", lambda r: _turn(r, ordered="yes"), f"{OUTCOME}/ordered"),
    fault(40, "R", "fact is a number", lambda r: _turn(r, required_facts=[450]), f"{OUTCOME}/required_facts"),
    fault(40, "R", "blank fact", lambda r: _turn(r, required_facts=[" "]), f"{OUTCOME}/required_facts"),
    fault(40, "R", "forbidden text", lambda r: _turn(r, forbidden_tools="a"), f"{OUTCOME}/forbidden_tools"),
    fault(40, "R", "calls are text", lambda r: _turn(r, required_calls="a"), f"{OUTCOME}/required_calls"),
    fault(40, "R", "call is text", lambda r: _turn(r, required_calls=["a"]), CALL),
    fault(40, "R", "undeclared call", lambda r: _call(r).update(name="rm_rf"), f"{CALL}/name"),
    fault(40, "R", "arguments are text", lambda r: _call(r).update(arguments="{}"), f"{CALL}/arguments"),
    fault(40, "R", "call without arguments", lambda r: _call(r).pop("arguments"), CALL),
    fault(40, "R", "world is text", lambda r: r.update(world="bank"), "/world"),
    fault(40, "R", "world without a seed", lambda r: r["world"].pop("seed"), "/world"),
    fault(40, "R", "unknown key of the world", lambda r: r["world"].update(colour="red"), "/world"),
    fault(40, "R", "domain is a number", lambda r: r["world"].update(domain=1), "/world/domain"),
    fault(40, "R", "seed is true", lambda r: r["world"].update(seed=True), "/world/seed"),
    fault(40, "R", "seed of 65 bits", lambda r: r["world"].update(seed=2**64), "/world/seed"),
)
