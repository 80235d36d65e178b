"""Keeps the records true to what happens: of runs that are due one waits, and one whose process is gone is crashed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from envace.locks import LOCKS
from flows.run_process import alive, lives

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

FLOWS = ("retrain", "evaluate", "promote")
_DUE = timedelta(seconds=2)  # what is younger may be on its way to the worker
_BEGINS = {"RUNNING": timedelta(seconds=60), "CANCELLING": timedelta(minutes=3), "PENDING": timedelta(minutes=5)}
"""How long a run may be in a state without the lock that its process holds once it works."""


def one_waits(client: SyncPrefectClient, pool: str, now: datetime | None = None) -> list[str]:
    """Cancel every run of the pool that is due but the newest of each deployment. Returns their names.

    While one is running for long, a schedule would otherwise leave one for every tick, and all would run one after
    the other in the end.
    """
    from prefect.client.schemas.filters import FlowRunFilter, WorkPoolFilter, WorkPoolFilterName
    from prefect.states import Cancelled

    due = FlowRunFilter.model_validate(
        {
            "state": {"type": {"any_": ["SCHEDULED"]}},
            "next_scheduled_start_time": {"before_": (now or datetime.now(UTC)) - _DUE},
        }
    )
    pools = WorkPoolFilter(name=WorkPoolFilterName(any_=[pool]))
    waiting: dict[object, list[FlowRun]] = {}
    for run in client.read_flow_runs(flow_run_filter=due, work_pool_filter=pools):
        waiting.setdefault(run.deployment_id, []).append(run)
    cancelled = []
    for runs in waiting.values():
        runs.sort(key=lambda run: run.next_scheduled_start_time or datetime.min.replace(tzinfo=UTC))
        for run in runs[:-1]:
            client.set_flow_run_state(run.id, Cancelled(message="a later run of this deployment waits already"))
            cancelled.append(run.name)
    return cancelled


def crash_dead(client: SyncPrefectClient, root: Path, now: datetime | None = None, *, shared: bool = True) -> list[str]:
    """Mark runs of this project whose process is gone as crashed, which frees their place. Returns their names.

    A `shared` server may have runs of other projects, whose flows are called the same: those are left alone.
    """
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName, FlowRunFilter
    from prefect.states import Crashed

    open_runs = FlowRunFilter.model_validate({"state": {"type": {"any_": sorted(_BEGINS)}}})
    ours = FlowFilter(name=FlowFilterName(any_=list(FLOWS)))
    crashed = []
    for run in client.read_flow_runs(flow_filter=ours, flow_run_filter=open_runs):
        if run.state is None or lives(str(run.id), root):
            continue
        if (now or datetime.now(UTC)) - run.state.timestamp < _BEGINS[run.state.type.value]:
            continue
        if shared and not _is_ours(client, run, root):
            continue
        newest = client.read_flow_run(run.id).state  # it may have ended in order since the list was read
        if newest is None or newest.is_final():
            continue
        client.set_flow_run_state(run.id, Crashed(message="its process is gone"), force=True)
        _lock_of(run, root).unlink(missing_ok=True)
        crashed.append(run.name)
    return crashed


def _is_ours(client: SyncPrefectClient, run: FlowRun, root: Path) -> bool:
    """Whether the run's process was here, as the lock that it left tells, or its deployment works in this folder."""
    from prefect.exceptions import ObjectNotFound

    if _lock_of(run, root).exists():
        return True
    if run.deployment_id is None:
        return False
    try:
        steps = client.read_deployment(run.deployment_id).pull_steps or []
    except ObjectNotFound:
        return False
    folders = [step.get("prefect.deployments.steps.set_working_directory", {}).get("directory") for step in steps]
    return str(root.resolve()) in folders  # `envace deploy` writes it so


def _lock_of(run: FlowRun, root: Path) -> Path:
    return root / LOCKS / f"{alive(str(run.id))}.lock"
