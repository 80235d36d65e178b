"""The JSON Schema of a raw row: valid itself, true of good rows and of other spellings, false of structural faults."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from envace.data.aliases import FOCUS_ALIASES, ITEM_ALIASES, ROLE_ALIASES
from envace.data.raw_schema import raw_row_schema
from envace.data.sample import World
from envace.data.sample.rows import stream_rows
from envace.data.schema_names import EVIDENCE_KEYS, FOCUS, ITEM_KEYS, ROLES, ROW_KEYS

VALIDATOR = Draft202012Validator(raw_row_schema())
Row = dict[str, Any]


def _item(row: Row) -> Row:
    return row["checklists"][0][0][0]


def _call(row: Row) -> Row:
    return next(call["function"] for message in row["messages"] for call in message["tool_calls"])


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(raw_row_schema())
    assert raw_row_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert raw_row_schema() is not raw_row_schema()


def test_it_has_every_word_of_the_format() -> None:
    schema = raw_row_schema()
    parts = schema["$defs"]
    assert set(ROW_KEYS) <= set(schema["properties"])
    assert set(ITEM_KEYS) | set(ITEM_ALIASES) <= set(parts["item"]["properties"])
    assert set(parts["evidence"]["required"]) == set(EVIDENCE_KEYS)
    assert parts["focus"]["enum"] == [*FOCUS, *FOCUS_ALIASES]
    assert parts["message"]["properties"]["role"]["enum"] == [*ROLES, *ROLE_ALIASES]


def test_the_public_record_is_valid(project_root: Path) -> None:
    path = project_root.parent / "shared/data/cm2_public_example.json"
    if not path.is_file():
        pytest.skip("the public CM2 record is not at hand")
    for row in json.loads(path.read_text("utf-8")):
        VALIDATOR.validate(row)


@pytest.mark.parametrize(("count", "row_bytes"), [(200, None), (10, 53_000)])
def test_sample_rows_are_valid(world: World, count: int, row_bytes: int | None) -> None:
    for row in stream_rows(world, count, 0, "train", row_bytes):
        VALIDATOR.validate(row)


def test_the_smallest_file_of_the_docs_is_valid(project_root: Path) -> None:
    match = re.search(r"```json\n(.*?)```", (project_root / "docs/data.md").read_text("utf-8"), re.DOTALL)
    assert match
    VALIDATOR.validate(json.loads(match[1])[0])


def _other_item_words(row: Row) -> None:
    item = _item(row)
    item["strictness"], item["depends_on"] = item.pop("required_for_next_turn"), item.pop("dependence")
    item["extra_info"] = {"price_usd": 0.1}


def _single_variant(row: Row) -> None:
    row["checklist"] = row.pop("checklists")[0]


def _split_content(row: Row) -> None:
    row["messages"][-1]["content"] = {"thinking": "I have it.", "reply": "Done."}


def _null_calls(row: Row) -> None:
    for message in row["messages"]:
        if not message["tool_calls"]:
            message["tool_calls"] = None
        else:
            message["content"] = None


SPELLINGS: dict[str, Callable[[Row], Any]] = {
    "observation": lambda row: next(m for m in row["messages"] if m["role"] == "tool").update(role="observation"),
    "words of an item": _other_item_words,
    "focus": lambda row: _item(row).update(focus_on="assistant.final_reply"),
    "one variant": _single_variant,
    "bare tools": lambda row: row.update(tools=[tool["function"] for tool in row["tools"]]),
    "tools as text": lambda row: row.update(tools=json.dumps(row["tools"])),
    "arguments as an object": lambda row: _call(row).update(arguments={"city": "Oslo"}),
    "content in parts": _split_content,
    "null calls": _null_calls,
    "no parameters": lambda row: row["tools"][0]["function"].update(parameters={}),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_are_valid(clean_row: Row, found: Callable[[Row], list[Any]], name: str) -> None:
    SPELLINGS[name](clean_row)
    VALIDATOR.validate(clean_row)
    shape = {6, 20, 24, 25, 26, 27, 28, 40}
    assert not [v for v in found(clean_row) if v.check_id in shape and v.severity == "R"]


FAULTS: dict[str, tuple[int, Callable[[Row], Any]]] = {
    "no uuid": (4, lambda row: row.pop("uuid")),
    "uuid is a number": (4, lambda row: row.update(uuid=5)),
    "no messages": (6, lambda row: row.update(messages=[])),
    "unknown role": (6, lambda row: row["messages"][0].update(role="bot")),
    "content is a number": (6, lambda row: row["messages"][0].update(content=1)),
    "content is missing": (6, lambda row: row["messages"][0].pop("content")),
    "calls of a user": (6, lambda row: row["messages"][0].update(tool_calls=row["messages"][1]["tool_calls"])),
    "call without a function": (6, lambda row: row["messages"][1].update(tool_calls=[{"name": "x"}])),
    "call of another type": (6, lambda row: row["messages"][1]["tool_calls"][0].update(type="code")),
    "arguments are a list": (6, lambda row: _call(row).update(arguments=[])),
    "no tools": (20, lambda row: row.update(tools=[])),
    "tool without a name": (22, lambda row: row["tools"][0]["function"].pop("name")),
    "parameters of another type": (22, lambda row: row["tools"][0]["function"].update(parameters={"type": "array"})),
    "parameters are no schema": (
        22,
        lambda row: row["tools"][0]["function"].update(parameters={"type": "object", "properties": 5}),
    ),
    "no variant": (24, lambda row: row.update(checklists=[])),
    "a turn without items": (25, lambda row: row["checklists"][0].__setitem__(0, [])),
    "no question": (26, lambda row: _item(row).pop("question")),
    "blank condition": (26, lambda row: _item(row).update(pass_condition=" ")),
    "gating is a word": (26, lambda row: _item(row).update(required_for_next_turn="yes")),
    "unknown focus": (26, lambda row: _item(row).update(focus_on="assistant")),
    "a turn below 0": (26, lambda row: _item(row)["evidence"][0].update(turn=-1)),
    "blank id": (27, lambda row: _item(row).update(id="")),
    "weight 0": (28, lambda row: _item(row).update(weight=0)),
    "weight is true": (28, lambda row: _item(row).update(weight=True)),
    "outcome without facts": (40, lambda row: row["outcome"]["turns"][0].pop("required_facts")),
    "world without a seed": (40, lambda row: row["world"].pop("seed")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_structural_faults_are_invalid_as_they_are_for_the_checks(
    clean_row: Row, found: Callable[[Row], list[Any]], name: str
) -> None:
    check_id, spoil = FAULTS[name]
    assert VALIDATOR.is_valid(clean_row)
    spoil(clean_row)
    assert not VALIDATOR.is_valid(clean_row)
    assert check_id in {v.check_id for v in found(clean_row) if v.severity == "R"}


def test_an_unknown_column_is_invalid(clean_row: Row) -> None:
    assert not VALIDATOR.is_valid({**clean_row, "score": 1})
