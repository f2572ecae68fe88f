"""The three products that convolutions are made of: `conv`, and its transposes in x and in the weight.

All have their groups as an axis: x is batch × groups × channels × space, the weight groups × out × channels × kernel;
a batch of weights is then more groups. Of the three tensors of a convolution each is such a product of the other two:
the derivatives of all three ops are these ops again. These are cross-correlations: the kernel is not turned around.

Over one or two axes, floats go to the array instructions; what those cannot say is summed element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import wide
from eshkol.ops.movement import permute, reshape
from eshkol.ops.row import Aval, Choice, HasAval, Linear, Macro, Op, Pull, Shape, Value, primitive, sample

GROUP = "convolution"
_NUMBERS = ("int", "float", "complex")
_COUNTED = 1 << 32  # the array instruction counts elements in 32 bits

Numbers = int | Sequence[int]  # one for all spatial axes, or one for each


# --- numbers per axis -----------------------------------------------------------------------------


def each(given: Numbers, count: int, what: str, least: int = 1) -> tuple[int, ...]:
    """One integer per spatial axis, of one for all or of as many as there are."""
    found = tuple(given) if isinstance(given, Sequence) else (given,) * count
    if len(found) != count or any(isinstance(n, bool) or not isinstance(n, int) for n in found):
        raise ShapeError(f"the {what} {given!r} is neither an integer nor {count} of them, one per spatial axis")
    if any(n < least for n in found):
        raise ShapeError(f"the {what} {given!r} has a number below {least}")
    return found


def reach(extent: int, dilation: int) -> int:
    """How far a kernel reaches whose places lie `dilation` apart; the same of an input spread out."""
    return dilation * (extent - 1) + 1


class Geometry(NamedTuple):
    """Where windows lie, per spatial axis: `input_dilation` spreads the input out, with zeros in between."""

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]  # before and after; negative: cut off
    dilation: tuple[int, ...]
    input_dilation: tuple[int, ...]

    def outputs(self, space: Shape, kernel: Shape) -> Shape:
        """How many windows there are."""
        found = []
        for k, (extent, size) in enumerate(zip(space, kernel, strict=True)):
            room = (reach(extent, self.input_dilation[k]) if extent else 0) + sum(self.padding[k])
            found.append(max(0, (room - reach(size, self.dilation[k])) // self.stride[k] + 1))
        return tuple(found)


# --- the one primitive ----------------------------------------------------------------------------


def _infer_conv(a: Geometry, x: HasAval, weight: HasAval) -> Aval:
    if len(x.shape) != len(weight.shape) or len(x.shape) != 3 + len(a.stride):
        raise ShapeError(
            f"shapes {list(x.shape)} and {list(weight.shape)} do not have three axes before {len(a.stride)} of space",
            hint="x is batch × groups × channels × space, weight groups × out × channels × kernel",
        )
    if x.shape[1:3] != (weight.shape[0], weight.shape[2]):
        raise ShapeError(f"groups and channels of {list(x.shape)} and {list(weight.shape)} do not fit")
    return Aval((*x.shape[:2], weight.shape[1], *a.outputs(x.shape[3:], weight.shape[3:])), x.dtype)


def _conv(a: Geometry, x: Any, weight: Any) -> Any:
    x, weight = wide(x), wide(weight)
    kernel = weight.shape[3:]
    out = a.outputs(x.shape[3:], kernel)
    if 0 in (*out, *kernel, len(weight)):
        return np.zeros((*x.shape[:2], weight.shape[1], *out), x.dtype)
    # Only what windows see: zeros, and the input where it lies among them.
    spans = [s * (p - 1) + reach(k, d) for s, p, k, d in zip(a.stride, out, kernel, a.dilation, strict=True)]
    seen = np.zeros((*x.shape[:3], *spans), x.dtype)
    target: list[Any] = [...]
    source: list[Any] = [...]
    for span, extent, (before, _), spread in zip(spans, x.shape[3:], a.padding, a.input_dilation, strict=True):
        first, last = max(0, -(before // spread)), min(extent, (span - 1 - before) // spread + 1)
        source.append(slice(first, max(first, last)))
        target.append(slice(first * spread + before, max(0, (last - 1) * spread + before + 1), spread))
    seen[tuple(target)] = x[tuple(source)]
    axes = tuple(range(3, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(
        seen, [reach(k, d) for k, d in zip(kernel, a.dilation, strict=True)], axes
    )
    steps: list[Any] = [..., *(slice(None, None, step) for step in (*a.stride, *a.dilation))]
    summed = [1, *range(2 + len(kernel), 2 + 2 * len(kernel))], [1, *range(2, 2 + len(kernel))]
    groups = [np.tensordot(windows[tuple(steps)][:, g], weight[g], summed) for g in range(len(weight))]
    return np.moveaxis(np.stack(groups, 1), -1, 2)


def _transpose_conv(a: Geometry, ct: Any, k: int, x: Any, weight: Any) -> Any:
    if k == 0:
        return conv_input(ct, weight, x.shape[3:], *a)
    return conv_weight(x, ct, weight.shape[3:], *a)


def _batch_conv(a: Geometry, inputs: Any, batched: Any) -> Any:
    """More examples where only x is batched, more outputs where only the weight is, more groups where both are."""
    x, weight = inputs
    if not batched[1]:
        found = conv(reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])), weight, *a)
        return reshape(found, (*x.shape[:2], *found.shape[1:]))
    size, groups, outs = weight.shape[:3]
    if not batched[0]:
        turned = permute(weight, (1, 0, *range(2, weight.ndim)))
        found = conv(x, reshape(turned, (groups, size * outs, *weight.shape[3:])), *a)
        parted = reshape(found, (x.shape[0], groups, size, outs, *found.shape[3:]))
        return permute(parted, (2, 0, 1, *range(3, parted.ndim)))
    turned = permute(x, (1, 0, *range(2, x.ndim)))
    merged = reshape(turned, (x.shape[1], size * groups, *x.shape[3:]))
    found = conv(merged, reshape(weight, (size * groups, *weight.shape[2:])), *a)
    parted = reshape(found, (x.shape[1], size, groups, *found.shape[2:]))
    return permute(parted, (1, 0, *range(2, parted.ndim)))


def read_inside(e: Any, read: Any, index: list[Any], conditions: list[Any], otherwise: Any) -> Any:
    """An element of an input where all conditions hold, else another value."""
    if not conditions:
        return read(index)
    valid = conditions[0]
    for condition in conditions[1:]:
        valid = e.op("AND", valid, condition)
    return e.read_if(valid, read, index, otherwise)


def _pull_conv(e: Any, a: Geometry, i: Any, x: Any, weight: Any) -> Any:
    example, group, out, *window = i
    space, kernel = x.shape[3:], weight.shape[3:]
    windows = a.outputs(space, kernel)
    exact = dtypes.float32 if x.dtype.is_float and x.dtype.bits == 16 else x.dtype

    def body(j: Any) -> Any:
        channel, *offsets = j
        places, conditions = [], []
        for n, (extent, (before, _)) in enumerate(zip(space, a.padding, strict=True)):
            spread = a.input_dilation[n]
            place = window[n] * a.stride[n] + offsets[n] * a.dilation[n]
            place = place - before if before > 0 else place + -before
            last = (windows[n] - 1) * a.stride[n] + reach(kernel[n], a.dilation[n]) - 1 - before
            if before > 0:
                conditions.append(e.compare("GE", place, 0))
            if last >= reach(extent, spread):
                conditions.append(e.compare("LT", place, reach(extent, spread)))
            if spread > 1:
                conditions.append(e.compare("EQ", place % spread, 0))
            places.append(place // spread)
        value = read_inside(e, x, [example, group, channel, *places], conditions, 0)
        return e.op("MUL", e.convert(value, exact), e.convert(weight([group, out, channel, *offsets]), exact))

    return e.convert(e.reduce("ADD", [x.shape[2], *kernel], body, 0), x.dtype)


# --- as array instructions ------------------------------------------------------------------------


def _edges(a: Geometry, space: Shape, kernel: Shape) -> tuple[tuple[int, int], ...] | None:
    """The padding without what no window reaches; None where the instructions do not have it."""
    pads = tuple((before, max(after, 0)) for before, after in a.padding)
    same = a._replace(padding=pads).outputs(space, kernel) == a.outputs(space, kernel)
    return pads if same and all(before >= 0 for before, _ in pads) else None


def instruction_fits(a: Geometry, x: HasAval, weight: HasAval) -> bool:
    """Whether array instructions say a convolution of these: floats over one or two axes, nothing cut off or spread."""
    space, kernel = x.shape[3:], weight.shape[3:]
    if not x.dtype.is_float or len(space) > 2 or {*a.input_dilation} != {1}:
        return False
    result = (*x.shape[:2], weight.shape[1], *a.outputs(space, kernel))
    sizes = [shapes.count(s) for s in (x.shape, weight.shape, result)]
    return all(0 < n < _COUNTED for n in sizes) and _edges(a, space, kernel) is not None


def operands(a: Geometry, x: Shape, weight: Shape) -> dict[str, Any]:
    """The counts of the instruction; one spatial axis is an image of height 1."""
    line: tuple[int, ...] = (1,) * (2 - len(a.stride))
    height, width = line + tuple(x[3:])
    kernel_h, kernel_w = line + tuple(weight[3:])
    edges = _edges(a, x[3:], weight[3:])
    assert edges is not None
    pads = ((0, 0),) * len(line) + edges
    return {
        "batch": x[0], "in_channels": x[1] * x[2], "out_channels": weight[0] * weight[1], "height": height,
        "width": width, "kernel_h": kernel_h, "kernel_w": kernel_w, "stride": (*line, *a.stride),
        "padding": (*(before for before, _ in pads), *(after for _, after in pads)),
        "dilation": (*line, *a.dilation), "groups": x[1],
    }  # fmt: skip


def _macro_conv(b: Any, a: Geometry, out: Any, x: Any, weight: Any) -> None:
    b.conv2d(out.ty, out.address, x.address, weight.address, **operands(a, x.shape, weight.shape))


# --- the products ---------------------------------------------------------------------------------


@primitive(
    group=GROUP, promote="number", dtypes=_NUMBERS, infer=_infer_conv, reference=_conv, method=False,
    derivative=Linear(_transpose_conv), batch=_batch_conv,
    lower=Choice(instruction_fits, Macro(_macro_conv), Pull(_pull_conv)),
    work=lambda node, of: 2 * node.size * shapes.count(node.inputs[1].shape[2:]),
    samples=(
        sample((2, 1, 2, 5), (1, 3, 2, 2), stride=1, padding=1),
        sample((1, 2, 2, 5, 4), (2, 1, 2, 2, 3), stride=2, padding=((1, 0), (0, 1))),
        sample((1, 2, 1, 4), (2, 2, 1, 2), stride=2, padding=((2, -1),), dilation=2, input_dilation=3),
        sample((1, 1, 1, 3, 2, 2), (1, 1, 1, 2, 1, 2)),
        sample((0, 1, 1, 3), (1, 2, 1, 2)), sample((1, 1, 2, 2), (1, 1, 2, 3)),
    ),
)  # fmt: skip
def conv(
    x: Value,
    weight: Value,
    stride: Numbers = 1,
    padding: int | Sequence[int | tuple[int, int]] = 0,
    dilation: Numbers = 1,
    input_dilation: Numbers = 1,
) -> Geometry:
    """Cross-correlation of x (batch × groups × channels × space) with groups × out × channels × kernel.

    Padding is before and after each axis, negative to cut off; `input_dilation` puts zeros between the elements of x.
    """
    count = x.ndim - 3
    if count < 1:
        raise ShapeError(f"shape {list(x.shape)} has no spatial axis", hint="x is batch × groups × channels × space")
    return Geometry(
        each(stride, count, "stride"), pairs(padding, count), each(dilation, count, "dilation"),
        each(input_dilation, count, "input dilation"),
    )  # fmt: skip


def pairs(given: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Padding before and after each axis."""
    found = tuple(given) if isinstance(given, Sequence) else (given,) * count
    pairs = tuple(tuple(n) if isinstance(n, Sequence) else (n, n) for n in found)
    if len(pairs) != count or any(len(p) != 2 or not all(type(n) is int for n in p) for p in pairs):
        raise ShapeError(f"the padding {given!r} is neither an integer nor {count} of them (or of pairs)")
    return pairs


# --- its transposes -------------------------------------------------------------------------------


class Towards(NamedTuple):
    """A convolution's geometry, and the extents of the tensor that it is transposed towards."""

    extents: tuple[int, ...]
    geometry: Geometry


def _after(wanted: int, a: tuple[int, int, int, int], extent: int, size: int) -> int:
    """How much padding after the input gives so many windows; a is (stride, padding before, dilation, spread)."""
    stride, before, dilation, spread = a
    return (wanted - 1) * stride + reach(size, dilation) - (reach(extent, spread) if extent else 0) - before


def towards_input(a: Towards, windows: Shape, kernel: Shape) -> Geometry:
    """The convolution of the cotangent with the kernel turned around that gives x's.

    p·stride = m·spread + (size - 1 - j)·dilation - before', for window p, place m of x, place j of the kernel.
    """
    g, stride, spread = a.geometry, a.geometry.input_dilation, a.geometry.stride
    before = [reach(kernel[n], g.dilation[n]) - 1 - g.padding[n][0] for n in range(len(kernel))]
    steps = zip(stride, before, g.dilation, spread, strict=True)
    after = [_after(a.extents[n], s, windows[n], kernel[n]) for n, s in enumerate(steps)]
    return Geometry(stride, tuple(zip(before, after, strict=True)), g.dilation, spread)


def towards_weight(a: Towards, space: Shape, windows: Shape) -> Geometry:
    """The convolution of x with the cotangent as its kernel that gives the weight's, examples as channels."""
    g = a.geometry
    before = [first for first, _ in g.padding]
    steps = zip(g.dilation, before, g.stride, g.input_dilation, strict=True)
    after = [_after(a.extents[n], s, space[n], windows[n]) for n, s in enumerate(steps)]
    return Geometry(g.dilation, tuple(zip(before, after, strict=True)), g.stride, g.input_dilation)


def _infer_towards(a: Towards, ct: HasAval, x: Shape, weight: Shape) -> None:
    """Refuse a cotangent that is not of a convolution of these shapes."""
    wanted = _infer_conv(a.geometry, Aval(x, ct.dtype), Aval(weight, ct.dtype)).shape
    if wanted != ct.shape:
        raise ShapeError(f"a convolution of {list(x)} with {list(weight)} has the shape {list(wanted)}")


def _infer_input(a: Towards, ct: HasAval, weight: HasAval) -> Aval:
    if len(weight.shape) != 3 + len(a.extents) or len(ct.shape) != len(weight.shape):
        raise ShapeError(f"shapes {list(ct.shape)} and {list(weight.shape)} have not {3 + len(a.extents)} axes")
    found = (*ct.shape[:2], weight.shape[2], *a.extents)
    _infer_towards(a, ct, found, weight.shape)
    return Aval(found, ct.dtype)


def _infer_weight(a: Towards, x: HasAval, ct: HasAval) -> Aval:
    if len(x.shape) != 3 + len(a.extents) or len(ct.shape) != len(x.shape):
        raise ShapeError(f"shapes {list(x.shape)} and {list(ct.shape)} have not {3 + len(a.extents)} axes")
    found = (x.shape[1], ct.shape[2], x.shape[2], *a.extents)
    _infer_towards(a, ct, x.shape, found)
    return Aval(found, x.dtype)


def _space(x: Any) -> tuple[int, ...]:
    return tuple(range(3, len(x.shape)))


def _input_array(a: Towards, ct: Any, weight: Any) -> Any:
    turned = np.flip(weight, _space(weight)).swapaxes(1, 2)
    return _conv(towards_input(a, ct.shape[3:], weight.shape[3:]), ct, turned)


def _weight_array(a: Towards, x: Any, ct: Any) -> Any:
    found = _conv(
        towards_weight(a, x.shape[3:], ct.shape[3:]),
        x.transpose(2, 1, 0, *_space(x)), ct.transpose(1, 2, 0, *_space(x)),
    )  # fmt: skip
    return found.transpose(1, 2, 0, *_space(x))


class _Turned:
    """An input as pull code reads it, with its first axes in another order and maybe its space turned around."""

    def __init__(self, read: Any, order: tuple[int, int, int], *, around: bool = False) -> None:
        self.read, self.order, self.around = read, order, around
        self.shape = (*(read.shape[k] for k in order), *read.shape[3:])
        self.dtype, self.size = read.dtype, shapes.count(self.shape)

    def __call__(self, index: Any) -> Any:
        first: list[Any] = [None, None, None]
        for k, place in zip(self.order, index[:3], strict=True):
            first[k] = place
        space = list(index[3:])
        if self.around:
            space = [extent - 1 - place for extent, place in zip(self.shape[3:], space, strict=True)]
        return self.read([*first, *space])


class Form(NamedTuple):
    """A convolution or a transpose of one as a plain one: which axes of its inputs and its result are whose.

    Of a plain one x has the first axes (examples, groups, channels), the weight (groups, outs, channels), and the
    result (examples, groups, outs); each number here is the axis that has this part.
    """

    geometry: Geometry
    x: tuple[int, int, int] = (0, 1, 2)
    weight: tuple[int, int, int] = (0, 1, 2)
    result: tuple[int, int, int] = (0, 1, 2)
    around: bool = False  # whether the kernel is turned around


def _form_of_input(a: Towards, ct: HasAval, weight: HasAval) -> Form:
    return Form(towards_input(a, ct.shape[3:], weight.shape[3:]), weight=(0, 2, 1), around=True)


def _form_of_weight(a: Towards, x: HasAval, ct: HasAval) -> Form:
    geometry = towards_weight(a, x.shape[3:], ct.shape[3:])
    return Form(geometry, x=(2, 1, 0), weight=(1, 2, 0), result=(2, 0, 1))


def _pull_input(e: Any, a: Towards, i: Any, ct: Any, weight: Any) -> Any:
    return _pull_form(e, _form_of_input(a, ct, weight), i, ct, weight)


def _pull_weight(e: Any, a: Towards, i: Any, x: Any, ct: Any) -> Any:
    return _pull_form(e, _form_of_weight(a, x, ct), i, x, ct)


def _pull_form(e: Any, form: Form, i: Any, x: Any, weight: Any) -> Any:
    at = [*(i[axis] for axis in form.result), *i[3:]]
    return _pull_conv(e, form.geometry, at, _Turned(x, form.x), _Turned(weight, form.weight, around=form.around))


def _input_fits(a: Towards, ct: HasAval, weight: HasAval) -> bool:
    return instruction_fits(a.geometry, Aval((*ct.shape[:2], weight.shape[2], *a.extents), ct.dtype), weight)


def _weight_fits(a: Towards, x: HasAval, ct: HasAval) -> bool:
    return instruction_fits(a.geometry, x, Aval((x.shape[1], ct.shape[2], x.shape[2], *a.extents), x.dtype))


def _macro_input(b: Any, a: Towards, out: Any, ct: Any, weight: Any) -> None:
    counts = operands(a.geometry, out.shape, weight.shape)
    b.conv2d_grad_input(out.ty, out.address, ct.address, weight.address, **counts)


def _macro_weight(b: Any, a: Towards, out: Any, x: Any, ct: Any) -> None:
    counts = operands(a.geometry, x.shape, out.shape)
    b.conv2d_grad_weight(out.ty, out.address, x.address, ct.address, **counts)


def _transpose_input(a: Towards, ct: Any, k: int, gradient: Any, weight: Any) -> Any:
    if k == 0:
        return conv(ct, weight, *a.geometry)
    return conv_weight(ct, gradient, weight.shape[3:], *a.geometry)


def _transpose_weight(a: Towards, ct: Any, k: int, x: Any, gradient: Any) -> Any:
    if k == 0:
        return conv_input(gradient, ct, x.shape[3:], *a.geometry)
    return conv(x, ct, *a.geometry)


def _merged(x: Any, axis: int) -> Any:
    """The batch (axis 0) as part of the axis that is `axis` without it."""
    turned = permute(x, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
    return reshape(
        turned, (*turned.shape[:axis], turned.shape[axis] * turned.shape[axis + 1], *turned.shape[axis + 2 :])
    )


def _parted(x: Any, axis: int, size: int, each: int) -> Any:
    """The reverse: the first `size` of an axis as axis 0, which leaves `each`."""
    apart = reshape(x, (*x.shape[:axis], size, each, *x.shape[axis + 1 :]))
    return permute(apart, (axis, *(k for k in range(apart.ndim) if k != axis)))


def _batch_input(a: Towards, inputs: Any, batched: Any) -> Any:
    """More examples where only ct is batched, more channels where only the weight is, more groups where both are."""
    ct, weight = inputs
    how = (a.extents, *a.geometry)
    if not batched[1]:
        return _parted(conv_input(_merged(ct, 0), weight, *how), 0, *ct.shape[:2])
    size = weight.shape[0]
    if not batched[0]:
        return _parted(conv_input(ct, _merged(weight, 2), *how), 2, size, weight.shape[3])
    return _parted(conv_input(_merged(ct, 1), _merged(weight, 0), *how), 1, size, ct.shape[2])


def _batch_weight(a: Towards, inputs: Any, batched: Any) -> Any:
    """More channels where only x is batched, more outputs where only ct is, more groups where both are."""
    x, ct = inputs
    how = (a.extents, *a.geometry)
    if batched[0] and batched[1]:
        return _parted(conv_weight(_merged(x, 1), _merged(ct, 1), *how), 0, x.shape[0], x.shape[2])
    if batched[0]:
        return _parted(conv_weight(_merged(x, 2), ct, *how), 2, x.shape[0], x.shape[3])
    return _parted(conv_weight(x, _merged(ct, 2), *how), 1, ct.shape[0], ct.shape[3])


@primitive(
    group=GROUP, promote="number", dtypes=_NUMBERS, infer=_infer_input, reference=_input_array, method=False,
    derivative=Linear(_transpose_input), batch=_batch_input,
    lower=Choice(_input_fits, Macro(_macro_input), Pull(_pull_input)),
    work=lambda node, of: 2 * node.inputs[0].size * shapes.count(node.inputs[1].shape[2:]),
    samples=(
        sample((2, 1, 3, 6), (1, 3, 2, 2), space=(5,), padding=1),
        sample((1, 2, 1, 3, 2), (2, 1, 2, 2, 3), space=(5, 4), stride=2, padding=((1, 0), (0, 1)), dilation=(1, 1)),
        sample((1, 2, 2, 5), (2, 2, 1, 2), space=(4,), stride=2, padding=((2, -1),), dilation=2, input_dilation=3),
        sample((1, 1, 1, 2, 2, 1), (1, 1, 1, 2, 1, 2), space=(3, 2, 2)),
    ),
)  # fmt: skip
def conv_input(
    ct: Value, weight: Value, space: Sequence[int], stride: Numbers = 1,
    padding: int | Sequence[int | tuple[int, int]] = 0, dilation: Numbers = 1, input_dilation: Numbers = 1,
) -> Towards:  # fmt: skip
    """The transpose of conv in x: what a cotangent of the result gives x, whose extents are `space`."""
    return _towards(ct, space, stride, padding, dilation, input_dilation)


@primitive(
    group=GROUP, promote="number", dtypes=_NUMBERS, infer=_infer_weight, reference=_weight_array, method=False,
    derivative=Linear(_transpose_weight), batch=_batch_weight,
    lower=Choice(_weight_fits, Macro(_macro_weight), Pull(_pull_weight)),
    work=lambda node, of: 2 * node.inputs[1].size * shapes.count(node.shape[2:]),
    samples=(
        sample((2, 1, 2, 5), (2, 1, 3, 6), kernel=(2,), padding=1),
        sample((1, 2, 2, 5, 4), (1, 2, 1, 3, 2), kernel=(2, 3), stride=2, padding=((1, 0), (0, 1))),
        sample((1, 2, 1, 4), (1, 2, 2, 5), kernel=(2,), stride=2, padding=((2, -1),), dilation=2, input_dilation=3),
        sample((1, 1, 1, 3, 2, 2), (1, 1, 1, 2, 2, 1), kernel=(2, 1, 2)),
    ),
)  # fmt: skip
def conv_weight(
    x: Value, ct: Value, kernel: Sequence[int], stride: Numbers = 1,
    padding: int | Sequence[int | tuple[int, int]] = 0, dilation: Numbers = 1, input_dilation: Numbers = 1,
) -> Towards:  # fmt: skip
    """The transpose of conv in its weight: what a cotangent of the result gives the weight, of extents `kernel`."""
    return _towards(x, kernel, stride, padding, dilation, input_dilation)


def _towards(
    x: Value, extents: Sequence[int], stride: Numbers, padding: Any, dilation: Numbers, input_dilation: Numbers
) -> Towards:
    count = x.ndim - 3
    if count < 1:
        raise ShapeError(f"shape {list(x.shape)} has no spatial axis", hint="x is batch × groups × channels × space")
    return Towards(
        each(extents, count, "extents", 0),
        Geometry(
            each(stride, count, "stride"), pairs(padding, count), each(dilation, count, "dilation"),
            each(input_dilation, count, "input dilation"),
        ),
    )  # fmt: skip


FORMS: dict[Op, Callable[..., Form]] = {  # of all three, by attributes and inputs
    conv: lambda a, x, weight: Form(a), conv_input: _form_of_input, conv_weight: _form_of_weight,
}  # fmt: skip
