"""From validated rows to the prepared tables and their manifest, in two passes: first where each row is, then what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envace.config import PrepareDataParams
from envace.data.placing import PlacedRow, place_rows
from envace.data.row_groups import RowGroup, made_groups
from envace.data.split_table import SPLIT_TABLE, write_splits
from envace.data.splits import SPLITS
from envace.data.tables import TABLES, TASKS_PER_GROUP, PreparedTables
from envace.data.task_tables import COUNTED
from envace.data.violation_table import read_flags
from envace.files import read_json, sha256_file, write_json
from envace.progress import progress

SOURCE, MANIFEST = "source.json", "manifest.json"


def write_prepared(validated: Path, folder: Path, params: PrepareDataParams) -> dict[str, Any]:
    """Write the tables, the splits and manifest.json into `folder`, and give the manifest.

    Raises ContractError and DataError like `placing.place_rows`. Memory: a few hundred bytes a row and some groups.
    """
    folder.mkdir(parents=True, exist_ok=True)
    placed = place_rows(validated, params)
    flags = read_flags(validated / "violations.parquet")
    counts = {split: Counter[str]() for split in SPLITS}
    flagged: Counter[str] = Counter()
    with PreparedTables(folder) as tables, progress("preparing", unit="tasks") as report:
        for done, group in enumerate(made_groups(_groups(validated, placed, flags), len(placed)), start=1):
            tables.add(group)
            for split, counted in group.counts.items():
                counts[split].update(counted)
            flagged.update(group.flags)
            report(min(done * TASKS_PER_GROUP, len(placed)), len(placed))
    write_splits(folder / SPLIT_TABLE, placed)
    manifest = {
        "source": _source(validated),
        "splits": {split: {name: counts[split][name] for name in COUNTED} for split in SPLITS},
        "flags": dict(sorted(flagged.items())),
        "parameters": params.model_dump(),
        "sha256": {name: sha256_file(folder / name) for name in (*TABLES, SPLIT_TABLE)},
    }
    write_json(folder / MANIFEST, manifest)
    return manifest


def _groups(validated: Path, placed: list[PlacedRow], flags: dict[str, list[str]]) -> Iterator[RowGroup]:
    for start in range(0, len(placed), TASKS_PER_GROUP):
        rows = placed[start : start + TASKS_PER_GROUP]
        yield RowGroup(validated, rows, {row.task_id: flags[row.task_id] for row in rows if row.task_id in flags})


def _source(validated: Path) -> dict[str, Any] | None:
    """Where the raw files came from, as validation was told."""
    path = validated / SOURCE
    return read_json(path) if path.is_file() else None
