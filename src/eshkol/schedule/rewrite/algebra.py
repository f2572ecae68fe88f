"""Rules of arithmetic, logic, choices and casts.

What they promise. Every rule gives the same number, NaN and infinities included, with these exceptions, which are all:
- the sign of a zero: x + 0, x - (-0) and 0·x (of numbers known to be finite) forget it, as other compilers do; a column
  times a row keeps it, where a sum of one product would forget it;
- powers with a whole exponent of 2 to 4 become products, and 0.5 and -0.5 become roots where the base cannot be
  negative: they differ from the power by its own error, at most 2 ulp.

Products with 0, differences x - x and quotients x / x are folded for integers; of floats only where NaN and infinity
are ruled out. Dividing by a power of two is multiplying by another, which is exact.
"""

from __future__ import annotations

import math
from functools import cache

from eshkol.graph.node import Node
from eshkol.ops import TABLE, dtypes
from eshkol.ops.creation import iota
from eshkol.ops.dtypes import DType
from eshkol.ops.elementwise import (
    absolute,
    add,
    bitwise_not,
    cast,
    div,
    exp,
    mul,
    neg,
    rsqrt,
    sigmoid,
    sqrt,
    sub,
    where,
)
from eshkol.ops.joining import Join, concatenate
from eshkol.ops.movement import expand, flip, permute, reshape
from eshkol.ops.reductions import sum_
from eshkol.ops.slicing import Pad, pad_constant, slice_
from eshkol.ops.structural import CONST
from eshkol.schedule.rewrite.rules import (
    RULES,
    Rule,
    build,
    converted,
    filled,
    fitted,
    held,
    made,
    number,
    rule,
)

_SMALLEST_EXPONENT = {dtypes.float16: 14, dtypes.bfloat16: 126, dtypes.float32: 126, dtypes.float64: 1022}
_MOVING = frozenset({expand, reshape, permute, slice_, flip})
DEEP = 8  # how far a question about a value's sign or size is followed


# --- what is known of a value ---------------------------------------------------------------------


def finite(x: Node, depth: int = DEEP) -> bool:
    """Whether no element can be NaN or infinite."""
    if x.op is CONST:
        return math.isfinite(abs(number(x)))
    if not x.dtype.differentiable:
        return True
    if x.data is not None or depth == 0:
        return False
    if x.op is iota:
        return x.dtype is not dtypes.float16
    if x.op is cast:
        return _casts_finite(x.inputs[0].dtype, x.dtype)
    return x.op in _MOVING and finite(x.inputs[0], depth - 1)


def _casts_finite(source: DType, target: DType) -> bool:
    """Whether every number of a dtype is finite in another."""
    if source.differentiable:
        return False
    return target is not dtypes.float16 or source.is_bool or max(map(abs, source.limits())) <= 65504


def nonnegative(x: Node, depth: int = DEEP) -> bool:
    """Whether every element is +0 or greater, or NaN."""
    if x.op is CONST:
        value = number(x)
        return not isinstance(value, complex) and not math.copysign(1.0, value) < 0
    if x.data is not None or depth == 0 or x.dtype.is_complex:
        return False
    op, inputs = x.op, x.inputs
    if op is absolute or op is exp or op is sigmoid:
        return True
    if op is mul and inputs[0] is inputs[1]:
        return True
    if op in _MOVING or op is sum_ or op is sqrt:
        return nonnegative(inputs[0], depth - 1)
    return (op is add or op is mul or op is div) and all(nonnegative(y, depth - 1) for y in inputs)


def _power_of_two(value: float, dtype: DType) -> bool:
    """Whether a number and its reciprocal are both normal powers of two (or their negatives) in a dtype."""
    fraction, exponent = math.frexp(value)
    return abs(fraction) == 0.5 and abs(exponent - 1) <= _SMALLEST_EXPONENT[dtype]


# --- arithmetic -----------------------------------------------------------------------------------


def _ordered(node: Node) -> Node | None:
    """The constant of a commutative op comes second."""
    x, y = node.inputs
    return build(node.op, node.attrs, y, x) if x.op is CONST and y.op is not CONST else None


@rule("add")
def _add(node: Node) -> Node | None:
    x, y = node.inputs
    if number(y) == 0:
        return fitted(x, node.shape)
    if made(y, neg):
        return build(sub, None, x, y.inputs[0])
    if made(x, neg):
        return build(sub, None, y, x.inputs[0])
    if x.op in _WITH_GAPS and y.op in _WITH_GAPS and x.shape == y.shape and x.data is None and y.data is None:
        return _side_by_side(node)
    return _ordered(node)


@rule("sub")
def _sub(node: Node) -> Node | None:
    x, y = node.inputs
    if number(y) == 0:
        return fitted(x, node.shape)
    if made(y, neg):
        return build(add, None, x, y.inputs[0])
    if x is y and x.dtype.is_integer:
        return filled(0, node)
    return None


@rule("mul")
def _mul(node: Node) -> Node | None:
    x, y = node.inputs
    if node.dtype.is_complex:
        return _ordered(node)
    value = number(y)
    if value is None:
        if made(x, neg) and made(y, neg):
            return build(mul, None, x.inputs[0], y.inputs[0])
        return _ordered(node)
    if value == 1:
        return fitted(x, node.shape)
    if value == -1:
        return fitted(build(neg, None, x), node.shape)
    if value == 0 and finite(x):
        return filled(0, node)
    if made(x, neg):
        return build(mul, None, x.inputs[0], build(neg, None, y))
    return None


@rule("matrix_product")
def _outer(node: Node) -> Node | None:
    """A column times a row: nothing is summed, so it is computed with what is around it."""
    x, y = node.inputs
    terms = x.shape[-1]
    if type(terms) is not int or terms != 1:  # a size that varies shall not be asked for this
        return None
    return build(mul, None, fitted(x, node.shape), fitted(y, node.shape))


@rule("div")
def _div(node: Node) -> Node | None:
    x, y = node.inputs
    if node.dtype.is_complex:
        return None
    value = number(y)
    if value is None:
        return build(div, None, x.inputs[0], y.inputs[0]) if made(x, neg) and made(y, neg) else None
    # A mean stays what it is: were it a product for some numbers of elements, another batch would be other code.
    if _power_of_two(value, node.dtype) and not made(x.inputs[0] if made(x, reshape) else x, sum_):
        return build(mul, None, x, held(1 / value, node.dtype))
    if made(x, neg):
        return build(div, None, x.inputs[0], build(neg, None, y))
    return None


@rule("neg")
def _neg(node: Node) -> Node | None:
    (x,) = node.inputs
    if made(x, neg):
        return x.inputs[0]
    if (made(x, mul) or made(x, div)) and not node.dtype.is_complex and number(x.inputs[1]) is not None:
        return build(x.op, None, x.inputs[0], build(neg, None, x.inputs[1]))
    return None


@rule("power")
def _power(node: Node) -> Node | None:
    x, y = node.inputs
    exponent, dtype = number(y), node.dtype
    if exponent is None or dtype.is_complex:
        return None
    if exponent == 0:
        return filled(1, node)
    if exponent == 1:
        return fitted(x, node.shape)
    # The powers of small numbers vanish before their squares lose bits, but not in float16.
    most = 2 if dtype is dtypes.float16 else 4
    if exponent in (2, 3, 4) and exponent <= most:
        square = build(mul, None, x, x)
        whole = square if exponent == 2 else build(mul, None, square, square if exponent == 4 else x)
        return fitted(whole, node.shape)
    if exponent == -1 and dtype.is_float:
        return build(div, None, held(1, dtype), x)
    roots = {0.5: sqrt, -0.5: rsqrt}
    if exponent in roots and nonnegative(x):  # elsewhere -inf and -0 have other roots than powers
        return fitted(build(roots[exponent], None, x), node.shape)
    return None


def _extreme(neutral: int) -> Rule:
    """The rule of maximum or minimum: which end of the dtype changes nothing."""

    def extreme(node: Node) -> Node | None:
        x, y = node.inputs
        value = number(y)
        if x is y or (value is not None and value == node.dtype.limits()[neutral]):
            return fitted(x, node.shape)
        if made(x, node.op):
            if y in x.inputs:
                return fitted(x, node.shape)
            if value is not None and number(x.inputs[1]) is not None:
                return build(node.op, None, x.inputs[0], build(node.op, None, x.inputs[1], y))
        if made(y, node.op) and x in y.inputs:
            return fitted(y, node.shape)
        return _ordered(node)

    return extreme


rule("maximum")(_extreme(0))
rule("minimum")(_extreme(1))


_WITH_GAPS = frozenset({pad_constant, concatenate})


def _side_by_side(node: Node) -> Node | None:
    """A sum of two tensors with zeros along one axis, neither of which has anything where the other has, as one.

    Derivatives of slices are such sums. What is left between the parts is filled with zeros, in which further parts
    find their place.
    """
    x, y = node.inputs
    axis = _axis_of_gaps(x)
    if axis is None or _axis_of_gaps(y) != axis:
        return None
    parts = sorted([*_parts(x, axis), *_parts(y, axis)], key=lambda part: part[0])
    shape, extent = parts[0][1].shape, x.shape[axis]
    joined: list[Node] = []
    start = end = parts[0][0]
    for place, part in parts:
        if place < end:
            return None
        if place > end:
            joined.append(fitted(held(0, part.dtype), (*shape[:axis], place - end, *shape[axis + 1 :])))
        joined.append(part)
        end = place + part.shape[axis]
    whole = build(concatenate, Join(axis), *joined)
    low, high = (tuple(n if k == axis else 0 for k in range(len(shape))) for n in (start, extent - end))
    return build(pad_constant, Pad(low, high, (0,) * len(shape)), whole, held(0, x.dtype))


def _axis_of_gaps(x: Node) -> int | None:
    """The one axis along which a tensor is padded with zeros, or joined of parts of which some are."""
    a = x.attrs
    if x.op is concatenate:
        axis: int = a.axis
        return axis if any(number(part) == 0 for part in x.inputs) else None
    if number(x.inputs[1]) != 0 or any(a.interior) or any(n < 0 for n in (*a.low, *a.high)):
        return None
    found = [k for k, (low, high) in enumerate(zip(a.low, a.high, strict=True)) if low or high]
    return found[0] if len(found) == 1 else None


def _parts(x: Node, axis: int) -> list[tuple[int, Node]]:
    """What a tensor with zeros along an axis consists of besides them, each part with its place."""
    inner, place = (x, 0) if x.op is concatenate else (x.inputs[0], x.attrs.low[axis])
    if not made(inner, concatenate) or inner.attrs.axis != axis:
        return [(place, inner)]
    found = []
    for part in inner.inputs:
        if number(part) != 0:
            found.append((place, part))
        place += part.shape[axis]
    return found


# --- functions of one operand ---------------------------------------------------------------------


def _idempotent(node: Node) -> Node | None:
    (x,) = node.inputs
    return x if made(x, node.op) else None


@rule("floor", "ceil", "round", "trunc")
def _whole(node: Node) -> Node | None:
    (x,) = node.inputs
    return x if node.dtype.is_integer or (x.data is None and RULES.get(x.op) is _whole) else None


rule("sign")(_idempotent)


@rule("relu")
def _relu(node: Node) -> Node | None:
    return node.inputs[0] if not node.dtype.signed else _idempotent(node)


@rule("absolute")
def _absolute(node: Node) -> Node | None:
    (x,) = node.inputs
    if made(x, absolute) or (x.dtype.is_integer and not x.dtype.signed):  # where -x is another number, not below 0
        return x
    return build(absolute, None, x.inputs[0]) if made(x, neg) else None


@rule("conj")
def _conj(node: Node) -> Node | None:
    (x,) = node.inputs
    return x if not x.dtype.is_complex else x.inputs[0] if made(x, node.op) else None


@rule("real")
def _real(node: Node) -> Node | None:
    (x,) = node.inputs
    return x if not x.dtype.is_complex else None


@rule("imag")
def _imag(node: Node) -> Node | None:
    return filled(0, node) if not node.inputs[0].dtype.is_complex else None


@rule("stop_gradient", "mark")
def _itself(node: Node) -> Node | None:
    return node.inputs[0]


# --- comparison, logic, choice --------------------------------------------------------------------

_OPPOSITE = {
    "equal": "not_equal", "not_equal": "equal", "less": "greater_equal", "greater_equal": "less",
    "greater": "less_equal", "less_equal": "greater",
}  # fmt: skip


@rule(*_OPPOSITE)
def _comparison(node: Node) -> Node | None:
    x, y = node.inputs
    if x is y and not x.dtype.differentiable:
        return filled(node.op.name in ("equal", "less_equal", "greater_equal"), node)
    return _ordered(node) if node.op.commutes else None


@rule("bitwise_not")
def _not(node: Node) -> Node | None:
    (x,) = node.inputs
    if made(x, bitwise_not):
        return x.inputs[0]
    opposite = _OPPOSITE.get(x.op.name) if x.data is None else None
    if opposite is None or (x.inputs[0].dtype.differentiable and "equal" not in (x.op.name, opposite)):
        return None  # of NaN neither less nor greater_equal holds
    return build(TABLE[opposite], None, *x.inputs)


@rule("bitwise_and", "bitwise_or")
def _both_or_either(node: Node) -> Node | None:
    x, y = node.inputs
    value = number(y)
    if x is y:
        return fitted(x, node.shape)
    if value is not None:
        ones = value == (True if node.dtype.is_bool else -1)
        if ones or value == 0:
            kept = x if ones == (node.op.name == "bitwise_and") else y
            return fitted(kept, node.shape)
    return _ordered(node)


@rule("bitwise_xor")
def _xor(node: Node) -> Node | None:
    x, y = node.inputs
    if number(y) == 0:
        return fitted(x, node.shape)
    return filled(0, node) if x is y else _ordered(node)


@rule("where")
def _where(node: Node) -> Node | None:
    condition, x, y = node.inputs
    value = number(condition)
    if value is not None or x is y:
        return fitted(x if value or x is y else y, node.shape)
    if made(condition, bitwise_not):
        return fitted(build(where, None, condition.inputs[0], y, x), node.shape)
    if made(x, where) and x.inputs[0] is condition:
        return fitted(build(where, None, condition, x.inputs[1], y), node.shape)
    if made(y, where) and y.inputs[0] is condition:
        return fitted(build(where, None, condition, x, y.inputs[2]), node.shape)
    return None


# --- casts ----------------------------------------------------------------------------------------


@rule("cast")
def _cast(node: Node) -> Node | None:
    (x,) = node.inputs
    if x.dtype is node.dtype:
        return x
    if made(x, cast) and _direct(x.inputs[0].dtype, x.dtype, node.dtype):
        return converted(x.inputs[0], node.dtype)
    return None


@cache
def _direct(source: DType, middle: DType, target: DType) -> bool:
    """Whether a cast by way of a dtype gives what a direct one does."""
    if not _holds_all(source, middle):
        return False
    if source.is_integer and middle.differentiable and target.is_integer:
        return _holds_all(source, target)  # floats saturate where integers wrap
    return True


def _holds_all(source: DType, target: DType) -> bool:
    """Whether a dtype holds every number of another exactly."""
    if source is target or source.is_bool:
        return True
    if target.is_bool or source.rank > target.rank:
        return False
    if source.is_integer:
        bits = source.bits - source.signed
        if target.is_integer:
            return bits <= target.bits - target.signed and (target.signed or not source.signed)
        return 2.0**bits <= 2.0 / target.epsilon and _casts_finite(source, target.real)
    return dtypes.promote(source.real, target.real) is target.real
