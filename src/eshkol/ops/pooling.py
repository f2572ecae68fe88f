"""Pooling: the greatest or the mean of every window over the last one, two or three axes.

A maximum is taken where `window_argmax` says, so that its derivative is that of `take`: all of it to the element that
was chosen, the first of equal ones. Sums over windows are convolutions with ones. Windows that fill a
shape are in `adaptive_pooling.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.correlation import Numbers, conv, each, reach, read_inside
from eshkol.ops.creation import full
from eshkol.ops.indexing import scatter_into, take
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import narrow, wide
from eshkol.ops.row import Aval, Draw, HasAval, NoDerivative, Pull, Shape, Value, composite, primitive, sample

GROUP = "pooling"
REAL = ("int", "float")


# --- windows --------------------------------------------------------------------------------------


class Windows(NamedTuple):
    """Windows over the last axes: how many places each has, where they begin and how many there are, per axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    counts: tuple[int, ...]

    def places(self, axis: int) -> Any:
        """The places along an axis that each window has, as windows × kernel; some may lie in the padding."""
        first = np.arange(self.counts[axis]) * self.stride[axis] - self.padding[axis]
        return first[:, None] + np.arange(self.kernel[axis]) * self.dilation[axis]


def windows(
    x: HasAval,
    count: int,
    kernel: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
) -> Windows:
    """The windows that the arguments of a pooling say; an error where one would have no element."""
    if len(x.shape) < count:
        raise ShapeError(f"shape {list(x.shape)} has no {count} axes to pool over")
    sizes = each(kernel, count, "kernel")
    steps = sizes if stride is None else each(stride, count, "stride")
    before, gaps = each(padding, count, "padding", 0), each(dilation, count, "dilation")
    counts = []
    for n, extent in enumerate(x.shape[len(x.shape) - count :]):
        spare = extent + 2 * before[n] - reach(sizes[n], gaps[n])
        found = -(-spare // steps[n]) + 1 if ceil_mode else spare // steps[n] + 1
        if ceil_mode and (found - 1) * steps[n] >= extent + before[n]:
            found -= 1  # a window may end after the padding, but not begin there
        if found < 1 or extent == 0:
            raise ShapeError(
                f"a window over {reach(sizes[n], gaps[n])} does not fit {extent} elements with padding {before[n]}",
                hint="use a smaller kernel or more padding",
            )
        _reaching(extent, sizes[n], steps[n], before[n], gaps[n], found)
        counts.append(found)
    return Windows(sizes, steps, before, gaps, tuple(counts))


def _reaching(extent: int, size: int, step: int, before: int, gap: int, count: int) -> None:
    """Refuse windows that begin in the padding and never leave it, or step over all elements."""
    short = -(-before // gap) >= size  # of the first window, which begins farthest out
    if not short and gap > extent:
        starts = np.arange(min(count, -(-before // step))) * step - before
        short = bool(np.any(starts % gap >= extent))
    if short:
        raise ShapeError(
            f"with padding {before}, a window of {size} places lies wholly in the padding",
            hint="padding of at most half the window never does",
        )


# --- the greatest ---------------------------------------------------------------------------------


def _infer_argmax(a: Windows, x: HasAval) -> Aval:
    if x.dtype.is_complex or x.dtype.is_bool:
        raise DTypeError(
            f"{x.dtype} has no greatest element", hint="pool the real part or abs(x), or cast to an integer"
        )
    return Aval((*x.shape[: len(x.shape) - len(a.kernel)], *a.counts), dtypes.int64)


def _argmax(a: Windows, x: Any) -> Any:
    count = len(a.kernel)
    lead, space = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    places, valid = [], np.ones((1,) * (2 * count), np.bool_)
    for n, extent in enumerate(space):
        along = [1] * (2 * count)
        along[n], along[count + n] = a.counts[n], a.kernel[n]
        place = a.places(n).reshape(along)
        valid = valid & (place >= 0) & (place < extent)
        places.append(np.clip(place, 0, extent - 1))
    flat = np.ravel_multi_index(np.broadcast_arrays(*places), space).reshape(*a.counts, -1)
    valid = np.broadcast_to(valid, (*a.counts, *a.kernel)).reshape(*a.counts, -1)
    real = x.astype(np.float64) if x.dtype.kind not in "iu" else x
    seen = real.reshape(*lead, shapes.count(space))[..., flat]
    least = -np.inf if seen.dtype.kind == "f" else np.iinfo(seen.dtype).min
    chosen = np.argmax(np.where(valid, seen, least), axis=-1)
    at_least = np.argmax(valid, axis=-1)  # where all is least, the padding may have been chosen
    every = np.broadcast_to(flat, seen.shape), np.broadcast_to(valid, seen.shape)
    where_to, inside = (np.take_along_axis(t, chosen[..., None], -1)[..., 0] for t in every)
    first = np.take_along_axis(flat, at_least[..., None], -1)[..., 0]
    return np.where(inside, where_to, first)


def _pull_argmax(e: Any, a: Windows, i: Any, x: Any) -> Any:
    count = len(a.kernel)
    space, index = x.shape[len(x.shape) - count :], list(i)
    lead, window = index[: len(index) - count], index[len(index) - count :]
    least, _ = x.dtype.limits()

    def body(j: Any, state: Any) -> Any:
        best, chosen = state
        places, conditions = [], []
        for n, offset in enumerate(e.unravel(j, a.kernel)):
            place = window[n] * a.stride[n] + offset * a.dilation[n]
            if a.padding[n]:
                place = place - a.padding[n]
                conditions.append(e.compare("GE", place, 0))
            if (a.counts[n] - 1) * a.stride[n] + reach(a.kernel[n], a.dilation[n]) - a.padding[n] > space[n]:
                conditions.append(e.compare("LT", place, space[n]))
            places.append(place)
        value = read_inside(e, x, [*lead, *places], conditions, least)
        better = e.op("OR", e.compare("LT", chosen, 0), e.compare("LT", best, value))
        if x.dtype.is_float:
            unordered = e.op("AND", e.compare("NE", value, value), e.compare("EQ", best, best))
            better = e.op("OR", better, unordered)
        for condition in conditions:
            better = e.op("AND", better, condition)
        return e.select(better, value, best), e.select(better, e.ravel(places, space), chosen)

    return e.loop(shapes.count(a.kernel), [e.constant(least, x.dtype), -1], body)[1]


def _batch_argmax(a: Windows, inputs: Any, batched: Any) -> Any:
    return inputs[0].apply(window_argmax, inputs, a)


def shuffled(*shape: int) -> Draw:
    """Numbers of which no two are near each other, so that the greatest of some stays it when they move a little."""
    count = shapes.count(shape)
    return Draw(shape, make=lambda rng: rng.permutation(count).reshape(shape) / 4)


@primitive(
    group=GROUP, infer=_infer_argmax, reference=_argmax, batch=_batch_argmax, lower=Pull(_pull_argmax), dtypes=REAL,
    derivative=NoDerivative("a position does not vary smoothly"), method=False,
    work=lambda node, of: node.size * shapes.count(node.attrs.kernel),
    samples=(
        sample((2, 5), kernel_size=(2,)), sample((5, 4), kernel_size=(2, 3), stride=1, padding=1),
        sample((2, 6, 5), kernel_size=(2, 2), stride=(2, 1), padding=(0, 1), dilation=(3, 2), ceil_mode=True),
        sample((0, 4), kernel_size=(2,)),
    ),
)  # fmt: skip
def window_argmax(
    x: Value, kernel_size: Sequence[int], stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Windows:  # fmt: skip
    """Where each window over the last axes has its greatest element, as a flat index into these axes.

    Of equal elements the first counts, and NaN counts as greater than all numbers.
    """
    return windows(x, len(kernel_size), kernel_size, stride, padding, dilation, ceil_mode)


def _planes(x: Any, count: int) -> Any:
    """x with its last axes made one."""
    return reshape(x, (*x.shape[: x.ndim - count], shapes.count(x.shape[x.ndim - count :])))


def taken(x: Any, indices: Any, count: int) -> Any:
    """The elements at flat indices into the last axes."""
    lead = x.ndim - count
    return take(_planes(x, count), indices, lead, lead)


def greatest(count: int, x: Any, kernel: Numbers, return_indices: bool, **how: Any) -> Any:
    """Of each window over the last axes, and where it is if that is asked for; `how` is what `window_argmax` takes."""
    indices = window_argmax(x, each(kernel, count, "kernel"), **how)
    values = taken(x, indices, count)
    return (values, indices) if return_indices else values


def _max_loop(count: int) -> Callable[..., Any]:
    def reference(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        a = windows(x, count, kernel_size, stride, padding, dilation, ceil_mode)
        space = x.shape[x.ndim - count :]
        lead = x.shape[: x.ndim - count]
        values, indices = np.zeros((*lead, *a.counts), x.dtype), np.full((*lead, *a.counts), -1)
        for at in np.ndindex(*lead, *a.counts):
            window = at[len(lead) :]
            for place in itertools.product(*(a.places(n)[window[n]].tolist() for n in range(count))):
                if all(0 <= p < extent for p, extent in zip(place, space, strict=True)):
                    value, flat = x[(*at[: len(lead)], *place)], int(np.ravel_multi_index(place, space))
                    if indices[at] < 0 or value > values[at]:
                        values[at], indices[at] = value, flat
        return (values, indices) if return_indices else values

    return reference


@composite(
    gives_if={"return_indices": (True, "tuple[Tensor, Tensor]")},
    group=GROUP, reference=_max_loop(1), dtypes=REAL, method=False,
    samples=(
        sample(shuffled(2, 5), kernel_size=2, return_indices=True),
        sample(shuffled(1, 2, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
        sample(shuffled(7), kernel_size=2, stride=1, dilation=3),
    ),
)  # fmt: skip
def max_pool1d(
    x: Value, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest element of each window along the last axis; otherwise as max_pool2d."""
    return greatest(
        1, x, kernel_size, return_indices, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )


@composite(
    gives_if={"return_indices": (True, "tuple[Tensor, Tensor]")},
    group=GROUP, reference=_max_loop(2), dtypes=REAL, method=False,
    scheme=("max-pool2d", "nn-max-pool2d", "maxpool2d-forward"),
    samples=(
        sample(shuffled(2, 4, 4), kernel_size=2), sample(shuffled(1, 2, 5, 4), kernel_size=(2, 3), stride=2, padding=1),
        sample(shuffled(6, 5), kernel_size=2, dilation=2, stride=(3, 2), ceil_mode=True, return_indices=True),
    ),
)  # fmt: skip
def max_pool2d(
    x: Value, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest element of each window over the last two axes, NaN if there is one; padding is never chosen.

    The stride is the kernel's size unless said. The first of equal elements has the derivative; indices are flat within
    the two axes.
    """
    return greatest(
        2, x, kernel_size, return_indices, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )


@composite(
    gives_if={"return_indices": (True, "tuple[Tensor, Tensor]")},
    group=GROUP, reference=_max_loop(3), dtypes=REAL, method=False,
    samples=(
        sample(shuffled(2, 4, 2, 4), kernel_size=2),
        sample(shuffled(1, 3, 4, 3), kernel_size=(2, 3, 1), stride=(1, 2, 2), padding=(1, 1, 0), return_indices=True),
        sample(shuffled(3, 5, 4), kernel_size=2, dilation=(1, 2, 1), stride=2, ceil_mode=True),
    ),
)  # fmt: skip
def max_pool3d(
    x: Value, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The greatest element of each window over the last three axes; otherwise as max_pool2d."""
    return greatest(
        3, x, kernel_size, return_indices, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )


def _unpooled(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    space = _unpooled_space(x, kernel_size, stride, padding, output_size)
    result = np.zeros((*x.shape[:-2], shapes.count(space)), x.dtype)
    for at in np.ndindex(*x.shape):
        result[(*at[:-2], indices[at])] = x[at]
    return result.reshape(*x.shape[:-2], *space)


def _unpooled_space(x: HasAval, kernel: Any, stride: Any, padding: Any, output_size: Any) -> Shape:
    if output_size is not None:
        return each(output_size, 2, "output size")
    sizes, cut = each(kernel, 2, "kernel"), each(padding, 2, "padding", 0)
    steps = sizes if stride is None else each(stride, 2, "stride")
    found = [(x.shape[n - 2] - 1) * steps[n] - 2 * cut[n] + sizes[n] for n in range(2)]
    return each(found, 2, "output size")


def _places(shape: Shape, *numbers: int) -> Draw:
    return Draw(shape, kind="int", make=lambda rng: np.array(numbers).reshape(shape))


@composite(
    group=GROUP, reference=_unpooled, method=False,
    samples=(
        sample((2, 2, 2), _places((2, 2, 2), 0, 3, 9, 14, 5, 6, 8, 15), kernel_size=2),
        sample((1, 2), _places((1, 2), 1, 4), kernel_size=2, output_size=(2, 4)),
    ),
)  # fmt: skip
def max_unpool2d(
    x: Value, indices: Value, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0,
    output_size: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """The elements back at the indices that max_pool2d gave, zeros elsewhere."""
    if x.ndim < 2 or x.shape != indices.shape:
        raise ShapeError(f"shapes {list(x.shape)} and {list(indices.shape)} are not equal, with two axes or more")
    space, lead = _unpooled_space(x, kernel_size, stride, padding, output_size), x.ndim - 2
    empty = full(x, (*x.shape[:-2], shapes.count(space)), 0)
    return reshape(scatter_into(empty, indices, x, lead, False, lead), (*x.shape[:-2], *space))


@composite(
    group=GROUP, reference=lambda x: np.max(x, axis=(-2, -1), keepdims=True), dtypes=REAL, method=False,
    samples=(sample(shuffled(2, 3, 2)), sample(shuffled(2, 2))),
)  # fmt: skip
def global_max_pool2d(x: Value) -> Any:
    """The greatest element of the last two axes, which stay with extent 1; the first of equal ones counts."""
    return max_pool2d(x, x.shape[-2:])


# --- means ----------------------------------------------------------------------------------------


def _sums(x: Any, a: Windows) -> Any:
    count = len(a.kernel)
    lead, space = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    planes = reshape(x, (shapes.count(lead), 1, 1, *space))
    after = [(a.counts[n] - 1) * a.stride[n] + a.kernel[n] - space[n] - a.padding[n] for n in range(count)]
    ones = full(x, (1, 1, 1, *a.kernel), 1)
    found = conv(planes, ones, a.stride, tuple(zip(a.padding, after, strict=True)))
    return reshape(found, (*lead, *a.counts))


def _sizes(a: Windows, space: Shape, count_include_pad: bool) -> Any:
    """How many elements each window has; the padding may count, what lies after it never does."""
    total = np.ones((1,) * len(space), np.int64)
    for n, extent in enumerate(space):
        margin = a.padding[n] if count_include_pad else 0
        first = np.arange(a.counts[n]) * a.stride[n] - a.padding[n]
        along = np.minimum(first + a.kernel[n], extent + margin) - np.maximum(first, -margin)
        total = total * along.reshape([-1 if k == n else 1 for k in range(len(space))])
    return total


def _mean(
    count: int, x: Any, kernel: Numbers, stride: Numbers | None, padding: Numbers, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Any:  # fmt: skip
    a = windows(x, count, kernel, stride, padding, 1, ceil_mode)
    total = _sums(wide(x), a)
    if divisor_override is not None:
        if type(divisor_override) is not int or divisor_override == 0:
            raise ShapeError(f"the divisor {divisor_override!r} is not an integer other than 0")
        return narrow(total / divisor_override, x.dtype)
    sizes = _sizes(a, x.shape[x.ndim - count :], count_include_pad)
    same = len(np.unique(sizes)) == 1
    divisor = int(sizes.flat[0]) if same else total.literal(sizes.astype(total.dtype.numpy))
    return narrow(total / divisor, x.dtype)


def _mean_loop(count: int) -> Callable[..., Any]:
    def reference(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        a = windows(x, count, kernel_size, stride, padding, 1, ceil_mode)
        lead, space = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
        result = np.zeros((*lead, *a.counts), np.result_type(x.dtype, np.float32))
        for window in np.ndindex(*a.counts):
            first = [w * s - p for w, s, p in zip(window, a.stride, a.padding, strict=True)]
            last = [min(f + k, n + p) for f, k, n, p in zip(first, a.kernel, space, a.padding, strict=True)]
            inner = [slice(max(f, 0), min(e, n)) for f, e, n in zip(first, last, space, strict=True)]
            taken: Any = (..., *inner)
            seen = x[taken].astype(result.dtype)
            size = divisor_override or (
                np.prod([e - f for f, e in zip(first, last, strict=True)]) if count_include_pad
                else np.prod(seen.shape[len(lead) :])
            )  # fmt: skip
            result[(..., *window)] = seen.sum(axis=tuple(range(len(lead), x.ndim))) / size
        return result

    return reference


@composite(
    group=GROUP, reference=_mean_loop(1), dtypes=("int", "float", "complex"), method=False,
    samples=(
        sample((2, 5), kernel_size=2), sample((7,), kernel_size=3, stride=2, padding=1, count_include_pad=False),
        sample((2, 1, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
    ),
)  # fmt: skip
def avg_pool1d(
    x: Value, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """The mean of each window along the last axis; otherwise as avg_pool2d."""
    return _mean(1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@composite(
    group=GROUP, reference=_mean_loop(2), method=False, scheme=("avg-pool2d",),
    samples=(
        sample((2, 4, 4), kernel_size=2), sample((5, 4), kernel_size=(3, 2), stride=2, padding=1),
        sample((1, 5, 4), kernel_size=2, stride=(3, 2), ceil_mode=True, padding=1, count_include_pad=False),
        sample((3, 3), kernel_size=2, stride=1, divisor_override=3), sample((0, 2, 2), kernel_size=2),
    ),
)  # fmt: skip
def avg_pool2d(
    x: Value, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """The mean of each window over the last two axes; zeros of the padding count unless `count_include_pad` is false.

    The stride is the kernel's size unless said; `divisor_override` divides the sums instead of the windows' sizes.
    """
    return _mean(2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@composite(
    group=GROUP, reference=_mean_loop(3), method=False,
    samples=(
        sample((2, 4, 2, 4), kernel_size=2), sample((3, 3, 2), kernel_size=2, stride=1, divisor_override=3),
        sample((1, 3, 4, 3), kernel_size=(2, 3, 1), stride=2, padding=(1, 1, 0), ceil_mode=True),
        sample((1, 3, 4, 3), kernel_size=2, padding=1, count_include_pad=False),
    ),
)  # fmt: skip
def avg_pool3d(
    x: Value, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """The mean of each window over the last three axes; otherwise as avg_pool2d."""
    return _mean(3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
