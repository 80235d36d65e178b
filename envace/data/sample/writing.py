"""Sample rows into a file: a JSON array indented like CM2's, or JSON lines, plain or gzip, written row by row."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from envace.data.sample.pretty import INDENT, pretty_json
from envace.errors import DataError
from envace.files import atomic_path, compact_json

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_GZIP_LEVEL = 6


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows to `path`, in the format of its suffix, all or nothing, and give their number.

    The same rows give the same bytes, gzip included. Raises DataError for another suffix, and where the file
    cannot be written.
    """
    if not path.name.endswith(SUFFIXES):
        raise DataError(f"{path}: unknown kind of file; its name must end in {', '.join(SUFFIXES)}")
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it")
    try:
        with atomic_path(path) as part, ExitStack() as stack:
            stream = _open(part, path.name.endswith(".gz"), stack)
            is_lines = path.name.removesuffix(".gz").endswith(".jsonl")
            return _write_lines(stream, rows) if is_lines else _write_array(stream, rows)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from None


def _open(path: Path, is_gzip: bool, stack: ExitStack) -> TextIO:
    binary = stack.enter_context(path.open("wb"))
    if is_gzip:  # no name and no time inside, so that the same rows give the same bytes
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=binary, mtime=0)
        binary = stack.enter_context(packed)
    return stack.enter_context(io.TextIOWrapper(binary, encoding="utf-8", newline="\n"))


def _write_lines(stream: TextIO, rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    for row in rows:
        stream.write(compact_json(row) + "\n")
        count += 1
    return count


def _write_array(stream: TextIO, rows: Iterable[dict[str, Any]]) -> int:
    count = 0
    for row in rows:
        stream.write(f"{',' if count else '['}\n{INDENT}{pretty_json(row, depth=1)}")
        count += 1
    stream.write("\n]\n" if count else "[]\n")
    return count
