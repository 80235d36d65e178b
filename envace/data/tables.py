"""The prepared tables: tasks, and the flat views of them. The same tasks give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from envace.data.arrow_schemas import criteria_schema, tasks_schema, transitions_schema
from envace.data.table_writer import TableWriter
from envace.data.tool_table import ToolTable
from envace.errors import DataError
from envace.files import canonical_json, sha256_text
from envace.types import Task

TABLES = ("tasks.parquet", "transitions.parquet", "criteria.parquet", "tools.parquet")
TASKS_PER_GROUP = 500


class PreparedTables:
    """Writes the four tables into a folder, task by task. Tasks must come in order of their ids."""

    def __init__(self, folder: Path) -> None:
        self._open = ExitStack()
        self._tasks = self._open.enter_context(TableWriter(folder / TABLES[0], tasks_schema(), TASKS_PER_GROUP))
        self._transitions = self._open.enter_context(TableWriter(folder / TABLES[1], transitions_schema()))
        self._criteria = self._open.enter_context(TableWriter(folder / TABLES[2], criteria_schema()))
        self._tools = self._open.enter_context(ToolTable(folder / TABLES[3]))
        self._last_id = ""

    def add(self, task: Task) -> None:
        """Append one task. Raises DataError for an id that stands twice."""
        if task.task_id <= self._last_id:
            raise DataError(f"the task id {task.task_id} stands twice; ids must be unique in all splits")
        self._last_id = task.task_id
        self._tasks.add(task.model_dump())
        for row in transition_rows(task):
            self._transitions.add(row)
        for row in criterion_rows(task):
            self._criteria.add(row)
        self._tools.add(task.tools)

    def __enter__(self) -> PreparedTables:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self._open.__exit__(kind, error, trace)


def write_tables(folder: Path, tasks: Iterable[Task]) -> None:
    """Write the four tables of tasks in any order into `folder`. Raises DataError for an id that stands twice."""
    folder.mkdir(parents=True, exist_ok=True)
    with PreparedTables(folder) as tables:
        for task in sorted(tasks, key=lambda task: task.task_id):
            tables.add(task)


def transition_rows(task: Task) -> list[dict[str, Any]]:
    """One record for each recorded call of a task with its result."""
    return [
        {
            "task_id": task.task_id,
            "split": task.split,
            "turn_index": turn.turn_index,
            "step_index": step.step_index,
            "call_index": index,
            "tool_name": call.tool_name,
            "arguments": call.arguments,
            "arguments_sha256": sha256_text(canonical_json(call.parsed())),
            "result": result.content,
            "is_error": result.is_error,
        }
        for turn in task.turns
        for step in turn.reference_steps
        for index, (call, result) in enumerate(zip(step.tool_calls, step.tool_results, strict=True))
    ]


def criterion_rows(task: Task) -> list[dict[str, Any]]:
    """One record for each criterion of each variant of a task."""
    texts = ("criterion_id", "turn_index", "target", "question", "pass_condition")
    keys = (*texts, "weight", "source_weight", "is_gating")
    return [
        {
            "task_id": task.task_id,
            "split": task.split,
            "variant_index": rubric.variant_index,
            **{key: getattr(criterion, key) for key in keys},
            "prerequisites": len(criterion.prerequisite_ids),
        }
        for rubric in task.rubrics
        for criterion in rubric.criteria
    ]
