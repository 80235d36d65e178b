"""Stage evaluate_policy: the trained policy against the base and its references on the held-out tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.config import Params
from envace.errors import DataError
from envace.files import read_json, write_json
from envace.stage import stage_main

TASKS, REPORT = Path("data/prepared/tasks.parquet"), Path("reports/evaluation")
BASE, REFERENCES = Path("models/base"), Path("models/references")
POLICY, TRAINED = Path("models/policy"), Path("models/trained")


def run(params: Params) -> None:
    """Write reports/evaluation: metrics.json, results.json (envace.evaluation.results) and the rollouts behind both."""
    from envace.data.task_reader import read_tasks
    from envace.evaluation.evaluate import LABELS, evaluate_policies
    from envace.evaluation.margins import margins
    from envace.evaluation.played import Played, trained_policy
    from envace.evaluation.results import results
    from envace.rollout.records import write_rollouts

    tasks = read_tasks(TASKS, splits=("heldout", "hard"))
    if not any(t.split == "heldout" for t in tasks):
        raise DataError(f"{TASKS}: no held-out task; set fetch_data.heldout_path or prepare_data.heldout_share")
    policies = {"base": Played(BASE), "trained": trained_policy(POLICY, TRAINED)}
    policies |= {name: Played(REFERENCES / name) for name in read_json(REFERENCES / "index.json")["policies"]}
    how: Any = {"evaluation": params.evaluate_policy, "rollout": params.rollout, "reward": params.reward}
    metrics: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for name, result in evaluate_policies(policies, tasks, **how):
        metrics[name] = result.metrics
        rows.extend(result.rows)
        print(f"{name}: {_describe(result.metrics['heldout'])}", flush=True)
    write_rollouts(REPORT / "rollouts.parquet", rows, LABELS)
    change = margins(metrics["base"]["heldout"], metrics["trained"]["heldout"])
    two = [name for name, played in policies.items() if played.rehearse]
    write_json(REPORT / "results.json", results(rows, tasks, list(policies), **how))
    write_json(REPORT / "metrics.json", {"policies": metrics, "margins": change, "one_policy_each_role": two})


def _describe(heldout: dict[str, Any]) -> str:
    figures = heldout["true"] or heldout["rehearsed"]
    if figures is None:
        return "no held-out task has an outcome that code can score"
    where = "tools executed by code" if heldout["true"] else "rehearsed only: these tasks have no executable world"
    if figures["reward"] is None:
        return f"none of {figures['rollouts']} held-out rollouts has a reward: all are unscorable ({where})"
    return f"held-out reward {figures['reward']:.3f}, success {figures['success']:.3f} ({where})"


if __name__ == "__main__":
    stage_main("evaluate_policy", run)
