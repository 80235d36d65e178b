"""Which rollouts become traces, and what their spans hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from envace.config import Params
from envace.rollout.records import rollout_row, write_rollouts
from envace.tracking.register import register
from envace.tracking.store import open_store
from envace.tracking.traces import sample
from tests.conftest import rollout, training_rows


def test_every_step_and_stop_reason_is_among_the_sample() -> None:
    rows = training_rows()
    chosen = sample(rows, 6)
    groups = {(row["step"], row["stop_reason"]) for row in rows}
    assert {(row["step"], row["stop_reason"]) for row in chosen} == groups and len(chosen) == 6
    assert sample(list(reversed(rows)), 6) == chosen, "the order of the file does not matter"
    assert sample([], 6) == [] and len(sample(rows, 1000)) == len(rows)


def test_rollouts_are_traces_with_act_and_rehearse_spans(finished_project: Callable[..., Path], params: Params) -> None:
    project = finished_project()
    labels = {"split": "heldout", "environment": "true"}
    rows = [rollout_row(rollout("h0", 0, 1.0), policy=policy, **labels) for policy in ("base", "trained")]
    write_rollouts(project / "reports/evaluation/rollouts.parquet", rows, ("policy", *labels))
    done = register(params, project)
    client = open_store(project)
    experiment = client.get_run(done.run_id).info.experiment_id
    traces = client.search_traces(locations=[experiment], run_id=done.run_id)
    assert {trace.info.tags["kind"] for trace in traces} == {"training", "evaluation"}
    played = next(t for t in traces if t.info.tags["kind"] == "evaluation" and t.info.tags["policy"] == "trained")
    spans = {span.name: span for span in played.data.spans}
    assert [span.name for span in played.data.spans] == ["evaluation rollout", "turn 1", "act", "rehearse", "act"]
    assert spans["rehearse"].outputs == {"weather": "sunny"} and spans["rehearse"].parent_id == spans["turn 1"].span_id
    assert spans["rehearse"].inputs.startswith("<tool_call>")
    assert spans["evaluation rollout"].outputs["stop_reason"] == "completed"
    model = client.get_model_version(done.model_name, done.version).tags["model_id"]
    assert played.info.trace_metadata["mlflow.modelId"] == model
    logged = client.get_logged_model(str(model))
    found = {(m.key, m.dataset_name) for m in logged.metrics or []}
    assert ("evaluation/trained.heldout.true.reward", "data/prepared/tasks.parquet") in found
