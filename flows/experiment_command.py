"""`envace experiment`: arms and seeds of a plan, each trained and evaluated by the pipeline's own stages, compared."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from envace.experiment.plan import Plan


def experiment(
    plan: Annotated[str | None, typer.Argument(help="A plan of the folder experiments, or the path of one.")] = None,
    list_plans: Annotated[bool, typer.Option("--list", help="Say which plans there are and what is finished.")] = False,
    arm: Annotated[list[str] | None, typer.Option(help="Run this arm only; repeatable.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Run this seed only; repeatable.")] = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Put the results into docs/results.md and docs/pictures too.")
    ] = False,
) -> None:
    """Train and evaluate the arms of a plan over its seeds, and compare them task by task.

    Finished arms are kept and a stopped one goes on, so the same command continues. The project's own data, models and
    reports are never touched: all work lies in .envace/experiments, the results in reports/experiment.
    """
    from envace.config import load_params
    from envace.experiment.plan import load_plan, plan_path
    from envace.processes import Terminated

    root = Path()
    raw = load_params(root / "params.yaml").model_dump(mode="json")
    if list_plans or plan is None:
        _list(root, raw)
        return
    path = plan_path(plan, root)
    try:
        _run(path.stem, load_plan(path), raw, root, arm or [], seed or [], publish)
    except (KeyboardInterrupt, Terminated):
        _say("stopped; the same command goes on from here")
        raise


def _run(
    name: str, plan: Plan, raw: Mapping[str, Any], root: Path, arms: list[str], seeds: list[int], publish: bool
) -> None:
    from envace.experiment.conduct import conduct
    from envace.experiment.layout import STATE
    from envace.experiment.page import findings
    from envace.experiment.publish import publish as publish_results
    from envace.experiment.publish import write_results
    from envace.processes import adopt_orphans, end_descendants, unwind_on_signals
    from flows.experiment_stages import stage_runner

    adopt_orphans()
    atexit.register(end_descendants)
    unwind_on_signals(45)
    runner = stage_runner(lambda line: _say(f"      {line}"))
    found = conduct(name, plan, raw, root=root, run_stage=runner, say=_say, arms=arms, seeds=seeds)
    folder = write_results(found, root, root / STATE / name)
    for line in ["", *findings(found)]:
        _say(line)
    if found["unfinished"]:
        _say(f"not finished: {'; '.join(found['unfinished'])}")
    _say(f"results: {folder}/results.md")
    if publish:
        _say(f"published in {publish_results(found, root)}")


def _list(root: Path, raw: Mapping[str, Any]) -> None:
    from envace.experiment.conduct import state_of
    from envace.experiment.plan import PLANS, load_plan

    for path in sorted((root / PLANS).glob("*.yaml")):
        plan = load_plan(path)
        finished = {(run.arm, run.seed) for run in state_of(path.stem, plan, raw, root)}
        _say(f"{path.stem}: {plan.title}")
        for name, arm in plan.arms.items():
            told = ", ".join(f"{s} finished" if (name, s) in finished else str(s) for s in plan.seeds)
            _say(f"  {name}: {arm.label} (seeds {told})")


def _say(text: str) -> None:
    print(text, flush=True)
