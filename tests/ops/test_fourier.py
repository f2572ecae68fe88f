"""Fourier transforms: random lengths, axes and norms against NumPy; inverses; errors."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value
from hypothesis import given, settings
from hypothesis import strategies as st

from eshkol.errors import EshkolError

NORMS = st.sampled_from([None, "backward", "ortho", "forward"])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["fft", "ifft", "rfft", "irfft"]),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.one_of(st.none(), st.integers(1, 7)),
    st.integers(-2, 1),
    NORMS,
)
def test_transforms_are_numpys(name, shape, n, axis, norm):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if name != "rfft" else 0)
    if name == "irfft" and n is None and shape[axis] == 1:
        n = 1
    wanted = getattr(np.fft, name)(x, n, axis, norm)
    np.testing.assert_allclose(value(name, x, n=n, axis=axis, norm=norm), wanted, atol=1e-13)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["fft2", "ifft2", "fftn", "ifftn"]), st.permutations([0, 1, 2]), st.booleans(), NORMS)
def test_transforms_along_several_axes_are_numpys(name, order, sized, norm):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 3, 4))
    axes = tuple(order[:2])
    s = (3, 2) if sized else None
    wanted = getattr(np.fft, name)(x, s, axes, norm)
    np.testing.assert_allclose(value(name, x, s=s, axes=axes, norm=norm), wanted, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 1009])
def test_inverses_give_the_numbers_back(n):
    x = np.random.default_rng(n).normal(size=n)
    np.testing.assert_allclose(value("ifft", value("fft", x)), x, atol=1e-12)
    np.testing.assert_allclose(value("irfft", value("rfft", x), n=n), x, atol=1e-12)
    np.testing.assert_array_equal(value("ifftshift", value("fftshift", x)), x)
    np.testing.assert_array_equal(value("fftshift", x), np.fft.fftshift(x))


def test_dtypes_follow_the_input():
    for dtype, wanted in [
        (np.int8, np.complex64), (np.bool_, np.complex64), (np.float16, np.complex64), (np.float32, np.complex64),
        (np.float64, np.complex128), (np.complex64, np.complex64),
    ]:  # fmt: skip
        assert value("fft", np.ones(3, dtype)).dtype == wanted
    assert value("irfft", np.ones(3, np.complex64)).dtype == np.float32


def test_gradients_of_real_transforms_count_only_what_they_give():
    x = np.random.default_rng(0).normal(size=6)
    np.testing.assert_allclose(gradient("rfft", x), np.conj(np.fft.fft([1, 1, 1, 1, 0, 0])).real, atol=1e-12)
    got = gradient("irfft", np.ones(4, complex))
    np.testing.assert_allclose(got, [1, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "args", "attrs"),
    [
        ("fft", (np.ones(3),), {"n": 0}),
        ("fft", (np.ones(3),), {"n": 2.5}),
        ("fft", (np.ones(0),), {}),
        ("fft", (np.ones(3),), {"axis": 1}),
        ("fft", (np.ones(3),), {"norm": "unitary"}),
        ("fft", (np.ones(()),), {}),
        ("fft2", (np.ones(3),), {}),
        ("fftn", (np.ones((2, 3)),), {"s": (2, 2), "axes": (0,)}),
        ("irfft", (np.ones(1),), {}),
        ("rfft", (np.ones(3, complex),), {}),
        ("dft", (np.ones(3),), {}),
    ],
)
def test_misfits_are_refused(name, args, attrs):
    with pytest.raises(EshkolError):
        value(name, *args, **attrs)
