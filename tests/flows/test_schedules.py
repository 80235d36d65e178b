"""prefect.yaml: that it fits the flows, and that its schedules fire once on every local day, clock changes included."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

ZONES = ("Europe/London", "America/New_York", "Australia/Lord_Howe")  # the last one's change is half an hour


@pytest.fixture(scope="module")
def deployments(project_root: Path) -> list[dict[str, Any]]:
    return yaml.safe_load((project_root / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]


@pytest.fixture(scope="module")
def nightly(deployments: list[dict[str, Any]]) -> str:
    """The cron of the nightly deployment."""
    (schedule,) = next(d for d in deployments if d["name"] == "nightly")["schedules"]
    return schedule["cron"]


def ticks(cron: str, zone: str, start: datetime, days: int) -> list[datetime]:
    """When Prefect's own scheduler would start a run."""
    from prefect.server.schemas.schedules import CronSchedule

    schedule = CronSchedule(cron=cron, timezone=zone)
    found = asyncio.run(schedule.get_dates(n=days + 5, start=start, end=start + timedelta(days=days)))
    return [moment.astimezone(ZoneInfo(zone)) for moment in found]


@pytest.mark.parametrize("zone", ZONES)
def test_the_nightly_run_starts_once_on_every_local_day_of_two_years(nightly: str, zone: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    found: list[datetime] = []
    for day in range(0, 730, 10):  # Prefect plans some days ahead again and again, not two years at once
        found += ticks(nightly, zone, start + timedelta(days=day), 10)
    days = [moment.date() for moment in sorted(set(found))]
    assert days == [(start + timedelta(days=n)).date() for n in range(730)]
    assert {moment.strftime("%H:%M") for moment in found} == {f"{int(nightly.split()[1]):02}:{nightly.split()[0]}"}
    offsets = {moment.utcoffset() for moment in found}
    assert len(offsets) == 2, "both halves of the year were seen"


def test_an_hour_that_is_skipped_would_not_start_at_its_local_time() -> None:
    """Why prefect.yaml asks for an hour that every day has: on 28 March 2027 there is no 01:30 in London."""
    start = datetime(2027, 3, 27, 12, tzinfo=UTC)
    (moment,) = ticks("30 1 * * *", "Europe/London", start, 1)
    assert moment.strftime("%H:%M") != "01:30"


def test_every_deployment_names_a_flow_and_parameters_that_it_has(deployments: list[dict[str, Any]]) -> None:
    assert {d["name"] for d in deployments} == {"nightly", "new-data", "weekly-benchmarks"}
    for deployment in deployments:
        file, _, name = deployment["entrypoint"].partition(":")
        flow = getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)
        known = set(inspect.signature(flow.fn).parameters)
        given = set(deployment["parameters"]).union(*(t["parameters"] for t in deployment.get("triggers", [])))
        assert given <= known, f"{deployment['name']}: {given - known}"


def test_no_deployment_can_run_twice_at_once(deployments: list[dict[str, Any]]) -> None:
    for deployment in deployments:
        assert deployment["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}
        assert deployment["work_pool"]["name"] == "envace"


def test_schedules_have_a_time_zone_that_exists(deployments: list[dict[str, Any]]) -> None:
    zones = [s["timezone"] for d in deployments for s in d.get("schedules", [])]
    assert len(zones) == 2 and all(ZoneInfo(zone) for zone in zones)
