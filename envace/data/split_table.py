"""splits.parquet: which task is in which split, and which raw row it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.data.table_writer import TableWriter

if TYPE_CHECKING:
    from envace.data.placing import PlacedRow

SPLIT_TABLE = "splits.parquet"
COLUMNS = ("task_id", "split", "file", "row")


def _schema() -> Any:
    import pyarrow as pa

    kinds = {"row": pa.int64()}
    return pa.schema([pa.field(name, kinds.get(name, pa.string()), nullable=False) for name in COLUMNS])


def write_splits(path: Path, rows: Iterable[PlacedRow]) -> None:
    """Write the table in the order of the rows."""
    with TableWriter(path, _schema()) as table:
        for row in rows:
            table.add({name: getattr(row, name) for name in COLUMNS})
