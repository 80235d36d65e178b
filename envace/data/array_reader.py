"""The elements of one large JSON array, without holding more of it than a block and an element."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from envace.data.array_ends import EndFinder
from envace.data.elements import Element, Pieces
from envace.errors import DataError
from envace.strict_json import parse_prefix

Decode = Callable[[str, int], tuple[Any, int]]
"""Decodes the JSON value at an index and gives it with the index behind it; any ValueError means "not readable"."""
_CAUTION = 1 << 16
"""Characters behind an unreadable element in which none is tried: a failure takes time, broken ones come in crowds."""
_SPACE, _ANY_SPACE = re.compile(r"[ \t\n\r]*+"), re.compile(r"\s*+")
_ANY_JSON = json.JSONDecoder()


def read_strictly(text: str, at: int) -> tuple[Any, int]:
    """Decode strict JSON: for rows that are wanted."""
    return parse_prefix(text, at)


def read_loosely(text: str, at: int) -> tuple[Any, int]:
    """Decode whatever Python takes for JSON: faster, for rows that are only counted."""
    try:
        return _ANY_JSON.raw_decode(text, at)
    except RecursionError:
        raise ValueError("nested too deep") from None


def array_elements(
    path: Path, blocks: Iterator[str], line: int, keep: int | None, decode: Decode = read_strictly
) -> Iterator[Element]:
    """Yield the elements of the array that begins in the first block, at `line`.

    A well-formed element is decoded where it stands, which finds its end as well. Any other is told apart by its
    strings and brackets alone; its text is kept up to `keep` characters, and it comes undecoded.
    Raises DataError, which names the file and the place, for an array that has no end or is followed by more text.
    """
    text = _Text(path, blocks, line, keep)
    is_first = True
    while True:
        element, mark = text.readable_element(decode) or text.any_element()
        if mark == "]" and not element.length and not is_first:
            raise DataError(
                f"{path}: line {element.line}: a comma stands before the bracket that ends the array; remove the comma"
            )
        # nothing between the brackets is no element, nothing between commas is a broken one
        if element.length or mark == "," or not is_first:
            yield element
            is_first = False
        if mark == "]":
            text.refuse_more()
            return


class _Text:
    """The text of an array, read as far as `at` in the present block."""

    def __init__(self, path: Path, blocks: Iterator[str], line: int, keep: int | None) -> None:
        self._path, self._blocks, self._keep = path, blocks, keep
        self._block = next(blocks)
        self._at = self._block.index("[") + 1
        self._try_from = 0  # index in the block from which on elements are tried to be decoded
        self._line = line + self._block.count("\n", 0, self._at)

    def readable_element(self, decode: Decode) -> tuple[Element, str] | None:
        """The next element and the mark behind it, where the present block holds both and nothing is wrong."""
        block = self._block
        if self._at < self._try_from:
            return None
        begin = _end_of(_SPACE, block, self._at)
        try:
            value, end = decode(block, begin)
        except (ValueError, StopIteration):
            self._try_from = begin + _CAUTION
            return None
        stop = _end_of(_SPACE, block, end)
        mark = block[stop : stop + 1]
        if not mark or mark not in ",]":
            self._try_from = begin + _CAUTION
            return None
        line = self._line + block.count("\n", self._at, begin)
        self._line = line + block.count("\n", begin, stop)
        self._at = stop + 1
        return Element(line, block[begin:end], end - begin, value), mark

    def any_element(self) -> tuple[Element, str]:
        """The next element and the mark behind it, whatever the text looks like."""
        finder, pieces = EndFinder(), Pieces(self._path, self._keep)
        first_line = self._line
        while True:
            block, begin = self._block, self._at
            if not pieces.length:
                begin = _end_of(_ANY_SPACE, block, begin)
                first_line = self._line = self._line + block.count("\n", self._at, begin)
            end = finder.find(block, begin)
            stop = len(block) if end < 0 else end
            pieces.add(block[begin:stop], first_line)
            self._line += block.count("\n", begin, stop)
            self._at = stop + 1
            if end >= 0:
                text, length = pieces.take()
                if len(text) == length:
                    text = text.rstrip()
                    length = len(text)
                return Element(first_line, text, length), block[end]
            self._block = next(self._blocks, "")
            self._at = self._try_from = 0
            if not self._block:
                raise DataError(
                    f"{self._path}: ends inside the array that it began (its last row begins at line {first_line}); "
                    "the file is incomplete, copy it again"
                )

    def refuse_more(self) -> None:
        """Nothing but white space may follow the array."""
        rest = self._block[self._at :]
        while rest is not None:
            if rest.strip():
                found = f"{rest.strip()[:40]!a}"
                raise DataError(f"{self._path}: text after the end of the array: {found}; remove it")
            rest = next(self._blocks, None)


def _end_of(space: re.Pattern[str], text: str, begin: int) -> int:
    match = space.match(text, begin)
    return match.end() if match else begin
