"""The first pass of preparation: which split each validated row belongs to, and where it stands in its file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import PrepareDataParams
from envace.data.ids import safe_task_id
from envace.data.splits import LeakGuard, check_split_sizes, split_of
from envace.data.tables import refuse_repeated_ids
from envace.errors import ContractError, DataError
from envace.progress import progress

FILES = ("train", "heldout", "hard")


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """Where a validated row stands (line numbers from 1, offset in bytes) and the split it belongs to."""

    task_id: str
    split: str
    file: str
    line: int
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
    for file in FILES:
        for line, offset, row in _rows(validated / f"{file}.jsonl"):
            split = split_of(row, file, params.validation_share, heldout_share, params.salt)
            guard.check(row, split, f"{file}.jsonl", line)
            placed.append(PlacedRow(safe_task_id(row["uuid"]), split, file, line, offset))
            if file == "train":
                carved[split] += 1
    if not carved["train"]:
        raise ContractError("no task is left for training; give more rows, or lower the shares under prepare_data")
    check_split_sizes(carved, heldout_share, params)
    placed.sort(key=lambda row: row.task_id)
    refuse_repeated_ids([row.task_id for row in placed])
    return placed


def _rows(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    if not path.is_file():
        return
    size = path.stat().st_size
    with path.open("rb") as lines, progress(f"reading {path.name}") as on_bytes:
        offset = 0
        for number, line in enumerate(lines, start=1):
            yield number, offset, json.loads(line)
            offset += len(line)
            on_bytes(offset, size)
