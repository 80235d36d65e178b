"""What an experiment found, as one JSON record: every figure of every arm and seed, intervals, spreads, comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from envace.experiment.layout import Run
from envace.experiment.plan import Plan
from envace.experiment.statistics import LEVEL, mean_over_seeds, paired_interval, spread
from envace.files import read_json

ENVIRONMENTS = ("true", "rehearsed")
FIGURES = ("reward", "success")
BOOTSTRAP_SEED = 0
_SHOWN = ("reward", "success", "rollouts", "unscorable", "rehearsals", "malformed_share")
_FIDELITY = ("count", "parses", "exact", "key_f1", "leaf_f1", "error_agreement", "error_recall", "recorded_errors")
_CURVE = {"reward": "validation/reward/mean", "success": "validation/reward/success", "rollouts": "validation/rollouts"}

ByTask = dict[str, dict[str, dict[str, float]]]


def collect(name: str, plan: Plan, runs: Sequence[Run]) -> dict[str, Any]:
    """The record of all runs whose training and evaluations are finished; the others are named in `unfinished`."""
    finished = [run for run in runs if _is_finished(run)]
    arms = {arm: _arm(plan, arm, [r for r in finished if r.arm == arm]) for arm in plan.arms}
    known = {(arm, seed) for arm in plan.arms for seed in plan.seeds}
    done = {(run.arm, run.seed) for run in finished}
    return {
        "plan": name,
        "title": plan.title,
        "question": plan.question,
        "evaluation": plan.evaluation.model_dump(mode="json"),
        "interval": {"level": LEVEL, "resamples": plan.resamples, "seed": BOOTSTRAP_SEED, "over": "tasks"},
        "common": plan.common,
        "unfinished": [f"{arm}, seed {seed}" for arm, seed in sorted(known - done)],
        "code": sorted({str(run.training.record()["code"]) for run in finished}),
        "arms": {arm: record for arm, record in arms.items() if record["seeds"]},
        "comparisons": [_comparison(plan, finished, c.arm, c.against) for c in plan.compare],
    }


def _is_finished(run: Run) -> bool:
    return all(job.is_done() for job in run.jobs)


def _arm(plan: Plan, arm: str, runs: Sequence[Run]) -> dict[str, Any]:
    chosen = plan.arms[arm]
    seeds = {str(run.seed): _seed(plan, run) for run in runs}
    record: dict[str, Any] = chosen.model_dump(mode="json") | {"seeds": seeds}
    if not runs:
        return record
    befores, afters = ([_by_task(run, role) for run in runs] for role in ("start", "trained"))
    record["all_seeds"] = _changes_over_seeds(plan, befores, afters)
    record["spread"] = {
        role: {
            environment: {
                figure: spread([s["policies"][role][environment][figure] for s in seeds.values()]) for figure in FIGURES
            }
            for environment in _shared(*(s["policies"][role] for s in seeds.values()))
        }
        for role in next(iter(seeds.values()))["policies"]
    }
    return record


def _seed(plan: Plan, run: Run) -> dict[str, Any]:
    policies = {role: _figures(read_json(job.folder / "metrics.json")) for role, job in run.evaluations.items()}
    before, after = _by_task(run, "start"), _by_task(run, "trained")
    record: dict[str, Any] = {"policies": policies, "change": _changes(plan, before, after)}
    if "control" in run.evaluations:
        record["control_change"] = _changes(plan, before, _by_task(run, "control"))
    if run.losses:
        losses = {str(steps): read_json(job.folder / "loss.json")["loss"] for steps, job in run.losses.items()}
        record["validation_loss"] = losses
    return record | {"curve": _curve(run.training.folder), "training": _training(run.training.folder)}


def _figures(metrics: dict[str, Any]) -> dict[str, Any]:
    found = {e: {name: metrics[e][name] for name in _SHOWN} for e in ENVIRONMENTS if metrics[e]}
    return found | {"fidelity": {name: metrics["fidelity"][name] for name in _FIDELITY}}


def _by_task(run: Run, role: str) -> ByTask:
    return read_json(run.evaluations[role].folder / "metrics.json")["by_task"]


def _changes(plan: Plan, before: ByTask, after: ByTask) -> dict[str, Any]:
    """The paired interval of each figure, with the tools run by code and rehearsed."""
    return {
        environment: {
            figure: _interval(plan, before[environment][figure], after[environment][figure]) for figure in FIGURES
        }
        for environment in _shared(before, after)
    }


def _interval(plan: Plan, before: dict[str, float], after: dict[str, float]) -> dict[str, Any]:
    both = before.keys() & after.keys()  # a task without a scorable rollout has no figure; how many is recorded
    left_out = len(before.keys() | after.keys()) - len(both)
    pairs = ({t: side[t] for t in both} for side in (before, after))
    found = paired_interval(*pairs, resamples=plan.resamples, seed=BOOTSTRAP_SEED, level=LEVEL)
    return found.record() | {"left_out": left_out}


def _changes_over_seeds(plan: Plan, befores: Sequence[ByTask], afters: Sequence[ByTask]) -> dict[str, Any]:
    """The same for the mean over seeds of each task: how sure it is over tasks, given these seeds."""
    made: dict[str, Any] = {}
    for environment in _shared(*befores, *afters):
        made[environment] = {}
        for figure in FIGURES:
            sides = [[one[environment][figure] for one in side] for side in (befores, afters)]
            shared = set.intersection(*(set(tasks) for side in sides for tasks in side))
            means = [mean_over_seeds([{t: tasks[t] for t in shared} for tasks in side]) for side in sides]
            per_seed = [fmean(a[t] - b[t] for t in shared) for b, a in zip(*sides, strict=True)]
            made[environment][figure] = _interval(plan, *means) | {"over_seeds": spread(per_seed)}
    return made


def _shared(*found: Mapping[str, Any]) -> list[str]:
    """The environments in which all have figures: tools of tasks without a world cannot be run."""
    return [e for e in ENVIRONMENTS if all(e in one for one in found)]


def _comparison(plan: Plan, runs: Sequence[Run], arm: str, against: str) -> dict[str, Any]:
    """Trained policy of `arm` minus that of `against`, in the seeds that both have."""
    found = {(run.arm, run.seed): run for run in runs}
    seeds = [s for s in plan.seeds if (arm, s) in found and (against, s) in found]
    afters, befores = ([_by_task(found[name, s], "trained") for s in seeds] for name in (arm, against))
    record: dict[str, Any] = {"arm": arm, "against": against}
    record["seeds"] = {str(s): _changes(plan, b, a) for s, b, a in zip(seeds, befores, afters, strict=True)}
    return record | ({"all_seeds": _changes_over_seeds(plan, befores, afters)} if seeds else {})


def _curve(folder: Path) -> list[dict[str, float]]:
    """Validation figures by step; tools are run by code there (docs/training.md)."""
    lines = (folder / "reports/training/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found = [line for line in map(json.loads, lines) if line["phase"] == "validation"]
    return [{"step": line["step"], **{name: line[key] for name, key in _CURVE.items()}} for line in found]


def _training(folder: Path) -> dict[str, Any]:
    summary = read_json(folder / "reports/training/summary.json")
    return {name: summary[name] for name in ("steps", "best", "last", "exported") if name in summary}
