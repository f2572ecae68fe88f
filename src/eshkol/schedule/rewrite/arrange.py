"""Products as a mathematician would arrange them: the same values with fewer multiplications, or in better pieces.

- diag(a) @ b and b @ diag(a) scale rows and columns. Where b is infinite or NaN, the zeros beside the diagonal make NaN
  of all that they are summed with; that is kept.
- The diagonal of a @ b is the sums of a · bᵀ along rows: trace(a @ b) needs no matrix.
- Many products of a row and a column each are sums along rows, which read memory as fast as it goes.
- Chains go in the order that takes fewest multiplications, where nothing else needs what is in between.
- A product that sums over very many terms, for few results, is several products of a piece each, and their sum: pieces
  stay in the cache, and all cores have work. Gradients of weights are such products.

Comes in: nodes whose derivatives have been taken. Goes out: equivalent ones; sums are rounded in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make
from eshkol.ops import TABLE, dtypes
from eshkol.ops.elementwise import Cast, cast, greater, mul, not_equal, sub, where
from eshkol.ops.movement import Permutation, permute, reshape
from eshkol.ops.reductions import Along, sum_
from eshkol.ops.shapes import count
from eshkol.ops.slicing import pad_constant, slice_
from eshkol.schedule.rewrite.rules import build, held, made, number, reshaped
from eshkol.schedule.rewrite.walk import New, again, in_order, visible, walked

PRODUCT = TABLE["matrix_product"]
LONG = 4096  # terms of a sum from which on it is worth being cut
LEAST, MOST = 256, 1280  # terms of a piece
ROOM = 1 << 20  # elements of both operands of a piece, at most
RESULTS = 1 << 16  # elements of a product that is cut, at most
MOST_PARTS = 1 << 22  # elements of all pieces' results, at most
WORTH = 0.75  # of the multiplications that a chain takes; more are not worth another order
DOTS = 16  # products of one element from which on they are sums along rows; fewer are shared among cores by their terms
SMALL = 1 << 12  # multiplications that are not worth looking at


def arrange(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with products in better order and better pieces."""
    order = in_order(results)
    if not any(made(node, PRODUCT) for node in order):
        return list(results)
    users = Counter(x for node in order for x in visible(node))
    users.update(results)
    alone: set[Node] = set()  # products, as they are now, that one node reads

    def arranged(node: Node, new: New) -> Node:
        found = again(node, new)
        if made(found, PRODUCT):
            found = _scaled(found) or (not target.blocks and _dots(found)) or _in_order(found, alone) or found
        elif made(found, slice_):
            found = _diagonal(found, alone) or found
        if users[node] == 1 and (made(found, PRODUCT) or made(found, reshape)):
            alone.add(found)
        return found

    found = walked(results, order, arranged)
    return found if target.blocks else _in_pieces(found)


# --- diagonals ------------------------------------------------------------------------------------


def _scaled(node: Node) -> Node | None:
    """The product of a diagonal matrix and another: rows, or columns, each times a number."""
    a, b = node.inputs
    left, right = _on_diagonal(a), _on_diagonal(b)
    if left is not None and len(b.shape) == 2:
        return _spoiled(build(mul, None, reshaped(left, (left.size, 1)), b), b, 0)
    if right is not None and len(a.shape) == 2:
        return _spoiled(build(mul, None, a, right), a, 1)
    return None


def _spoiled(found: Node, x: Node, axis: int) -> Node:
    """What zeros times x leave of what is found: NaN where another element along an axis is infinite or NaN."""
    if not x.dtype.is_float:
        return found
    zero = build(sub, None, x, x)  # or NaN
    bad = build(cast, Cast(dtypes.int64), build(not_equal, None, zero, held(0, x.dtype)))
    others = build(sub, None, build(sum_, Along((axis,), True), bad), bad)
    return build(where, None, build(greater, None, others, held(0, others.dtype)), held(float("nan"), x.dtype), found)


def _on_diagonal(x: Node) -> Node | None:
    """The vector on the diagonal of a square matrix that is zero elsewhere."""
    if not made(x, reshape) or len(x.shape) != 2 or x.shape[0] != x.shape[1]:
        return None
    (flat,), n = x.inputs, x.shape[0]
    if not made(flat, pad_constant) or number(flat.inputs[1]) != 0:
        return None
    vector, how = flat.inputs[0], flat.attrs
    fits = vector.shape == (n,) and (how.low, how.high, how.interior) == ((0,), (0,), (n,))
    return vector if fits else None


def _diagonal(node: Node, alone: set[Node]) -> Node | None:
    """The diagonal of a square product: sums along the rows of its left, times its right turned."""
    flat, how = node.inputs[0], node.attrs
    if not made(flat, reshape) or flat not in alone or len(flat.shape) != 1:
        return None
    (product,) = flat.inputs
    if not made(product, PRODUCT) or product not in alone or len(product.shape) != 2:
        return None
    n = product.shape[0]
    if product.shape != (n, n) or node.shape != (n,) or (how.start, how.step) != ((0,), (n + 1,)):
        return None
    a, b = product.inputs
    if not product.dtype.is_float or product.dtype.bits < 32:
        return None
    return build(sum_, Along((1,), False), build(mul, None, a, build(permute, Permutation((1, 0)), b)))


def _dots(node: Node) -> Node | None:
    """Products of a row and a column each: sums along rows."""
    a, b = node.inputs
    if node.shape[-2:] != (1, 1) or count(node.shape) < DOTS or a.shape[:-2] != b.shape[:-2]:
        return None
    if not node.dtype.is_float or node.dtype.bits < 32 or a.size == 0:
        return None
    return build(sum_, Along((len(a.shape) - 1,), True), build(mul, None, a, reshaped(b, a.shape)))


# --- chains ---------------------------------------------------------------------------------------


def _in_order(node: Node, alone: set[Node]) -> Node | None:
    """(a @ b) @ c as a @ (b @ c), or the other way, where that takes fewer multiplications."""
    if len(node.shape) != 2:
        return None
    left, right = node.inputs
    for inner, first in ((left, True), (right, False)):
        if not made(inner, PRODUCT) or inner not in alone:
            continue
        a, b, c = (*inner.inputs, right) if first else (left, *inner.inputs)
        (m, k), (_, j), n = a.shape, b.shape, c.shape[1]
        now, then = (m * k * j + m * j * n, k * j * n + m * k * n) if first else (
            k * j * n + m * k * n, m * k * j + m * j * n)  # fmt: skip
        if now < SMALL or then > WORTH * now:
            continue
        if first:
            return build(PRODUCT, None, a, build(PRODUCT, None, b, c))
        return build(PRODUCT, None, build(PRODUCT, None, a, b), c)
    return None


# --- pieces ---------------------------------------------------------------------------------------


def _in_pieces(results: Sequence[Node]) -> list[Node]:
    order = in_order(results)
    if not any(_piece(node) for node in order):
        return list(results)

    def pieced(node: Node, new: New) -> Node:
        found = again(node, new)
        piece = _piece(found)
        return _cut(found, piece) if piece else found

    return walked(results, order, pieced)


def _piece(node: Node) -> int | None:
    """How many terms a piece of a long product has; None where it stays whole."""
    if not made(node, PRODUCT) or len(node.shape) != 2 or not node.dtype.is_float or node.dtype.bits < 32:
        return None
    terms, size = node.inputs[0].shape[1], count(node.shape)
    if terms < LONG or size > RESULTS or min(node.shape) < 2 or terms < 16 * max(node.shape):
        return None
    lengths = range(min(MOST, ROOM // sum(node.shape)), LEAST - 1, -1)
    length = next((n for n in lengths if terms % n == 0), None)
    return length if length is not None and terms // length * size <= MOST_PARTS else None


def _cut(node: Node, length: int) -> Node:
    """A product as the sum of products of pieces."""
    a, b = node.inputs
    (m, terms), n = a.shape, b.shape[1]
    parts = terms // length
    if made(a, permute):
        left = _turned(reshaped(a.inputs[0], (parts, length, m)), (0, 2, 1))
    else:
        left = _turned(reshaped(a, (m, parts, length)), (1, 0, 2))
    if made(b, permute):
        right = _turned(reshaped(b.inputs[0], (n, parts, length)), (1, 2, 0))
    else:
        right = reshaped(b, (parts, length, n))
    return make(sum_, (build(PRODUCT, None, left, right),), Along((0,), False))


def _turned(x: Node, axes: tuple[int, ...]) -> Node:
    return build(permute, Permutation(axes), x)
