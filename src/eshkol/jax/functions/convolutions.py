"""JAX's convolutions: any order of axes, dilation of both operands, padding by name.

Comes in: two tensors with their axes in an order that strings say ("NHWC", "HWIO"). Goes out: their cross-correlation,
which the row `conv` computes for (batch × groups × channels × space) and (groups × out × channels × kernel).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from eshkol.errors import ShapeError, TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


class ConvDimensionNumbers(NamedTuple):
    """The axes of batch and channels, and then of space, of each operand and of the result."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], numbers: Any) -> ConvDimensionNumbers:
    """Where the axes are, of three strings; without any, batch and channels (out and in) come first."""
    if isinstance(numbers, ConvDimensionNumbers):
        return numbers
    rank = len(lhs_shape)
    if numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    lhs, rhs, out = numbers
    space = [c for c in rhs if c not in "OI"]
    if not len(lhs) == len(rhs) == len(out) == rank or set(lhs) != {"N", "C", *space} or set(out) != set(lhs):
        raise ShapeError(f"the axes {numbers} do not fit {list(lhs_shape)} and {list(rhs_shape)}", span=ek.here())
    order = [c for c in rhs if c in space]
    return ConvDimensionNumbers(
        tuple(lhs.index(c) for c in ("N", "C", *order)),
        tuple(rhs.index(c) for c in ("O", "I", *order)),
        tuple(out.index(c) for c in ("N", "C", *order)),
    )


def _padding(
    padding: Any, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs of before and after, also of "SAME", "SAME_LOWER" and "VALID"."""
    if not isinstance(padding, str):
        return [(p, p) if isinstance(p, int) else (int(p[0]), int(p[1])) for p in padding]
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(sizes)
    if kind not in ("SAME", "SAME_LOWER"):
        raise TensorError(f"padding is 'SAME', 'SAME_LOWER', 'VALID' or pairs, not {padding!r}", span=ek.here())
    found = []
    for size, width, stride in zip(sizes, kernel, strides, strict=True):
        whole = max(0, (-(-size // stride) - 1) * stride + width - size)
        less, more = whole // 2, whole - whole // 2
        found.append((less, more) if kind == "SAME" else (more, less))
    return found


def conv_general_dilated(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None, feature_group_count: int = 1,
    batch_group_count: int = 1, **how: Any,
) -> Tensor:  # fmt: skip
    """The cross-correlation of two tensors with any number of spatial axes, in any order of axes."""
    x, w = ek.asarray(lhs), ek.asarray(rhs)
    if batch_group_count != 1:
        raise TensorError("conv_general_dilated takes no batch_group_count", span=ek.here(), hint="use ek.vmap")
    at = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    rank = x.ndim - 2
    x, w = ek.permute(x, at.lhs_spec), ek.permute(w, at.rhs_spec)
    spread, dilation = tuple(lhs_dilation or [1] * rank), tuple(rhs_dilation or [1] * rank)
    sizes = [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(x.shape[2:], spread, strict=True)]
    kernel = [(n - 1) * d + 1 for n, d in zip(w.shape[2:], dilation, strict=True)]
    groups = feature_group_count
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ShapeError(
            f"{x.shape[1]} channels in {groups} groups do not fit a kernel of {list(w.shape[:2])} (out × in)",
            span=ek.here(),
        )
    made = ek.conv(
        x.reshape((x.shape[0], groups, -1, *x.shape[2:])), w.reshape((groups, -1, *w.shape[1:])),
        tuple(window_strides), _padding(padding, sizes, kernel, window_strides), dilation, spread,
    )  # fmt: skip
    joined = made.reshape((made.shape[0], -1, *made.shape[3:]))
    back = [0] * joined.ndim
    for k, place in enumerate(at.out_spec):
        back[place] = k
    return ek.permute(joined, tuple(back))


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, **how: Any) -> Tensor:
    """The cross-correlation of batch × channels × space with out × channels × kernel."""
    return conv_general_dilated(lhs, rhs, window_strides, padding)


def conv_with_general_padding(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Any, rhs_dilation: Any, **how: Any
) -> Tensor:
    """The same with dilations."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)
