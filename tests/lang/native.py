"""Python numbers to Scheme numbers and back, and calls of the runtime's primitives by their Scheme names.

`Native` is scheme_data.Scheme with the whole numeric tower: int, Fraction, float and complex are exact integers, exact
rationals, flonums and inexact complex numbers; an exact complex number is a Gaussian. Multiple
values come back as Several. Below are strategies for numbers of all kinds and sizes.
"""

from __future__ import annotations

import ctypes
import math
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import strategies as st
from scheme_data import Scheme, Value, word

from eshkol.runtime.scheme_table import layout

LIMB = 8


class Gaussian(NamedTuple):
    """An exact complex number."""

    real: Fraction | int
    imag: Fraction | int


class Several(NamedTuple):
    """Multiple values."""

    items: tuple[Any, ...]


class Native(Scheme):
    def __init__(self, heap_limit: int = 0) -> None:
        super().__init__(heap_limit)
        self.library.esk_allocate.restype = ctypes.c_void_p
        self.library.esk_allocate.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def text(self, source: str, radix: int = 10) -> Any:
        """The number that the text is, or False."""
        return self.call("string->number", source, radix)

    def shown(self, data: Any, radix: int = 10) -> str:
        """The text of a number."""
        found = self.call("number->string", data, radix)
        assert isinstance(found, str)
        return found

    def value(self, data: Any) -> Value:
        match data:
            case Fraction():
                return self.raw("/", self.value(data.numerator), self.value(data.denominator))
            case complex():
                return self.raw("make-rectangular", self.value(data.real), self.value(data.imag))
            case Gaussian(real, imag):
                return self.raw("make-rectangular", self.value(real), self.value(imag))
        return super().value(data)

    def _integer(self, n: int) -> Value:
        if -(1 << 63) <= n < 1 << 63:
            return super()._integer(n)
        count = (abs(n).bit_length() + 63) // 64
        address = self.library.esk_allocate(self.context, 8 + LIMB * count, self.tag["BIGNUM"])
        ctypes.memmove(address + 8, abs(n).to_bytes(LIMB * count, "little"), LIMB * count)
        header = self.tag["BIGNUM"] | (layout()["FLAG_NEGATIVE"] << 24 if n < 0 else 0) | count << 32
        ctypes.c_uint64.from_address(address).value = header
        return Value(self.tag["BIGNUM"], address)

    def python(self, value: Value) -> Any:
        if value.tag == self.tag["BIGNUM"]:
            count = word(value.bits) >> 32
            top = word(value.bits + LIMB * count)
            assert top, "a bignum with a zero on top"
            found = super().python(value)
            assert not -(1 << 63) <= found < 1 << 63, "a bignum that should be a fixnum"
            return found
        if value.tag in (self.tag["RATIONAL"], self.tag["COMPLEX"]):
            first, second = (self.python(Value.from_address(value.bits + 8 + 16 * i)) for i in range(2))
            if value.tag == self.tag["COMPLEX"]:
                if isinstance(first, float):
                    assert isinstance(second, float), "a complex number of mixed exactness"
                    return complex(first, second)
                return Gaussian(first, second)
            fraction = Fraction(first, second)
            assert second > 1, "a rational that is an integer"
            assert (fraction.numerator, fraction.denominator) == (first, second), "not in lowest terms"
            return fraction
        if value.tag == self.tag["VALUES"]:
            count = word(value.bits) >> 32
            return Several(tuple(self.python(Value.from_address(value.bits + 8 + 16 * i)) for i in range(count)))
        return super().python(value)


def same(found: object, wanted: object) -> bool:
    """Equal, of the same type, with the same signs of zero."""
    if type(found) is not type(wanted):
        return False
    if isinstance(found, complex) and isinstance(wanted, complex):
        return same(found.real, wanted.real) and same(found.imag, wanted.imag)
    if isinstance(found, float) and isinstance(wanted, float):
        return (found == wanted and math.copysign(1, found) == math.copysign(1, wanted)) or (
            found != found != wanted != wanted
        )
    return found == wanted


# Sizes at the borders of limbs, of the stack's scratch, of each algorithm, and anything between.
widths = st.one_of(
    st.integers(1, 70),
    st.sampled_from([62, 63, 64, 65, 127, 128, 129, 191, 192, 193, 1000, 2300, 2304, 2310, 4608, 5121, 9000]),
    st.integers(1, 14_000),
)


@st.composite
def integers(draw: st.DrawFn) -> int:
    """Integers of all sizes: random bits, and long runs of ones and zeros, where carries travel far."""
    bits = draw(widths)
    kind = draw(st.sampled_from(["random", "ones", "power", "runs"]))
    if kind == "random":
        n = (
            draw(st.integers(0, (1 << bits) - 1))
            if bits < 200
            else draw(st.randoms(use_true_random=False)).getrandbits(bits)
        )
    elif kind == "ones":
        n = (1 << bits) - draw(st.integers(0, 3))
    elif kind == "power":
        n = (1 << bits) + draw(st.integers(-2, 2))
    else:
        n = 0
        while n.bit_length() < bits:
            run = draw(st.integers(1, max(1, bits)))
            n = n << run | (draw(st.integers(0, 1)) * ((1 << run) - 1) or 1)
    return n if draw(st.booleans()) else -n


fractions = st.builds(Fraction, integers(), integers().filter(bool))
small_fractions = st.fractions(max_denominator=1 << 62)
exacts = st.one_of(st.integers(-(1 << 64), 1 << 64), integers(), small_fractions, fractions)
floats = st.floats()
finite = st.floats(allow_nan=False, allow_infinity=False)


def plain(number: Any) -> Any:
    """A fraction that is whole is an int."""
    return number.numerator if isinstance(number, Fraction) and number.denominator == 1 else number
