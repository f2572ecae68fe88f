"""Random numbers as users draw them: by seed, by key, and not by accident the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats

import eshkol as ek
from effort import FULL, amount
from eshkol.errors import TraceError
from eshkol.ops import TABLE


def drawn(count: int = 3) -> list[np.ndarray]:
    return [ek.random.uniform((4,)).numpy() for _ in range(count)]


def test_a_seed_repeats_the_sequence_and_another_does_not():
    ek.seed(5)
    first = drawn()
    ek.seed(5)
    np.testing.assert_array_equal(first, drawn())
    ek.seed(6)
    assert not np.array_equal(first, drawn())


def test_every_draw_differs_from_the_last():
    ek.seed(0)
    one, other = drawn(2)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", ["uniform", "normal", "randint", "bernoulli", "gumbel"])
def test_both_backends_draw_the_same(name):
    args = {"randint": (0, 100, (50,)), "bernoulli": (0.3, (50,))}.get(name, ((50,),))
    found = []
    for backend in ("cpu", "reference"):
        with ek.use_backend(backend):
            ek.seed(1)
            found.append(getattr(ek.random, name)(*args).numpy())
    exact = name in ("uniform", "randint", "bernoulli")
    np.testing.assert_allclose(*found, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6)


def test_keys_split_into_keys_that_draw_other_numbers():
    keys = ek.split_key(ek.key(7), 3)
    rows = ek.vmap(lambda k: ek.normal(k, (4,)))(keys).numpy()
    for k in range(3):
        np.testing.assert_array_equal(rows[k], ek.normal(keys[k], (4,)).numpy())
    assert len({row.tobytes() for row in rows}) == 3


def test_a_generator_of_ones_own_leaves_the_shared_one_alone():
    ek.seed(2)
    wanted = drawn(1)
    ek.seed(2)
    own = ek.Generator(9)
    first = ek.random.normal((3,), generator=own).numpy()
    np.testing.assert_array_equal(wanted, drawn(1))
    again = pickle.loads(pickle.dumps(ek.Generator(9)))
    np.testing.assert_array_equal(first, ek.random.normal((3,), generator=again).numpy())


def test_drawing_without_a_key_is_refused_where_it_would_repeat():
    with pytest.raises(TraceError, match="the same numbers"):
        ek.vmap(lambda x: x + ek.rand())(ek.tensor([1.0, 2.0]))
    with pytest.raises(TraceError, match="body of scan"):
        ek.scan(lambda c, x: (c + ek.randn(), x), ek.tensor(0.0), ek.tensor([1.0, 2.0]))
    assert ek.rand(2).shape == (2,), "and it works again afterwards"


def test_gradients_go_through_a_draw():
    key, count = ek.key(3), amount(1000, 60)
    with ek.use_backend("cpu" if FULL else "reference"):  # compiling a sum of draws takes seconds
        scale = ek.grad(lambda s: ek.normal(key, (count,), 1.0, s).sum())(ek.tensor(2.0)).item()
        assert scale == pytest.approx(ek.normal(key, (count,)).sum().item(), rel=1e-4)


def test_dropout_keeps_the_mean():
    ek.seed(4)
    kept = ek.random.dropout(ek.ones((10_000,)), p=0.25).numpy()
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)}
    assert kept.mean() == pytest.approx(1.0, abs=0.03)


def test_every_random_row_is_in_the_namespace():
    for op in TABLE.values():
        if op.random:
            assert op.name in ek.random.__all__
            assert getattr(ek.random, op.name).__doc__.startswith(op.doc)


# --- keys in front, in either order -------------------------------------------------------------------

KEY = ek.random.key(3)


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        ("normal", ((3,), ek.float64), {"shape": (3,), "dtype": ek.float64}),
        ("uniform", ((3,), ek.float32, 2.0, 3.0), {"shape": (3,), "low": 2.0, "high": 3.0}),
        ("randint", ((3,), 5, 9), {"shape": (3,), "low": 5, "high": 9}),
        ("randint", (5, 9, (3,)), {"shape": (3,), "low": 5, "high": 9}),
        ("truncated_normal", (-1.0, 1.0, (3,)), {"shape": (3,), "low": -1.0, "high": 1.0}),
        ("bernoulli", (0.25, (3,)), {"shape": (3,), "p": 0.25}),
        ("exponential", ((3,), ek.float32), {"shape": (3,), "dtype": ek.float32}),
    ],
    ids=str,
)
def test_after_a_key_both_orders_are_understood(name, theirs, ours):
    key = ek.random.key(3)
    found = getattr(ek.random, name)(key, *theirs)
    np.testing.assert_array_equal(found.numpy(), getattr(ek, name)(key, **ours).numpy())
    assert getattr(ek.random, name)(key=key, **ours).shape == (3,)


def test_what_fits_no_order_is_refused():
    key = ek.random.key(3)
    for wrong in (lambda: ek.random.normal(key, 3, 4), lambda: ek.random.uniform(key, (3,), "float32", (2,))):
        with pytest.raises(ek.EshkolError, match="after the key come"):
            wrong()
    with pytest.raises(ek.EshkolError, match="shape comes first"):
        ek.random.normal(ek.random.split(key), (3,))  # two keys are none
    with pytest.raises(ek.EshkolError, match=r"ek\.split\(x, sizes\)"):
        ek.random.split(ek.ones((4,)))
    with pytest.raises(AttributeError, match="'wald': no row draws it"):
        _ = ek.random.wald


@pytest.mark.parametrize(
    ("name", "args", "cdf"),
    [
        ("cauchy", (), stats.cauchy.cdf),
        ("logistic", (), stats.logistic.cdf),
        ("lognormal", (0.5,), stats.lognorm(0.5).cdf),
        ("maxwell", (), stats.maxwell.cdf),
        ("pareto", (3.0,), stats.pareto(3.0).cdf),
        ("rayleigh", (2.0,), stats.rayleigh(scale=2.0).cdf),
        ("weibull_min", (2.0, 1.5), stats.weibull_min(1.5, scale=2.0).cdf),
        ("chisquare", (3.0,), stats.chi2(3.0).cdf),
        ("loggamma", (2.0,), stats.loggamma(2.0).cdf),
    ],
)
@pytest.mark.unchecked  # the rows that it draws with are compared elsewhere
def test_draws_made_of_others_have_their_distribution(name, args, cdf):
    with ek.use_backend("cpu"):
        found = getattr(ek.random, name)(ek.random.key(3), *args, shape=(500,)).numpy()
    assert stats.kstest(found, cdf).pvalue > 1e-3


def test_choices_and_orders():
    key, x = ek.random.key(3), ek.tensor([1.0, 2.0, 3.0, 4.0])
    assert sorted(ek.random.choice(key, x, (4,), replace=False).tolist()) == [1.0, 2.0, 3.0, 4.0]
    assert set(ek.random.choice(key, 3, (20,)).tolist()) <= {0, 1, 2}
    assert ek.random.choice(key, x, (2, 2), p=[0.0, 0.0, 1.0, 0.0]).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(ek.EshkolError, match="5 cannot be drawn from 4"):
        ek.random.choice(key, x, (5,), replace=False)
    rows = ek.random.permutation(key, x.reshape(2, 2), axis=1, independent=True).numpy()
    assert [sorted(row) for row in rows.tolist()] == [[1.0, 2.0], [3.0, 4.0]]
    assert ek.random.geometric(key, 1.0 - 1e-9, (3,)).tolist() == [1, 1, 1]
    assert ek.random.permutation(5).shape == (5,), "without a key, the next of everybody's generator"
