"""`x.at[index]`: other tensors with some elements changed, as JAX writes it."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek


def test_the_tensor_itself_stays():
    x = ek.tensor([1.0, 2.0, 3.0])
    y = x.at[1].set(9.0)
    assert x.tolist() == [1.0, 2.0, 3.0]
    assert y.tolist() == [1.0, 9.0, 3.0]


@pytest.mark.parametrize("index", [0, (slice(None), 1), (Ellipsis, slice(0, 2)), ([0, 0, 1], [2, 2, 0])], ids=str)
@pytest.mark.parametrize(
    ("method", "ufunc"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide), ("min", np.minimum),
     ("max", np.maximum)],
)  # fmt: skip
def test_places_are_combined_as_numpy_combines_them(index, method, ufunc):
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3) + 1
    values = np.linspace(0.5, 4.0, array[index].size, dtype=np.float32).reshape(array[index].shape)
    found = getattr(ek.tensor(array).at[index], method)(values).numpy()
    ufunc.at(array, index, values)
    np.testing.assert_allclose(found, array, rtol=1e-6)


def test_derivatives_go_to_both():
    x, i = ek.tensor([1.0, 2.0, 3.0]), ek.tensor([0, 0])
    by_x, by_y = ek.grad(lambda x, y: (x.at[i].add(y) ** 2).sum(), argnums=(0, 1))(x, ek.tensor([1.0, 2.0]))
    assert by_x.tolist() == [8.0, 4.0, 6.0]
    assert by_y.tolist() == [8.0, 8.0]
    assert ek.grad(lambda x: x.at[1].multiply(5.0).sum())(x).tolist() == [1.0, 5.0, 1.0]


def test_it_may_be_traced():
    x = ek.tensor([1.0, 2.0, 3.0])
    assert ek.jit(lambda x, i: x.at[i].add(10.0))(x, ek.tensor(2)).tolist() == [1.0, 2.0, 13.0]
    rows = ek.vmap(lambda i: x.at[i].set(0.0))(ek.tensor([0, 2])).tolist()
    assert rows == [[0.0, 2.0, 3.0], [1.0, 2.0, 0.0]]


def test_what_would_drop_or_clip_is_refused():
    x = ek.tensor([1.0, 2.0])
    with pytest.raises(ek.EshkolError, match="takes no mode='drop'"):
        x.at[5].set(1.0, mode="drop")
    with pytest.raises(ek.EshkolError, match="takes no fill_value"):
        x.at[0].get(fill_value=0.0)
    with pytest.raises(ek.EshkolError, match="out of range"):
        x.at[5].set(1.0)
    assert x.at[0].set(3.0, unique_indices=True, indices_are_sorted=True).tolist() == [3.0, 2.0]
