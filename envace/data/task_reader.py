"""Tasks read back from tasks.parquet: what every stage after the data stages starts from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envace.data.arrow_schemas import tasks_schema
from envace.errors import DataError
from envace.types import Task


def read_tasks(path: Path, splits: Sequence[str] | None = None) -> list[Task]:
    """The tasks of a table, sorted by id; those of some splits where they are given. Raises DataError if unreadable."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise DataError(f"{path}: no such table; run the stage prepare_data first")
    try:
        table = pq.read_table(path, filters=None if splits is None else [("split", "in", list(splits))])
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({error}); run prepare_data again") from None
    if not table.schema.equals(tasks_schema()):
        raise DataError(f"{path}: not a table of tasks of this version; run prepare_data again")
    return [Task.model_validate(row) for batch in table.to_batches() for row in batch.to_pylist()]
