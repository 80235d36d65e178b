"""Which checkpoints are worth keeping: the newest ones to resume from, and the best one by validation reward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.errors import CheckpointError
from envace.training.checkpoints import fault_of, prune, seal, sealed_checkpoints
from envace.training.recorder import Recorder

REWARD = "validation/reward/mean"


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint, with the validation reward of its step where that step was validated."""

    step: int
    path: Path
    validation_reward: float | None

    def record(self) -> dict[str, Any]:
        """What the training summary says about it."""
        return {"step": self.step, "validation_reward": self.validation_reward}


def close_checkpoint(folder: Path, recorder: Recorder, keep: int) -> None:
    """Seal the newest checkpoint, then remove those that are neither the best so far nor among the `keep` newest."""
    seal(folder)
    steps = list(sealed_checkpoints(folder.parent))
    prune(folder.parent, {*steps[-keep:], *by_validation_reward(recorder, steps)[:1]}, newest=steps[-1])


def by_validation_reward(recorder: Recorder, steps: Iterable[int]) -> list[int]:
    """Those of the steps that have a validation reward, the best first; of equal ones the earlier first."""
    rewards = _rewards(recorder)
    return sorted((step for step in steps if step in rewards), key=lambda step: (-rewards[step], step))


def best_and_last(folder: Path, recorder: Recorder, last_step: int, say: Any = print) -> tuple[Kept, Kept]:
    """The two checkpoints to bring home, compared with their seals. Without any validation the best is the last.

    A best one that is damaged is named and passed over. Raises CheckpointError for a last one that is.
    """
    found, rewards = sealed_checkpoints(folder), _rewards(recorder)
    path = found.get(last_step, folder / f"global_step_{last_step}")
    fault = fault_of(path)
    if fault is not None:
        raise CheckpointError(f"the last checkpoint, of step {last_step}, cannot be used: {fault}; run again to resume")
    last = Kept(last_step, path, rewards.get(last_step))
    for step in by_validation_reward(recorder, found):
        fault = None if step == last_step else fault_of(found[step])
        if fault is None:
            return Kept(step, found[step], rewards[step]), last
        say(f"checkpoint of step {step}, the best by validation reward, is not used: {fault}")
    return last, last


def _rewards(recorder: Recorder) -> dict[int, float]:
    found = {step: recorder.metrics("validation", step).get(REWARD) for step in recorder.steps("validation")}
    return {step: reward for step, reward in found.items() if reward is not None}
