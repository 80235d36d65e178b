"""Figures of a public benchmark reach the store, the registered version, and through its tags the gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envace.benchmarks.run import run_benchmark
from envace.config import Params
from envace.errors import TrackingError
from envace.files import read_json
from envace.tracking.gate import refusal
from envace.tracking.public_benchmark import benchmark_scores, record_benchmark
from envace.tracking.register import register
from envace.tracking.store import open_store
from tests.unit.benchmarks.fake_harness import fake_benchmark, fake_spec


def test_a_run_is_recorded_with_the_version_and_usable_by_the_gate(
    finished_project: Callable[..., Path], params: Params, tmp_path: Path
) -> None:
    project = finished_project()
    done = register(params, project)
    folder = tmp_path / "run"
    spec = fake_spec().model_copy(update={"model_version": f"{done.model_name}/1"})
    fake = fake_benchmark(tmp_path / "p")
    run_benchmark(fake, spec, folder, print, root=tmp_path / "p")
    run_id = record_benchmark(folder, (done.model_name, "champion"), project)
    client = open_store(project)
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert (run.data.metrics["fake/strict.irrelevance"], run.data.tags["model_version"]) == (50.0, "1")
    assert "fake/strict.overall" not in run.data.metrics  # not run is no 0
    digest = read_json(folder / "provenance.json")["digest"]
    assert run.data.tags["benchmark_sha256"] == digest
    scores = benchmark_scores(client.get_model_version(done.model_name, "1").tags, "fake", "irrelevance")
    assert scores == {digest[:16]: 50.0}
    assert refusal([], {digest[:16]: 60.0}, scores) is None
    assert "does not beat" in str(refusal([], {digest[:16]: 50.0}, scores))
    assert "another benchmark" in str(refusal([], {"0" * 16: 99.0}, scores))
    with pytest.raises(TrackingError, match="no such version"):
        record_benchmark(folder, (done.model_name, "7"), project)
    run_benchmark(fake, fake_spec(), tmp_path / "other", print, root=tmp_path / "p")
    with pytest.raises(TrackingError, match="no registered version, not of"):
        record_benchmark(tmp_path / "other", (done.model_name, "1"), project)
