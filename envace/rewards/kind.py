"""Which of the two kinds of reward a task gets (method, section 3)."""

from __future__ import annotations

from typing import Literal

from envace.config import RewardParams
from envace.errors import DataError
from envace.types import Rubric, Task

RewardKind = Literal["verifiable", "checklist"]


def reward_kind(params: RewardParams, task: Task) -> RewardKind:
    """The kind that `reward.kind` asks for; `auto` takes the task's outcome, else its checklist.

    Raises DataError where the task does not carry what that kind needs.
    """
    if params.kind != "checklist" and task.outcome is not None:
        return "verifiable"
    if params.kind == "verifiable":
        raise DataError(
            f"task {task.task_id}: reward.kind is verifiable, but the task has no outcome; set reward.kind to "
            "checklist or auto, or add an outcome to the row"
        )
    rubric = rubric_of(task, params.variant)
    judged = {criterion.turn_index for criterion in rubric.criteria}
    bare = [turn.turn_index for turn in task.turns if turn.turn_index not in judged]
    if bare:
        raise DataError(f"task {task.task_id}: the checklist has no criterion for turn {bare[0]}; add one, or drop it")
    return "checklist"


def rubric_of(task: Task, variant: int) -> Rubric:
    """The task's checklist of that variant. Raises DataError where there is none."""
    for rubric in task.rubrics:
        if rubric.variant_index == variant:
            return rubric
    have = ", ".join(str(rubric.variant_index) for rubric in task.rubrics)
    raise DataError(
        f"task {task.task_id}: no checklist of variant {variant} (reward.variant); "
        + (f"the task has variant {have}" if have else "the task has neither a checklist nor an outcome")
    )
