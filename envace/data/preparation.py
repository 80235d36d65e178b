"""From validated rows to the prepared tables and their manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envace.config import PrepareDataParams
from envace.data.canonical import to_task
from envace.data.splits import SPLITS, LeakGuard, split_of
from envace.data.tables import write_flat_tables, write_tasks
from envace.data.violation_table import read_flags
from envace.errors import ContractError, DataError
from envace.files import sha256_file, write_json
from envace.types import Task

FILES = ("train", "heldout", "hard")
TABLES = ("tasks.parquet", "transitions.parquet", "criteria.parquet", "tools.parquet")


def load_tasks(validated: Path, params: PrepareDataParams) -> list[Task]:
    """The tasks of all validated files with their splits and flags.

    Raises ContractError for a conversation in two splits and DataError where validation has not run.
    """
    if not (validated / "train.jsonl").is_file():
        raise DataError(f"{validated}/train.jsonl: no such file; run the stage validate_data first")
    flags = read_flags(validated / "violations.parquet")
    has_heldout_file = (validated / "heldout.jsonl").is_file()
    heldout_share = 0.0 if has_heldout_file else params.heldout_share
    guard, tasks = LeakGuard(), []
    for file in FILES:
        for number, row in _rows(validated / f"{file}.jsonl"):
            split = split_of(row, file, params.validation_share, heldout_share, params.salt)
            where = f"{file}.jsonl line {number}"
            guard.check(row, split, where)
            task = to_task(row, split, [], where)
            tasks.append(task.model_copy(update={"flags": flags.get(task.task_id, [])}))
    if not any(task.split == "train" for task in tasks):
        raise ContractError("no task is left for training; give more rows, or lower the shares under prepare_data")
    return tasks


def write_prepared(folder: Path, tasks: list[Task], params: PrepareDataParams) -> dict[str, Any]:
    """Write the four tables and manifest.json into `folder`, and give the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tasks(folder / "tasks.parquet", tasks)
    write_flat_tables(folder, tasks)
    manifest = {
        "splits": {split: _split_record([t for t in tasks if t.split == split]) for split in SPLITS},
        "flags": dict(sorted(Counter(flag for task in tasks for flag in task.flags).items())),
        "parameters": params.model_dump(),
        "sha256": {name: sha256_file(folder / name) for name in TABLES},
    }
    write_json(folder / "manifest.json", manifest)
    return manifest


def _split_record(tasks: list[Task]) -> dict[str, int]:
    turns = [turn for task in tasks for turn in task.turns]
    steps = [step for turn in turns for step in turn.reference_steps]
    return {
        "tasks": len(tasks),
        "turns": len(turns),
        "calls": sum(len(step.tool_calls) for step in steps),
        "error_results": sum(result.is_error for step in steps for result in step.tool_results),
        "criteria": sum(len(rubric.criteria) for task in tasks for rubric in task.rubrics),
        "with_outcome": sum(task.outcome is not None for task in tasks),
        "with_world": sum(task.world is not None for task in tasks),
    }


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.is_file():
        with path.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                yield number, json.loads(line)
