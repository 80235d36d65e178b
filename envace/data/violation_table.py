"""Violations as a Parquet table with an explicit schema, and the flags of kept rows read back from it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from envace.data.checks import Violation


def _schema() -> Any:
    import pyarrow as pa

    text = ("task_id", "file", "severity", "pointer", "detail", "flag")
    whole = {"row_index": pa.int64(), "check_id": pa.int32()}
    names = ("task_id", "file", "row_index", "check_id", "severity", "pointer", "detail", "flag")
    return pa.schema([pa.field(n, pa.string() if n in text else whole[n], nullable=False) for n in names])


def write_violations(path: Path, violations: list[Violation]) -> None:
    """Write the table, sorted by file, row and check. The same violations give the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ordered = sorted(violations, key=lambda v: (v.file, v.row_index, v.check_id, v.pointer, v.detail))
    table = pa.Table.from_pylist([asdict(v) for v in ordered], schema=_schema())
    pq.write_table(table, path, compression="zstd")


def read_flags(path: Path) -> dict[str, list[str]]:
    """Flags by task id, sorted. Only kept rows have any (a rejected row's warnings are not in the table)."""
    import pyarrow.parquet as pq

    flags: dict[str, set[str]] = {}
    for row in pq.read_table(path, columns=["task_id", "flag"]).to_pylist():
        if row["flag"]:
            flags.setdefault(row["task_id"], set()).add(row["flag"])
    return {task_id: sorted(found) for task_id, found in flags.items()}
