"""The first pass of preparation: which split each validated row belongs to, and where it stands in its file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import PrepareDataParams
from envace.data.flat import FLAT_ROWS
from envace.data.ids import safe_task_id
from envace.data.splits import LeakGuard, check_split_sizes, split_of
from envace.data.tables import refuse_repeated_ids
from envace.errors import ContractError, DataError
from envace.progress import progress

FILES = ("train", "heldout", "hard")


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A validated row: its split, the raw row that it comes from, and the byte of its file where it begins."""

    task_id: str
    split: str
    file: str
    row: int
    offset: int


def place_rows(validated: Path, params: PrepareDataParams) -> list[PlacedRow]:
    """All validated rows, sorted by task id.

    Raises ContractError for a conversation in two splits, for splits of the wrong size and where nothing is left to
    train on, and DataError where validation has not run or an id stands twice.
    """
    if not (validated / "train.jsonl").is_file():
        raise DataError(f"{validated}/train.jsonl: no such file; run the stage validate_data first")
    has_heldout_file = (validated / "heldout.jsonl").is_file()
    heldout_share = 0.0 if has_heldout_file else params.heldout_share
    guard, placed, carved = LeakGuard(), [], Counter[str]()
    raw_indices = _raw_indices(validated)
    for file in FILES:
        for line, (offset, row) in enumerate(_rows(validated / f"{file}.jsonl")):
            split, index = (
                split_of(row, file, params.validation_share, heldout_share, params.salt),
                raw_indices[file][line],
            )
            guard.check(row, split, file, index)
            placed.append(PlacedRow(safe_task_id(row["uuid"]), split, file, index, offset))
            if file == "train":
                carved[split] += 1
    if not carved["train"]:
        where = ", ".join(f"{count} in {split}" for split, count in sorted(carved.items())) or "none was kept"
        raise ContractError(
            f"no row of the training file is left to train on ({where}); give more rows, or lower "
            "prepare_data.validation_share and heldout_share"
        )
    check_split_sizes(carved, heldout_share, params)
    placed.sort(key=lambda row: row.task_id)
    refuse_repeated_ids([row.task_id for row in placed])
    return placed


def _raw_indices(validated: Path) -> dict[str, list[int]]:
    """The raw row of each kept row, file by file, in their order."""
    import pyarrow.parquet as pq

    indices: dict[str, list[int]] = {file: [] for file in FILES}
    table = pq.read_table(validated / FLAT_ROWS, columns=["file", "row_index"])
    for file, index in zip(table["file"].to_pylist(), table["row_index"].to_pylist(), strict=True):
        indices[file].append(index)
    return indices


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        return
    size = path.stat().st_size
    with path.open("rb") as lines, progress(f"reading {path.name}") as on_bytes:
        offset = 0
        for line in lines:
            yield offset, json.loads(line)
            offset += len(line)
            on_bytes(offset, size)
