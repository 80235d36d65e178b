"""Starts τ²-bench's driver on specs, several in one process, and reads what it left."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envace.benchmarks.install import is_installed, venv_python
from envace.benchmarks.metrics import metrics
from envace.benchmarks.process import driver_environment
from envace.benchmarks.protocol import DRIVER_REPORT, SPEC, Agent, DriverReport, Harness, Metrics, Row, Spec
from envace.benchmarks.run import read_rows
from envace.benchmarks.tau2 import TAU2
from envace.files import read_json, write_json
from flows.benchmark_request import checkout_harness

ROOT = Path(__file__).resolve().parents[3]
CHECKOUT = "ENVACE_TAU2_CHECKOUT"


@dataclass(frozen=True)
class Outcome:
    """What one run left."""

    rows: dict[str, Row]
    report: DriverReport
    metrics: Metrics


def needs_harness() -> None:
    """Skip, by name, where the harness is not installed."""
    if not is_installed(TAU2, ROOT):
        pytest.skip("τ²-bench is not installed (envace benchmark install tau2)")


def checkout_or_skip() -> Harness:
    """The sources of v1.0.1 in the folder that `CHECKOUT` names; skips, by name, without it."""
    needs_harness()
    if not (folder := os.environ.get(CHECKOUT)):
        pytest.skip(f"{CHECKOUT} does not name a checkout of tau2-bench v1.0.1")
    return checkout_harness(TAU2, Path(folder))


def spec(agent: str, harness: Harness | None = None, **fields: Any) -> Spec:
    """A spec of the installed version, or of `harness`."""
    harness = harness or Harness(name=TAU2.package, kind="pypi", version=TAU2.version)
    return Spec(benchmark="tau2", harness=harness, agent=Agent.model_validate({"kind": agent}), **fields)


def endpoint(base_url: str, model: str) -> dict[str, Any]:
    """A policy's endpoint that is asked once."""
    return {
        "base_url": base_url,
        "model": model,
        "api_key_env": None,
        "allowed_hosts": ["127.0.0.1"],
        "timeout_s": 20,
        "retries": 0,
        "deadline_s": 30,
        "concurrency": 2,
        "breaker_failures": 10,
        "breaker_pause_s": 1,
        "sampling": {"temperature": 0, "max_tokens": 64},
    }


def drive(folder: Path, specs: Mapping[str, Spec], timeout_s: float) -> tuple[int, dict[str, Outcome]]:
    """Run them in `folder`/NAME one after another in one driver. Returns its exit code and what each left."""
    for name, each in specs.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        write_json(folder / name / SPEC, each.model_dump(mode="json"))
    command = [str(venv_python(TAU2, ROOT)), str(ROOT / TAU2.folder / TAU2.driver)]
    done = subprocess.run(
        command + [str(folder / name) for name in specs],
        env=driver_environment(ROOT, [], TAU2.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode in (0, 3), done.stdout[-4000:]
    found = {}
    for name, each in specs.items():
        rows = read_rows(folder / name)
        report = DriverReport.model_validate(read_json(folder / name / DRIVER_REPORT))
        found[name] = Outcome({row.task_id: row for row in rows}, report, metrics(TAU2, each, rows, report))
    return done.returncode, found
