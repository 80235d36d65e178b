"""`envace rollout show`, as a user runs it: what it prints, how it chooses, and what it says when nothing fits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envace.rollout.records import read_rollouts, write_rollouts
from envace.training.recorder import Recorder
from flows.rollout_command import rollout_app


@pytest.fixture
def show(finished_project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs it in a project whose training has ended."""
    monkeypatch.chdir(finished_project())
    monkeypatch.setenv("COLUMNS", "120")
    return lambda *arguments: CliRunner().invoke(rollout_app, ["show", *map(str, arguments)])


def test_it_shows_the_last_training_step_with_advantages(show: Callable[..., Any]) -> None:
    done = show()
    assert done.exit_code == 0, done.output
    assert done.output.count("phase train · step 3") == 4 and "step 2" not in done.output
    assert "REHEARSE" in done.output and "stopped" in done.output
    assert "act +0.050" in done.output and "act -0.050" in done.output and "baseline 0.650" in done.output
    assert "1 more of" in done.output and "--limit" in done.output


def test_it_chooses(show: Callable[..., Any]) -> None:
    assert show("--task", "t1", "--step", 2).output.count("task t1 · rollout") == 2
    validated = show("--phase", "validation")
    assert "task v0" in validated.output and "advantage" not in validated.output
    assert "step 3" in validated.output and "step 0" not in validated.output
    cut = show("--step", 1, "--limit", 1)
    assert cut.output.count("task t") == 1 and "3 more" in cut.output
    assert "baseline 0.250" in cut.output  # of the whole group, though half of it is shown


def test_evaluated_policies_are_chosen_by_name(show: Callable[..., Any]) -> None:
    rows = read_rollouts(Path("reports/training/rollouts.parquet"))[:2]
    for row, policy in zip(rows, ("base", "trained"), strict=True):
        row |= {"policy": policy, "turns": "[]"}
    path = Path("reports/evaluation/rollouts.parquet")
    write_rollouts(path, rows, ("policy",))
    done = show(path, "--policy", "base")
    assert done.exit_code == 0 and "policy base" in done.output and "policy trained" not in done.output
    Path("reports/training/rollouts.parquet").unlink()
    assert "policy trained" in show().output  # the evaluation is what is left


def recorded(run: str, steps: int) -> Path:
    """What a training that was killed after so many steps leaves; the folder of its records."""
    folder = Path(".envace/checkpoints") / run / "records"
    recorder = Recorder(folder)
    for step in range(1, steps + 1):
        rows = [r for r in read_rollouts(Path("whole.parquet")) if (r["step"], r["phase"]) == (step, "train")]
        rollouts = [json.dumps(r | {"turns": json.dumps(r["turns"])}) for r in rows]
        recorder.write("train", step, {"reward/mean": 0.5}, rollouts, {})
    return folder


def test_of_an_unfinished_training_it_shows_the_newest_records_and_says_so(show: Callable[..., Any]) -> None:
    Path("reports/training/rollouts.parquet").rename("whole.parquet")
    older = recorded("a" * 16, 3)
    for path in older.iterdir():
        os.utime(path, (1, 1))
    newer = recorded("b" * 16, 2)
    done = show()
    assert done.exit_code == 0, done.output
    assert "unfinished, up to step 2" in done.output and str(newer) in done.output.replace("\n", "")
    assert done.output.count("phase train · step 2") == 4 and "act +0.050" in done.output
    assert "task t1" in show("--task", "t1", "--step", 1).output
    assert "up to step 3" in show(older).output
    # a step that was being recorded when it was killed does not count
    (newer / "train-000002.metrics.json").unlink()
    assert "up to step 1" in show().output
    Path("whole.parquet").rename("reports/training/rollouts.parquet")
    assert "unfinished" not in show().output


def test_records_that_are_broken_are_told(show: Callable[..., Any]) -> None:
    Path("reports/training/rollouts.parquet").rename("whole.parquet")
    folder = recorded("a" * 16, 1)
    (folder / "train-000001.rollouts.jsonl").write_text('{"turns": ')
    done = show()
    assert done.exit_code == 2 and "not a table of rollouts" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.parquet"], ["nothing.parquet", "no such file"]),
        (["reports/evaluation/rollouts.parquet"], ["evaluate_policy", "envace run"]),
        (["params.yaml"], ["params.yaml", "not a table of rollouts"]),
        (["--task", "nowhere"], ["nowhere", "t0"]),
        (["--step", "99"], ["step 99", "1, 2, 3"]),
        (["--policy", "base"], ["reports/evaluation/rollouts.parquet", "evaluate_policy"]),
        (["reports/training/rollouts.parquet", "--policy", "base"], ["no policy", "leave --policy out"]),
        (["reports"], ["this is a folder"]),
    ],
)
def test_errors_say_what_where_and_what_to_do(show: Callable[..., Any], arguments: list[str], words: list[str]) -> None:
    done = show(*arguments)
    assert done.exit_code == 2 and "Traceback" not in done.output
    assert all(word in done.output for word in words), done.output


def test_foreign_tables_and_older_ones_are_told_apart(show: Callable[..., Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"turns": ["[]"], "other": [1]}), "foreign.parquet")
    assert "no column error, outputs" in show("foreign.parquet").output
    rows = read_rollouts(Path("reports/training/rollouts.parquet"))
    write_rollouts(Path("older.parquet"), [{**r, "turns": '[{"calls": []}]'} for r in rows], ("step", "phase"))
    assert "another version" in show("older.parquet").output


def test_without_any_run_it_names_the_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(rollout_app, ["show"])
    assert done.exit_code == 2
    assert "train_policy" in done.output and "evaluate_policy" in done.output
    assert ".envace/checkpoints/*/records" in done.output
