"""Stage train_policy: world rehearsal with role-wise GRPO on verl, resumed where the same run stopped."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.stage import stage_main

TASKS, BASE = Path("data/prepared/tasks.parquet"), Path("models/base")
POLICY, REPORTS, STATE = Path("models/policy"), Path("reports/training"), Path(".envace/checkpoints")


def run(params: Params) -> None:
    """Write models/policy and reports/training."""
    from envace.data.task_reader import read_tasks
    from envace.training.launch import TrainingOutputs, train

    train(params, read_tasks(TASKS, splits=("train", "validation")), BASE, STATE, TrainingOutputs(POLICY, REPORTS))


if __name__ == "__main__":
    stage_main("train_policy", run)
