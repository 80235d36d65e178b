"""Which checkpoints stay: the newest ones and the best by validation reward, whatever was pruned or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from envace.errors import CheckpointError
from envace.training.best import REWARD, best_and_last, by_validation_reward, close_checkpoint
from envace.training.checkpoints import SEAL, fault_of
from envace.training.recorder import Recorder


class Run:
    """A run's folder: checkpoints and validation records, made a step at a time."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.checkpoints, self.recorder, self.keep = folder / "checkpoints", Recorder(folder / "records"), keep

    def path(self, step: int) -> Path:
        return self.checkpoints / f"global_step_{step}"

    def step(self, step: int, reward: float | None = None, *, validated: bool = True) -> None:
        """Save a checkpoint, record its validation, close it: the order of a training step."""
        (self.path(step) / "actor").mkdir(parents=True)
        (self.path(step) / "actor" / "model.pt").write_bytes(bytes([step]) * 100)
        if validated:
            figures = {} if reward is None else {REWARD: reward}
            self.recorder.write("validation", step, figures, [], {})
        close_checkpoint(self.path(step), self.recorder, self.keep)

    def left(self) -> list[int]:
        return sorted(int(p.name.rpartition("_")[2]) for p in self.checkpoints.iterdir())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_pruning_keeps_the_newest_and_never_removes_the_best(run: Run) -> None:
    for step, reward in ((5, 0.6), (10, 0.9), (15, 0.7), (20, 0.8), (25, 0.5)):
        run.step(step, reward)
        assert step in run.left() and fault_of(run.path(step)) is None
        assert len(run.left()) <= run.keep + 1
    assert run.left() == [10, 20, 25]
    best, last = best_and_last(run.checkpoints, run.recorder, 25)
    assert (best.step, best.validation_reward, last.step, last.validation_reward) == (10, 0.9, 25, 0.5)
    assert best.record() == {"step": 10, "validation_reward": 0.9}


def test_a_better_one_takes_the_place_of_the_best(run: Run) -> None:
    for step, reward in ((1, 0.9), (2, 0.1), (3, 0.2), (4, 0.95), (5, 0.1), (6, 0.1)):
        run.step(step, reward)
    assert run.left() == [4, 5, 6]


def test_of_equal_rewards_the_earlier_step_is_the_best(run: Run) -> None:
    for step in (1, 2, 3, 4, 5):
        run.step(step, 0.5)
    assert run.left() == [1, 4, 5] and by_validation_reward(run.recorder, [5, 4, 1]) == [1, 4, 5]
    assert best_and_last(run.checkpoints, run.recorder, 5)[0].step == 1


def test_steps_without_a_validation_reward_are_never_the_best(run: Run) -> None:
    run.step(1, validated=False)
    run.step(2, None)  # validated, but nothing could be scored
    run.step(3, 0.0)
    run.step(4, validated=False)
    assert run.left() == [3, 4]
    best, last = best_and_last(run.checkpoints, run.recorder, 4)
    assert (best.step, last.step, last.validation_reward) == (3, 4, None)


def test_without_any_validation_the_best_is_the_last(run: Run) -> None:
    for step in (1, 2, 3):
        run.step(step, validated=False)
    best, last = best_and_last(run.checkpoints, run.recorder, 3)
    assert best == last and last.step == 3 and run.left() == [2, 3]


def test_a_validation_without_a_checkpoint_does_not_count(run: Run) -> None:
    run.recorder.write("validation", 0, {REWARD: 1.0}, [], {})  # the base policy, before training
    run.step(1, 0.4)
    run.recorder.write("validation", 2, {REWARD: 0.9}, [], {})
    run.step(3, 0.3)
    assert best_and_last(run.checkpoints, run.recorder, 3)[0].step == 1


def test_a_damaged_best_one_is_named_and_the_next_best_taken(run: Run) -> None:
    run.keep = 5
    for step, reward in ((1, 0.9), (2, 0.8), (3, 0.1)):
        run.step(step, reward)
    (run.path(1) / "actor" / "model.pt").write_bytes(b"\x02" * 100)
    said: list[str] = []
    best, _ = best_and_last(run.checkpoints, run.recorder, 3, said.append)
    assert best.step == 2 and len(said) == 1 and "step 1" in said[0] and "actor/model.pt" in said[0]


@pytest.mark.parametrize("damage", ["missing", "unsealed", "changed"])
def test_a_damaged_last_one_is_an_error_that_names_the_file(run: Run, damage: str) -> None:
    run.step(1, 0.5)
    if damage == "unsealed":
        (run.path(1) / SEAL).unlink()
    if damage == "changed":
        (run.path(1) / "actor" / "model.pt").write_bytes(b"")
    step = 2 if damage == "missing" else 1
    named = {"missing": "never finished", "unsealed": "never finished", "changed": r"actor/model\.pt"}[damage]
    with pytest.raises(CheckpointError, match=rf"step {step}.*{named}.*run again"):
        best_and_last(run.checkpoints, run.recorder, step)


def test_what_a_killed_removal_has_left_is_removed_with_the_next(run: Run) -> None:
    for step in (1, 2):
        run.step(step, 0.1 * step)
    (run.path(1) / SEAL).unlink()  # killed between the seal and the files
    run.step(3, 0.3)
    assert run.left() == [2, 3]
