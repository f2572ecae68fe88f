"""Poisson draws: the quantiles of SciPy, the distribution they claim, the same counts wherever they are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from op_harness import as_buffer
from scipy import special, stats

import eshkol as ek
from eshkol.graph import interpret
from eshkol.ops import poisson as rows

KEY = np.array([3, 9], np.uint32)


@pytest.mark.parametrize("rate", [12.0, 13.7, 40.0, 250.0, 1e5, 1e9])
def test_chances_of_large_rates_are_right_to_a_few_millionths(rate):
    """Where the quantile steps from one count to the next, the chance differs from the exact one by little."""
    exact = stats.poisson(rate)
    counts = np.unique(np.linspace(exact.ppf(1e-9), exact.ppf(1 - 1e-9), 200).astype(np.int64))[1:]
    for apart in (-4e-6, 4e-6):  # a little below the chance of fewer than a count it is not reached, above it is
        chance = exact.cdf(counts - 1) + apart
        inside = (chance > 1e-12) & (chance < 1 - 1e-12)
        chance = chance[inside]
        given = special.ndtri(chance), np.full(chance.shape, rate)
        (found,) = interpret.evaluate([rows._far(*map(as_buffer, given))])
        assert np.all((found >= counts[inside]) == (apart > 0))


def test_small_rates_have_exact_quantiles():
    rng = np.random.default_rng(0)
    rate, chance = rng.uniform(0, rows.SMALL, 4000), rng.uniform(0, 1, 4000)
    np.testing.assert_array_equal(rows._quantile(None, chance, rate), stats.poisson(rate).ppf(chance))


@pytest.mark.parametrize("rate", [0.0, 0.2, 4.0, 11.9, 12.0, 35.0, 900.0])
def test_draws_are_distributed_so(rate):
    drawn = ek.random.poisson(KEY, rate, (20_000,)).numpy()
    assert drawn.dtype == np.int64
    if rate == 0:
        assert not drawn.any()
        return
    bounds = np.unique(stats.poisson(rate).ppf(np.linspace(0.02, 0.98, 20)))
    chances = np.diff([0, *stats.poisson(rate).cdf(bounds), 1])
    found = np.bincount(np.searchsorted(bounds, drawn), minlength=len(chances))
    kept = chances > 0
    assert stats.chisquare(found[kept], chances[kept] * len(drawn)).pvalue > 1e-3


def test_one_key_gives_the_same_counts_everywhere():
    rates = np.linspace(0, 40, 81)
    wanted = ek.random.poisson(KEY, ek.tensor(rates)).numpy()
    assert wanted.min() == 0
    assert wanted.max() > 30
    for dtype in ("float32", "int32"):
        np.testing.assert_array_equal(ek.random.poisson(KEY, ek.tensor(rates), dtype=dtype).numpy(), wanted)
    jitted = ek.jit(lambda key, rate: ek.random.poisson(key, lam=rate))
    np.testing.assert_array_equal(jitted(ek.tensor(KEY), ek.tensor(rates)).numpy(), wanted)
    few, many = (ek.random.poisson(KEY, rate, rates.shape).numpy() for rate in (rates[3], rates[70]))
    assert (few[3], many[70]) == (wanted[3], wanted[70])


def test_as_pytorch_and_as_a_distribution():
    rate = ek.tensor([0.5, 3.0, 50.0])
    assert ek.poisson(rate).dtype is ek.float32
    assert ek.poisson(rate, generator=ek.Generator(3)).tolist() == ek.poisson(rate, generator=ek.Generator(3)).tolist()
    assert ek.poisson(KEY, 2.0, (3,)).dtype is ek.int64
    assert ek.distributions.Poisson(rate).sample((5,)).shape == (5, 3)


def test_what_is_no_rate_is_refused():
    for rate in (-1.0, float("nan"), 1e16, [1.0, -2.0]):
        with pytest.raises(ek.EshkolError, match="rate must be"):
            ek.random.poisson(KEY, ek.tensor(rate) if isinstance(rate, list) else rate, shape=(2,))
    with pytest.raises(ek.EshkolError, match="counts are integers or floats"):
        ek.random.poisson(KEY, 1.0, (2,), "bool")
