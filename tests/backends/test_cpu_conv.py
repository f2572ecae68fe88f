"""Conv2D natively on the CPU against the reference's meaning: every edge of kernel, stride and padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_array_instructions import EPSILON, FLOAT_TYPES

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.table import ROWS
from eshkol.atlas.table.convolutions import conv_output
from eshkol.atlas.types import Type, to_array
from eshkol.backends.base import Backend
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.reference import ReferenceBackend

pytest.importorskip("llvmlite")
CPU = CpuBackend()


def convolve(
    backend: Backend, ty: Type, image: np.ndarray, kernel: np.ndarray, lanes: int = 1, **how: Any
) -> np.ndarray:
    """The output; with several lanes, each takes an image."""
    b = ProgramBuilder()
    batch, channels, height, width = image.shape
    places: dict[str, Any] = {name: b.buffer(name, ty).address for name in ("output", "input", "kernel")}
    sizes = {"batch": batch // lanes, "in_channels": channels, "out_channels": len(kernel), "height": height,
             "width": width, "kernel_h": kernel.shape[2], "kernel_w": kernel.shape[3], **how}  # fmt: skip
    out = conv_output(ROWS["Conv2D"](ty=ty, **places, **sizes))
    shape = (batch, len(kernel), *out)
    if lanes > 1:
        for name, size in (("output", math.prod(shape[1:])), ("input", math.prod(image.shape[1:]))):
            places[name] = places[name].at(Register(255), ty.size_bytes * size)
    b.emit(ROWS["Conv2D"](ty=ty, **places, **sizes))
    params = {"input": backend.array(to_array(image.reshape(-1), ty), ty),
              "kernel": backend.array(to_array(kernel.reshape(-1), ty), ty),
              "output": backend.allocate_typed(ty, math.prod(shape))}  # fmt: skip
    backend.execute(b.build(), LaunchConfig.linear(lanes), params)
    return params["output"].read().astype(np.float64).reshape(shape)


def normal(ty: Type, *shape: int) -> np.ndarray:
    values = np.random.default_rng(math.prod(shape)).standard_normal(math.prod(shape))
    return np.asarray(to_array(values, ty), np.float64).reshape(shape)


def check(ty: Type, image: np.ndarray, kernel: np.ndarray, **how: Any) -> None:
    wanted, found = (convolve(backend, ty, image, kernel, **how) for backend in (ReferenceBackend(), CPU))
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.where(finite, 0, found), np.where(finite, 0, wanted))
    terms, compute = math.prod(kernel.shape[1:]), EPSILON[Type.F32 if ty.is_half else ty]
    scale = np.abs(wanted[finite]) + np.max(np.abs(wanted[finite]), initial=1.0)
    bound = compute * 4 * (terms + 4) * scale + EPSILON[ty] * np.abs(wanted[finite])
    assert (np.abs(found[finite] - wanted[finite]) <= bound).all()


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_any_shape(ty: Type, data: Any) -> None:
    size, small = st.integers(1, 20), st.integers(1, 5)
    height, width, kernel_h, kernel_w = (data.draw(s) for s in (size, size, small, small))
    stride = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    padding = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    assume(kernel_h <= height + 2 * padding[0] and kernel_w <= width + 2 * padding[1])
    batch, channels, out_channels = (data.draw(st.integers(low, high)) for low, high in ((0, 2), (1, 9), (1, 19)))
    image, kernel = normal(ty, batch, channels, height, width), normal(ty, out_channels, channels, kernel_h, kernel_w)
    check(ty, image, kernel, stride=stride, padding=padding)


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
@pytest.mark.parametrize(
    ("channels", "size", "out_channels", "kernel", "stride", "padding"),
    [
        (64, 14, 20, 3, 1, 1),  # rows follow each other without a gap, but not without their edges
        (700, 5, 9, 3, 1, 1),  # several blocks of steps
        (1500, 6, 3, 1, 1, 0),  # the same as a matrix product
        (3, 33, 8, 7, 2, 3),
        (2, 3, 5, 9, 1, 4),  # a kernel larger than the image
        (1, 40, 1, 31, 1, 0),
    ],
)
def test_blocks_and_edges(
    ty: Type, channels: int, size: int, out_channels: int, kernel: int, stride: int, padding: int
) -> None:
    image, weights = normal(ty, 2, channels, size, size), normal(ty, out_channels, channels, kernel, kernel)
    check(ty, image, weights, stride=(stride, stride), padding=(padding, padding))


@settings(max_examples=20)
@given(place=st.integers(0, 2 * 81 - 1), value=st.sampled_from([math.inf, -math.inf, math.nan]))
def test_infinities_stay_where_they_are(place: int, value: float) -> None:
    """In the image, not even next to the padding is anything else touched."""
    image = normal(Type.F32, 1, 2, 9, 9)
    image.reshape(-1)[place] = value
    with np.errstate(invalid="ignore"):
        check(Type.F32, image, normal(Type.F32, 3, 2, 3, 3), padding=(1, 1))


def test_lanes_give_the_same_bits_as_all_cores() -> None:
    image, kernel = normal(Type.F32, 4, 5, 19, 17), normal(Type.F32, 11, 5, 3, 3)
    together, apart = (convolve(CPU, Type.F32, image, kernel, lanes, padding=(1, 1)) for lanes in (1, 4))
    np.testing.assert_array_equal(together, apart)
