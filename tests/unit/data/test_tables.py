"""Tasks and tables: nothing of the raw row changes on the way, and the same tasks give the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.data.canonical import raw_contents, to_task
from envace.data.ids import safe_task_id
from envace.data.sample import World, tool_spec
from envace.data.sample.rows import sample_rows
from envace.data.splits import LeakGuard, split_of
from envace.data.tables import TABLES, write_tables
from envace.data.task_reader import read_tasks
from envace.data.task_tables import transition_rows
from envace.errors import ContractError, DataError
from envace.files import compact_json, sha256_file
from envace.types import Task

RawRow = dict[str, Any]


@pytest.fixture(scope="module")
def rows(world: World) -> list[RawRow]:
    return sample_rows(world, 80, 0, "train")


@pytest.fixture(scope="module")
def tasks(rows: list[RawRow]) -> list[Task]:
    return [to_task(row, "train", ["recorded_tool_error"] if n % 2 else [], f"row {n}") for n, row in enumerate(rows)]


def test_a_task_says_what_the_raw_row_said(rows: list[RawRow], tasks: list[Task]) -> None:
    for row, task in zip(rows, tasks, strict=True):
        assert raw_contents(task) == [message["content"] for message in row["messages"]]
        assert [tool.openai() for tool in task.tools] == row["tools"]
        assert [tool for tool in task.tools] == [tool_spec(tool.name) for tool in task.tools]
        calls = [call for message in row["messages"] for call in message["tool_calls"]]
        made = [call for turn in task.turns for step in turn.reference_steps for call in step.tool_calls]
        assert [(c.call_id, c.tool_name, c.arguments) for c in made] == [
            (c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls
        ]
        assert task.outcome is not None and task.world is not None and task.world.domain == row["world"]["domain"]
        for turn in row["checklists"][0]:
            assert sum(item["weight"] for item in turn) == pytest.approx(1)
        ids = [criterion.criterion_id for rubric in task.rubrics for criterion in rubric.criteria]
        assert len(set(ids)) == len(ids) and ids[0] == "t0.c0"


def test_odd_white_space_around_reasoning_survives(rows: list[RawRow], tmp_path: Path) -> None:
    row = json.loads(compact_json(rows[0]))
    row["messages"][1]["content"] = " <think>so</think>\t" + row["messages"][1]["content"].split("</think>")[1]
    task = to_task(row, "train", [], "here")
    write_tables(tmp_path, [task])
    (read,) = read_tasks(tmp_path / "tasks.parquet")
    assert read == task and raw_contents(read)[1] == row["messages"][1]["content"]


def test_tasks_come_back_from_parquet_as_they_were(tasks: list[Task], tmp_path: Path) -> None:
    path = tmp_path / "tasks.parquet"
    write_tables(tmp_path, tasks)
    assert read_tasks(path) == sorted(tasks, key=lambda task: task.task_id)
    assert read_tasks(path, splits=("train",)) == read_tasks(path) and read_tasks(path, splits=("hard",)) == []


def test_the_same_tasks_in_any_order_give_the_same_bytes(tasks: list[Task], tmp_path: Path) -> None:
    for name, given_tasks in (("a", tasks), ("b", tasks[::-1])):
        write_tables(tmp_path / name, given_tasks)
    for name in TABLES:
        assert sha256_file(tmp_path / "a" / name) == sha256_file(tmp_path / "b" / name)
    assert {path.name for path in (tmp_path / "a").iterdir()} == set(TABLES)


def test_tool_schemas_with_disjoint_keys_are_byte_equal_after_parquet(tasks: list[Task], tmp_path: Path) -> None:
    schemas = [
        {"type": "object", "properties": {"z": {"type": "string", "enum": ["b", "a"]}}, "required": ["z"]},
        {"required": [], "properties": {"a": {"default": None, "type": ["integer", "null"]}}, "type": "object"},
        {},
    ]
    made = []
    for task, schema in zip(tasks, schemas, strict=False):
        tool = task.tools[0].model_copy(update={"parameters_schema": compact_json(schema)})
        made.append(task.model_copy(update={"tools": [tool]}))
    write_tables(tmp_path, made)
    read = {
        task.task_id: task.tools[0].openai()["function"]["parameters"]
        for task in read_tasks(tmp_path / "tasks.parquet")
    }
    for task, schema in zip(made, schemas, strict=True):
        assert compact_json(read[task.task_id]) == compact_json(schema)


def test_optional_parts_may_be_missing(rows: list[RawRow], tmp_path: Path) -> None:
    row = {key: value for key, value in rows[0].items() if key not in ("outcome", "world")}
    row["messages"] = [{"role": "system", "content": "Be brief.", "tool_calls": []}, *row["messages"]]
    task = to_task(row, "train", [], "here")
    write_tables(tmp_path, [task])
    (read,) = read_tasks(tmp_path / "tasks.parquet")
    assert read == task and read.system_prompt == "Be brief." and read.outcome is None and read.world is None


@pytest.mark.parametrize("outcome", [{}, {"turns": []}, {"turns": [{"required_calls": [{"name": "a"}]}]}, [1]])
def test_an_outcome_of_another_shape_is_named(rows: list[RawRow], outcome: Any) -> None:
    with pytest.raises(DataError, match="here: outcome"):
        to_task({**rows[0], "outcome": outcome}, "train", [], "here")


def test_transitions_hold_every_recorded_call(tasks: list[Task]) -> None:
    for task in tasks:
        results = [r for turn in task.turns for step in turn.reference_steps for r in step.tool_results]
        assert [row["result"] for row in transition_rows(task)] == [result.content for result in results]


def test_ids_that_stand_twice_and_unreadable_tables_are_refused(tasks: list[Task], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="twice"):
        write_tables(tmp_path, [tasks[0], tasks[0]])
    with pytest.raises(DataError, match="run the stage prepare_data"):
        read_tasks(tmp_path / "none.parquet")
    (tmp_path / "tasks.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        read_tasks(tmp_path / "tasks.parquet")


@given(st.one_of(st.text(), st.sampled_from(["..", "../x", "a/b", "a\\b", "a\x00b", ".hidden", "con\n", "é"])))
def test_task_ids_cannot_leave_a_folder(uuid: str) -> None:
    task_id = safe_task_id(uuid)
    assert task_id == "" if not uuid else Path("/x", task_id).resolve().parent == Path("/x")
    assert not set(task_id) & set("/\\\x00\n ") and len(task_id) <= 128 and not task_id.startswith(".")


def test_shares_are_carved_out_of_the_training_file_only(rows: list[RawRow]) -> None:
    assert {split_of(row, "heldout", 0.9, 0.1, "s") for row in rows} == {"heldout"}
    splits = [split_of(row, "train", 0.3, 0.3, "s") for row in rows]
    assert all(12 <= splits.count(name) <= 40 for name in ("train", "validation", "heldout"))
    assert splits == [split_of(row, "train", 0.3, 0.3, "s") for row in rows]
    assert splits != [split_of(row, "train", 0.3, 0.3, "other") for row in rows]
    assert {split_of(row, "train", 0.0, 0.0, "s") for row in rows} == {"train"}


def test_a_conversation_in_two_splits_is_refused(rows: list[RawRow]) -> None:
    guard = LeakGuard()
    guard.check(rows[0], "train", "train.jsonl", 1)
    guard.check(rows[0], "train", "train.jsonl", 2)
    with pytest.raises(ContractError, match="same user messages"):
        guard.check({**rows[0], "tools": rows[1]["tools"]}, "heldout", "heldout.jsonl", 1)
