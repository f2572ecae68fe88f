"""Pooling beyond its samples: ties, NaN and infinities, how many windows there are, narrow floats, errors."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value
from op_harness import as_buffer

from eshkol.errors import DTypeError, ShapeError
from eshkol.graph import interpret
from eshkol.ops import TABLE, dtypes
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend


def test_the_first_of_equal_elements_is_chosen_and_has_the_derivative():
    x = np.array([[1.0, 1.0, 0.0, 2.0, 2.0, 2.0]])
    values, indices = value("max_pool1d", x, kernel_size=3, return_indices=True)
    np.testing.assert_array_equal(values, [[1.0, 2.0]])
    np.testing.assert_array_equal(indices, [[0, 3]])
    np.testing.assert_array_equal(gradient("max_pool1d", x, kernel_size=3), [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]])


def test_overlapping_windows_add_their_derivatives():
    np.testing.assert_array_equal(
        gradient("max_pool1d", np.array([0.0, 5.0, 1.0]), kernel_size=2, stride=1), [0.0, 2.0, 0.0]
    )


SPECIAL = np.array([[np.nan, 1.0, 2.0, np.nan], [-np.inf, -np.inf, 3.0, np.inf], [-np.inf, -np.inf, 0.0, -0.0]])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.bfloat16])
def test_nan_wins_and_padding_never_does(dtype, compiled):
    x = as_buffer(SPECIAL.astype(dtype.numpy))
    nodes = TABLE["max_pool2d"](x, kernel_size=2, stride=(1, 2), padding=(1, 0), return_indices=True)
    values, indices = realize(nodes, open_backend("cpu")) if compiled else interpret.evaluate(nodes)
    np.testing.assert_array_equal(
        values.astype(np.float32), [[np.nan, np.nan], [np.nan, np.nan], [-np.inf, np.inf], [-np.inf, 0.0]]
    )
    np.testing.assert_array_equal(indices, [[0, 3], [0, 3], [4, 7], [8, 10]])


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.uint64])
def test_integers_at_their_limits(dtype):
    least, most = dtype.limits()
    x = np.array([least, least, least, most], dtype.numpy)
    values, indices = value("max_pool1d", x, kernel_size=2, padding=1, return_indices=True)
    np.testing.assert_array_equal(values, [least, least, most])
    np.testing.assert_array_equal(indices, [0, 1, 3])


@pytest.mark.parametrize(
    ("extent", "how", "count"),
    [
        (7, {"kernel_size": 2}, 3),
        (7, {"kernel_size": 2, "ceil_mode": True}, 4),
        (7, {"kernel_size": 2, "stride": 5, "ceil_mode": True}, 2),
        (5, {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}, 2),
        (6, {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True}, 3),
        (7, {"kernel_size": 3, "stride": 1, "dilation": 3}, 1),
    ],
)
def test_how_many_windows_there_are(extent, how, count):
    assert value("max_pool1d", np.arange(float(extent)), **how).shape == (count,)


def test_what_a_mean_divides_by():
    x = np.ones(5)
    how = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
    np.testing.assert_allclose(value("avg_pool1d", x, **how), [2 / 3, 1.0, 2 / 3])
    np.testing.assert_allclose(value("avg_pool1d", x, **how, count_include_pad=False), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(value("avg_pool1d", np.ones(6), **how), [2 / 3, 1.0, 1.0, 1 / 2])
    np.testing.assert_allclose(value("avg_pool1d", x, **how, divisor_override=2), [1.0, 1.5, 1.0])


@pytest.mark.parametrize("name", ["avg_pool2d", "adaptive_avg_pool2d", "global_avg_pool2d"])
def test_sums_of_narrow_floats_do_not_overflow(name):
    x = np.full((1, 4, 4), 30000.0, np.float16)
    how = {"avg_pool2d": {"kernel_size": 2}, "adaptive_avg_pool2d": {"output_size": 3}, "global_avg_pool2d": {}}[name]
    found = value(name, x, **how)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.full_like(found, 30000.0))


def test_an_infinity_stays_in_its_windows():
    x = np.zeros((5, 5))
    x[0, 0] = np.inf
    found = value("adaptive_avg_pool2d", x, output_size=3)
    assert np.isinf(found[0, 0])
    np.testing.assert_array_equal(found.reshape(-1)[1:], np.zeros(8))


def test_adaptive_indices_are_those_of_the_whole_plane():
    x = np.random.default_rng(0).permutation(2 * 5 * 7).reshape(2, 5, 7).astype(np.float64)
    values, indices = value("adaptive_max_pool2d", x, output_size=(3, 4), return_indices=True)
    np.testing.assert_array_equal(
        np.take_along_axis(x.reshape(2, -1), indices.reshape(2, -1), 1), values.reshape(2, -1)
    )


def test_unpooling_puts_maxima_back():
    x = np.random.default_rng(0).permutation(36).reshape(1, 6, 6).astype(np.float64)
    values, indices = value("max_pool2d", x, kernel_size=2, return_indices=True)
    back = value("max_unpool2d", values, indices, kernel_size=2)
    np.testing.assert_array_equal(value("max_pool2d", back, kernel_size=2), values)
    assert np.count_nonzero(back) <= 9
    assert set(back.reshape(-1)) <= {0.0, *values.reshape(-1)}


PLANE = np.zeros((1, 4, 4), np.float32)


@pytest.mark.parametrize(
    ("name", "x", "how", "message"),
    [
        ("max_pool2d", PLANE, {"kernel_size": 5}, "window over 5 does not fit 4"),
        ("max_pool2d", PLANE, {"kernel_size": 2, "padding": 2}, "wholly in the padding"),
        ("avg_pool2d", PLANE, {"kernel_size": 2, "padding": 2, "count_include_pad": False}, "wholly in the padding"),
        ("max_pool2d", PLANE, {"kernel_size": 0}, "below 1"),
        ("max_pool2d", PLANE, {"kernel_size": (2, 2, 2)}, "one per spatial axis"),
        ("max_pool2d", PLANE, {"kernel_size": 2, "stride": 0}, "below 1"),
        ("max_pool2d", PLANE[0, 0], {"kernel_size": 2}, "no 2 axes"),
        ("max_pool2d", PLANE[:, :0], {"kernel_size": 1}, "does not fit 0"),
        ("avg_pool2d", PLANE, {"kernel_size": 2, "divisor_override": 0}, "divisor 0"),
        ("adaptive_avg_pool2d", PLANE, {"output_size": 0}, "below 1"),
        ("adaptive_avg_pool2d", PLANE, {"output_size": (1, 2, 3)}, "one per spatial axis"),
        ("adaptive_max_pool2d", PLANE[:, :0], {"output_size": 2}, "are empty"),
    ],
)
def test_what_does_not_fit_is_refused(name, x, how, message):
    with pytest.raises(ShapeError, match=message):
        value(name, x, **how)


def test_complex_numbers_have_no_greatest():
    with pytest.raises(DTypeError, match="no greatest"):
        value("max_pool1d", np.zeros(4, np.complex64), kernel_size=2)
