"""Check 33 with the tokenizer: exact lengths, and tasks that cannot fit are left out by name."""

from __future__ import annotations

import json
from pathlib import Path

from envace.chat.layout import ChatLayout
from envace.data.canonical import to_task
from envace.data.sample import build_world
from envace.data.sample.rows import sample_rows
from envace.training.lengths import fit_tasks, token_lengths
from envace.types import Task


def _tasks() -> list[Task]:
    return [to_task(row, "train", [], "here") for row in sample_rows(build_world(0), 20, 0, "train")]


def test_tasks_that_do_not_fit_are_named(saved_policy: Path) -> None:
    tasks = _tasks()
    everything = fit_tasks(tasks, saved_policy, 10_000)
    assert everything.tasks == tasks and everything.too_long == []
    longest = tasks[3].model_copy(update={"system_prompt": "Be brief. " * 300})
    fit = fit_tasks([*tasks[:3], longest, *tasks[4:]], saved_policy, 600)
    (left_out,) = fit.too_long
    assert left_out.task_id == longest.task_id and left_out.prompt_tokens > 600
    assert [task.task_id for task in fit.tasks] == [task.task_id for task in tasks if task.task_id != longest.task_id]
    record = json.loads(json.dumps(fit.record()))
    assert record["left_out"][0]["prompt_tokens"] == left_out.prompt_tokens and len(record["tokenizer_sha256"]) == 64


def test_a_reference_that_is_longer_than_the_model_does_not_fit(saved_policy: Path) -> None:
    task = _tasks()[0]
    turn = task.turns[-1]
    talkative = turn.reference_steps[-1].model_copy(update={"reply": "so " * 4000})
    long = task.model_copy(
        update={"turns": [*task.turns[:-1], turn.model_copy(update={"reference_steps": [talkative]})]}
    )
    (left_out,) = fit_tasks([long], saved_policy, 10_000).too_long
    assert left_out.reference_tokens > 4000 > left_out.prompt_tokens


def test_lengths_are_those_of_the_rendered_conversation(layout: ChatLayout) -> None:
    for task in _tasks():
        prompt, reference = token_lengths(task, layout)
        assert prompt == len(layout.opening(task)) < reference
        longer = task.model_copy(update={"system_prompt": "Be brief."})
        grown = token_lengths(longer, layout)
        assert grown[0] - prompt == grown[1] - reference > 0
