"""The numeric tower of the runtime: arithmetic, comparison, integer division, rounding, exactness, against Python's."""

from __future__ import annotations

import ctypes
import math
import operator
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from native import Gaussian, Native, Several, exacts, finite, floats, integers, plain, same, small_fractions
from scheme_data import SchemeError

from batches import of_each
from effort import amount, examples

INF, NAN = math.inf, math.nan


@pytest.fixture(scope="module")
def scheme() -> Iterator[Native]:
    machine = Native()
    yield machine
    machine.close()


def failure(scheme: Native, name: str, *args: object) -> SchemeError:
    with pytest.raises(SchemeError) as caught:
        scheme.call(name, *args)
    return caught.value


# ---- exact arithmetic


@examples(3000, 100)
@given(integers(), integers())
def test_sums_and_products_of_integers(scheme: Native, a: int, b: int) -> None:
    assert scheme.call("+", a, b) == a + b
    assert scheme.call("-", a, b) == a - b
    assert scheme.call("*", a, b) == a * b
    assert scheme.call("square", a) == a * a
    assert scheme.call("-", a) == -a
    assert scheme.call("abs", a) == abs(a)


@examples(3000, 100)
@given(integers(), integers(), integers())
def test_division_of_integers(scheme: Native, a: int, b: int, c: int) -> None:
    assume(b)
    for n in (a, a * b + c, a * b, a * b - 1):
        floor = divmod(n, b)
        assert scheme.call("floor/", n, b) == Several(floor)
        quotient = abs(n) // abs(b) * (1 if (n < 0) == (b < 0) else -1)
        assert scheme.call("truncate/", n, b) == Several((quotient, n - quotient * b))
        assert scheme.call("modulo", n, b) == floor[1]
        assert scheme.call("quotient", n, b) == quotient
        assert scheme.call("remainder", n, b) == n - quotient * b


@of_each("b", [1, -1, 2, -2, 3, (1 << 63) - 1, -(1 << 63), 1 << 63, 1 << 64])
@of_each("a", [0, 1, -1, (1 << 63) - 1, -(1 << 63), 1 << 63, 1 << 64])
def test_division_at_the_borders(scheme: Native, a: int, b: int) -> None:
    assert scheme.call("floor/", a, b) == Several(divmod(a, b))
    assert scheme.call("floor-quotient", a, b) == a // b
    assert scheme.call("floor-remainder", a, b) == a % b
    assert scheme.call("truncate-quotient", a, b) * b + scheme.call("truncate-remainder", a, b) == a
    assert scheme.call("gcd", a, b) == math.gcd(a, b)
    assert scheme.call("lcm", a, b) == math.lcm(a, b)
    assert scheme.call("/", a, b) == plain(Fraction(a, b))


@examples(1500, 60)
@given(integers(), integers(), integers())
def test_divisors_and_multiples(scheme: Native, a: int, b: int, c: int) -> None:
    assert scheme.call("gcd", a, b) == math.gcd(a, b)
    assert scheme.call("gcd", a * c, b * c) == math.gcd(a * c, b * c)
    assert scheme.call("lcm", a, b) == math.lcm(a, b)
    assert scheme.call("gcd", a, b, c) == math.gcd(a, b, c)


@examples(1500, 60)
@given(integers(), integers(), st.integers(-5000, 5000))
def test_bits(scheme: Native, a: int, b: int, shift: int) -> None:
    assert scheme.call("bitwise-and", a, b) == a & b
    assert scheme.call("bitwise-ior", a, b) == a | b
    assert scheme.call("bitwise-xor", a, b) == a ^ b
    assert scheme.call("bitwise-not", a) == ~a
    assert scheme.call("arithmetic-shift", a, shift) == (a << shift if shift >= 0 else a >> -shift)
    assert scheme.call("bit-count", a) == (a if a >= 0 else ~a).bit_count()
    assert scheme.call("integer-length", a) == (a if a >= 0 else ~a).bit_length()
    assert scheme.call("odd?", a) == bool(a & 1)
    assert scheme.call("even?", a) == (not a & 1)


@examples(1500, 60)
@given(integers())
def test_integer_square_roots(scheme: Native, a: int) -> None:
    for n in (abs(a), a * a, a * a + 1, max(0, a * a - 1)):
        root = math.isqrt(n)
        assert scheme.call("exact-integer-sqrt", n) == Several((root, n - root * root))
    assert scheme.call("sqrt", a * a) == abs(a)


@pytest.mark.parametrize("limbs", [300, 1000])
def test_long_products_and_quotients(scheme: Native, limbs: int) -> None:
    ones = (1 << 64 * limbs) - 1
    for a, b in (
        (ones, ones),
        (ones * ones, ones),
        (1 << 128 * limbs, ones),
        (3**40 * ones, ones >> 5000),
        (ones, 7**3000),
    ):
        assert scheme.call("*", a, b) == a * b
        assert scheme.call("floor/", a, b) == Several(divmod(a, b))
        assert scheme.call("floor/", a * b - 1, b) == Several(divmod(a * b - 1, b))


@examples(1500, 60)
@given(exacts, exacts)
def test_exact_rationals(scheme: Native, a: Any, b: Any) -> None:
    a, b = Fraction(a), Fraction(b)
    assert scheme.call("+", plain(a), plain(b)) == plain(a + b)
    assert scheme.call("-", plain(a), plain(b)) == plain(a - b)
    assert scheme.call("*", plain(a), plain(b)) == plain(a * b)
    if b:
        assert scheme.call("/", plain(a), plain(b)) == plain(a / b)
    assert scheme.call("numerator", a) == a.numerator
    assert scheme.call("denominator", a) == a.denominator
    assert scheme.call("floor", a) == math.floor(a)
    assert scheme.call("ceiling", a) == math.ceil(a)
    assert scheme.call("truncate", a) == math.trunc(a)
    assert scheme.call("round", a) == round(a)
    assert scheme.call("square", a) == plain(a * a)


@given(st.integers(-(1 << 62), 1 << 62))
def test_halves_are_rounded_to_even(scheme: Native, n: int) -> None:
    half = Fraction(2 * n + 1, 2)
    assert scheme.call("round", half) == round(half)


@examples(300, 60)
@given(small_fractions, small_fractions)
def test_the_simplest_rational(scheme: Native, x: Fraction, y: Fraction) -> None:
    found = Fraction(scheme.call("rationalize", plain(x), plain(y)))
    assert abs(found - x) <= abs(y)
    if found.denominator < 300:  # nothing simpler is as close: every smaller denominator misses the interval
        for d in range(1, found.denominator):
            assert math.ceil((x - abs(y)) * d) > math.floor((x + abs(y)) * d)
        low, high = math.ceil((x - abs(y)) * found.denominator), math.floor((x + abs(y)) * found.denominator)
        assert found.numerator == (0 if low <= 0 <= high else low if low > 0 else high)


# ---- exact complex numbers

parts = st.one_of(st.integers(-50, 50), st.fractions(max_denominator=20, min_value=-9, max_value=9))


def gaussian(real: Any, imag: Any) -> Any:
    return plain(real) if imag == 0 else Gaussian(plain(real), plain(imag))


@examples(500, 60)
@given(parts, parts, parts, parts)
def test_exact_complex_numbers(scheme: Native, a: Any, b: Any, c: Any, d: Any) -> None:
    a, b, c, d = map(Fraction, (a, b, c, d))
    x, y = gaussian(a, b), gaussian(c, d)
    product = gaussian(a * c - b * d, a * d + b * c)
    assert scheme.call("+", x, y) == gaussian(a + c, b + d)
    assert scheme.call("-", x, y) == gaussian(a - c, b - d)
    assert scheme.call("*", x, y) == product
    if y != 0:
        assert scheme.call("/", product, y) == x
    assert scheme.call("=", x, y) == (x == y)
    assert scheme.call("expt", x, 3) == scheme.call("*", x, x, x)
    squared = scheme.call("*", x, x)
    assert scheme.call("sqrt", squared) in (x, scheme.call("-", x))
    assert scheme.call("real-part", scheme.call("sqrt", squared)) >= 0
    assert scheme.call("real-part", x) == plain(a)
    assert scheme.call("imag-part", x) == plain(b)


# ---- inexact numbers


@given(floats, floats)
def test_flonums(scheme: Native, x: float, y: float) -> None:
    assert same(scheme.call("+", x, y), x + y)
    assert same(scheme.call("-", x, y), x - y)
    assert same(scheme.call("*", x, y), x * y)
    assert same(scheme.call("-", x), -x)
    assert same(scheme.call("abs", x), abs(x))
    if y:
        assert same(scheme.call("/", x, y), x / y)
    if math.isfinite(x):
        for name, function in (
            ("floor", math.floor),
            ("ceiling", math.ceil),
            ("truncate", math.trunc),
            ("round", round),
        ):
            assert scheme.call(name, x) == float(function(x))
        assert scheme.call("integer?", x) == x.is_integer()
        assert scheme.call("exact", x) == plain(Fraction(x))
        assert scheme.call("numerator", x) == float(Fraction(x).numerator)
    assert scheme.call("nan?", x) == math.isnan(x)
    assert scheme.call("finite?", x) == math.isfinite(x)
    assert scheme.call("infinite?", x) == math.isinf(x)


def to_float(number: int | Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return INF if number > 0 else -INF


@examples(3000, 120)
@given(st.one_of(exacts, finite.map(Fraction)), st.integers(-1200, 1200))
def test_the_nearest_double(scheme: Native, a: int | Fraction, exponent: int) -> None:
    for number in (plain(Fraction(a)), plain(Fraction(a) * Fraction(2) ** exponent)):
        assert same(scheme.call("inexact", number), to_float(number))


@given(finite, st.integers(-3, 3))
def test_the_middle_of_two_doubles(scheme: Native, x: float, nudge: int) -> None:
    """Ties go to the even double; what is a little off the middle goes to the nearer one."""
    assume(abs(x) < 1e308)
    middle = (Fraction(x) + Fraction(math.nextafter(x, INF))) / 2 + Fraction(nudge, 10**400)
    assert same(scheme.call("inexact", plain(middle)), float(middle) if middle else 0.0)


def order_of(a: Any, b: Any) -> int | None:
    if a != a or b != b:
        return None
    if math.inf in (a, b) or -math.inf in (a, b):
        return (
            (a > b) - (a < b)
            if isinstance(a, float) and isinstance(b, float)
            else ((1 if a > 0 else -1) if isinstance(a, float) and math.isinf(a) else (-1 if b > 0 else 1))
        )
    return (Fraction(a) > Fraction(b)) - (Fraction(a) < Fraction(b))


def compare(scheme: Native, a: Any, b: Any) -> None:
    order = order_of(a, b)
    for name, orders in (("=", [0]), ("<", [-1]), (">", [1]), ("<=", [-1, 0]), (">=", [0, 1])):
        assert scheme.call(name, a, b) == (order in orders), (name, a, b)


@examples(1500, 80)
@given(st.one_of(exacts, floats), st.one_of(exacts, floats))
def test_comparison_is_exact(scheme: Native, a: Any, b: Any) -> None:
    a, b = plain(a), plain(b)
    compare(scheme, a, b)
    compare(scheme, a, a)
    if isinstance(a, float) and math.isfinite(a):
        for near in (
            Fraction(a),
            Fraction(a) + Fraction(1, 10**400),
            Fraction(a) - Fraction(1, 10**400),
            round(a),
            round(a) + 1,
        ):
            compare(scheme, a, plain(near))
            compare(scheme, plain(near), a)


def test_comparison_is_transitive_where_doubles_are_sparse(scheme: Native) -> None:
    n = 1 << 53
    assert not scheme.call("=", n + 1, float(n))
    assert scheme.call("<", float(n), n + 1, float(n + 2))
    assert scheme.call("=", 9007199254740992, 9007199254740992.0, complex(9007199254740992.0, 0.0))
    assert scheme.call("<", -(1 << 63) - 1, -9223372036854775808.0)
    assert scheme.call("=", -(1 << 63), -9223372036854775808.0)
    assert scheme.call("<", (1 << 63) - 1, 9223372036854775808.0)


def test_comparison_of_many(scheme: Native) -> None:
    for name, numbers, wanted in (
        ("<", (1, 2, 3), True),
        ("<", (1, 3, 2), False),
        ("<", (1,), True),
        (">=", (3, 2, 2, 1.0), True),
        (">", (3, 2, 2), False),
    ):
        assert scheme.call(name, *numbers) == wanted
    assert failure(scheme, "<", 2, 1, "x").kind == "wrong-type"
    assert failure(scheme, "=", 2, 1, "x").message == "expected a number as argument 3, but got"
    assert failure(scheme, "<", 1, Gaussian(1, 1)).message == "expected a real number as argument 2, but got"


@given(st.lists(st.one_of(exacts, finite), min_size=1, max_size=5))
def test_extremes(scheme: Native, numbers: list[Any]) -> None:
    for name, function in (("max", max), ("min", min)):
        wanted = function(map(Fraction, numbers))
        found = scheme.call(name, *map(plain, numbers))
        if any(isinstance(n, float) for n in numbers):
            assert found == to_float(wanted)
        else:
            assert found == plain(wanted)
    assert math.isnan(scheme.call("max", *map(plain, numbers), NAN))
    assert math.isnan(scheme.call("min", NAN, *map(plain, numbers)))


@given(finite, st.one_of(integers(), st.integers(-9, 9)))
def test_mixed_arithmetic(scheme: Native, x: float, n: int) -> None:
    operators: tuple[tuple[str, Callable[[float, float], float]], ...] = (
        ("+", operator.add),
        ("-", operator.sub),
        ("*", operator.mul),
    )
    for name, function in operators:
        assert same(scheme.call(name, x, n), function(x, to_float(n)))
        assert same(scheme.call(name, n, x), function(to_float(n), x))


@given(finite, finite)
def test_division_of_whole_flonums(scheme: Native, x: float, y: float) -> None:
    x, y = float(round(x)), float(round(y))
    assume(y)
    assert scheme.call("floor/", x, y) == Several(tuple(map(to_float, divmod(int(x), int(y)))))
    assert scheme.call("modulo", x, int(y)) == to_float(int(x) % int(y))
    assert scheme.call("gcd", x, y) == to_float(math.gcd(int(x), int(y)))
    assert scheme.call("odd?", x) == bool(int(x) & 1)


# ---- sameness


@examples(500, 60)
@given(st.one_of(exacts, floats, st.complex_numbers()), st.one_of(exacts, floats))
def test_eqv_and_hashes(scheme: Native, a: Any, b: Any) -> None:
    hashed = scheme.library.esk_number_hash
    hashed.restype, hashed.argtypes = type(scheme.value(0))._fields_[0][1], [type(scheme.value(0))]
    x, y = scheme.value(plain(a)), scheme.value(plain(a))
    assert scheme.python(scheme.raw("eqv?", x, y))
    assert hashed(x) == hashed(y)
    assert scheme.call("eqv?", plain(a), plain(b)) == same(plain(a), plain(b))


def test_eqv_of_zeros_and_nan(scheme: Native) -> None:
    assert not scheme.call("eqv?", 0.0, -0.0)
    assert scheme.call("=", 0.0, -0.0)
    assert scheme.call("eqv?", NAN, NAN)
    assert not scheme.call("eqv?", 2, 2.0)


# ---- powers and their limits


@examples(500, 60)
@given(st.one_of(st.integers(-1000, 1000), small_fractions, integers()), st.integers(-60, 60))
def test_exact_powers(scheme: Native, base: Any, exponent: int) -> None:
    assume(base or exponent >= 0)
    assert scheme.call("expt", plain(base), exponent) == plain(Fraction(base) ** exponent)


def test_large_powers(scheme: Native) -> None:
    assert scheme.call("expt", 2, 100_000) == 1 << 100_000
    assert scheme.call("expt", 12, 5000) == 12**5000
    assert scheme.call("expt", -7, 5001) == (-7) ** 5001
    assert scheme.call("expt", 1, 10**40) == 1
    assert scheme.call("expt", -1, 10**40 + 1) == -1
    assert scheme.call("expt", 0, 10**40) == 0
    assert scheme.call("expt", Gaussian(0, 1), 10**40 + 1) == Gaussian(0, 1)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("expt", (2, 10**12)),
        ("expt", (2, 10**30)),
        ("expt", (3, 10**10)),
        ("expt", (Fraction(1, 3), -(10**10))),
        ("expt", (Gaussian(1, 1), 10**11)),
        ("arithmetic-shift", (1, 10**12)),
        ("arithmetic-shift", (1, 10**30)),
    ],
)
def test_what_no_memory_can_hold(name: str, args: tuple[Any, ...]) -> None:
    small = Native(64 << 20)
    try:
        assert failure(small, name, *args).kind == "out-of-memory"
        assert small.call("+", 1, 2) == 3
    finally:
        small.close()


# ---- errors


@of_each(
    "name, args, kind, message",
    [
        ("+", (1, "a"), "wrong-type", "expected a number as argument 2, but got"),
        ("+", (1, 2, 3, False), "wrong-type", "expected a number as argument 4, but got"),
        ("-", ("a",), "wrong-type", "expected a number as argument 1, but got"),
        ("*", ("a", 0), "wrong-type", "expected a number as argument 1, but got"),
        ("/", (1, 0), "arithmetic", "division by zero"),
        ("/", (1.5, 0), "arithmetic", "division by zero"),
        ("/", (Gaussian(1, 2), 0), "arithmetic", "division by zero"),
        ("/", (0,), "arithmetic", "division by zero"),
        ("modulo", (1, 0), "arithmetic", "division by zero"),
        ("quotient", (1 << 70, 0), "arithmetic", "division by zero"),
        ("floor/", (1.0, 0.0), "arithmetic", "division by zero"),
        ("modulo", (5.5, 2), "wrong-type", "expected an integer as argument 1, but got"),
        ("gcd", (5, 2, 0.5), "wrong-type", "expected an integer as argument 3, but got"),
        ("exact", (INF,), "wrong-type", "expected a finite number as argument 1, but got"),
        ("exact", (NAN,), "wrong-type", "expected a finite number as argument 1, but got"),
        ("exact", (complex(1, INF),), "wrong-type", "expected a finite number as argument 1, but got"),
        ("floor", (Gaussian(1, 2),), "wrong-type", "expected a real number as argument 1, but got"),
        ("odd?", (0.5,), "wrong-type", "expected an integer as argument 1, but got"),
        ("odd?", (INF,), "wrong-type", "expected an integer as argument 1, but got"),
        ("bitwise-and", (1, 2.0), "wrong-type", "expected an exact integer as argument 2, but got"),
        (
            "exact-integer-sqrt",
            (-1,),
            "wrong-type",
            "expected an exact integer that is not negative as argument 1, but got",
        ),
        ("expt", (0, -1), "arithmetic", "division by zero: a negative power of zero"),
        ("sqrt", ("4",), "wrong-type", "expected a number as argument 1, but got"),
        (
            "number->string",
            (1, 1),
            "wrong-type",
            "expected a radix, an exact integer from 2 to 36 as argument 2, but got",
        ),
        ("max", (1, Gaussian(0, 1)), "wrong-type", "expected a real number as argument 2, but got"),
    ],
)
def test_errors(scheme: Native, name: str, args: tuple[Any, ...], kind: str, message: str) -> None:
    error = failure(scheme, name, *args)
    assert (error.kind, error.message, error.who) == (kind, message, name)


# ---- R7RS's own examples and the corners


@of_each(
    "name, args, wanted",
    [
        ("complex?", (Gaussian(3, 4),), True),
        ("real?", (complex(-2.5, 0.0),), False),
        ("rational?", (-INF,), False),
        ("integer?", (3.0,), True),
        ("integer?", (Fraction(8, 4),), True),
        ("exact-integer?", (32.0,), False),
        ("exact-rational?", (Fraction(1, 3),), True),
        ("exact-nonnegative-integer?", (-1,), False),
        ("finite?", (complex(3.0, INF),), False),
        ("nan?", (complex(NAN, 5.0),), True),
        ("max", (3, 4), 4),
        ("max", (3.9, 4), 4.0),
        ("+", (), 0),
        ("*", (), 1),
        ("-", (3, 4, 5), -6),
        ("/", (3, 4, 5), Fraction(3, 20)),
        ("/", (3,), Fraction(1, 3)),
        ("-", (0, 0.0), 0.0),
        ("-", (0.0,), -0.0),
        ("floor/", (5, 2), Several((2, 1))),
        ("floor/", (-5, 2), Several((-3, 1))),
        ("floor/", (5, -2), Several((-3, -1))),
        ("floor/", (-5, -2), Several((2, -1))),
        ("truncate/", (-5.0, 2), Several((-2.0, -1.0))),
        ("gcd", (32, -36), 4),
        ("gcd", (), 0),
        ("lcm", (32, -36), 288),
        ("lcm", (32.0, -36), 288.0),
        ("lcm", (), 1),
        ("numerator", (Fraction(6, 4),), 3),
        ("denominator", (0,), 1),
        ("denominator", (0.5,), 2.0),
        ("floor", (-4.3,), -5.0),
        ("round", (Fraction(7, 2),), 4),
        ("round", (-2.5,), -2.0),
        ("round", (-0.4,), -0.0),
        ("rationalize", (Fraction(3, 10), Fraction(1, 10)), Fraction(1, 3)),
        ("rationalize", (0.3, Fraction(1, 10)), 0.3333333333333333),
        ("rationalize", (3, INF), 0.0),
        ("rationalize", (INF, 3), INF),
        ("rationalize", (INF, INF), NAN),
        ("exact-integer-sqrt", (17,), Several((4, 1))),
        ("make-rectangular", (1.5, 0), 1.5),
        ("make-rectangular", (1, 2.0), complex(1.0, 2.0)),
        ("make-rectangular", (0, 2.0), complex(0.0, 2.0)),
        ("+", (1.0, Gaussian(0, 1)), complex(1.0, 1.0)),
        ("*", (2, complex(1.5, 2.5)), complex(3.0, 5.0)),
        ("/", (1, complex(1.0, 2.0)), complex(0.2, -0.4)),
        ("-", (complex(1.0, 2.0), complex(1.0, 2.0)), complex(0.0, 0.0)),
        ("-", (Gaussian(0, 1), Gaussian(0, 1)), 0),
        ("exact", (complex(1.5, 0.0),), Fraction(3, 2)),
        ("1+", (41,), 42),
        ("-1+", (-(1 << 63),), -(1 << 63) - 1),
        ("+", ((1 << 63) - 1, 1), 1 << 63),
        ("*", (-(1 << 63), -1), 1 << 63),
        ("abs", (-(1 << 63),), 1 << 63),
        ("-", (-(1 << 63),), 1 << 63),
        ("magnitude", (-5,), 5),
        ("bit-count", (-1,), 0),
        ("integer-length", (-8,), 3),
        ("integer-length", (8,), 4),
    ],
)
def test_examples(scheme: Native, name: str, args: tuple[Any, ...], wanted: Any) -> None:
    found = scheme.call(name, *args)
    if isinstance(wanted, Several):
        assert isinstance(found, Several)
        assert all(map(same, found.items, wanted.items))
    else:
        assert same(found, wanted), found


def test_scratch_survives_collections(scheme: Native) -> None:
    """Products, quotients and texts of numbers on a heap that collects at all times."""
    machine = Native(32 << 20)
    machine.pause(-1)
    try:
        a, b = 7**3000, 3**5001
        x, y = machine.value(a), machine.value(b)
        roots = [machine.library.esk_root(machine.context) for _ in range(2)]
        for root, value in zip(roots, (x, y), strict=True):
            type(x).from_address(root).tag, type(x).from_address(root).bits = value.tag, value.bits
        for _ in range(amount(4000, 300)):
            assert machine.raw("=", machine.raw("*", x, y), machine.raw("*", y, x)).bits
        assert machine.python(machine.raw("number->string", x)) == str(a)
        assert machine.python(machine.raw("*", x, y)) == a * b
    finally:
        machine.close()


@pytest.mark.parametrize(("name", "args"), [("expt", (7, 1 << 26)), ("gcd", (7**400_000 + 1, 3**700_000))])
def test_long_work_can_be_interrupted(scheme: Native, name: str, args: tuple[int, ...]) -> None:
    values = [scheme.value(arg) for arg in args]
    scheme.library.esk_interrupt.argtypes = [ctypes.c_void_p]
    timer = threading.Timer(0.2, scheme.library.esk_interrupt, [scheme.context])
    timer.start()
    with pytest.raises(SchemeError) as caught:
        scheme.raw(name, *values)
    assert caught.value.kind == "interrupt"
    timer.join()
