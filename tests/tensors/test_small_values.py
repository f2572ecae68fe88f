"""Rows, other orders of axes, greatest and least elements of small values at hand: computed when asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from eshkol.errors import EshkolError, TensorError

NAMES = ("max", "min", "argmax", "argmin")


@pytest.fixture(autouse=True)
def _on_the_host(on_the_reference_backend: None) -> Iterator[None]:
    with ek.use_backend("cpu"):
        yield


def asked(name: str, x: Any) -> Any:
    """What a tensor says, when it is asked for the second time: a call like an earlier one is made in C."""
    getattr(x, name)()
    return getattr(x, name)()


def general(name: str, array: Any) -> Any:
    """The same as compiled code gives it."""
    return ek.jit(lambda x: getattr(x, name)())(ek.tensor(array)).numpy()


@pytest.mark.unchecked
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (2, 3, 4), ()])
def test_extremes_at_hand(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.random.default_rng(1).standard_normal(shape) * 9 - 20).astype(dtype)
    found = asked(name, ek.tensor(array).realize())
    assert found._node.data is not None  # at once
    assert found.numpy().tobytes() == np.asarray(general(name, array)).tobytes()
    assert found.numpy() == getattr(array, name)()
    assert (found.shape, str(found.dtype)) == ((), "int64" if name.startswith("arg") else dtype)
    assert found.item() == getattr(array, name)().item()


@pytest.mark.unchecked
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "int64", "complex128"])
def test_axes_in_another_order_at_hand(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for shape in ((3,), (4, 5), (1, 6), (2, 3, 4), (3, 1, 2, 5), (2, 1, 1, 2, 1, 2, 1, 1, 2), (0, 3), (70, 80)):
        array = rng.integers(0, 2 if dtype == "bool" else 99, shape).astype(dtype)
        x, way = ek.tensor(array).realize(), tuple(int(k) for k in rng.permutation(len(shape)))
        for _ in range(2):
            found = [(x.permute(way), array.transpose(way)), (x.permute(*way), array.transpose(way)), (x.T, array.T)]
        for got, want in found:
            if 0 < array.nbytes <= 1 << 14 and array.ndim <= 8:
                assert got._node.data is not None, shape  # at once
            assert (got.shape, got.numpy().dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(got.numpy(), want)


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e-45, 2.5])


@pytest.mark.unchecked
@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_extremes_of_unusual_numbers(numbers: list[float]) -> None:
    array = np.array(numbers, np.float32)
    for name in NAMES:
        found = asked(name, ek.tensor(array).realize()).numpy()
        assert found.tobytes() == np.asarray(general(name, array)).tobytes(), name


@pytest.mark.unchecked
@pytest.mark.parametrize("numbers", [[1.0, math.nan], [0.0, -1.0], [-0.0, 0.0, -3.0]])
def test_what_comparing_does_not_tell_is_left_to_the_general_way(numbers: list[float]) -> None:
    assert asked("max", ek.tensor(numbers).realize())._node.data is None


def test_what_is_looked_at_is_left_to_the_general_way() -> None:
    x = ek.tensor([1.0, 2.0]).realize()  # checks are on here
    assert asked("max", x)._node.data is None


@pytest.mark.unchecked
def test_extremes_where_more_is_asked_of_them() -> None:
    x = ek.tensor([1.0, 5.0, 2.0]).realize()
    asked("max", x)
    assert ek.grad(lambda x: x.max() * 2)(x).tolist() == [0.0, 2.0, 0.0]
    y = ek.tensor([1.0, 5.0, 2.0]).requires_grad_()
    asked("max", y).backward()
    assert y.grad is not None
    assert y.grad.tolist() == [0.0, 1.0, 0.0]
    assert ek.vmap(lambda row: row.max())(ek.tensor([[1.0, 2.0], [4.0, 3.0]])).tolist() == [2.0, 4.0]
    assert ek.jit(lambda x: x.max() + 1)(x).item() == 6.0
    many = ek.tensor(np.arange(5000.0)).realize()
    assert asked("max", many)._node.data is None  # not small
    assert asked("max", many).item() == 4999.0
    assert asked("max", x[::2]).item() == 2.0
    assert [m.tolist() for m in (x.max(axis=0, keepdims=True), ek.tensor([[1.0, 2.0]]).max(axis=1))] == [[5.0], [2.0]]
    for _ in range(2):
        with pytest.raises(EshkolError):
            ek.zeros((0,)).realize().max()


SHAPES = [(4,), (3, 5), (1, 1), (2, 3, 4), (0, 3), (3, 0)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool_", "complex64", "int8", "float64"])
def test_rows_are_those_of_indices(dtype: str) -> None:
    for shape in SHAPES:
        x = ek.tensor(np.arange(math.prod(shape)).reshape(shape) % 5).astype(getattr(ek, dtype)).realize()
        rows = list(x)
        assert len(rows) == shape[0]
        for k, row in enumerate(rows):
            assert (row.shape, row.dtype) == (x[k].shape, x[k].dtype)
            assert row.numpy().tobytes() == x[k].numpy().tobytes()


@pytest.mark.parametrize("make", [lambda x: x.T, lambda x: x[::2], lambda x: x * 2, lambda x: x[:, 1:]])
def test_rows_of_what_lies_otherwise_or_is_not_computed(make: Callable[[Any], Any]) -> None:
    x = make(ek.tensor(np.arange(24.0).reshape(4, 6)))
    assert [row.tolist() for row in x] == x.tolist()
    lent = np.arange(24.0).reshape(4, 6)[:, ::2]
    assert [row.tolist() for row in ek.from_numpy(lent)] == lent.tolist()


def test_rows_are_read_when_they_are_reached() -> None:
    x = ek.tensor(np.zeros((3, 2))).realize()
    seen = []
    for k, row in enumerate(x):
        seen.append(row.tolist())
        if k < 2:
            x[k + 1] = k + 1.0
    assert seen == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_rows_are_values_of_their_own() -> None:
    x = ek.tensor(np.zeros((3, 2))).realize()
    for row in x:
        with pytest.raises(TensorError, match="in place"):
            row.add_(1.0)
    assert x.tolist() == [[0.0, 0.0]] * 3
    kept = list(x)
    x[0] = 5.0
    assert kept[0].tolist() == [0.0, 0.0]
    with pytest.raises(EshkolError):
        iter(ek.tensor(1.0))


def test_rows_where_transformations_are_at_work() -> None:
    x = ek.tensor(np.arange(6.0).reshape(3, 2)).realize()
    assert ek.grad(lambda x: sum((row**2).sum() for row in x))(x).tolist() == (2 * x).tolist()
    assert ek.jit(lambda x: [row * 2 for row in x])(x)[1].tolist() == [4.0, 6.0]
    y = ek.tensor(np.arange(6.0).reshape(3, 2)).requires_grad_()
    first, *_ = y
    first.sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_many_nodes_wait_and_are_found() -> None:
    """Graphs of few words and of many go through the same tables."""
    for count in (1, 2, 5, 24, 25, 100, 700):
        for _ in range(3):
            x = ek.tensor([1.0, 2.0])
            for k in range(count):
                x = x + k % 3
            assert x.tolist() == [1.0 + sum(k % 3 for k in range(count)), 2.0 + sum(k % 3 for k in range(count))]
