"""Which cached rows hold the history of which rollout, so that its next prompt starts where that ended."""

from __future__ import annotations

from collections import OrderedDict


class PrefixTable:
    """Parked rows by session, the least recently used given up first."""

    def __init__(self, rows: range) -> None:
        self._free = list(rows)
        self._parked: OrderedDict[str, tuple[int, list[int]]] = OrderedDict()

    def park(self, session: str, ids: list[int]) -> int:
        """A row to copy the cached tokens `ids` of this session into."""
        if session in self._parked:
            row, _ = self._parked.pop(session)
        elif self._free:
            row = self._free.pop()
        else:
            _, (row, _) = self._parked.popitem(last=False)
        self._parked[session] = (row, ids)
        return row

    def match(self, session: str, prompt: list[int]) -> tuple[int, int]:
        """(row, tokens of `prompt` that it already holds); 0 tokens where nothing fits.

        At least the last prompt token is left to compute, since its logits are needed.
        """
        row, ids = self._parked.get(session, (0, []))
        shared = 0
        for cached, wanted in zip(ids, prompt[:-1], strict=False):
            if cached != wanted:
                break
            shared += 1
        return row, shared

    def clear(self) -> None:
        """Forget everything (the weights changed)."""
        self._free.extend(row for row, _ in self._parked.values())
        self._parked.clear()
