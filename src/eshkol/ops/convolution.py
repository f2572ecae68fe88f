"""Convolutions over one, two or three spatial axes, as users call them; they end in the products of `correlation`.

As everywhere in machine learning, these are cross-correlations: the kernel is not turned around. A transposed
convolution is the transpose of `conv` in its input. Three axes are two, with the taps of the first as channels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops.contraction import wide
from eshkol.ops.correlation import Geometry, Numbers, conv, conv_input, each, pairs, reach
from eshkol.ops.joining import stack
from eshkol.ops.movement import permute, reshape
from eshkol.ops.padding import pad
from eshkol.ops.row import Shape, Value, composite, sample
from eshkol.ops.slicing import slice_

GROUP = "convolution"
_NUMBERS = ("int", "float", "complex")

Padding = int | str | Sequence[int | tuple[int, int]]


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
    found = pairs(padding, len(kernel))
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
    result = (*batch, groups * weight.shape[1], *a.outputs(grouped.shape[3:], weight.shape[3:]))
    if count == 3:
        flat, merged, plane = _unfolded(grouped, weight, a)
        found = conv(flat, merged, *plane)  # examples and windows, groups, out, …
        apart = reshape(found, (grouped.shape[0], result[-3], result[-4], result[-2] * result[-1]))
        return biased(reshape(permute(apart, (0, 2, 1, 3)), result), bias, count)
    return biased(reshape(conv(grouped, weight, *a), result), bias, count)


def biased(result: Any, bias: Any, count: int) -> Any:
    """With a bias per channel, if there is one."""
    return result if bias is None else result + reshape(bias, (bias.shape[0], *(1,) * count))


def _unfolded(x: Any, weight: Any, a: Geometry) -> tuple[Any, Any, Geometry]:
    """Three axes as two: the taps of the first axis are channels, and its windows examples."""
    size, step, gap = weight.shape[3], a.stride[0], a.dilation[0]
    windows = a.outputs(x.shape[3:], weight.shape[3:])[0]
    line = (*x.shape[:4], x.shape[4] * x.shape[5])  # a plane is moved as it is, and so is one axis
    deep = pad(reshape(x, line), ((0, 0), (0, 0), (0, 0), a.padding[0], (0, 0)))
    last = (windows - 1) * step + 1
    taps = [
        slice_(deep, (0, 0, 0, t * gap, 0), (*line[:3], t * gap + last, line[4]), (1, 1, 1, step, 1))
        for t in range(size)
    ]
    seen = stack([permute(tap, (0, 3, 1, 2, 4)) for tap in taps], 4)  # batch × windows × groups × channels × taps × …
    flat = reshape(seen, (x.shape[0] * windows, x.shape[1], x.shape[2] * size, *x.shape[4:]))
    merged = reshape(weight, (*weight.shape[:2], weight.shape[2] * size, *weight.shape[4:]))
    return flat, merged, Geometry(a.stride[1:], a.padding[1:], a.dilation[1:], a.input_dilation[1:])


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
    kernel, batch = weight.shape[2:], x.shape[: x.ndim - count - 1]
    parted = reshape(weight, (groups, weight.shape[0] // groups, *weight.shape[1:]))
    grouped = reshape(x, (*(batch or (1,)), groups, weight.shape[0] // groups, *x.shape[-count:]))
    space = tuple(
        (n - 1) * s + reach(k, d) - 2 * p + m
        for n, s, k, d, p, m in zip(x.shape[-count:], steps, kernel, gaps, cut, more, strict=True)
    )
    if min(space) < 1 or 0 in x.shape[-count:]:
        raise ShapeError(
            f"a kernel of {kernel} places does not fit {x.shape[-count:]} elements with padding {cut}",
            hint="use a larger kernel or less padding",
        )
    pads = tuple((p, p - m) for p, m in zip(cut, more, strict=True))  # so that nothing but these windows fits
    found = conv_input(grouped, parted, space, steps, pads, gaps)
    return biased(reshape(found, (*batch, groups * weight.shape[1], *space)), bias, count)


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
    scheme=("conv2d", "nn-conv2d", "conv2d-forward"),
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


@composite(
    group=GROUP, reference=_by_scattering(3), method=False,
    samples=(
        sample((1, 2, 2, 1, 2), (2, 2, 2, 2, 1), (2,), stride=2),
        sample((1, 2, 1, 2, 2), (2, 1, 2, 1, 3), stride=(3, 1, 2), padding=(0, 0, 1), output_padding=(2, 0, 1),
               groups=2),
        sample((1, 1, 2, 2, 2), (1, 1, 1, 2, 2), dilation=(1, 1, 2), padding=(0, 0, 1)),
    ),
)  # fmt: skip
def conv_transpose3d(
    x: Value, weight: Value, bias: Value | None = None, stride: Numbers = 1, padding: Numbers = 0,
    output_padding: Numbers = 0, groups: int = 1, dilation: Numbers = 1,
) -> Any:  # fmt: skip
    """The transpose of conv3d: each element of x adds a kernel to the result; weight is channels × out/groups × kernel.

    Padding is cut off at both ends, output padding added at the far one.
    """
    return _transposed(3, x, weight, bias, stride, padding, output_padding, groups, dilation)
