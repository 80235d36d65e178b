"""One stage as a Prefect task: its log live, its state `Cached` where DVC had nothing to do."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.concurrency.sync import concurrency
from prefect.states import Completed

from envace.config import Params
from envace.errors import EnvaceError
from envace.tracking.flow_run import FlowRun
from flows import progress
from flows.dvc import STAGES, StageOutcome, changed_stages, run_stage

GPU = "gpu"
"""The limit, over everything that uses this server, of one training at a time; `envace deploy` makes it."""

_TRAINER = "train_policy"
_LEASE_S = 60.0  # what a killed run still holds the slot
_STEP = re.compile(r"\bstep (\d+)/(\d+)\b")
_RETRIES, _RETRY_DELAYS_S = 2, [15.0, 120.0]


def retries_of(name: str, params: Params) -> dict[str, Any]:
    """How often Prefect tries a stage again: only where it reads from a network. The others are deterministic, so a
    second try would fail in the same way.
    """
    sources = {"fetch_data": params.fetch_data.source, "build_base_model": params.build_base_model.source}
    if sources.get(name) != "hub":
        return {}
    return {"retries": _RETRIES, "retry_delay_seconds": _RETRY_DELAYS_S}


@task(task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def bring_up_to_date(name: str, force: bool, folder: str, is_unchanged: bool = False) -> Any:
    """One stage of the project in `folder`. Ends as `Cached` where DVC found its outputs still valid, as `Completed`
    where it ran. Returns that state, with the StageOutcome as its result.

    `is_unchanged`: DVC has said so already, and is not asked again.
    """
    logger = get_run_logger()
    progress.started(name)
    began = time.monotonic()
    with _reported_progress(name) as seen:

        def log(text: str) -> None:
            logger.info(text)
            progress.line(text)
            seen(text)

        try:
            if is_unchanged:
                outcome = StageOutcome(name, "unchanged", time.monotonic() - began)
            else:
                with _slot(name):
                    outcome = run_stage(name, force=force, log=log, root=Path(folder))
        except EnvaceError:
            progress.failed(time.monotonic() - began)
            raise
    progress.ended(outcome)
    message = f"{outcome.outcome} in {outcome.seconds:.1f} s"
    return Completed(name="Completed" if outcome.ran else "Cached", message=message, data=outcome)


@contextmanager
def _slot(name: str) -> Iterator[None]:
    """The trainer's place under the limit `gpu`. Where there is no such limit, the stage's own lock is what guards."""
    if name != _TRAINER:
        yield
        return
    with concurrency(GPU, lease_duration=_LEASE_S, raise_on_lease_renewal_failure=False):
        yield


@contextmanager
def _reported_progress(name: str) -> Iterator[Callable[[str], None]]:
    """A progress artifact that moves with the steps a stage tells of, and is full when the stage has ended well."""
    artifact: Any = create_progress_artifact(progress=0.0, key=name.replace("_", "-"), description=f"stage {name}")
    shown = 0.0

    def seen(text: str) -> None:
        nonlocal shown
        found = _STEP.search(text)
        if not found or not int(found[2]):
            return
        now = round(100.0 * min(1.0, int(found[1]) / int(found[2])), 1)
        if now - shown >= 1.0:
            shown = now
            update_progress_artifact(artifact, progress=now)

    yield seen
    update_progress_artifact(artifact, progress=100.0)


def stage_by_stage(
    due: Mapping[str, Callable[[], bool]],
    force: list[str],
    params: Params,
    folder: Path,
    last: str = STAGES[-1],
    record: FlowRun | None = None,
) -> Iterator[StageOutcome]:
    """Run the stages in order up to `last`. `due` says what to force for reasons that lie outside the graph; `record`
    is the flow's run in MLflow.
    """
    changed, moved = changed_stages(folder), False
    for name in STAGES[: STAGES.index(last) + 1]:
        forced = name in force or (name in due and due[name]())
        # what was true before the first stage that did something is asked anew after it
        is_unchanged = changed is not None and not moved and not forced and name not in changed
        run = bring_up_to_date.with_options(**retries_of(name, params))
        with record.stage(name) if record else nullcontext() as recorded:
            outcome: StageOutcome = run(name, forced, str(folder), is_unchanged, return_state=True).result()
            if recorded is not None:
                recorded.outcome = outcome.outcome
        moved = moved or outcome.outcome != "unchanged"
        yield outcome
