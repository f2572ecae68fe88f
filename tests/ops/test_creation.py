"""Tensors from nothing: exact sequences, dtypes that hold what they are given, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from op_harness import as_buffer

from eshkol.errors import DTypeError, EshkolError, ShapeError, TensorError
from eshkol.graph import interpret
from eshkol.ops import TABLE, dtypes
from eshkol.ops.creation import arange, eye, full_, full_like, hann_window, linspace, zeros

LIKE = as_buffer(np.zeros((), np.float32))


def made(op, *args, **attrs) -> np.ndarray:
    return interpret.evaluate([op.on(LIKE, *args, **attrs)])[0]


def test_the_hidden_value_is_no_parameter():
    assert list(eye.signature.parameters) == ["n", "m", "k", "dtype"]
    assert eye.inputs == ()
    assert [op.name for op in TABLE.values() if op.like and (op.method or op.inputs)] == []


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        ((0, 1, 0.1), "float64"), ((0.0, -1.0, -0.07), "float64"), ((1000,), "int64"), ((10, -10, -3), "int16"),
        ((2**63, 2**63 + 3), "uint64"), ((2**64 - 1, 2**64 - 6, -2), "uint64"), ((-(2**63), -(2**63) + 2), "int64"),
        ((0, 3, 5), "int8"), ((0, 100, 1000), "int8"), ((2.5,), "float32"), ((5, 1), "float32"),
    ],
)  # fmt: skip
def test_arange_is_numpys(bounds, dtype):
    got = made(arange, *bounds, dtype=dtype)
    first, last, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = len(np.arange(first, last, step)) if dtype != "uint64" else len(range(first, last, step))
    wanted = np.array([first + step * k for k in range(count)], dtype)
    np.testing.assert_array_equal(got, wanted)
    assert got.dtype == np.dtype(dtype)


def test_arange_takes_the_dtype_of_its_bounds():
    assert made(arange, 3).dtype == np.int64
    assert made(arange, 0, 1, 0.5).dtype == np.float32
    assert made(arange, np.int32(3), np.float64(4.5)).dtype == np.float32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_ends_of_linspace_are_exact(dtype):
    for start, stop, num in [(0.1, 0.7, 7), (-3.3, 9.9, 100), (1.0, 1.0, 3), (5.0, -2.2, 2)]:
        got = made(linspace, start, stop, num, dtype=dtype)
        kind = dtypes.of(dtype).numpy
        assert got[0] == np.asarray(start).astype(kind)
        assert got[-1] == np.asarray(stop).astype(kind)
        assert np.all(np.diff(got.astype(np.float64)) * np.sign(stop - start) >= 0)


def test_linspace_over_more_than_the_greatest_number():
    np.testing.assert_allclose(made(linspace, -1.5e308, 1.5e308, 3, dtype="float64"), [-1.5e308, 0, 1.5e308])


def test_windows_of_one_and_two_points():
    np.testing.assert_array_equal(made(hann_window, 1), [1])
    np.testing.assert_allclose(made(hann_window, 2), [0, 1], atol=1e-7)
    np.testing.assert_allclose(made(hann_window, 2, periodic=False), [0, 0], atol=1e-7)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: made(full_, (2,), 300, dtype="uint8"), DTypeError),
        (lambda: made(full_, (2,), 1.5, dtype="int32"), DTypeError),
        (lambda: made(full_, (2,), 1j, dtype="float32"), DTypeError),
        (lambda: made(full_, (2,), "x"), TensorError),
        (lambda: full_like(as_buffer(np.zeros(2, np.int8)), 1000), DTypeError),
        (lambda: made(zeros, (-1,)), ShapeError),
        (lambda: made(zeros, (1.5,)), ShapeError),
        (lambda: made(eye, 2, k=0.5), TensorError),
        (lambda: made(arange, 0, 10, 0), TensorError),
        (lambda: made(arange, 0.0, float("inf")), TensorError),
        (lambda: made(arange, 0.0, float("nan")), TensorError),
        (lambda: made(arange, 0.0, 1e300, 1.0), ShapeError),
        (lambda: made(arange, 0, 1, 0.5, dtype="int32"), DTypeError),
        (lambda: made(arange, 300, dtype="uint8"), DTypeError),
        (lambda: made(arange, 3, -3, -1, dtype="uint8"), DTypeError),
        (lambda: made(arange, "3"), TensorError),
        (lambda: made(arange, 0.5, 10**400), TensorError),
        (lambda: made(linspace, 0, 1, 3, dtype="int32"), DTypeError),
        (lambda: made(linspace, 0, 1, -3), ShapeError),
        (lambda: made(hann_window, 4, dtype="int32"), DTypeError),
    ],
)  # fmt: skip
def test_refusals(wrong, error):
    with pytest.raises(error) as caught:
        wrong()
    assert isinstance(caught.value, EshkolError)
