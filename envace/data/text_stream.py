"""A file's text in blocks: UTF-8, gzip where the bytes say so, and one clear error for everything that is wrong."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from envace.errors import DataError

BLOCK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


def text_blocks(path: Path) -> Iterator[str]:
    """Yield the text of a file in order. A byte order mark is skipped.

    Raises DataError for a missing file, a folder, an empty file, bytes that are not UTF-8, and a damaged gzip stream.
    """
    with _open(path) as stream:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        done, is_empty = 0, True
        while True:
            try:
                block = stream.read(BLOCK_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise DataError(f"{path}: damaged gzip stream after {done} bytes ({error}); copy it again") from None
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
            if text:
                yield text
            if not block:
                break
    if is_empty:
        raise DataError(f"{path}: the file is empty; give a JSON array of rows or one JSON object a line")


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name the file in it")
    if not path.exists():
        raise DataError(f"{path}: no such file; check the path (it is taken from where the command runs)")
    try:
        raw = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if raw.peek(2)[:2] == _GZIP_MAGIC:
        raw.close()
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return raw
