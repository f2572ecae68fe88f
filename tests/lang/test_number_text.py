"""Numbers from text and as text: every syntax of R7RS, shortest digits, correct rounding, bounded work."""

from __future__ import annotations

import math
import re
import string
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from native import Gaussian, Native, exacts, fractions, integers, plain, same
from scheme_data import SchemeError

from batches import of_each
from effort import examples

INF, NAN = math.inf, math.nan
DIGITS = string.digits + string.ascii_lowercase
SCHEME = Path(__file__).parents[2] / "src" / "eshkol" / "runtime" / "native" / "scheme"


NONE = """
    + - . ... 1+ 1- -- +- 1+1 abc a1 +a -b 1/ /2 1/2/3 1//2 1/0 #i1/0 -1/0 1/-2 1.2.3 1..2 1e 1e+ e5 +e5 .e5 1e5.5
    1e1e1 1/2.5 1.5/2 1/2e3 #e #x #xg #b2 #o8 #d1f #q1 #e#e1 #x#b1 #e#x#e1 #e+inf.0 #e+nan.0 inf.0 nan.0 +inf
    +inf.1 +inf.00 i 2i 1+2 1+2j 1+2ii 1+i2 +ii 1@ @1 1@2@3 1@2i 1i+2 1++2i 1+-2i 1_000 0x10 1,000 1f 1d5 ++1 1@+
    +inf.0x 1/2@ 1e2i #e1@+inf.0 λ 1λ ١
""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def scheme() -> Iterator[Native]:
    machine = Native()
    yield machine
    machine.close()


@pytest.fixture(scope="module", autouse=True)
def long_digits() -> Iterator[None]:
    """Python as an oracle for long numbers."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


def in_radix(n: int, radix: int) -> str:
    digits = ""
    rest = abs(n)
    while rest:
        rest, digit = divmod(rest, radix)
        digits = DIGITS[digit] + digits
    return ("-" if n < 0 else "") + (digits or "0")


# ---- integers and rationals


@examples(1000, 60)
@given(integers())
def test_integers_in_radix_ten(scheme: Native, n: int) -> None:
    assert scheme.shown(n) == str(n)
    assert scheme.text(str(n)) == n
    assert scheme.text(f"#x{n:x}") == n
    assert scheme.text(f"#b{n:b}") == n
    assert scheme.text(f"{n:o}", 8) == n
    assert scheme.shown(n, 16) == f"{n:x}"
    assert scheme.shown(n, 2) == f"{n:b}"


@examples(400, 60)
@given(st.integers(2, 36), st.integers(-(10**400), 10**400))
def test_integers_in_every_radix(scheme: Native, radix: int, n: int) -> None:
    assert scheme.shown(n, radix) == in_radix(n, radix)
    assert scheme.text(in_radix(n, radix), radix) == n
    assert scheme.text(in_radix(n, radix).upper(), radix) == n


@pytest.mark.parametrize("digits", [303, 304, 305, 608, 609, 5000, 30_000])
def test_long_integers(scheme: Native, digits: int) -> None:
    for n in (10**digits - 1, 10**digits, 10**digits + 1, 7 ** (digits * 13 // 11)):
        assert scheme.shown(n) == str(n)
        assert scheme.text(str(n)) == n
        assert scheme.text("000" + str(n)) == n


@examples(300, 60)
@given(fractions, st.sampled_from([2, 7, 8, 10, 16]))
def test_rationals(scheme: Native, q: Fraction, radix: int) -> None:
    number = plain(q)
    assert scheme.text(scheme.shown(number, radix), radix) == number
    assert scheme.text(f"{q.numerator * 6}/{q.denominator * 6}") == number


# ---- flonums


def ours(x: float) -> str:
    """What the shortest digits, which repr knows, look like here: in place from 1e-6 to 1e21, else with an exponent."""
    if math.isnan(x) or math.isinf(x):
        return "+nan.0" if x != x else "+inf.0" if x > 0 else "-inf.0"
    _, digits, exponent = Decimal(repr(x)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    short = text.rstrip("0") or "0"
    exponent += len(text) - len(short)
    point = len(short) + exponent
    if x == 0:
        body = "0.0"
    elif 0 < point <= 21:
        body = short.ljust(point, "0")
        body = f"{body[:point]}.{body[point:] or '0'}"
    elif -6 < point <= 0:
        body = "0." + "0" * -point + short
    else:
        body = short[0] + ("." + short[1:] if len(short) > 1 else "") + f"e{point - 1}"
    return ("-" if math.copysign(1, x) < 0 else "") + body


@examples(20_000, 600)
@given(st.floats())
def test_the_shortest_digits(scheme: Native, x: float) -> None:
    text = scheme.shown(x)
    assert text == ours(x)
    assert same(scheme.text(text), x)


def test_the_shortest_digits_at_every_power_of_two(scheme: Native) -> None:
    """Where the neighbour below is closer than the one above."""
    for exponent in range(-1074, 1024):
        x = math.ldexp(1.0, exponent)
        for y in (x, math.nextafter(x, 0), math.nextafter(x, INF)):
            assert scheme.shown(y) == ours(y)


def test_every_power_of_ten_of_the_table() -> None:
    text = (SCHEME / "decimal_powers.h").read_text()
    rows = [int(high, 16) << 64 | int(low, 16) for high, low in re.findall(r"\{(0x\w{16}), (0x\w{16})\}", text)]
    assert len(rows) == 324 + 292 + 1
    for k, row in enumerate(rows, -292):
        power = Fraction(10) ** k
        order = power.numerator.bit_length() - power.denominator.bit_length()
        order -= power < Fraction(2) ** order
        assert row == math.ceil(power * Fraction(2) ** (127 - order))


@examples(5000, 250)
@given(st.integers(0, 10**40), st.integers(-380, 340))
def test_the_nearest_double_to_a_decimal(scheme: Native, digits: int, exponent: int) -> None:
    for text in (f"{digits}e{exponent}", f"{digits % 10**17}e{exponent}", f"-.{digits}e{exponent}"):
        assert same(scheme.text(text), float(text))


@examples(2000, 100)
@given(st.floats(min_value=0, max_value=1e308), st.sampled_from(["", "0" * 900 + "1"]))
def test_the_middle_of_two_doubles(scheme: Native, x: float, tail: str) -> None:
    """Exact middles go to the even one, and a digit far behind decides; just below goes down."""
    middle = (Fraction(x) + Fraction(math.nextafter(x, INF))) / 2
    shift = middle.denominator.bit_length() - 1
    digits = str(middle.numerator * 5**shift)  # the decimals of a binary fraction
    for text in (f"{digits}{tail}", str(int(digits) - 1) + "9" * 40):
        literal = f"{text}e{-shift - (len(text) - len(digits))}"
        assert same(scheme.text(literal), float(literal))


@examples(500, 80)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(2, 36))
def test_flonums_in_every_radix(scheme: Native, x: float, radix: int) -> None:
    text = scheme.shown(x, radix)
    assert same(scheme.text(text, radix), x)
    if radix in (2, 4, 8, 16, 32):  # these are exact
        whole, fraction = text.lstrip("-").split(".")
        assert Fraction(int(whole + fraction, radix), radix ** len(fraction)) == abs(Fraction(x))


# ---- complex numbers

part = st.one_of(exacts.map(plain), st.floats(allow_nan=False))


@examples(500, 100)
@given(part, part)
def test_complex_numbers(scheme: Native, x: Any, y: Any) -> None:
    z = scheme.call("make-rectangular", x, y)
    assert same(scheme.text(scheme.shown(z)), z)
    if not isinstance(y, float) and not isinstance(x, float) and y:
        assert z == Gaussian(x, y)


# ---- the grammar


@of_each(
    "text, wanted",
    [
        ("0", 0),
        ("-0", 0),
        ("+5", 5),
        ("007", 7),
        ("-0.0", -0.0),
        ("+.5", 0.5),
        ("5.", 5.0),
        (".5e1", 5.0),
        ("1E3", 1000.0),
        ("1e+3", 1000.0),
        ("1e-3", 0.001),
        ("#e1.5", Fraction(3, 2)),
        ("#E1E3", 1000),
        ("#e-1.25e-2", Fraction(-1, 80)),
        ("#i1/3", 1 / 3),
        ("#I5", 5.0),
        ("#i-0", -0.0),
        ("#x#e1F", 31),
        ("#e#xff", 255),
        ("#XaB", 171),
        ("#x1e3", 0x1E3),
        ("#b-101", -5),
        ("#o17/10", Fraction(15, 8)),
        ("#d10", 10),
        ("#i#b11", 3.0),
        ("6/4", Fraction(3, 2)),
        ("-4/2", -2),
        ("+inf.0", INF),
        ("-INF.0", -INF),
        ("+NaN.0", NAN),
        ("-nan.0", NAN),
        ("#i+inf.0", INF),
        ("+i", Gaussian(0, 1)),
        ("-I", Gaussian(0, -1)),
        ("1+2i", Gaussian(1, 2)),
        ("1-i", Gaussian(1, -1)),
        ("1/2+3/4i", Gaussian(Fraction(1, 2), Fraction(3, 4))),
        ("+2i", Gaussian(0, 2)),
        ("-2.5i", complex(0.0, -2.5)),
        ("1+0i", 1),
        ("1.5+0i", 1.5),
        ("1+0.0i", complex(1.0, 0.0)),
        ("1.5+2i", complex(1.5, 2.0)),
        ("#i1+2i", complex(1, 2)),
        ("#e1.5+2.5i", Gaussian(Fraction(3, 2), Fraction(5, 2))),
        ("+inf.0+nan.0i", complex(INF, NAN)),
        ("1-inf.0i", complex(1.0, -INF)),
        ("+inf.0i", complex(0.0, INF)),
        ("#x1+fi", Gaussian(1, 15)),
        ("1e2+1e3i", complex(100.0, 1000.0)),
        ("1@0", 1),
        ("-2@0", -2),
        ("0@5", 0),
        ("1@2", complex(math.cos(2), math.sin(2))),
        ("2.0@-1", 2 * complex(math.cos(-1), math.sin(-1))),
        ("1e400", INF),
        ("-1e999999999999999999999", -INF),
        ("1e-999999999999999999999", 0.0),
        ("0e999999999", 0.0),
        ("-0e5", -0.0),
        ("#e0e999999999", 0),
        ("#e0.000e-999999999", 0),
        ("0." + "0" * 400 + "1e401", 1.0),
        ("1" + "0" * 400 + "e-400", 1.0),
        ("#x1.8", 1.5),
        ("#b-.1", -0.5),
    ],
)
def test_what_is_a_number(scheme: Native, text: str, wanted: Any) -> None:
    assert same(scheme.text(text), wanted)


@of_each("text", NONE)
def test_what_is_none(scheme: Native, text: str) -> None:
    assert scheme.text(text) is False


@given(st.text("0123456789.eE+-/#xXbiIn@ fa", max_size=12))
def test_any_text_is_a_number_or_none(scheme: Native, text: str) -> None:
    found = scheme.text(text)
    if found is not False:
        assert same(scheme.text(scheme.shown(found)), found)


def test_empty_texts_and_blanks(scheme: Native) -> None:
    for text in ("", " ", " 1", "1 ", "\0", "1\0"):
        assert scheme.text(text) is False


@pytest.mark.parametrize("text", ["#e1e999999999", "#e1e-999999999", "#e1e99999999999999999999", "#e1.5e999999999+i"])
def test_absurd_exact_exponents_are_refused(scheme: Native, text: str) -> None:
    with pytest.raises(SchemeError) as caught:
        scheme.text(text)
    assert caught.value.kind == "range"


def test_examples_of_text(scheme: Native) -> None:
    for number, text in (
        (1.0, "1.0"),
        (1e21, "1e21"),
        (1e20, "100000000000000000000.0"),
        (1e100, "1e100"),
        (1e-7, "1e-7"),
        (-0.0, "-0.0"),
        (0.5, "0.5"),
        (1.5e-10, "1.5e-10"),
        (123456.789, "123456.789"),
        (Gaussian(0, 1), "+i"),
        (Gaussian(0, -1), "-i"),
        (Gaussian(3, -1), "3-i"),
        (Gaussian(Fraction(-1, 2), 3), "-1/2+3i"),
        (complex(0.0, 1.0), "0.0+1.0i"),
        (complex(-0.0, -0.0), "-0.0-0.0i"),
        (complex(1.0, -INF), "1.0-inf.0i"),
        (complex(NAN, INF), "+nan.0+inf.0i"),
        (Fraction(-3, 4), "-3/4"),
    ):
        assert scheme.shown(number) == text
    assert scheme.shown(255, 16) == "ff"
    assert scheme.shown(-255.5, 16) == "-ff.8"
    assert scheme.shown(35, 36) == "z"
