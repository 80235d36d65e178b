"""From validated rows to the prepared tables and their manifest, in two passes: first where each row is, then what."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from envace.config import PrepareDataParams
from envace.data.canonical import to_task
from envace.data.ids import safe_task_id
from envace.data.split_table import SPLIT_TABLE, write_splits
from envace.data.splits import SPLITS, LeakGuard, check_split_sizes, split_of
from envace.data.tables import TABLES, PreparedTables
from envace.data.violation_table import read_flags
from envace.errors import ContractError, DataError
from envace.files import read_json, sha256_file, write_json
from envace.progress import progress
from envace.types import Task

FILES = ("train", "heldout", "hard")
SOURCE, MANIFEST = "source.json", "manifest.json"


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
    train on, and DataError where validation has not run.
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
    return sorted(placed, key=lambda row: row.task_id)


def write_prepared(validated: Path, folder: Path, params: PrepareDataParams) -> dict[str, Any]:
    """Write the tables, the splits and manifest.json into `folder`, and give the manifest. Raises like `place_rows`."""
    folder.mkdir(parents=True, exist_ok=True)
    placed = place_rows(validated, params)
    flags = read_flags(validated / "violations.parquet")
    counts = {split: Counter[str]() for split in SPLITS}
    flagged: Counter[str] = Counter()
    with ExitStack() as stack:
        tables = stack.enter_context(PreparedTables(folder))
        files = {
            file: stack.enter_context((validated / f"{file}.jsonl").open("rb")) for file in {row.file for row in placed}
        }
        report = stack.enter_context(progress("preparing", unit="tasks"))
        for done, row in enumerate(placed, start=1):
            task = to_task(_row_at(files[row.file], row), row.split, flags.get(row.task_id, []), _where(row))
            tables.add(task)
            counts[row.split].update(_counts(task))
            flagged.update(task.flags)
            report(done, len(placed))
    write_splits(folder / SPLIT_TABLE, placed)
    manifest = {
        "source": _source(validated),
        "splits": {split: _split_record(counts[split]) for split in SPLITS},
        "flags": dict(sorted(flagged.items())),
        "parameters": params.model_dump(),
        "sha256": {name: sha256_file(folder / name) for name in (*TABLES, SPLIT_TABLE)},
    }
    write_json(folder / MANIFEST, manifest)
    return manifest


_COUNTED = ("tasks", "turns", "calls", "error_results", "criteria", "with_outcome", "with_world")


def _counts(task: Task) -> dict[str, int]:
    steps = [step for turn in task.turns for step in turn.reference_steps]
    return {
        "tasks": 1,
        "turns": len(task.turns),
        "calls": sum(len(step.tool_calls) for step in steps),
        "error_results": sum(result.is_error for step in steps for result in step.tool_results),
        "criteria": sum(len(rubric.criteria) for rubric in task.rubrics),
        "with_outcome": int(task.outcome is not None),
        "with_world": int(task.world is not None),
    }


def _split_record(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in _COUNTED}


def _where(row: PlacedRow) -> str:
    return f"{row.file}.jsonl line {row.line}"


def _source(validated: Path) -> dict[str, Any] | None:
    """Where the raw files came from, as validation was told."""
    path = validated / SOURCE
    return read_json(path) if path.is_file() else None


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


def _row_at(file: BinaryIO, row: PlacedRow) -> dict[str, Any]:
    file.seek(row.offset)
    return json.loads(file.readline())
