"""Indexing against NumPy: random shapes and indices, forward and backward; errors; what samples cannot say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from op_harness import as_buffer

from eshkol.errors import DerivativeError, DTypeError, IndexOutOfRange, ShapeError, TensorError, TraceError
from eshkol.graph import derive, interpret
from eshkol.graph.node import Scope, mark, placeholder
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
OPS = type("Ops", (), {"__getattr__": lambda self, name: TABLE[name]})()


def as_result(array):
    """An array as what is not computed yet."""
    return OPS.bitwise_or(as_buffer(array), 0)


def value(node):
    return interpret.evaluate([node])[0]


def pulled(function, arrays, cotangent):
    """The cotangents of arrays under a function of nodes."""
    scope = Scope("grad", "test")
    inputs = [mark(as_buffer(x), scope) for x in arrays]
    found = derive.vjp([function(*inputs)], inputs, scope)([as_buffer(cotangent)])
    return interpret.evaluate([derive.zeros(x) if f is None else f for f, x in zip(found, inputs, strict=True)])


@st.composite
def indexed(draw):
    """A shape, and an index that NumPy accepts for it: any mixture of all that may stand in one."""
    shape = draw(SHAPES)
    items, left = [], list(shape)
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    dots = False
    while left and (dots or draw(st.integers(0, 5))):  # what stands behind an Ellipsis takes all the last axes
        n = left[0]
        kind = draw(st.sampled_from(["int", "slice", "array", "mask", "none", "dots", "truth"]))
        if kind == "none":
            items.append(None)
        elif kind == "truth":
            items.append(draw(st.booleans()))
        elif kind == "dots" and not dots:
            dots = True
            items.append(...)
            del left[: draw(st.integers(0, len(left)))]
        elif kind == "int" and n:
            items.append(draw(st.integers(-n, n - 1)))
            del left[0]
        elif kind == "array" and (n or 0 in common):
            some = [1 if draw(st.booleans()) else extent for extent in common]
            some = some[draw(st.integers(0, len(some))) :] if n else list(common)
            items.append(draw(hnp.arrays(np.int64, tuple(some), elements=st.integers(-n, max(n - 1, -n)))))
            del left[0]
        elif kind == "mask":
            dims = draw(st.integers(1, min(2, len(left))))
            items.append(draw(hnp.arrays(np.bool_, tuple(left[:dims]))))
            del left[:dims]
        elif kind == "slice":
            items.append(draw(st.slices(n) if n else st.just(slice(None))))
            del left[0]
    index = tuple(items)
    if len(index) == 1 and draw(st.booleans()):
        index = index[0]
    return shape, index


def numpy_accepts(shape, index):
    try:
        return np.zeros(shape)[index].shape is not None
    except (IndexError, ValueError):
        return False


def as_values(index):
    """The index with its arrays as nodes."""
    items = index if isinstance(index, tuple) else (index,)
    return tuple(as_buffer(i) if isinstance(i, np.ndarray) else i for i in items)


@settings(max_examples=250, deadline=None)
@given(indexed(), st.booleans())
def test_getitem_is_numpys_forward_and_backward(case, nodes):
    shape, index = case
    if not numpy_accepts(shape, index):
        with pytest.raises((IndexOutOfRange, ShapeError)):
            OPS.getitem(as_buffer(np.zeros(shape)), index)
        return
    x = np.arange(float(np.prod(shape))).reshape(shape)
    ours = as_values(index) if nodes else index
    wanted = x[index]
    got = value(OPS.getitem(as_buffer(x), ours))
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)
    cotangent = np.asarray(np.arange(1.0, wanted.size + 1).reshape(wanted.shape))
    gradient = np.zeros(shape)
    np.add.at(gradient, index, cotangent)
    np.testing.assert_array_equal(pulled(lambda n: OPS.getitem(n, ours), [x], cotangent)[0], gradient)


@settings(max_examples=250, deadline=None)
@given(indexed(), st.booleans(), st.booleans(), st.integers(0, 3))
def test_setitem_is_numpys_forward_and_backward(case, nodes, thin, dropped):
    shape, index = case
    if not numpy_accepts(shape, index):
        return
    x = np.asarray(-1.0 - np.arange(float(np.prod(shape))).reshape(shape))
    ours = as_values(index) if nodes else index
    target = x[index].shape
    if thin:
        target = tuple(1 if k % 2 else n for k, n in enumerate(target))[min(dropped, len(target)) :]
    new = np.arange(float(np.prod(target))).reshape(target)
    wanted = np.array(x)
    wanted[index] = new
    np.testing.assert_array_equal(value(OPS.setitem(as_buffer(x), ours, as_buffer(new))), wanted)
    # Which element each result is says where its cotangent goes.
    names = np.arange(x.size).reshape(shape)
    update_names = x.size + np.arange(new.size).reshape(target)
    names[index] = update_names
    cotangent = np.asarray(np.arange(1.0, x.size + 1).reshape(shape))
    flat = np.zeros(x.size + new.size)
    np.add.at(flat, names, cotangent)
    got = pulled(lambda n, v: OPS.setitem(n, ours, v), [x, new], cotangent)
    np.testing.assert_array_equal(got[0], flat[: x.size].reshape(shape))
    np.testing.assert_array_equal(got[1], flat[x.size :].reshape(target))


@pytest.mark.parametrize("index", [3, -4, (0, 2), [0, 3], (slice(None), [2]), (0, 0, 0), ([0, 0], [0, 5]), [-4]])
def test_out_of_range(index):
    x = as_buffer(np.zeros((3, 2)))
    with pytest.raises(IndexOutOfRange):
        OPS.getitem(x, index)
    with pytest.raises(IndexOutOfRange):
        OPS.setitem(x, index, as_buffer(np.zeros(())))


@pytest.mark.parametrize("made", [as_buffer, as_result], ids=["known", "computed"])
def test_out_of_range_positions_that_are_data(made):
    x, far = as_buffer(np.zeros((3, 2))), made(np.array([0, 3]))
    for node in (
        lambda: OPS.take(x, far),
        lambda: OPS.getitem(x, far),
        lambda: OPS.getitem(x, (made(np.array([0, 1])), made(np.array([1, 2])))),  # 1·2 + 2 is inside, 2 is not
        lambda: OPS.scatter(x, far, as_buffer(np.zeros((2, 2)))),
        lambda: OPS.position(made(np.array(-1)), 3, wrap=False),
    ):
        with pytest.raises(IndexOutOfRange, match="out of range"):
            value(node())


@pytest.mark.parametrize("index", [1.0, [0.5], "a", (0, 1j), slice(0.5), [[1, 2], [3]], object()])
def test_what_is_no_index(index):
    with pytest.raises((DTypeError, ShapeError)):
        OPS.getitem(as_buffer(np.zeros((3, 2))), index)


def test_positions_must_be_integers():
    x = as_buffer(np.zeros((3, 2)))
    for wrong in (np.array([0.0]), np.array([True])):
        with pytest.raises(DTypeError, match="integers"):
            OPS.take(x, as_buffer(wrong))
        with pytest.raises(DTypeError, match="integers"):
            OPS.scatter(x, as_buffer(wrong), as_buffer(np.zeros((1, 2))))


def test_two_dots_a_wrong_mask_and_a_zero_step():
    x = as_buffer(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="Ellipsis"):
        OPS.getitem(x, (..., ...))
    with pytest.raises(IndexOutOfRange, match="mask"):
        OPS.getitem(x, np.array([True, False]))
    with pytest.raises(ShapeError, match="step"):
        OPS.getitem(x, slice(None, None, 0))
    with pytest.raises(ShapeError, match="does not fill"):
        OPS.setitem(x, 0, as_buffer(np.zeros(3)))


def test_assignment_cuts_nothing_short():
    whole = as_buffer(np.zeros(3, np.int32))
    with pytest.raises(DTypeError):
        OPS.setitem(whole, 0, as_buffer(np.array(0.5)))
    with pytest.raises(DTypeError):
        OPS.setitem(whole, 0, 0.5)
    with pytest.raises(DTypeError):
        OPS.setitem(whole, 0, 2**40)
    assert value(OPS.setitem(whole, 0, 7)).tolist() == [7, 0, 0]
    assert OPS.setitem(as_buffer(np.zeros(3, np.float32)), 0, as_buffer(np.array(1))).dtype is dtypes.float32
    with pytest.raises(TensorError):
        OPS.setitem(whole, 0, object())


def test_a_mask_must_be_known():
    scope = Scope("trace", "vmap")
    mask = placeholder(Aval((3,), dtypes.bool_), scope)
    with pytest.raises(TraceError, match="not known"):
        OPS.getitem(as_buffer(np.zeros(3)), mask)


def test_views_need_no_kernel_beyond_what_moves():
    """A full slice is the tensor itself; an index of one array is one take."""
    x = as_buffer(np.zeros((3, 2)))
    assert OPS.getitem(x, (slice(None), ...)) is x
    assert OPS.getitem(x, as_buffer(np.array([0, 1]))).inputs[0] is x


def test_duplicates_last_wins_and_extremes_share():
    x, i = np.zeros(3), np.array([1, 1, 1])
    u = np.array([5.0, 7.0, 7.0])
    got = pulled(lambda a, b: OPS.scatter(a, as_buffer(i), b), [x, u], np.array([1.0, 2.0, 3.0]))
    assert got[0].tolist() == [1, 0, 3]
    assert got[1].tolist() == [0, 0, 2]
    got = pulled(lambda a, b: OPS.scatter(a, as_buffer(i), b, mode="max"), [x, u], np.array([1.0, 2.0, 3.0]))
    assert got[0].tolist() == [1, 0, 3]
    assert got[1].tolist() == [0, 1, 1]


def test_scattered_products():
    x, i, u = np.array([2.0, 3.0]), np.array([1, 1]), np.array([5.0, 7.0])
    assert value(OPS.scatter(as_buffer(x), as_buffer(i), as_buffer(u), mode="mul")).tolist() == [2, 105]
    with pytest.raises(DerivativeError, match="mul"):
        pulled(lambda a: OPS.scatter(a, as_buffer(i), as_buffer(u), mode="mul"), [x], np.ones(2))
    with pytest.raises(ShapeError, match="no mode"):
        OPS.scatter(as_buffer(x), as_buffer(i), as_buffer(u), mode="median")


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_out_of_range_stops_a_launch(backend):
    x, far = as_buffer(np.zeros((3, 2), np.float32)), as_result(np.array([0, -4]))
    for node in (OPS.take(x, far), OPS.scatter(x, far, as_buffer(np.zeros((2, 2), np.float32)))):
        with pytest.raises(IndexOutOfRange):
            realize([node], open_backend(backend))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("mode", ["set", "add", "max", "min", "mul"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_scatter_on_backends(backend, mode, dtype):
    """Duplicates in order, and NaN that spreads."""
    rng = np.random.default_rng(0)
    x, u = (rng.integers(-4, 5, s).astype(dtype) for s in ((2, 5, 3), (2, 4, 3)))
    if dtype is np.float32:
        u[0, 0, 0] = x[1, 2, 1] = np.nan
    node = OPS.scatter(as_buffer(x), as_buffer(np.array([2, -1, 2, 0])), as_buffer(u), axis=1, mode=mode)
    np.testing.assert_array_equal(realize([node], open_backend(backend))[0], value(node))


def test_padding_rows_have_no_gradient():
    weight, indices = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1, 2])
    cotangent = np.ones((4, 2))
    for padding, wanted in ((None, [1, 2, 1]), (1, [1, 0, 1]), (-1, [1, 2, 0])):
        got = pulled(lambda w, p=padding: OPS.embedding(w, as_buffer(indices), p), [weight], cotangent)[0]
        assert got[:, 0].tolist() == wanted
    with pytest.raises(IndexOutOfRange):
        OPS.embedding(as_buffer(weight), as_buffer(indices), 3)


def test_labels_are_counted_from_zero():
    with pytest.raises(IndexOutOfRange):
        value(OPS.one_hot(as_buffer(np.array([-1])), 3))
    with pytest.raises(IndexOutOfRange):
        value(OPS.bincount(as_buffer(np.array([0, 3])), length=3))
    with pytest.raises(DTypeError):
        OPS.one_hot(as_buffer(np.array([0.0])), 3)
    assert OPS.one_hot(as_buffer(np.array([0, 4]))).shape == (2, 5)
    assert value(OPS.bincount(as_buffer(np.array([0, 2, 2])), minlength=4)).tolist() == [1, 0, 2, 0]
    assert OPS.bincount(as_buffer(np.zeros(0, np.int64))).shape == (0,)


@pytest.mark.parametrize("call", [
    lambda x, i: OPS.gather(x, 0, OPS.reshape(i, (2,))),
    lambda x, i: OPS.gather(x, 0, OPS.tile(i, (1, 4))),
    lambda x, i: OPS.scatter_along(x, 0, i, OPS.slice(x, 0, 1)),
    lambda x, i: OPS.index_select(x, 0, i),
    lambda x, i: OPS.take(x, i, axis=0, batch=1),
    lambda x, i: OPS.take(OPS.reshape(x, (3, 2)), i, axis=1, batch=1),
    lambda x, i: OPS.take(OPS.getitem(x, (0, 0)), i),
    lambda x, i: OPS.scatter(x, i, x),
    lambda x, i: OPS.put(x, i, OPS.slice(x, 0, 0)),
    lambda x, i: OPS.masked_fill(x, OPS.equal(OPS.reshape(x, (3, 2)), 0), 1.0),
    lambda x, i: OPS.masked_fill(x, OPS.equal(x, 0), x),
    lambda x, i: OPS.embedding(OPS.reshape(x, (6,)), i),
    lambda x, i: OPS.bincount(i),
])  # fmt: skip
def test_shapes_that_do_not_fit(call):
    with pytest.raises(ShapeError):
        call(as_buffer(np.zeros((2, 3))), as_buffer(np.zeros((2, 1), np.int64)))


def test_an_extreme_of_integers_that_do_not_fit_is_refused():
    """Cut to 8 bits, -1 is 255 and would be the greatest."""
    x, index = as_buffer(np.array([1, 2], np.uint8)), as_buffer(np.array([0, 1]))
    src = as_buffer(np.array([-1, -2], np.int8))
    with pytest.raises(DTypeError, match="uint8 does not hold all of int8"):
        TABLE["scatter_max"](x, 0, index, src)
    with pytest.raises(DTypeError):
        TABLE["scatter_along"](x, 0, index, src, mode="min")
