"""Conducts an experiment: lays out the runs, does the work that is left, and writes what was found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import envace
from envace.experiment.jobs import Say, StageRunner, run_jobs
from envace.experiment.layout import SHARED, STATE, Layout, Run, once
from envace.experiment.plan import Plan, chosen
from envace.experiment.results import collect
from envace.files import sha256_file, sha256_text
from envace.locks import LOCKS, held

_CODE = ("algo", "chat", "data", "engines", "evaluation", "rewards", "rollout", "tools", "training")


def conduct(
    name: str,
    plan: Plan,
    raw: Mapping[str, Any],
    *,
    root: Path,
    run_stage: StageRunner,
    say: Say,
    arms: list[str],
    seeds: list[int],
) -> dict[str, Any]:
    """Run the chosen arms and seeds (all where none is named) and give the record of all that is finished.

    `raw` are decoded params. Raises ConfigError before anything runs, StageError where a stage fails or another
    experiment or training is under way.
    """
    if name == SHARED:
        raise ValueError(f"a plan cannot be called {SHARED!r}")
    wanted_arms, wanted_seeds = chosen(plan, arms, seeds)
    layout = Layout(name, plan, raw, root, run_stage, say)
    runs = [layout.run(arm, seed) for seed in plan.seeds for arm in plan.arms]
    jobs = once([run for run in runs if run.arm in wanted_arms and run.seed in wanted_seeds])
    locks = root / LOCKS
    with (
        held("experiment", what="an experiment of this project", folder=locks),
        held("gpu", what="this project's trainer", folder=locks),
    ):
        run_jobs(jobs, root.resolve() / STATE, say, code_digest())
    return collect(name, plan, runs)


def state_of(name: str, plan: Plan, raw: Mapping[str, Any], root: Path) -> list[Run]:
    """The runs of a plan that are finished. Raises ConfigError where the plan does not fit the params."""

    def refuse(stage: str, folder: Path) -> None:
        raise AssertionError(f"{stage} must not run")

    layout = Layout(name, plan, raw, root, refuse, lambda text: None)
    runs = [layout.run(arm, seed) for seed in plan.seeds for arm in plan.arms]
    return [run for run in runs if all(job.is_done() for job in run.jobs)]


def code_digest() -> str:
    """Twelve hex digits over the code that trains and evaluates, so that results made by different code are known."""
    root = Path(envace.__file__).parent
    files = sorted(path for part in _CODE for path in (root / part).rglob("*.py"))
    return sha256_text("\n".join(f"{p.relative_to(root).as_posix()} {sha256_file(p)}" for p in files))[:12]
