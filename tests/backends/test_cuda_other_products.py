"""Products of float32, exact and rounded, and of int8 as a whole on Hopper: what they are found for, PTX, launches.

The numbers are compared on a GPU (`test_cuda_gpu.py`).
"""

from __future__ import annotations

import shutil
from itertools import product as combined

import numpy as np
import pytest
from interpreted_driver import installed
from test_cuda_warpgroups import assembled

import eshkol as ek
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.program import ROUNDED, Program
from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import lane_products, lane_tiling, other_products, tiling
from eshkol.backends.cuda.warpgroups.instructions import whole
from eshkol.backends.cuda.warpgroups.products import Matrices, Product
from eshkol.schedule.kernels import array_products

PROCESSORS = 132
REGISTERS, MEMORY, RESERVED = 1 << 16, 228 << 10, 1 << 10  # of a processor, and bytes that each block takes besides
WAYS = list(combined((False, True), repeat=2))


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        yield made


@pytest.fixture
def small(monkeypatch):
    """Products are large that have few results."""
    monkeypatch.setattr(array_products, "FILLS", 1)


def plain(m: int, n: int, k: int, turned: tuple[bool, bool] = (False, False), batch: tuple[int, ...] = ()) -> Product:
    def matrices(name: str, rows: int, columns: int, turns: bool) -> Matrices:
        return Matrices(name, 0, rows if turns else columns, turns, tuple(rows * columns for _ in batch))

    a, b, c = matrices("a", m, k, turned[0]), matrices("b", k, n, turned[1]), matrices("c", m, n, turns=False)
    return Product(Type.F32, m, n, k, batch, a, b, c)


def gemm(*, rounded: bool = False, m: int = 1024, n: int = 1024, k: int = 256, **more: object) -> Program:
    b = ProgramBuilder("p")
    places = [b.buffer(name, Type.F32).address for name in "cab"]
    b.gemm(Type.F32, *places, m=m, n=n, k=k, **more)
    if rounded:
        b.metadata[ROUNDED] = "1"
    return b.build()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bytes_are_multiplied_as_a_whole_where_rows_are_chunks(driver, dtype):
    """Else, and elsewhere, they are widened: the result is the same but for rounding."""
    rng = np.random.default_rng(4)
    for terms in (32, 24):
        x, y = (rng.integers(0, 0x60, (rows, terms)).astype(np.uint8) for rows in (20, 24))
        given = [ek.tensor(a, device="cuda") for a in (x, y)]
        multiply = ek.jit(lambda x, y: ek.float8_matmul(x, y, 0.5, ("e5m2", "e4m3"), dtype))
        found = multiply(*given).astype("float32").numpy()
        wanted = ek.float8_matmul(ek.tensor(x), ek.tensor(y), 0.5, ("e5m2", "e4m3")).numpy()
        np.testing.assert_allclose(found, wanted, atol=5e-3 * abs(wanted).max())
        names = [str(p.instructions[0].op.name) for p in driver.programs.values() if p.digest in driver.at_once]
        assert names.count("Float8GEMM") == 1  # of the first


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas, which NVIDIA's toolkit has, is not installed")
def test_the_assembler_takes_kernels_of_bytes(tmp_path):
    for (m, n, k), ty in combined(((128, 256, 512), (999, 521, 272), (4096, 4096, 4096)), (Type.F32, Type.BF16)):
        b = ProgramBuilder("p")
        c, scale = b.buffer("c", ty).address, b.buffer("s", Type.F32).address
        x, y = (b.buffer(name, Type.U8).address for name in "xy")
        b.float8_gemm(ty, c, x, y, scale, m=m, n=n, k=k, wide_a=m == 999)
        made = whole(b.build(), PROCESSORS)
        assert made is not None
        assert ("e5m2" in made.text) == (m == 999)
        assert " 0 bytes spill stores" in assembled(made.text, tmp_path)


# --- exact ones -----------------------------------------------------------------------------------------


def test_exact_products_are_code_of_threads_with_copies_of_the_machine():
    found = whole(gemm(), PROCESSORS)
    assert found is not None
    assert "fma.rn.f32" in found.text
    assert "wgmma" not in found.text
    assert [(one.buffer, one.exchanged) for one in found.maps] == [("b", False)]  # terms lie side by side in A


@pytest.mark.parametrize("given", [{"n": 1022}, {"m": 1022, "transpose_a": True}, {"beta": 1.0}, {"m": 0}])
def test_what_cannot_be_copied_is_code_of_lanes(given):
    assert whole(gemm(**given), PROCESSORS) is None


@pytest.mark.parametrize("turned", WAYS)
def test_a_kernel_has_what_its_tile_says(turned):
    for tile, _ in lane_tiling.TILES:
        text = lane_products.product_kernel(plain(1024, 1024, 512, turned), tile, 512, (88, 96, 104))
        loop = lane_products.DEPTH // tile.parts > tile.terms
        results = tile.lane_rows * tile.lane_columns
        assert text.count("fma.rn.f32") == results * tile.terms * (2 if loop else 1)
        assert text.count("mbarrier.init") == 2 * tile.stages
        assert text.count("st.global.v4.f32") == results // 4
        assert text.count("cp.async.bulk.tensor") == 2 * (turned[0] + (not turned[1])), "before the loop, and in it"
        lines = (0 if turned[0] else tile.rows) + (tile.columns if turned[1] else 0)
        assert text.count("cp.async.ca") == 2 * lines * lane_products.DEPTH // tile.threads
        assert f".reqntid {tile.threads}" in text
        assert ("add.f32" in text) == (tile.parts > 1)


def test_every_tile_fits_a_processor():
    for tile, _ in lane_tiling.TILES:
        assert tile.resident * (tile.memory + RESERVED) <= MEMORY
        assert tile.resident * tile.threads * tile.registers <= REGISTERS
        assert tile.threads % 32 == 0
        assert max(tile.rows, tile.columns) <= 256, "boxes are no longer"
        assert lane_products.DEPTH % (tile.parts * tile.terms) == 0
        assert tile.terms % 2 == 0, "two sets of registers take turns"
        assert min(tile.rows, tile.columns) % (tile.threads // lane_products.SECTOR) == 0


def test_tiles_are_smaller_where_there_are_few():
    sizes = [tile.rows * tile.columns for tile in (lane_tiling.best(plain(n, n, n), PROCESSORS) for n in (4096, 1024))]
    assert sizes[0] > sizes[1]
    for n in (1024, 1536, 2048, 4096):
        p = plain(n, n, n)
        tile = lane_tiling.best(p, PROCESSORS)
        turns = -(-lane_tiling.count(p, tile) // PROCESSORS)
        assert n * n / (turns * PROCESSORS * tile.rows * tile.columns) > 0.85, "the machine is at work"


@pytest.mark.parametrize("shapes", [((96, 64), (64, 100)), ((3, 64, 68), (3, 68, 104)), ((65, 67), (67, 77))])
def test_large_exact_products_are_launched_with_maps(driver, small, shapes):
    """Rows that are no multiple of 16 bytes are copied first."""
    rng = np.random.default_rng(3)
    arrays = [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
    x, y = (ek.tensor(a, device="cuda") for a in arrays)
    np.testing.assert_array_equal(ek.jit(lambda a, b: a @ b)(x, y).numpy(), np.matmul(*arrays))
    assert list(driver.at_once.values()) == [1], "the machine copies B"


def test_transposed_operands_are_read_where_they_lie(driver, small):
    rng = np.random.default_rng(4)
    for left, right in WAYS:
        a, b = (rng.integers(-3, 4, (96, 96)).astype(np.float32) for _ in range(2))
        x, y = (ek.tensor(v, device="cuda") for v in (a, b))
        f = ek.jit(lambda x, y, left=left, right=right: (x.T if left else x) @ (y.T if right else y))
        np.testing.assert_array_equal(f(x, y).numpy(), (a.T if left else a) @ (b.T if right else b))
    assert len(driver.at_once) == 4
    assert {program.name for program in driver.programs.values()} <= {"matrix_product", "seen_product"}, "no copies"


def test_small_exact_products_are_code_of_lanes(driver):
    x = ek.tensor(np.ones((8, 8), np.float32), device="cuda")
    assert (x @ x).sum().item() == 8**3
    assert not driver.at_once


# --- rounded ones ---------------------------------------------------------------------------------------


def test_other_products_are_those_of_groups_of_warps():
    """Terms lie side by side in the right factor as it is multiplied: in B, or in A, which is turned and comes last."""
    for turned in WAYS:
        found = whole(gemm(rounded=True, transpose_a=turned[0], transpose_b=turned[1]), PROCESSORS)
        assert found is not None
        if turned == (True, False):
            assert "wgmma" not in found.text
            continue
        assert "k8.f32.tf32.tf32" in found.text
        assert [one.buffer for one in found.maps] == (["a", "b"] if turned[1] else ["b", "a"])
        assert ("ld.shared.v2.b32" in found.text) == (turned != (False, True)), "the left factor is in registers"
    assert "wgmma" not in whole(gemm(), PROCESSORS).text


def test_a_rounded_kernel_has_what_its_tile_says():
    for (tile, _), turned in combined([*tiling.tiles(1), *tiling.tiles(2)], ((False, True), (False, False))):
        p = other_products.placed(plain(1000, 1024, 520, turned, (3,)))
        text = other_products.product_kernel(p, tile, 512, 96)
        high = tile.rows // (64 * tile.groups)
        sets = 1 if turned[1] else 2
        assert text.count(f"wgmma.mma_async.sync.aligned.m64n{tile.columns}k8") == 4 * high * sets
        assert (".multicast::cluster" in text) == (tile.cluster > 1)
        assert text.count("st.global.v2.b32") == high * tile.columns // 4


def test_results_of_odd_rows_are_stored_one_by_one():
    p = other_products.placed(plain(1000, 1021, 520, (False, True)))
    text = other_products.product_kernel(p, tiling.best(p, PROCESSORS), 512, 96)
    assert "st.global.v2.b32" not in text
    assert "st.global.b32" in text


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_less_precision_lets_factors_be_rounded(driver, precision):
    """One launch, without copies, unless lines lie side by side in both factors: then one of them is turned first."""
    rng = np.random.default_rng(5)
    try:
        ek.set_float32_matmul_precision(precision)
        for left, right in WAYS:
            a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float32) for _ in range(2))
            x, y = (ek.tensor(v, device="cuda") for v in (a, b))
            f = ek.jit(lambda x, y, left=left, right=right: (x.T if left else x) @ (y.T if right else y))
            np.testing.assert_array_equal(f(x, y).numpy(), (a.T if left else a) @ (b.T if right else b))
    finally:
        ek.set_float32_matmul_precision("highest")
    done = [program for program in driver.programs.values() if program.digest in driver.at_once]
    assert [ROUNDED in program.metadata for program in done] == [True] * 3


# --- integers -------------------------------------------------------------------------------------------


def integers(m: int = 256, n: int = 320, k: int = 144, *, turned: tuple[bool, bool] = (False, True)) -> Program:
    b = ProgramBuilder("p")
    places = [b.buffer(name, Type.I32 if name == "c" else Type.I8).address for name in "cab"]
    b.integer_gemm(*places, m=m, n=n, k=k, transpose_a=turned[0], transpose_b=turned[1])
    return b.build()


def test_products_of_int8_are_those_of_groups_of_warps_where_terms_lie_side_by_side():
    found = whole(integers(), PROCESSORS)
    assert found is not None
    assert "k32.s32.s8.s8" in found.text
    assert ".f32" not in found.text
    assert [(one.box[0], one.ty) for one in found.maps] == [(128, Type.I8)] * 2
    for turned in WAYS:
        assert (whole(integers(turned=turned), PROCESSORS) is None) == (turned != (False, True))
    assert whole(integers(k=100), PROCESSORS) is None
    assert whole(integers(m=0), PROCESSORS) is None


def test_int8_that_is_multiplied_as_int32_is_multiplied_as_it_is(driver):
    rng = np.random.default_rng(6)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((20, 48), (24, 48)))
    given = [ek.tensor(v, device="cuda") for v in (x, w)]
    wanted = x.astype(np.int32) @ w.astype(np.int32).T

    def product(x, w):
        return x.astype("int32") @ w.astype("int32").T

    found = ek.jit(product)(*given)
    assert found.dtype is ek.int32
    np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(ek.jit(lambda x, w: x.astype("int32") @ w.T.astype("int32"))(*given).numpy(), wanted)
    done = [program for program in driver.programs.values() if program.digest in driver.at_once]
    assert [program.instructions[0].op.name for program in done] == ["IntegerGEMM"]
    before = len(driver.at_once)
    for left, right in ((x[:, :40], w[:, :40]), (x, w.T.copy().T)):  # rows of no 16 bytes; lines side by side
        on = (
            ek.tensor(np.ascontiguousarray(left), device="cuda"),
            ek.tensor(np.ascontiguousarray(right.T), device="cuda"),
        )
        plain = ek.jit(lambda x, y: x.astype("int32") @ y.astype("int32"))(*on)
        np.testing.assert_array_equal(plain.numpy(), left.astype(np.int32) @ right.astype(np.int32).T)
    assert len(driver.at_once) == before


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas, which NVIDIA's toolkit has, is not installed")
def test_the_assembler_takes_kernels(tmp_path):
    large = lane_tiling.best(plain(4096, 4096, 4096), PROCESSORS)
    texts = [lane_products.product_kernel(plain(1000, 1000, 510), large, 512, (88, 96, 104))]
    for turned in WAYS[:2]:
        p = other_products.placed(plain(1000, 1024, 520, turned))
        texts.append(other_products.product_kernel(p, tiling.tiles(2)[0][0], 512, 96))
    texts.append(whole(integers(), PROCESSORS).text)
    for text in texts:
        said = assembled(text, tmp_path)
        assert " 0 bytes spill stores" in said
        assert "serialized" not in said
