"""Starting, resuming and ending a training run, with verl replaced by a stand-in that writes what verl would write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import envace.training.launch as launch
from envace.config import Params
from envace.errors import DataError, TrainingError
from envace.files import sha256_tree
from envace.rollout.records import rollout_row
from envace.training.best import close_checkpoint
from envace.training.recorder import Recorder
from envace.types import Output, Role, Rollout, StopReason, Task, TurnRecord


class Stopped(Exception):
    """The stand-in was told to end here."""


class Verl:
    """Does to disk what one verl run does; ends before `stop` ("step 3 saved", for instance) where that is set."""

    def __init__(self) -> None:
        self.starts: list[tuple[int, str | None]] = []
        self.stop: str | None = None
        self.validation: dict[int, float] = {}  # rewards other than a tenth of the step

    def __call__(self, params: Params, paths: Any, resume: Path | None, recorder: Recorder, done: int) -> None:
        self.starts.append((done, resume.name if resume else None))
        train = params.train_policy
        if resume is None:
            self._record(recorder, "validation", 0)
        for step in range(done + 1, train.steps + 1):
            self._maybe_stop(f"step {step} begun")
            due = step == train.steps
            folder = paths.checkpoints / f"global_step_{step}"
            if due or step % train.checkpoint_every == 0:
                target = folder / "actor" / "huggingface"
                target.mkdir(parents=True, exist_ok=True)
                (target / "config.json").write_text(json.dumps({"step": step}))
            self._maybe_stop(f"step {step} saved")
            if due or step % train.validate_every == 0:
                self._record(recorder, "validation", step)
            self._record(recorder, "train", step)
            self._maybe_stop(f"step {step} recorded")
            if folder.is_dir():
                close_checkpoint(folder, recorder, train.keep_checkpoints)

    def _maybe_stop(self, point: str) -> None:
        if self.stop == point:
            self.stop = None
            raise Stopped(point)

    def _record(self, recorder: Recorder, phase: str, step: int) -> None:
        reward = step / 10 if phase == "train" else self.validation.get(step, step / 10)
        output = Output(Role.ACT, 0, [1], [2], [0.0], f"step {step}")
        rollout = Rollout("t", 0, [output], [TurnRecord(0, "Hi")], StopReason.COMPLETED, reward)
        name = "reward/mean" if phase == "train" else "validation/reward/mean"
        rows = [json.dumps(rollout_row(rollout, step=step, phase=phase))]
        recorder.write(phase, step, {name: reward}, rows, {"step": 2.0, "gen": 1.0} if phase == "train" else {})


@pytest.fixture
def verl(monkeypatch: pytest.MonkeyPatch) -> Verl:
    stand_in = Verl()
    monkeypatch.setattr(launch, "_run_verl", stand_in)
    return stand_in


@pytest.fixture
def start(
    tmp_path: Path, params: Params, sample_tasks: list[Task], saved_policy: Path, verl: Verl
) -> Callable[..., Path]:
    """Runs a training of five steps with a checkpoint every second one; gives the folder of its outputs."""
    shutil.copytree(saved_policy, tmp_path / "base")
    own = [*sample_tasks[:9], sample_tasks[9].model_copy(update={"split": "validation"})]

    def run(tasks: list[Task] | None = None, **changes: Any) -> Path:
        asked = {"steps": 5, "checkpoint_every": 2, "validate_every": 2, "tasks_per_step": 2} | changes
        changed = params.model_copy(update={"train_policy": params.train_policy.model_copy(update=asked)})
        out = tmp_path / "out"
        outputs = launch.TrainingOutputs(out / "policy", out / "trained", out / "reports", out / "timings.json")
        launch.train(changed, tasks or own, tmp_path / "base", tmp_path / "state", outputs)
        return out

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_run_brings_home_its_policy_and_reports_and_leaves_no_state(
    start: Callable[..., Path], verl: Verl, tmp_path: Path
) -> None:
    out = start()
    assert json.loads((out / "policy/config.json").read_text()) == {"step": 5}
    summary = json.loads((out / "reports/summary.json").read_text())
    lengths = summary.pop("lengths")
    assert lengths["left_out"] == [] and lengths["max_prompt_tokens"] == 512
    assert summary == {
        "steps": 5,
        "first_reward": 0.1,
        "last_reward": 0.5,
        "first_validation_reward": 0.0,
        "last_validation_reward": 0.5,
        "best": {"step": 5, "validation_reward": 0.5},
        "last": {"step": 5, "validation_reward": 0.5},
        "exported": "last",
    }
    timings = json.loads((out / "timings.json").read_text())
    assert len(timings["steps"]) == 5 and timings["mean"]["generation"] == timings["mean"]["waiting"] == 1.0
    assert timings["model_sha256"] == sha256_tree(out / "policy")
    assert verl.starts == [(0, None)] and list((tmp_path / "state").iterdir()) == []


@pytest.mark.parametrize("step", range(1, 6))
@pytest.mark.parametrize("point", ["begun", "saved", "recorded"])
def test_a_run_stopped_anywhere_ends_with_the_same_outputs_when_run_again(
    start: Callable[..., Path], verl: Verl, step: int, point: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = start()
    wanted = contents(out)
    shutil.rmtree(out)
    verl.stop = f"step {step} {point}"
    with pytest.raises(Stopped):
        start()
    capsys.readouterr()
    assert contents(start()) == wanted
    sealed = (step - 1) // 2 * 2
    assert verl.starts[-1] == (sealed, f"global_step_{sealed}" if sealed else None)
    if sealed:
        assert f"resuming after step {sealed} of 5" in capsys.readouterr().out


def test_a_run_stopped_after_its_last_seal_only_brings_its_outputs_home(
    start: Callable[..., Path], verl: Verl, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = contents(start())
    verl.starts.clear()

    def stopped(*_: Any, **__: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(launch, "bring_home", stopped)
        with pytest.raises(Stopped):
            start()
    assert contents(start()) == wanted and len(verl.starts) == 1


def test_a_damaged_checkpoint_is_passed_over_named_and_trained_again(
    start: Callable[..., Path], verl: Verl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = contents(start())
    verl.stop = "step 5 begun"
    with pytest.raises(Stopped):
        start()
    (damaged,) = (tmp_path / "state").glob("*/checkpoints/global_step_4/actor/huggingface/config.json")
    damaged.write_text("{")
    (damaged.parent / "left-over.bin").write_text("x")
    capsys.readouterr()
    assert contents(start()) == wanted
    said = capsys.readouterr().out
    assert "checkpoint of step 4 is not used" in said and "config.json" in said and "resuming after step 2" in said


def policy(folder: Path) -> int:
    """The step whose weights a folder holds."""
    return json.loads((folder / "config.json").read_text())["step"]


@pytest.mark.parametrize("export", ["last", "best"])
@pytest.mark.parametrize("stop", [None, "step 4 saved", "step 5 recorded"])
def test_the_best_and_the_last_come_home_and_params_choose_between_them(
    start: Callable[..., Path], verl: Verl, export: str, stop: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    verl.validation = {2: 0.9, 4: 0.9, 5: 0.7, 0: 0.95}
    if stop:
        verl.stop = stop
        with pytest.raises(Stopped):
            start(export=export)
    out = start(export=export)
    assert (policy(out / "trained/best"), policy(out / "trained/last")) == (2, 5)
    assert policy(out / "policy") == {"best": 2, "last": 5}[export]
    summary = json.loads((out / "reports/summary.json").read_text())
    assert summary["best"] == {"step": 2, "validation_reward": 0.9}
    assert summary["last"] == {"step": 5, "validation_reward": 0.7} and summary["exported"] == export
    assert "best: step 2 (validation reward 0.900), last: step 5" in capsys.readouterr().out


def test_the_best_outlives_the_newest_that_are_kept(start: Callable[..., Path], verl: Verl, tmp_path: Path) -> None:
    verl.validation = {1: 0.9}
    verl.stop = "step 5 begun"
    with pytest.raises(Stopped):
        start(checkpoint_every=1, validate_every=1)
    left = sorted(p.name for p in (tmp_path / "state").glob("*/checkpoints/*"))
    assert left == ["global_step_1", "global_step_3", "global_step_4"]


def test_a_stand_in_for_validation_tasks_chooses_no_best(
    start: Callable[..., Path], verl: Verl, sample_tasks: list[Task]
) -> None:
    verl.validation = {2: 0.9}
    out = start([t.model_copy(update={"split": "train"}) for t in sample_tasks[:4]], export="best")
    assert policy(out / "policy") == policy(out / "trained/best") == 5


def test_a_run_of_other_parameters_is_named_and_kept(
    start: Callable[..., Path], verl: Verl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verl.stop = "step 5 begun"
    with pytest.raises(Stopped):
        start()
    (kept,) = (tmp_path / "state").iterdir()
    capsys.readouterr()
    start(learning_rate=1e-5)
    said = capsys.readouterr().out
    assert f"{kept.resolve()} holds a training" in said.replace(str(kept), str(kept.resolve()))
    assert "train_policy.learning_rate 0.0003" in said and "resuming" not in said and kept.is_dir()


def test_what_can_be_known_to_go_wrong_is_told_before_anything_is_started(
    start: Callable[..., Path], verl: Verl, tmp_path: Path
) -> None:
    (tmp_path / "base" / "tokenizer.json").unlink()
    with pytest.raises(TrainingError, match=r"not started, for 1 reason.*\n.*tokenizer\.json"):
        start()
    assert verl.starts == [] and not (tmp_path / "state").exists()


@pytest.mark.parametrize("change", [{"learning_rate": 1e-5}, {"seed": 1}, {"steps": 6}])
def test_a_changed_parameter_starts_anew_and_never_resumes(
    start: Callable[..., Path], verl: Verl, change: dict[str, Any]
) -> None:
    verl.stop = "step 5 begun"
    with pytest.raises(Stopped):
        start()
    start(**change)
    assert verl.starts == [(0, None), (0, None)]


def test_other_tasks_or_another_base_start_anew(
    start: Callable[..., Path], verl: Verl, sample_tasks: list[Task], tmp_path: Path
) -> None:
    for change in ("tasks", "base"):
        verl.stop = "step 5 begun"
        with pytest.raises(Stopped):
            start()
        if change == "tasks":
            start(sample_tasks[1:11])
        else:
            (tmp_path / "base" / "another.txt").write_text("{ }")
            start()
        assert verl.starts[-1] == (0, None)


def test_tasks_with_a_checklist_alone_are_trained_on(params: Params, sample_tasks: list[Task]) -> None:
    from envace.training.launch import _scorable

    tasks = [t.model_copy(update={"outcome": None}) for t in sample_tasks[:5]]
    assert all(t.rubrics for t in tasks) and _scorable(params, tasks, "train") == tasks
    verifiable = params.reward.model_copy(update={"kind": "verifiable"})
    assert _scorable(params.model_copy(update={"reward": verifiable}), tasks, "train") == []


def test_too_few_tasks_that_code_can_score_are_refused(start: Callable[..., Path], sample_tasks: list[Task]) -> None:
    tasks = [t.model_copy(update={"outcome": None, "rubrics": []}) for t in sample_tasks[:9]] + [sample_tasks[9]]
    with pytest.raises(DataError, match=r"1 training tasks.*tasks_per_step"):
        start(tasks)


def test_a_run_that_trained_nothing_fails_loudly(
    start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(launch, "_run_verl", lambda *_: None)
    with pytest.raises(TrainingError, match="without its last checkpoint"):
        start()
    assert not (tmp_path / "out").exists()


def test_only_the_train_and_validation_splits_reach_verl(
    start: Callable[..., Path], verl: Verl, sample_tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, list[str]] = {}
    monkeypatch.setattr(
        launch, "write_dataset", lambda path, tasks, phase: seen.update({phase: [t.split for t in tasks]})
    )
    splits = ["train"] * 4 + ["validation"] * 3 + ["heldout"] * 2 + ["hard"]
    start([t.model_copy(update={"split": s}) for t, s in zip(sample_tasks, splits, strict=False)])
    assert seen == {"train": ["train"] * 4, "validation": ["validation"] * 3}
    start([t.model_copy(update={"split": "train"}) for t in sample_tasks[:4]])
    assert seen["validation"] == ["train"]  # verl cannot start without validation rows
