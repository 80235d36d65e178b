"""Which conversations a run has, and which of them an earlier start has finished."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envace.benchmarks.protocol import Row, Spec
from envace.errors import BenchmarkError
from harnesses.tau2.line import Line
from harnesses.tau2.pins import DOMAINS

_UNFINISHED = ("not_run", "infra_failure")
NO_JUDGE = "a model judges this task in this version, and no judge endpoint was given"


@dataclass(frozen=True)
class Job:
    """One conversation: a task of one trial."""

    run: int
    seed: int
    domain: str
    task: Any

    @property
    def task_id(self) -> str:
        """Unique over the domains, which number their tasks alike."""
        return f"{self.domain}/{self.task.id}"

    @property
    def key(self) -> tuple[int, str]:
        """What names its row."""
        return self.run, self.task_id


def chosen(spec: Spec, tasks: dict[str, list[Any]]) -> list[Job]:
    """The spec's conversations in a fixed order. Raises BenchmarkError for a domain or a task that there is not."""
    strange = set(spec.categories or ()) - set(DOMAINS)
    if strange:
        raise BenchmarkError(f"τ²-bench has no domain {', '.join(sorted(strange))}; it has {', '.join(DOMAINS)}")
    jobs = [
        Job(run, seed, domain, task)
        for domain in DOMAINS
        if spec.categories is None or domain in spec.categories
        for run, seed in trial_seeds(spec).items()
        for task in tasks[domain]
    ]
    if spec.ids is None:
        return jobs
    unknown = set(spec.ids) - {job.task_id for job in jobs}
    if unknown:
        raise BenchmarkError(f"τ²-bench has no task {', '.join(sorted(unknown))}; ids are DOMAIN/ID, as in airline/0")
    return [job for job in jobs if job.task_id in spec.ids]


def trial_seeds(spec: Spec) -> dict[int, int]:
    """Run number → seed, drawn as the harness draws them, so that a run has its seed whatever runs along with it."""
    draw = random.Random(spec.seed)
    seeds = [draw.randint(0, 1_000_000) for _ in range(spec.run + spec.trials)]
    return {run: seeds[run] for run in range(spec.run, spec.run + spec.trials)}


def load_tasks(spec: Spec, line: Line) -> dict[str, list[Any]]:
    """The tasks of the domains that the spec asks for, domain by domain."""
    wanted = set(spec.categories or DOMAINS)
    if spec.ids is not None:
        wanted &= {task_id.split("/")[0] for task_id in spec.ids}
    return {domain: line.tasks(domain) if domain in wanted else [] for domain in DOMAINS}


def finished(path: Path, jobs: Iterable[Job]) -> dict[tuple[int, str], Row]:
    """The rows of an earlier start that stand. A last line that was cut off by a kill is no row."""
    if not path.is_file():
        return {}
    wanted, rows = {job.key for job in jobs}, {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = Row.model_validate_json(line)
        except ValidationError:
            continue
        if row.status not in _UNFINISHED and (row.run, row.task_id) in wanted:
            rows[row.run, row.task_id] = row
    return rows
