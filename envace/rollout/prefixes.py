"""How much of a rollout's prompts had been computed before: what a prefix cache that forgets nothing would save."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from envace.types import Role


class ComputedPrefixes:
    """The sequences (prompt and output) of a rollout that an engine has been through."""

    def __init__(self) -> None:
        self._sequences: list[tuple[list[int], list[int]]] = []

    def add(self, prompt: list[int], output: list[int]) -> None:
        """Note a sequence whose generation has ended."""
        self._sequences.append((prompt, output))

    def shared(self, prompt: list[int]) -> int:
        """How many leading tokens of `prompt` lead one of the sequences too. The last one counts like the others,
        although engines must run a prompt's last token again."""
        longest = 0
        for earlier, output in reversed(self._sequences):
            # most sequences are the beginning of a later one: told apart by length, without comparing anything
            if longest < min(len(prompt), len(earlier) + len(output)):
                found = _common(earlier, prompt)
                if found == len(earlier):
                    found += _common(output, prompt[found : found + len(output)])
                longest = max(longest, found)
        return longest


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(a), len(b))
    if high == len(a) and a == b[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def shared_prefix_shares(outputs: Iterable[Mapping[str, Any]], prefix: str = "") -> dict[str, float]:
    """Over outputs as `rollout_row` keeps them: the share of each role's prompt tokens that was computed before.

    A rehearsal's share is what the act prompts and outputs before it (and the rehearsals before those) have paid for.
    Outputs of chat endpoints are not counted (nothing is known of their tokens); roles without any are left out.
    """
    shares: dict[str, float] = {}
    seen = [o for o in outputs if o["shared_tokens"] is not None]
    for role, name in ((Role.REHEARSE, "shared_prefix_share"), (Role.ACT, "act_shared_prefix_share")):
        mine = [o for o in seen if o["role"] == role.value]
        if total := sum(o["prompt_tokens"] for o in mine):
            shares[prefix + name] = sum(o["shared_tokens"] for o in mine) / total
    return shares
