"""Movement, joining and diagonals: what samples cannot say, which is errors, edges and what costs nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_harness import as_buffer

from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError
from eshkol.graph import interpret
from eshkol.ops import TABLE, dtypes


def op(name, *args, **attrs):
    return TABLE[name](*args, **attrs)


def value(node):
    return interpret.evaluate([node])[0]


def zeros(*shape, dtype=np.float64):
    return as_buffer(np.zeros(shape, dtype))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 5), st.integers(-6, 6), st.integers(-6, 6), st.integers(0, 3))
def test_padding_is_spreading_then_cutting_or_filling(n, low, high, gap):
    x = np.arange(1.0, n + 1)
    spread = np.zeros(n + (n - 1) * gap if n else 0)
    spread[:: gap + 1] = x
    if len(spread) + low + high < 0:
        with pytest.raises(ShapeError, match="cut more off"):
            op("pad", as_buffer(x), (low, high), interior=gap)
        return
    wide = np.concatenate([np.zeros(10), spread, np.zeros(10)])
    wanted = wide[10 - low : 10 + len(spread) + high]
    np.testing.assert_array_equal(value(op("pad", as_buffer(x), (low, high), interior=gap)), wanted)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 6), st.integers(-8, 8) | st.none(), st.integers(-8, 8) | st.none(), st.integers(1, 4))
def test_slices_are_pythons(n, start, stop, step):
    x = np.arange(float(n))
    np.testing.assert_array_equal(value(op("slice", as_buffer(x), [start], [stop], [step])), x[start:stop:step])


@pytest.mark.parametrize("attrs", [
    {"widths": ((1, 1),)}, {"widths": (1, 1, 1)}, {"widths": 1, "mode": "mirror"}, {"widths": 2, "mode": "reflect"},
    {"widths": -1, "mode": "replicate"}, {"widths": 3, "mode": "circular"}, {"widths": 1, "interior": -1},
    {"widths": 1, "interior": 1, "mode": "reflect"}, {"widths": ((1, 1), (0.5, 1))}, {"widths": -2},
    {"widths": ((1, 1), (0.5, 1)), "mode": "circular"}, {"widths": ((True, 1), (0, 1)), "mode": "replicate"},
])  # fmt: skip
def test_padding_that_cannot_be(attrs):
    with pytest.raises(ShapeError):
        op("pad", zeros(2, 2), **attrs)


def test_padding_says_which_widths_suit():
    with pytest.raises(ShapeError, match=r"widths \(0, 2\) do not suit mode 'reflect' and an extent of 2") as error:
        op("pad", zeros(3, 2), ((1, 1), (0, 2)), mode="reflect")
    assert error.value.hint == "in this mode they are between 0 and 1"
    with pytest.raises(ShapeError, match="extent of 0"):
        op("pad", zeros(0, 2), ((1, 0), (0, 0)), mode="replicate")
    assert op("pad", zeros(0, 2), ((0, 0), (1, 1)), mode="reflect").shape == (0, 4)


def test_padding_fills_with_what_the_dtype_holds():
    with pytest.raises(DTypeError):
        op("pad", zeros(2, dtype=np.int32), 1, 0.5)
    assert op("pad", zeros(2, dtype=np.bool_), 1, 1).dtype is dtypes.bool_
    assert value(op("pad", zeros(1, dtype=np.float32), 1, -np.inf)).tolist() == [-np.inf, 0, -np.inf]


@pytest.mark.parametrize(("name", "shape", "attrs"), [
    ("slice", (2,), {"start": 0, "stop": 2, "step": 0}), ("slice", (2,), {"start": (0, 0)}),
    ("slice", (2,), {"start": 0.5}), ("flip", (2,), {"axis": (0, 0)}), ("squeeze", (2, 1), {"axis": 0}),
    ("flatten", (2, 2), {"start_axis": 1, "end_axis": 0}), ("transpose", (2, 2), {"axis0": 1}),
    ("moveaxis", (2, 2), {"source": (0, 0), "destination": (0, 1)}), ("rot90", (2, 2), {"axes": (0, 0)}),
    ("moveaxis", (2, 2), {"source": 0, "destination": (0, 1)}), ("repeat", (2,), {"repeats": -1}),
    ("tile", (2,), {"reps": (1, -1)}), ("split", (5,), {"sizes": (2, 2)}), ("split", (5,), {"sizes": 0}),
    ("chunk", (5,), {"count": 0}), ("roll", (5,), {"shift": (1, 2), "axis": 0}), ("diag", (2, 2, 2), {}),
    ("diag", (), {}), ("diagonal", (2, 2), {"axis1": 0, "axis2": -2}), ("tril", (3,), {}), ("trace", (3,), {}),
    ("sliding_window", (3,), {"size": 4}), ("sliding_window", (3,), {"size": 2, "step": 0}),
])  # fmt: skip
def test_arguments_that_do_not_fit(name, shape, attrs):
    with pytest.raises((ShapeError, IndexOutOfRange)):
        op(name, zeros(*shape), **attrs)


def test_joining_says_what_differs():
    with pytest.raises(ShapeError, match=r"\[2, 3\] and \[3, 3\]"):
        op("concatenate", [zeros(2, 3), zeros(3, 3)], axis=1)
    with pytest.raises(ShapeError, match="stack"):
        op("concatenate", [zeros(), zeros()])
    with pytest.raises(ShapeError, match="nothing"):
        op("concatenate", [])
    with pytest.raises(ShapeError):
        op("stack", [zeros(2), zeros(2, 2)])
    with pytest.raises(IndexOutOfRange):
        op("stack", [zeros(2)], axis=2)
    with pytest.raises(ShapeError):
        op("meshgrid", [zeros(2, 2)])


def test_joining_promotes():
    one, other = as_buffer(np.array([1], np.int32)), as_buffer(np.array([0.5], np.float32))
    joined = op("concatenate", [one, other])
    assert joined.dtype is dtypes.float32
    assert value(joined).tolist() == [1.0, 0.5]


def test_what_changes_nothing_costs_nothing():
    x = zeros(2, 3)
    for same in (
        op("squeeze", x), op("swapaxes", x, 1, 1), op("moveaxis", x, 0, 0), op("rot90", x, 4), op("roll", x, 3, 1),
        op("broadcast_tensors", [x, zeros(3)])[0], op("pad", x, 0, mode="reflect"),
    ):  # fmt: skip
        assert same is x


def test_split_and_concatenate_are_inverse():
    x = np.arange(14.0).reshape(2, 7)
    for parts in (
        op("split", as_buffer(x), 3, 1),
        op("chunk", as_buffer(x), 4, 1),
        op("split", as_buffer(x), [0, 7], 1),
    ):
        np.testing.assert_array_equal(value(op("concatenate", parts, axis=1)), x)
    np.testing.assert_array_equal(value(op("stack", op("unstack", as_buffer(x), 1), axis=1)), x)
