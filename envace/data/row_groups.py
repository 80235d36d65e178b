"""The second pass of preparation: groups of validated rows become groups of tasks, on all cores where that pays."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from envace.data.canonical import to_task
from envace.data.placing import PlacedRow
from envace.data.task_tables import TaskGroup, group_of
from envace.errors import StageError
from envace.processes import die_with_parent
from envace.types import Task

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
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=die_with_parent) as pool:
        try:
            # a few groups ahead of the writer and no more: a group is some ten megabytes
            ahead: deque[Future[TaskGroup]] = deque()
            for group in groups:
                ahead.append(pool.submit(make_group, group))
                if len(ahead) > workers + 1:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        except BrokenProcessPool:
            raise StageError(
                "a worker process was ended from outside, probably for lack of memory; run again"
            ) from None


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
