"""Evaluates one policy on the first held-out tasks, as the stage evaluate_policy does; run as a process of its own."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.errors import DataError
from envace.files import read_json, write_json
from envace.stage import stage_main


def run(params: Params) -> None:
    """Write metrics.json and rollouts.parquet for what job.json in the working directory asks."""
    from envace.data.task_reader import read_tasks
    from envace.evaluation.evaluate import LABELS, evaluate_policy
    from envace.evaluation.played import Played, trained_policy
    from envace.rollout.records import write_rollouts

    job = read_json(Path("job.json"))
    split, count = job["split"], job["count"]
    tasks = read_tasks(Path(job["tasks"]), splits=(split,))[:count]
    if len(tasks) < count:
        raise DataError(
            f"{len(tasks)} {split} tasks, and the plan asks for {count}: raise fetch_data.sample, or ask less"
        )
    policy = Path(job["policy"])
    result = evaluate_policy(
        "policy",
        trained_policy(policy, Path(job["exports"])) if "exports" in job else Played(policy),
        tasks=tasks,
        evaluation=params.evaluate_policy,
        rollout=params.rollout,
        reward=params.reward,
    )
    write_rollouts(Path("rollouts.parquet"), result.rows, LABELS)
    figures = result.metrics[split]
    write_json(Path("metrics.json"), {**figures, "by_task": by_task(result.rows)})
    reward, success = (f"{(figures['true'] or figures['rehearsed'])[name]:.3f}" for name in ("reward", "success"))
    print(f"reward {reward}, success {success}")


def by_task(rows: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Environment, figure, task: the mean over the task's scorable rollouts; a task without any is left out."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in rows:
        if row["reward"] is None:
            continue
        place = found.setdefault(row["environment"], {"reward": defaultdict(list), "success": defaultdict(list)})
        place["reward"][row["task_id"]].append(float(row["reward"]))
        place["success"][row["task_id"]].append(float(row["success"]))
    return {
        environment: {
            figure: {task: round(sum(v) / len(v), 9) for task, v in sorted(tasks.items())}
            for figure, tasks in figures.items()
        }
        for environment, figures in sorted(found.items())
    }


if __name__ == "__main__":
    stage_main("evaluation", run)
