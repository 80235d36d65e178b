"""Which cached rows hold the beginning of which prompt, so that nothing is computed twice.

The history of a rollout is a prefix of its next prompt; the first prompt is the same in all rollouts of a task.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

MIN_SHARED = 16
"""Tokens that another session's row must hold beyond one's own before it is taken instead."""
_BLOCK = 64
_MASK_ELEMENTS = 1 << 26  # of one forward pass: about 300 MB while it lasts


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

    def match(
        self, session: str, prompt: Sequence[int], running: Iterable[tuple[int, Sequence[int]]] = ()
    ) -> tuple[int, int]:
        """(row, tokens of `prompt` that it already holds); 0 tokens where nothing fits.

        The session's own row unless another session's, or one of `running` (rows and the tokens they hold), has clearly
        more. At least the last prompt token is left to compute, since its logits are needed.
        """
        wanted = prompt[:-1]
        row, ids = self._parked.get(session, (0, []))
        shared, owner = common_prefix(ids, wanted), session
        others = ((other, *parked) for other, parked in self._parked.items() if other != session)
        for name, candidate, held in [*others, *(("", *each) for each in running)]:
            need = shared + MIN_SHARED
            if len(held) < need or len(wanted) < need or held[need - 1] != wanted[need - 1]:
                continue
            found = common_prefix(held, wanted)
            if found >= need:
                row, shared, owner = candidate, found, name
        if owner in self._parked:
            self._parked.move_to_end(owner)
        return row, shared

    def clear(self) -> None:
        """Forget everything (the weights changed)."""
        self._free.extend(row for row, _ in self._parked.values())
        self._parked.clear()


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences (both lists or both tuples) have in common at their beginning."""
    longest = min(len(one), len(other))
    at = 0
    while at < longest and one[at : at + _BLOCK] == other[at : at + _BLOCK]:
        at += _BLOCK
    at = min(at, longest)
    while at < longest and one[at] == other[at]:
        at += 1
    return at


def followers(prompts: Sequence[Sequence[int]], cached: Sequence[int]) -> set[int]:
    """Of prompts that come together, those that should wait for another one's prefill and copy its beginning.

    `cached` says how much of each is cached already. One waits where that saves it at least half of the rest, and at
    least MIN_SHARED tokens: a second pass over little is cheaper than a first one over much.
    """
    leading: list[int] = []
    waiting: set[int] = set()
    for i in sorted(range(len(prompts)), key=lambda i: -len(prompts[i])):  # a prefix of another comes after it
        prompt = prompts[i]
        need = cached[i] + max(MIN_SHARED, (len(prompt) - cached[i] + 1) // 2)
        saves = need < len(prompt) and any(
            len(prompts[j]) >= need
            and prompts[j][need - 1] == prompt[need - 1]
            and common_prefix(prompts[j], prompt) >= need
            for j in leading
        )
        waiting.add(i) if saves else leading.append(i)
    return waiting


def passes(lengths: Sequence[int]) -> list[slice]:
    """Cuts rows of so many tokens each, in their order, into forward passes whose attention masks fit into memory."""
    cuts, first, longest = [], 0, 0
    for at, length in enumerate(lengths):
        longest = max(longest, length)
        if at > first and (at - first + 1) * longest**2 > _MASK_ELEMENTS:
            cuts.append(slice(first, at))
            first, longest = at, length
    return [*cuts, slice(first, len(lengths))] if lengths else []
