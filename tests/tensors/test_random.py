"""Random numbers as users draw them: by seed, by key, and not by accident the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

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
