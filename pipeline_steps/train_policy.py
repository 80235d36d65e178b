"""Stage train_policy: world rehearsal with role-wise GRPO on verl, resumed where the same run stopped."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.stage import stage_main

TASKS, BASE = Path("data/prepared/tasks.parquet"), Path("models/base")
POLICY, TRAINED, STATE = Path("models/policy"), Path("models/trained"), Path(".envace/checkpoints")
REPORTS, TIMINGS = Path("reports/training"), Path("reports/timings/timings.json")


def run(params: Params) -> None:
    """Write models/policy, models/trained and reports/training; reports/timings, which no stage depends on."""
    from envace.data.task_reader import read_tasks
    from envace.training.bring_home import TrainingOutputs
    from envace.training.launch import train

    outputs = TrainingOutputs(POLICY, TRAINED, REPORTS, TIMINGS)
    train(params, read_tasks(TASKS, splits=("train", "validation")), BASE, STATE, outputs)


if __name__ == "__main__":
    stage_main("train_policy", run)
