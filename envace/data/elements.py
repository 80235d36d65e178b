"""The texts of rows as they are split off a file: whole up to a limit, the beginning and the length beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.errors import DataError

MAX_ELEMENT = 1 << 27
"""Characters after which a text can no longer be a row: the file is something else, or made to fill the memory."""
_SLACK = 4096  # white space around a row does not count for its length
UNDECODED: Any = object()


@dataclass(frozen=True)
class Element:
    """The text of one row, without what separates it from others. `line` is where it begins, counted from 1.

    `length` is that of the whole text, in characters; `text` is cut where it is longer than was asked to be kept.
    `value` is UNDECODED, or what the text says where it had to be decoded to find its end.
    """

    line: int
    text: str
    length: int
    value: Any = UNDECODED


class Pieces:
    """Collects a text that comes in pieces. Keeps about the first `keep` characters, counts them all."""

    def __init__(self, path: Path, keep: int | None) -> None:
        self._path = path
        self._keep = MAX_ELEMENT if keep is None else keep + _SLACK
        self._parts: list[str] = []
        self.length = 0

    def add(self, part: str, line: int) -> None:
        """Add a piece of the row that began at `line`. Raises DataError where the text grows beyond all measure."""
        if self.length <= self._keep:
            self._parts.append(part[: self._keep + 1 - self.length])
        self.length += len(part)
        if self.length > MAX_ELEMENT:
            raise DataError(
                f"{self._path}: what begins at line {line} goes on for over {MAX_ELEMENT} characters without an end, "
                "no row is that long; check that this is the right file"
            )

    def take(self) -> tuple[str, int]:
        """The text (or its beginning) and its length; nothing is left."""
        text, length = "".join(self._parts), self.length
        self._parts, self.length = [], 0
        return text, length
