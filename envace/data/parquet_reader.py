"""Rows of a Parquet file, as their JSON would read: small batches, and none of what Arrow adds to nested values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from envace.data.elements import MAX_ELEMENT
from envace.data.parquet_layout import TEXT_OR_NESTED, check_schema, wanted_columns
from envace.data.raw_row import OnBytes, RawRow, overlong_row, row_of_value
from envace.data.text_stream import open_file
from envace.errors import DataError
from envace.files import compact_json
from envace.strict_json import NotStrictJsonError, parse_strict

_BATCH_ROWS = 16  # a row may have a megabyte
_BUFFER = 1 << 20  # else a whole column of a row group is read at once


def parquet_rows(path: Path, max_row_bytes: int | None = None, on_bytes: OnBytes | None = None) -> Iterator[RawRow]:
    """Yield the rows of a Parquet file in order; `text` is a row's JSON. A row that is no JSON comes with its fault.

    Raises DataError for a damaged file, and for one whose types have already lost what the rows said.
    """
    with _opened(path) as file:
        size, total, index = path.stat().st_size, max(1, file.metadata.num_rows), 0
        columns = wanted_columns(file.schema_arrow)
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            for at, found in enumerate(_python_rows(batch)):
                yield _row(index + at, found, max_row_bytes)
            index += batch.num_rows
            if on_bytes:
                on_bytes(size * index // total, size)


def count_parquet_rows(path: Path) -> int:
    """Number of rows, by the file's own account. Raises DataError like `parquet_rows`, but reads no row."""
    with _opened(path) as file:
        return file.metadata.num_rows


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file, once its types are known to be harmless; whatever Arrow cannot read becomes a DataError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        open_file(path).close()  # what is wrong with the path itself is told in the same words as for other files
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True) as file:
            if not file.metadata.num_rows:
                raise DataError(f"{path}: the file is empty; give one row a task")
            _refuse_bombs(path, file.metadata)
            check_schema(path, file.schema_arrow)
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: damaged, or not a Parquet file ({reason}); copy or write it again") from None


def _refuse_bombs(path: Path, metadata: Any) -> None:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows and group.total_byte_size // group.num_rows > MAX_ELEMENT:
            raise DataError(
                f"{path}: the {group.num_rows} rows of row group {number} unpack to {group.total_byte_size} bytes, "
                "no row is that long; check that this is the right file"
            )


def _python_rows(batch: Any) -> Iterator[dict[str, Any] | str]:
    """The rows of a batch; where a row's bytes are no text, what is wrong with it."""
    try:
        yield from batch.to_pylist()
        return
    except UnicodeDecodeError:  # in some row: take them one by one
        pass
    for at in range(batch.num_rows):
        try:
            yield from batch.slice(at, 1).to_pylist()
        except UnicodeDecodeError:
            yield _name_of_bad_column(batch, at)


def _name_of_bad_column(batch: Any, at: int) -> str:
    for name in batch.schema.names:
        try:
            batch.column(name)[at].as_py()
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            return f"not UTF-8: byte 0x{byte:02x} at offset {error.start} of a text in the column {name!a}"
    return "not UTF-8"


def _row(index: int, found: dict[str, Any] | str, max_row_bytes: int | None) -> RawRow:
    place = f"row {index}"
    if isinstance(found, str):
        return RawRow(index, place, "", None, found)
    value = {key: child for key, child in found.items() if child is not None}
    try:
        for column in TEXT_OR_NESTED & value.keys():
            value[column] = _decoded(column, value[column])
        text = compact_json(value)
    except ValueError as error:  # NaN, or text that is no JSON
        return RawRow(index, place, json.dumps(value, ensure_ascii=False), None, str(error))
    if max_row_bytes is not None and len(text) > max_row_bytes:
        return overlong_row(index, place, text[:max_row_bytes], max_row_bytes)
    return row_of_value(index, place, text, value)


def _decoded(column: str, value: Any) -> Any:
    """A nested column, which may be JSON text; nulls that Arrow gives to a struct's other rows are left out."""
    if not isinstance(value, str):
        return _without_nulls(value)
    try:
        return parse_strict(value)
    except NotStrictJsonError as error:
        raise ValueError(f"the column {column!a} is text, but {error}") from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [_without_nulls(child) for child in value]
    return value
