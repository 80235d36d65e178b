"""What DVC cannot see: raw files of the user that lie outside its graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.config import Params
from envace.files import read_json, sha256_file


def source_changed(params: Params, root: Path = Path()) -> bool:
    """True if a raw file named in params.yaml is not the one that was fetched last, by its content.

    The sample has no such file. A missing one counts as changed: the stage then says so.
    """
    fetch = params.fetch_data
    if fetch.source != "file":
        return False
    record = root / "data" / "raw" / "source.json"
    fetched = _hashes(read_json(record)) if record.is_file() else set()
    named = [root / path for path in (fetch.train_path, fetch.heldout_path) if path]
    return any(not path.is_file() or sha256_file(path) not in fetched for path in named)


def _hashes(value: Any) -> set[str]:
    """Every text found anywhere in the record, among them the SHA-256 of each fetched file."""
    if isinstance(value, dict):
        return set[str]().union(*map(_hashes, value.values()))
    if isinstance(value, list):
        return set[str]().union(*map(_hashes, value))
    return {value} if isinstance(value, str) else set()
