"""The queue and the records: one run waits, a run whose process is gone is crashed, one that lives is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from envace.locks import LOCKS, held
from flows.queue import crash_dead, one_waits
from flows.run_process import alive

NOW = datetime.now(UTC)
pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture
def client() -> Iterator[Any]:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def deployed(client: Any) -> Callable[..., tuple[str, Any]]:
    """Makes a pool with one deployment of the flow retrain; returns the pool's name and the deployment's id."""

    def make(pool: str | None = None, folder: Path | None = None) -> tuple[str, Any]:
        from prefect.client.schemas.actions import WorkPoolCreate

        if pool is None:
            pool = f"pool-{uuid4().hex[:8]}"
            client.create_work_pool(WorkPoolCreate(name=pool, type="process", concurrency_limit=1))
        flow = client.create_flow_from_name("retrain")
        steps = [{"prefect.deployments.steps.set_working_directory": {"directory": str(folder)}}] if folder else None
        return pool, client.create_deployment(flow, name=uuid4().hex, work_pool_name=pool, pull_steps=steps)

    return make


def state_of(client: Any, run: Any) -> str:
    return client.read_flow_run(run.id).state.type.value


def test_of_ten_ticks_that_nobody_took_one_is_left(client: Any, deployed: Callable[..., tuple[str, Any]]) -> None:
    from prefect.states import Scheduled

    pool, deployment = deployed()
    ticks = [NOW - timedelta(minutes=5 * n) for n in range(10)]
    runs = [client.create_flow_run_from_deployment(deployment, state=Scheduled(scheduled_time=t)) for t in ticks]
    later = NOW + timedelta(hours=1)
    coming = client.create_flow_run_from_deployment(deployment, state=Scheduled(scheduled_time=later))
    _, other = deployed(pool)
    others = client.create_flow_run_from_deployment(other, state=Scheduled(scheduled_time=ticks[-1]))
    assert len(one_waits(client, pool, NOW + timedelta(seconds=5))) == 9
    assert [state_of(client, run) for run in runs] == ["SCHEDULED"] + ["CANCELLED"] * 9, "the newest one waits"
    assert state_of(client, coming) == state_of(client, others) == "SCHEDULED"
    assert one_waits(client, pool, NOW + timedelta(seconds=5)) == []


def running(client: Any, deployment: Any) -> Any:
    from prefect.states import Running

    run = client.create_flow_run_from_deployment(deployment)
    client.set_flow_run_state(run.id, Running(), force=True)
    return run


def test_a_run_whose_process_is_gone_is_crashed_and_one_that_lives_is_not(
    client: Any, deployed: Callable[..., tuple[str, Any]], tmp_path: Path
) -> None:
    from prefect.states import Completed

    _, deployment = deployed(folder=tmp_path.resolve())
    dead, living, done = (running(client, deployment) for _ in range(3))
    client.set_flow_run_state(done.id, Completed(), force=True)
    soon = datetime.now(UTC) + timedelta(minutes=2)
    with held(alive(str(living.id)), what="this run", folder=tmp_path / LOCKS):
        assert crash_dead(client, tmp_path) == [], "none of them has run long enough to be missed"
        assert dead.name in crash_dead(client, tmp_path, soon)
        assert state_of(client, living) == "RUNNING" and state_of(client, done) == "COMPLETED"
    assert state_of(client, dead) == "CRASHED"
    assert living.name in crash_dead(client, tmp_path, soon)


def test_runs_of_another_project_on_the_same_server_are_left_alone(
    client: Any, deployed: Callable[..., tuple[str, Any]], tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    _, deployment = deployed(folder=there)
    scheduled = running(client, deployment)
    by_hand = running(client, deployed()[1])  # of no known folder, as a run of the command line is
    locks = there / LOCKS
    locks.mkdir(parents=True)
    (locks / f"{alive(str(by_hand.id))}.lock").touch()  # what a killed process leaves
    soon = datetime.now(UTC) + timedelta(minutes=2)
    crash_dead(client, here, soon)
    assert state_of(client, scheduled) == state_of(client, by_hand) == "RUNNING"
    assert {scheduled.name, by_hand.name} <= set(crash_dead(client, there, soon))
    assert state_of(client, scheduled) == state_of(client, by_hand) == "CRASHED"
    unknown = running(client, deployed()[1])
    assert unknown.name in crash_dead(client, here, soon, shared=False), "on a server of its own all are the project's"
