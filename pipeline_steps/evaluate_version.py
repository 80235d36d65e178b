"""Evaluates one checkpoint on the held-out tasks, outside the stage graph: for a version that is registered already.

The folder that ENVACE_EVALUATION names holds request.json ({"checkpoint": folder}); metrics.json and the rollouts
behind it are written there. The flow `evaluate` makes the request and records the outcome with the version.
"""

from __future__ import annotations

import os
from pathlib import Path

from envace.config import Params
from envace.errors import DataError
from envace.files import read_json, write_json
from envace.stage import stage_main

ENVIRONMENT = "ENVACE_EVALUATION"
TASKS = Path("data/prepared/tasks.parquet")
REQUEST, METRICS, ROLLOUTS = "request.json", "metrics.json", "rollouts.parquet"


def run(params: Params) -> None:
    """Write metrics.json (by split, as evaluate_policy does for one policy) and rollouts.parquet."""
    from envace.data.task_reader import read_tasks
    from envace.evaluation.evaluate import LABELS, evaluate_policies
    from envace.evaluation.played import Played
    from envace.rollout.records import write_rollouts

    folder = Path(os.environ.get(ENVIRONMENT, ""))
    if not (folder / REQUEST).is_file():
        raise DataError(f"{folder / REQUEST}: not found; `envace evaluate VERSION` writes it and names it")
    checkpoint = Path(read_json(folder / REQUEST)["checkpoint"])
    tasks = read_tasks(TASKS, splits=("heldout", "hard"))
    if not any(task.split == "heldout" for task in tasks):
        raise DataError(f"{TASKS}: no held-out task; set fetch_data.heldout_path or prepare_data.heldout_share")
    how = {"evaluation": params.evaluate_policy, "rollout": params.rollout, "reward": params.reward}
    ((_, result),) = evaluate_policies({"trained": Played(checkpoint)}, tasks, **how)
    write_rollouts(folder / ROLLOUTS, result.rows, LABELS)
    write_json(folder / METRICS, {"policies": {"trained": result.metrics}})
    for split, figures in result.metrics.items():
        true = figures["true"]
        print(f"{split}: " + (f"reward {true['reward']:.3f}, success {true['success']:.3f}" if true else "no world"))


if __name__ == "__main__":
    stage_main("evaluate_version", run)
