"""Raw files brought into place: generated from a seed, or copied byte for byte from where the user has them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from envace.config import FetchDataParams, SampleParams
from envace.data.reader import SUFFIXES, count_rows
from envace.data.sample.rows import sample_rows
from envace.data.sample.turns import Partition
from envace.data.sample.world import build_world
from envace.errors import DataError
from envace.files import read_json, sha256_file, write_json

NOT_STATED = "not stated"
SOURCE_FILE = "source.json"


def fetch(params: FetchDataParams, folder: Path) -> dict[str, Any]:
    """Put the raw files and source.json into `folder`, and give what source.json holds.

    Raises DataError for a file that is missing, unreadable, a folder, or of an unknown kind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if params.source == "sample":
        rows = _write_sample(params.sample, folder)
        origin, licence = f"the bundled sample, seed {params.sample.seed}", "made by this project's own code"
    else:
        rows = _copy_files(params, folder)
        origin, licence = "local files", params.licence or NOT_STATED
    files = {name: _file_record(folder / name, count) for name, count in rows.items()}
    record = {"source": params.source, "origin": origin, "licence": licence, "files": files}
    write_json(folder / SOURCE_FILE, record)
    return record


def raw_files(folder: Path) -> dict[str, Path]:
    """The raw files of a fetched folder by split, training first. Raises DataError where nothing was fetched."""
    source = folder / SOURCE_FILE
    if not source.is_file():
        raise DataError(f"{source}: no such file; run the stage fetch_data first")
    return {name.split(".")[0]: folder / name for name in read_json(source)["files"]}


def _write_sample(params: SampleParams, folder: Path) -> dict[str, int]:
    """The names of the files with their numbers of rows."""
    world = build_world(params.seed)
    wanted: dict[Partition, int] = {
        "train": params.train_tasks,
        "heldout": params.heldout_tasks,
        "hard": params.hard_tasks,
    }
    for partition, count in wanted.items():
        share = params.faulty_share if partition == "train" else 0.0
        rows = sample_rows(world, count, params.seed, partition, share)
        text = json.dumps(rows, ensure_ascii=False, allow_nan=False, indent=1)
        (folder / f"{partition}.json").write_text(text + "\n", encoding="utf-8")
    return {f"{partition}.json": count for partition, count in wanted.items()}


def _copy_files(params: FetchDataParams, folder: Path) -> dict[str, int]:
    """The names of the copies with their numbers of rows."""
    counts = {}
    for split, given in (("train", params.train_path), ("heldout", params.heldout_path)):
        if given is None:
            continue
        path = Path(given).expanduser()
        if not path.is_file():
            what = "this is a folder; name the file in it" if path.is_dir() else "no such file; check the path"
            raise DataError(f"{path} (fetch_data.{split}_path): {what}")
        suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)
        if suffix is None:
            expected = ", ".join(SUFFIXES)
            raise DataError(f"{path} (fetch_data.{split}_path): unknown kind of file; its name must end in {expected}")
        counts[f"{split}{suffix}"] = count_rows(path)  # before the copy, so that an error names the user's file
        try:
            shutil.copyfile(path, folder / f"{split}{suffix}")
        except OSError as error:
            raise DataError(f"{path} (fetch_data.{split}_path): cannot be copied ({error.strerror})") from None
    return counts


def _file_record(path: Path, rows: int) -> dict[str, Any]:
    return {"rows": rows, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
