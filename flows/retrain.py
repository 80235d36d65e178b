"""The flow `retrain`: every stage in order, one Prefect task each. DVC alone decides what has to run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from envace.config import load_params
from envace.errors import EnvaceError
from envace.freshness import checkpoint_changed, source_changed
from envace.locks import held
from envace.report.headline import headline, markdown
from flows import progress
from flows.dvc import STAGES, StageOutcome, run_stage
from pipeline_steps.register_model import is_registered


# No retries: a stage is deterministic, so a second try would fail in the same way.
@task(task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def bring_up_to_date(name: str, force: bool) -> Any:
    """One stage. Ends as `Cached` where DVC found its outputs still valid, as `Completed` where it ran.

    Returns that state, with the StageOutcome as its result.
    """
    logger = get_run_logger()

    def log(text: str) -> None:
        logger.info(text)
        progress.line(text)

    progress.started(name)
    began = time.monotonic()
    try:
        outcome = run_stage(name, force=force, log=log)
    except EnvaceError:
        progress.failed(time.monotonic() - began)
        raise
    progress.ended(outcome)
    message = f"{outcome.outcome} in {outcome.seconds:.1f} s"
    return Completed(name="Completed" if outcome.ran else "Cached", message=message, data=outcome)


@flow(name="retrain")
def retrain(force: list[str] | None = None) -> list[StageOutcome]:
    """Bring all stages of the project in the working directory up to date; `force` names stages to run regardless."""
    params = load_params()
    # what DVC cannot see: files of the user outside its graph, and a model store that was wiped
    outside = {
        "fetch_data": lambda: source_changed(params),
        "build_base_model": lambda: checkpoint_changed(params),
        "register_model": lambda: not is_registered(params),
    }
    outcomes: list[StageOutcome] = []
    with held("retrain", what="this project's pipeline"):
        try:
            for name in STAGES:
                due = name in (force or []) or (name in outside and outside[name]())
                outcomes.append(bring_up_to_date(name, due, return_state=True).result())
        finally:
            _publish(outcomes)
    return outcomes


def _publish(outcomes: list[StageOutcome]) -> None:
    rows = [{"stage": o.stage, "outcome": o.outcome, "seconds": round(o.seconds, 1)} for o in outcomes]
    create_table_artifact(table=rows, key="stages", description="What DVC did with each stage")
    create_markdown_artifact(markdown=markdown(headline(Path())), key="headline", description="Base against trained")
