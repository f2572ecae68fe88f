"""Kinds of steps on complex numbers: made of floats, computed with, transformed, and made floats again.

Each stays away from where it jumps (branch cuts, zeros of a magnitude), and is said in NumPy, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import eshkol as ek
from random_programs.choosing import Chooser, chance
from random_programs.program import Known, Step, kind
from random_programs.steps import meets, place


def _is_complex(v: Known) -> bool:
    return not v.is_real


def _wide(v: Known) -> bool:
    return v.array.dtype in (np.float64, np.complex128)


@kind("complex", lambda a, x, y: ek.complex(x, y), numpys=lambda a, x, y: x + 1j * y, weight=3)
def _made(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.array.dtype in (np.float64, np.float32))
    if k is None:
        return None
    fits = [
        j for j, v in enumerate(values) if v.array.dtype == values[k].array.dtype and meets(v.shape, values[k].shape)
    ]
    j = c.pick(fits)
    return Step("complex", (k, j), exact=values[k].exact and values[j].exact)


def _squared(z: Any, conj: Any, real: Any) -> Any:
    return real(z * conj(z))


ALONE: dict[str, Callable[[Any, Any], Any]] = {  # given the functions of ours or of NumPy
    "exp": lambda m, z: m.exp(z * 0.25 / (1.0 + _squared(z, m.conj, m.real))),
    "sin": lambda m, z: m.sin(z / (1.0 + _squared(z, m.conj, m.real))),
    "tanh": lambda m, z: m.tanh(z / (2.0 + _squared(z, m.conj, m.real))),
    "sqrt": lambda m, z: m.sqrt(z / (1.0 + _squared(z, m.conj, m.real)) + 2.0),
    "log": lambda m, z: m.log(z / (1.0 + _squared(z, m.conj, m.real)) + 2.0),
    "conj": lambda m, z: m.conj(z),
    "neg": lambda m, z: -z,
    "turned": lambda m, z: z * 1j,
    "halved": lambda m, z: 0.5 * z - (0.25 + 0.5j),
    "inverse": lambda m, z: 1.0 / (z / (1.0 + _squared(z, m.conj, m.real)) + 2.0),
    "squared": lambda m, z: z**2,
    "share": lambda m, z: z / (1.0 + _squared(z, m.conj, m.real)),
}  # fmt: skip
BACK: dict[str, Callable[[Any, Any], Any]] = {
    "real": lambda m, z: m.real(z), "imag": lambda m, z: m.imag(z),
    "squared": lambda m, z: m.real(z) ** 2 + m.imag(z) ** 2,
    "magnitude": lambda m, z: abs(z / (1.0 + _squared(z, m.conj, m.real)) + 2.0),
}  # fmt: skip
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "with conjugate": lambda x, y: x * y.conj(),
}  # fmt: skip
EXACT = ("conj", "neg", "real", "imag")


@kind("complex alone", lambda a, z: ALONE[a](ek, z), numpys=lambda a, z: ALONE[a](np, z), weight=3)
def _alone(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, _is_complex)
    if k is None:
        return None
    name = c.pick(list(ALONE))
    return Step("complex alone", (k,), name, exact=values[k].exact and name in EXACT)


@kind("complex pair", lambda a, x, y: PAIRS[a](x, y), numpys=lambda a, x, y: PAIRS[a](x, y), weight=3)
def _pair(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, _is_complex)
    if k is None:
        return None
    dtypes = (values[k].array.dtype, values[k].array.real.dtype)
    fits = [j for j, v in enumerate(values) if v.array.dtype in dtypes and meets(v.shape, values[k].shape)]
    pair = (k, c.pick(fits))
    return Step("complex pair", pair[:: -1 if chance(c, 30) else 1], c.pick(list(PAIRS)))


@kind("complex to float", lambda a, z: BACK[a](ek, z), numpys=lambda a, z: BACK[a](np, z), weight=4)
def _back(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, _is_complex)
    if k is None:
        return None
    name = c.pick(list(BACK))
    return Step("complex to float", (k,), name, exact=values[k].exact and name in EXACT)


@kind("complex sum", lambda a, z: getattr(ek, a[0])(z, axis=a[1], keepdims=a[2]),
      numpys=lambda a, z: getattr(np, a[0])(z, axis=a[1], keepdims=a[2]), weight=2)  # fmt: skip
def _sum(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _is_complex(v) and v.size > 0)
    if k is None:
        return None
    axis = c.integer(-1, values[k].ndim - 1) if values[k].ndim and chance(c, 70) else None
    return Step(
        "complex sum", (k,), (c.pick(["sum", "mean", "prod" if values[k].size < 6 else "sum"]), axis, chance(c, 40))
    )


@kind("complex running sum", lambda a, z: ek.cumsum(z, a), numpys=lambda a, z: np.cumsum(z, a))
def _running(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _is_complex(v) and v.ndim > 0)
    return None if k is None else Step("complex running sum", (k,), c.integer(0, values[k].ndim - 1))


@kind("complex product", lambda a, x, y: ek.matmul(x, y), numpys=lambda a, x, y: np.matmul(x, y), weight=2, folds=True)
def _product(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _is_complex(v) and 0 < v.ndim < 4 and v.array.dtype == np.complex128)
    if k is None:
        return None
    x = values[k]

    def fits(v: Known) -> bool:
        if not _wide(v) or not 0 < v.ndim < 4:
            return False
        inner = v.shape[-2] if v.ndim > 1 else v.shape[0]
        return inner == x.shape[-1] and meets(v.shape[:-2], x.shape[:-2] if x.ndim > 1 else ())

    j = place(c, values, fits)
    return None if j is None else Step("complex product", (k, j))


@kind("spectrum", lambda a, x: getattr(ek, a[0])(x, n=a[1], axis=a[2], norm=a[3]),
      numpys=lambda a, x: getattr(np.fft, a[0])(x, n=a[1], axis=a[2], norm=a[3]), weight=3, folds=True)  # fmt: skip
def _spectrum(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _wide(v) and v.ndim > 0 and v.size > 0)
    if k is None:
        return None
    names = ["fft", "ifft", "irfft"] if _is_complex(values[k]) else ["fft", "ifft", "rfft"]
    name, axis = c.pick(names), c.integer(-1, values[k].ndim - 1)
    given = values[k].shape[axis]
    length = c.integer(1, 6) if chance(c, 40) or (name == "irfft" and given < 2) else None
    return Step("spectrum", (k,), (name, length, axis, c.pick([None, "ortho", "forward"])))


@kind("plane spectrum", lambda a, x: getattr(ek, a[0])(x, norm=a[1]),
      numpys=lambda a, x: getattr(np.fft, a[0])(x, norm=a[1]), folds=True)  # fmt: skip
def _plane(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _wide(v) and v.ndim > 1 and v.size > 0)
    return (
        None
        if k is None
        else Step("plane spectrum", (k,), (c.pick(["fft2", "ifft2", "fftn"]), c.pick([None, "ortho"])))
    )
