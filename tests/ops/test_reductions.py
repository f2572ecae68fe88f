"""Reductions where samples do not reach: NaN, ties, zeros, infinities, empty axes, large numbers, errors."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value
from scipy import special

import eshkol as ek
from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError

inf, nan = np.inf, np.nan


def test_the_mean_of_half_floats_does_not_overflow():
    x = np.full(4, 6e4, np.float16)
    assert value("mean", x) == np.float16(6e4)
    assert value("var", x) == 0
    assert value("mean", np.array([1, 2], np.int8)).dtype == np.float32


def test_the_mean_of_nothing_is_nan():
    assert np.isnan(value("mean", np.zeros((0,))))
    assert np.isnan(value("var", np.ones(1), correction=1))


def test_the_deviation_of_equal_numbers_has_derivative_zero():
    np.testing.assert_array_equal(gradient("std", np.ones(3)), np.zeros(3))
    np.testing.assert_array_equal(gradient("norm", np.zeros(3)), np.zeros(3))
    np.testing.assert_array_equal(gradient("norm", np.zeros(3), p=1.5), np.zeros(3))
    np.testing.assert_array_equal(gradient("norm", np.zeros(3), p=-1.0), np.zeros(3))


def test_norms_with_zeros_among_the_numbers():
    x = np.array([0.0, -3.0, 4.0])
    for p in (0, 0.5, 1, 2, 3, -1, inf, -inf):
        np.testing.assert_allclose(value("norm", x, p=p), np.linalg.norm(x, p))
        assert np.all(np.isfinite(gradient("norm", x, p=p)))
    with pytest.raises(ShapeError, match="nuc"):
        value("norm", x, p="nuc")


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_pass_on_nan_and_share_between_ties(name):
    x = np.array([[1.0, nan, 0.0], [2.0, 2.0, 2.0]])
    found = value(name, x, axis=1)
    assert np.isnan(found[0])
    assert found[1] == 2
    np.testing.assert_allclose(gradient(name, x[1:]), [[1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_array_equal(gradient("max", np.array([1.0, 3.0, 3.0, 2.0])), [0, 0.5, 0.5, 0])


def test_the_place_of_an_extreme_is_the_first():
    x = np.array([[1.0, 5.0, 5.0], [nan, 2.0, nan], [3.0, nan, 9.0]])
    np.testing.assert_array_equal(value("argmax", x, axis=1), [1, 0, 1])
    np.testing.assert_array_equal(value("argmin", x, axis=1), np.argmin(x, axis=1))
    assert value("argmax", np.array([[0, 7], [9, 9]], np.int32)) == 2


def test_extremes_of_nothing_and_of_complex_numbers_are_errors():
    with pytest.raises(ShapeError, match="no elements"):
        value("max", np.zeros((0, 3)), axis=0)
    with pytest.raises(ShapeError, match="no elements"):
        value("argmin", np.zeros(0))
    with pytest.raises(DTypeError, match="no order"):
        value("min", np.zeros(2, np.complex64))
    assert value("max", np.zeros((0, 3)), axis=1).shape == (0,)
    with pytest.raises(IndexOutOfRange, match="axis 2"):
        value("sum", np.zeros((2, 3)), axis=2)
    with pytest.raises(ShapeError, match="twice"):
        value("sum", np.zeros((2, 3)), axis=(0, -2))


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_the_derivative_of_a_product_at_zeros(zeros):
    x = np.array([2.0, 3.0, -1.5, 4.0, 0.5])
    x[:zeros] = 0
    wanted = [np.prod(np.delete(x, k)) for k in range(5)]
    np.testing.assert_allclose(gradient("prod", x), wanted)


def test_logsumexp_is_stable():
    x = np.array([[1e4, 1e4 - 1, 0], [-1e4, -1e4, -1e4 - 3], [-inf, -inf, -inf], [inf, 0, 1], [-inf, 2, nan]])
    np.testing.assert_allclose(value("logsumexp", x, axis=1), special.logsumexp(x, axis=1), rtol=1e-15)
    slope = gradient("logsumexp", x[:3], axis=1)
    np.testing.assert_allclose(slope[:2], special.softmax(x[:2], axis=1), rtol=1e-11)
    np.testing.assert_array_equal(slope[2], np.zeros(3))
    assert value("logsumexp", np.zeros((0, 2)), axis=0).tolist() == [-inf, -inf]
    with pytest.raises(DTypeError, match="complex"):
        value("logsumexp", np.zeros(2, np.complex64))


def test_any_and_all_of_nothing():
    assert not value("any", np.zeros((0,)))
    assert value("all", np.zeros((0,)))
    assert value("any", np.array([0.0, nan]))
    assert not value("all", np.array([0.0, nan]))


def test_running_extremes_keep_nan_and_take_the_last_of_ties():
    x = np.array([1.0, 3.0, 3.0, nan, 5.0])
    values, places = value("cummax", x)
    np.testing.assert_array_equal(values, [1, 3, 3, nan, nan])
    np.testing.assert_array_equal(places, [0, 1, 2, 3, 3])
    np.testing.assert_array_equal(value("cummin", x[:3])[1], [0, 0, 0])
    np.testing.assert_array_equal(gradient("cummax", x[:3]), [1, 1, 1])


def test_the_derivative_of_running_products_at_zeros():
    x = np.array([2.0, 0.0, 3.0, 0.0, 4.0])
    wanted = [sum(np.prod(np.delete(x[: i + 1], k)) for i in range(k, 5)) for k in range(5)]
    np.testing.assert_allclose(gradient("cumprod", x), wanted)


def test_recurrences_begin_anew_where_a_gain_is_infinite_and_go_on_through_zeros():
    gains, x = np.array([np.inf, 2.0, 0.0, -1.0]), np.array([1.0, 1.0, 5.0, 2.0])
    np.testing.assert_array_equal(value("linear_recurrence", gains, x), [1, 3, 5, -3])
    with pytest.raises(ShapeError, match="one for each element"):
        ek.recurrence(ek.ones(3), ek.ones(4))
    y = ek.grad(lambda g: ek.linear_recurrence(g, ek.tensor(x), ek.tensor(2.0))[-1])(ek.tensor([3.0, 2.0, 0.0, -1.0]))
    np.testing.assert_allclose(y.numpy(), [0, 0, -15, 5])  # the third gain is 0: what is before it goes no further


def test_scans_want_an_axis_unless_there_is_one_only():
    with pytest.raises(ShapeError, match="give an axis"):
        value("cumsum", np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="give an axis"):
        value("cumprod", np.array(1.0))
    with pytest.raises(DTypeError, match="no order"):
        value("cummax", np.zeros(2, np.complex64))
