"""Convolutions of 16-bit floats in fragments, and their transposes, against NumPy, on the interpreter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from eshkol.atlas.types import Type
from eshkol.backends import open_backend
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.correlation import conv, conv_input, conv_weight
from eshkol.schedule.kernels.channels_last import Last, copying_kernel
from eshkol.schedule.kernels.lower import lowered

from .test_attention_fragments import zeros
from .test_matrix_products import LARGE, agrees, kernels, numbers
from .trust import trusted


def products(x: Node, weight: Node, **how: Any) -> list[Node]:
    """A convolution, and its transposes in both."""
    forward = conv(x, weight, **how)
    cotangent = numbers(*forward.shape, dtype=x.dtype)
    geometry = tuple(forward.attrs)
    return [
        forward, conv_input(cotangent, weight, x.shape[3:], *geometry),
        conv_weight(x, cotangent, weight.shape[3:], *geometry),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("x", "weight", "how"),
    [
        ((2, 1, 16, 7, 6), (1, 24, 16, 3, 3), {"padding": 1}),
        ((2, 2, 22, 9, 8), (2, 16, 22, 3, 2), {"stride": 2, "padding": ((1, 0), (0, 1))}),
        ((2, 1, 16, 30), (1, 16, 16, 5), {"padding": 2, "dilation": 2}),
        ((1, 1, 16, 3, 4, 5), (1, 16, 16, 2, 2, 2), {"padding": 1}),
        ((3, 1, 16, 7, 4), (1, 16, 16, 3, 2), {"padding": 1}),  # an odd number of places, which are copied one by one
    ],
)
def test_convolutions(x: tuple[int, ...], weight: tuple[int, ...], how: dict[str, Any]) -> None:
    """One, two and three axes, groups, strides, dilation, and edges; results that are pairs, and that are not."""
    dtype = dtypes.float16 if len(x) == 4 else dtypes.bfloat16
    for node in products(numbers(*x, dtype=dtype), numbers(*weight, dtype=dtype), **how):
        assert node.op.name in agrees(node)


@examples(40, 2)
@given(
    channels=st.sampled_from([16, 24, 31]), outs=st.sampled_from([16, 23, 40]),
    space=st.tuples(st.integers(3, 9), st.integers(3, 9)), stride=st.integers(1, 3), pad=st.integers(0, 2),
)  # fmt: skip
def test_any_size(channels: int, outs: int, space: tuple[int, int], stride: int, pad: int) -> None:
    x, weight = numbers(3, 1, channels, *space), numbers(1, outs, channels, 3, 2)
    for node in products(x, weight, stride=stride, padding=pad):
        if min(node.inputs[0].shape) and "MatrixMultiply" in "".join(str(k.program) for k in kernels(node, LARGE)):
            agrees(node)


def test_what_stays_with_lanes() -> None:
    """Kernels of one tap, few channels or outs, float32."""
    single = numbers(2, 1, 16, 8, 8, dtype=dtypes.float32), numbers(1, 16, 16, 3, 3, dtype=dtypes.float32)
    nodes = [
        conv(numbers(2, 1, 16, 8, 8), numbers(1, 16, 16, 1, 1)), conv(numbers(2, 1, 3, 8, 8), numbers(1, 16, 3, 3, 3)),
        conv(numbers(2, 1, 16, 8, 8), numbers(1, 5, 16, 3, 3)), conv(*single),
    ]  # fmt: skip
    for node in nodes:
        assert "MatrixMultiply" not in "".join(str(kernel.program) for kernel in kernels(node, LARGE))


def test_kernels_of_a_gpu() -> None:
    """Registers suffice, and nothing is checked."""
    for node in products(zeros(32, 1, 64, 56, 56), zeros(1, 64, 64, 3, 3), padding=1):
        found: Any = lowered(node, LARGE)
        assert any("MatrixMultiply" in str(kernel.program) for kernel in found)
        assert all(trusted(kernel) for kernel in found)


@pytest.mark.parametrize(("outer", "channels", "space"), [(2, 72, (7, 7)), (1, 12, (6, 70)), (3, 33, (5, 8))])
def test_copies_with_channels_last(outer: int, channels: int, space: tuple[int, int]) -> None:
    """Tiles that are not full, down and across; of places one at a time, and two."""
    x = np.random.default_rng(1).integers(0, 1 << 16, (outer, 1, channels, *space)).astype(np.uint16)
    places, padded = math.prod(space), -(-channels // 8) * 8
    node = conv(zeros(outer, 1, channels, *space), zeros(1, 16, channels, 3, 3))
    last = Last(1, outer, places, channels, (channels * places, channels * places, places), False)
    kernel = copying_kernel(node, 0, "copy", last, LARGE)
    backend = open_backend("blocks")
    target = backend.allocate_typed(Type.U16, outer * places * padded)
    given = backend.array(x)
    assert kernel.launch is not None
    backend.execute(kernel.program, kernel.launch, {"x0": given.handle, "copy": target.handle})
    found = target.read().reshape(outer, places, padded)
    np.testing.assert_array_equal(found[..., :channels], x.reshape(outer, channels, places).swapaxes(1, 2))
    assert not found[..., channels:].any()


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize(("outer", "channels", "places", "steps"), [
    (9, 72, 9, (648, 9)), (10, 66, 6, (6, 60)), (130, 64, 1, (64, 1)), (40, 72, 1, (1, 40)),
])  # fmt: skip
def test_copies_of_kernels(outer: int, channels: int, places: int, steps: tuple[int, int], around: bool) -> None:
    """With channels side by side, and outer ones; tiles that are not full; of one place, as they lie and turned."""
    x = np.random.default_rng(1).integers(0, 1 << 16, (1, outer, channels, places, 1)).astype(np.uint16)
    last = Last(1, outer, places, channels, (0, *steps), around)
    node = conv(zeros(1, 1, channels, 16, 16), zeros(*x.shape))
    kernel = copying_kernel(node, 1, "copy", last, LARGE)
    backend = open_backend("blocks")
    target = backend.allocate_typed(Type.U16, last.size)
    assert kernel.launch is not None
    backend.execute(kernel.program, kernel.launch, {"x1": backend.array(x).handle, "copy": target.handle})
    np.testing.assert_array_equal(target.read().reshape(outer * places, -1), last.copy(x))
    assert trusted(kernel)
