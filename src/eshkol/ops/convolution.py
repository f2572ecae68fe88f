"""Convolutions over one, two or three spatial axes. Everything ends in `conv`, which is its own kind of transpose.

`conv` has its groups as an axis: x is batch × groups × channels × space, the weight groups × out × channels × kernel.
So the gradient of x is a conv of the cotangent with the weight turned around, that of the weight a conv of x with the
cotangent as its weight, and a batch of weights is more groups: no further attribute is needed for any of them.
As everywhere in machine learning, these are cross-correlations: the kernel is not turned around.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import wide
from eshkol.ops.movement import flip, permute, reshape
from eshkol.ops.row import Aval, Choice, HasAval, Linear, Macro, Pull, Shape, Value, composite, primitive, sample

GROUP = "convolution"
_NUMBERS = ("int", "float", "complex")
_COUNTED = 1 << 32  # the array instruction counts elements in 32 bits

Numbers = int | Sequence[int]  # one for all spatial axes, or one for each
Padding = int | str | Sequence[int | tuple[int, int]]


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


def _after(wanted: int, a: tuple[int, int, int, int], extent: int, size: int) -> int:
    """How much padding behind the input gives so many windows; a is (stride, padding before, dilation, spread)."""
    stride, before, dilation, spread = a
    return (wanted - 1) * stride + reach(size, dilation) - (reach(extent, spread) if extent else 0) - before


def _transpose_conv(a: Geometry, ct: Any, k: int, x: Any, weight: Any) -> Any:
    count = len(a.stride)
    axes, space = range(count), tuple(range(3, 3 + count))
    if k == 0:  # p·stride = m·spread + (size - 1 - j)·dilation - before', for window p, input place m, kernel place j
        stride, spread = a.input_dilation, a.stride
        turned = permute(flip(weight, space), (0, 2, 1, *space))
        before = [reach(weight.shape[3 + n], a.dilation[n]) - 1 - a.padding[n][0] for n in axes]
        steps = zip(stride, before, a.dilation, spread, strict=True)
        after = [_after(x.shape[3 + n], s, ct.shape[3 + n], weight.shape[3 + n]) for n, s in enumerate(steps)]
        return conv(ct, turned, stride, tuple(zip(before, after, strict=True)), a.dilation, spread)
    before = [first for first, _ in a.padding]
    steps = zip(a.dilation, before, a.stride, a.input_dilation, strict=True)
    after = [_after(weight.shape[3 + n], s, x.shape[3 + n], ct.shape[3 + n]) for n, s in enumerate(steps)]
    found = conv(
        permute(x, (2, 1, 0, *space)), permute(ct, (1, 2, 0, *space)),
        a.dilation, tuple(zip(before, after, strict=True)), a.stride, a.input_dilation,
    )  # fmt: skip
    return permute(found, (1, 2, 0, *space))


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


def _instruction_fits(a: Geometry, x: HasAval, weight: HasAval) -> bool:
    """Whether the array instruction says it: one or two axes, one group, windows counted from an even padding."""
    space, kernel = x.shape[3:], weight.shape[3:]
    before = tuple(first for first, _ in a.padding)
    if not x.dtype.is_float or x.shape[1] != 1 or len(space) > 2 or min(before) < 0:
        return False
    if {*a.dilation, *a.input_dilation} != {1}:
        return False
    found = a.outputs(space, kernel)
    even = a._replace(padding=tuple((n, n) for n in before)).outputs(space, kernel)
    result = (x.shape[0], weight.shape[1], *found)
    sizes = [shapes.count(s) for s in (x.shape, weight.shape, result)]
    return even == found and all(0 < n < _COUNTED for n in sizes)


def _macro_conv(b: Any, a: Geometry, out: Any, x: Any, weight: Any) -> None:
    line: tuple[int, ...] = (1,) * (2 - len(a.stride))  # one spatial axis is an image of height 1
    height, width = line + tuple(x.shape[3:])
    kernel_h, kernel_w = line + tuple(weight.shape[3:])
    b.conv2d(
        out.ty, out.address, x.address, weight.address, batch=x.shape[0], in_channels=x.shape[2],
        out_channels=weight.shape[1], height=height, width=width, kernel_h=kernel_h, kernel_w=kernel_w,
        stride=(*line, *a.stride), padding=(*(0,) * len(line), *(first for first, _ in a.padding)),
    )  # fmt: skip


@primitive(
    group=GROUP, promote="number", dtypes=_NUMBERS, infer=_infer_conv, reference=_conv, method=False,
    derivative=Linear(_transpose_conv), batch=_batch_conv,
    lower=Choice(_instruction_fits, Macro(_macro_conv), Pull(_pull_conv)),
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
        each(stride, count, "stride"), _pairs(padding, count), each(dilation, count, "dilation"),
        each(input_dilation, count, "input dilation"),
    )  # fmt: skip


def _pairs(given: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Padding before and after each axis."""
    found = tuple(given) if isinstance(given, Sequence) else (given,) * count
    pairs = tuple(tuple(n) if isinstance(n, Sequence) else (n, n) for n in found)
    if len(pairs) != count or any(len(p) != 2 or not all(type(n) is int for n in p) for p in pairs):
        raise ShapeError(f"the padding {given!r} is neither an integer nor {count} of them (or of pairs)")
    return pairs


# --- what users call ------------------------------------------------------------------------------


def padded(
    padding: Padding, kernel: Shape, dilation: Sequence[int], stride: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Padding as users say it: numbers, pairs, "valid" (none) or "same" (as many windows as there are places)."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(n != 1 for n in stride):
            raise ShapeError(f'padding "same" needs stride 1, not {tuple(stride)}', hint="say the padding in numbers")
        totals = [reach(n, d) - 1 for n, d in zip(kernel, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in totals)
    if isinstance(padding, str):
        raise ShapeError(f'the padding "{padding}" is not known', hint='numbers, "same" or "valid"')
    found = _pairs(padding, len(kernel))
    if any(n < 0 for pair in found for n in pair):
        raise ShapeError(f"the padding {padding!r} is negative")
    return found


def _fitting(x: Any, weight: Any, bias: Any, count: int, groups: int, transposed: bool = False) -> None:
    """Refuse what does not fit together. Of a transposed convolution the weight's first axes are exchanged."""
    if x.ndim not in (count + 1, count + 2) or weight.ndim != count + 2:
        raise ShapeError(
            f"shapes {list(x.shape)} and {list(weight.shape)} are not those of a convolution over {count} axes",
            hint=f"x is (batch ×) channels × {count} axes, weight has {count + 2} axes",
        )
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
        raise ShapeError(f"groups must be a positive integer, not {groups!r}")
    channels, (first, second) = x.shape[-count - 1], weight.shape[:2]
    wanted = first if transposed else second * groups
    outs = second * groups if transposed else first
    if channels != wanted or first % groups:
        raise ShapeError(
            f"an input of {channels} channels, shape {list(x.shape)}, and a weight of shape {list(weight.shape)} "
            f"do not fit in {groups} groups",
            hint="weight is channels × out/groups × kernel"
            if transposed
            else "weight is out × channels/groups × kernel",
        )
    if bias is not None and bias.shape != (outs,):
        raise ShapeError(f"a bias of shape {list(bias.shape)} does not fit {outs} output channels")


def _nonempty(x: Any, weight: Any, a: Geometry) -> None:
    space, kernel = x.shape[3:], weight.shape[3:]
    for n, windows in enumerate(a.outputs(space, kernel)):
        if windows == 0 or kernel[n] == 0 or space[n] == 0:
            raise ShapeError(
                f"a kernel of {kernel[n]} places (reaching over {reach(kernel[n], a.dilation[n])}) does not fit "
                f"{space[n]} elements with padding {a.padding[n]}",
                hint="use a smaller kernel or more padding",
            )


def _through(x: Any, weight: Any, bias: Any, a: Geometry) -> Any:
    """conv of an input without the axis of groups, and maybe without that of the batch."""
    count, groups = len(a.stride), weight.shape[0]
    batch = x.shape[: x.ndim - count - 1]
    grouped = reshape(x, (*(batch or (1,)), groups, x.shape[-count - 1] // groups, *x.shape[-count:]))
    _nonempty(grouped, weight, a)
    found = conv(grouped, weight, *a)
    result = reshape(found, (*batch, groups * weight.shape[1], *found.shape[3:]))
    return result if bias is None else result + reshape(bias, (bias.shape[0], *(1,) * count))


def _convolved(
    count: int, x: Any, weight: Any, bias: Any, stride: Numbers, padding: Padding, dilation: Numbers, groups: int
) -> Any:
    _fitting(x, weight, bias, count, groups)
    steps, gaps = each(stride, count, "stride"), each(dilation, count, "dilation")
    a = Geometry(steps, padded(padding, weight.shape[2:], gaps, steps), gaps, (1,) * count)
    return _through(x, reshape(weight, (groups, weight.shape[0] // groups, *weight.shape[1:])), bias, a)


def _transposed(
    count: int, x: Any, weight: Any, bias: Any, stride: Numbers, padding: Numbers, output_padding: Numbers,
    groups: int, dilation: Numbers,
) -> Any:  # fmt: skip
    _fitting(x, weight, bias, count, groups, transposed=True)
    steps, gaps = each(stride, count, "stride"), each(dilation, count, "dilation")
    cut, more = each(padding, count, "padding", 0), each(output_padding, count, "output padding", 0)
    if any(n >= max(s, d) for n, s, d in zip(more, steps, gaps, strict=True)):
        raise ShapeError(f"the output padding {more} must be less than the stride {steps} or the dilation {gaps}")
    space = tuple(range(3, 3 + count))
    parted = reshape(weight, (groups, weight.shape[0] // groups, *weight.shape[1:]))
    turned = permute(flip(parted, space), (0, 2, 1, *space))
    before = [reach(k, d) - 1 - p for k, d, p in zip(weight.shape[2:], gaps, cut, strict=True)]
    pairs = tuple((n, n + m) for n, m in zip(before, more, strict=True))
    return _through(x, turned, bias, Geometry((1,) * count, pairs, gaps, steps))


# --- their references: one window after another ---------------------------------------------------


def _by_windows(count: int) -> Callable[..., Any]:
    def reference(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        x, weight = wide(x), wide(weight)
        if x.ndim == count + 1:
            return reference(x[None], weight, bias, stride, padding, dilation, groups)[0]
        steps, gaps = each(stride, count, "stride"), each(dilation, count, "dilation")
        pads = padded(padding, weight.shape[2:], gaps, steps)
        image = np.pad(x, ((0, 0), (0, 0), *pads))
        out = [(n - d * (k - 1) - 1) // s + 1
               for n, k, s, d in zip(image.shape[2:], weight.shape[2:], steps, gaps, strict=True)]  # fmt: skip
        result: Any = np.zeros((len(x), len(weight), *out), x.dtype)
        each_in, each_out = weight.shape[1], len(weight) // groups
        for at in itertools.product(*map(range, out)):
            places = [slice(p * s, p * s + d * (k - 1) + 1, d)
                      for p, s, d, k in zip(at, steps, gaps, weight.shape[2:], strict=True)]  # fmt: skip
            for o in range(len(weight)):
                first = o // each_out * each_in
                patch = image[(slice(None), slice(first, first + each_in), *places)]
                result[(slice(None), o, *at)] = np.sum(patch * weight[o], axis=tuple(range(1, x.ndim)))
        return result if bias is None else result + wide(bias).reshape(-1, *(1,) * count)

    return reference


def _by_scattering(count: int) -> Callable[..., Any]:
    def reference(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        x, weight = wide(x), wide(weight)
        steps, gaps = each(stride, count, "stride"), each(dilation, count, "dilation")
        cut, more = each(padding, count, "padding", 0), each(output_padding, count, "output padding", 0)
        kernel, each_in, each_out = weight.shape[2:], len(weight) // groups, weight.shape[1]
        whole = [(n - 1) * s + d * (k - 1) + 1 + m
                 for n, s, d, k, m in zip(x.shape[2:], steps, gaps, kernel, more, strict=True)]  # fmt: skip
        result: Any = np.zeros((len(x), each_out * groups, *whole), x.dtype)
        for at in itertools.product(*map(range, x.shape[2:])):
            places = [slice(p * s, p * s + d * (k - 1) + 1, d)
                      for p, s, d, k in zip(at, steps, gaps, kernel, strict=True)]  # fmt: skip
            for c, o in itertools.product(range(len(weight)), range(each_out)):
                target = c // each_in * each_out + o
                share = np.multiply.outer(x[(slice(None), c, *at)], weight[c, o])
                result[(slice(None), target, *places)] += share
        result = result[(..., *(slice(p, n - p) for p, n in zip(cut, whole, strict=True)))]
        return result if bias is None else result + wide(bias).reshape(-1, *(1,) * count)

    return reference


@composite(
    group=GROUP, reference=_by_windows(1), dtypes=_NUMBERS, scheme=("conv1d",), method=False,
    samples=(
        sample((2, 2, 5), (3, 2, 2), (3,)), sample((2, 6), (2, 1, 3), stride=2, padding=2, dilation=2, groups=2),
        sample((1, 1, 5), (1, 1, 4), padding="same"), sample((0, 1, 3), (2, 1, 2)),
    ),
)  # fmt: skip
def conv1d(
    x: Value, weight: Value, bias: Value | None = None, stride: Numbers = 1, padding: Padding = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlation along the last axis; weight is out × channels/groups × kernel, padding zeros."""
    return _convolved(1, x, weight, bias, stride, padding, dilation, groups)


@composite(
    group=GROUP, reference=_by_windows(2), dtypes=("float", "complex"), method=False,
    scheme=("conv2d", "nn-conv2d", "native-conv2d", "conv2d-forward"),
    samples=(
        sample((2, 2, 4, 3), (2, 2, 3, 2), (2,)), sample((1, 2, 5, 4), (4, 1, 2, 2), stride=(2, 1), groups=2),
        sample((1, 4, 4), (2, 1, 2, 3), padding="same", dilation=(2, 1)),
        sample((1, 1, 3, 3), (1, 1, 2, 2), padding=((1, 0), (2, 1)), stride=2),
    ),
)  # fmt: skip
def conv2d(
    x: Value, weight: Value, bias: Value | None = None, stride: Numbers = 1, padding: Padding = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlation of images, (batch ×) channels × height × width; weight is out × channels/groups × kernel.

    Padding is of zeros: a number, one per axis, pairs of before and after, "valid" (none), or "same" (stride 1 only).
    """
    return _convolved(2, x, weight, bias, stride, padding, dilation, groups)


@composite(
    group=GROUP, reference=_by_windows(3), method=False,
    samples=(
        sample((1, 2, 3, 2, 2), (1, 2, 2, 2, 1), (1,)), sample((1, 2, 2, 3, 2), (2, 1, 1, 2, 2), padding=1, groups=2),
    ),
)  # fmt: skip
def conv3d(
    x: Value, weight: Value, bias: Value | None = None, stride: Numbers = 1, padding: Padding = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Cross-correlation along the last three axes; otherwise as conv2d."""
    return _convolved(3, x, weight, bias, stride, padding, dilation, groups)


def _depthwise(x: Any, weight: Any, bias: Any = None, **how: Any) -> Any:
    return _by_windows(2)(x, weight, bias, **how, groups=x.shape[-3])


@composite(
    group=GROUP, reference=_depthwise, scheme=("depthwise-conv2d",), method=False,
    samples=(sample((1, 2, 4, 4), (2, 1, 2, 2), (2,)), sample((2, 2, 3, 4), (4, 1, 3, 2), stride=2, padding=1)),
)  # fmt: skip
def depthwise_conv2d(
    x: Value, weight: Value, bias: Value | None = None, stride: Numbers = 1, padding: Padding = 0, dilation: Numbers = 1
) -> Any:
    """conv2d with one group per channel; weight is (channels · multiplier) × 1 × kernel."""
    return conv2d(x, weight, bias, stride, padding, dilation, groups=x.shape[-3] if x.ndim > 2 else 1)


@composite(
    group=GROUP, reference=_by_scattering(1), method=False,
    samples=(
        sample((2, 2, 3), (2, 3, 2), (3,)),
        sample((1, 2, 3), (2, 1, 3), stride=3, padding=1, output_padding=2, groups=2, dilation=2),
        sample((1, 1, 4), (1, 1, 2), padding=2),
    ),
)  # fmt: skip
def conv_transpose1d(
    x: Value, weight: Value, bias: Value | None = None, stride: Numbers = 1, padding: Numbers = 0,
    output_padding: Numbers = 0, groups: int = 1, dilation: Numbers = 1,
) -> Any:  # fmt: skip
    """The transpose of conv1d: each element of x adds a kernel to the result; weight is channels × out/groups × kernel.

    Padding is cut off at both ends, output padding added at the far one.
    """
    return _transposed(1, x, weight, bias, stride, padding, output_padding, groups, dilation)


@composite(
    group=GROUP, reference=_by_scattering(2), method=False,
    samples=(
        sample((1, 2, 2, 3), (2, 2, 2, 2), (2,), stride=2),
        sample((1, 2, 2, 2), (2, 1, 2, 3), stride=(3, 2), padding=(0, 1), output_padding=(2, 1), groups=2),
        sample((1, 1, 3, 2), (1, 1, 2, 2), dilation=(1, 2), padding=1),
    ),
)  # fmt: skip
def conv_transpose2d(
    x: Value, weight: Value, bias: Value | None = None, stride: Numbers = 1, padding: Numbers = 0,
    output_padding: Numbers = 0, groups: int = 1, dilation: Numbers = 1,
) -> Any:  # fmt: skip
    """The transpose of conv2d: each element of x adds a kernel to the result; weight is channels × out/groups × kernel.

    Padding is cut off at both ends, output padding added at the far one.
    """
    return _transposed(2, x, weight, bias, stride, padding, output_padding, groups, dilation)
