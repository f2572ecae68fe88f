"""Ops as their parts: the same values, special ones too, by the NumPy references."""

from __future__ import annotations

import numpy as np
import pytest
from fusing import run

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.errors import EshkolError
from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.indexing import position, scatter_into
from eshkol.schedule.pipeline import PASSES
from eshkol.schedule.rewrite.decompose import decompose
from eshkol.tensors.devices import open_backend

RNG = np.random.default_rng(3)
SPECIAL = np.array(
    [[1, np.nan, 2, np.nan], [np.inf, 0, 1, np.inf], [-np.inf] * 4, [3, 5, 5, 4], [-0.0, 0.0, -1, -1]], np.float32
)


def names(outs: list[Node]) -> set[str]:
    return {n.op.name for n in topological(outs)}


def same(*outs: Node, rtol: float = 1e-6) -> None:
    """The parts give what the ops give."""
    found = decompose(outs)
    assert not names(found) & {n.op.name for n in outs}
    with np.errstate(all="ignore"):
        for got, want, out in zip(interpret.evaluate(found), interpret.evaluate(outs), outs, strict=True):
            assert got.dtype == out.dtype.numpy
            assert got.shape == out.shape
            np.testing.assert_allclose(np.float64(got), np.float64(want), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_softmax_and_its_logarithm(name, dtype):
    x = buffer(RNG.normal(size=(3, 4, 5)).astype(dtype.numpy), dtype)
    same(*(TABLE[name](x, axis) for axis in range(3)), rtol=max(1e-6, dtype.epsilon))
    same(TABLE[name](buffer(SPECIAL, dtypes.float32)))


def test_powers_of_log_softmax_are_softmax():
    x = buffer(RNG.normal(size=(3, 5)).astype(np.float32), dtypes.float32)
    scores = TABLE["log_softmax"](x)
    out = TABLE["exp"](scores) * scores
    (found,) = decompose([out])
    assert sum(n.op.name == "exp" for n in topological([found])) == 1
    np.testing.assert_allclose(*interpret.evaluate([found, out]), rtol=2e-6)


def test_logsumexp_of_axes():
    x = buffer(SPECIAL, dtypes.float32)
    wanted = [TABLE["logsumexp"](x, axis, keep) for axis in (0, 1, None) for keep in (False, True)]
    same(*wanted, rtol=2e-6)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes(name):
    whole = buffer(RNG.integers(-2, 3, (4, 5, 6)), dtypes.int64)
    truth = buffer(RNG.integers(0, 2, (4, 5)).astype(bool), dtypes.bool_)
    for x in (buffer(SPECIAL, dtypes.float32), whole, truth):
        same(*(TABLE[name](x, axis, keep) for axis in (*range(x.ndim), None) for keep in (False, True)))


def test_one_number_in_each_row():
    places = position(buffer(np.array([2, 0, 3]), dtypes.int64), 4, False)
    x = buffer(RNG.normal(size=(3, 4)).astype(np.float32), dtypes.float32)
    values = buffer(np.array([[1.5], [np.nan], [-2.0]], np.float32), dtypes.float32)
    zeros = TABLE["expand"](x.literal(np.zeros((), np.float32)) * 0, (3, 4))
    for base in (x, zeros):
        for add in (False, True):
            at = TABLE["reshape"](places, (3, 1))
            same(scatter_into(base, at, values, 1, add, 1))


def test_indices_that_may_be_out_of_range_are_checked_and_several_in_a_row_are_left_alone():
    x = buffer(np.zeros((3, 4), np.float32), dtypes.float32)
    updates = buffer(np.ones((3, 1), np.float32), dtypes.float32)
    unknown = buffer(np.array([[0], [3], [-1]]), dtypes.int64)
    out = scatter_into(x, unknown, updates, 1, True, 1)
    (found,) = decompose([out])
    assert "places" in names([found])
    np.testing.assert_array_equal(interpret.evaluate([found])[0], interpret.evaluate([out])[0])
    beyond = scatter_into(
        x, TABLE["add"](unknown, buffer(np.array([[0], [1], [1]]), dtypes.int64)), updates, 1, True, 1
    )
    with pytest.raises(EshkolError, match="out of range for an axis of extent 4"):
        run(decompose([beyond]), open_backend("cpu"))
    two = buffer(np.zeros((3, 2), np.int64), dtypes.int64)
    several = scatter_into(x, two, buffer(np.ones((3, 2), np.float32), dtypes.float32), 1, True, 1)
    assert decompose([several]) == [several]


def test_of_empty_ones_nothing_is_computed():
    x = buffer(np.zeros((0, 3), np.float32), dtypes.float32)
    assert decompose([TABLE["softmax"](x)]) == [x]
    same(TABLE["logsumexp"](x, 0), TABLE["logsumexp"](x))


def test_bodies_of_loops_are_of_parts():
    x = ek.tensor(RNG.normal(size=(2, 3)).astype(np.float32))
    looped = ek.scan(lambda c, _: (ek.softmax(c), c), x, None, length=3)[0]._node
    in_parts = dict(PASSES)["parts"]
    (found,) = in_parts([looped], CORES)
    bodies = [n.attrs.body for n in topological([found]) if n.op.name == "scan"]
    assert bodies
    assert all("softmax" not in names(list(b.results)) for b in bodies)
    np.testing.assert_allclose(interpret.evaluate([found])[0], interpret.evaluate([looped])[0], rtol=1e-6)
    again = in_parts([looped], CORES)[0]
    assert [n.attrs.body for n in topological([again]) if n.op.name == "scan"] == bodies, "bodies are treated once"


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", "uint64"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 5), (5, 8)), ((2, 3, 5), (2, 5, 9)), ((1, 3, 5), (4, 5, 64)), ((4, 1, 3, 5), (2, 5, 16)),
        ((7, 300), (300, 70)), ((64, 130), (130, 65)), ((1, 200), (200, 100)),
        ((5, 4), (4, 1)), ((3, 0), (0, 9)), ((0, 3), (3, 9)),
    ],
)  # fmt: skip
def test_products_of_integers_wrap_as_numpy_s_do(dtype, left, right):
    rng = np.random.default_rng(11)
    bounds = np.iinfo(dtype)
    x, y = (rng.integers(bounds.min, bounds.max, shape, dtype, endpoint=True) for shape in (left, right))
    found = ek.jit(lambda x, y: x @ y)(ek.tensor(x), ek.tensor(y)).numpy()
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x @ y)
