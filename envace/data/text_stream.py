"""A file's text in blocks: UTF-8, gzip where the bytes say so, and one clear error for everything that is wrong."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envace.data.raw_row import OnBytes
from envace.errors import DataError

BLOCK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_PARQUET_MAGIC = b"PAR1"
_ENCODINGS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def text_blocks(path: Path, on_bytes: OnBytes | None = None) -> Iterator[str]:
    """Yield the text of a file in order. A byte order mark is skipped. `on_bytes` is told of each block read.

    Raises DataError for a missing file, a folder, an empty file, bytes that are not UTF-8, and a damaged gzip stream.
    """
    with open_file(path) as raw:
        size = path.stat().st_size
        is_gzip = raw.peek(2)[:2] == _GZIP_MAGIC  # type: ignore[attr-defined]
        stream = gzip.GzipFile(fileobj=raw, mode="rb") if is_gzip else raw
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        done, is_empty = 0, True
        while True:
            try:
                block = stream.read(BLOCK_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DataError(f"{path}: damaged gzip stream after {done} bytes ({error}); copy it again") from None
            except OSError as error:
                raise DataError(f"{path}: cannot be read ({error.strerror})") from None
            if not done:
                _refuse_other_encodings(path, block[:4])
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                place = max(0, done - (len(error.object) - len(block)) + error.start)
                raise DataError(
                    f"{path}: not UTF-8: byte 0x{error.object[error.start]:02x} at offset {place}; "
                    "convert it, for example with `iconv -t UTF-8`"
                ) from None
            done += len(block)
            is_empty = is_empty and not text.strip()
            if on_bytes:
                on_bytes(raw.tell(), size)
            if text:
                yield text
            if not block:
                break
    if is_empty:
        raise DataError(f"{path}: the file is empty; give a JSON array of rows or one JSON object a line")


def is_parquet(path: Path) -> bool:
    """Whether the name or the first bytes say that this is a Parquet file. Raises DataError like `text_blocks`."""
    if path.name.endswith(".parquet"):
        return True
    with open_file(path) as raw:
        return raw.read(4) == _PARQUET_MAGIC


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading. Raises DataError for whatever is not a readable file."""
    try:
        if path.is_dir():
            raise DataError(f"{path}: this is a folder; name the file in it")
        if not path.exists():
            raise DataError(f"{path}: no such file; check the path (it is taken from where the command runs)")
        if not path.is_file():  # a device or a pipe may have no end, and cannot be read twice
            raise DataError(f"{path}: not a regular file; write the rows into one")
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{str(path)[:200]}: cannot be read ({error.strerror})") from None
    except ValueError:  # a NUL in the name
        raise DataError(f"{str(path)[:200]!a}: not the name of a file; check the path") from None


def _refuse_other_encodings(path: Path, head: bytes) -> None:
    found = next((name for mark, name in _ENCODINGS.items() if head.startswith(mark)), None)
    if found is None and b"\0" in head[:2]:
        found = "UTF-16"
    if found:
        raise DataError(f"{path}: not UTF-8 but {found}; convert it with `iconv -f {found} -t UTF-8`")
