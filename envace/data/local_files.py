"""The user's own raw files, copied byte for byte. Their paths are read, and never recorded."""

from __future__ import annotations

import glob
import shutil
from pathlib import Path

from envace.data.reader import SUFFIXES, count_rows
from envace.errors import DataError
from envace.progress import progress


def copy_files(given: dict[str, str | None], folder: Path) -> dict[Path, int]:
    """Copy the files of each split into `folder`, as `<split>.<suffix>` or `<split>-<number>.<suffix>`.

    A path may be a pattern (`part-*.parquet`); its files are taken in name order. Gives the copies with their rows.
    Raises DataError, which names the parameter, for what is no readable raw file.
    """
    counts: dict[Path, int] = {}
    for split, path in given.items():
        found = _found(path, split) if path is not None else []
        for index, source in enumerate(found):
            name = f"{split}-{index:05d}" if len(found) > 1 else split
            copy = folder / f"{name}{_suffix(source, split)}"
            with progress(f"counting the rows of {source.name}") as report:
                counts[copy] = count_rows(source, report)  # before the copy, so that an error names the user's file
            try:
                shutil.copyfile(source, copy)
            except OSError as error:
                raise DataError(f"{_named(source, split)}: cannot be copied ({error.strerror})") from None
    return counts


def _found(given: str, split: str) -> list[Path]:
    path = Path(given).expanduser()
    try:
        if "\0" in given:
            raise ValueError
        if path.is_file():
            return [path]
        if path.is_dir():
            raise DataError(
                f"{_named(path, split)}: this is a folder; name the file in it, or a pattern such as {path / '*.jsonl'}"
            )
        found = sorted(Path(name) for name in glob.glob(str(path)) if Path(name).is_file())
        what = "not a regular file" if path.exists() else "no such file"
    except (OSError, ValueError):  # a name that is too long, or has a NUL in it
        raise DataError(f"{str(path)[:200]!a} (fetch_data.{split}_path): not the name of a file; check it") from None
    if not found:
        raise DataError(f"{_named(path, split)}: {what}; check the path")
    return found


def _suffix(path: Path, split: str) -> str:
    suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)
    if suffix is None:
        expected = ", ".join(SUFFIXES)
        raise DataError(f"{_named(path, split)}: unknown kind of file; its name must end in {expected}")
    return suffix


def _named(path: Path, split: str) -> str:
    return f"{path} (fetch_data.{split}_path)"
