"""Powers of integers: the code of an element, and what a negative exponent is answered with.

`power` of `elementwise.py` is the row; this is what it says of integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import TensorError
from eshkol.ops import dtypes


def refuse_negative(a: Any, x: Any, y: Any) -> Any:
    """An error where the powers of integers are known, and one is negative; gives those that are not known."""
    known: Any = y.known() if y.dtype.is_integer else 0
    if known is None:
        return y
    if np.any(known < 0):
        raise TensorError(
            f"an integer to the power {known[known < 0].flat[0]} is none",
            hint="cast to a float first: x.astype(ek.float32)",
        )
    return None


FEW_BITS = 6  # of the exponent of an integer: greater ones than 63 are seldom


def integer_power(e: Any, a: Any, i: Any, x: Any, y: Any) -> Any:
    """Squares, multiplied where the exponent has a bit; a negative one stops the launch.

    Nearly all exponents have few bits. The others are looked at only where an exponent has one of them.
    """
    base, exponent = x(i), y(i)
    zero, one = (e.constant(k, base.dtype) for k in (0, 1))
    if base.dtype.signed:
        fits = e.compare("GE", exponent, zero)
        e.stop_unless(e.select(fits, e.constant(1, dtypes.uint32), e.constant(0, dtypes.uint32)), 0)

    def step(_: Any, state: Any) -> Any:
        found, square, left = state
        chosen = e.compare("NE", e.op("AND", left, one), zero)
        return e.select(chosen, e.op("MUL", found, square), found), e.op("MUL", square, square), e.op("SHR", left, 1)

    few, bits = FEW_BITS, 8 * base.dtype.itemsize - base.dtype.signed
    state = e.loop(min(few, bits), (one, base, exponent), step)
    if few < bits:
        more = e.compare("NE", state[2], zero)
        state = e.loop(e.at_most(e.select(more, e.number(bits - few), e.number(0)), bits - few), state, step)
    return state[0]


def negative_power(a: Any) -> TensorError:
    return TensorError("an integer to a negative power is none", hint="cast to a float first: x.astype(ek.float32)")
