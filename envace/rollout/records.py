"""Rollouts as a Parquet table: what reports compute their numbers from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from envace.files import atomic_path, compact_json
from envace.types import Output, Rollout, StepRecord

JUDGE_WORK = "judge_work"
NOT_FINITE = "not_finite"


def rollout_row(rollout: Rollout, **labels: str | int) -> dict[str, Any]:
    """One rollout as a row; `labels` are the table's leading columns (for instance step, phase).

    `judge_work`, where an endpoint was needed, is no column: it holds durations, which no table may. Nor is
    `not_finite`, which is there where it is true: a training ends with such a rollout.
    """
    assert rollout.stop_reason is not None
    turns = [
        {
            "user": t.user_message,
            "steps": [_step(s) for s in t.steps],
            "reply": t.reply,
            "score": t.score,
            "satisfied": t.satisfied,
            "verdicts": {criterion: verdict.value for criterion, verdict in t.verdicts.items()},
            **({"unknown_causes": t.unknown_causes} if t.unknown_causes else {}),
        }
        for t in rollout.turns
    ]
    outputs = [
        {
            "role": o.role.value,
            "turn_index": o.turn_index,
            "text": o.text,
            **_tokens(o),
        }
        for o in rollout.outputs
    ]
    return {
        **labels,
        "task_id": rollout.task_id,
        "rollout_index": rollout.rollout_index,
        "reward": rollout.reward,
        "success": rollout.success,
        "stop_reason": rollout.stop_reason.value,
        "error": rollout.error,
        "turns": compact_json(turns),
        "outputs": outputs,
        **_judge_work(rollout),
        **({NOT_FINITE: True} if rollout.not_finite else {}),
    }


def write_rollouts(target: Path, rows: Sequence[dict[str, Any]], labels: Iterable[str]) -> None:
    """Write rows of `rollout_row` sorted by their labels, task and index. The same rows give the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    label_names = list(labels)
    schema = _schema(label_names)
    ordered = sorted(rows, key=lambda r: [r[n] for n in (*label_names, "task_id", "rollout_index")])
    with atomic_path(target) as part:
        pq.write_table(pa.Table.from_pylist(ordered, schema=schema), part, compression="zstd")


def read_rollouts(path: Path) -> list[dict[str, Any]]:
    """Rows as they were written, `turns` decoded."""
    import pyarrow.parquet as pq

    rows = pq.read_table(path).to_pylist()
    for row in rows:
        row["turns"] = json.loads(row["turns"])
    return rows


def _judge_work(rollout: Rollout) -> dict[str, dict[str, float]]:
    works = [t.judge_work for t in rollout.turns if t.judge_work]
    return {JUDGE_WORK: {name: sum(work[name] for work in works) for name in works[0]}} if works else {}


def _step(step: StepRecord) -> dict[str, Any]:
    return {
        "reasoning": step.reasoning,
        "reply": step.reply,
        "calls": [{"name": c.tool_name, "arguments": json.loads(c.arguments)} for c in step.calls],
        "observations": [{"source": o.source, "content": o.content} for o in step.observations],
    }


def _tokens(output: Output) -> dict[str, int | None]:
    if output.is_trainable:
        counts = (len(output.prompt_ids), len(output.token_ids), output.shared_tokens)
    else:  # of a chat endpoint: what it says, where it says something
        usage = output.engine_fields
        counts = (usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), None)
    return dict(zip(("prompt_tokens", "tokens", "shared_tokens"), counts, strict=True))


def _schema(labels: Sequence[str]) -> Any:
    import pyarrow as pa

    output = pa.struct(
        [
            ("role", pa.string()),
            ("turn_index", pa.int32()),
            ("text", pa.string()),
            ("prompt_tokens", pa.int32()),
            ("tokens", pa.int32()),
            ("shared_tokens", pa.int32()),
        ]
    )
    return pa.schema(
        [
            *((name, pa.int32() if name == "step" else pa.string()) for name in labels),
            ("task_id", pa.string()),
            ("rollout_index", pa.int32()),
            ("reward", pa.float64()),
            ("success", pa.bool_()),
            ("stop_reason", pa.string()),
            ("error", pa.string()),
            ("turns", pa.string()),
            ("outputs", pa.list_(output)),
        ]
    )
