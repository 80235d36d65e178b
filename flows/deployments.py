"""Registers what prefect.yaml says with the server, and what keeps it from running twice or hanging for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from envace.errors import StageError
from envace.processes import child_setup
from flows.server import require_answer, use_running_server

POOL = "envace"
DEAD_RUNS = "envace: a run that gives no sign of life is crashed"
_SILENCE = timedelta(seconds=75)  # of two heartbeats of 30 s and a bit; the server looks every few seconds


def require_server(root: Path) -> None:
    """Raises StageError where no Prefect server is up, or the one that is named does not answer."""
    if not use_running_server(root):
        raise StageError(
            "no Prefect server is up; start one with `make ui` in another terminal, or set PREFECT_API_URL to yours"
        )
    require_answer()


def require_deployed(root: Path) -> None:
    """Raises StageError where no server is up or nothing is deployed on it."""
    require_server(root)
    if not deployed():
        raise StageError("nothing is deployed yet; run `envace deploy` first")


def deploy(root: Path = Path()) -> list[str]:
    """Create or update the pool, the limits, the automation and all deployments. Returns the deployments' names."""
    require_server(root)
    _pool_and_limits()
    _crash_dead_runs()
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    done = subprocess.run(
        command,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        preexec_fn=child_setup(os.getpid()),
    )
    if done.returncode:
        raise StageError(f"prefect deploy failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")
    return deployed()


def deployed() -> list[str]:
    """The deployments in the pool, as flow/deployment."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName

    with get_client(sync_client=True) as client:
        found = client.read_deployments(work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[POOL])))
        return sorted(f"{client.read_flow(d.flow_id).name}/{d.name}" for d in found)


def start(name: str, root: Path = Path()) -> str:
    """Ask for a run of a deployment now. Returns in words what has become of that. Raises StageError."""
    require_server(root)
    from prefect.deployments import run_deployment

    known = deployed()
    full = next((each for each in known if name in (each, each.partition("/")[2])), None)
    if full is None:
        raise StageError(f"{name}: not deployed; there are: {', '.join(known) or 'none (run `envace deploy`)'}")
    run = run_deployment(full, timeout=0)
    return f"run {run.name} of {full} asked for; `envace worker` takes it, the page shows it"  # type: ignore[union-attr]


def _pool_and_limits() -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.exceptions import ObjectAlreadyExists
    from prefect.workers.process import ProcessWorker

    from flows.stage_task import GPU

    template = ProcessWorker.get_default_base_job_template()
    with get_client(sync_client=True) as client:
        try:
            client.create_work_pool(
                WorkPoolCreate(name=POOL, type="process", concurrency_limit=1, base_job_template=template)
            )
        except ObjectAlreadyExists:
            client.update_work_pool(POOL, WorkPoolUpdate(concurrency_limit=1))
        client.upsert_global_concurrency_limit_by_name(GPU, 1)


def _crash_dead_runs() -> None:
    """An automation, so that it works while no process of ours is there to notice."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    ends = ("Completed", "Failed", "Cancelled", "Crashed")
    trigger = EventTrigger(
        after={"prefect.flow-run.heartbeat"},
        expect={"prefect.flow-run.heartbeat", *(f"prefect.flow-run.{end}" for end in ends)},
        match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=_SILENCE,
    )
    message = f"no sign of life for {_SILENCE.total_seconds():.0f} s"
    crash = ChangeFlowRunState(name=None, state=StateType.CRASHED, message=message, force=False)
    wanted = AutomationCore(name=DEAD_RUNS, trigger=trigger, actions=[crash])
    with get_client(sync_client=True) as client:
        known = client.read_automations_by_name(DEAD_RUNS)
        if known:
            client.update_automation(known[0].id, wanted)
        else:
            client.create_automation(wanted)
