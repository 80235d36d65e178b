"""The published cells of the paper's Tables 1 to 3 (arXiv 2608.06197), as they are printed, in percent."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "paper_tables.csv"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table to print: its title, and its columns as (group, heading, metric)."""

    title: str
    columns: tuple[tuple[str, str, str], ...]
    decimals: int


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One row as published. `mode`, `rehearsal_policy`: test-time rehearsal, empty where the table has none."""

    method: str
    mode: str
    rehearsal_policy: str
    cells: Mapping[str, str]

    @property
    def label(self) -> str:
        """How the row is called in our tables."""
        if not self.mode:
            return self.method
        return f"{self.method}, no rehearsal" if self.mode == "none" else f"{self.method}, {self.mode} by {self.by}"

    @property
    def by(self) -> str:
        """Whose rehearsal it is."""
        return "the base" if self.rehearsal_policy == "Base" else self.rehearsal_policy


_TAU2 = tuple(("τ²-bench", name.title(), f"tau2_{name}") for name in ("retail", "telecom", "airline", "average"))
LAYOUTS = {
    1: TableLayout(
        "Table 1: BFCL v4, τ²-bench and VitaBench",
        (
            *(
                ("BFCL v4", name, f"bfcl_{key}")
                for name, key in (
                    *(("Web", "web"), ("Memory", "memory"), ("Multi", "multi"), ("NoLive", "nolive")),
                    *(("Live", "live"), ("Irrel", "irrelevance"), ("Overall", "overall")),
                )
            ),
            *_TAU2,
            *(
                ("VitaBench", name, f"vita_{key}")
                for name, key in (
                    *(("Cross", "cross"), ("Delivery", "delivery"), ("In-store", "instore")),
                    *(("OTA", "ota"), ("Average", "average")),
                )
            ),
            ("", "Overall", "overall"),
        ),
        2,
    ),
    3: TableLayout(
        "Table 3: test-time rehearsal (a single run)",
        (
            *_TAU2,
            *(
                ("BFCL v4 multi-turn", name, f"mt_{key}")
                for name, key in (
                    *(("Base", "base"), ("Miss func", "miss_func"), ("Miss param", "miss_param")),
                    *(("Long context", "long_context"), ("Average", "average")),
                )
            ),
            ("", "Overall", "overall"),
        ),
        1,
    ),
}
"""Table 2 (FinMCP-Bench) is in the data file, but no harness here fills it."""
OVERALL_OF = {1: ("bfcl_overall", "tau2_average", "vita_average"), 3: ("tau2_average", "mt_average")}
"""A table's last column is the mean of these."""


@cache
def paper_rows(table: int) -> tuple[PaperRow, ...]:
    """The rows of a table in the paper's order, cells with the decimals they are printed with."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if int(row["table"]) == table:
                key = (row["method"], row["mode"], row["rehearsal_policy"])
                found.setdefault(key, {})[row["metric"]] = row["percent"]
    return tuple(PaperRow(*key, cells) for key, cells in found.items())
