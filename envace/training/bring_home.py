"""The end of a training: the best and the last policy, the reports and the timings leave the run's folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import TrainPolicyParams
from envace.errors import TrainingError
from envace.files import atomic_path, sha256_tree, write_json
from envace.training.best import Kept, best_and_last
from envace.training.recorder import Recorder
from envace.training.timings import step_split, write_timings

SECOND = "rehearse"
"""The folder of a second policy in a checkpoint (envace.training.second_policy)."""


@dataclass(frozen=True, slots=True)
class TrainingOutputs:
    """Where the results go. `trained` gets best/ and last/, `policy` a copy of the one that later stages use.

    `timings` is a file that no stage depends on: durations differ from run to run.
    """

    policy: Path
    trained: Path
    reports: Path
    timings: Path


def bring_home(
    params: TrainPolicyParams,
    checkpoints: Path,
    recorder: Recorder,
    outputs: TrainingOutputs,
    *,
    validated: bool,
    more: dict[str, Any],
) -> None:
    """Write all outputs from a finished run. `more` is added to the summary.

    `validated`: there are validation tasks; without them the best policy is the last one.
    Raises TrainingError where a step or the last checkpoint is missing.
    """
    recorded = recorder.steps("train")
    if recorded != list(range(1, params.steps + 1)):
        raise TrainingError(
            f"verl ended after steps {recorded[:1]}..{recorded[-1:]} of 1..{params.steps} without its last "
            "checkpoint; run again to resume"
        )
    best, last = best_and_last(checkpoints, recorder, params.steps)
    best = best if validated else last
    exported = best if params.export == "best" else last
    with atomic_path(outputs.trained) as part:
        for name, kept in (("best", best), ("last", last)):
            shutil.copytree(_policy(kept), part / name)
            second = kept.path / SECOND / "huggingface"
            if second.is_dir():  # method per_role
                shutil.copytree(second, part / f"{name}-{SECOND}")
    with atomic_path(outputs.policy) as part:
        shutil.copytree(_policy(exported), part)
    lines = recorder.collect(outputs.reports / "metrics.jsonl", outputs.reports / "rollouts.parquet")
    chosen = {"best": best.record(), "last": last.record(), "exported": params.export}
    write_json(outputs.reports / "summary.json", {**_summary(lines), **chosen, **more})
    splits = {step: step_split(recorder.timings("train", step), recorder.metrics("train", step)) for step in recorded}
    write_timings(outputs.timings, splits, sha256_tree(outputs.policy))
    print(_describe(best, last, params.export), flush=True)


def _policy(kept: Kept) -> Path:
    """The Hugging Face folder of a checkpoint."""
    folder = kept.path / "actor" / "huggingface"
    if not (folder / "config.json").is_file():
        raise TrainingError(f"the checkpoint of step {kept.step} holds no Hugging Face export; run again to resume")
    return folder


def _summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    train = [line for line in lines if line["phase"] == "train"]
    validation = [line for line in lines if line["phase"] == "validation"]
    return {
        "steps": len(train),
        "first_reward": train[0].get("reward/mean"),
        "last_reward": train[-1].get("reward/mean"),
        "first_validation_reward": validation[0].get("validation/reward/mean") if validation else None,
        "last_validation_reward": validation[-1].get("validation/reward/mean") if validation else None,
    }


def _describe(best: Kept, last: Kept, export: str) -> str:
    def figure(kept: Kept) -> str:
        known = kept.validation_reward is not None
        return f"step {kept.step} (validation reward {kept.validation_reward:.3f})" if known else f"step {kept.step}"

    return f"best: {figure(best)}, last: {figure(last)}; models/policy is the {export} one (train_policy.export)"
