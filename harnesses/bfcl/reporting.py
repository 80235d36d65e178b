"""What a run leaves for the project: one row a task, and what was used and found."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bfcl_eval.utils import is_memory_prereq

from envace.benchmarks.protocol import DriverReport, Row, Tokens
from harnesses.bfcl.generation import read_results, scenario_of
from harnesses.bfcl.handler import NOTE
from harnesses.bfcl.scoring import Scores
from harnesses.bfcl.tasks import Plan


def rows(plan: Plan, results: Path, scores: Scores, run: int) -> Iterator[Row]:
    """A row for every task of the plan, in its order."""
    notes: dict[str, dict[str, Any]] = {r["id"]: r[NOTE] for _, found in read_results(results) for r in found}
    unwritten = {
        scenario_of(task): note["reason"]
        for task, note in notes.items()
        if is_memory_prereq(task) and note["status"] == "infra_failure"
    }
    for category, ids in plan.wanted.items():
        for task in ids:
            yield _row(run, category, task, notes.get(task), scores, unwritten.get(scenario_of(task)))
    for category, (reason, ids) in plan.missing.items():
        for task in ids:
            yield Row(
                run=run, task_id=task, category=category, score=None, status="not_run", official_counted=False,
                reason=reason,
            )  # fmt: skip


def report(
    plan: Plan, scores: Scores, sandbox: dict[str, Any], aborted: str | None, digests: dict[str, str]
) -> DriverReport:
    """driver.json. `digests`: of the harness's code and data, as pinned."""
    notes = [f"{category}: not run, {reason}" for category, (reason, _) in plan.missing.items()]
    if scores.broken:
        notes.append(f"{len(scores.broken)} results broke the harness's scorer and count as failed")
    if sandbox["network"] != "dropped":
        notes.append(f"executed tools were not cut off from the network: {sandbox['network']}")
    return DriverReport(
        versions={name: version(name) for name in ("bfcl-eval", "openai", "numpy")}
        | {"python": platform.python_version(), "bfcl-eval code": digests["code"]},
        data_sha256={"bfcl_eval/data": digests["data"]},
        sandbox=sandbox,
        official=scores.printed,
        notes=notes,
        aborted=aborted,
    )


def _row(run: int, category: str, task: str, note: dict[str, Any] | None, scores: Scores, unwritten: str | None) -> Row:
    if note is None:
        reason = "not asked any more: too many infrastructure failures"
        return Row(
            run=run, task_id=task, category=category, score=None, status="not_run", official_counted=False,
            reason=reason,
        )  # fmt: skip
    status, reason = note["status"], note["reason"]
    if task in scores.broken and status == "scored":
        status, reason = "model_failure", scores.broken[task]
    if unwritten is not None and status != "infra_failure":
        status, reason = "infra_failure", f"its memory was not filled: {unwritten}"
    return Row(
        run=run,
        task_id=task,
        category=category,
        score=float(scores.correct[task]),
        status=status,
        official_counted=True,
        tokens=Tokens(**note["tokens"]),
        reason=reason or scores.errors.get(task),
        trajectory=note["trajectory"],
    )
