"""Step records: whole or not there, forgotten beyond the checkpoint resumed from, collected the same each time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envace.rollout.records import read_rollouts, rollout_row
from envace.training.recorder import Recorder
from envace.types import Output, Role, Rollout, StopReason, TurnRecord


def record(task: str, step: int, reward: float | None = 0.5, phase: str = "train") -> str:
    output = Output(Role.ACT, 0, [1, 2], [3], [-0.5], "Zażółć")
    reason = StopReason.COMPLETED if reward is not None else StopReason.ENGINE_FAILURE
    rollout = Rollout(task, 0, [output], [TurnRecord(0, "Hello")], reason, reward)
    return json.dumps(rollout_row(rollout, step=step, phase=phase))


def write(recorder: Recorder, step: int, phase: str = "train", tasks: str = "ab") -> None:
    rollouts = [record(t, step, phase=phase) for t in tasks]
    recorder.write(phase, step, {"reward/mean": step / 10}, rollouts, {"step": 1.5})


def collected(recorder: Recorder, folder: Path) -> tuple[bytes, bytes]:
    recorder.collect(folder / "metrics.jsonl", folder / "rollouts.parquet")
    return (folder / "metrics.jsonl").read_bytes(), (folder / "rollouts.parquet").read_bytes()


def test_a_step_comes_back_as_it_was_recorded(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records")
    assert recorder.steps("train") == []
    for step in (10, 2, 1):
        write(recorder, step)
    write(recorder, 0, "validation")
    assert recorder.steps("train") == [1, 2, 10] and recorder.steps("validation") == [0]
    assert recorder.metrics("train", 2) == {"step": 2, "phase": "train", "reward/mean": 0.2}
    assert recorder.timings("train", 2) == {"step": 1.5}


@pytest.mark.parametrize("missing", ["metrics.json", "rollouts.jsonl", "timings.json"])
def test_a_step_cut_short_while_it_is_recorded_does_not_count(
    tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import envace.training.recorder as module

    recorder = Recorder(tmp_path / "records")
    write(recorder, 1)
    for name in ("write_text", "write_json"):
        plain = getattr(module, name)

        def until(target: Path, value: object, plain: object = plain) -> None:
            if target.name.endswith(missing):
                raise KeyboardInterrupt
            plain(target, value)  # type: ignore[operator]

        monkeypatch.setattr(module, name, until)
    with pytest.raises(KeyboardInterrupt):
        write(recorder, 2)
    monkeypatch.undo()
    assert recorder.steps("train") == [1]
    write(recorder, 2)
    assert recorder.steps("train") == [1, 2]


def test_what_lies_beyond_the_checkpoint_is_forgotten(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records")
    for step in (1, 2, 3, 4):
        write(recorder, step)
    for step in (0, 2, 4):
        write(recorder, step, "validation")
    recorder.discard_after(2)
    assert recorder.steps("train") == [1, 2] and recorder.steps("validation") == [0, 2]
    assert len(list((tmp_path / "records").iterdir())) == 4 * 3
    recorder.discard_after(-1)
    assert list((tmp_path / "records").iterdir()) == []


def test_the_steps_so_far_stand_beside_the_records_as_json_lines(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records")

    def lines() -> list[tuple[int, str]]:
        read = [json.loads(x) for x in (tmp_path / "metrics.jsonl").read_text().splitlines()]
        return [(x["step"], x["phase"]) for x in read]

    recorder.discard_after(-1)
    assert not list(tmp_path.iterdir())
    write(recorder, 0, "validation")
    assert lines() == [(0, "validation")]
    for step in (1, 2, 3):
        write(recorder, step)
        assert lines()[-1] == (step, "train")
    recorder.discard_after(1)
    assert lines() == [(0, "validation"), (1, "train")]
    recorder.collect(tmp_path / "reports/metrics.jsonl", tmp_path / "reports/rollouts.parquet")
    assert (tmp_path / "reports/metrics.jsonl").read_bytes() == (tmp_path / "metrics.jsonl").read_bytes()


def test_collecting_does_not_depend_on_the_order_of_recording(tmp_path: Path) -> None:
    forward, backward = Recorder(tmp_path / "a/records"), Recorder(tmp_path / "b/records")
    for step in (1, 2, 3):
        write(forward, step, tasks="abc")
        write(backward, 4 - step, tasks="cba")
    for recorder in (forward, backward):
        write(recorder, 0, "validation")
    assert collected(forward, tmp_path / "x") == collected(backward, tmp_path / "y")


def test_a_repeated_step_replaces_the_earlier_one(tmp_path: Path) -> None:
    once, twice = Recorder(tmp_path / "a/records"), Recorder(tmp_path / "b/records")
    write(once, 1)
    write(twice, 1, tasks="abcdef")
    write(twice, 1)
    assert collected(once, tmp_path / "x") == collected(twice, tmp_path / "y")


def test_lines_and_rows_are_in_order_and_hold_no_durations(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records")
    for step in (2, 1):
        write(recorder, step)
    write(recorder, 0, "validation")
    write(recorder, 2, "validation")
    lines = recorder.collect(tmp_path / "metrics.jsonl", tmp_path / "rollouts.parquet")
    assert [(x["step"], x["phase"]) for x in lines] == [
        (0, "validation"),
        (1, "train"),
        (2, "train"),
        (2, "validation"),
    ]
    assert [json.loads(x) for x in (tmp_path / "metrics.jsonl").read_text().splitlines()] == lines
    assert "1.5" not in (tmp_path / "metrics.jsonl").read_text()
    rows = read_rollouts(tmp_path / "rollouts.parquet")
    assert len(rows) == 8 and rows[0]["outputs"][0]["text"] == "Zażółć"


ENDLESS = """
import json, sys
from pathlib import Path
from envace.training.recorder import Recorder
recorder, step = Recorder(Path(sys.argv[1]) / "records"), 0
rollouts = [json.dumps({"reward": i / 7, "text": "x" * 2000}) for i in range(20)]
while True:
    step += 1
    recorder.write("train", step, {"reward/mean": step / 1000}, rollouts, {"step": 1.0})
    print(step, flush=True)
"""


def test_a_kill_loses_at_most_the_step_that_was_being_recorded(tmp_path: Path) -> None:
    for attempt in range(8):
        folder = tmp_path / str(attempt)
        command = [sys.executable, "-c", ENDLESS, str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        told = int(process.stdout.readline())
        time.sleep(0.003 * attempt)
        process.kill()
        told = max([told, *(int(line) for line in process.stdout.read().split())])
        process.wait()
        recorder = Recorder(folder / "records")
        steps = recorder.steps("train")
        assert steps == list(range(1, len(steps) + 1)) and told <= len(steps) <= told + 1
        for step in steps:
            assert recorder.metrics("train", step) == {"step": step, "phase": "train", "reward/mean": step / 1000}
            assert recorder.timings("train", step) == {"step": 1.0}
            lines = (folder / f"records/train-{step:06d}.rollouts.jsonl").read_text().splitlines()
            assert len([json.loads(line) for line in lines]) == 20
        told_lines = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert told_lines == steps[: len(told_lines)] and len(told_lines) >= told


def test_a_figure_that_is_no_number_is_refused_rather_than_stored(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records")
    with pytest.raises(ValueError):
        recorder.write("train", 1, {"reward/mean": float("nan")}, [], {})
    assert recorder.steps("train") == []
