"""Raw files brought into place: generated from a seed, copied byte for byte, or fetched from a pinned repository."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from envace.config import FetchDataParams, SampleParams
from envace.data.local_files import copy_files
from envace.data.reader import count_rows
from envace.data.sample.conversations import evenly, usual_length
from envace.data.sample.rows import sample_rows
from envace.data.sample.turns import Partition
from envace.data.sample.world import build_world
from envace.data.schema_names import NOT_STATED
from envace.errors import DataError
from envace.files import read_json, sha256_file, write_json
from envace.progress import progress

SOURCE_FILE = "source.json"
_RAW_NAME = re.compile(r"(train|heldout|hard)(-\d{5,})?(\.[a-z]+)+")


def fetch(params: FetchDataParams, folder: Path) -> dict[str, Any]:
    """Put the raw files and source.json into `folder`, and give what source.json holds.

    Raises DataError for a file that is missing, unreadable, a folder, or of an unknown kind, and for whatever goes
    wrong with a hub (envace.data.hub).
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = _FETCHERS[params.source](params, folder)
    record["files"] = {path.name: _file_record(path, rows) for path, rows in sorted(record.pop("rows").items())}
    write_json(folder / SOURCE_FILE, record)
    return record


def raw_files(folder: Path) -> dict[str, list[Path]]:
    """The raw files of a fetched folder by split, training first; several of a split are in the order of their rows.

    Raises DataError where nothing was fetched, or source.json names what is no raw file.
    """
    files: dict[str, list[Path]] = {}
    for name in sorted(read_source(folder)["files"]):
        matched = _RAW_NAME.fullmatch(name)
        if not matched:
            raise DataError(f"{folder / SOURCE_FILE}: {name!a} is not the name of a raw file; run fetch_data again")
        files.setdefault(matched.group(1), []).append(folder / name)
    return {split: files[split] for split in ("train", "heldout", "hard") if split in files}


def read_source(folder: Path) -> dict[str, Any]:
    """What source.json of a fetched folder says. Raises DataError where nothing was fetched."""
    source = folder / SOURCE_FILE
    if not source.is_file():
        raise DataError(f"{source}: no such file; run the stage fetch_data first")
    return read_json(source)


def _from_sample(params: FetchDataParams, folder: Path) -> dict[str, Any]:
    sample = params.sample
    return {
        "source": "sample",
        "origin": f"the bundled sample, seed {sample.seed}",
        "licence": "made by this project's own code",
        "rows": _write_sample(sample, folder),
    }


def _from_files(params: FetchDataParams, folder: Path) -> dict[str, Any]:
    rows = copy_files({"train": params.train_path, "heldout": params.heldout_path}, folder)
    return {"source": "file", "origin": "local files", "licence": params.licence or NOT_STATED, "rows": rows}


def _from_hub(params: FetchDataParams, folder: Path) -> dict[str, Any]:
    from envace.data.hub import fetch_from_hub

    source = fetch_from_hub(params.hub, folder)
    return {
        "source": "hub",
        "origin": source.origin,
        "repository": source.repository,
        "type": source.type,
        "revision": source.revision,
        "licence": params.hub.licence or source.card_licence or NOT_STATED,
        "card_licence": source.card_licence,
        "rows": {folder / name: _counted(folder / name, path) for name, path in source.files.items()},
    }


_FETCHERS = {"sample": _from_sample, "file": _from_files, "hub": _from_hub}


def _write_sample(params: SampleParams, folder: Path) -> dict[Path, int]:
    """The files with their numbers of rows."""
    world = build_world(params.seed)
    lengths = evenly(*params.turns) if params.turns else usual_length
    wanted: dict[Partition, int] = {
        "train": params.train_tasks,
        "heldout": params.heldout_tasks,
        "hard": params.hard_tasks,
    }
    for partition, count in wanted.items():
        share = params.faulty_share if partition == "train" else 0.0
        rows = sample_rows(world, count, params.seed, partition, share, lengths)
        text = json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=1)
        (folder / f"{partition}.json").write_text(text + "\n", encoding="utf-8")
    return {folder / f"{partition}.json": count for partition, count in wanted.items()}


def _counted(path: Path, known_as: str) -> int:
    """Rows of a fetched file. An error names it as the user knows it."""
    try:
        with progress(f"counting the rows of {known_as}") as report:
            return count_rows(path, report)
    except DataError as error:
        raise DataError(str(error).replace(str(path), known_as)) from None


def _file_record(path: Path, rows: int) -> dict[str, Any]:
    return {"rows": rows, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
