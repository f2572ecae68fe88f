"""The expansions of the elementary functions against exact values: accuracy, special cases, shape of the code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import mpmath
import numpy as np
import oracle
import pytest

from batches import of_each
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.expand import expand
from eshkol.atlas.operands import Predicate, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.reference import ReferenceBackend

Array = np.ndarray
INF, NAN, PI = math.inf, math.nan, math.pi
LIMIT = 2.0  # units in the last place
ANGLES = ("SIN", "COS", "TAN")
UNARY = ("EXP", "EXPM1", "LOG", "LOG1P", *ANGLES, "TANH", "SIGMOID", "ERF")
BINARY = ("POW", "ATAN2")
HALVES, WIDE = (Type.F16, Type.BF16), (Type.F32, Type.F64)


# --- running --------------------------------------------------------------------------------------


@cache
def expanded_program(name: str, ty: Type) -> Program:
    """The instruction on x0 (and x1) with its result in the register of x0, as base instructions."""
    b = ProgramBuilder()
    registers = [b.reg() for _ in range(2 if name in BINARY else 1)]
    for k, register in enumerate(registers):
        b.ldg(ty, register, b.buffer(f"x{k}", ty).at(Register(255)))
    b.emit(ROWS[name](registers[0], *registers))
    b.stg(ty, b.buffer("out", ty).at(Register(255)), registers[0])
    return expand(b.build())


def compute(name: str, ty: Type, *columns: Array) -> Array:
    count = len(columns[0])
    padding = np.ones(-count % 1024, ty.dtype)
    backend = ReferenceBackend()
    whole = [np.concatenate([column.astype(ty.dtype), padding]) for column in columns]
    params: dict[str, Any] = {f"x{k}": backend.array(column, ty) for k, column in enumerate(whole)}
    params["out"] = backend.allocate_typed(ty, count + len(padding))
    backend.execute(expanded_program(name, ty), LaunchConfig.linear(count + len(padding), block=1024), params)
    return np.asarray(params["out"].read())[:count]


# --- exact values ---------------------------------------------------------------------------------


def _sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


DOUBLE: dict[str, Callable[..., Array]] = {
    "EXP": np.exp, "EXPM1": np.expm1, "LOG": np.log, "LOG1P": np.log1p, "SIN": np.sin, "COS": np.cos, "TAN": np.tan,
    "TANH": np.tanh, "SIGMOID": _sigmoid, "ERF": np.vectorize(math.erf, otypes=[np.float64]), "POW": np.power,
    "ATAN2": np.arctan2,
}  # fmt: skip


def in_double(name: str, *columns: Array) -> Array:
    """Values for types narrower than F64, with an error far below theirs."""
    with np.errstate(all="ignore"):
        return DOUBLE[name](*(column.astype(np.float64) for column in columns))


def worst(ty: Type, found: Array, exact: Array) -> tuple[float, int]:
    """The greatest distance from the exact values (F64) in last places of a narrower type, and where it is."""
    with np.errstate(all="ignore"):
        wanted = exact.astype(ty.dtype).astype(np.float64)
        found = found.astype(np.float64)
        low, high = {Type.F16: (-14, 15)}.get(ty, (-126, 127))
        exponent = np.clip(np.frexp(wanted)[1] - 1, low, high)
        error = np.abs(found - exact) / np.ldexp(1.0, exponent - ty.mantissa_bits)
    # Where either is not finite, zero or both NaN, only the same value will do.
    special = ~np.isfinite(wanted) | ~np.isfinite(found)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    error = np.where(special, np.where(same, 0.0, INF), error)
    error[(wanted == 0) & (found == 0) & (np.signbit(wanted) != np.signbit(found))] = INF
    return float(error.max()), int(error.argmax())


def check_narrow(name: str, ty: Type, *columns: Array) -> None:
    columns = tuple(column.astype(ty.dtype) for column in columns)
    found, exact = compute(name, ty, *columns), in_double(name, *columns)
    error, place = worst(ty, found, exact)
    assert error <= LIMIT, (error, [c[place] for c in columns], found[place], exact[place])


MP: dict[str, Callable[..., Any]] = {
    "EXP": mpmath.exp, "EXPM1": mpmath.expm1, "LOG": mpmath.log, "LOG1P": mpmath.log1p, "SIN": mpmath.sin,
    "COS": mpmath.cos, "TAN": mpmath.tan, "TANH": mpmath.tanh, "SIGMOID": lambda x: 1 / (1 + mpmath.exp(-x)),
    "ERF": mpmath.erf, "POW": mpmath.power, "ATAN2": mpmath.atan2,
}  # fmt: skip


def places_off(found: float, exact: Any) -> float:
    """The distance of a finite F64 from an mpmath value, in last places of the value."""
    exponent = max(int(mpmath.floor(mpmath.log(abs(exact), 2))), -1022) if exact else -1022
    return float(abs(mpmath.mpf(found) - exact) / mpmath.mpf(2) ** (exponent - 52))


def check_double(name: str, *columns: Array, precision: int = 130) -> None:
    """Finite F64 operands whose result is finite, against mpmath."""
    found = compute(name, Type.F64, *columns)
    with mpmath.workprec(precision):
        for *operands, result in zip(*columns, found, strict=True):
            exact = MP[name](*(mpmath.mpf(float(x)) for x in operands))
            assert math.isfinite(result), (operands, result, exact)
            assert places_off(float(result), exact) <= LIMIT, (operands, result, exact)


# --- operands -------------------------------------------------------------------------------------

# Where the code changes from one piece to another, or where a result overflows, underflows or stops changing.
EDGES = (
    0.0, 2.0**-149, 2.0**-126, 2.0**-28, 2.0**-26, 2.0**-23, 0.34657359, 0.5, 0.625, 0.70710678, 0.78539816, 0.86, 1.0,
    1.03972077, 1.41421356, 1.57079633, 2.35619449, 3.14159265, 3.92, 3.9375, 4.0, 6.28318531, 9.01, 10.0, 16.635532,
    22.0, 87.336544, 87.683121, 88.0296, 88.722839, 89.0, 95.0, 103.27893, 103.97208, 104.0, 110.0, 2.0**20, 2.0**23,
    2.0**24, 3.4028235e38,
)  # fmt: skip
EDGES_F64 = (
    *EDGES, 2.0**-1074, 2.0**-1022, 2.0**-57, 2.0**-55, 2.0**-52, 5.93, 6.0, 19.06, 36.7368, 37.43, 708.396418,
    708.743, 709.0895, 709.782712893384, 709.9, 720.0, 744.44, 745.133219, 746.0, 760.0, 2.0**52, 2.0**53, 1.797e308,
)  # fmt: skip


def around(edges: tuple[float, ...], dtype: Any, steps: int = 40) -> Array:
    """The floats next to each edge, of both signs."""
    integer = np.dtype(f"i{np.dtype(dtype).itemsize}")
    near = np.array(edges, dtype).view(integer)[:, None] + np.arange(-steps, steps + 1, dtype=integer)
    values = np.maximum(near, 0).ravel().view(dtype)
    return np.concatenate([values, -values])


def sweep_f32(count: int, seed: int) -> Array:
    """Every exponent of both signs alike, the range around 1 more densely, and the edges."""
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    middle = rng.standard_normal(count) * np.array([0.5, 3.0, 60.0])[rng.integers(0, 3, count)]
    return np.concatenate([patterns, middle.astype(np.float32), around(EDGES, np.float32)])


def sweep_f64(count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    exponents = rng.integers(-1074, 1024, count // 4)
    patterns = np.ldexp(rng.uniform(-2, 2, count // 4), exponents)
    middle = rng.standard_normal(count) * np.array([0.2, 1.0, 6.0, 300.0])[rng.integers(0, 4, count)]
    values = np.concatenate([patterns, middle, around(EDGES_F64, np.float64, 1)])
    return values[np.isfinite(values)]


def in_domain(name: str, x: Array) -> Array:
    """The operands at which the F64 function is finite; elsewhere see the tables of special cases."""
    with np.errstate(all="ignore"):
        return x[np.isfinite(DOUBLE[name](x))]


@cache
def hard_angles_f32() -> Array:
    """For every exponent, the floats whose product with 2/π is nearest to an integer."""
    with mpmath.workprec(300):
        places = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 200))
    found = []
    for exponent in range(-1, 128, 3):
        word = (places >> (200 - 64 - (exponent - 23))) & ((1 << 64) - 1)
        chosen = _nearly_whole(np.uint64(word), 1 << 46)[:40]
        found.append(np.ldexp(chosen.astype(np.float64), exponent - 23))
    return np.concatenate(found).astype(np.float32)


def _nearly_whole(word: np.uint64, bound: int) -> Array:
    """The mantissas of 24 bits whose product with a word of 64 is within the bound of a multiple of 2**64.

    Of eight million products none need be looked at: a mantissa is the sum of two parts, and for each of the first
    the products of the second, in order, say which are near.
    """
    first, second = np.arange(1 << 23, 1 << 24, 1 << 12, np.uint64), np.arange(1 << 12, dtype=np.uint64)
    with np.errstate(over="ignore"):
        high, low = first * word, second * word
        order = np.argsort(low)
        place, found = np.searchsorted(low[order], np.uint64(0) - high - np.uint64(bound)), []
        for k in range(second.size):
            near = order[(place + k) % second.size]
            inside = np.abs((high + low[near]).view(np.int64)) < bound
            if k and not inside.any():
                break
            found.append(first[inside] + second[near[inside]])
    return np.sort(np.concatenate(found))


@cache
def hard_angles_f64() -> Array:
    """Large doubles next to a multiple of π/2: denominators of the convergents of 2^e · 2/π."""
    angles = [6381956970095103 * 2.0**797]  # the nearest of all doubles
    with mpmath.workprec(2400):
        for exponent in range(20, 1024, 9):
            rest = mpmath.frac(mpmath.mpf(2) ** (exponent - 52) * 2 / mpmath.pi)
            before, last = 0, 1
            while True:
                rest = 1 / rest
                whole = int(mpmath.floor(rest))
                if whole * last + before >= 1 << 53:
                    break
                before, last, rest = last, whole * last + before, rest - whole
            angles += [math.ldexp(last * k, exponent - 52) for k in (1, 2, 3) if last * k < 1 << 53]
    return np.array(angles)


# --- accuracy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ty", HALVES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_every_16_bit_float(name: str, ty: Type) -> None:
    check_narrow(name, ty, np.arange(1 << 16, dtype=np.uint16).view(ty.dtype))


@pytest.mark.parametrize("name", UNARY)
def test_f32(name: str) -> None:
    check_narrow(name, Type.F32, sweep_f32(100_000, 1))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", UNARY)
def test_f32_densely(name: str, seed: int) -> None:
    check_narrow(name, Type.F32, sweep_f32(1_000_000, 100 + seed))


@pytest.mark.parametrize("name", UNARY)
def test_f64(name: str) -> None:
    x = in_domain(name, sweep_f64(1500, 2))
    # The angles of huge numbers need as many bits as the numbers have.
    check_double(name, x, precision=1300 if name in ANGLES else 250)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_f64_densely(name: str) -> None:
    x = in_domain(name, sweep_f64(30_000, 3))
    check_double(name, x, precision=1300 if name in ANGLES else 250)


@pytest.mark.parametrize("name", ANGLES)
def test_angles_next_to_a_quarter_turn(name: str) -> None:
    check_narrow(name, Type.F32, hard_angles_f32())
    check_double(name, hard_angles_f64(), precision=1300)


def _angle_pairs(ty: Type, count: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = np.ldexp(rng.uniform(-2, 2, count), rng.integers(-20, 20, count))
    y = x * rng.uniform(-1, 1, count) * np.array([0.01, 1.0, 1.0, 30.0])[rng.integers(0, 4, count)]
    with np.errstate(over="ignore"):
        return y.astype(ty.dtype), x.astype(ty.dtype)


def _power_pairs(ty: Type, count: int, seed: int) -> tuple[Array, Array]:
    """Bases near and far from 1, with powers that bring the result over the whole range."""
    rng = np.random.default_rng(seed)
    spread = np.array([2.0**-ty.mantissa_bits, 1e-3, 0.5, 30.0])[rng.integers(0, 4, count)]
    low, high = {Type.F16: (-17, 11), Type.F64: (-744, 709.7)}.get(ty, (-103, 88.7))
    with np.errstate(all="ignore"):
        x = np.exp(rng.standard_normal(count) * spread).astype(ty.dtype)
        x[x == 1] += ty.dtype.type(2.0**-ty.mantissa_bits)
        y = (rng.uniform(low, high, count) / np.log(x.astype(np.float64))).astype(ty.dtype)
    return x, y


@pytest.mark.parametrize("ty", [*HALVES, Type.F32], ids=str)
def test_two_operands(ty: Type) -> None:
    check_narrow("ATAN2", ty, *_angle_pairs(ty, 50_000, 4))
    check_narrow("POW", ty, *_power_pairs(ty, 50_000, 5))
    rng = np.random.default_rng(6)
    unsigned = np.dtype(f"u{ty.size_bytes}")
    patterns = rng.integers(0, 1 << ty.bits, (2, 50_000), dtype=np.uint64).astype(unsigned).view(ty.dtype)
    check_narrow("ATAN2", ty, *patterns)
    check_narrow("POW", ty, *patterns)
    check_narrow("POW", ty, -np.abs(patterns[0]), rng.integers(-30, 30, 50_000).astype(ty.dtype))


def test_two_operands_f64() -> None:
    check_double("ATAN2", *_angle_pairs(Type.F64, 1500, 7))
    check_double("POW", *_power_pairs(Type.F64, 1500, 8))


@pytest.mark.parametrize(("name", "ty", "least"), [
    ("EXP", Type.F32, -103.98), ("EXP", Type.F64, -745.14), ("EXP2", Type.F32, -126.0),
])  # fmt: skip
def test_what_becomes_too_small_is_a_product_with_zero(name: str, ty: Type, least: float) -> None:
    """A product that becomes too small takes processors a hundred times as long: half of a masked softmax is such."""
    program = expanded_program(name, ty)
    last = max(n for n, i in enumerate(program.instructions) if i.op.name == "MUL")
    store = program.instructions[-1]
    assert store.op.name == "STG"
    x = np.array([np.nextafter(ty.dtype.type(least), ty.dtype.type(-INF)), -1e4, -1e30, -INF])
    backend, found = ReferenceBackend(), []
    for factor in program.instructions[last].reads():
        stored = store.with_operands(lambda f, v, factor=factor: factor if isinstance(v, Register) else v)
        params = {"x0": backend.array(x.astype(ty.dtype), ty), "out": backend.allocate_typed(ty, len(x))}
        cut = replace(program, instructions=(*program.instructions[:last], stored))
        backend.execute(cut, LaunchConfig.linear(len(x)), params)
        found.append(np.asarray(params["out"].read()))
    assert all((one == 0).all() or np.isfinite(one).all() for one in found)
    assert any((one == 0).all() for one in found)
    assert (compute(name, ty, x) == 0).all()


@pytest.mark.slow
def test_two_operands_f64_densely() -> None:
    check_double("ATAN2", *_angle_pairs(Type.F64, 20_000, 9))
    check_double("POW", *_power_pairs(Type.F64, 20_000, 10))


# --- special cases --------------------------------------------------------------------------------

SPECIAL: dict[str, list[tuple[float, float]]] = {
    "EXP": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "EXPM1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0)],
    "LOG": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "LOG1P": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN)],
    "SIN": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "COS": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "TAN": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "TANH": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (60.0, 1.0), (-60.0, -1.0)],
    "SIGMOID": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (60.0, 1.0), (-1e4, 0.0)],
    "ERF": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (60.0, 1.0), (-60.0, -1.0)],
}


@pytest.mark.parametrize("ty", [*HALVES, *WIDE], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_special_cases(name: str, ty: Type) -> None:
    operands, wanted = zip(*SPECIAL[name], (NAN, NAN), (-NAN, NAN), strict=True)
    found = compute(name, ty, np.array(operands))
    assert oracle.bits(list(found), ty) == oracle.bits(list(wanted), ty)


def _c_pow(x: float, y: float) -> float:
    """C99 F.9.4.4, from its text."""
    if y == 0 or x == 1 or (x == -1 and math.isinf(y)):
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return NAN
    odd = math.isfinite(y) and y == math.floor(y) and int(y) % 2 == 1
    if math.isinf(y):
        return INF if (abs(x) > 1) == (y > 0) else 0.0
    if x == 0 or math.isinf(x):
        magnitude = INF if math.isinf(x) == (y > 0) else 0.0
        return math.copysign(magnitude, x) if odd else magnitude
    assert x < 0
    assert y != math.floor(y)
    return NAN


@pytest.mark.parametrize("ty", [*HALVES, *WIDE], ids=str)
def test_special_cases_of_pow(ty: Type) -> None:
    edge = 2.0 ** (ty.mantissa_bits + 1)
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        -2.5,
        INF,
        -INF,
        NAN,
        edge - 1,
        1 - edge,
        edge,
    ]
    pairs = [
        (x, y)
        for x, y in itertools.product(values, repeat=2)
        if x in (0, 1) or y == 0 or not (math.isfinite(x) and math.isfinite(y)) or (x < 0 and y != math.floor(y))
    ]
    found = compute("POW", ty, *(np.array(column) for column in zip(*pairs, strict=True)))
    wanted = [_c_pow(x, y) for x, y in pairs]
    assert oracle.bits(list(found), ty) == oracle.bits(wanted, ty)
    exact = compute(
        "POW", ty, np.array([2.0, -2.0, -2.0, 4.0, 3.0, -1.0, -1.0]), np.array([3, 3, -2, 0.5, 2, edge - 1, edge])
    )
    assert list(exact) == [8, -8, 0.25, 2, 9, -1, 1]


@pytest.mark.parametrize("ty", [*HALVES, *WIDE], ids=str)
def test_special_cases_of_atan2(ty: Type) -> None:
    values = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
    pairs = list(itertools.product(values, repeat=2))
    found = compute("ATAN2", ty, *(np.array(column) for column in zip(*pairs, strict=True)))
    wanted = [oracle.rounded(math.atan2(y, x), ty) for y, x in pairs]
    assert [oracle.places_apart(float(f), w, ty) for f, w in zip(found, wanted, strict=True)] == [0] * len(pairs)
    assert [math.copysign(1, f) for f in found if f == 0] == [math.copysign(1, w) for w in wanted if w == 0]


# --- order and shape ------------------------------------------------------------------------------


@of_each("ty", WIDE)
@pytest.mark.parametrize(
    ("name", "edges"),
    [("EXP", (-0.34657359, 0.34657359, 1.03972077)), ("EXPM1", (-0.34657359, 0.34657359, 1.03972077)),
     ("LOG", (0.70710678, 1.0, 1.41421356, 2.82842712)), ("LOG1P", (-0.29289322, 0.41421356, 1.82842712)),
     ("TANH", (0.625, -0.625, 9.0)), ("SIGMOID", (-0.34657359, 0.0, 0.34657359)), ("ERF", (0.31, 0.86, 1.0, 3.9))],
)  # fmt: skip
def test_nothing_jumps_where_pieces_meet(name: str, edges: tuple[float, ...], ty: Type) -> None:
    """Steps of 64 last places: far more than the error, so the results must not fall."""
    for edge in edges:
        step = 64 * float(np.spacing(ty.dtype.type(max(abs(edge), 0.25))))
        found = compute(name, ty, edge + step * np.arange(-200, 201)).astype(np.float64)
        assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("ty", WIDE, ids=str)
@of_each("name", [*UNARY, *BINARY])
def test_the_code_suits_every_backend(name: str, ty: Type) -> None:
    """Straight-line base code of one width with few registers; only huge angles take a branch."""
    program = expanded_program(name, ty)
    operands = [o for i in program.instructions for o in i.operands]
    assert not [i for i in program.instructions if i.op.is_extension]
    assert {i.op.name for i in program.instructions if i.op.group.name == "CONTROL"} == (
        {"BRA"} if name in ANGLES else set()
    )
    assert {o.bits for o in operands if isinstance(o, Type)} == {ty.bits}
    assert len({o for o in operands if isinstance(o, Register)}) <= 24
    assert len({o for o in operands if isinstance(o, Predicate)}) <= 4


@pytest.mark.parametrize(("name", "ty", "most"), [
    ("EXP", Type.F32, 28), ("EXP", Type.F64, 33), ("SIGMOID", Type.F32, 26), ("SIGMOID", Type.F64, 31),
])  # fmt: skip
def test_exponentials_are_short(name: str, ty: Type, most: int) -> None:
    """Loops over them wait for these instructions, not for memory."""
    assert sum(i.op.name != "MOV_IMM" for i in expanded_program(name, ty).instructions) <= most


@pytest.mark.parametrize(("name", "most"), [("SIN", (33, 39)), ("COS", (29, 35)), ("TAN", (38, 45))])
def test_angles_that_are_not_huge_take_few_instructions(name: str, most: tuple[int, int]) -> None:
    for ty, limit in zip(WIDE, most, strict=True):
        instructions = expanded_program(name, ty).instructions
        first = next(n for n, i in enumerate(instructions) if i.op.name == "BRA")
        assert sum(i.op.name != "MOV_IMM" for i in instructions[:first]) <= limit
