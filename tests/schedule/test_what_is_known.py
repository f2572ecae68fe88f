"""What the compiler knows of numbers before it runs anything: bounds of indices, signs, lengths of transforms."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.graph.node import Node, Scope, constant, placeholder
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.row import Aval
from eshkol.schedule.kernels.scalars import bounds, compared
from eshkol.schedule.kernels.transforms import GREATEST_RADIX, length_for, radices, unit
from eshkol.schedule.rewrite.algebra import _casts_finite, _power_of_two, finite, nonnegative
from eshkol.schedule.rewrite.arrange import PRODUCT, SMALL, WORTH, arrange
from eshkol.schedule.rewrite.signals import _divided, _length_for
from eshkol.schedule.rewrite.simplify import simplify

RANGES = [(least, most) for most in range(5) for least in range(most + 1)]
CONDITIONS = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
}  # fmt: skip
OPERATIONS = {
    "ADD": lambda a, b: a + b, "SUB": lambda a, b: a - b, "MUL": lambda a, b: a * b, "DIV": lambda a, b: a // b,
    "REM": lambda a, b: a % b,
}  # fmt: skip


def index(least: int, most: int | None) -> Any:
    """An index between two bounds: a number where they are one."""
    return SimpleNamespace(least=least, most=most, known=least if least == most else None)


def pairs() -> Any:
    for x, y in itertools.product(RANGES, repeat=2):
        yield index(*x), index(*y), [*itertools.product(range(x[0], x[1] + 1), range(y[0], y[1] + 1))]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_bounds_decide_a_comparison_or_do_not(condition: str) -> None:
    for x, y, both in pairs():
        found = {CONDITIONS[condition](a, b) for a, b in both}
        known = x.least == x.most and y.least == y.most
        if len(found) > 1:
            assert compared(condition, x, y) is None
        elif not (known and x.least == y.least and condition in ("EQ", "NE")):  # which are folded before they get here
            assert compared(condition, x, y) is found.pop(), (condition, x, y)
    assert compared(condition, index(0, None), index(0, 3)) is compared(condition, index(0, 3), index(0, None)) is None


@pytest.mark.parametrize("name", OPERATIONS)
def test_bounds_of_an_operation(name: str) -> None:
    """No number is outside of them, and those of sums, differences and products are met."""
    for x, y, both in pairs():
        if name in ("DIV", "REM") and not y.least:
            continue  # nobody divides by what may be 0
        found = [OPERATIONS[name](a, b) for a, b in both]
        if min(found) < 0:
            assert bounds(name, x, y) == (0, None)
            continue
        least, most = bounds(name, x, y)
        assert most is not None
        assert least <= min(found), (name, x, y)
        assert most >= max(found), (name, x, y)
        if name in ("ADD", "SUB", "MUL") or (name == "DIV" and y.known):
            assert (least, most) == (min(found), max(found)), (name, x, y)
        if name == "REM" and y.known:
            assert most <= y.known - 1
    assert bounds(name, index(0, None), index(1, 3)) == bounds(name, index(0, 3), index(1, None)) == (0, None)


# --- signs and sizes of values ----------------------------------------------------------------------


def node(x: Any) -> Node:
    found: Node = x._node
    return found


def test_values_that_are_finite() -> None:
    x, i = ek.tensor(np.ones((3, 4), np.float32)), ek.tensor(np.arange(12).reshape(3, 4))
    fine = [
        constant(2.0, dtypes.float32), constant(1 + 2j, dtypes.complex64), node(i), node(i.astype(ek.float32).T),
        node(ek.iota((5,), 0, "float32")), node((i > 1).astype(ek.float16)[::2]),
    ]  # fmt: skip
    unsure = [
        constant(math.inf, dtypes.float32), constant(math.nan, dtypes.float64), node(x), node(x * 2),
        node(x.astype(ek.float64)), node(i.astype(ek.float16)), node(ek.iota((5,), 0, "float16")),
        constant(complex(0, math.inf), dtypes.complex64),
    ]  # fmt: skip
    assert [finite(y) for y in fine] == [True] * len(fine)
    assert [finite(y) for y in unsure] == [False] * len(unsure)
    assert finite(node(i.astype(ek.float32).T), 2)
    assert not finite(node(i.astype(ek.float32).T), 1)


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "uint16", "int32", "int64"])
def test_casts_that_are_finite(name: str) -> None:
    source = getattr(dtypes, "bool_" if name == "bool" else name)
    ends = [False, True] if name == "bool" else [np.iinfo(name).min, np.iinfo(name).max]
    with np.errstate(over="ignore"):
        held = np.isfinite(np.array(ends, name).astype(np.float16)).all()
    assert _casts_finite(source, dtypes.float16) is bool(held)
    assert _casts_finite(source, dtypes.float32)
    assert not _casts_finite(dtypes.float16, dtypes.float32)


def test_values_that_are_not_negative() -> None:
    x, y = (ek.tensor(np.full((3, 4), n, np.float32)) for n in (1, 2))
    sure = [
        constant(0.0, dtypes.float32), constant(3, dtypes.int64), node(abs(x)), node(ek.exp(x)), node(ek.sigmoid(x)),
        node(x * x), node(ek.exp(x).T[::2]), node((x * x).sum(0)), node(ek.sqrt(x * x)), node(x * x + ek.exp(y)),
        node(x * x * ek.exp(y)), node(x * x / ek.exp(y)), node(ek.flip(abs(x), (0,)).reshape(2, 6)),
    ]  # fmt: skip
    unsure = [
        constant(-0.0, dtypes.float32), constant(-1, dtypes.int64), constant(1j, dtypes.complex64), node(x),
        node(x * x - ek.exp(y)), node(ek.sqrt(x)), node(x * x + y), node(x / ek.exp(y)), node(ek.sin(x).sum(0)),
        node(ek.complex(abs(x), abs(x)) * 2), node(-abs(x)), node(x * y),
    ]  # fmt: skip
    assert [nonnegative(z) for z in sure] == [True] * len(sure)
    assert [nonnegative(z) for z in unsure] == [False] * len(unsure)
    assert nonnegative(node(abs(x).T), 2)
    assert not nonnegative(node(abs(x).T), 1)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_whose_reciprocals_are_exact(name: str) -> None:
    dtype = getattr(dtypes, name)
    tiny = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}[name]
    for power in (0, 1, -1, 5, tiny, -tiny):
        assert _power_of_two(2.0**power, dtype)
        assert _power_of_two(-(2.0**power), dtype)
    for value in (0.0, 3.0, 0.3, 2.0 ** (tiny - 1), 2.0**-tiny * 2 if name != "float64" else math.inf, math.nan):
        assert not _power_of_two(value, dtype), value


# --- products of products ---------------------------------------------------------------------------


def multiplications(node: Node) -> int:
    """Of a product and of those that it is made of."""
    if node.op is not PRODUCT:
        return 0
    return node.size * node.inputs[0].shape[1] + sum(map(multiplications, node.inputs))


@pytest.mark.parametrize("first", [True, False])
def test_chains_of_products_take_the_shorter_way(first: bool) -> None:
    """And stay as they are where it is not much shorter, or all is little."""
    for m, k, j, n in itertools.product((2, 12, 70), repeat=4):
        shapes = ((m, k), (k, j), (j, n))
        a, b, c = (placeholder(Aval(shape, dtypes.float32), Scope("trace", "a chain")) for shape in shapes)
        ways = [matrix_product(matrix_product(a, b), c), matrix_product(a, matrix_product(b, c))]
        given, other = ways if first else ways[::-1]
        (found,) = arrange([given], CORES)
        now, then = multiplications(given), multiplications(other)
        assert now == (m * k * j + m * j * n if first else k * j * n + m * k * n)
        shorter = now >= SMALL and then <= WORTH * now
        assert multiplications(found) == (then if shorter else now)
        assert (found.inputs[0].op is PRODUCT) == (first is not shorter)


def test_the_diagonal_of_a_product_that_is_needed_besides() -> None:
    x = ek.tensor(np.ones((6, 6), np.float32))
    results = ek.jit(lambda a, b: (ek.diagonal(a @ b), a @ b), dynamic=False).traced(x, x + 1).function.results
    both = simplify(results)
    assert arrange(both, CORES) == both
    (alone,) = arrange(both[:1], CORES)
    assert alone.op.name == "sum"


# --- lengths of transforms --------------------------------------------------------------------------


def test_radices_of_a_length() -> None:
    for n in range(1, 700):
        found = radices(n)
        odd = max((d for d in range(3, n + 1, 2) if n % d == 0 and all(d % k for k in range(3, d, 2))), default=1)
        assert (found is None) == (odd > GREATEST_RADIX), n
        if found is not None:
            assert math.prod(found) == n
            assert all(r in (2, 4, 8) or r % 2 for r in found)
            assert found.count(2) <= 1
            assert found.count(4) <= 2


def test_lengths_that_have_room_for_a_convolution() -> None:
    for n in range(1, 300):
        least, found = 2 * n - 1, length_for(n)
        assert found == n or (found >= least and radices(found) is not None and found % 4 == 0)
        there = [k << p for p in range(12) for k in (1, 3) if k << p >= least]
        assert _length_for(n) == min(there), n


def test_divisors_near_the_root() -> None:
    for n, most in itertools.product(range(1, 130), (1, 2, 5, 8, 12, 200)):
        found = _divided(n, most)
        assert n % found == 0
        assert found <= most
        whole = [d for d in range(1, n + 1) if n % d == 0 and d <= most]
        both = [d for d in whole if n // d <= most]
        if both:
            assert abs(found * found - n) == min(abs(d * d - n) for d in both)
            assert n // found <= most
        else:
            assert found == max(whole)


def test_turns_of_the_unit_circle() -> None:
    for n in (1, 2, 3, 4, 7, 8, 12, 16, 100):
        turns = np.arange(-n, 2 * n)
        np.testing.assert_allclose(unit(turns, n), np.exp(-2j * np.pi * turns / n), atol=1e-15)
        np.testing.assert_array_equal(unit(turns, n), unit(turns % n, n))
    np.testing.assert_array_equal(unit([0, 1, 2, 3], 4), [1, -1j, -1, 1j])  # exactly
