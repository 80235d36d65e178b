"""Tasks as the Parquet rows that verl's data set reads: one row a task, the whole task as JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envace.files import atomic_path
from envace.types import Task


def write_dataset(target: Path, tasks: Sequence[Task], phase: str) -> None:
    """Write `tasks` for a phase ("train" or "validation"). Row order is task order; `index` names the row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "data_source": phase,
            "prompt": [{"role": "user", "content": task.turns[0].user_message}],
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": index, "phase": phase, "task": task.model_dump_json()},
        }
        for index, task in enumerate(tasks)
    ]
    with atomic_path(target) as part:
        pq.write_table(pa.Table.from_pylist(rows), part)
