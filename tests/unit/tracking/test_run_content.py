"""Odd parameters and metrics through a real store: nothing is lost, nothing is stored as what it is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from envace.tracking.names import MAX_VALUE, leaves, path_name, safe_name
from envace.tracking.run_content import log_curve, log_figures, log_inputs, log_parameters
from envace.tracking.runs import tracked_run
from envace.tracking.store import experiment_id, local_path, open_store

LONG = "y" * (MAX_VALUE + 1)
METRICS = {
    "val/pass@1": 0.5,
    "val/pass:40:1": 0.25,
    "τ²/acc": 1.0,
    "a b": 2,
    "a/b": 3,
    "a//b": 4,
    "A/b": 5,
    "n" * 400: 6,
}


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A finished run with everything odd in it, and the folder of its artifacts."""
    root = tmp_path_factory.mktemp("store")
    deep: dict[str, Any] = {"x": 1}
    for _ in range(12):
        deep = {"level": deep}
    client = open_store(root)
    with tracked_run(client, experiment_id(client, "e", root), "odd", {}) as run_id:
        log_parameters(client, run_id, {"deep": deep, "long": LONG, "nan": math.nan, "a.b": 1, "a": {"b": 2}})
        log_curve(client, run_id, [{"step": 1, **METRICS}, {"step": 2, "val/pass@1": math.nan, "kl": math.inf}])
        log_figures(
            client, run_id, {"x": {"y": 1.5, "z": -math.inf}}, prefix="final", dataset=("tasks", "d" * 32 + ".dir")
        )
        log_inputs(client, run_id, {"data/prepared": "d" * 32 + ".dir"}, "training")
    run = client.get_run(run_id)
    return run, local_path(str(run.info.artifact_uri))


def test_parameters_are_all_there_and_whole(logged: tuple[Any, Path]) -> None:
    run, folder = logged
    assert len(run.data.params) == 5
    assert run.data.params[path_name(["level"] * 12 + ["x"]).replace("level", "deep.level", 1)] == "1"
    assert run.data.params["a.b"] == "2" and run.data.params["a:2e:b"] == "1"
    assert run.data.params["nan"] == "NaN"
    assert json.loads((folder / "long_params.json").read_text()) == {"long": LONG}
    whole = json.loads((folder / "params.json").read_text())
    assert len(list(leaves(whole))) == 5 and whole["long"] == LONG


def test_metrics_are_kept_apart_by_a_stated_name(logged: tuple[Any, Path]) -> None:
    run, _ = logged
    assert {name: run.data.metrics[safe_name(name)] for name in METRICS} == METRICS
    assert "val/pass:40:1" in run.data.metrics and "val/pass:3a:40:3a:1" in run.data.metrics


def test_what_is_no_number_is_flagged_and_never_stored_as_one(logged: tuple[Any, Path]) -> None:
    run, folder = logged
    assert all(math.isfinite(value) for value in run.data.metrics.values())
    assert run.data.tags["nonfinite_values"] == "3"
    flagged: dict[str, str] = {}
    for file in sorted((folder / "nonfinite_values").iterdir()):
        flagged |= json.loads(file.read_text())
    assert flagged == {"val/pass:40:1 at step 2": "nan", "kl at step 2": "inf", "final/x.z": "-inf"}


def test_data_versions_are_inputs_and_figures_name_theirs(logged: tuple[Any, Path]) -> None:
    run, _ = logged
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("data/prepared", "d" * 32 + ".dir")
    assert [(t.key, t.value) for t in used.tags] == [("mlflow.data.context", "training")]
    assert run.data.metrics["final/x.y"] == 1.5
