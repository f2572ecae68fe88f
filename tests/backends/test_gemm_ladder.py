"""The kernel ladder: every rung is the product, on the interpreter that sees races; its PTX asks for what it should."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted_driver import installed

import eshkol as ek
from effort import FULL, examples
from eshkol import kernels
from eshkol.atlas.machines import BLOCKS, ProductTile
from eshkol.atlas.program import LANES
from eshkol.atlas.types import Type
from eshkol.backends.blocks import DESCRIPTION, BlocksBackend
from eshkol.backends.cuda.translate import in_base_instructions, ptx, target, translate
from eshkol.backends.lanes.promises import promises
from eshkol.errors import ArgumentError, DeviceError, DTypeError, ExecutionFailed, ShapeError, TensorError, TraceError
from eshkol.kernels import launching, rungs
from eshkol.kernels.parts import Extents
from eshkol.schedule.kernels.code import OutOfRegisters

NAMES = tuple(kernels.GEMM)
UNMEASURED = tuple(name for name in NAMES if name != "autotuned")


def matrices(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Of small integers, whose products are exact in any order."""
    rng = np.random.default_rng(m + n + k)
    return rng.integers(-4, 5, (m, k)).astype(np.float32), rng.integers(-4, 5, (k, n)).astype(np.float32)


def computed(made: launching.Made, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    machine, (m, n) = BlocksBackend(), (len(a), b.shape[1])
    buffers = {"a": machine.array(a, Type.F32), "b": machine.array(b, Type.F32)}
    c = machine.allocate_typed(Type.F32, m * n)
    machine.execute(*made, {**buffers, "c": c})
    return c.read().reshape(m, n)


def on_blocks(*arrays: np.ndarray) -> list[ek.Tensor]:
    return [ek.tensor(array).to("blocks") for array in arrays]


# --- products ---------------------------------------------------------------------------------------


def test_the_names():
    assert NAMES == (
        "naive", "coalesced", "shared_tiled", "block_tiled_1d", "block_tiled_2d", "vectorized", "conflict_free",
        "autotuned", "warp_tiled", "pipelined",
    )  # fmt: skip
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
    for number, rung in enumerate(kernels.GEMM.values(), 1):
        assert f"| {number} | `{rung.name}` | {rung.idea} |" in page


# Odd; multiples of all tiles; multiples of vectors alone, so that a vector is beyond an edge or not.
SHAPES = ((17, 35, 5), (16, 64, 8), (20, 68, 4))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_rung_is_the_product(name, shape):
    m, n, k = shape
    a, b = matrices(m, n, k)
    b[-1, n // 2], a[0, k - 1] = np.inf, 1.0  # which terms beyond the end must not meet
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    assert np.isinf(wanted).any()
    got = computed(kernels.ready(name, Extents(m, n, k, DESCRIPTION)), a, b)
    np.testing.assert_array_equal(got, wanted)


def test_vectors_of_terms_beyond_the_end():
    p = Extents(20, 68, 12, DESCRIPTION)
    a, b = matrices(p.m, p.n, p.k)
    np.testing.assert_array_equal(computed(rungs.spread("deep", p, ProductTile(16, 32, 8, 4, 8)), a, b), a @ b)


@examples(60, 4)
@given(st.sampled_from(UNMEASURED), st.integers(1, 70), st.integers(1, 70), st.integers(1, 40))
def test_of_any_size(name, m, n, k):
    a, b = matrices(m, n, k)
    np.testing.assert_array_equal(computed(kernels.GEMM[name].write(Extents(m, n, k, DESCRIPTION)), a, b), a @ b)


@pytest.mark.skipif(not FULL, reason="takes some seconds")
@pytest.mark.parametrize("shape", [(130, 140, 37), (128, 256, 32), (1, 300, 8), (300, 1, 20)])
@pytest.mark.parametrize("name", NAMES)
def test_the_tiles_of_gpus(name, shape):
    a, b = matrices(*shape)
    np.testing.assert_array_equal(computed(kernels.GEMM[name].write(Extents(*shape, BLOCKS)), a, b), a @ b)


@pytest.mark.parametrize("name", ["shared_tiled", "pipelined"])
def test_a_missing_barrier_is_seen(name):
    program, launch = kernels.GEMM[name].write(Extents(32, 64, 8, DESCRIPTION))
    barriers = [k for k, i in enumerate(program.instructions) if i.op.name == "BarSync"]
    assert len(barriers) == 2
    for barrier in barriers:
        with pytest.raises(ExecutionFailed, match="shared memory"):
            computed((program.with_changes({barrier: ()}), launch), *matrices(32, 64, 8))


# --- tensors ----------------------------------------------------------------------------------------


def test_tensors():
    arrays = matrices(9, 6, 7)
    a, b = on_blocks(*arrays)
    c = kernels.gemm("coalesced", a, b)
    assert (c.device, c.shape, c.dtype) == ("blocks", (9, 6), ek.float32)
    np.testing.assert_array_equal((c + 1.0).numpy(), arrays[0] @ arrays[1] + 1.0)
    np.testing.assert_array_equal(kernels.gemm("naive", b.T, a.T).numpy(), (arrays[0] @ arrays[1]).T)


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 3, 0), (0, 0, 0)])
def test_empty_axes(shape):
    m, n, k = shape
    for name in NAMES:
        got = kernels.gemm(name, *on_blocks(np.ones((m, k), np.float32), np.ones((k, n), np.float32)))
        assert got.device == "blocks"
        np.testing.assert_array_equal(got.numpy(), np.zeros((m, n)))


def test_what_is_refused():
    a = ek.ones((2, 3)).to("blocks")
    with pytest.raises(ArgumentError, match=r"no rung 'fast'(.|\n)*hint: it has naive, coalesced"):
        kernels.gemm("fast", a, a)
    with pytest.raises(ArgumentError, match="b is a list, and no tensor"):
        kernels.gemm("naive", a, [1.0])
    with pytest.raises(DTypeError, match="multiplies float32, and b is int32"):
        kernels.gemm("naive", a, ek.ones((3, 2), dtype="int32").to("blocks"))
    with pytest.raises(ShapeError, match=r"a is no matrix: its shape is \[3\]"):
        kernels.gemm("naive", a[0], a)
    with pytest.raises(ShapeError, match="a is 2 × 3 and b is 2 × 3: a must have as many columns as b has rows"):
        kernels.gemm("naive", a, a)
    with pytest.raises(DeviceError, match="a is on blocks and b on cpu"):
        kernels.gemm("naive", a, ek.ones((3, 2)))
    with pytest.raises(DeviceError, match=r"for machines of blocks, and cpu has none(.|\n)*to\(\"cuda\"\)"):
        kernels.gemm("naive", ek.ones((2, 3)), ek.ones((3, 2)))
    with pytest.raises(TraceError, match="would lose its derivative"):
        kernels.gemm("naive", a.requires_grad_(), a.T)
    with pytest.raises(TensorError, match="takes no time"):
        kernels.tune(ek.ones((2, 0)).to("blocks"), ek.ones((0, 2)).to("blocks"))


def test_on_the_runtime_of_gpus(monkeypatch):
    arrays = matrices(20, 24, 12)
    with installed(monkeypatch):
        a, b = (ek.tensor(array).to("cuda") for array in arrays)
        c = kernels.gemm("coalesced", a, b)
        np.testing.assert_array_equal(c.numpy(), arrays[0] @ arrays[1])
        machine = ek.tensors.devices.open_backend("cuda")
        x, y, result = (launching.shown(value, "test") for value in (a, b, c))
        made = kernels.ready("coalesced", Extents(20, 24, 12, machine.description))
        assert kernels.device_seconds(machine, made, (x, y), result) >= 0


# --- sizes that were measured -----------------------------------------------------------------------


def test_the_space_of_tiles():
    p = Extents(4096, 4096, 4096, BLOCKS)
    found = list(rungs.tiles(p))
    assert ProductTile(128, 128, 8, 8, 8) in found
    assert {t.rows for t in found} == {t.columns for t in found} == {32, 64, 128}
    assert {t.depth for t in found} == {8, 16}
    assert {t.lane_rows for t in found} == {t.lane_columns for t in found} == {4, 8}
    assert min(found, key=lambda t: rungs.expected(p, t)).rows == 128
    few = Extents(256, 256, 4096, BLOCKS)
    assert min(found, key=lambda t: rungs.expected(few, t)).rows == 32


def test_tiles_of_the_last_rung():
    large = replace(BLOCKS, shared_memory=227 << 10)
    for machine, side, rows, columns, depth in (
        (large, 4096, 128, 128, 16), (BLOCKS, 4096, 128, 128, 8), (large, 512, 64, 64, 16),
    ):  # fmt: skip
        tile = rungs._widest(Extents(side, side, side, machine))[0]
        assert (tile.rows, tile.columns, tile.depth) == (rows, columns, depth)
    with pytest.raises(OutOfRegisters, match="no tile of the last rung fits"):
        rungs.pipelined(Extents(64, 64, 64, BLOCKS), ProductTile(128, 256, 8, 16, 16))


def test_the_best_tile_is_kept(monkeypatch):
    monkeypatch.setattr(rungs, "CHOICES", ((32, 64), (32,), (8,), (4,), (4,)))
    monkeypatch.setattr(launching, "_tuned", {})
    arrays = matrices(19, 17, 5)
    a, b = on_blocks(*arrays)
    p = Extents(19, 17, 5, DESCRIPTION)
    times = iter((2.0, 1.0))
    monkeypatch.setattr(launching, "device_seconds", lambda *_: next(times))
    np.testing.assert_array_equal(kernels.gemm("autotuned", a, b).numpy(), arrays[0] @ arrays[1])
    small, large = (ProductTile(rows, 8, 4, 2, 4) for rows in (4, 8))
    first, second = sorted((small, large), key=lambda tile: rungs.expected(p, tile))
    assert launching._tuned == {p: second}
    program, _ = kernels.ready("autotuned", p)
    assert program == rungs.autotuned(p, second)[0] != rungs.autotuned(p, first)[0]
    np.testing.assert_array_equal(kernels.gemm("autotuned", a, b).numpy(), arrays[0] @ arrays[1])


def test_times_are_the_devices():
    a, b = on_blocks(*matrices(4, 4, 4))
    machine = ek.tensors.devices.open_backend("blocks")
    made = kernels.ready("naive", Extents(4, 4, 4, DESCRIPTION))
    values = [launching.shown(x, "test") for x in (a, b, a)]
    assert 0 < kernels.device_seconds(machine, made, (values[0], values[1]), values[2]) < 5


# --- what GPUs are asked for ------------------------------------------------------------------------

ASKED = {  # accesses in the PTX of a product of 64 × 64 × 64 in the small tiles: how many of each
    "naive": {"ld.shared": 0, "bar.sync": 0, "ld.global.v4": 0},
    "coalesced": {"ld.shared": 0, "bar.sync": 0, "ld.global.v4": 0},
    "shared_tiled": {"bar.sync": 2, "st.shared.b32": 2, "ld.global.b32": 2},
    "block_tiled_1d": {"bar.sync": 2, "ld.global.v4": 0},
    "block_tiled_2d": {"bar.sync": 2, "ld.global.v4": 0, "ld.shared.v4": 4 + 4 * 2},
    "vectorized": {"ld.global.v4": 1 + 2, "ld.global.b32": 0, "ld.shared.v4": 4 * (1 + 2), "ld.shared.b32": 0},
    "conflict_free": {"ld.global.v4": 1 + 2, "ld.global.b32": 0, "ld.shared.v4": 4 * (1 + 2), "st.shared.v4": 2},
    "autotuned": {"ld.global.b32": 0, "ld.shared.b32": 0},
    "warp_tiled": {"ld.global.v4": 1 + 2, "ld.shared.v4": 4 * (1 + 2), "st.global.v4": 4 * 2, "st.global.b32": 0},
    "pipelined": {"bar.sync": 2, "ld.shared.v4": (1 + 2) * (1 + 4), "ld.shared.b32": 0, "fma.rn.f32": 4 * 2 * 16},
}


@pytest.mark.parametrize("name", NAMES)
def test_ptx(name):
    program = in_base_instructions(kernels.GEMM[name].write(Extents(64, 64, 64, DESCRIPTION))[0])
    made = target((9, 0))
    text = ptx(translate(program, made, promises(program)), made)
    assert "fault" not in text, "all accesses are known to be in range"
    assert f".maxntid {program.metadata[LANES]}" in text
    found = {what: len(re.findall(rf"\s{re.escape(what)}\b", text)) for what in ASKED[name]}
    assert found == ASKED[name]
