"""Runs of the real harness: one driver process for several runs, so that the harness is imported once a session."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envace.benchmarks.bfcl import BFCL
from envace.benchmarks.install import is_installed, venv_python
from envace.benchmarks.metrics import metrics
from envace.benchmarks.process import driver_environment
from envace.benchmarks.protocol import (
    DRIVER_REPORT,
    SPEC,
    Agent,
    DriverReport,
    Harness,
    Limits,
    Metrics,
    ModelEndpoint,
    Row,
    Sampling,
    Spec,
)
from envace.benchmarks.run import read_rows
from envace.files import read_json, write_json
from tests.conftest import ROOT

HARNESS = Harness(name=BFCL.package, kind="pypi", version=BFCL.version)


@dataclass(slots=True)
class Ran:
    """What a run has left."""

    folder: Path
    rows: dict[str, Row]
    report: DriverReport
    metrics: Metrics


@pytest.fixture(scope="session")
def harness() -> Path:
    """The interpreter of the harness's venv; the test is skipped by name where it is not installed."""
    if not is_installed(BFCL, ROOT):
        pytest.skip("BFCL v4 is not installed (envace benchmark install bfcl)")
    return venv_python(BFCL, ROOT)


@pytest.fixture(scope="session")
def drive(harness: Path) -> Callable[[dict[Path, Spec]], str]:
    """Runs specs in their folders, in one process one after another, then some again. Returns what it printed."""

    def run(specs: dict[Path, Spec], then: Sequence[Path] = (), timeout_s: float = 1500.0) -> str:
        for folder, spec in specs.items():
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / SPEC, spec.model_dump(mode="json"))
        command = [str(harness), str(ROOT / BFCL.folder / BFCL.driver), *map(str, [*specs, *then])]
        environment = driver_environment(ROOT, [], {})
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=ROOT
        )
        return f"{done.stdout}\n{done.stderr}\nexit code {done.returncode}"

    return run


def endpoint(base_url: str, **more: Any) -> ModelEndpoint:
    """A patient enough endpoint without a second try."""
    values: dict[str, Any] = {"timeout_s": 60, "retries": 0, "deadline_s": 60, "concurrency": 1}
    values |= {"breaker_failures": 1000, "breaker_pause_s": 1, "allowed_hosts": ["127.0.0.1"], "api_key_env": None}
    sampling = Sampling(temperature=0.0, max_tokens=100)
    return ModelEndpoint.model_validate({"base_url": base_url, "model": "p", "sampling": sampling, **values, **more})


def spec(kind: str, ids: list[str] | None, policy: ModelEndpoint | None = None, **limits: Any) -> Spec:
    """A run of some tasks."""
    agent = Agent.model_validate({"kind": kind})
    return Spec(benchmark="bfcl", harness=HARNESS, agent=agent, policy=policy, ids=ids, limits=Limits(**limits))


def left(folder: Path, wanted: Spec) -> Ran:
    """Read what a run has left, and derive its metrics as the project does."""
    report = DriverReport.model_validate(read_json(folder / DRIVER_REPORT))
    rows = read_rows(folder)
    return Ran(folder, {row.task_id: row for row in rows}, report, metrics(BFCL, wanted, rows, report))


@pytest.fixture(scope="session")
def questions(harness: Path) -> Callable[[str], list[str]]:
    """The texts of a category's first user messages, in order."""

    def read(category: str) -> list[str]:
        (path,) = harness.parents[1].rglob(f"bfcl_eval/data/BFCL_v4_{category}.json")
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [entry["question"][0][-1]["content"] for entry in entries]

    return read
