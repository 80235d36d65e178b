"""Stage evaluate_policy: the trained policy against the base and its references on the held-out tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.config import Params
from envace.errors import DataError
from envace.files import read_json, write_json
from envace.stage import stage_main

TASKS, BASE, POLICY = Path("data/prepared/tasks.parquet"), Path("models/base"), Path("models/policy")
REFERENCES, REPORT = Path("models/references"), Path("reports/evaluation")


def run(params: Params) -> None:
    """Write reports/evaluation: metrics.json and the rollouts behind it."""
    from envace.data.task_reader import read_tasks
    from envace.evaluation.evaluate import LABELS, evaluate_policies
    from envace.evaluation.margins import margins
    from envace.rollout.records import write_rollouts

    tasks = read_tasks(TASKS, splits=("heldout", "hard"))
    if not any(t.split == "heldout" for t in tasks):
        raise DataError(f"{TASKS}: no held-out task; set fetch_data.heldout_path or prepare_data.heldout_share")
    folders = {"base": BASE, "trained": POLICY}
    folders |= {name: REFERENCES / name for name in read_json(REFERENCES / "index.json")["policies"]}
    metrics: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    results = evaluate_policies(
        folders, tasks, evaluation=params.evaluate_policy, rollout=params.rollout, reward=params.reward
    )
    for name, result in results:
        metrics[name] = result.metrics
        rows.extend(result.rows)
        print(f"{name}: {_describe(result.metrics['heldout'])}", flush=True)
    write_rollouts(REPORT / "rollouts.parquet", rows, LABELS)
    change = margins(metrics["base"]["heldout"], metrics["trained"]["heldout"])
    write_json(REPORT / "metrics.json", {"policies": metrics, "margins": change})


def _describe(heldout: dict[str, Any]) -> str:
    figures = heldout["true"] or heldout["rehearsed"]
    if figures is None:
        return "no held-out task has an outcome that code can score"
    where = "tools executed by code" if heldout["true"] else "rehearsed only: these tasks have no executable world"
    return f"held-out reward {figures['reward']:.3f}, success {figures['success']:.3f} ({where})"


if __name__ == "__main__":
    stage_main("evaluate_policy", run)
