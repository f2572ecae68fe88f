"""Roots, powers, logarithms and circular functions of the runtime, against mpmath with more digits."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from native import Gaussian, Native, exacts, fractions, plain, same
from scheme_data import SchemeError

from effort import examples

INF, NAN, PI = math.inf, math.nan, math.pi


@pytest.fixture(scope="module")
def scheme() -> Iterator[Native]:
    machine = Native()
    yield machine
    machine.close()


def close(found: Any, wanted: Any, ulps: float = 4) -> bool:
    """Within some units in the last place of the larger part."""
    if isinstance(found, (int, Fraction)):
        found = float(found)
    found, wanted = complex(found), complex(wanted)
    return abs(found - wanted) <= ulps * 2.0**-52 * max(abs(wanted), 1e-300)


def high(function: Callable[..., Any], *args: Any) -> complex:
    with mpmath.workdps(60):
        return complex(function(*args))


def precise(x: Any) -> Any:
    with mpmath.workdps(60):
        if isinstance(x, Fraction):
            return mpmath.mpf(x.numerator) / x.denominator
        return mpmath.mpmathify(x)


reals = st.one_of(
    st.floats(-700, 700), st.floats(1e-12, 1e12), st.integers(-100, 100), st.fractions(min_value=-20, max_value=20)
)
half = st.floats(0.01, 20) | st.floats(-20, -0.01)
complexes = st.builds(complex, half, half)


@pytest.mark.parametrize("name", ["exp", "sin", "cos", "tan", "atan"])
@examples(500, 40)
@given(reals)
def test_real_functions(scheme: Native, name: str, x: Any) -> None:
    assume(name != "exp" or x < 709)
    assert close(scheme.call(name, plain(x)), high(getattr(mpmath, name), float(x)))


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sqrt"])
@examples(500, 40)
@given(complexes)
def test_complex_functions(scheme: Native, name: str, z: complex) -> None:
    assert close(scheme.call(name, z), high(getattr(mpmath, name), z), 16)


@pytest.mark.parametrize("name", ["asin", "acos"])
@given(st.floats(-1, 1))
def test_inverses_inside_the_unit(scheme: Native, name: str, x: float) -> None:
    assert close(scheme.call(name, x), high(getattr(mpmath, name), x))


@examples(300, 60)
@given(st.floats(1.0001, 1e6))
def test_cuts_of_the_inverse_sine(scheme: Native, x: float) -> None:
    """R7RS: asin z = -i log(i z + sqrt(1 - z^2)), acos z = pi/2 - asin z."""

    def arcsine(z: float) -> Any:
        w = mpmath.mpf(z)
        return -1j * mpmath.log(1j * w + 1j * mpmath.sqrt(w * w - 1))

    for z in (x, -x):
        with mpmath.workdps(60):
            wanted = arcsine(z)
            assert close(scheme.call("asin", z), wanted, 16)
            assert close(scheme.call("acos", z), mpmath.pi / 2 - wanted, 16)


@given(st.integers(2, 50), st.booleans())
def test_cut_of_the_arc_tangent(scheme: Native, y: int, negative: bool) -> None:
    y = -y if negative else y
    with mpmath.workdps(60):
        w = mpmath.mpc(0, y)
        wanted = (mpmath.log(1 + 1j * w) - mpmath.log(1 - 1j * w)) / 2j
    assert close(scheme.call("atan", Gaussian(0, y)), wanted, 8)


@examples(1000, 100)
@given(exacts)
def test_logarithms_of_exact_numbers(scheme: Native, a: Any) -> None:
    assume(a not in (0, 1))
    with mpmath.workdps(60):
        wanted = mpmath.log(precise(Fraction(a)) if a > 0 else -precise(Fraction(a)))
        wanted = complex(wanted, 0 if a > 0 else PI)
    found = scheme.call("log", plain(a))
    assert close(found, wanted) or abs(complex(found) - wanted) < 1e-15  # near 1 what the argument rounds to counts


@pytest.mark.parametrize("base", [2, 10, 3, 0.5])
def test_logarithms_to_a_base(scheme: Native, base: float) -> None:
    for x in (2, 8, 100, 1000, 0.001, 10**30, 1 << 100):
        assert close(scheme.call("log", x, base), mpmath.log(x, base))
    for k in range(1, 60):
        assert scheme.call("log", 1 << k, 2) == float(k)
        assert k > 22 or scheme.call("log", 10**k, 10) == float(k)


@examples(1500, 100)
@given(st.one_of(exacts, fractions))
def test_roots_of_exact_numbers(scheme: Native, a: Any) -> None:
    a = abs(Fraction(a))
    assert scheme.call("sqrt", plain(a * a)) == plain(a)
    found = scheme.call("sqrt", plain(a))
    if isinstance(found, float):
        assert math.isfinite(found) or a >= Fraction(2) ** 2047
        if (
            math.isfinite(found) and found > 1e-300
        ):  # rounded correctly: the root is between the middles to the neighbours
            low = (Fraction(found) + Fraction(math.nextafter(found, 0))) / 2
            up = math.nextafter(found, INF)
            assert low * low <= a
            assert math.isinf(up) or a <= ((Fraction(found) + Fraction(up)) / 2) ** 2
    else:
        assert Fraction(found) ** 2 == a
    negative = scheme.call("sqrt", plain(-a * a))
    assert negative == (Gaussian(0, plain(a)) if a else 0)


@examples(1000, 100)
@given(st.floats(0.001, 1000), st.floats(-50, 50))
def test_real_powers(scheme: Native, x: float, y: float) -> None:
    assert close(scheme.call("expt", x, y), high(mpmath.power, x, y))
    assert same(scheme.call("expt", x, int(y)), 1 if int(y) == 0 else math.pow(x, int(y)))


def test_powers_of_what_no_double_holds(scheme: Native) -> None:
    for base in (10**400, Fraction(1, 10**400)):
        assert close(scheme.call("expt", base, 0.5), mpmath.sqrt(precise(base)), 2000)
        assert close(scheme.call("expt", base, Fraction(1, 3)), mpmath.cbrt(precise(base)), 2000)


@examples(300, 60)
@given(complexes, complexes)
def test_complex_powers(scheme: Native, z: complex, w: complex) -> None:
    w = w / 4
    wanted = high(mpmath.power, z, w)
    assume(1e-250 < abs(wanted) < 1e250)
    assert close(scheme.call("expt", z, w), wanted, 400)
    assert close(scheme.call("expt", z, 5), high(mpmath.power, z, 5), 40)


@given(st.floats(0, 1e100), st.floats(-3, 3))
def test_polar_form(scheme: Native, r: float, t: float) -> None:
    assert close(scheme.call("make-polar", r, t), cmath.rect(r, t))
    z = complex(r, t)
    assert close(scheme.call("magnitude", z), abs(z))
    assert same(scheme.call("angle", z), math.atan2(t, r))


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_arc_tangent_of_two(scheme: Native, y: float, x: float) -> None:
    assert same(scheme.call("atan", y, x), math.atan2(y, x))


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("exp", (0,), 1),
        ("exp", (0.0,), 1.0),
        ("exp", (-INF,), 0.0),
        ("exp", (10**400,), INF),
        ("log", (1,), 0),
        ("log", (1.0,), 0.0),
        ("log", (0.0,), -INF),
        ("log", (-0.0,), -INF),
        ("log", (-1,), complex(0.0, PI)),
        ("log", (-1.0,), complex(0.0, PI)),
        ("log", (INF,), INF),
        ("log", (NAN,), NAN),
        ("log", (complex(-1.0, -0.0),), complex(0.0, -PI)),
        ("sin", (0,), 0),
        ("cos", (0,), 1),
        ("tan", (0,), 0),
        ("asin", (0,), 0),
        ("acos", (1,), 0),
        ("acos", (1.0,), 0.0),
        ("atan", (0,), 0),
        ("atan", (1, 0), PI / 2),
        ("atan", (0, 1), 0),
        ("atan", (0, -1), PI),
        ("atan", (0.0, 1), 0.0),
        ("atan", (-0.0, -1.0), -PI),
        ("atan", (10**400, 10**400), PI / 4),
        ("atan", (1, -1), 3 * PI / 4),
        ("atan", (INF,), PI / 2),
        ("sqrt", (16,), 4),
        ("sqrt", (16.0,), 4.0),
        ("sqrt", (Fraction(1, 4),), Fraction(1, 2)),
        ("sqrt", (-4,), Gaussian(0, 2)),
        ("sqrt", (-2,), complex(0.0, math.sqrt(2))),
        ("sqrt", (-4.0,), complex(0.0, 2.0)),
        ("sqrt", (Gaussian(-3, 4),), Gaussian(1, 2)),
        ("sqrt", (-0.0,), -0.0),
        ("sqrt", (NAN,), NAN),
        ("sqrt", (INF,), INF),
        ("sqrt", (10**400,), 10**200),
        ("sqrt", (10**400 + 1,), 1e200),
        ("sqrt", (complex(-1.0, -0.0),), complex(0.0, -1.0)),
        ("sqrt", (Gaussian(0, -2),), Gaussian(1, -1)),
        ("expt", (0, 0), 1),
        ("expt", (0.0, 0), 1),
        ("expt", (0, 0.5), 0),
        ("expt", (0.0, 2.5), 0.0),
        ("expt", (NAN, 0), 1),
        ("expt", (4, Fraction(1, 2)), 2),
        ("expt", (4, Fraction(-3, 2)), Fraction(1, 8)),
        ("expt", (8, Fraction(1, 3)), 2.0),
        ("expt", (2, 0.5), math.sqrt(2)),
        ("expt", (2.0, 3), 8.0),
        ("expt", (-1, Fraction(1, 2)), Gaussian(0, 1)),
        ("expt", (Gaussian(1, 1), 10), Gaussian(0, 32)),
        ("expt", (complex(1.0, 1.0), 10), complex(0.0, 32.0)),
        ("expt", (2.0, 10**400), INF),
        ("expt", (-1.0, 10**400 + 1), -1.0),
        ("expt", (-1.0, 10**400), 1.0),
        ("expt", (0.0, -1), INF),
        ("expt", (-0.0, 3), -0.0),
        ("expt", (-0.0, -3), -INF),
        ("expt", (1, 0.5), 1.0),
        ("expt", (Gaussian(0, 1), -1), Gaussian(0, -1)),
        ("expt", (0, Gaussian(1, 1)), 0),
        ("expt", (-2.0, -3.0), -0.125),
        ("expt", (10.0, -5), 1e-05),
        ("make-polar", (1, 0), 1),
        ("make-polar", (0, 1.0), 0),
        ("magnitude", (Gaussian(3, 4),), 5),
        ("magnitude", (complex(3, 4),), 5.0),
        ("magnitude", (complex(1e300, 1e300),), math.hypot(1e300, 1e300)),
        ("angle", (-1,), PI),
        ("angle", (1,), 0),
        ("angle", (-1.0,), PI),
        ("angle", (Gaussian(0, 1),), PI / 2),
    ],
)
def test_corners(scheme: Native, name: str, args: tuple[Any, ...], wanted: Any) -> None:
    found = scheme.call(name, *args)
    assert same(found, wanted), found


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("log", (0,)),
        ("log", (5, 0)),
        ("log", (5, 1)),
        ("atan", (0, 0)),
        ("atan", (Gaussian(0, 1),)),
        ("angle", (0,)),
        ("expt", (0, -2.5)),
        ("expt", (0, Gaussian(0, 1))),
        ("expt", (0.0, complex(0.0, 1.0))),
    ],
)
def test_what_is_undefined(scheme: Native, name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(SchemeError) as caught:
        scheme.call(name, *args)
    assert (caught.value.kind, caught.value.who) == ("arithmetic", name)


@pytest.mark.parametrize(
    "name", ["sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "magnitude", "angle"]
)
def test_what_is_no_number(scheme: Native, name: str) -> None:
    with pytest.raises(SchemeError) as caught:
        scheme.call(name, "1")
    assert (caught.value.kind, caught.value.who) == ("wrong-type", name)
