"""What DVC cannot see: raw files and a checkpoint of the user that lie outside its graph."""

from __future__ import annotations

import filecmp
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.files import read_json, sha256_file

_CHECKPOINT_SUFFIXES = (".json", ".safetensors", ".jinja", ".txt", ".model")


def source_changed(params: Params, root: Path = Path()) -> bool:
    """True if a raw file named in params.yaml is not the one that was fetched last, by its content.

    The sample has no such file. A missing one counts as changed: the stage then says so.
    """
    fetch = params.fetch_data
    if fetch.source != "file":
        return False
    record = root / "data" / "raw" / "source.json"
    fetched = _texts(read_json(record)) if record.is_file() else set()
    named = [root / Path(path).expanduser() for path in (fetch.train_path, fetch.heldout_path) if path]
    return any(not path.is_file() or sha256_file(path) not in fetched for path in named)


def checkpoint_changed(params: Params, root: Path = Path()) -> bool:
    """True if the base checkpoint named in params.yaml differs from its copy in models/base, by its content."""
    build = params.build_base_model
    if build.source != "folder" or build.path is None:
        return False
    given, copy = root / Path(build.path).expanduser(), root / "models" / "base"
    if not given.is_dir() or not copy.is_dir():
        return True
    names = {p.name for p in given.iterdir() if p.suffix in _CHECKPOINT_SUFFIXES and p.is_file()}
    same, _, _ = filecmp.cmpfiles(given, copy, sorted(names), shallow=False)
    return set(same) != {p.name for p in copy.iterdir()} or set(same) != names


def _texts(value: Any) -> set[str]:
    """Every text found anywhere in the record, among them the SHA-256 of each fetched file."""
    if isinstance(value, dict):
        return set[str]().union(*map(_texts, value.values()))
    if isinstance(value, list):
        return set[str]().union(*map(_texts, value))
    return {value} if isinstance(value, str) else set()
