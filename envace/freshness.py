"""What DVC cannot see: raw files and a checkpoint of the user that lie outside its graph."""

from __future__ import annotations

import filecmp
import glob
from pathlib import Path

from envace.config import Params
from envace.files import read_json, sha256_file, sha256_text
from envace.training.base_model.checkpoint_files import allowed


def source_changed(params: Params, root: Path = Path()) -> bool:
    """True if a raw file named in params.yaml is not the one that was fetched last, by its content.

    The sample has no such file. A missing one counts as changed: the stage then says so.
    """
    fetch = params.fetch_data
    if fetch.source != "file":
        return False
    record = root / "data" / "raw" / "source.json"
    if not record.is_file():
        return True
    files = read_json(record)["files"]
    for split, path in (("train", fetch.train_path), ("heldout", fetch.heldout_path)):
        found = _matches(root / Path(path).expanduser()) if path else []
        fetched = [files[name]["sha256"] for name in sorted(files) if name.startswith(split)]
        if (path and not found) or [sha256_file(file) for file in found] != fetched:
            return True
    return False


def source_files(params: Params, root: Path = Path()) -> list[Path]:
    """The raw files of the user that params.yaml names, in the order in which they are fetched."""
    fetch = params.fetch_data
    named = [path for path in (fetch.train_path, fetch.heldout_path) if path and fetch.source == "file"]
    return [match for path in named for match in _matches(root / Path(path).expanduser())]


def source_sha256(params: Params, root: Path = Path()) -> str:
    """One hash of the content of all raw files of the user."""
    return sha256_text("\n".join(sha256_file(path) for path in source_files(params, root)))


def checkpoint_changed(params: Params, root: Path = Path()) -> bool:
    """True if the base checkpoint named in params.yaml differs from its copy in models/base, by its content."""
    build = params.build_base_model
    if build.source != "folder" or build.path is None:
        return False
    given, copy = root / Path(build.path).expanduser(), root / "models" / "base"
    if not given.is_dir() or not copy.is_dir():
        return True
    names = set(allowed(p.name for p in given.iterdir() if p.is_file()))
    same, _, _ = filecmp.cmpfiles(given, copy, sorted(names), shallow=False)
    return set(same) != {p.name for p in copy.iterdir()} or set(same) != names


def _matches(path: Path) -> list[Path]:
    """The file itself, or those that the path as a pattern stands for, in the order in which they are fetched."""
    matches = [path] if path.is_file() else sorted(Path(name) for name in glob.glob(str(path)))
    return [match for match in matches if match.is_file()]
