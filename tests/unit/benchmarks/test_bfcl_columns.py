"""Table 1's columns by the stated formulas: the paper's own cells give its averages; what is missing gives none."""

from __future__ import annotations

import pytest

from envace.benchmarks.bfcl import LIVE, SIZES, columns, overall
from envace.benchmarks.paper import paper_rows

GROUPS = {name: f"bfcl_{name}" for name in ("web", "memory", "multi", "nolive", "live")}
GROUPS["irrel"] = "bfcl_irrelevance"


def cells(row: object) -> dict[str, float]:
    return {name: float(text) for name, text in row.cells.items()}  # type: ignore[attr-defined]


BFCL_ROWS = [row for row in paper_rows(1) if "bfcl_overall" in row.cells]


@pytest.mark.parametrize("row", BFCL_ROWS, ids=lambda row: row.method)
def test_the_papers_bfcl_average_follows_from_its_cells(row: object) -> None:
    printed = cells(row)
    found = overall({name: printed[metric] for name, metric in GROUPS.items()})
    assert found == pytest.approx(printed["bfcl_overall"], abs=0.01)


def test_all_eleven_rows_are_there() -> None:
    assert len(BFCL_ROWS) == 11


@pytest.mark.parametrize("row", BFCL_ROWS, ids=lambda row: row.method)
def test_the_papers_overall_follows_from_its_printed_averages(row: object) -> None:
    printed = cells(row)
    mean = sum(printed[name] for name in ("bfcl_overall", "tau2_average", "vita_average")) / 3
    assert mean == pytest.approx(printed["overall"], abs=0.015)


@pytest.mark.parametrize("row", paper_rows(3), ids=lambda row: row.label)
def test_table_3_follows_from_its_printed_averages(row: object) -> None:
    printed = cells(row)
    kinds = ("base", "miss_func", "miss_param", "long_context")
    assert sum(printed[f"mt_{kind}"] for kind in kinds) / 4 == pytest.approx(printed["mt_average"], abs=0.05)
    assert (printed["tau2_average"] + printed["mt_average"]) / 2 == pytest.approx(printed["overall"], abs=0.05 + 1e-9)


def test_columns_are_weighted_as_stated() -> None:
    values: dict[str, float | None] = dict.fromkeys(SIZES, 0.0)
    values |= {"simple_python": 90.0, "simple_java": 60.0, "simple_javascript": 30.0, "live_simple": 100.0}
    found = columns(values)
    assert found["nolive"] == pytest.approx(60 / 4)  # simple is the mean of its three languages
    assert found["live"] == pytest.approx(100 * 258 / 1351)  # by number of tasks
    assert sum(LIVE.values()) == 1351
    assert columns({**values, "live_relevance": 100.0}) == found  # stands in no column


@pytest.mark.parametrize("missing", [name for name in SIZES if name != "live_relevance"])
def test_a_missing_category_leaves_its_column_and_overall_empty(missing: str) -> None:
    values: dict[str, float | None] = dict.fromkeys(SIZES, 50.0)
    found = columns({**values, missing: None})
    assert found["overall"] is None
    assert sum(value is None for value in found.values()) == 2
    assert columns(values)["overall"] == pytest.approx(50.0)


def test_no_column_is_called_like_a_category() -> None:
    assert not set(columns({})) & set(SIZES)


def test_the_idle_floor_of_overall_is_ten() -> None:
    found = columns({**dict.fromkeys(SIZES, 0.0), "irrelevance": 100.0, "live_irrelevance": 100.0})
    assert found["overall"] == pytest.approx(10.0)
