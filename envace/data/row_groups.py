"""The second pass of preparation: groups of validated rows become groups of tasks, on all cores where that pays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from envace.data.canonical import to_task
from envace.data.placing import PlacedRow
from envace.data.task_tables import TaskGroup, group_of
from envace.types import Task
from envace.workers import in_processes

MIN_ROWS_FOR_PROCESSES = 2000
"""Below, starting processes takes longer than they save."""


@dataclass(frozen=True)
class RowGroup:
    """Some validated rows in order of their task ids, with the flags that they have."""

    validated: Path
    rows: list[PlacedRow]
    flags: dict[str, list[str]]


def made_groups(groups: Iterable[RowGroup], rows: int) -> Iterator[TaskGroup]:
    """The groups as tasks, in the same order and with the same content however many processes make them."""
    workers = os.cpu_count() or 1
    if rows < MIN_ROWS_FOR_PROCESSES or workers == 1:
        yield from map(make_group, groups)
        return
    yield from in_processes(make_group, groups, workers)


def make_group(group: RowGroup) -> TaskGroup:
    """Read the rows of a group where they stand, and turn them into what is written about them."""
    with ExitStack() as stack:
        names = {row.file for row in group.rows}
        files = {name: stack.enter_context((group.validated / f"{name}.jsonl").open("rb")) for name in names}
        tasks: list[Task] = []
        for row in group.rows:
            file = files[row.file]
            file.seek(row.offset)
            where = f"{row.file} row {row.row}"
            tasks.append(to_task(json.loads(file.readline()), row.split, group.flags.get(row.task_id, []), where))
    return group_of(tasks)
