"""Elementwise functions where samples do not reach: special values, accuracy, corners, errors.

What has code of its own is computed on the CPU here, since its rules of reference are SciPy's and NumPy's own.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from calls import gradient, value
from op_harness import as_buffer
from scipy import special

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.backends import open_backend
from eshkol.errors import TensorError
from eshkol.ops import TABLE
from eshkol.ops.special import _STIRLING
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.run.execute import realize

pytestmark = pytest.mark.optimized
inf, nan = np.inf, np.nan
RNG = np.random.default_rng(1)


@pytest.fixture(scope="module")
def machine():
    return open_backend("cpu")


def around(*centres: float) -> np.ndarray:
    """Numbers about some, and on both sides of them."""
    steps = np.array([0, 1e-9, 1e-4, 0.03, 0.4])
    return np.concatenate([c + s * steps for c in centres for s in (1, -1)])


def gammaln(x: np.ndarray) -> np.ndarray:
    """log Γ(x), by its series near the zeros at 1 and 2, where SciPy's is only absolutely accurate."""
    k = np.arange(2, 40)

    def near_one(d: np.ndarray) -> np.ndarray:
        return -np.euler_gamma * d + np.sum(special.zeta(k) / k * (-d[:, None]) ** k, axis=1)

    with np.errstate(all="ignore"):
        found = np.where(np.abs(x - 1) < 0.1, near_one(x - 1), special.gammaln(x))
        return np.where(np.abs(x - 2) < 0.1, near_one(x - 2) + np.log1p(x - 2), found)


POSITIVE = np.concatenate([around(0.6, 1, 1.4616321449683623, 2, 3, 8), RNG.uniform(0, 40, 40), [1e-300, 1e5, 1e300]])
NEGATIVE = -RNG.uniform(0.1, 6, 40)
ACCURACY = {
    "lgamma": (gammaln, POSITIVE, 1e-13),
    "digamma": (special.digamma, np.concatenate([POSITIVE, NEGATIVE]), 1e-12),
    "erfc": (special.erfc, np.concatenate([RNG.uniform(-6, 26, 60), around(0, 3)]), 1e-13),
    "erfinv": (special.erfinv, np.concatenate([RNG.uniform(-1, 1, 60), [1 - 1e-12, 1e-20, 0.85, -0.85]]), 2e-15),
    "sinh": (np.sinh, np.concatenate([RNG.uniform(-700, 700, 30), around(0, 20, 709.5)]), 2e-13),
    "cosh": (np.cosh, np.concatenate([RNG.uniform(-700, 700, 30), around(0, 20, 709.5)]), 2e-13),
    "asinh": (np.arcsinh, np.concatenate([around(0, 1), [-1e-12, 1e9, 1e100, -1e300]]), 4e-16),
    "acosh": (np.arccosh, np.array([1, 1 + 1e-12, 1.5, 3, 1e9, 1e100, 1e300]), 4e-16),
    "atanh": (np.arctanh, np.array([0, 1e-12, -1e-3, 0.5, -0.9, 0.999999]), 4e-16),
    "asin": (np.arcsin, np.array([0, 1e-300, -1e-9, 0.5, -0.9, 1 - 1e-12, 1, -1]), 4e-16),
    "acos": (np.arccos, np.array([0, 1e-9, 0.5, -0.9, 1 - 1e-12, 1, -1]), 4e-16),
}


@pytest.mark.parametrize("name", ACCURACY)
def test_scalar_code_is_accurate(name, machine):
    oracle, points, limit = ACCURACY[name]
    (found,) = realize([TABLE[name](as_buffer(points))], machine)
    np.testing.assert_allclose(found, oracle(points), rtol=limit, atol=0)


def test_the_series_of_stirling_has_bernoullis_numbers():
    """Its last terms are too small to be seen in a result."""
    for k, found in enumerate(_STIRLING, start=1):
        numerator, denominator = mpmath.bernfrac(2 * k)
        assert found == numerator / (denominator * 2 * k * (2 * k - 1))


def test_erfc_of_float32_has_a_way_of_its_own(machine):
    points = np.concatenate([RNG.uniform(-4, 9, 200), around(0, 1), [1e-9, -1e-9]]).astype(np.float32)
    (found,) = realize([TABLE["erfc"](as_buffer(points))], machine)
    np.testing.assert_allclose(found, special.erfc(points.astype(np.float64)), rtol=8e-7)
    (found,) = realize([TABLE["erfc"](as_buffer(np.array([0, -0.0, 10.2, 100, inf, -inf, nan], np.float32)))], machine)
    np.testing.assert_array_equal(found, np.array([1, 1, 0, 0, 0, 2, nan], np.float32))


def ulps(found: np.ndarray, wanted: np.ndarray, dtype: type) -> np.ndarray:
    """How many units in the last place of what is wanted, in more digits than the dtype has, values are away."""
    unit = np.spacing(np.abs(wanted).astype(dtype)).astype(np.longdouble)
    return np.asarray(np.abs(found.astype(np.longdouble) - wanted) / unit, np.float64)


@pytest.mark.parametrize(("low", "high", "limit"), [(-0.5, 0.5, 4), (-3, 4, 6), (-13, -3, 8)])
def test_gelu_and_the_normal_distribution_of_float32_in_units_of_the_last_place(low, high, limit, machine):
    points = RNG.uniform(low, high, 4000).astype(np.float32)
    wide = points.astype(np.float64)
    for name, wanted in {
        "ndtr": special.ndtr(wide),
        "gelu": wide * special.ndtr(wide),
        "normal_density": np.exp(-0.5 * wide * wide) / np.sqrt(2 * np.pi),
    }.items():
        (found,) = realize([TABLE[name](as_buffer(points))], machine)
        assert ulps(found, wanted.astype(np.longdouble), np.float32).max() <= limit, name


def test_the_normal_distribution_of_float64_in_units_of_the_last_place(machine):
    points = np.concatenate([RNG.uniform(-37, 9, 60), RNG.uniform(-1, 1, 20), [1e-300, -1e-9]])
    with mpmath.workdps(40):
        for name, limit in {"ndtr": 7, "normal_density": 3}.items():
            oracle = mpmath.ncdf if name == "ndtr" else mpmath.npdf
            wanted = np.array([np.longdouble(mpmath.nstr(oracle(mpmath.mpf(x)), 25)) for x in points])
            (found,) = realize([TABLE[name](as_buffer(points))], machine)
            assert ulps(found, wanted, np.float64).max() <= limit, name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_normal_distribution_ends_in_zeros(dtype, machine):
    """Subnormal results are rounded once, and what comes after them is 0."""
    points = np.array([0, -0.0, inf, -inf, nan, 40, -40, 1e30, -1e30], dtype)
    (found,) = realize([TABLE["ndtr"](as_buffer(points))], machine)
    np.testing.assert_array_equal(found, np.array([0.5, 0.5, 1, 0, nan, 1, 0, 1, 0], dtype))
    (found,) = realize([TABLE["normal_density"](as_buffer(points))], machine)
    middle = dtype(0.3989422804014327)
    np.testing.assert_array_equal(found, np.array([middle, middle, 0, 0, nan, 0, 0, 0, 0], dtype))
    odd = np.array([0x7FC00001, 0xFFFFFFFF], np.uint32).view(np.float32).astype(dtype)  # NaNs with bits of their own
    for name in ("ndtr", "normal_density"):
        assert np.isnan(realize([TABLE[name](as_buffer(odd))], machine)[0]).all()
    first, last = (-13.1, -14.2) if dtype is np.float32 else (-37.6, -38.4)
    points = np.linspace(first, last, 50, dtype=dtype)
    least = float(np.nextafter(dtype(0), dtype(1)))
    with mpmath.workdps(40):
        wanted = [float(mpmath.nint(mpmath.ncdf(float(x)) / least)) for x in points]
    (found,) = realize([TABLE["ndtr"](as_buffer(points))], machine)
    away = np.abs(found.astype(np.float64) / least - wanted)
    assert (away <= 1 + np.array(wanted) * 4 * np.finfo(dtype).eps).all()


def test_gelu_of_16_bits_is_rounded_once(machine):
    """Its value and its slope are those of float32, rounded."""
    narrow = RNG.uniform(-5, 5, 500).astype(ek.bfloat16.numpy)
    wide = narrow.astype(np.float32)
    found, wanted = realize([TABLE["gelu"](as_buffer(narrow)), TABLE["gelu"](as_buffer(wide))], machine)
    np.testing.assert_array_equal(found, wanted.astype(narrow.dtype))
    np.testing.assert_array_equal(gradient("gelu", narrow), gradient("gelu", wide).astype(narrow.dtype))


def test_normal_quantiles_of_float32_have_a_way_of_their_own(machine):
    """Of one quotient, as good as the type is, down to the least number."""
    small = (10.0 ** RNG.uniform(-37, -1, 300)).astype(np.float32)
    for name, points in {
        "ndtri": np.concatenate([RNG.uniform(0, 1, 500).astype(np.float32), small, [np.float32(0.075)]]),
        "erfinv": np.concatenate([RNG.uniform(-1, 1, 500).astype(np.float32), small]),
    }.items():
        node = TABLE[name](as_buffer(points))
        code = lowered(node, CORES).program.instructions
        assert [i.op.name for i in code].count("DIV") == 1
        (found,) = realize([node], machine)
        wanted = getattr(special, name)(points.astype(np.float64))
        assert ulps(found, wanted.astype(np.longdouble), np.float32).max() <= 7, name
    ends = np.array([0, 1, 0.5, -1, 2, nan, 1e-45], np.float32)
    (found,) = realize([TABLE["ndtri"](as_buffer(ends))], machine)
    np.testing.assert_allclose(found, [-inf, inf, 0, nan, nan, nan, special.ndtri(float(ends[-1]))], rtol=1e-6)
    (found,) = realize([TABLE["erfinv"](as_buffer(np.array([1, -1, 0, 1.5, nan], np.float32)))], machine)
    np.testing.assert_array_equal(found, np.array([inf, -inf, 0, nan, nan], np.float32))


def test_polygamma_is_accurate(machine):
    points = np.concatenate([RNG.uniform(0.05, 30, 30), NEGATIVE])
    for n in (1, 2, 6):
        (found,) = realize([TABLE["polygamma"](n, as_buffer(points))], machine)
        np.testing.assert_allclose(found, special.polygamma(n, points), rtol=2e-11)
    with pytest.raises(TensorError, match="order of polygamma"):
        TABLE["polygamma"](-1, as_buffer(points))


def test_special_values_of_scalar_code(machine):
    def at(name: str, *numbers: float) -> list[float]:
        return realize([TABLE[name](as_buffer(np.array(numbers)))], machine)[0].tolist()

    assert at("lgamma", 0, -3, inf, -inf, 1, 2) == [inf, inf, inf, inf, 0, 0]
    assert at("digamma", 0, inf) == [-inf, inf]
    assert np.isnan(at("digamma", -1, nan)).all()
    assert at("erfc", inf, -inf, 0) == [0, 2, 1]
    assert np.isnan(at("erfc", nan)).all()
    assert at("erfinv", 1, -1, 0) == [inf, -inf, 0]
    assert np.isnan(at("erfinv", 1.5, -2, nan)).all()
    assert at("sinh", inf, -inf, 0) == [inf, -inf, 0]
    assert at("cosh", inf, -inf, 0) == [inf, inf, 1]
    assert np.isnan(at("acosh", 0.5)).all()


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "xlogy", "floor_divide"])
def test_special_values_of_pairs(name, machine):
    numbers = np.array([0.0, 1.0, -1.0, 7.5, -7.5, 0.1, 1e300, -1e300, inf, -inf, nan])
    x, y = (z.copy() for z in np.meshgrid(numbers, numbers))
    oracle = {"xlogy": special.xlogy}.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        wanted = oracle(x, y)
    (found,) = realize([TABLE[name](as_buffer(x), as_buffer(y))], machine)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_floor_division_of_integers(machine):
    x, y = (z.ravel().astype(np.int32) for z in np.meshgrid(np.arange(-7, 8), [-3, -2, -1, 1, 2, 3]))
    (found,) = realize([TABLE["floor_divide"](as_buffer(x), as_buffer(y))], machine)
    np.testing.assert_array_equal(found, x // y)
    assert value("floor_divide", np.array([1.0]), np.array([0.1])) == 9


def test_clamp_passes_its_derivative_at_the_bounds():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, nan])
    np.testing.assert_array_equal(value("clamp", x, -1.0, 1.0), [-1, -1, 0, 1, 1, nan])
    np.testing.assert_array_equal(gradient("clamp", x, -1.0, 1.0), [0, 1, 1, 1, 0, 1])
    to_x, to_min, to_max = gradient("clamp", np.array([0.0, 2.0, 4.0]), np.full(3, 1.0), np.full(3, 3.0))
    np.testing.assert_array_equal([to_x, to_min, to_max], [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    with pytest.raises(TensorError, match="min, max or both"):
        value("clamp", x)


def test_corners_have_the_derivatives_that_are_said():
    np.testing.assert_array_equal(gradient("hypot", np.zeros(1), np.zeros(1)), [[0], [0]])
    np.testing.assert_array_equal(gradient("xlogy", np.zeros(2), np.array([0.0, 2.0])), [[0, np.log(2)], [nan, 0]])
    np.testing.assert_array_equal(gradient("logaddexp", np.array([-inf]), np.array([-inf])), [[0], [0]])
    np.testing.assert_allclose(gradient("asinh", np.zeros(1)), [1])
    np.testing.assert_allclose(gradient("asinh", np.array([1e30], np.float32)), [1e-30])


def test_signs_and_steps():
    np.testing.assert_array_equal(
        np.signbit(value("copysign", np.array([1.0, -1.0, 0.0, 2.0]), np.array([-0.0, 0.0, -3.0, inf]))),
        [True, False, True, False],
    )
    np.testing.assert_array_equal(value("copysign", np.array([2.0]), -0.0), [-2.0])
    x = np.array([-inf, -1.0, 0.0, 2.0, nan])
    np.testing.assert_array_equal(value("heaviside", x, np.array(0.5)), [0, 0, 0.5, 1, nan])
    np.testing.assert_array_equal(gradient("heaviside", x[:4], np.full(4, 0.5))[1], [0, 0, 1, 0])


def test_lerp_is_exact_at_its_ends():
    x, y = np.array([0.1, 1e8], np.float32), np.array([0.7, 1.0], np.float32)
    np.testing.assert_array_equal(value("lerp", x, y, 0.0), x)
    np.testing.assert_array_equal(value("lerp", x, y, 1.0), y)
    np.testing.assert_array_equal(value("lerp", x, y, np.array([1.0, 0.0], np.float32)), [y[0], x[1]])


def test_integers_are_finite():
    x = np.array([0, 3], np.int32)
    assert value("isfinite", x).all()
    assert not value("isinf", x).any()
    assert value("isclose", np.array([2**40]), np.array([2**40 + 1])).all()
    assert value("allclose", np.array([1.0, 2.0]), 1.0, atol=1.0)


@pytest.mark.parametrize("device", ["cpu", "blocks"])
def test_powers_of_integers_are_exact_on_machines(device):
    """As NumPy has them, wrapped around where they are too large; of numbers that are known as products."""
    rng = np.random.default_rng(0)
    for dtype in ("int8", "uint8", "int16", "uint32", "int64", "uint64"):
        x = rng.integers(0 if dtype[0] == "u" else -100, 100, 40).astype(dtype)
        y = rng.integers(0, 120, 40).astype(dtype)
        with ek.device(device):
            np.testing.assert_array_equal(ek.jit(ek.power)(ek.tensor(x), ek.tensor(y)).numpy(), np.power(x, y))
            for n in (0, 1, 3, 4, 7, 10, 64, 65):
                np.testing.assert_array_equal((ek.tensor(x) ** n).numpy(), np.power(x, np.asarray(n, dtype)))
    with ek.device(device), pytest.raises(TensorError, match=r"(?s)negative power is none.*cast to a float"):
        ek.jit(lambda x, y: ek.power(x, y) + 1)(ek.tensor([2, 3]), ek.tensor([1, -2])).numpy()
