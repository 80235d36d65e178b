"""Figures of recorded groups: the trainer's advantages, and baselines that fit them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.algo.recorded import ROLES, RoleFigures, group_figures


def row(reward: float | None, acts: int, rehearsals: int) -> dict[str, Any]:
    outputs = [{"role": role} for role, n in (("act", acts), ("rehearse", rehearsals)) for _ in range(n)]
    return {"reward": reward, "outputs": outputs}


rows_of_a_group = st.lists(
    st.builds(row, st.none() | st.floats(0, 1), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6
)


def test_a_group_by_hand() -> None:
    found = group_figures([row(1.0, 3, 2), row(0.4, 1, 0), row(None, 4, 1)])
    acts = [(f["act"].outputs, f["act"].baseline, f["act"].advantage) for f in found[:2]]
    assert acts[0] == pytest.approx((3, 0.85, 0.15)) and acts[1] == pytest.approx((1, 0.85, -0.45))
    assert [f["rehearse"] for f in found] == [
        RoleFigures(2, 1.0, 0.0),
        RoleFigures(0, None, 0.0),
        RoleFigures(1, None, 0.0),
    ]
    assert found[2]["act"] == RoleFigures(4, None, 0.0)


def test_by_rollout_each_rollout_weighs_the_same() -> None:
    found = group_figures([row(1.0, 3, 0), row(0.4, 1, 0)], weighting="rollout")
    assert [f["act"].baseline for f in found] == pytest.approx([0.7, 0.7])


def test_with_std_the_baseline_stays_the_mean() -> None:
    (high, low) = group_figures([row(1.0, 1, 0), row(0.0, 1, 0)], normalize_std=True)
    assert (high["act"].baseline, low["act"].baseline) == (0.5, 0.5)
    assert (high["act"].advantage, low["act"].advantage) == pytest.approx((1.0, -1.0))


@given(rows_of_a_group)
def test_a_role_has_one_baseline_and_its_advantages_sum_to_zero(rows: list[dict[str, Any]]) -> None:
    found = group_figures(rows)
    for role in ROLES:
        known = [f[role].baseline for f in found if f[role].baseline is not None]
        assert known == pytest.approx(known[:1] * len(known), abs=1e-9)
        assert sum(f[role].outputs * f[role].advantage for f in found) == pytest.approx(0, abs=1e-9)


def test_rollouts_without_outputs_give_no_figures() -> None:
    assert group_figures([row(0.0, 0, 0)]) == [{role: RoleFigures(0, None, 0.0) for role in ROLES}]
