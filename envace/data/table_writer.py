"""A Parquet table written row by row with an explicit schema: flat memory, and the same rows give the same bytes."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any


class TableWriter:
    """Buffers records and writes them in row groups of a fixed number of rows (zstd). Use it as a context manager."""

    def __init__(self, path: Path, schema: Any, rows_per_group: int = 20_000) -> None:
        import pyarrow.parquet as pq

        self._schema, self._rows_per_group = schema, rows_per_group
        self._buffer: list[dict[str, Any]] = []
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, record: dict[str, Any]) -> None:
        """Append one record with all the columns of the schema."""
        self._buffer.append(record)
        if len(self._buffer) >= self._rows_per_group:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._buffer:
            self._writer.write_table(pa.Table.from_pylist(self._buffer, schema=self._schema))
            self._buffer = []

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
