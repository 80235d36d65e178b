"""The profile of a data set: how long, how many, what about. CM2 states none of it, so it is measured."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any

from envace.data.checks import Row
from envace.data.flat import COUNTS, FlatRecord
from envace.data.schema_names import FOCUS

QUANTILES = {"p50": 50, "p95": 95}
PROFILED = (*COUNTS, "prompt_tokens", "reference_tokens")
"""What is profiled of a row: its flat counts, and estimates of tokens as in check 33."""


class FileProfile:
    """The kept rows of one file, a few whole numbers each."""

    def __init__(self) -> None:
        self._values = {name: array("Q") for name in PROFILED}
        self._focus: Counter[str] = Counter()

    def add(self, row: Row, flat: FlatRecord) -> None:
        """Count one kept row."""
        for name in COUNTS:
            self._values[name].append(flat[name])
        for name, size in zip(("prompt_tokens", "reference_tokens"), row.estimated_tokens, strict=True):
            self._values[name].append(size)
        for items in row.record["checklists"][0]:
            self._focus.update(item["focus_on"] for item in items)

    def record(self) -> dict[str, Any]:
        """Rows, figures of each count (mean to four decimals), and the mix of what items look at."""
        rows = len(self._values["turns"])
        items = sum(self._focus.values())
        return {
            "rows": rows,
            **{name: _figures(values) for name, values in self._values.items()},
            "focus_mix": {focus: round(self._focus[focus] / items, 4) if items else 0.0 for focus in FOCUS},
        }


def _figures(values: array[int]) -> dict[str, Any]:
    if not values:
        return {"mean": None, "min": None, **dict.fromkeys(QUANTILES), "max": None}
    ordered = sorted(values)
    # the smallest value that so many percent of the rows do not exceed: whole numbers, the same on every machine
    quantiles = {name: ordered[-(-len(ordered) * percent // 100) - 1] for name, percent in QUANTILES.items()}
    return {"mean": round(sum(ordered) / len(ordered), 4), "min": ordered[0], **quantiles, "max": ordered[-1]}
