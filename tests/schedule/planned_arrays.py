"""Functions that few others are like when they are said in whole arrays: dtypes, places and numbers of every kind."""

from __future__ import annotations

from typing import Any

import eshkol as ek


def of_integers(x: Any, u: Any, t: Any) -> Any:
    """Numbers without signs, and truth values, which other operations stand for."""
    return (
        ek.shift_left(x, u.astype(ek.int32)), ek.shift_right(x, x), ek.shift_right(u, u), ek.relu(x), ek.abs(u),
        ek.sign(u), ek.sign(x), ek.abs(x), u + u, u * u, x // 3, x % 5, ek.maximum(x, 2), ek.minimum(u, u[::-1]),
        t * t, t + t, t.sum(0), ek.maximum(t, t[::-1]), x**2, ek.clip(x, -2, 2), ek.cumsum(x, 0), ek.cumprod(u, 1),
    )  # fmt: skip


def of_floats(x: Any, h: Any) -> Any:
    """Numbers and NaN, halves, and what wider dtypes compute."""
    return (
        ek.fmax(x, x[::-1]), ek.fmin(x, 0.5), ek.relu(h), ek.sign(h), ek.abs(x), ek.trunc(x), ek.round(h), ek.exp(h),
        h**1.5, x**-0.5, ek.rsqrt(x), ek.atan2(x, h.astype(ek.float64)), ek.isnan(h), ek.clip(h, -1, 1),
        ek.lerp(x, x[::-1], 0.25), ek.fmod(x, 0.75), ek.remainder(h, 2), ek.log1p(h), ek.nan_to_num(x),
        ek.erfc(x), ek.hypot(x, x[::-1]), ek.gelu(x), ek.erfinv(x), ek.lgamma(x), ek.erfc(h),
    )  # fmt: skip


def of_places(x: Any, k: Any, u: Any, m: Any) -> Any:
    """Places of every kind, of nothing, behind the end, and of complex numbers."""
    z = ek.view_as_complex(ek.stack((x, x[::-1]), -1))
    return (
        ek.take(x, u, axis=0), ek.take_along(x, k, axis=0), ek.scatter(x, u, x[:2], 0, "add"), x[k[:, 0]],
        ek.scatter(x, u[:0], x[:0]), ek.take(x[:, :0], u, axis=0), ek.view_as_real(ek.take(z, u, axis=0)),
        ek.view_as_real(ek.scatter(z, u, z[:2], 0, "add")), ek.where(m, x, x[0]), ek.view_as_real(z * z.conj()),
        ek.searchsorted(x[0], x[1]), ek.pad(x, ((1, 0), (2, 1))), ek.roll(x, 1, 0), ek.view_as_real(ek.cumprod(z, 0)),
    )  # fmt: skip
