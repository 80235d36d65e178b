"""Role-wise GRPO advantages: every property of the method, against a slow loop over the definition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.algo.advantage import role_wise_advantages

Weighting = Literal["output", "rollout"]
WEIGHTINGS: list[Weighting] = ["output", "rollout"]
STD_FLOOR = 1e-3


@dataclass(frozen=True)
class Row:
    """One output of one rollout."""

    group: str
    role: str
    rollout: str
    reward: float
    scorable: bool


def advantages(rows: list[Row], weighting: Weighting = "output", **more: Any) -> list[float]:
    return role_wise_advantages(
        torch.tensor([r.reward for r in rows], dtype=torch.float64),
        [r.group for r in rows],
        [r.role for r in rows],
        [r.rollout for r in rows],
        torch.tensor([r.scorable for r in rows], dtype=torch.bool),
        weighting=weighting,
        **more,
    ).tolist()


def slow(rows: list[Row], weighting: Weighting, normalize_std: bool = False, baseline: str = "role") -> list[float]:
    """The definition, one row at a time."""
    result = []
    for row in rows:
        group = [r for r in rows if r.group == row.group and r.scorable]
        cell = group if baseline == "shared" else [r for r in group if r.role == row.role]
        if not row.scorable or len({r.reward for r in cell}) <= 1:
            result.append(0.0)
            continue
        same = {r.rollout: sum(o.rollout == r.rollout for o in cell) for r in cell}
        weights = [1.0 if weighting == "output" else 1.0 / same[r.rollout] for r in cell]
        mean = math.fsum(w * r.reward for w, r in zip(weights, cell, strict=True)) / math.fsum(weights)
        value = row.reward - mean
        if normalize_std:
            squares = math.fsum(w * (r.reward - mean) ** 2 for w, r in zip(weights, cell, strict=True))
            value /= max(math.sqrt(squares / math.fsum(weights)), STD_FLOOR)
        result.append(value)
    return result


@st.composite
def batches(draw: st.DrawFn) -> list[Row]:
    """A step: groups of rollouts, each with one reward (maybe none) and some outputs of both roles."""
    rows = []
    rewards = st.sampled_from([0.0, 0.35, 1.0]) | st.floats(0, 1)
    for group in range(draw(st.integers(1, 3))):
        for rollout in range(draw(st.integers(1, 4))):
            reward, scorable = draw(rewards), draw(st.integers(0, 5)) > 0
            for role in ("act", "rehearse"):
                row = Row(f"g{group}", role, f"g{group}#{rollout}", reward, scorable)
                rows += [row] * draw(st.integers(0, 4))
    return rows


@settings(deadline=None, max_examples=300)
@given(batches(), st.sampled_from(WEIGHTINGS), st.booleans(), st.sampled_from(["role", "shared"]))
def test_equals_the_definition(rows: list[Row], weighting: Weighting, normalize_std: bool, baseline: str) -> None:
    fast = advantages(rows, weighting, normalize_std=normalize_std, std_floor=STD_FLOOR, baseline=baseline)
    assert fast == pytest.approx(slow(rows, weighting, normalize_std, baseline), abs=1e-9)


def test_a_shared_baseline_is_one_mean_over_both_roles() -> None:
    """Two rollouts of rewards 1 and 0; the first has three rehearse outputs, so it weighs more in the shared mean."""
    rows = [Row("g", role, str(i), 1.0 - i, True) for i, role in ((0, "act"), *[(0, "rehearse")] * 3, (1, "act"))]
    assert advantages(rows) == pytest.approx([0.5, 0, 0, 0, -0.5])
    assert advantages(rows, baseline="shared") == pytest.approx([0.2, 0.2, 0.2, 0.2, -0.8])
    with pytest.raises(ValueError, match="'role' or 'shared'"):
        advantages(rows, baseline="none")


@settings(deadline=None, max_examples=200)
@given(batches(), st.booleans())
def test_output_weighting_sums_to_zero_over_outputs(rows: list[Row], normalize_std: bool) -> None:
    values = advantages(rows, "output", normalize_std=normalize_std)
    for cell in {(r.group, r.role) for r in rows}:
        total = sum(a for a, r in zip(values, rows, strict=True) if (r.group, r.role) == cell)
        assert total == pytest.approx(0, abs=1e-6)


@settings(deadline=None, max_examples=200)
@given(batches(), st.booleans())
def test_rollout_weighting_sums_to_zero_over_rollouts(rows: list[Row], normalize_std: bool) -> None:
    values = advantages(rows, "rollout", normalize_std=normalize_std)
    for cell in {(r.group, r.role) for r in rows}:
        means = {r.rollout: a for a, r in zip(values, rows, strict=True) if (r.group, r.role) == cell}
        assert sum(means.values()) == pytest.approx(0, abs=1e-6)


@settings(deadline=None, max_examples=200)
@given(batches(), st.sampled_from(WEIGHTINGS), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows: list[Row], weighting: Weighting, rng: Any) -> None:
    order = list(range(len(rows)))
    rng.shuffle(order)
    shuffled = advantages([rows[i] for i in order], weighting)
    assert shuffled == pytest.approx([advantages(rows, weighting)[i] for i in order], abs=1e-12)


@settings(deadline=None, max_examples=200)
@given(batches(), st.sampled_from(WEIGHTINGS))
def test_unscorable_outputs_get_zero_and_change_nothing(rows: list[Row], weighting: Weighting) -> None:
    values = advantages(rows, weighting)
    assert all(a == 0 for a, r in zip(values, rows, strict=True) if not r.scorable)
    kept = [(a, r) for a, r in zip(values, rows, strict=True) if r.scorable]
    assert [a for a, _ in kept] == pytest.approx(advantages([r for _, r in kept], weighting), abs=1e-12)


@settings(deadline=None, max_examples=200)
@given(batches(), batches(), st.sampled_from(WEIGHTINGS))
def test_other_rehearsals_leave_act_advantages_as_they_are(
    rows: list[Row], others: list[Row], weighting: Weighting
) -> None:
    acts = [r for r in rows if r.role == "act"]
    swapped = acts + [r for r in others if r.role == "rehearse"]
    before = [a for a, r in zip(advantages(rows, weighting), rows, strict=True) if r.role == "act"]
    assert advantages(swapped, weighting)[: len(acts)] == pytest.approx(before, abs=1e-12)


@settings(deadline=None, max_examples=100)
@given(batches(), st.sampled_from(WEIGHTINGS), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_what_is_not_scorable_may_hold_any_number(rows: list[Row], weighting: Weighting, odd: float) -> None:
    spoiled = [r if r.scorable else Row(r.group, r.role, r.rollout, odd, False) for r in rows]
    assert advantages(spoiled, weighting) == advantages(rows, weighting)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_left_out_like_an_unscorable_one(weighting: Weighting, odd: float) -> None:
    rows = [Row("g", "act", f"r{i}", reward, True) for i, reward in enumerate([0.0, 1.0, odd])]
    assert advantages(rows, weighting) == [-0.5, 0.5, 0.0]


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("normalize_std", [False, True])
@pytest.mark.parametrize("reward", [0.0, 0.35, 1.0, -3.0])
def test_a_single_output_gets_zero_and_never_its_raw_reward(
    weighting: Weighting, normalize_std: bool, reward: float
) -> None:
    rows = [Row("g", "rehearse", "r0", reward, True), Row("g", "act", "r0", reward, True)]
    assert advantages(rows, weighting, normalize_std=normalize_std) == [0.0, 0.0]


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("normalize_std", [False, True])
def test_equal_rewards_give_exactly_zero(weighting: Weighting, normalize_std: bool) -> None:
    rows = [Row("g", "act", f"r{i % 3}", 0.35, True) for i in range(7)]
    assert advantages(rows, weighting, normalize_std=normalize_std) == [0.0] * 7
    thirds = role_wise_advantages(
        torch.full((7,), 1 / 3), ["g"] * 7, ["act"] * 7, list("abcdefg"), torch.ones(7), normalize_std=True
    )
    assert thirds.tolist() == [0.0] * 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_outlier_among_equals_stays_finite_with_std(dtype: torch.dtype) -> None:
    rewards = torch.tensor([0.35] * 7 + [0.0], dtype=dtype)
    names = [f"r{i}" for i in range(8)]
    values = role_wise_advantages(
        rewards, ["g"] * 8, ["act"] * 8, names, torch.ones(8, dtype=torch.bool), normalize_std=True
    )
    assert values.dtype == dtype and bool(torch.isfinite(values).all())
    assert values[:7].tolist() == pytest.approx([1 / math.sqrt(7)] * 7, abs=1e-6)
    assert values[7].item() == pytest.approx(-math.sqrt(7), abs=1e-5)


def test_a_tiny_spread_is_not_blown_up_by_its_std() -> None:
    rows = [Row("g", "act", f"r{i}", 0.35 + 1e-7 * (i == 0), True) for i in range(8)]
    assert max(abs(a) for a in advantages(rows, normalize_std=True, std_floor=STD_FLOOR)) < 1e-3


def test_a_rollout_with_more_outputs_weighs_more_by_output_and_the_same_by_rollout() -> None:
    rows = [Row("g", "act", "short", 1.0, True)] + [Row("g", "act", "long", 0.0, True)] * 10
    assert advantages(rows, "output")[:2] == pytest.approx([10 / 11, -1 / 11])
    assert advantages(rows, "rollout")[:2] == pytest.approx([0.5, -0.5])


def test_roles_and_groups_have_baselines_of_their_own() -> None:
    rows = [
        Row("g", "act", "r0", 1.0, True),
        Row("g", "act", "r1", 0.0, True),
        Row("g", "rehearse", "r0", 1.0, True),
        Row("h", "act", "r2", 0.0, True),
        Row("h", "act", "r3", 0.2, True),
    ]
    assert advantages(rows) == pytest.approx([0.5, -0.5, 0.0, -0.1, 0.1])


def test_labels_that_join_to_the_same_text_are_kept_apart() -> None:
    rows = [Row("a#b", "act", "c", 1.0, True), Row("a", "b#act", "c", 0.0, True)]
    assert advantages(rows) == [0.0, 0.0]


def test_nothing_gives_nothing_and_unequal_lengths_are_refused() -> None:
    assert advantages([]) == []
    with pytest.raises(ValueError, match="equal lengths"):
        role_wise_advantages(torch.zeros(2), ["g"], ["act"], ["r"], torch.ones(2))


def test_a_step_without_anything_scorable_is_all_zero() -> None:
    rows = [Row("g", "act", "r0", 1.0, False), Row("g", "act", "r1", 0.0, False)]
    for weighting in WEIGHTINGS:
        assert advantages(rows, weighting, normalize_std=True) == [0.0, 0.0]


@given(batches(), st.sampled_from(WEIGHTINGS), st.sampled_from([torch.int8, torch.int32, torch.int64]), st.booleans())
def test_labels_may_be_integers_of_any_kind_dense_or_not(
    rows: list[Row], weighting: Weighting, dtype: torch.dtype, sparse: bool
) -> None:
    """Negative, far apart and narrow integers stand for the same labels as names do."""
    if not rows:
        return

    def numbers(labels: list[str]) -> torch.Tensor:
        known = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        if sparse and dtype is not torch.int8:
            known = {label: (-1) ** i * 10**8 * i for label, i in known.items()}
        return torch.tensor([known[label] for label in labels], dtype=dtype)

    found = role_wise_advantages(
        torch.tensor([r.reward for r in rows], dtype=torch.float64),
        numbers([r.group for r in rows]),
        numbers([r.role for r in rows]),
        numbers([r.rollout for r in rows]),
        torch.tensor([r.scorable for r in rows]),
        weighting=weighting,
    )
    assert found.tolist() == pytest.approx(advantages(rows, weighting), abs=1e-12)


def test_two_fields_of_labels_never_run_into_each_other() -> None:
    groups, roles = torch.tensor([0, 1, 0, 1]), torch.tensor([2, 0, 2, 0])
    found = role_wise_advantages(torch.tensor([1.0, 5.0, 0.0, 3.0]), groups, roles, torch.arange(4), torch.ones(4))
    assert found.tolist() == [0.5, 1.0, -0.5, -1.0]


@pytest.mark.parametrize(
    ("rewards", "more", "words"),
    [(torch.tensor([1, 0]), {}, "float"), (torch.tensor([1.0, 0.0]), {"weighting": "rollouts"}, "weighting")],
)
def test_wrong_input_is_refused(rewards: torch.Tensor, more: dict[str, Any], words: str) -> None:
    two, scorable = ["a", "a"], torch.tensor([True, True])
    with pytest.raises(ValueError, match=words):
        role_wise_advantages(rewards, two, two, ["0", "1"], scorable, **more)


def test_integer_labels_may_be_as_far_apart_as_they_like() -> None:
    far = torch.tensor([-(2**62), 2**62, -(2**62), 2**62])
    rewards, scorable = torch.tensor([0.0, 1.0, 1.0, 0.0]), torch.ones(4, dtype=torch.bool)
    found = role_wise_advantages(rewards, far, torch.zeros(4, dtype=torch.long), torch.arange(4), scorable)
    assert found.tolist() == [-0.5, 0.5, 0.5, -0.5]
