"""The paired bootstrap: that it covers, that pairing is what makes it sharp, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.experiment.statistics import mean_over_seeds, paired_interval, spread

figures = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30)


def named(values: list[float]) -> dict[str, float]:
    return {f"t{i}": float(v) for i, v in enumerate(values)}


def test_it_covers_the_true_difference_about_as_often_as_it_says() -> None:
    """300 experiments of 60 tasks whose rewards are skewed and bounded, as real ones are."""
    rng = np.random.default_rng(1)
    truth, hits = 0.1, 0
    for _ in range(300):
        before = rng.beta(2, 1, 60) * 0.8
        after = before + rng.choice([-0.2, 0.0, 0.1, 0.4], size=60, p=[0.2, 0.3, 0.3, 0.2]) + truth - 0.07
        found = paired_interval(named(list(before)), named(list(after)), resamples=1000)
        hits += found.low <= truth <= found.high
    assert 0.90 <= hits / 300 <= 0.98


def test_no_difference_is_rarely_called_one() -> None:
    rng = np.random.default_rng(2)
    called = 0
    for _ in range(300):
        before, after = rng.random(60), rng.random(60)
        called += paired_interval(named(list(before)), named(list(after)), resamples=1000).excludes_zero
    assert called / 300 <= 0.09


def test_pairing_sees_what_independent_tasks_would_hide() -> None:
    """Tasks differ by much, the policies by little: the same rewards given to other tasks show nothing."""
    rng = np.random.default_rng(3)
    before = rng.random(100)
    after = before + 0.03 + rng.normal(0, 0.02, 100)
    paired = paired_interval(named(list(before)), named(list(after)), resamples=4000)
    shuffled = paired_interval(named(list(before)), named(list(rng.permutation(after))), resamples=4000)
    assert paired.excludes_zero and not shuffled.excludes_zero
    assert paired.mean == pytest.approx(shuffled.mean)
    assert shuffled.high - shuffled.low > 5 * (paired.high - paired.low)


@settings(deadline=None, max_examples=60)
@given(figures)
def test_exchanging_the_sides_mirrors_the_interval(pairs: list[tuple[float, float]]) -> None:
    before, after = named([p[0] for p in pairs]), named([p[1] for p in pairs])
    one, other = (paired_interval(a, b, resamples=500) for a, b in ((before, after), (after, before)))
    assert (one.mean, one.low, one.high) == pytest.approx((-other.mean, -other.high, -other.low), abs=1e-9)
    assert one.low - 1e-9 <= one.mean <= one.high + 1e-9 or len(pairs) < 8


@settings(deadline=None, max_examples=30)
@given(figures, st.integers(0, 5))
def test_it_is_the_same_each_time_and_whatever_the_order_of_tasks(pairs: list[tuple[float, float]], seed: int) -> None:
    before, after = named([p[0] for p in pairs]), named([p[1] for p in pairs])
    reversed_ = dict(reversed(after.items()))
    assert paired_interval(before, after, resamples=300, seed=seed) == paired_interval(
        before, reversed_, resamples=300, seed=seed
    )


def test_equal_policies_differ_by_exactly_nothing() -> None:
    found = paired_interval(named([0.3, 0.7, 1.0]), named([0.3, 0.7, 1.0]), resamples=200)
    assert (found.mean, found.low, found.high, found.excludes_zero) == (0, 0, 0, False)


def test_more_resamples_than_fit_at_once_are_all_drawn() -> None:
    rng = np.random.default_rng(4)
    before, after = named(list(rng.random(40))), named(list(rng.random(40)))
    narrow, wide = (paired_interval(before, after, resamples=n, level=0.5) for n in (9000, 9001))
    assert narrow.low == pytest.approx(wide.low, abs=1e-3) and narrow != wide


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {}, "at least two"),
        ({"a": 1.0}, {"a": 0.5}, "at least two"),
        ({"a": 1.0, "b": 1.0}, {"a": 1.0}, "not the same tasks"),
        ({"a": 1.0, "b": 1.0}, {"a": 1.0, "c": 1.0}, "not the same tasks"),
        ({"a": 1.0, "b": float("nan")}, {"a": 1.0, "b": 0.0}, "not finite"),
    ],
)
def test_what_cannot_be_paired_is_refused(before: dict[str, float], after: dict[str, float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        paired_interval(before, after, resamples=100)


def test_means_over_seeds_are_by_task() -> None:
    assert mean_over_seeds([{"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 1.0}]) == {"a": 0.5, "b": 1.0}
    for wrong in ([], [{"a": 1.0}, {"b": 1.0}]):
        with pytest.raises(ValueError):
            mean_over_seeds(wrong)


def test_a_spread_of_one_value_has_no_deviation() -> None:
    assert spread([0.5]) == {"mean": 0.5, "sd": None, "min": 0.5, "max": 0.5, "seeds": 1}
    assert spread([0.4, 0.6])["sd"] == pytest.approx(0.141421, abs=1e-6)
    with pytest.raises(ValueError):
        spread([])
