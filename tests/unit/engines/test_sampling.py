"""Sampling from given draws: the right distribution, the right support, the right log-probabilities."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.engines.sampling import sample_tokens

LOGITS = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0, -2.0, -30.0])


def sample(logits: torch.Tensor, temperature: float, top_p: float, draws: torch.Tensor) -> tuple[torch.Tensor, ...]:
    count = len(draws)
    return sample_tokens(
        logits.expand(count, -1),
        temperature=torch.full((count,), temperature),
        top_p=torch.full((count,), top_p),
        draws=draws,
    )


def uniform(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_frequencies_follow_the_distribution(temperature: float, top_p: float) -> None:
    count = 50_000
    tokens, _ = sample(LOGITS, temperature, top_p, uniform(count))
    weights = (LOGITS.double() / temperature).softmax(-1)
    ranked, order = weights.sort(descending=True)
    kept = order[: int((ranked.cumsum(0) < top_p).sum()) + 1]
    expected = torch.zeros_like(weights)
    expected[kept] = weights[kept] / weights[kept].sum()
    observed = tokens.bincount(minlength=len(LOGITS)).double()
    likely = expected * count >= 5
    assert bool((observed[expected == 0] == 0).all())
    statistic = float(((observed - expected * count)[likely] ** 2 / (expected * count)[likely]).sum())
    assert statistic < 25  # chi-square with at most six degrees of freedom: beyond this once in 3,000 seeds


@pytest.mark.parametrize(
    "top_p, support", [(1.0, {0, 1, 2, 3, 4, 5}), (0.5, {0}), (0.6, {0, 1}), (0.98, {0, 1, 2, 3, 4}), (1e-6, {0})]
)
def test_the_nucleus_is_the_smallest_set_that_reaches_top_p(top_p: float, support: set[int]) -> None:
    tokens, _ = sample(LOGITS, 1.0, top_p, uniform(20_000))
    assert set(tokens.tolist()) == support


def test_temperature_0_is_the_likeliest_token_at_scale_1() -> None:
    tokens, log_probs = sample(LOGITS, 0.0, 0.9, uniform(100))
    assert tokens.tolist() == [0] * 100
    assert log_probs.tolist() == pytest.approx([LOGITS.log_softmax(-1)[0].item()] * 100)


@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_log_probs_are_those_of_the_scaled_distribution_before_truncation(temperature: float) -> None:
    tokens, log_probs = sample(LOGITS, temperature, 0.7, uniform(50))
    expected = (LOGITS / temperature).log_softmax(-1)[tokens]
    assert log_probs.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("draw", [0.0, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("top_p", [0.5, 1.0])
def test_the_ends_of_the_unit_interval_stay_in_the_support(draw: float, top_p: float) -> None:
    logits = torch.tensor([-torch.inf, 1.0, 0.0, -torch.inf])
    tokens, log_probs = sample(logits, 1.0, top_p, torch.tensor([draw], dtype=torch.float64))
    assert tokens.item() in ({1} if top_p == 0.5 else {1, 2}) and bool(torch.isfinite(log_probs).all())


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 40), st.integers(0, 2**32), st.data())
def test_a_row_does_not_depend_on_the_rows_beside_it(rows: int, seed: int, data: st.DataObject) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, 50, generator=generator) * 3
    temperature = torch.tensor(data.draw(st.lists(st.sampled_from([0.0, 0.6, 1.0]), min_size=rows, max_size=rows)))
    top_p = torch.tensor(data.draw(st.lists(st.sampled_from([0.5, 0.95, 1.0]), min_size=rows, max_size=rows)))
    draws = torch.rand(rows, generator=generator, dtype=torch.float64)
    tokens, log_probs = sample_tokens(logits, temperature=temperature, top_p=top_p, draws=draws)
    for i in range(rows):
        part = slice(i, i + 1)
        one, lp = sample_tokens(logits[part], temperature=temperature[part], top_p=top_p[part], draws=draws[part])
        assert one.item() == tokens[i].item() and lp.item() == pytest.approx(log_probs[i].item(), abs=1e-6)
