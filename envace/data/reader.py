"""Raw files row by row: a JSON array or JSON lines, plain or gzip, without holding the whole file in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from envace.data.text_stream import BLOCK_BYTES, text_blocks
from envace.errors import DataError
from envace.strict_json import NotStrictJsonError, parse_strict

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},"]', re.DOTALL)
"""Strings as a whole, brackets and commas; a lone quotation mark where a string has no end yet."""


@dataclass(frozen=True)
class RawRow:
    """One row of a raw file. `value` is the decoded object; where `fault` says what is wrong with the text, it is None.

    `index` counts rows from 0, `place` says where the row begins for a person ("line 12"). `fault_check` is the number
    of the check that the fault is a finding of: 5 for text that is no strict JSON object, 34 for a row that is too long
    to be worth parsing.
    """

    index: int
    place: str
    text: str
    value: dict[str, Any] | None
    fault: str | None = None
    fault_check: int = 5


def read_rows(path: Path, max_row_bytes: int | None = None) -> Iterator[RawRow]:
    """Yield the rows of a raw file in order. A row that is broken by itself, or too long, comes with its fault.

    Raises DataError, which names the file and the place, where the file as a whole cannot be read.
    """
    blocks = text_blocks(path)
    head: list[str] = []
    for block in blocks:
        head.append(block)
        if block.strip():
            break
    first = "".join(head).lstrip()[:1]
    if first not in ("[", "{"):
        raise DataError(
            f"{path}: begins with {first!a}, so it is neither a JSON array nor JSON lines; "
            "give `[row, row, ...]` or one JSON object a line"
        )
    whole = chain(head, blocks)
    texts = _array_elements(path, whole) if first == "[" else _lines(path, whole)
    for index, (line, text) in enumerate(texts):
        if max_row_bytes is not None and len(text) > max_row_bytes:
            fault = f"the row has over {max_row_bytes} bytes"
            yield RawRow(index, f"line {line}", text, None, fault, fault_check=34)
        else:
            yield _row(index, f"line {line}", text)


def count_rows(path: Path) -> int:
    """Number of rows of a raw file, broken ones included. Raises DataError like `read_rows`."""
    return sum(1 for _ in read_rows(path, max_row_bytes=0))  # told apart, but not parsed


def _row(index: int, place: str, text: str) -> RawRow:
    try:
        value = parse_strict(text)
    except NotStrictJsonError as error:
        return RawRow(index, place, text, None, str(error))
    if not isinstance(value, dict):
        return RawRow(index, place, text, None, f"a row must be an object, found {type(value).__name__}")
    return RawRow(index, place, text, value)


def _lines(path: Path, blocks: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; blank ones are skipped. Only "\\n" ends a line: JSON text may hold U+2028."""
    parts: list[str] = []
    number = 0
    for block in blocks:
        parts.append(block)
        if "\n" not in block:
            continue
        *complete, rest = "".join(parts).split("\n")
        parts = [rest]
        for line in complete:
            number += 1
            if number == 1 and line.strip() == "{":
                raise DataError(f"{path}: line 1 holds only '{{': write one row a line, or all rows in one JSON array")
            if line.strip():
                yield number, line
    last = "".join(parts)
    if last.strip():
        _refuse_cut_line(path, number + 1, last)
        yield number + 1, last


def _refuse_cut_line(path: Path, number: int, line: str) -> None:
    """A last line that has no end and is no JSON means that the file was cut, not that one row is broken."""
    try:
        parse_strict(line)
    except NotStrictJsonError as error:
        if error.syntax:
            where = f"{path}: line {number} is cut short ({error})"
            raise DataError(f"{where}; the file is incomplete, copy it again") from None


def _array_elements(path: Path, blocks: Iterator[str]) -> Iterator[tuple[int, str]]:
    """The texts of an array's elements with the lines where they begin; memory holds one block and one element."""
    buffer = next(blocks)
    while not buffer.strip():
        buffer += next(blocks)
    begin = scanned = buffer.index("[") + 1
    line = 1 + buffer[:begin].count("\n")
    depth = count = 0
    while True:
        for token in _STRUCTURE.finditer(buffer, scanned):
            mark = token.group()
            if mark == '"':  # a string that goes on in the next block
                break
            scanned = token.end()
            if mark in "[{":
                depth += 1
            elif mark in "]}" and depth:
                depth -= 1
            elif mark in ",]}" and not depth:
                text = buffer[begin : token.start()]
                if text.strip() or mark == "," or count:
                    yield line + text[: len(text) - len(text.lstrip())].count("\n"), text.strip()
                    count += 1
                line += text.count("\n")
                begin = scanned
                if mark != ",":
                    _refuse_more(path, buffer[begin:] + "".join(blocks))
                    return
        more = "".join(islice(blocks, 1 + (len(buffer) - begin) // BLOCK_BYTES))
        if not more:
            raise DataError(
                f"{path}: ends inside the array that it began (its last row begins at line {line}); "
                "the file is incomplete, copy it again"
            )
        buffer, scanned, begin = buffer[begin:] + more, scanned - begin, 0


def _refuse_more(path: Path, rest: str) -> None:
    if rest.strip():
        raise DataError(f"{path}: text after the end of the array: {rest.strip()[:40]!a}; remove it")
