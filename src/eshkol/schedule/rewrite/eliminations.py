"""Linear algebra as loops over columns, for machines that have no code of their own for it: GPUs.

Comes in: a node (`matrices.py` finds them). Goes out: equivalent nodes, in which factorizations of
matrices, and what is solved with them, are scans: each step takes one column out of all that is left, in a few kernels
over whole matrices (and batches of them), so that the lanes of a GPU have work and the host is not asked in between.
Elimination is as LAPACK has it, with exchanges of rows, reflections of columns and their signs, of real and of complex
numbers. What has no one answer (a pivot of 0, a matrix that is not positive definite) stops with the error that the CPU
gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import TensorError
from eshkol.graph.control import scan
from eshkol.graph.function import trace
from eshkol.graph.node import Node, constant, make
from eshkol.ops import dtypes
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import (
    absolute,
    bitwise_and,
    cast,
    conj,
    equal,
    greater,
    greater_equal,
    imag,
    log,
    real,
    sqrt,
    where,
)
from eshkol.ops.joining import along
from eshkol.ops.lu import strange_pivots
from eshkol.ops.matrices import diagonal_of, identity, upper_of
from eshkol.ops.movement import expand, expanded, permute, reshape
from eshkol.ops.products import prod
from eshkol.ops.reductions import any_, argmax, max_, sum_
from eshkol.ops.row import Aval, KernelOp, Op, Pull, row
from eshkol.ops.shapes import count

SINGULAR = ("a matrix is singular: its system has no one solution", "lstsq gives the nearest solution")
SINGULAR_TRIANGLE = ("a triangular matrix is singular: an element of its diagonal is 0", SINGULAR[1])
INDEFINITE = ("a matrix is not positive definite", "add a small multiple of the identity, or use eigh")


class Demand(NamedTuple):
    """What is said where something does not hold."""

    message: str
    hint: str


def _refused(a: Demand) -> TensorError:
    return TensorError(a.message, hint=a.hint)


def _reference(a: Demand, x: Any, wrong: Any) -> Any:
    if np.any(wrong):
        raise _refused(a)
    return x


def _pull(e: Any, a: Demand, i: Any, x: Any, wrong: Any) -> Any:
    _, fine = e.located(e.convert(wrong([]), dtypes.int64), 1, wrap=False)
    e.stop_unless(fine, 1)
    return x(i)


DEMANDED: Op = row(KernelOp(
    name="demanded", doc="x; an error where something is wrong with it.", names=("x", "wrong"),
    infer=lambda a, x, wrong: Aval(x.shape, x.dtype), reference=_reference, lower=Pull(_pull), of_complex=Pull(_pull),
    stops=_refused,
))  # fmt: skip


def demanded(x: Node, wrong: Node, said: tuple[str, str]) -> Node:
    """x, or an error where anything is wrong."""
    return make(DEMANDED, (x, any_(wrong)), Demand(*said))


# --- real and complex numbers ----------------------------------------------------------------------


def _conj(x: Node) -> Any:
    return conj(x) if x.dtype.is_complex else x


def _real(x: Node) -> Any:
    return real(x) if x.dtype.is_complex else x


def _square(x: Node) -> Any:
    return real(x) * real(x) + imag(x) * imag(x) if x.dtype.is_complex else x * x


def _size(x: Node) -> Any:
    """How large LAPACK takes a pivot to be."""
    return absolute(real(x)) + absolute(imag(x)) if x.dtype.is_complex else absolute(x)


# --- loops over columns ---------------------------------------------------------------------------


class _Places(NamedTuple):
    """Of matrices: rows and columns by number, broadcast against them."""

    rows: Node
    columns: Node

    @classmethod
    def of(cls, x: Node) -> _Places:
        height, width = x.shape[-2:]
        return cls(iota.on(x, (height, 1), 0, dtypes.int32), iota.on(x, (width,), 0, dtypes.int32))


def _at(x: Node, there: Node, axis: int) -> Any:
    """The one line of matrices that is there, along an axis that stays."""
    return sum_(where(there, x, 0), axis, keepdims=True)


def loop(
    steps: int, carried: Sequence[Node], code: Callable[..., tuple[Sequence[Node], Sequence[Node]]], *walked: Node,
    reverse: bool = False,
) -> tuple[Node, ...]:  # fmt: skip
    """What is carried after `code(k, *carried, *walked[k])` for every step k, and the stacks of what else it gives."""
    counter = iota.on(carried[0], (steps,), 0, dtypes.int32)
    given = [Aval(x.shape, x.dtype) for x in carried]
    elements = [Aval(x.shape[1:], x.dtype) for x in (counter, *walked)]

    def body(*args: Node) -> Sequence[Node]:
        state, (k, *rest) = args[: len(carried)], args[len(carried) :]
        new, kept = code(k, *state, *rest)
        return [*new, *kept]

    function, captures = trace(body, [*given, *elements], "linear algebra")
    return scan(function, list(carried), [counter, *walked], captures, steps, reverse)


def _exchanged(x: Node, there: _Places, one: Node, other: Node) -> tuple[Node, Node]:
    """Matrices with two rows exchanged, and the row that comes first then."""
    first, second = _at(x, equal(there.rows, one), -2), _at(x, equal(there.rows, other), -2)
    return where(equal(there.rows, one), second, where(equal(there.rows, other), first, x)), second


def _eliminate(x: Node, right: Sequence[Node] = ()) -> tuple[Node, Node, Node, list[Node]]:
    """Both triangles of the factors, exchanges (from 0 on), the order of rows, and right sides that went along."""
    height, width = x.shape[-2:]
    batch, there = x.shape[:-2], _Places.of(x)
    order = expanded(iota.on(x, (height, 1), 0, dtypes.int64), (*batch, height, 1))

    def step(k: Node, x: Node, order: Node, *right: Node) -> tuple[list[Node], list[Node]]:
        below = greater(there.rows, k)
        column = _at(x, equal(there.columns, k), -1)
        candidates = where(below | equal(there.rows, k), _size(column), -1)
        chosen = cast(argmax(candidates, len(batch), keepdims=True), dtypes.int32)
        x, line = _exchanged(x, there, k, chosen)
        column, pivot = _exchanged(column, there, k, chosen)
        flat = equal(pivot, 0)
        factor = where(below, where(flat, 0, column / where(flat, 1, pivot)), 0)
        cut = where(greater(there.columns, k), x - factor * line, where(equal(there.columns, k), factor, x))
        moved = [_exchanged(b, there, k, chosen) for b in right]
        carried = [where(below, b - factor * first, b) for b, first in moved]
        return [where(below, cut, x), _exchanged(order, there, k, chosen)[0], *carried], [reshape(chosen, batch)]

    steps = min(height, width)
    x, order, *rest, exchanges = loop(steps, [x, order, *right], step)
    places = permute(exchanges, (*range(1, len(batch) + 1), 0))
    return x, places, reshape(order, (*batch, height)), rest


def _substituted(x: Node, b: Node, upper: bool, unit: bool) -> Node:
    """The solution of a system with one triangle of x, whose other one is not read."""
    there = _Places.of(x)

    def step(k: Node, b: Node) -> tuple[list[Node], list[Node]]:
        column, line = _at(x, equal(there.columns, k), -1), _at(b, equal(there.rows, k), -2)
        found = line if unit else line / _at(column, equal(there.rows, k), -2)
        left = greater(k, there.rows) if upper else greater(there.rows, k)
        return [where(equal(there.rows, k), found, where(left, b - column * found, b))], []

    return loop(x.shape[-1], [b], step, reverse=upper)[0]


def _diagonal(x: Node) -> Any:
    steps = min(x.shape[-2:])
    return diagonal_of(along(along(x, x.ndim - 1, 0, steps), x.ndim - 2, 0, steps))


# --- the rules ------------------------------------------------------------------------------------


def _nothing(node: Node, dtype: Any = None) -> Any:
    """A result without elements."""
    return expand(constant(0, dtype or node.dtype), node.shape)


def _wide(x: Node, batch: Sequence[int]) -> Any:
    return expanded(x, (*batch, *x.shape[-2:]))


def _solve(node: Node) -> Any:
    x, b = node.inputs
    if not count(node.shape):
        return _nothing(node)
    batch = node.shape[:-2]
    factors, _, _, (right,) = _eliminate(_wide(x, batch), [_wide(b, batch)])
    right = demanded(right, equal(_diagonal(factors), 0), SINGULAR)
    return _substituted(factors, right, upper=True, unit=False)


def _solve_triangle(node: Node) -> Any:
    x, b = node.inputs
    a, batch = node.attrs, node.shape[:-2]
    x, b = _wide(x, batch), _wide(b, batch)
    if not a.unit_diagonal:
        b = demanded(b, equal(_diagonal(x), 0), SINGULAR_TRIANGLE)
    return _substituted(_turned(x) if a.transpose else x, b, upper=a.lower == a.transpose, unit=a.unit_diagonal)


def _turned(x: Node) -> Any:
    return permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _cholesky(node: Node) -> Any:
    (x,) = node.inputs
    if not count(node.shape):
        return _nothing(node)
    there, batch, n = _Places.of(x), x.shape[:-2], x.shape[-1]

    def step(k: Node, x: Node) -> tuple[list[Node], list[Node]]:
        column = _at(x, equal(there.columns, k), -1)
        pivot = _real(_at(column, equal(there.rows, k), -2))
        wrong = greater_equal(0, pivot)  # which NaN is not: it goes on as NaN
        line = where(greater(k, there.rows), 0, column / sqrt(where(wrong, 1, pivot)))
        rest = x - line * _conj(_turned(line))
        return [rest], [reshape(line, (*batch, n)), reshape(wrong, batch)]

    _, lines, wrong = loop(n, [(x + _conj(_turned(x))) * 0.5], step)
    lines = demanded(lines, wrong, INDEFINITE)
    columns = permute(lines, (*range(1, len(batch) + 1), 0, len(batch) + 1))  # each a row yet
    return _conj(columns) if node.attrs.upper else _turned(columns)


def _lu(node: Node) -> tuple[Node, ...]:
    (x,) = node.inputs
    assert node.outs is not None
    if not count(x.shape):
        _, places, rows = node.outs
        order = expanded(iota.on(x, (x.shape[-2],), 0, dtypes.int64), rows.shape)
        return x, expand(constant(0, places.dtype), places.shape), order
    factors, exchanges, order, _ = _eliminate(x)
    return factors, exchanges + 1, order


def _pivoted(node: Node) -> Any:
    (pivots,) = node.inputs
    if not count(node.shape):
        return _nothing(node)
    batch, rows = node.shape[:-1], node.shape[-1]
    order = expanded(iota.on(pivots, (rows, 1), 0, dtypes.int64), (*batch, rows, 1))
    there, steps = _Places.of(order), pivots.shape[-1]
    others = reshape(permute(pivots - 1, (len(batch), *range(len(batch)))), (steps, *batch, 1, 1))
    order = loop(steps, [order], lambda k, x, other: ([_exchanged(x, there, k, other)[0]], []), others)[0]
    return reshape(demanded(order, greater(1, pivots) | greater(pivots, rows), strange_pivots(rows)), node.shape)


def _exchange_sign(exchanges: Node, dtype: Any) -> Any:
    """-1 where an odd number of rows was exchanged."""
    steps = exchanges.shape[-1]
    moved = sum_(cast(~equal(exchanges, iota.on(exchanges, (steps,), 0, dtypes.int32)), dtypes.int32), -1)
    return cast(1 - 2 * bitwise_and(moved, 1), dtype)


def _det(node: Node) -> Any:
    (x,) = node.inputs
    if not x.shape[-1]:
        return expand(constant(1, node.dtype), node.shape)
    factors, exchanges, _, _ = _eliminate(x)
    return prod(_diagonal(factors), -1) * _exchange_sign(exchanges, node.dtype)


def _slogdet(node: Node) -> tuple[Node, ...]:
    (x,) = node.inputs
    assert node.outs is not None
    shape, dtype = node.outs[0].shape, node.outs[0].dtype
    if not count(x.shape):
        return expand(constant(1, dtype), shape), expand(constant(0, node.outs[1].dtype), shape)
    factors, exchanges, _, _ = _eliminate(x)
    found = _diagonal(factors)
    size = absolute(found)
    if dtype.is_complex:
        signs = where(equal(size, 0), 0, found / where(equal(size, 0), 1, size))
    else:
        signs = where(greater(found, 0), 1, where(equal(found, 0), 0, where(greater(0, found), -1, found)))
    return prod(cast(signs, dtype), -1) * _exchange_sign(exchanges, dtype), sum_(log(size), -1)


def _reflect(x: Node, mirror: Node, weight: Node) -> Any:
    return x - weight * mirror * sum_(_conj(mirror) * x, -2, keepdims=True)


def reflections(x: Node) -> tuple[Node, ...]:
    """Triangles of matrices that are not wider than high, and the reflections that make them: mirrors and weights."""
    there = _Places.of(x)

    def step(k: Node, x: Node) -> tuple[list[Node], list[Node]]:
        column = _at(x, equal(there.columns, k), -1)
        first, tail = _at(column, equal(there.rows, k), -2), where(greater(there.rows, k), column, 0)
        rest = max_(absolute(tail), -2, keepdims=True)
        flat = equal(rest, 0)  # nothing is to be reflected away
        if x.dtype.is_complex:
            flat = flat & equal(imag(first), 0)
        largest = where(greater(rest, absolute(first)), rest, absolute(first))  # so that no square is too large
        scale = where(flat, 1, largest)
        length = scale * sqrt(_square(first / scale) + sum_(_square(tail / scale), -2, True))
        end = where(greater(0, _real(first)), length, -length)
        weight = where(flat, 0, (end - first) / where(flat, 1, end))
        mirror = where(equal(there.rows, k), 1, where(flat, 0, tail / where(flat, 1, first - end)))
        changed = where(greater(k, there.columns), x, _reflect(x, mirror, _conj(weight)))
        return [changed], [mirror, weight]

    return loop(x.shape[-1], [x], step)


def reflected(x: Node, mirrors: Node, weights: Node) -> Node:
    """What reflections make of matrices, the last one first."""
    return loop(mirrors.shape[0], [x], lambda k, q, m, w: ([_reflect(q, m, w)], []), mirrors, weights, reverse=True)[0]


def _qr(node: Node) -> tuple[Node, ...]:
    (x,) = node.inputs
    assert node.outs is not None
    if not count(x.shape):
        return tuple(expand(constant(0, a.dtype), a.shape) for a in node.outs)
    triangle, mirrors, weights = reflections(x)
    q = reflected(expanded(identity(x), x.shape), mirrors, weights)
    return q, upper_of(along(triangle, x.ndim - 2, 0, x.shape[-1]))


RULES: dict[str, Callable[[Node], Any]] = {
    "matrix_solve": _solve, "triangular_matrix_solve": _solve_triangle, "cholesky": _cholesky, "lu_rows": _lu,
    "det": _det, "slogdet": _slogdet, "tall_qr": _qr, "pivoted_rows": _pivoted,
}  # fmt: skip
