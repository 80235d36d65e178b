"""Where an element of a JSON array ends, for text that no parser can read: broken, cut, or too long to be decoded."""

from __future__ import annotations

import re
from typing import Any

_SHORT = 1 << 14  # characters looked at token by token, which is best for short elements
_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|\\["\\]|\\\Z|[\[\]{},"]', re.DOTALL)
"""Strings as a whole, escaped marks, brackets and commas; a lone quotation mark where a string has no end yet."""
_WINDOW, _MAX_WINDOW = 1 << 14, 1 << 20  # then window by window, each twice the one before
_QUOTE, _COMMA, _CLOSE = ord('"'), ord(","), ord("]")
_NOT_NESTING = bytes(code for code in range(256) if code not in b'"[]{}')
_UNMARKED = bytes(code for code in range(256) if code not in b'"[]{},')
_STEPS = bytes(1 if code in b"[{" else 255 if code in b"]}" else 0 for code in range(256))  # as int8: 1, -1, 0


class EndFinder:
    """Follows strings and brackets of one element from block to block, whatever else may be wrong with the text.

    An element ends at a comma outside all brackets, or at a `]` that it has not opened. A `}` that it has not opened
    is part of it: the element is broken, and the array goes on. A backslash escapes a quotation mark outside of strings
    too: that is how text that was escaped once too often looks.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False  # the text so far ends in a backslash that escapes what follows

    def find(self, text: str, begin: int) -> int:
        """Index of the character that ends the element, or -1 where it goes on behind `text`."""
        if not self._in_string and not self._escaped:
            end, begin = self._end_of_short(text, begin)
            if end >= 0:
                return end
        window = _WINDOW
        while begin < len(text):
            data = self._without_escapes(text[begin : begin + window])
            end = -1 if self._goes_on_through(data) else self._end_in(data)
            if end >= 0:
                return begin + end
            begin += window
            window = min(2 * window, _MAX_WINDOW)
        return -1

    def _end_of_short(self, text: str, begin: int) -> tuple[int, int]:
        """Index of the end if it is near, else -1; and the index to look on from."""
        limit = min(len(text), begin + _SHORT)
        for token in _MARK.finditer(text, begin, limit):
            begin, mark = token.end(), token.group()
            if mark in ('"', "\\"):  # the end of the string, or what is escaped, is not near
                return -1, token.start()
            if mark in "[{":
                self._depth += 1
            elif mark in "]}" and self._depth:
                self._depth -= 1
            elif mark in ",]" and not self._depth:
                return token.start(), begin
        return -1, limit

    def _without_escapes(self, text: str) -> bytes:
        """One byte a character. Only ASCII ones mean anything here, and escaped ones nothing."""
        data = text.encode("latin-1", "replace")
        if self._escaped:
            data = b" " + data[1:]
        data = data.replace(b"\\\\", b"  ")  # pairs first, so that what is left escapes something else
        self._escaped = data.endswith(b"\\")
        return data.replace(b'\\"', b"  ")

    def _goes_on_through(self, data: bytes) -> bool:
        """Whether brackets stay open from the beginning to the end: a cheap test, and true for most of a long text."""
        if not self._depth:
            return False
        depth, is_inside = self._followed(data.translate(None, _NOT_NESTING))
        if not len(depth):
            return True
        if depth.min() <= 0:
            return False
        self._depth, self._in_string = int(depth[-1]), bool(is_inside[-1])
        return True

    def _end_in(self, data: bytes) -> int:
        """Index of the end, or -1 and the state behind `data`."""
        import numpy as np

        marks = np.frombuffer(data.translate(None, _UNMARKED), np.uint8)
        if not len(marks):
            return -1
        depth, is_inside = self._followed(marks.tobytes())
        lowest = np.minimum.accumulate(np.minimum(depth, 0))
        is_unopened = np.diff(lowest, prepend=np.int32(0)) < 0  # closes what is not open
        depth = depth - lowest
        is_end = ((marks == _COMMA) & ~is_inside & (depth == 0)) | ((marks == _CLOSE) & is_unopened)
        first = int(is_end.argmax())
        if is_end[first]:
            where = np.flatnonzero(np.isin(np.frombuffer(data, np.uint8), list(b'"[]{},')))
            return int(where[first])
        self._depth, self._in_string = int(depth[-1]), bool(is_inside[-1])
        return -1

    def _followed(self, marks: bytes) -> tuple[Any, Any]:
        """Behind each mark: how many brackets are open (below 0 where more were closed), and whether in a string."""
        import numpy as np

        quotes = np.frombuffer(marks, np.uint8) == _QUOTE
        is_inside = ((np.cumsum(quotes, dtype=np.uint8) + np.uint8(self._in_string)) & 1).view(np.bool_)
        steps = np.frombuffer(marks.translate(_STEPS), np.int8) * ~is_inside
        return self._depth + np.cumsum(steps, dtype=np.int32), is_inside
