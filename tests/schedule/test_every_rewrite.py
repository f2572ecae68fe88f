"""Rules of simplification, met one by one: each op with every constant, each op of each op, casts of casts.

What a rule of two nodes promises is seen here whether or not a program happens to have it: every elementwise row takes
the numbers at which rules look (0, 1, -1, 2, …) on either side, itself on both sides, and every other row below it, on
values at the edges of their dtypes. The oracle is the interpreter, on the graph as it was.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from effort import amount
from eshkol.errors import EshkolError
from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, constant
from eshkol.ops import TABLE, dtypes
from eshkol.ops import elementwise as ew
from eshkol.ops.movement import expand, flip, permute, reshape
from eshkol.ops.reductions import max_, sum_
from eshkol.ops.slicing import slice_
from eshkol.schedule.kernels.divisions import BY, BY_HALVES
from eshkol.schedule.rewrite.algebra import nonnegative
from eshkol.schedule.rewrite.simplify import simplify

VALUES = {
    "float32": [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.25, 3e38, 1e-45, 1.0, -1.0, 0.5],
    "float64": [np.nan, np.inf, -0.0, 0.0, 1.5, -2.25, 1e308, 5e-324],
    "float16": [np.nan, np.inf, -0.0, 1.5, -2.25, 6e4, 6e-8],
    "int32": [-(2**31), -7, -1, 0, 1, 2, 31, 2**31 - 1],
    "int8": [-128, -7, -1, 0, 1, 2, 127],
    "uint8": [0, 1, 2, 7, 128, 255],
    "bool": [False, True],
    "complex64": [1 + 2j, -1j, 0j, 3.5],
}
CONSTANTS = {
    "f": [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 4.0, -0.5, math.inf, math.nan, -2.0, 1.5],
    "i": [0, 1, -1, 2, 3, 7], "u": [0, 1, 2, 3, 255], "b": [False, True], "c": [0j, 1 + 0j, 2j],
}  # fmt: skip
ELEMENTWISE = [op for op in TABLE.values() if op.elementwise and not op.composite and not op.traps]
WITH_NUMBERS = (ew.cast, BY_HALVES, *BY.values())  # or a dtype
UNARY = [op for op in ELEMENTWISE if len(op.inputs) == 1 and op not in WITH_NUMBERS]
BINARY = [op for op in ELEMENTWISE if len(op.inputs) == 2]
NUMBERED = {TABLE["polygamma"]}  # takes a number besides
SHOW_SIGNS = {"atan2", "copysign", "div", "power", "floor_divide", "remainder", "fmod"}  # of zeros, which rules forget


def leaf(name: str) -> Node:
    array = np.array(VALUES[name], dtypes.of(name).numpy)
    return buffer(array, dtypes.of(name))


def built(op, *inputs: Node) -> Node | None:
    """A node, if the row takes these inputs; one that is refused on values that are known is none."""
    if op in NUMBERED or (any(x.dtype.is_complex for x in inputs) and "complex" not in op.dtypes):
        return None
    try:
        return op(*inputs)
    except EshkolError:
        return None


def same(node: Node, what: str) -> None:
    """The simplified graph gives what the graph gives; -0 for 0 is the one difference that rules may make."""
    with np.errstate(all="ignore"):
        (wanted,) = interpret.evaluate([node])
        (found,) = simplify([node])
        (got,) = interpret.evaluate([found])
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), what
    if got.dtype.kind in "biu":
        assert np.array_equal(got, wanted), f"{what}: {got} instead of {wanted}"
        return
    ours, theirs = (np.asarray(a, np.complex128) for a in (got, wanted))
    limit = 4 * float(dtypes.of(got.dtype).real.epsilon if got.dtype.kind == "c" else dtypes.of(got.dtype).epsilon)
    with np.errstate(all="ignore"):
        close = (
            (ours == theirs) | (np.abs(ours - theirs) <= limit * np.abs(theirs)) | (np.isnan(ours) & np.isnan(theirs))
        )
    assert close.all(), f"{what}: {got} instead of {wanted}"


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
@pytest.mark.parametrize("name", VALUES)
def test_every_constant_on_either_side(op, name):
    x = leaf(name)
    for number in CONSTANTS[dtypes.of(name).numpy.kind if name != "float16" else "f"]:
        c = constant(number, x.dtype)
        for inputs in ((x, c), (c, x), (c, c), (built(ew.neg, x) or x, c)):
            if (node := built(op, *inputs)) is not None:
                same(node, f"{op.name} of {name} and {number}")
                for again in BINARY if number in (0, 1, 2) and name in ("float32", "int32", "bool") else ():
                    if number == 0 and again.name in SHOW_SIGNS:
                        continue
                    if (outer := built(again, node, c)) is not None and outer.dtype == node.dtype:
                        same(outer, f"{again.name} of ({op.name} of {name} and {number}) and {number}")
    if (node := built(op, x, x)) is not None:
        same(node, f"{op.name} of {name} and itself")


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_every_row_of_every_row(op):
    for name in ("float32", "int32", "uint8", "bool", *amount(("float64", "complex64"), ())):
        x = leaf(name)
        for inner in UNARY:
            below = built(inner, x)
            node = None if below is None else built(op, below)
            if node is not None:
                same(node, f"{op.name} of {inner.name} of {name}")


CAST = ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("first", [name for name in CAST if name in VALUES])
def test_casts_of_casts(first):
    held = {"uint8": [0, 1, 100], "int8": [-3, 0, 1, 100], "int32": [0, 1, 100], "bool": [False, True]}
    values = np.array(held.get(first, [0.0, 1.0, 1.5, 100.25, 3.1, 65504.0]), dtypes.of(first).numpy)
    x = buffer(values, dtypes.of(first))
    for second, third in itertools.product(CAST, CAST):
        whole = [dtypes.of(n) for n in (second, third)]
        if first.startswith("float") and any(not d.differentiable for d in whole):
            x = buffer(np.array([0.0, 1.0, 1.5, 100.25, 3.1], dtypes.of(first).numpy), dtypes.of(first))
        node = ew.cast(ew.cast(x, whole[0]), whole[1])
        same(node, f"{first} → {second} → {third}")


def test_what_is_known_to_be_at_least_zero():
    y = buffer(np.ones((3, 4), np.float32), dtypes.float32)
    exp, absolute, sine = ew.exp(y), ew.absolute(y), ew.sin(y)
    assert all(map(nonnegative, (exp, absolute, ew.sigmoid(y), ew.mul(sine, sine), ew.sqrt(exp), sum_(exp, 0))))
    assert not any(map(nonnegative, (y, sine, ew.sub(exp, absolute), ew.sqrt(sine), sum_(sine, 0), max_(exp, 0))))
    for op in (ew.add, ew.mul, ew.div):
        assert nonnegative(op(exp, absolute))
        assert not nonnegative(op(exp, sine))
        assert not nonnegative(op(sine, exp))
    moves = (
        lambda x: reshape(x, (4, 3)), lambda x: permute(x, (1, 0)), lambda x: flip(x, 0), lambda x: slice_(x, 1, 3),
        lambda x: expand(x, (2, 3, 4)),
    )  # fmt: skip
    for move in moves:
        assert nonnegative(move(exp))
        assert not nonnegative(move(sine))
    for number, known in ((0.0, True), (2.5, True), (-0.0, False), (-1.0, False)):
        assert nonnegative(constant(number, dtypes.float32)) is known
    assert not nonnegative(constant(1j, dtypes.complex64))


@pytest.mark.parametrize("name", ["float32", "int32", "uint8", "bool"])
def test_every_choice(name):
    x = leaf(name)
    y = buffer(np.array(VALUES[name], dtypes.of(name).numpy)[::-1].copy(), x.dtype)
    numbers = [constant(n, x.dtype) for n in ((False, True) if name == "bool" else (0, 1))]
    kinds = np.arange(x.shape[0]) % 2 == 0
    conditions = [
        buffer(kinds, dtypes.bool_), constant(True, dtypes.bool_), constant(False, dtypes.bool_), ew.less(x, y),
        ew.logical_not(buffer(kinds, dtypes.bool_)), ew.equal(x, numbers[0]),
    ]  # fmt: skip
    for condition, one, other in itertools.product(conditions, (x, y, *numbers), (x, y, *numbers)):
        node = ew.where(condition, one, other)
        same(node, f"where of {name}")
        for outer in (ew.add(node, x), ew.mul(node, numbers[1]), ew.where(condition, node, y), ew.maximum(node, other)):
            same(outer, f"{outer.op.name} of where of {name}")
        if name == "bool":
            same(ew.logical_not(node), "not of where")
