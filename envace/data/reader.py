"""Raw files row by row: a JSON array, JSON lines (both plain or gzip) or Parquet, without holding the whole file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from envace.data.array_reader import array_elements, read_loosely, read_strictly
from envace.data.elements import UNDECODED, Element, Pieces
from envace.data.raw_row import OnBytes, RawRow, overlong_row, row_of_text, row_of_value
from envace.data.text_stream import is_parquet, text_blocks
from envace.errors import DataError
from envace.strict_json import NotStrictJsonError, parse_strict

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".parquet")
__all__ = ["SUFFIXES", "RawRow", "count_rows", "read_rows"]


def read_rows(path: Path, max_row_bytes: int | None = None, on_bytes: OnBytes | None = None) -> Iterator[RawRow]:
    """Yield the rows of a raw file in order. A row that is broken by itself, or too long, comes with its fault.

    `on_bytes` is told now and then how many bytes of how many are read.
    Raises DataError, which names the file and the place, where the file as a whole cannot be read.
    """
    if is_parquet(path):
        from envace.data.parquet_reader import parquet_rows

        yield from parquet_rows(path, max_row_bytes, on_bytes)
        return
    for index, element in enumerate(_elements(path, max_row_bytes, on_bytes)):
        place = f"line {element.line}"
        if max_row_bytes is not None and element.length > max_row_bytes:
            yield overlong_row(index, place, element.text[:max_row_bytes], max_row_bytes)
        elif element.value is UNDECODED:
            yield row_of_text(index, place, element.text)
        else:
            yield row_of_value(index, place, element.text, element.value)


def count_rows(path: Path, on_bytes: OnBytes | None = None) -> int:
    """Number of rows of a raw file, broken ones included. Raises DataError like `read_rows`."""
    if is_parquet(path):
        from envace.data.parquet_reader import count_parquet_rows

        return count_parquet_rows(path)
    return sum(1 for _ in _elements(path, 0, on_bytes))


def _elements(path: Path, keep: int | None, on_bytes: OnBytes | None) -> Iterator[Element]:
    """The rows' texts; with `keep` 0 they are only told apart."""
    blocks = text_blocks(path, on_bytes)
    line, head = _first_text(path, blocks)
    first = head.lstrip()[:1]
    if first not in ("[", "{"):
        raise DataError(
            f"{path}: begins with {first!a}, so it is neither a JSON array nor JSON lines; "
            "give `[row, row, ...]` or one JSON object a line"
        )
    if first == "[":
        return array_elements(path, chain([head], blocks), line, keep, read_strictly if keep != 0 else read_loosely)
    return _lines(path, chain([head], blocks), line, keep)


def _first_text(path: Path, blocks: Iterator[str]) -> tuple[int, str]:
    """The first block that is not blank, and the line that it begins in."""
    line, blank = 1, Pieces(path, 0)
    for block in blocks:
        if block.strip():
            return line, block
        blank.add(block, line)
        line += block.count("\n")
    return line, ""  # does not happen: an empty file is an error of the text


def _lines(path: Path, blocks: Iterator[str], line: int, keep: int | None) -> Iterator[Element]:
    """Lines with their numbers; blank ones are skipped. Only "\\n" ends a line: JSON text may hold U+2028."""
    pieces = Pieces(path, keep)
    for block in blocks:
        *ended, rest = block.split("\n")
        for part in ended:
            pieces.add(part, line)
            text, length = pieces.take()
            if text.strip() == "{" and line == 1:
                raise DataError(f"{path}: line 1 holds only '{{': write one row a line, or all rows in one JSON array")
            if text.strip():
                yield Element(line, text, length)
            line += 1
        pieces.add(rest, line)
    text, length = pieces.take()
    if text.strip():
        yield Element(line, text, length, _uncut(path, line, text) if len(text) == length else UNDECODED)


def _uncut(path: Path, number: int, line: str) -> object:
    """The value of the last line. If it has no end and is no JSON, the file was cut; that is not one row's fault."""
    try:
        return parse_strict(line)
    except NotStrictJsonError as error:
        if error.syntax:
            where = f"{path}: line {number} is cut short ({error})"
            raise DataError(f"{where}; the file is incomplete, copy it again") from None
        return UNDECODED
