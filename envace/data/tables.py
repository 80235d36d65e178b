"""The prepared tables: tasks, and the flat views of them. The same tasks give the same bytes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from envace.data.arrow_schemas import criteria_schema, tasks_schema, tools_schema, transitions_schema
from envace.errors import DataError
from envace.files import atomic_path, canonical_json, sha256_text
from envace.types import Task


def write_tasks(path: Path, tasks: list[Task]) -> None:
    """Write tasks, sorted by id, as Parquet (zstd). Raises DataError for an id that stands twice."""
    ordered = _ordered(tasks)
    _write(path, [task.model_dump() for task in ordered], tasks_schema())


def read_tasks(path: Path, split: str | None = None) -> list[Task]:
    """The tasks of a table, sorted by id; those of one split where it is given. Raises DataError if unreadable."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise DataError(f"{path}: no such table; run the stage prepare_data first")
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({error}); run prepare_data again") from None
    if not table.schema.equals(tasks_schema()):
        raise DataError(f"{path}: not a table of tasks of this version; run prepare_data again")
    rows = table.to_pylist()
    return [Task.model_validate(row) for row in rows if split is None or row["split"] == split]


def write_flat_tables(folder: Path, tasks: list[Task]) -> None:
    """Write transitions.parquet, criteria.parquet and tools.parquet of the tasks into `folder`."""
    ordered = _ordered(tasks)
    transitions = [row for task in ordered for row in transition_rows(task)]
    _write(folder / "transitions.parquet", transitions, transitions_schema())
    _write(folder / "criteria.parquet", [row for task in ordered for row in criterion_rows(task)], criteria_schema())
    _write(folder / "tools.parquet", tool_rows(ordered), tools_schema())


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


def tool_rows(tasks: list[Task]) -> list[dict[str, Any]]:
    """One record for each distinct tool, sorted by name."""
    counts = Counter(tool for task in tasks for tool in task.tools)
    rows = [{**tool.model_dump(), "tasks": count} for tool, count in counts.items()]
    return sorted(rows, key=lambda row: (row["name"], row["schema_sha256"], row["description"]))


def _ordered(tasks: list[Task]) -> list[Task]:
    ordered = sorted(tasks, key=lambda task: task.task_id)
    for one, other in pairwise(ordered):
        if one.task_id == other.task_id:
            raise DataError(f"the task id {one.task_id} stands twice; ids must be unique in all splits")
    return ordered


def _write(path: Path, rows: list[dict[str, Any]], schema: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with atomic_path(path) as part:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), part, compression="zstd")
