"""Nodes that array instructions do at once: a graph with matrix products as compiled code has them.

Comes in: nodes that are simple (`simplify.py`) and whose derivatives have been taken. Goes out: equivalent nodes.

    permute, reshape, slice, expand, · number → matrix_product → · number, permute      one `seen_product`
    matrix_product → + bias → activation → + residual                                   one `followed_product`
    q·kᵀ/√dim → mask of what comes later → softmax → · v                                one `attended`
    conv → per-channel numbers → relu                                                   see `convolutions.py`

A product reads its operands where they lie if the instruction can (`Seen.fits`). What lies between the first and the
last node of a pattern has no other users, except for what only moves or scales elements: that is read through, and
computed for its other users as before. Values change by rounding alone: a number that multiplies an operand multiplies
the sums instead, 16-bit floats are rounded once after everything, and sums are taken in the machine's order. Where
attention is causal, infinite and NaN values that come later are no longer multiplied by 0, but not looked at.

Machines whose products are made of fragments of matrices (`kernels/matrix_products.py`) know the first pattern alone,
of 16-bit floats, and without numbers.

Matching goes from the results to the inputs, so that a node that a pattern has swallowed is not looked at again; each
node is matched once, by the rule of its op, and a rule looks a fixed number of nodes ahead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.table.linear import LONGEST_SUM
from eshkol.graph.node import Node, make
from eshkol.ops import TABLE, dtypes, shapes
from eshkol.ops.contraction import COUNTED, matrix_product
from eshkol.ops.dtypes import DType
from eshkol.ops.elementwise import cast
from eshkol.ops.float8 import FLOAT8_PRODUCT
from eshkol.ops.movement import ToShape, expand, permute, reshape
from eshkol.ops.row import Op, Shape
from eshkol.ops.slicing import slice_
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.matrix_operands import CHUNK_BYTES, read_as
from eshkol.schedule.kernels.matrix_products import fit_together, lie_well, multiplies
from eshkol.schedule.kernels.products import (
    ATTENDED,
    FLOAT8_KERNEL,
    FOLLOWED_PRODUCT,
    INTEGER_PRODUCT,
    SEEN_PRODUCT,
    Attended,
    Followed,
    Seen,
    View,
    dense,
)
from eshkol.schedule.rewrite.convolutions import fold_convolutions
from eshkol.schedule.rewrite.walk import New, in_order, visible, walked

LOOKED_THROUGH = 8  # nodes between an operand and what it is read from
SCALES = (1e-6, 1e6)  # numbers that may change their place without sums overflowing or vanishing before others do
_ADD, _MUL, _RELU, _TANH, _SIGMOID = (TABLE[name] for name in ("add", "mul", "relu", "tanh", "sigmoid"))
_WHERE, _SOFTMAX, _GREATER_EQUAL, _IOTA = (TABLE[name] for name in ("where", "softmax", "greater_equal", "iota"))
_MOVES = (permute, reshape, slice_, expand)
_SCALED = (dtypes.float32, dtypes.float64)


class Match(NamedTuple):
    """What stands for a node: an op of these inputs, reshaped to the node's shape."""

    op: Op
    attrs: Any
    inputs: tuple[tuple[Node, Shape], ...]  # and the shape in which each is taken


def recognize(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of nodes that array instructions of a machine compute, or its kernels for fragments of matrices."""
    if target.arrays:
        results, rules = fold_convolutions(results), _RULES
    elif target.matrices is not None:
        rules = {matrix_product: partial(_in_fragments, target), FLOAT8_PRODUCT: partial(_of_bytes, target)}
    else:
        return list(results)
    order = in_order(results)
    if not any(node.op in (matrix_product, FLOAT8_PRODUCT) for node in order):
        return list(results)
    users = Counter(x for node in order for x in visible(node))
    users.update(results)
    needed = set(results)
    matches: dict[Node, Match] = {}
    for node in reversed(order):
        if node not in needed or node.data is not None:
            continue
        rule = rules.get(node.op)
        match = rule(node, users) if rule is not None else None
        if match is None or (match.op is ATTENDED and match.inputs[0][1][-1] > target.widest_head):
            needed.update(node.inputs)
        else:
            matches[node] = match
            needed.update(x for x, _ in match.inputs)

    def matched(node: Node, new: New) -> Node | None:
        match = matches.get(node)
        if match is None:
            return None
        inputs = tuple(_shaped(new[x], shape) for x, shape in match.inputs)
        return _shaped(make(match.op, inputs, match.attrs), node.shape)

    return walked(results, [node for node in order if node in needed], matched)


def _shaped(x: Node, shape: Shape) -> Node:
    return x if x.shape == shape else make(reshape, (x,), ToShape(shape))


# --- operands -------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """A factor of a product: a node, how its elements are seen, and a number that they are multiplied by."""

    base: Node
    view: View
    scale: float

    @staticmethod
    def of(x: Node) -> Operand:
        return Operand(x, View.of(x.shape), 1.0)


def operand(x: Node, *, widened: bool = False) -> Operand:
    """What an operand is read from, behind nodes that move or scale its elements, or widen them (`widens`)."""
    passed: list[Node] = []
    at = x
    while len(passed) < LOOKED_THROUGH and at.data is None:
        if at.op not in _MOVES and number_of(at) is None and not (widened and widens(at)):
            break
        passed.append(at)
        at = _onward(at)
    found = Operand.of(at)
    for node in reversed(passed):
        factor = number_of(node)
        if factor is not None:
            found = found._replace(scale=found.scale * factor)
            continue
        if node.op is cast:
            continue
        view = _moved(node, found.view)
        found = Operand.of(node) if view is None else found._replace(view=view)
    return found


def _onward(node: Node) -> Node:
    """What a node moves or scales."""
    return node.inputs[1] if node.op is _MUL and node.inputs[0].op is CONST else node.inputs[0]


def number_of(node: Node) -> float | None:
    """The number that a node multiplies another by, where it may do so later as well."""
    if node.op is not _MUL or node.dtype not in _SCALED:
        return None
    for one, other in (node.inputs, node.inputs[::-1]):
        if one.op is CONST and other.shape == node.shape:
            number = float(one.attrs.array)
            return number if SCALES[0] <= abs(number) <= SCALES[1] else None
    return None


def widens(node: Node) -> bool:
    """Whether a node makes float32 of 16-bit floats, or int32 of int8."""
    if node.op is not cast:
        return False
    given = node.inputs[0]
    return is_half(given) if node.dtype is dtypes.float32 else (given.dtype, node.dtype) == (dtypes.int8, dtypes.int32)


def is_half(node: Node) -> bool:
    """Whether a node is of 16-bit floats."""
    return node.dtype.is_float and node.dtype.bits == 16


def _moved(node: Node, view: View) -> View | None:
    """A view after one more node; None where it is none any more."""
    a = node.attrs
    if node.op is permute:
        return View(view.offset, node.shape, tuple(view.strides[k] for k in a.axes))
    if node.op is expand:
        more = len(node.shape) - len(view.shape)
        old = (*(1,) * more, *view.shape)
        steps = (*(0,) * more, *view.strides)
        return View(view.offset, node.shape, tuple(0 if n == 1 else s for n, s in zip(old, steps, strict=True)))
    if node.op is slice_:
        offset = view.offset + sum(start * step for start, step in zip(a.start, view.strides, strict=True))
        return View(offset, node.shape, tuple(n * step for n, step in zip(a.step, view.strides, strict=True)))
    strides = _split(view.shape, view.strides, node.shape)
    return None if strides is None else View(view.offset, node.shape, strides)


def _split(shape: Shape, strides: Shape, wanted: Shape) -> Shape | None:
    """The distances of the same elements in another shape; None where they do not lie evenly."""
    if 0 in shape:
        return dense(wanted)
    runs: list[list[int]] = []  # [elements, distance] of axes that lie after one another, last first
    for extent, step in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 1:
            continue
        if runs and step == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= extent
        else:
            runs.append([extent, step])
    found = []
    for extent in reversed(wanted):
        if extent == 1:
            found.append(0)
            continue
        elements, step = runs[0] if runs else (1, 0)
        if elements % extent:
            return None
        found.append(step)
        runs[0] = [elements // extent, step * extent]
        if runs[0][0] == 1:
            runs.pop(0)
    return tuple(reversed(found))


# --- products of views ----------------------------------------------------------------------------


def _is_product(node: Node) -> bool:
    sizes = (*(x.shape for x in node.inputs), node.shape)
    return (
        node.op is matrix_product and node.data is None and node.dtype.is_float
        and all(0 < shapes.count(shape) < COUNTED for shape in sizes)
    )  # fmt: skip


def _seen(product: Node, scale: float, order: tuple[int, ...]) -> Match | None:
    """A product with its operands where they lie, if something comes of it."""
    first, second = (operand(x) for x in product.inputs)
    plain = tuple(map(Operand.of, product.inputs))
    last = len(order) - 1
    turns = order[-1] == last - 1  # the transpose of a product is a product of transposes
    order = tuple({last: last - 1, last - 1: last}.get(k, k) if turns else k for k in order)
    if order[-1] != last:
        return None
    for x, y in ((first, second), (first, plain[1]), (plain[0], second), plain):
        left, right = (y.view.turned(), x.view.turned()) if turns else (x.view, y.view)
        seen = Seen(left, right, scale * x.scale * y.scale, order)
        if not seen.fits():
            continue
        if (x, y) == plain and scale == 1.0 and order == tuple(range(last + 1)) and not turns:
            return None
        inputs = tuple((o.base, o.base.shape) for o in ((y, x) if turns else (x, y)))
        return Match(SEEN_PRODUCT, seen, inputs)
    return None


def _in_fragments(target: MachineDescription, node: Node, users: Counter[Node]) -> Match | None:
    """A product in fragments with its operands where they lie, if one of them lies elsewhere; or one of int8."""
    if node.dtype is dtypes.int32:
        return _of_integers(target, node)
    if not _is_product(node) or not multiplies(node, target):
        return None
    if (read_as(node.dtype, target) or (node.dtype,))[0] is not node.dtype:  # then it is copied anyway
        return None
    first, second = (operand(x) for x in node.inputs)
    plain = tuple(map(Operand.of, node.inputs))
    for x, y in ((first, second), (first, plain[1]), (plain[0], second)):
        if (x, y) == plain:
            continue
        seen = Seen(x.view, y.view, 1.0, tuple(range(len(node.shape))))
        lie = zip((x, y), lie_well(node, target, seen), strict=True)
        if all(o in plain or (o.scale == 1.0 and well) for o, well in lie) and fit_together(node, target, seen):
            return Match(SEEN_PRODUCT, seen, tuple((o.base, o.base.shape) for o in (x, y)))
    return None


def _of_integers(target: MachineDescription, node: Node) -> Match | None:
    """A product of int32 whose factors are of int8, if terms lie side by side in both and it is one instruction."""
    if target.matrices is None or not target.matrices.whole or len(node.shape) != 2 or node.data is not None:
        return None
    x, y = (operand(factor, widened=True) for factor in node.inputs)
    if any(o.base.dtype is not dtypes.int8 or len(o.base.shape) != 2 for o in (x, y)):
        return None
    terms = x.base.shape[1]
    fits = min(*node.shape, terms) > 0 and terms % CHUNK_BYTES == 0 and terms <= LONGEST_SUM
    if not fits or x.view != View.of(x.base.shape) or y.view.turned() != View.of(y.base.shape):
        return None
    return Match(INTEGER_PRODUCT, None, tuple((o.base, o.base.shape) for o in (x, y)))


def _of_bytes(target: MachineDescription, node: Node, users: Counter[Node]) -> Match | None:
    """A product of floats of 8 bits, if it is one instruction."""
    x, y, scale = node.inputs
    whole = target.matrices is not None and target.matrices.whole
    if not whole or min(*node.shape, x.shape[1]) == 0 or x.shape[1] % CHUNK_BYTES:
        return None
    return Match(FLOAT8_KERNEL, node.attrs, ((x, x.shape), (y, y.shape), (scale, scale.shape)))


def _product(node: Node, users: Counter[Node]) -> Match | None:
    if not _is_product(node):
        return None
    return _attention(node, users) or _seen(node, 1.0, tuple(range(len(node.shape))))


def _narrowed(node: Node, users: Counter[Node], *, interleaved: bool = False) -> Match | None:
    """Attention of 16-bit floats, which are widened before it, rounded to them."""
    inner = node.inputs[0]
    if not is_half(node) or users[inner] != 1 or not _is_product(inner):
        return None
    return _attention(inner, users, interleaved=interleaved, dtype=node.dtype)


def _permuted(node: Node, users: Counter[Node]) -> Match | None:
    if node.inputs[0].op is cast:
        return _permuted_halves(node, users)
    inner, scale = _unscaled(node.inputs[0], users)
    if users[node.inputs[0]] != 1 or not _is_product(inner):
        return None
    if scale == 1.0:
        if node.attrs.axes == (0, 2, 1, 3) and (found := _attention(inner, users, interleaved=True)):
            return found
        if _attention(inner, users):
            return None  # the permutation stays, behind attention
    return _seen(inner, scale, node.attrs.axes)


def _permuted_halves(node: Node, users: Counter[Node]) -> Match | None:
    narrow = node.inputs[0]
    if node.attrs.axes != (0, 2, 1, 3) or users[narrow] != 1 or narrow.data is not None:
        return None
    return _narrowed(narrow, users, interleaved=True)


def _unscaled(node: Node, users: Counter[Node]) -> tuple[Node, float]:
    """A product that nothing else uses than a node which multiplies it by a number, and the number."""
    number = number_of(node) if node.data is None else None
    if number is None or not _is_product(inner := _onward(node)) or users[inner] != 1:
        return node, 1.0
    return inner, number


def _scaled(node: Node, users: Counter[Node]) -> Match | None:
    """A product times a number; or x·sigmoid(x) after one."""
    inner, scale = _unscaled(node, users)
    if inner is not node:
        return _seen(inner, scale, tuple(range(len(node.shape))))
    return _followed(node, users)


# --- products with what follows them --------------------------------------------------------------


class Behind(NamedTuple):
    """A product of two matrices and what follows it so far."""

    product: Node
    scale: float
    bias: Node | None = None
    activation: str | None = None
    residual: Node | None = None


def _followed(node: Node, users: Counter[Node]) -> Match | None:
    """A node that ends what follows a product of two matrices."""
    found = _with_residual(node, users) or _activated(node, users)
    if found is None:
        return None
    x, y = (_flat(operand) for operand in found.product.inputs)
    extras: list[tuple[Node, Shape]] = []
    if found.bias is not None:
        extras.append((found.bias, found.product.shape[-1:]))
    if found.residual is not None:
        extras.append((found.residual, found.product.shape))
    attrs = Followed(
        x[1], y[1], found.scale * x[2] * y[2], found.bias is not None, found.activation, found.residual is not None
    )
    return Match(FOLLOWED_PRODUCT, attrs, ((x[0], x[3]), (y[0], y[3]), *extras))


def _flat(x: Node) -> tuple[Node, bool, float, Shape]:
    """A matrix as the fused instruction reads it: from where, whether transposed, the number, the shape there."""
    base, view, scale = operand(x)
    laid = view.matrix()
    if view.offset == 0 and laid is not None and base.size == x.size:
        stored = view.shape[::-1] if laid[1] else view.shape
        if laid[0] == stored[1]:
            return base, laid[1], scale, stored
    return x, False, 1.0, x.shape


def _with_residual(node: Node, users: Counter[Node]) -> Behind | None:
    if node.op is not _ADD:
        return None
    for inner, other in (node.inputs, node.inputs[::-1]):
        if inner.shape == other.shape == node.shape and users[inner] == 1 and inner is not other:
            found = _activated(inner, users) or _core(inner, users)
            if found is not None:
                return found._replace(residual=other)
    return None


def _activated(node: Node, users: Counter[Node]) -> Behind | None:
    """A product, at least with a bias or an activation after it."""
    if node.data is not None:
        return None
    if node.op in (_RELU, _TANH, _SIGMOID):
        inner, uses = node.inputs[0], 1
        name = node.op.name
    elif node.op is _MUL:
        gate = next((x for x in node.inputs if x.op is _SIGMOID and x.data is None and users[x] == 1), None)
        if gate is None or gate.inputs[0] not in node.inputs:
            return None
        inner, uses, name = gate.inputs[0], 2, "silu"
    else:
        return _biased(node, users)
    if users[inner] != uses:
        return None
    found = _biased(inner, users) or _core(inner, users)
    return None if found is None else found._replace(activation=name)


def _biased(node: Node, users: Counter[Node]) -> Behind | None:
    if node.op is not _ADD or node.data is not None:
        return None
    for inner, bias in (node.inputs, node.inputs[::-1]):
        per_column = bias.shape != () and bias.shape[-1] == bias.size == node.shape[-1]
        if inner.shape == node.shape and users[inner] == 1 and per_column:
            found = _core(inner, users)
            if found is not None:
                return found._replace(bias=bias)
    return None


def _core(node: Node, users: Counter[Node]) -> Behind | None:
    """A product of two matrices that only this uses, perhaps times a number and with its rows in several axes."""
    if node.op is reshape and node.data is None and node.shape[-1:] == node.inputs[0].shape[-1:]:
        node = node.inputs[0]
        if users[node] != 1:
            return None
    product, scale = _unscaled(node, users)
    if not _is_product(product) or len(product.shape) != 2:
        return None
    return Behind(product, scale)


# --- attention ------------------------------------------------------------------------------------


def _attention(
    product: Node, users: Counter[Node], *, interleaved: bool = False, dtype: DType | None = None
) -> Match | None:
    """Weights times values, where the weights are a softmax of scaled scores that nothing else needs.

    With `dtype` it is of floats of that type, widened to float32.
    """
    weights, causal, mask = product.inputs[0], False, None
    if _alone(weights, _WHERE, users):  # zero where attention is not allowed
        mask, weights, zero = weights.inputs
        if not is_number(zero, lambda n: n == 0) or not (causal := is_causal(mask)):
            return None
    if not _alone(weights, _SOFTMAX, users) or weights.attrs.axis != weights.ndim - 1:
        return None
    scores = weights.inputs[0]
    if causal:  # the least number there, before the softmax
        if not _alone(scores, _WHERE, users) or scores.inputs[0] is not mask:
            return None
        if scores.dtype not in _SCALED:
            return None
        least = float(np.finfo(scores.dtype.numpy).min)
        if not is_number(scores.inputs[2], lambda n: n <= least):
            return None
        scores = scores.inputs[1]
    if not _alone(scores, matrix_product, users) or not _is_product(scores):
        return None
    q, k, v = (operand(x, widened=dtype is not None) for x in (*scores.inputs, product.inputs[1]))
    if dtype is not None and any(o.base.dtype is not dtype for o in (q, k, v)):
        return None
    k = k._replace(view=k.view.turned())
    *batch, length, dim = q.view.shape
    if not q.view.shape == k.view.shape == v.view.shape or v.scale != 1.0:
        return None
    if not math.isclose(q.scale * k.scale * math.sqrt(dim), 1, rel_tol=1e-6):
        return None
    if interleaved and len(batch) != 2:
        return None
    heads = batch[-1] if interleaved else shapes.count(tuple(batch))
    shape = (batch[0], length, heads, dim) if interleaved else (1, heads, length, dim)
    lies = tuple(dense(shape)[axis] for axis in (0, 2, 1, 3)) if interleaved else dense((*batch, length, dim))
    for read in (q, k, v):
        same = all(n == 1 or s == t for n, s, t in zip(read.view.shape, read.view.strides, lies, strict=True))
        if not same or read.view.offset or read.base.size != shapes.count(shape):
            return None
    return Match(ATTENDED, Attended(causal, interleaved), tuple((o.base, shape) for o in (q, k, v)))


def _alone(node: Node, op: Op, users: Counter[Node]) -> bool:
    """Whether a node is of an op, and only one other needs it."""
    return node.op is op and node.data is None and users[node] == 1


def is_number(node: Node, holds: Callable[[float], bool]) -> bool:
    """Whether a node is a number of which something holds."""
    return node.op is CONST and holds(float(node.attrs.array))


def is_causal(mask: Node) -> bool:
    """Whether a mask says that no place comes later than the row: rows from 0 on, against columns from 0 on."""
    if mask.op is not _GREATER_EQUAL or mask.data is not None or mask.ndim < 2:
        return False
    return all(counts(counter, axis, mask.shape) for axis, counter in zip((-2, -1), mask.inputs, strict=True))


def counts(counter: Node, axis: int, shape: Shape) -> bool:
    """Whether a node counts the places along an axis, from the end, of a shape, from 0 on."""
    if counter.op is not _IOTA or counter.data is not None:
        return False
    extents, along = counter.attrs.shape, counter.attrs.axis - len(counter.attrs.shape)
    return bool(along == axis and extents[along] == shape[axis])


_RULES: dict[Op, Callable[[Node, Counter[Node]], Match | None]] = {
    matrix_product: _product,
    permute: _permuted,
    cast: _narrowed,
    _MUL: _scaled,
    **dict.fromkeys((_ADD, _RELU, _TANH, _SIGMOID), _followed),
}
