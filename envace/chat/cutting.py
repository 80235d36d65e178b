"""Cuts reasoning out of sampled ids. Whole tokens only: what remains is what the engine sampled, never re-encoded."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from envace.chat.parser import Span

Decode = Callable[[list[int]], str]


def cut_spans(ids: list[int], spans: Sequence[Span], decode: Decode) -> list[int]:
    """`ids` without every token that holds any part of a span of their text, and without line ends right behind one.

    The line ends go since templates write none where they leave the reasoning out. Where the tags are no tokens of
    their own, a token that holds a part of a tag goes whole: reasoning is never left in.
    """
    kept: list[int] = []
    at = 0
    for start, end in spans:
        lengths = _Lengths(ids, decode)
        first = bisect_right(lengths, start, lo=at) - 1
        kept += ids[at : max(at, first)]
        at = bisect_left(lengths, end, lo=max(at, first))
        while at < len(ids) and (text := decode([ids[at]])) and not text.strip("\n"):
            at += 1
    return kept + ids[at:]


class _Lengths(Sequence[int]):
    """How many characters the first k tokens decode to, for k = 0 .. all; decoded only where it is looked at."""

    def __init__(self, ids: list[int], decode: Decode) -> None:
        self._ids, self._decode = ids, decode

    def __len__(self) -> int:
        return len(self._ids) + 1

    def __getitem__(self, k):  # type: ignore[no-untyped-def, override]
        return len(self._decode(self._ids[:k]))
