"""Shapes with names: rules of rows on named sizes, compared with the same rows at sizes that are numbers."""

from __future__ import annotations

import random

import pytest

import eshkol as ek
from batches import of_each
from eshkol.errors import ShapeError
from eshkol.types.sizes import UNKNOWN, value_of

F = ek.nn.functional

ROWS = [
    (lambda x, y: x @ y, ("b", "n", "k"), ("k", "m")),
    (lambda x, y: x + y, ("b", "n"), ("n",)),
    (lambda x, y: ek.cat([x, y], 0), ("n", "m"), ("k", "m")),
    (lambda x: ek.cat([x, x, x], 1), ("n", "m")),
    (lambda x: x.reshape(-1, x.shape[2]), ("n", "m", 5)),
    (lambda x: ek.sum(x, 1), ("n", "m", "k")),
    (lambda x: ek.softmax(x, -1), ("n", "m")),
    (lambda x: x.T, ("n", "m")),
    (lambda x: ek.stack([x, x]), ("n", "m")),
    (lambda x: x[:, None] - x[None, :], ("n",)),
    (lambda x: F.conv2d(x, ek.zeros((8, 3, 3, 3)), padding=1), ("n", 3, "h", "w")),
    (lambda x: F.conv2d(x, ek.zeros((8, 3, 5, 5))), ("n", 3, "h", "w")),
    (lambda x: F.max_pool2d(x, 2), ("n", 3, "2*h", "2*w")),
    (lambda x: ek.flatten(x, 1), ("n", "m", 7)),
    (lambda q, k: q @ k.swapaxes(-1, -2), ("b", "h", "n", 16), ("b", "h", "m", 16)),
]


@of_each("case", ROWS)
def test_a_shape_in_names_is_right_for_numbers(case) -> None:
    function, *shapes = case
    found = ek.check_shapes(function, *shapes)
    assert UNKNOWN not in found.dims
    chance = random.Random(str(shapes))
    for _ in range(3):
        values = {name: chance.randrange(6, 30) for name in "bnmkhw"}
        numbers = [tuple(value_of(size, values) for size in shape) for shape in shapes]
        given = [ek.ShapeDtypeStruct(shape, ek.float32) for shape in numbers]
        assert tuple(ek.eval_shape(function, *given).shape) == tuple(value_of(s, values) for s in found.dims)


def test_errors_have_names_for_sizes() -> None:
    with pytest.raises(ShapeError, match=r"\[batch, 784\] and \[783, 10\] do not fit"):
        ek.check_shapes(lambda x, w: x @ w, x=("batch", 784), w=(783, 10))
    with pytest.raises(ShapeError, match="axis -1 is n and m"):
        ek.check_shapes(lambda x, y: x + y, x="batch n", y="m")
    with pytest.raises(ShapeError, match=r"in_features=784, and was given shape \[batch, 785\]"):
        ek.check_shapes(ek.nn.Linear(784, 10), ("batch", 785))


def test_layers_have_shapes() -> None:
    net = ek.nn.Sequential(ek.nn.Linear(784, 32), ek.nn.ReLU(), ek.nn.Linear(32, 10))
    assert ek.check_shapes(net, ("batch", 784)) == ek.Float32["batch 10"]


@ek.shaped
def layer(x: ek.Float32["batch n"], w: ek.Float32["n m"]) -> ek.Float32["batch m"]:  # noqa: F722
    return x @ w


@ek.shaped
def wrong(x: ek.Float32["batch n"]) -> ek.Float32["n batch"]:  # noqa: F722
    return x


@of_each("call", [layer, ek.jit(layer)])
def test_annotations_are_checked(call) -> None:
    assert call(ek.zeros((2, 3)), ek.zeros((3, 4))).shape == (2, 4)
    with pytest.raises(ShapeError, match=r"layer: w has the shape \[5, 4\], but is to be \[n, m\]") as caught:
        call(ek.zeros((2, 3)), ek.zeros((5, 4)))
    assert "n is 3, from axis 1 of x" in str(caught.value)
    with pytest.raises(ShapeError, match="to have 2 axes"):
        call(ek.zeros((2, 3, 4)), ek.zeros((5, 4)))
    with pytest.raises(ShapeError, match="to be of float32"):
        call(ek.zeros((2, 3), dtype=ek.float64), ek.zeros((3, 4)))


def test_results_and_whole_functions() -> None:
    with pytest.raises(ShapeError, match="wrong: its result"):
        wrong(ek.zeros((2, 3)))
    assert ek.check_shapes(layer) == ek.Float32["batch m"]
    with pytest.raises(ShapeError, match="is no size"):
        ek.Float32["a/b"]
