"""Official and strict from the same rows: failures never pass strictly and never leave the denominator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from envace.benchmarks.bfcl import BFCL
from envace.benchmarks.metrics import metrics, percent
from envace.benchmarks.protocol import Agent, DriverReport, Harness, Row, Spec, Status
from envace.errors import BenchmarkError

HARNESS = Harness(name="bfcl-eval", kind="pypi", version="1")
SPEC = Spec(benchmark="bfcl", harness=HARNESS, agent=Agent(kind="oracle"))


def row(task: int, status: Status, score: float | None, category: str = "irrelevance") -> Row:
    counted = score is not None
    return Row(
        run=0, task_id=f"{category}_{task}", category=category, score=score, status=status, official_counted=counted
    )


def report(**official: float) -> DriverReport:
    return DriverReport(versions={}, data_sha256={}, official=official)


MIXED = [
    row(0, "scored", 1.0),
    row(1, "model_failure", 1.0),  # garbage that the harness takes for an abstention
    row(2, "infra_failure", 1.0),  # a dead endpoint, likewise
    row(3, "scored", 0.0),
    row(4, "infra_failure", None),  # left out by the harness
]


def test_a_failure_counts_zero_strictly_whatever_the_harness_says() -> None:
    assert percent(MIXED, "official") == 75.0
    assert percent(MIXED, "strict") == 20.0


def test_what_a_stopped_run_did_not_come_to_stays_in_the_strict_denominator() -> None:
    rows = [row(0, "scored", 1.0), row(1, "not_run", None)]
    assert percent(rows, "strict") == 50.0
    assert percent(rows, "official") == 100.0


@pytest.mark.parametrize("rows", [[], [row(0, "not_run", None)]])
def test_a_group_that_was_not_run_is_null(rows: Sequence[Row]) -> None:
    assert percent(rows, "strict") is None
    assert percent(rows, "official") is None


def test_counts_subset_and_reasons() -> None:
    found = metrics(BFCL, SPEC, MIXED, report(irrelevance=75.0))
    count = found.counts["irrelevance"]
    assert (count.expected, count.scored, count.model_failure, count.infra_failure) == (240, 2, 1, 2)
    assert found.subset
    assert found.not_run["multi_turn_base"] == "not chosen"
    assert (found.official["irrelevance"], found.strict["irrelevance"]) == (75.0, 20.0)
    assert found.official["overall"] is None and found.strict["irrel"] is None  # the column needs both its parts


def test_a_whole_category_is_no_subset() -> None:
    rows = [row(n, "scored", 1.0, "live_parallel") for n in range(16)]
    assert not metrics(BFCL, SPEC, rows, report()).subset


def test_rows_that_do_not_give_what_the_harness_printed_are_refused() -> None:
    with pytest.raises(BenchmarkError, match="irrelevance: the harness printed 80"):
        metrics(BFCL, SPEC, MIXED, report(irrelevance=80.0))


@pytest.mark.parametrize(
    ("status", "score", "counted"),
    [("scored", None, False), ("not_run", 1.0, False), ("not_run", None, True), ("infra_failure", None, True)],
)
def test_rows_that_contradict_themselves_are_refused(status: Status, score: float | None, counted: bool) -> None:
    with pytest.raises(ValidationError):
        Row(run=0, task_id="a", category="b", score=score, status=status, official_counted=counted)


def test_a_plain_agent_needs_a_policy() -> None:
    with pytest.raises(ValidationError, match="needs a policy"):
        Spec(benchmark="bfcl", harness=HARNESS, agent=Agent(kind="plain"))
