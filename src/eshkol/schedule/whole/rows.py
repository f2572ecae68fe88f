"""The rows that have operations of StableHLO to themselves: one line of a table each.

Comes in: a node and the values of its inputs. Goes out: its result, or its results. A row that stands here and has
scalar code, too, does so because a product, a window or an update is known to the machine as a whole; all others are
run by their scalar code (`replay.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.graph.custom import BARRIER, CHECKPOINT, CUSTOM
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.correlation import Geometry, towards_input, towards_weight
from eshkol.ops.movement import reshape
from eshkol.ops.padding import BORDERED
from eshkol.ops.row import Op
from eshkol.ops.shapes import count
from eshkol.ops.structural import MARK, NUMBERS, PAIRS, STOP, TO
from eshkol.schedule.whole.arrays import PLACE, Arrays
from eshkol.schedule.whole.text import Value, numbers

Result = Value | list[Value]
Code = Callable[..., Result]


def _same(t: Arrays, node: Node, x: Value, *others: Value) -> Value:
    return t.reshape(x, node.shape)


def _each(t: Arrays, node: Node, *xs: Value) -> Result:
    return list(xs) if node.outs is not None else xs[0]


def _spread(t: Arrays, node: Node, x: Value) -> Value:
    return t.spread(x, node.shape)


def _pairs(t: Arrays, node: Node, x: Value) -> Value:
    parts = [t.op(name, (x,), x.shape, node.dtype) for name in ("real", "imag")]
    return t.joined([t.reshape(part, (*x.shape, 1)) for part in parts], len(x.shape))


def _numbers(t: Arrays, node: Node, x: Value) -> Value:
    lead = x.shape[:-1]
    parts = []
    for k in range(2):
        part = t.slice(x, [0] * len(lead) + [k], [*lead, k + 1], [1] * len(x.shape))
        parts.append(t.reshape(part, lead))
    return t.op("complex", parts, lead, node.dtype)


def _wide(t: Arrays, x: Value) -> Value:
    """As 16-bit floats are multiplied and added up: in 32 bits."""
    return t.converted(x, dtypes.float32) if x.dtype.is_float and x.dtype.bits == 16 else x


# --- products -----------------------------------------------------------------------------------------


def _product(t: Arrays, node: Node, x: Value, y: Value) -> Value:
    if not count(node.shape) or not x.shape[-1]:
        return t.constant(0, node.shape, node.dtype)
    batch = node.shape[:-2]
    x, y = (t.spread(_wide(t, v), (*batch, *v.shape[-2:])) for v in (x, y))
    n = len(batch)
    lead = ", ".join(map(str, range(n)))
    batching = f"lhs_batching_dimensions = [{lead}], rhs_batching_dimensions = [{lead}], " if n else ""
    how = f"#stablehlo.dot<{batching}lhs_contracting_dimensions = [{n + 1}], rhs_contracting_dimensions = [{n}]>"
    exact = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
    found = t.op("dot_general", (x, y), node.shape, x.dtype, f"dot_dimension_numbers = {how}, {exact}")
    return t.converted(found, node.dtype)


def _convolution(t: Arrays, x: Value, weight: Value, a: Geometry) -> Value:
    """Of batch × groups × channels × space with groups × out × channels × kernel, as `conv` has it."""
    space, kernel, dtype = x.shape[3:], weight.shape[3:], x.dtype
    shape = (*x.shape[:2], weight.shape[1], *a.outputs(space, kernel))
    if not count(shape) or not count(x.shape) or not count(weight.shape):
        return t.constant(0, shape, dtype)
    x, weight = _wide(t, x), _wide(t, weight)
    groups, channels = x.shape[1:3]
    outs = weight.shape[1]
    x = t.reshape(x, (x.shape[0], groups * channels, *space))
    weight = t.reshape(weight, (groups * outs, channels, *kernel))
    named = ", ".join(map(str, range(len(space))))
    # Windows that would begin after what the padding leaves are not asked for: it may be cut off there.
    exact = []
    for k, n in enumerate(shape[3:]):
        seen = (n - 1) * a.stride[k] + (kernel[k] - 1) * a.dilation[k] + 1
        spread = (space[k] - 1) * a.input_dilation[k] + 1
        exact.append((a.padding[k][0], seen - spread - a.padding[k][0]))
    padding = ", ".join(f"[{low}, {high}]" for low, high in exact)
    how = f"dimension_numbers = #stablehlo.conv<[b, f, {named}]x[o, i, {named}]->[b, f, {named}]>, "
    how += f"window_strides = {numbers(a.stride)}, padding = dense<[{padding}]> : tensor<{len(space)}x2xi64>, "
    how += f"lhs_dilation = {numbers(a.input_dilation)}, rhs_dilation = {numbers(a.dilation)}, "
    how += f"feature_group_count = {groups} : i64, batch_group_count = 1 : i64, "
    how += "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
    found = t.op("convolution", (x, weight), (shape[0], groups * outs, *shape[3:]), x.dtype, how)
    return t.converted(t.reshape(found, shape), dtype)


def _conv(t: Arrays, node: Node, x: Value, weight: Value) -> Value:
    return _convolution(t, x, weight, node.attrs)


def _conv_input(t: Arrays, node: Node, ct: Value, weight: Value) -> Value:
    rank = len(weight.shape)
    turned = t.transpose(t.reverse(weight, range(3, rank)), (0, 2, 1, *range(3, rank)))
    return _convolution(t, ct, turned, towards_input(node.attrs, ct.shape[3:], weight.shape[3:]))


def _conv_weight(t: Arrays, node: Node, x: Value, ct: Value) -> Value:
    space = range(3, len(x.shape))
    a = towards_weight(node.attrs, x.shape[3:], ct.shape[3:])
    found = _convolution(t, t.transpose(x, (2, 1, 0, *space)), t.transpose(ct, (1, 2, 0, *space)), a)
    return t.transpose(found, (1, 2, 0, *space))


# --- where elements lie ---------------------------------------------------------------------------------


def _concatenate(t: Arrays, node: Node, *xs: Value) -> Value:
    return t.joined(xs, node.attrs.axis)


def _pad(t: Arrays, node: Node, x: Value, number: Value) -> Value:
    return t.pad(x, number, node.attrs.low, node.attrs.high, node.attrs.interior)


def _bordered(t: Arrays, node: Node, x: Value) -> Value:
    """Along one axis after another: both ends, which are parts of the array, joined to it."""
    low, high, mode = node.attrs

    def end(axis: int, start: int, width: int) -> list[Value]:
        if not width:
            return []
        first, last = [0] * len(x.shape), list(x.shape)
        first[axis], last[axis] = start, start + (1 if mode == "replicate" else width)
        part = t.slice(x, first, last, [1] * len(last))
        if mode == "reflect":
            return [t.reverse(part, [axis])]
        return [t.spread(part, (*x.shape[:axis], width, *x.shape[axis + 1 :]))]

    for axis, (before, behind) in enumerate(zip(low, high, strict=True)):
        n = x.shape[axis]
        starts = {"reflect": (1, n - 1 - behind), "circular": (n - before, 0), "replicate": (0, n - 1)}[mode]
        parts = [*end(axis, starts[0], before), x, *end(axis, starts[1], behind)]
        x = t.joined(parts, axis) if len(parts) > 1 else x
    return x


def _positions(t: Arrays, node: Node, indices: Value, extent: int) -> Value:
    """Positions from 0 on; one that is out of range is noted."""
    if indices.dtype is dtypes.uint64:
        indices = t.same("minimum", indices, t.filled(dtypes.int64.limits()[1], indices))
    place = t.converted(indices, PLACE)
    if indices.dtype.signed:
        around = t.same("add", place, t.filled(extent, place))
        place = t.select(t.compare("LT", place, t.filled(0, place)), around, place)
    low, high = t.compare("LT", place, t.filled(0, place)), t.compare("GE", place, t.filled(extent, place))
    t.refuse(t.same("or", low, high), (node, extent))
    return t.same("minimum", t.same("maximum", place, t.filled(0, place)), t.filled(max(extent - 1, 0), place))


def _scatter(operation: Callable[[Any], str | None]) -> Code:
    """Updates put or combined into x, in the order in which they stand."""

    def code(t: Arrays, node: Node, x: Value, indices: Value, updates: Value) -> Value:
        along, how = node.attrs.along, operation(node.attrs)
        _, _, extent, behind = along.parts(x.shape)
        taken = along.taken(x, indices)
        place = _positions(t, node, indices, extent)
        if not count(taken):
            return x
        new, held = _wide(t, t.spread(updates, taken)), _wide(t, x)
        # The flat position of each element that is updated, from its places along all axes.
        first, last = along.axis, along.axis + len(indices.shape) - along.batch
        own = (*range(along.batch), *range(first, last))
        position = t.spread(place, taken, own)
        position = t.same("multiply", position, t.filled(count(behind), position))
        axes = [*range(first), *range(last, len(taken))]
        strides = [count(x.shape[k + 1 :]) for k in range(len(x.shape)) if k != first]
        for axis, stride in zip(axes, strides, strict=True):
            if taken[axis] > 1:
                along_axis = t.iota(axis, taken)
                step = t.same("multiply", along_axis, t.filled(stride, along_axis))
                position = t.same("add", position, step)
        flat = t.reshape(held, (count(x.shape),))
        flat = t.put_in_order(flat, position, new) if how is None else t.put(flat, position, new, how)
        return t.converted(t.reshape(flat, x.shape), x.dtype)

    return code


def _taken(t: Arrays, node: Node, x: Value, indices: Value) -> Value:
    """Whole rows where the axis is the first of a value, elements elsewhere."""
    a = node.attrs
    place = _positions(t, node, indices, x.shape[a.axis])
    shape = node.shape
    if not count(shape):
        return t.constant(0, shape, x.dtype)
    first, last = a.axis, a.axis + len(indices.shape) - a.batch
    offsets = [*range(a.batch, first), *range(last, len(shape))]
    sizes = [1 if k == a.axis or k < a.batch else n for k, n in enumerate(x.shape)]
    rank = len(indices.shape)
    how = f"#stablehlo.gather<offset_dims = [{', '.join(map(str, offsets))}], collapsed_slice_dims = [{a.axis}], "
    if a.batch:
        lead = ", ".join(map(str, range(a.batch)))
        how += f"operand_batching_dims = [{lead}], start_indices_batching_dims = [{lead}], "
    how += f"start_index_map = [{a.axis}], index_vector_dim = {rank}>"
    return t.op(
        "gather", (x, place), shape, x.dtype,
        f"dimension_numbers = {how}, slice_sizes = {numbers(sizes)}, indices_are_sorted = false",
    )  # fmt: skip


# --- order and transforms -------------------------------------------------------------------------------


def _sort(t: Arrays, node: Node, x: Value) -> Result:
    """NaN last; equal elements keep their order, also in a descending one, which compares the other way."""
    axis, descending = node.attrs
    order = t.iota(axis, x.shape)
    if not count(x.shape):
        return [x, order]
    with t.region() as lines:
        a, b = (Value(t.fresh(), (), x.dtype) for _ in range(2))
        i, j = (Value(t.fresh(), (), PLACE) for _ in range(2))
        t.line(f"^bb0({', '.join(f'{v.name}: {v.type}' for v in (a, b, i, j))}):")
        one, other = (b, a) if descending else (a, b)
        first = t.compare("LT", one, other)
        if x.dtype.is_float:
            open_end = t.same("and", t.compare("EQ", one, one), t.compare("NE", other, other))
            first = t.same("or", first, open_end)
        t.give([first])
    kinds = [(x.shape, x.dtype), (x.shape, PLACE)]
    return t.several("sort", (x, order), kinds, f"dimension = {axis} : i64, is_stable = true", [lines])


def _transform(t: Arrays, node: Node, x: Value) -> Value:
    axis, inverse = node.attrs
    if not count(x.shape):
        return x
    axes = [k for k in range(len(x.shape)) if k != axis] + [axis]
    turned = t.transpose(x, axes)
    kind, length = ("IFFT" if inverse else "FFT"), x.shape[axis]
    how = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {numbers([length])}"
    found = t.op("fft", (turned,), turned.shape, x.dtype, how)
    if inverse:  # without any factor
        found = t.same("multiply", found, t.filled(complex(length), found))
    return t.transpose(found, [axes.index(k) for k in range(len(axes))])


def _named(*ops: Op) -> tuple[str, ...]:
    return tuple(op.name for op in ops)


ROWS: dict[str, Code] = {
    **dict.fromkeys(_named(MARK, TO, STOP, reshape), _same),
    **dict.fromkeys(_named(BARRIER, CUSTOM, CHECKPOINT), _each),
    PAIRS.name: _pairs, NUMBERS.name: _numbers, "expand": _spread,
    "matrix_product": _product, "conv": _conv, "conv_input": _conv_input, "conv_weight": _conv_weight,
    "concatenate": _concatenate, "pad_constant": _pad, BORDERED.name: _bordered, "take": _taken,
    "scatter_into": _scatter(lambda a: "Sum" if a.add else None),
    "sort": _sort, "dft": _transform,
}  # fmt: skip


def arrays_of(result: Result) -> Sequence[Value]:
    """A result as a list."""
    return result if isinstance(result, list) else [result]
