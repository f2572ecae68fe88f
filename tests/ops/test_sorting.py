"""Order: NaN, infinities, ties, and search on the backends."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from op_harness import as_buffer

import eshkol as ek
from eshkol.errors import DTypeError, ShapeError, TraceError
from eshkol.graph import derive, interpret
from eshkol.graph.node import Scope, mark, placeholder
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend

NAN, INF = np.nan, np.inf


def op(name, *args, **attrs):
    return TABLE[name](*args, **attrs)


def values(nodes):
    return [x.tolist() for x in interpret.evaluate(list(nodes))]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_nan_is_the_greatest_and_ties_keep_their_order(dtype):
    x = as_buffer(np.array([3, NAN, 1, INF, -INF, NAN, 1], dtype))
    assert values(op("sort", x))[1] == [4, 2, 6, 0, 3, 1, 5]
    assert values(op("sort", x, descending=True))[1] == [1, 5, 3, 0, 2, 6, 4]
    assert values(op("topk", x, 3))[1] == [1, 5, 3]
    assert values(op("topk", x, 2, largest=False))[1] == [4, 2]


def test_signed_zeros_are_equal():
    assert values(op("sort", as_buffer(np.array([0.0, -0.0, 0.0]))))[1] == [0, 1, 2]


def test_quantiles_of_what_is_not_finite():
    def median(*numbers):
        return values([op("median", as_buffer(np.array(numbers)))])[0]

    assert median(-INF, 1.0, INF) == 1.0
    assert median(1.0, INF) == INF
    assert np.isnan(median(1.0, 2.0, NAN))
    assert median(2.0) == 2.0
    with pytest.raises(ShapeError):
        op("median", as_buffer(np.zeros((0, 2))), 0)
    with pytest.raises(ShapeError):
        op("quantile", as_buffer(np.zeros(2)), 1.5)


FLOATS = st.floats(-3, 3, width=32) | st.sampled_from([NAN, INF, -INF, 0.0, -0.0])


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, st.integers(0, 9), elements=FLOATS), hnp.arrays(np.float32, 5, elements=FLOATS))
def test_search_by_halving_is_numpys(boundaries, x):
    boundaries = np.sort(boundaries)
    for side in ("left", "right"):
        node = op("searchsorted", as_buffer(boundaries), as_buffer(x), side=side)
        got = realize([node], open_backend("reference"))[0]
        np.testing.assert_array_equal(got, np.searchsorted(boundaries, x, side))


def test_unique_counts_and_differentiates_the_first():
    x = np.array([2.0, 1.0, 2.0, NAN, NAN])
    scope = Scope("grad", "test")
    node = mark(as_buffer(x), scope)
    found, inverse, counts = op("unique", node, True, True)
    assert values([inverse, counts]) == [[1, 0, 1, 2, 2], [1, 2, 2]]
    (gradient,) = derive.vjp([found], [node], scope)([as_buffer(np.array([10.0, 20.0, 30.0]))])
    assert values([gradient]) == [[20.0, 10.0, 0.0, 30.0, 0.0]]


def test_histogram_counts_edges_and_leaves_out_what_is_outside():
    counts, edges = values(op("histogram", as_buffer(np.array([0.0, 1.0, 2.0, 2.0, 5.0, -1.0, NAN])), 2, (0, 2)))
    assert counts == [1, 3]
    assert edges == [0, 1, 2]
    assert values(op("histogram", as_buffer(np.array([3, 3])), 2))[0] == [0, 2]
    with pytest.raises(ShapeError):
        op("histogram", as_buffer(np.array([0.0, INF])))
    with pytest.raises(ShapeError):
        op("histogram", as_buffer(np.zeros(2)), 2, (1, 1))


@pytest.mark.parametrize(("name", "args"), [
    ("topk", (3,)), ("topk", (-1,)), ("topk", (True,)), ("kthvalue", (0,)), ("kthvalue", (3,)), ("sort", (1,)),
])  # fmt: skip
def test_arguments_that_do_not_fit(name, args):
    with pytest.raises((ShapeError, IndexError)):
        op(name, as_buffer(np.zeros(2)), *args)


def test_what_has_no_order():
    for name in ("sort", "argsort", "unique", "median"):
        with pytest.raises(DTypeError, match="order"):
            op(name, as_buffer(np.zeros(2, np.complex64)))
    with pytest.raises(ShapeError):
        op("sort", as_buffer(np.zeros(())))
    with pytest.raises(ShapeError, match="do not begin"):
        op("searchsorted", as_buffer(np.zeros((2, 3))), as_buffer(np.zeros((3, 1))))
    with pytest.raises(ShapeError, match="side"):
        op("searchsorted", as_buffer(np.zeros(2)), as_buffer(np.zeros(1)), side="up")
    with pytest.raises(ShapeError):
        op("bucketize", as_buffer(np.zeros(2)), as_buffer(np.zeros((2, 2))))


def test_shapes_that_depend_on_data_must_be_known():
    unknown = placeholder(Aval((3,), dtypes.float64), Scope("trace", "vmap"))
    for name in ("unique", "nonzero", "argwhere", "histogram"):
        with pytest.raises(TraceError, match="not known"):
            op(name, unknown)


@pytest.mark.parametrize("length", [257, 1000, 70_001])
@pytest.mark.parametrize("kind", ["numbers", "few", "one", "falling", "special"])
def test_long_rows_of_every_kind(length: int, kind: str) -> None:
    """Longer than a network of vectors: numbers of which many are equal, in order, or no numbers, and their bits."""
    rng = np.random.default_rng(length)
    x = {"few": rng.integers(0, 5, length), "one": np.zeros(length)}.get(kind, rng.standard_normal(length)) * 100.0
    x = np.sort(x)[::-1].copy() if kind == "falling" else x
    if kind == "special":
        x[rng.random(length) < 0.3] = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0])
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        if kind == "special" and np.dtype(dtype).kind == "i":
            continue
        row = ek.tensor(x.astype(dtype)).realize()
        given, order = np.asarray(row), np.asarray(ek.argsort(row))
        np.testing.assert_array_equal(order, np.argsort(given, kind="stable"))
        alone = np.asarray(ek.jit(lambda r: ek.sort(r)[0])(row))
        assert alone.tobytes() == given[order].tobytes()
