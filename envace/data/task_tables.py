"""The rows of the prepared tables for a group of tasks, as Arrow batches: pure, so that any process can make them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from envace.data.arrow_schemas import criteria_schema, tasks_schema, transitions_schema
from envace.files import canonical_json, sha256_text
from envace.types import Task, ToolSpec

COUNTED = ("tasks", "turns", "calls", "error_results", "criteria", "with_outcome", "with_world")


@dataclass(frozen=True)
class TaskGroup:
    """A group of tasks in order: batches by table, how many of them offer each tool, and what the manifest counts."""

    first_id: str
    last_id: str
    batches: dict[str, Any]
    tools: Counter[ToolSpec]
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    flags: Counter[str] = field(default_factory=Counter)


def group_of(tasks: Sequence[Task]) -> TaskGroup:
    """Everything that is written about some tasks, which come in order of their ids."""
    import pyarrow as pa

    counts: dict[str, Counter[str]] = {}
    for task in tasks:
        counts.setdefault(task.split, Counter()).update(_counts(task))
    rows = {
        "tasks.parquet": ([task.model_dump() for task in tasks], tasks_schema()),
        "transitions.parquet": ([row for task in tasks for row in transition_rows(task)], transitions_schema()),
        "criteria.parquet": ([row for task in tasks for row in criterion_rows(task)], criteria_schema()),
    }
    return TaskGroup(
        first_id=tasks[0].task_id,
        last_id=tasks[-1].task_id,
        batches={name: pa.RecordBatch.from_pylist(found, schema=schema) for name, (found, schema) in rows.items()},
        tools=Counter(tool for task in tasks for tool in task.tools),
        counts=counts,
        flags=Counter(flag for task in tasks for flag in task.flags),
    )


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


def _counts(task: Task) -> dict[str, int]:
    steps = [step for turn in task.turns for step in turn.reference_steps]
    return {
        "tasks": 1,
        "turns": len(task.turns),
        "calls": sum(len(step.tool_calls) for step in steps),
        "error_results": sum(result.is_error for step in steps for result in step.tool_results),
        "criteria": sum(len(rubric.criteria) for rubric in task.rubrics),
        "with_outcome": int(task.outcome is not None),
        "with_world": int(task.world is not None),
    }
