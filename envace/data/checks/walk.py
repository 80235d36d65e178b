"""All texts inside a decoded JSON value, with the place of each: for the checks that look at every text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]


def texts(value: Any) -> Iterator[tuple[Place, str, bool]]:
    """Place, text, and whether it is a key (its place is then that of what stands under it). In document order."""
    pending: list[tuple[Place, Any, bool]] = [((), value, False)]
    while pending:
        place, node, is_key = pending.pop()
        if isinstance(node, str):
            yield place, node, is_key
        elif isinstance(node, dict):
            for key, child in reversed(node.items()):
                inner = (*place, key)
                pending.append((inner, child, False))
                pending.append((inner, key, True))
        elif isinstance(node, list):
            pending.extend(((*place, index), node[index], False) for index in range(len(node) - 1, -1, -1))
