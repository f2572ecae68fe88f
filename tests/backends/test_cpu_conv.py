"""Convolution and its gradients natively on the CPU against the reference's meaning: every edge of kernel, stride,
padding, dilation and groups. `ESHKOL_GUARD=end` (and `start`) runs them beside pages that may not be touched."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_array_instructions import EPSILON, FLOAT_TYPES

from batches import checkered
from effort import examples
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Instruction, Kind
from eshkol.atlas.operands import Activation, Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.table.convolutions import conv_edges, conv_output, conv_reach
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.cpu.macros import lower
from eshkol.backends.cpu.macros.conv_direct import DirectPlan
from eshkol.backends.cpu.macros.conv_plan import Finish, Sweep

pytest.importorskip("llvmlite")
CPU = CpuBackend()
NAMES = ("Conv2D", "Conv2DGradInput", "Conv2DGradWeight", "FusedConv2D")
EXTRAS = {"FusedConv2D": ("scale", "bias")}


def instruction(name: str, ty: Type, **how: Any) -> Instruction:
    """The instruction on buffers of its operands' names."""
    b = ProgramBuilder()
    memory = {
        f.name: b.buffer(f.name, ty).address
        for f in ROWS[name].memory
        if f.default is not None or f.name in EXTRAS.get(name, ())
    }
    return ROWS[name](ty=ty, **memory, **how)


def inputs(i: Instruction) -> dict[str, np.ndarray]:
    """Arrays for what an instruction reads, in F64."""
    found = {}
    for number, f in enumerate(i.op.memory):
        if f.kind is Kind.READ and getattr(i, f.name) is not None:
            shape = f.shape(i)
            values = np.random.default_rng((number, *shape)).standard_normal(math.prod(shape))
            found[f.name] = np.asarray(to_array(values, i.ty), np.float64).reshape(shape)
    return found


def on_cpu(i: Instruction, arrays: dict[str, np.ndarray], lanes: int = 1) -> np.ndarray:
    """The output; with several lanes, each takes an image."""
    b = ProgramBuilder()
    for name in ("output", *arrays):
        b.buffer(name, i.ty)
    out = i.op.memory[0]
    shape, given = out.shape(i), i
    if lanes > 1:
        places = {"output": math.prod(shape), "input": arrays["input"].size}
        names = {f.name: value for f, value in zip(i.op.fields, i.operands, strict=True)}
        for name, size in places.items():
            names[name] = names[name].at(Register(255), i.ty.size_bytes * size // lanes)
        given = i.op(**{**names, "batch": i.batch // lanes})
    b.emit(given)
    params = {name: CPU.array(to_array(array.reshape(-1), i.ty), i.ty) for name, array in arrays.items()}
    params["output"] = CPU.allocate_typed(i.ty, math.prod(shape))
    CPU.execute(b.build(), LaunchConfig.linear(lanes), params)
    return params["output"].read().astype(np.float64).reshape(shape)


def terms(i: Instruction) -> int:
    """How many products a sum has, at most."""
    taps = i.kernel_h * i.kernel_w
    each = {
        "Conv2DGradInput": i.out_channels // i.groups * taps,
        "Conv2DGradWeight": i.batch * math.prod(conv_output(i)),
    }
    return each.get(i.op.name, i.in_channels // i.groups * taps)


def check(i: Instruction, arrays: dict[str, np.ndarray] | None = None) -> None:
    arrays = inputs(i) if arrays is None else arrays
    assert lower(i, CPU.target) is not None
    (wanted,) = i.op.meaning.fn(i, *arrays.values())
    wanted, found = np.asarray(to_array(wanted.reshape(-1), i.ty), np.float64).reshape(wanted.shape), on_cpu(i, arrays)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.where(finite, 0, found), np.where(finite, 0, wanted))
    compute = EPSILON[Type.F32 if i.ty.is_half else i.ty]
    scale = np.abs(wanted[finite]) + np.max(np.abs(wanted[finite]), initial=1.0)
    bound = compute * 4 * (terms(i) + 4) * scale + EPSILON[i.ty] * np.abs(wanted[finite])
    assert (np.abs(found[finite] - wanted[finite]) <= bound).all()


@st.composite
def geometries(draw: Any) -> dict[str, Any]:
    size, small, few = st.integers(1, 20), st.integers(1, 5), st.integers(1, 3)
    groups = draw(st.sampled_from([1, 1, 2, 3, 5]))
    each = st.one_of(st.just(1), st.integers(1, 9), st.integers(1, 19))
    how = {
        "batch": draw(st.integers(0, 3)), "in_channels": groups * draw(each), "out_channels": groups * draw(each),
        "height": draw(size), "width": draw(size), "kernel_h": draw(small), "kernel_w": draw(small),
        "stride": draw(st.tuples(few, few)), "padding": draw(st.tuples(*[st.integers(0, 4)] * 4)),
        "dilation": draw(st.one_of(st.just((1, 1)), st.tuples(few, few))), "groups": groups,
    }  # fmt: skip
    room = how["height"] + how["padding"][0] + how["padding"][2], how["width"] + how["padding"][1] + how["padding"][3]
    kernel = how["kernel_h"], how["kernel_w"]
    assume(all((k - 1) * d < n for k, d, n in zip(kernel, how["dilation"], room, strict=True)))
    return how


@checkered(name=NAMES, ty=FLOAT_TYPES)
@examples(12, 2)
@given(how=geometries(), activation=st.sampled_from([Activation.Relu, Activation.Identity, Activation.Gelu]))
def test_any_shape(name: str, ty: Type, how: dict[str, Any], activation: Activation) -> None:
    check(instruction(name, ty, **how, **({"activation": activation} if name == "FusedConv2D" else {})))


def square(
    name: str, ty: Type, channels: int, size: int, outs: int, kernel: int, stride: int, padding: int, **how: Any
):
    return instruction(
        name, ty, batch=2, in_channels=channels, out_channels=outs, height=size, width=size, kernel_h=kernel,
        kernel_w=kernel, stride=(stride, stride), padding=(padding, padding), **how,
    )  # fmt: skip


@checkered(
    ty=[Type.F32, Type.F16],
    name=NAMES[:3],
    how=[
        (64, 14, 20, 3, 1, 1),  # rows follow each other without a gap, but not without their edges
        (700, 5, 9, 3, 1, 1),  # several blocks of steps, several tiles of columns
        (9, 5, 700, 3, 2, 1),  # of the gradient in the input as well; several tiles of rows
        (1500, 6, 3, 1, 1, 0),  # the same as a matrix product
        (3, 33, 8, 7, 2, 3),
        (2, 3, 5, 9, 1, 4),  # a kernel larger than the image
        (1, 40, 1, 31, 1, 0),  # more taps than a tile has columns
        (3, 9, 4, 2, 4, 0),  # places that no tap meets
    ],
)
def test_blocks_and_edges(name: str, ty: Type, how: tuple[int, ...]) -> None:
    check(square(name, ty, *how))


@pytest.mark.parametrize("name", NAMES[:3])
def test_one_long_row_and_one_large_plane(name: str) -> None:
    """Bands are cut along rows as well as along columns."""
    sizes = {"batch": 1, "in_channels": 2, "out_channels": 2, "groups": 2}
    check(instruction(name, Type.F32, **sizes, height=1, width=3001, kernel_h=1, kernel_w=4, padding=(0, 2)))
    check(instruction(name, Type.F32, **sizes, height=150, width=140, kernel_h=3, kernel_w=2, stride=(1, 2)))


def test_few_channels_are_summed_directly_and_many_are_not() -> None:
    for channels, groups, direct in ((8, 8, True), (3, 1, True), (8, 1, False), (16, 2, False)):
        i = square("Conv2D", Type.F32, channels, 9, channels, 3, 1, 1, groups=groups)
        sweep = Sweep.of(i, backward=False)
        assert sweep is not None
        assert (DirectPlan.of(sweep, Finish(), CPU.target) is not None) == direct


@pytest.mark.parametrize("each", [1, 2, 3])  # channels of the result in a group
@pytest.mark.parametrize("ty", [Type.F32, Type.F64, Type.BF16], ids=str)
def test_rows_that_are_summed_at_once_end_anywhere(ty: Type, each: int) -> None:
    """Rows shorter than a vector, of one and a half, of two and a bit; as many as are taken at once, fewer and more."""
    widths, heights = (1, 3, 4, 5, 7, 8, 11, 15, 16, 17, 24, 31, 33, 49, 64, 70), (1, 2, 3, 4, 5, 9)
    for number, width in enumerate(widths):
        height, stride = heights[number % len(heights)], (2, 1) if number % 5 == 4 else (1, 1)
        how = {"batch": 2, "in_channels": 2, "out_channels": 2 * each, "groups": 2, "height": height, "width": width,
               "kernel_h": 3, "kernel_w": 2, "stride": stride, "padding": (1, 0, 1, 1), "dilation": (1, 1)}  # fmt: skip
        for name in ("Conv2D", "Conv2DGradInput") if each == 1 else ("Conv2D",):
            check(instruction(name, ty, **how))


@examples(10, 5)
@given(place=st.integers(0, 2 * 81 - 1), value=st.sampled_from([math.inf, -math.inf, math.nan]), few=st.booleans())
def test_infinities_stay_where_they_are(place: int, value: float, few: bool) -> None:
    """In the image, not even next to the padding is anything else touched."""
    i = instruction("Conv2D", Type.F32, batch=1, in_channels=2, out_channels=2 if few else 4, height=9, width=9,
                    kernel_h=3, kernel_w=3, padding=(1, 1))  # fmt: skip
    arrays = inputs(i)
    arrays["input"].reshape(-1)[place] = value
    with np.errstate(invalid="ignore"):
        check(i, arrays)


@pytest.mark.parametrize("channels", [5, 10])
def test_lanes_give_the_same_bits_as_all_cores(channels: int) -> None:
    i = instruction("Conv2D", Type.F32, batch=4, in_channels=channels, out_channels=channels, height=19, width=17,
                    kernel_h=3, kernel_w=3, padding=(1, 1), groups=5)  # fmt: skip
    arrays = inputs(i)
    np.testing.assert_array_equal(on_cpu(i, arrays), on_cpu(i, arrays, lanes=4))


def test_a_stride_of_too_many_parts_is_left_to_the_expansion() -> None:
    i = instruction("Conv2DGradInput", Type.F32, batch=1, in_channels=1, out_channels=1, height=1, width=2000,
                    kernel_h=1, kernel_w=3, stride=(1, 1900))  # fmt: skip
    assert conv_output(i) == (1, 2)
    assert conv_reach(i) == (1, 3)
    assert conv_edges(i) == (0, 0, 0, 0)
    assert lower(i, CPU.target) is None
    arrays = inputs(i)
    np.testing.assert_allclose(on_cpu(i, arrays), i.op.meaning.fn(i, *arrays.values())[0], rtol=1e-6)
