"""A training stopped under other parameters is not resumed; that it is there, and what differs, is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.training.other_runs import note_parts, tell_other_runs

OURS: dict[str, Any] = {
    "params": {"train_policy": {"learning_rate": 3e-4, "steps": 20}, "rollout": {"act": {"temperature": 1.0}}},
    "tasks": {"train": ["a", "b"], "validation": ["c"]},
    "base_model": "x",
}


def told(state: Path) -> list[str]:
    said: list[str] = []
    tell_other_runs(state, state / "ours", OURS, said.append)
    return said


def test_nothing_is_said_of_a_run_alone(tmp_path: Path) -> None:
    assert told(tmp_path / "missing") == []
    note_parts(tmp_path / "ours", OURS)
    assert told(tmp_path) == []


def test_what_differs_is_named_with_the_other_runs_value(tmp_path: Path) -> None:
    other = OURS | {"params": OURS["params"] | {"train_policy": {"learning_rate": 1e-5, "steps": 20}}}
    note_parts(tmp_path / "theirs", other)
    (said,) = told(tmp_path)
    assert str(tmp_path / "theirs") in said and "train_policy.learning_rate 1e-05:" in said and "not resumed" in said


def test_other_tasks_and_another_base_are_named_without_their_hashes(tmp_path: Path) -> None:
    note_parts(tmp_path / "one", OURS | {"base_model": "y"})
    note_parts(tmp_path / "two", OURS | {"tasks": {"train": ["a"], "validation": ["c"]}})
    said = told(tmp_path)
    assert "other base model" in said[0] and "other tasks" in said[1]


def test_a_run_that_does_not_say_what_it_was_made_of_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "made_of.json").write_text("[")
    assert all("other parameters or inputs" in said for said in told(tmp_path)) and len(told(tmp_path)) == 2
