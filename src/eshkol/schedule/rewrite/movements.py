"""Rules of what moves elements, joins tensors and reduces them.

Most are exact. Not exact is a sum over elements that are repeated, which becomes a product with their number: it is
rounded once instead of many times. Sums whose elements are read in another order (of a permuted tensor) may be rounded
differently. A sum over one element is that element, also where that is -0.

What is repeated is repeated as late as possible: reshapes, permutations and slices go before an expand, so that it
meets the elementwise ops that broadcast by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.graph.custom import CHECKPOINT, CUSTOM
from eshkol.graph.node import Node
from eshkol.ops import dtypes, shapes
from eshkol.ops.elementwise import mul
from eshkol.ops.joining import Join, concatenate
from eshkol.ops.movement import Flip, Permutation, expand, flip, permute, reshape
from eshkol.ops.reductions import Along
from eshkol.ops.row import Shape
from eshkol.ops.slicing import Pad, Slice, pad_constant, slice_
from eshkol.ops.sorting import sort
from eshkol.ops.structural import CONST, PICK, Constant
from eshkol.schedule.rewrite.rules import (
    aligned,
    build,
    converted,
    filled,
    fitted,
    held,
    item,
    made,
    number,
    reshaped,
    rule,
    without_leading,
)

# --- reshape, expand, permute ---------------------------------------------------------------------


@rule("reshape")
def _reshape(node: Node) -> Node | None:
    (x,) = node.inputs
    if x.shape == node.shape:
        return x
    if made(x, reshape):
        return reshaped(x.inputs[0], node.shape)
    if made(x, expand):
        source = x.inputs[0]
        if source.op is CONST:
            return fitted(source, node.shape)
        thin = _before_expand(aligned(source, len(x.shape)), x.shape, node.shape)
        return None if thin is None else fitted(reshaped(source, thin), node.shape)
    return None


def _before_expand(source: Shape, wide: Shape, target: Shape) -> Shape | None:
    """The shape in which what was repeated to `wide` can be repeated to `target`; None if there is none.

    Axes are compared run by run: a run of extents of one shape holds as many elements as one of the other. What is in
    a run must be repeated as a whole or not at all.
    """
    found = [1] * len(target)
    i = j = 0
    while i < len(wide) or j < len(target):
        if i < len(wide) and wide[i] == 1:
            i += 1
        elif target[j] == 1:
            j += 1
        else:
            first, second, count, other = i, j, wide[i], target[j]
            i, j = i + 1, j + 1
            while count != other:
                if count < other:
                    count, i = count * wide[i], i + 1
                else:
                    other, j = other * target[j], j + 1
            if source[first:i] == wide[first:i]:
                found[second:j] = target[second:j]
            elif any(n != 1 for n in source[first:i]):
                return None
    return tuple(found)


@rule("expand")
def _expand(node: Node) -> Node | None:
    (x,) = node.inputs
    if x.shape == node.shape:
        return x
    if made(x, expand):
        return fitted(x.inputs[0], node.shape)
    if made(x, reshape) and x.shape[:1] == (1,):
        return fitted(without_leading(x), node.shape)
    return None


@rule("permute")
def _permute(node: Node) -> Node | None:
    (x,), axes = node.inputs, node.attrs.axes
    long = [k for k in axes if x.shape[k] != 1]
    if long == sorted(long):  # nothing moves but axes of extent 1
        return reshaped(x, node.shape)
    if made(x, permute):
        inner = x.attrs.axes
        return build(permute, Permutation(tuple(inner[k] for k in axes)), x.inputs[0])
    if made(x, expand):
        source = x.inputs[0]
        if source.op is CONST:
            return fitted(source, node.shape)
        thin = reshaped(source, aligned(source, len(x.shape)))
        return fitted(build(permute, node.attrs, thin), node.shape)
    return None


# --- slice, pad, flip -----------------------------------------------------------------------------


def _sliced(x: Node, starts: Sequence[int], shape: Sequence[int], steps: Sequence[int]) -> Node:
    """The slice of a node that begins somewhere and has a shape."""
    stops = [s + (n - 1) * by + 1 if n else s for s, n, by in zip(starts, shape, steps, strict=True)]
    return build(slice_, Slice(tuple(starts), tuple(stops), tuple(steps)), x)


@rule("slice")
def _slice(node: Node) -> Node | None:
    (x,), a = node.inputs, node.attrs
    if x.shape == node.shape:
        return x
    if x.data is not None:
        return None
    if x.op is slice_:
        inner = x.attrs
        starts = [s + t * by for s, t, by in zip(inner.start, a.start, inner.step, strict=True)]
        steps = [by * of for by, of in zip(inner.step, a.step, strict=True)]
        return _sliced(x.inputs[0], starts, node.shape, steps)
    if x.op is expand:
        return _slice_of_expand(node, x)
    if x.op is concatenate:
        return _slice_of_parts(node, x)
    if x.op is pad_constant and not any(x.attrs.interior):
        inside = x.inputs[0]
        starts = [s - low for s, low in zip(a.start, x.attrs.low, strict=True)]
        ends = [s + (n - 1) * by for s, n, by in zip(starts, node.shape, a.step, strict=True)]
        if min(starts) >= 0 and all(end < n for end, n in zip(ends, inside.shape, strict=True)):
            return _sliced(inside, starts, node.shape, a.step)
    return None


def _slice_of_expand(node: Node, x: Node) -> Node:
    source, a = x.inputs[0], node.attrs
    first = len(x.shape) - len(source.shape)
    kept = [n if m != 1 else 1 for n, m in zip(node.shape[first:], source.shape, strict=True)]
    starts = [s if m != 1 else 0 for s, m in zip(a.start[first:], source.shape, strict=True)]
    steps = [by if m != 1 else 1 for by, m in zip(a.step[first:], source.shape, strict=True)]
    return fitted(_sliced(source, starts, kept, steps), node.shape)


def _slice_of_parts(node: Node, x: Node) -> Node | None:
    """A slice that lies in one of the tensors that are joined."""
    a, axis = node.attrs, x.attrs.axis
    first = a.start[axis]
    last = first + (node.shape[axis] - 1) * a.step[axis]
    place = 0
    for part in x.inputs:
        if place <= first and last < place + part.shape[axis]:
            starts = [s - place if k == axis else s for k, s in enumerate(a.start)]
            return _sliced(part, starts, node.shape, a.step)
        place += part.shape[axis]
    return None


@rule("pad_constant")
def _pad(node: Node) -> Node | None:
    (x, value), a = node.inputs, node.attrs
    if not (any(a.low) or any(a.high) or any(a.interior)):
        return x
    padding = number(value)
    if padding is not None and value.op is CONST:
        inside = x.inputs[0] if made(x, expand) else x
        if inside is value:
            return fitted(value, node.shape)
    if any(a.interior):
        return None
    if min((*a.low, *a.high)) < 0:  # what is cut off is cut off first
        starts = [max(0, -low) for low in a.low]
        kept = [n - s - max(0, -high) for n, s, high in zip(x.shape, starts, a.high, strict=True)]
        if min(kept) < 1:
            return None
        inner = _sliced(x, starts, kept, (1,) * len(kept))
        low, high = (tuple(max(0, n) for n in widths) for widths in (a.low, a.high))
        return build(pad_constant, Pad(low, high, a.interior), inner, value)
    if made(x, pad_constant) and x.inputs[1] is value and not any(x.attrs.interior):
        low, high = (tuple(n + m for n, m in zip(*w, strict=True)) for w in zip(a[:2], x.attrs[:2], strict=True))
        return build(pad_constant, Pad(low, high, a.interior), x.inputs[0], value)
    return None


@rule("flip")
def _flip(node: Node) -> Node | None:
    (x,), axes = node.inputs, node.attrs.axes
    long = tuple(k for k in axes if x.shape[k] != 1)
    if not long:
        return x
    if made(x, flip):
        once = set(long) ^ set(x.attrs.axes)
        return build(flip, Flip(tuple(sorted(once))), x.inputs[0])
    if made(x, expand):
        source = x.inputs[0]
        first = len(x.shape) - len(source.shape)
        inner = tuple(k - first for k in long if k >= first and source.shape[k - first] != 1)
        return fitted(build(flip, Flip(inner), source) if inner else source, node.shape)
    return build(flip, Flip(long), x) if long != axes else None


@rule("scatter_into")
def _scattered(node: Node) -> Node | None:
    """Zeros around updates that are added at places of an order, which are all in range, need not be: the k greatest
    elements' cotangents go where k of the elements lie, and the others are not put in order."""
    (x, indices, updates), a = node.inputs, node.attrs
    if not a.add or not made(updates, pad_constant) or not (made(indices, PICK) and made(indices.inputs[0], sort)):
        return None
    pad, value, along = updates.attrs, number(updates.inputs[1]), a.along
    if value != 0 or any(pad.interior) or min((*pad.low, *pad.high)) < 0 or updates.shape != along.taken(x, indices):
        return None
    own = range(along.axis, along.axis + len(indices.shape) - along.batch)
    if any(low or high for k, (low, high) in enumerate(zip(pad.low, pad.high, strict=True)) if k not in own):
        return None
    starts, kept = [0] * len(indices.shape), list(indices.shape)
    for k in own:
        starts[k - along.axis + along.batch] = pad.low[k]
        kept[k - along.axis + along.batch] -= pad.low[k] + pad.high[k]
    cut = _sliced(indices, starts, kept, (1,) * len(kept))
    return build(node.op, a, x, cut, updates.inputs[0])


# --- joining --------------------------------------------------------------------------------------


@rule("concatenate")
def _concatenate(node: Node) -> Node | None:
    axis = node.attrs.axis
    parts: list[Node] = []
    for x in node.inputs:
        inner = x.inputs if made(x, concatenate) and x.attrs.axis == axis else (x,)
        for part in inner:
            if part.shape[axis] == 0:
                continue
            together = _adjacent(parts[-1], part, axis) if parts else None
            if together is None:
                parts.append(part)
            else:
                parts[-1] = together
    if len(parts) == 1:
        return parts[0]
    return build(concatenate, Join(axis), *parts) if tuple(parts) != node.inputs else None


def _adjacent(x: Node, y: Node, axis: int) -> Node | None:
    """Two tensors that are joined, as one: the same number everywhere, or slices that follow one another."""
    if made(x, expand) and made(y, expand) and x.inputs[0] is y.inputs[0] and x.inputs[0].op is CONST:
        return fitted(x.inputs[0], (*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :]))
    if not (made(x, slice_) and made(y, slice_)) or x.inputs[0] is not y.inputs[0]:
        return None
    a, b = x.attrs, y.attrs
    follows = all(
        b.start[k] == s + x.shape[k] * a.step[k] if k == axis else b.start[k] == s for k, s in enumerate(a.start)
    )
    if not follows or a.step != b.step:
        return None
    shape = [n + y.shape[k] if k == axis else n for k, n in enumerate(x.shape)]
    return _sliced(x.inputs[0], a.start, shape, a.step)


# --- reductions -----------------------------------------------------------------------------------


@rule("sum", "prod", "max", "min", "logsumexp")
def _reduction(node: Node) -> Node | None:
    (x,), (axes, keepdims), op = node.inputs, node.attrs, node.op
    live = tuple(k for k in axes if x.shape[k] != 1)
    if not live:
        return converted(reshaped(x, node.shape), node.dtype)
    if any(x.shape[k] == 0 for k in live):
        return filled(1 if op.name == "prod" else 0, node) if op.name in ("sum", "prod") else None
    if live != axes and len(axes) < len(x.shape):
        return _without_units(node, live)
    if made(x, expand) and op.name in ("sum", "max", "min"):
        return _of_repeated(node, x)
    if made(x, permute):
        order = x.attrs.axes
        rest = [k for j, k in enumerate(order) if j not in axes]
        if rest == sorted(rest) and (not keepdims or len(rest) == 0):
            inner = build(op, Along(tuple(sorted(order[k] for k in axes)), False), x.inputs[0])
            return reshaped(inner, node.shape)
    if made(x, reshape) and len(axes) == len(x.shape):
        source = x.inputs[0]
        return reshaped(build(op, Along(tuple(range(len(source.shape))), False), source), node.shape)
    return None


def _without_units(node: Node, live: tuple[int, ...]) -> Node:
    """A reduction without the axes of extent 1 that it goes along."""
    (x,), (axes, keepdims) = node.inputs, node.attrs
    if keepdims:
        return build(node.op, Along(live, True), x)
    gone = [k for k in axes if k not in live]
    thin = reshaped(x, shapes.without(x.shape, gone))
    return build(node.op, Along(tuple(k - sum(g < k for g in gone) for k in live), False), thin)


def _of_repeated(node: Node, x: Node) -> Node | None:
    """A reduction over what is repeated: of what is repeated once, times how often it is."""
    source, (axes, keepdims) = x.inputs[0], node.attrs
    before = aligned(source, len(x.shape))
    repeated = [k for k in axes if before[k] == 1 != x.shape[k]]
    if not repeated:
        return None
    times = shapes.count(tuple(x.shape[k] for k in repeated))
    dtype = dtypes.float32 if node.dtype.is_float and node.dtype.bits == 16 else node.dtype
    if node.op.name == "sum" and dtype.differentiable and item(Constant.of(times, dtype)) != times:
        return None
    once = fitted(source, tuple(1 if k in repeated else n for k, n in enumerate(x.shape)))
    found = build(node.op, Along(axes, keepdims), once)
    if node.op.name != "sum":
        return found
    return converted(build(mul, None, converted(found, dtype), held(times, dtype)), node.dtype)


@rule("argmax", "argmin")
def _place(node: Node) -> Node | None:
    (x,), axes = node.inputs, node.attrs.axes
    live = tuple(k for k in axes if x.shape[k] != 1)
    if not live:
        return filled(0, node)
    return _without_units(node, live) if live != axes and len(axes) < len(x.shape) else None


# --- results of several ---------------------------------------------------------------------------


VALUES = frozenset({CUSTOM, CHECKPOINT})  # whose results are their first inputs


@rule("pick")
def _pick(node: Node) -> Node | None:
    (several,) = node.inputs
    return several.inputs[node.attrs.place] if several.op in VALUES else None
