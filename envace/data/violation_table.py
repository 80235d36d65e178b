"""Violations as a Parquet table with an explicit schema, written as they are found, and read back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from envace.data.checks import Violation
from envace.data.table_writer import TableWriter

COLUMNS = ("task_id", "file", "row_index", "check_id", "severity", "pointer", "detail", "flag")


def _schema() -> Any:
    import pyarrow as pa

    whole = {"row_index": pa.int64(), "check_id": pa.int32()}
    return pa.schema([pa.field(name, whole.get(name, pa.string()), nullable=False) for name in COLUMNS])


class ViolationWriter:
    """Writes the findings row by row, those of a row in order of checks. Findings between rows (19) come last."""

    def __init__(self, path: Path) -> None:
        self._table = TableWriter(path, _schema())

    def add(self, violations: list[Violation]) -> None:
        """Append the findings of one row."""
        for violation in sorted(violations, key=lambda v: (v.check_id, v.pointer, v.detail)):
            self._table.add({name: getattr(violation, name) for name in COLUMNS})

    def __enter__(self) -> ViolationWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self._table.__exit__(kind, error, trace)


def read_violations(path: Path) -> Iterator[Violation]:
    """All findings on rows, in the order of the table."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches():
        for row in batch.to_pylist():
            yield Violation(**row)


def read_flags(path: Path) -> dict[str, list[str]]:
    """Flags by task id, sorted. Only kept rows have any (a rejected row's warnings are not in the table)."""
    flags: dict[str, set[str]] = {}
    for violation in read_violations(path):
        if violation.flag:
            flags.setdefault(violation.task_id, set()).add(violation.flag)
    return {task_id: sorted(found) for task_id, found in flags.items()}
