"""Oracles of Fourier transforms: the sums themselves, as products with matrices of roots of unity."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from eshkol.ops.row import sample
from oracles.registry import complex_of, every, first, given, meet, normal_axes, normal_axis, oracle, real_of

_NORMS = (None, "backward", "ortho", "forward")


def _roots(n: int, sign: int) -> Any:
    """exp(±2πi·jk/n), the angle reduced in whole numbers first."""
    return np.array([[cmath.exp(sign * 2j * math.pi * (j * k % n) / n) for j in range(n)] for k in range(n)]).reshape(
        n, n
    )


def _lengthened(x: Any, n: int, axis: int) -> Any:
    shape = [n if k == axis else m for k, m in enumerate(x.shape)]
    return every(shape, lambda i: x[i] if i[axis] < x.shape[axis] else 0).astype(complex)


def _transform(x: Any, n: int | None, axis: int, norm: str | None, inverse: bool) -> Any:
    axis = normal_axis(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    found = np.moveaxis(np.tensordot(_roots(n, 1 if inverse else -1), _lengthened(x, n, axis), axes=(1, axis)), 0, axis)
    whole = {"ortho": 0.5, "forward": 0.0 if inverse else 1.0}.get(norm or "backward", 1.0 if inverse else 0.0)
    return found / n**whole


@oracle("dft", dtype=meet, tolerance=4.0)
def _dft(x: Any, axis: int = -1, inverse: bool = False) -> Any:
    return _transform(x, None, axis, "forward" if inverse else "backward", inverse) if x.size else x


_ONE = [sample((2, 5), n=n, axis=a, norm=m) for n in (None, 3, 7) for a in (0, -1) for m in _NORMS]
oracle("fft", dtype=complex_of(meet), tolerance=4.0, more=_ONE)(
    lambda x, n=None, axis=-1, norm=None: _transform(x, n, axis, norm, False)
)
oracle("ifft", dtype=complex_of(meet), tolerance=4.0, more=_ONE)(
    lambda x, n=None, axis=-1, norm=None: _transform(x, n, axis, norm, True)
)


def _many(x: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Any:
    if axes is None:
        axes = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
    found = x.astype(complex)
    for k, axis in enumerate(axes):
        found = _transform(found, None if s is None else s[k], axis, norm, inverse)
    return found


_TWO = [
    sample((2, 3, 4), s=s, axes=a, norm=m) for s in (None, (2, 5)) for a in ((-2, -1), (0, 2), (1, 0)) for m in _NORMS
]
_ALL = [
    sample((2, 3, 2), s=s, axes=a, norm=m)
    for s, a in ((None, None), ((3,), None), (None, (0, -1)), ((1, 4), (2, 0)))
    for m in _NORMS
]
for _name, _inverse in (("fft", False), ("ifft", True)):
    oracle(f"{_name}2", dtype=complex_of(meet), tolerance=8.0, more=_TWO)(
        lambda x, s=None, axes=(-2, -1), norm=None, inverse=_inverse: _many(x, s, axes, norm, inverse)
    )
    oracle(f"{_name}n", dtype=complex_of(meet), tolerance=8.0, more=_ALL)(
        lambda x, s=None, axes=None, norm=None, inverse=_inverse: _many(x, s, axes, norm, inverse)
    )


@oracle("rfft", dtype=complex_of(meet), tolerance=4.0, more=_ONE)
def _rfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    whole = np.moveaxis(_transform(x, n, axis, norm, False), axis, 0)
    return np.moveaxis(whole[: len(whole) // 2 + 1], 0, axis)


@oracle("irfft", dtype=real_of(complex_of(first)), tolerance=4.0, more=[
    sample((2, 4), n=n, axis=a, norm=m) for n in (None, 3, 4, 5, 9) for a in (0, -1) for m in _NORMS
])  # fmt: skip
def _irfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of the spectrum completed with conjugates; the parts that must be real are taken so."""
    moved = np.moveaxis(x, axis, 0).astype(complex)
    n = 2 * (len(moved) - 1) if n is None else n
    half = n // 2 + 1
    known = np.zeros((half, *moved.shape[1:]), complex)
    known[: min(half, len(moved))] = moved[:half]
    whole = np.zeros((n, *moved.shape[1:]), complex)
    for k in range(n):
        whole[k] = known[k] if k < half else np.conj(known[n - k])
    whole[0] = whole[0].real
    if n % 2 == 0:
        whole[n // 2] = whole[n // 2].real
    return np.moveaxis(_transform(whole, None, 0, norm, True).real, 0, axis)


def _shifted(x: Any, axes: Any, back: bool) -> Any:
    chosen = normal_axes(axes, x.ndim)

    def source(k: int, j: int, n: int) -> int:
        if k not in chosen:
            return j
        return (j + n // 2) % n if back else (j - n // 2) % n

    return every(x.shape, lambda i: x[tuple(source(k, j, n) for k, (j, n) in enumerate(zip(i, x.shape, strict=True)))])


_AXES: Sequence[Any] = (None, 0, -1, (0, 1), (-1,))
oracle("fftshift", dtype=first, more=[sample((4, 5), axes=a) for a in _AXES])(
    lambda x, axes=None: _shifted(x, axes, False)
)
oracle("ifftshift", dtype=first, more=[sample((4, 5), axes=a) for a in _AXES])(
    lambda x, axes=None: _shifted(x, axes, True)
)


_COUNTS = [
    sample(n=n, d=d, dtype=t) for n in (1, 2, 5, 8) for d in (1.0, 0.25) for t in ("float32", "float64", "float16")
]


@oracle("fftfreq", dtype=given("float32"), more=_COUNTS)
def _fftfreq(n: int, d: float = 1.0, dtype: Any = "float32") -> Any:
    numbers = [*range((n + 1) // 2), *range(-(n // 2), 0)]
    return np.array([float(Fraction(k) / (n * Fraction(d))) for k in numbers])


@oracle("rfftfreq", dtype=given("float32"), more=_COUNTS)
def _rfftfreq(n: int, d: float = 1.0, dtype: Any = "float32") -> Any:
    return np.array([float(Fraction(k) / (n * Fraction(d))) for k in range(n // 2 + 1)])
