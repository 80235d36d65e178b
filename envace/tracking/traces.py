"""Sampled rollouts as traces of MLflow: a span a rollout, in it a span each turn, act output, and rehearsed result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envace.files import sha256_text
from envace.rollout.records import read_rollouts
from envace.tracking.runs import NO_REPOSITORY
from envace.tracking.secrets import Scrub

ROLLOUTS = {
    "training": Path("reports/training/rollouts.parquet"),
    "evaluation": Path("reports/evaluation/rollouts.parquet"),
}
SAMPLE = 12
"""Rollouts of each file that become traces."""
_LABELS = ("step", "phase", "policy", "split", "environment", "task_id", "rollout_index", "stop_reason")
_TICK_NS = 1_000_000  # spans are laid end to end: rollouts.parquet holds no durations, as no output may


def sample(rows: Sequence[dict[str, Any]], size: int = SAMPLE) -> list[dict[str, Any]]:
    """The same rows every time, in turn from each step (or policy) with each stop reason, in an order set by hashes."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda r: sha256_text(f"{r['task_id']} {r['rollout_index']}")):
        groups.setdefault((str(row.get("policy", row.get("step"))), row["stop_reason"]), []).append(row)
    chosen: list[dict[str, Any]] = []
    ordered = [groups[key] for key in sorted(groups, key=lambda key: sha256_text("/".join(key)))]
    for depth in range(max(map(len, ordered), default=0)):
        chosen += [group[depth] for group in ordered if depth < len(group)]
        if len(chosen) >= size:
            break
    return chosen[:size]


def log_traces(root: Path, experiment: str, run_id: str, model_id: str | None, scrub: Scrub) -> int:
    """Traces of both files, those that are there, tied to the run and the model. Returns how many."""
    import mlflow

    count = 0
    for kind, path in ROLLOUTS.items():
        if (root / path).is_file():
            for row in sample(read_rollouts(root / path)):
                _trace(row, kind, experiment, run_id, model_id, scrub)
                count += 1
    mlflow.flush_trace_async_logging()
    return count


def _trace(row: dict[str, Any], kind: str, experiment: str, run_id: str, model_id: str | None, scrub: Scrub) -> None:
    import mlflow
    from mlflow.entities import SpanType

    clock = time.time_ns()
    about = {**NO_REPOSITORY, "mlflow.sourceRun": run_id} | ({"mlflow.modelId": model_id} if model_id else {})
    labels = {name: str(row[name]) for name in _LABELS if name in row}
    whole = mlflow.start_span_no_context(
        f"{kind} rollout",
        SpanType.AGENT,
        inputs=scrub({"task_id": row["task_id"], "user": [turn["user"] for turn in row["turns"]]}),
        attributes=labels,
        tags={"kind": kind, **labels},
        metadata=about,
        experiment_id=experiment,
        start_time_ns=clock,
    )
    for index, turn in enumerate(row["turns"]):
        clock += _TICK_NS  # each begins after what it lies in, which is the order in which MLflow shows them
        said = [output for output in row["outputs"] if output["turn_index"] == index]
        parent = mlflow.start_span_no_context(
            f"turn {index + 1}", SpanType.CHAIN, whole, inputs=scrub(turn["user"]), start_time_ns=clock
        )
        shown = turn["user"]
        for output in said:
            clock += _TICK_NS
            acts = output["role"] == "act"
            span = mlflow.start_span_no_context(
                output["role"],
                SpanType.LLM if acts else SpanType.TOOL,
                parent,
                inputs=scrub(shown),
                attributes={"prompt_tokens": output["prompt_tokens"], "tokens": output["tokens"]},
                start_time_ns=clock,
            )
            clock += _TICK_NS
            span.end(outputs=scrub(output["text"]), end_time_ns=clock)
            shown = output["text"]
        parent.end(outputs=scrub({"reply": turn["reply"], "score": turn["score"]}), end_time_ns=clock)
    finish = {name: row[name] for name in ("reward", "success", "stop_reason", "error")}
    whole.end(outputs=scrub(finish), status="OK", end_time_ns=clock)
