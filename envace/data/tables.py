"""The prepared tables, written group by group. The same tasks in the same groups give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

from envace.data.arrow_schemas import criteria_schema, tasks_schema, transitions_schema
from envace.data.task_tables import TaskGroup, group_of
from envace.data.tool_table import ToolTable
from envace.errors import DataError
from envace.types import Task

TABLES = ("tasks.parquet", "transitions.parquet", "criteria.parquet", "tools.parquet")
TASKS_PER_GROUP = 250


class PreparedTables:
    """Writes the four tables into a folder. Groups must come in order of their ids; each is a row group of its own."""

    def __init__(self, folder: Path) -> None:
        import pyarrow.parquet as pq

        self._open = ExitStack()
        schemas = dict(zip(TABLES, (tasks_schema(), transitions_schema(), criteria_schema()), strict=False))
        self._writers = {
            name: self._open.enter_context(pq.ParquetWriter(folder / name, schema, compression="zstd"))
            for name, schema in schemas.items()
        }
        self._tools = self._open.enter_context(ToolTable(folder / TABLES[3]))
        self._last_id = ""

    def add(self, group: TaskGroup) -> None:
        """Append a group."""
        if group.first_id <= self._last_id:
            raise DataError(f"the task id {group.first_id} stands twice or out of order")
        self._last_id = group.last_id
        for name, writer in self._writers.items():
            writer.write_batch(group.batches[name])
        self._tools.add(group.tools)

    def __enter__(self) -> PreparedTables:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self._open.__exit__(kind, error, trace)


def write_tables(folder: Path, tasks: Iterable[Task]) -> None:
    """Write the four tables of tasks in any order into `folder`. Raises DataError for an id that stands twice."""
    ordered = sorted(tasks, key=lambda task: task.task_id)
    refuse_repeated_ids([task.task_id for task in ordered])
    folder.mkdir(parents=True, exist_ok=True)
    with PreparedTables(folder) as tables:
        for start in range(0, len(ordered), TASKS_PER_GROUP):
            tables.add(group_of(ordered[start : start + TASKS_PER_GROUP]))


def refuse_repeated_ids(ordered: list[str]) -> None:
    """Raises DataError for an id that stands twice in a sorted list."""
    for one, other in pairwise(ordered):
        if one == other:
            raise DataError(f"the task id {one} stands twice; ids must be unique in all splits")
