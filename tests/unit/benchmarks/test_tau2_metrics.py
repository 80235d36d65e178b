"""τ²-bench's figures: pass^1 and pass^k over a fixed number of trials, by a stated convention, and the macro mean."""

from __future__ import annotations

import pytest

from envace.benchmarks.protocol import Row, Status
from envace.benchmarks.tau2 import COLUMNS, SIZES, measure, pass_hat_k, plug_in


def row(task: str, run: int, score: float | None, status: Status = "scored", counted: bool = True) -> Row:
    domain = task.split("/")[0]
    return Row(run=run, task_id=task, category=domain, score=score, status=status, official_counted=counted)


def trials(task: str, *scores: float) -> list[Row]:
    return [row(task, run, score) for run, score in enumerate(scores)]


def test_pass_1_is_the_mean_over_all_trials_and_the_average_the_mean_of_domains_not_of_tasks() -> None:
    rows = [*trials("airline/0", 1, 1), *trials("airline/1", 1, 0), *trials("retail/0", 0, 0)]
    rows += trials("telecom/a", 1, 1)
    assert {name: measure(rows, "strict")[name] for name in (*SIZES, "average")} == {
        "airline": 75.0,
        "retail": 0.0,
        "telecom": 100.0,
        "average": pytest.approx((75 + 0 + 100) / 3),
    }


def test_pass_k_is_the_share_of_choices_of_k_trials_that_all_succeeded() -> None:
    rows = [*trials("airline/0", 1, 1, 1, 0), *trials("airline/1", 1, 1, 1, 1)]
    found = measure(rows, "strict")
    assert found["airline_pass^2"] == pytest.approx(100 * (3 / 6 + 1) / 2)  # of 6 pairs 3 are all right
    assert found["airline_pass^4"] == pytest.approx(50.0)
    assert "airline_pass^5" not in found


def test_the_other_convention_is_given_by_its_own_name_and_is_never_the_smaller() -> None:
    rows = trials("airline/0", 1, 1, 1, 0)
    found = measure(rows, "strict")
    assert found["airline_plug_in_pass^2"] == pytest.approx(100 * 0.75**2)
    for k in (1, 2, 3, 4):
        ours, theirs = pass_hat_k(rows, k, "strict"), pass_hat_k(rows, k, "strict", plug_in)
        assert ours is not None and theirs is not None and theirs >= ours


def test_a_domain_that_was_not_run_is_null_and_so_is_the_average() -> None:
    found = measure([*trials("airline/0", 1), row("retail/0", 0, None, "not_run", False)], "strict")
    assert found["airline"] == 100.0
    assert found["retail"] is None and found["telecom"] is None and found["average"] is None


@pytest.mark.parametrize("status", ["model_failure", "infra_failure"])
def test_a_failed_conversation_stays_in_the_strict_denominator_though_the_harness_drops_it(status: Status) -> None:
    rows = [*trials("airline/0", 1, 1), row("airline/1", 0, None, status, False), row("airline/1", 1, 1.0)]
    assert measure(rows, "strict")["airline"] == 75.0
    assert measure(rows, "strict")["airline_pass^2"] == 50.0
    assert measure(rows, "official")["airline"] == 100.0
    assert measure(rows, "official")["airline_pass^2"] is None, "one task has a single trial that the harness counts"


def test_a_failed_conversation_that_carries_a_score_is_strictly_still_no_success() -> None:
    rows = [row("airline/0", 0, 1.0, "model_failure")]
    assert measure(rows, "strict")["airline"] == 0.0


def test_the_columns_are_those_of_the_published_table() -> None:
    assert set(COLUMNS.values()) <= measure([], "strict").keys()
    assert all(metric == f"tau2_{key}" for metric, key in COLUMNS.items())
    assert sum(SIZES.values()) == 278
