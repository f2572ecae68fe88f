"""Convolutions in lines (`conv_lines`) in every way that some machine multiplies, on whatever machine this is.

Ways of machines that are not at hand run here with inner loops that say the same in plain arithmetic: all around them
(bands of woven pairs, blocks, masked stores, edges) is the code of those machines. That theirs is what they should have
is seen in its assembly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import test_cpu_conv
from hypothesis import given
from test_cpu_conv import check, geometries, inputs, instruction
from test_cpu_gemm import AVX512, COOPER_LAKE, SAPPHIRE

from effort import examples
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Activation
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend, macros
from eshkol.backends.cpu.kernels.macro import module_text
from eshkol.backends.cpu.macros import conv_direct, conv_lines, gemm_amx
from eshkol.backends.cpu.macros.conv_plan import Finish, Sweep
from eshkol.backends.cpu.macros.conv_ways import Strip, Way, tiles_of_pairs, vectors_of_pairs
from eshkol.backends.cpu.macros.kit import Kernel, Value
from eshkol.llvm.objects import assembly
from eshkol.llvm.targets import Target


def dots(k: Kernel, total: Value, b: Value, a: Value) -> Value:
    """Pairs of BF16, each the bits of a unit, multiplied and added to F32."""
    for half in (lambda v: v << 16, lambda v: v & -65536):
        total = k.muladd(half(b).bits(Type.F32), half(a).bits(Type.F32), total)
    return total


def tiles(k: Kernel, way: Way, strip: Strip) -> None:
    """The sums that tile registers would have, one after another."""
    with k.loop(0, way.rows, plain=True) as r, k.loop(0, way.columns, plain=True) as c:
        place = r * way.columns + c
        total = k.variable(k.const(Type.F32, 0))
        with k.when(strip.later):
            total.value = strip.sums[place]
        with k.loop(0, strip.steps, plain=True) as step, k.loop(0, way.depth, plain=True) as unit:
            a = strip.left[(step * way.rows + r) * way.depth + unit]
            b = strip.band[strip.offsets[step] + unit * strip.plane + c]
            total.value = dots(k, total.value, b, a)
        strip.sums[place] = total.value


def nothing(k: Kernel) -> None:
    """What configures no registers."""


SINGLE = Way("wide", Type.F32, Type.F32, Type.F32, 1, 1, 4, 2, 8, lambda k, t, b, a: k.muladd(b, a, t), masks=True)
WAYS = {
    "vectors": (Type.F16, SINGLE),
    "pairs": (Type.BF16, replace(vectors_of_pairs(dots, 4, 2, 8), name="pairs_here")),
    "tiles": (Type.BF16, replace(tiles_of_pairs(tiles, nothing, nothing), name="tiles_here")),
}
# Towards the input, places lie apart or not, as strides are; forward, the source is read in strides.
each_way = pytest.mark.parametrize(
    ("kind", "name"),
    [*(("Conv2DGradInput", name) for name in WAYS), ("FusedConv2D", "vectors"), ("FusedConv2D", "tiles")],
)


@contextmanager
def multiplied(name: str) -> Iterator[Type]:
    """Convolutions of many and of few channels are done in one of the ways; of the type that it is for."""
    found, way = WAYS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Way, "of", staticmethod(lambda sweep, target: way))
        patch.setattr(conv_lines, "GATHERED_ROWS", 1 << 30)
        patch.setattr(conv_direct, "FEW_ROWS", 0)
        yield found


def made(kind: str, ty: Type, **how: Any) -> Instruction:
    return instruction(kind, ty, **how, **({"activation": Activation.Relu} if kind == "FusedConv2D" else {}))


def in_lines(i: Instruction) -> bool:
    sweep = Sweep.of(i, backward=i.op.name == "Conv2DGradInput")
    assert sweep is not None
    finish = Finish.of(i) if i.op.name == "FusedConv2D" else Finish()
    return conv_lines.LinesPlan.of(sweep, finish, CpuBackend().target) is not None


@each_way
@examples(300, 4)
@given(how=geometries())
def test_any_shape(kind: str, name: str, how: dict[str, Any]) -> None:
    with multiplied(name) as ty:
        check(made(kind, ty, **how))


@each_way
@pytest.mark.parametrize(
    "how",
    [
        (40, 14, 20, 3, 1, 1),  # several rows of places in a vector
        (300, 5, 9, 3, 1, 1),  # several blocks of steps
        (9, 7, 300, 3, 2, 1),  # of the gradient in the input as well
        (5, 23, 8, 5, 3, 2),  # places three apart
        (3, 9, 4, 2, 4, 0),  # places that no tap meets
    ],
    ids=str,
)
def test_blocks_and_edges(kind: str, name: str, how: tuple[int, ...]) -> None:
    channels, size, outs, kernel, stride, padding = how
    with multiplied(name) as ty:
        i = made(
            kind, ty, batch=2, in_channels=channels, out_channels=outs, height=size, width=size, kernel_h=kernel,
            kernel_w=kernel, stride=(stride, stride), padding=(padding, padding),
        )  # fmt: skip
        assert in_lines(i)
        check(i)


@pytest.mark.parametrize("ty", [Type.F32, Type.F64, Type.F16, Type.BF16], ids=str)
def test_rows_of_one_place_in_the_way_of_this_machine(ty: Type) -> None:
    for channels in (4, 40):
        check(made("Conv2DGradInput", ty, batch=2, in_channels=channels, out_channels=1, height=20, width=1, kernel_h=1,
                   kernel_w=1, stride=(1, 2)))  # fmt: skip


@each_way
def test_a_single_column_lies_apart_from_nothing(kind: str, name: str) -> None:
    """A stride of two along rows of one place: the places of several rows share a vector all the same."""
    with multiplied(name) as ty:
        for stride in ((1, 2), (1, 3), (2, 1)):
            check(made(kind, ty, batch=2, in_channels=2, out_channels=1, height=3, width=1, kernel_h=1, kernel_w=1,
                       stride=stride))  # fmt: skip


@each_way
def test_bands_are_cut_along_rows_and_columns(kind: str, name: str) -> None:
    sizes = {"batch": 1, "in_channels": 3, "out_channels": 5}
    long = {"height": 1, "width": 1203, "kernel_h": 1, "kernel_w": 4, "padding": (0, 2)}
    large = {"height": 17, "width": 345, "kernel_h": 3, "kernel_w": 2, "stride": (1, 2), "dilation": (2, 1)}
    with multiplied(name) as ty:
        for how in (long, large):
            i = made(kind, ty, **sizes, **how)
            assert in_lines(i)
            check(i)


@each_way
def test_an_infinity_beside_channels_that_are_not_there(kind: str, name: str) -> None:
    """The last of an odd number of channels has no partner, not even itself."""
    with multiplied(name) as ty:
        i = made(kind, ty, batch=1, in_channels=5, out_channels=5, height=5, width=6, kernel_h=3, kernel_w=3)
        arrays = inputs(i)
        source = next(iter(arrays))  # the image, or the gradient of the result
        arrays[source][0, -1, 1, 1] = math.inf
        check(i, arrays)


def test_the_gradient_in_the_kernel_with_longer_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of as many lanes as a tile has sums, or more; tiles of all rows and of one."""
    cpu = CpuBackend()
    cpu.target = replace(cpu.target, vector_bits=512)
    monkeypatch.setattr(test_cpu_conv, "CPU", cpu)
    for channels, outs, size in ((5, 7, 13), (30, 70, 9)):
        check(made("Conv2DGradWeight", Type.F32, batch=2, in_channels=channels, out_channels=outs, height=size,
                   width=size, kernel_h=3, kernel_w=3, padding=(1, 1)))  # fmt: skip


# --- what machines are given ----------------------------------------------------------------------

MANY = {"batch": 2, "in_channels": 32, "out_channels": 64, "height": 28, "width": 28, "kernel_h": 3, "kernel_w": 3}


@pytest.mark.parametrize(
    ("ty", "target", "has", "lacks"),
    [
        (Type.F32, AVX512, ("vfmadd231ps", "zmm26", "{%k"), ()),
        (Type.BF16, COOPER_LAKE, ("vdpbf16ps", "zmm26"), ("tdpbf16ps",)),
        (Type.BF16, SAPPHIRE, ("tdpbf16ps", "ldtilecfg", "tilerelease"), ("vdpbf16ps",)),
    ],
    ids=["vectors", "pairs", "tiles"],
)
def test_machines_use_what_they_have(
    ty: Type, target: Target, has: tuple[str, ...], lacks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gemm_amx, "permitted", lambda: True)
    macro = macros.LOWERINGS["Conv2D"](instruction("Conv2D", ty, **MANY), target)
    assert macro is not None
    text = assembly(module_text(macro), target)
    assert [word for word in has if word not in text] == []
    assert [word for word in lacks if word in text] == []


def test_few_channels_are_not_worth_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are tiles used where the system does not permit it."""
    monkeypatch.setattr(gemm_amx, "permitted", lambda: True)

    def name(**how: int) -> str:
        sweep = Sweep.of(instruction("Conv2D", Type.BF16, **{**MANY, **how}), backward=False)
        assert sweep is not None
        return Way.of(sweep, SAPPHIRE).name

    assert [name(), name(in_channels=3), name(out_channels=8)] == ["tiles", "pairs", "tiles"]
    monkeypatch.setattr(gemm_amx, "permitted", lambda: False)
    assert name() == "pairs"


@pytest.mark.parametrize("columns", [16, 30, 31, 32, 46, 48, 64, 80])
@pytest.mark.parametrize(("channels", "out_channels"), [(3, 16), (200, 11)])
def test_strips_that_end_with_their_rows(columns: int, channels: int, out_channels: int) -> None:
    """Rows of every number of vectors, whole and cut; channels that fill panels or not; several blocks."""
    i = instruction(
        "Conv2D", Type.F32, batch=1, in_channels=channels, out_channels=out_channels, height=5, width=columns,
        kernel_h=3, kernel_w=3, padding=(1, 1),
    )  # fmt: skip
    plan = conv_lines.LinesPlan.of(Sweep.of(i, backward=False), Finish(), AVX512)
    assert plan is not None
    assert plan.by_rows == (columns > 16)
    check(i)
