"""Array instructions that groups of warps do as a whole: what they are found for, their PTX, what launches are given.

The numbers are compared on a GPU (`test_cuda_gpu.py`); here a launch is one of the interpreter, and what the driver is
told of tensors in memory is looked at.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from itertools import product as combined
from types import SimpleNamespace

import numpy as np
import pytest
from interpreted_driver import installed

import eshkol as ek
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.machines import BLOCKS, MATRICES
from eshkol.atlas.types import Type
from eshkol.backends.cuda import driver as drivers
from eshkol.backends.cuda.warpgroups import attention, attention_gradients, decoding, tiling
from eshkol.backends.cuda.warpgroups.heads import Rows
from eshkol.backends.cuda.warpgroups.instructions import whole
from eshkol.backends.cuda.warpgroups.products import Matrices, Product, Tile, maps, product_kernel
from eshkol.backends.cuda.warpgroups.ring import ROWS
from eshkol.backends.cuda.warpgroups.sight import Mask, Sight
from eshkol.errors import TensorError
from eshkol.graph.node import placeholder
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.movement import permute
from eshkol.ops.row import Aval
from eshkol.schedule.kernels import weight_products
from eshkol.schedule.kernels.matrix_products import is_matrix_product, multiplies
from eshkol.schedule.kernels.products import SEEN_PRODUCT
from eshkol.schedule.rewrite.patterns import recognize

PROCESSORS = 132


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        yield made


def matrices(name: str, rows: int, columns: int, *, turned: bool = False, batch: tuple[int, ...] = ()) -> Matrices:
    return Matrices(name, 0, rows if turned else columns, turned, tuple(rows * columns for _ in batch))


def plain(
    m: int, n: int, k: int, batch: tuple[int, ...] = (), *, turned: tuple[bool, bool] = (False, False)
) -> Product:
    a, b = matrices("a", m, k, turned=turned[0], batch=batch), matrices("b", k, n, turned=turned[1], batch=batch)
    return Product(Type.BF16, m, n, k, batch, a, b, matrices("c", m, n, batch=batch))


def gemm(ty: Type = Type.BF16, m: int = 128, n: int = 128, k: int = 64, **more: object) -> object:
    b = ProgramBuilder("p")
    places = [b.buffer(name, ty).address for name in "cab"]
    b.gemm(ty, *places, m=m, n=n, k=k, **more)
    return b.build()


# --- what is found ------------------------------------------------------------------------------------


def test_products_of_16_bit_floats_are_done_as_a_whole():
    for ty in (Type.F16, Type.BF16):
        found = whole(gemm(ty), PROCESSORS)
        assert found is not None
        assert f".f32.{str(ty).lower()}.{str(ty).lower()}" in found.text
        assert len(found.maps) == 3


@pytest.mark.parametrize("given", [
    {"ty": Type.F64}, {"k": 12}, {"m": 12, "transpose_a": True}, {"n": 12}, {"beta": 1.0}, {"m": 0},
])  # fmt: skip
def test_others_are_code_of_lanes(given):
    assert whole(gemm(**given), PROCESSORS) is None


def test_a_result_whose_rows_cannot_be_copied_is_stored_by_threads():
    """As long as the rows of B can be."""
    found = whole(gemm(n=12, transpose_b=True), PROCESSORS)
    assert found is not None
    assert len(found.maps) == 2
    assert "st.global.b32" in found.text
    assert "st.global.b16" not in found.text
    odd = whole(gemm(n=13, transpose_b=True), PROCESSORS)
    assert odd is not None
    assert "st.global.b16" in odd.text


def test_a_stride_of_zero_is_no_axis_of_a_map():
    p = plain(64, 64, 64, (3, 5))
    p = replace(p, b=replace(p.b, batch=(0, 64 * 64)))
    tile = tiling.best(p, PROCESSORS)
    assert [len(one.axes) for one in maps(p, tile)] == [4, 3, 4]


@pytest.mark.parametrize(("m", "n", "k", "expected"), [
    (1 << 15, 1 << 14, 1 << 10, True), (1 << 15, 1 << 14, 1001, True), (1 << 10, 1001, 33, True), (1, 64, 64, True),
    (64, 1, 64, False), (8192, 768, 50257, True), (1 << 20, 64, 4097, False), (1 << 20, 64, 8192, True),
])  # fmt: skip
def test_products_of_any_number_of_rows_but_not_larger_than_what_copies_count(m, n, k, expected):
    """Rows that are no multiple of 16 bytes are copied first, by lanes whose indices have 32 bits."""
    x, y = (SimpleNamespace(shape=shape, dtype=dtypes.bfloat16) for shape in ((m, k), (k, n)))
    node = SimpleNamespace(op=matrix_product, inputs=(x, y), shape=(m, n), dtype=dtypes.bfloat16)
    assert multiplies(node, replace(BLOCKS, matrices=replace(MATRICES, whole=True))) == expected


def test_logits_of_an_odd_vocabulary_are_products_of_what_lies_there():
    """Of weights by rows: their transpose would not begin at whole chunks, though they themselves do."""
    x, e = (placeholder(Aval(shape, dtypes.bfloat16), None) for shape in ((8192, 768), (50257, 768)))
    target = replace(BLOCKS, matrices=replace(MATRICES, whole=True))
    (found,) = recognize([matrix_product(x, permute(e, (1, 0)))], target)
    assert found.op is SEEN_PRODUCT
    assert found.inputs == (x, e)
    assert is_matrix_product(found, target)


# --- tiles ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [1, 2])
def test_every_tile_fits_a_processor(cluster):
    for tile, _ in tiling.tiles(cluster):
        assert tile.memory <= tiling.MEMORY
        assert tile.stages >= 2
        assert tile.rows % (64 * tile.groups) == 0
        assert max(tile.rows, tile.columns) <= 256


def test_blocks_are_whole_clusters_and_no_more_than_processors():
    for m, n, k in ((8192, 8192, 8192), (128, 256, 64), (4096, 4096, 4096), (100, 70000, 64)):
        p = plain(m, n, k)
        tile = tiling.best(p, PROCESSORS)
        count = tiling.blocks(p, tile, PROCESSORS)
        assert 0 < count <= PROCESSORS
        assert count % tile.cluster == 0


def test_large_products_share_columns_between_blocks_and_small_ones_take_small_tiles():
    large, small = (tiling.best(plain(n, n, n), PROCESSORS) for n in (8192, 1024))
    assert large.cluster == 2
    assert small.cluster == 1
    assert small.rows * small.columns < large.rows * large.columns


# --- PTX ------------------------------------------------------------------------------------------------


def test_a_kernel_has_what_its_tile_says():
    for tile, _ in [*tiling.tiles(1), *tiling.tiles(2)]:
        text = product_kernel(plain(1024, 1024, 1024), tile, 512, 96)
        assert f"wgmma.mma_async.sync.aligned.m64n{tile.columns}k16" in text
        assert text.count("mbarrier.init") == 2 * tile.stages
        assert (".multicast::cluster" in text) == (tile.cluster > 1)
        assert (".reqnctapercluster 2" in text) == (tile.cluster > 1)
        assert ("setmaxnreg" in text) == (tile.groups > 1)


@pytest.mark.parametrize(("columns", "pending"), [(64, 0), (128, 1), (192, 0), (256, 1)])
def test_a_box_waits_for_what_was_held_where_it_goes(columns, pending):
    """Boxes take turns in two places, and a tile begins with the first: an odd number of them ends there, too."""
    text = product_kernel(plain(4096, 4096, 64), Tile(128, columns, 2, 2, 1), 512, 96)
    waits = re.findall(r"cp.async.bulk.wait_group.read (\d)", text)
    assert waits == [str(pending), *["1"] * (columns // 64 - 1)]


def gradients(width: int, *, of_keys: bool, causal: bool, keys: int = 1000) -> attention_gradients.Gradients:
    rows = Rows("x", 0, width, (width * 1000,))
    outs = (rows,) * (1 + of_keys)
    return attention_gradients.Gradients(Type.BF16, 1000, keys, width, (3,), *[rows] * 4, outs, 0.5, Sight(causal))


def grouped(width: int, *, causal: bool) -> attention_gradients.Gradients:
    """Two key heads, each of three query heads, of which the results are sums."""
    own, shared = Rows("x", 0, width, (3000 * width, 1000 * width)), Rows("y", 0, width, (1000 * width, 0))
    g = gradients(width, of_keys=True, causal=causal)
    return replace(g, batch=(2, 3), q=own, ct=own, k=shared, v=shared, outs=(shared, shared), grouped=True)


def assembled(text: str, folder) -> str:
    """What the assembler says about a kernel."""
    (folder / "kernel.ptx").write_text(text)
    command = ["ptxas", "-arch=sm_90a", "-v", str(folder / "kernel.ptx"), "-o", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas, which NVIDIA's toolkit has, is not installed")
def test_the_assembler_takes_kernels(tmp_path):
    texts = [whole(convolution(height=side), PROCESSORS).text for side in (56, 7)]
    for tile in (tiling.tiles(2)[0][0], tiling.tiles(1)[-1][0]):
        for n, turned in ((1024, (False, False)), (1021, (True, True))):
            texts.append(product_kernel(plain(1000, n, 520, (3,), turned=turned), tile, 512, 96))
    for width, of_keys in (*combined((64, 128), (False, True)), (256, True)):  # nearly all registers are taken
        g, tile = gradients(width, of_keys=of_keys, causal=True), tile_of(width, of_keys=of_keys, causal=True)
        texts.append(attention_gradients.gradients_kernel(g, tile, 1024, (88, 0), (96, 0)))
        if of_keys:
            texts.append(
                attention_gradients.gradients_kernel(grouped(width, causal=True), tile, 1024, (88, 0), (96, 0))
            )
    few = decoded(8, 4096)
    texts.append(decoding.decoding_kernel(few, decoding.tile_for(few, PROCESSORS), 1024, (80, 0)))
    sight = Sight(True, 300, Mask((96, 0), True, (1000,), 1000))
    g = replace(gradients(128, of_keys=True, causal=True), sight=sight)
    tile = attention_gradients.tile_for(128, sight, of_keys=True)
    texts.append(attention_gradients.gradients_kernel(g, tile, 1024, (88, 0), (96, 0)))
    for text in texts:
        said = assembled(text, tmp_path)
        assert " 0 bytes spill stores" in said
        assert "serialized" not in said


@pytest.mark.parametrize("cluster", [2, 4, 8])
def test_blocks_that_share_a_tile_add_up_vectors(cluster, tmp_path):
    """Each reads its columns from all blocks, its own first: four sums of a thread at a time, all of them once."""
    found = [tile for tile, _ in tiling.shared_tiles(64) if tile.cluster == cluster]
    assert {tile.columns for tile in found} > {64, 128}
    for tile in found:
        kept = tile.columns // 2 // cluster
        assert kept % 4 == 0, "threads have whole vectors of each block's columns"
        assert tile.stages * tile.slab % 16 == 0
        text = product_kernel(plain(200, 1000, 4096), tile, 512, 96)
        far = re.findall(r"ld\.shared::cluster\.v4\.f32 {[^}]*}, \[(%r\d+)\+(\d+)\]", text)
        assert len(far) == cluster * kept // 4
        pitch = 16 * 128 * tile.groups
        assert [int(at) for _, at in far] == [*range(0, kept // 4 * pitch, pitch)] * cluster
        assert len({block for block, _ in far}) == cluster
        near = re.findall(r"st\.shared\.v4\.f32 \[%r\d+\+(\d+)\]", text)
        assert [int(at) for at in near] == [*range(0, tile.rows * tile.columns * 4, pitch)]
        assert int(near[-1]) + pitch == tile.held
    if shutil.which("ptxas") is not None:
        assert " 0 bytes spill stores" in assembled(text, tmp_path)


# --- launches -------------------------------------------------------------------------------------------


def products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.matmul(x.astype(np.float32), y.astype(np.float32))


@pytest.mark.parametrize("shapes", [
    ((128, 64), (64, 96)), ((3, 64, 24), (3, 24, 104)), ((2, 2, 32, 40), (40, 64)), ((65, 33), (33, 77)),
])  # fmt: skip
def test_products_are_launched_with_maps_of_their_operands(driver, shapes):
    rng = np.random.default_rng(3)
    arrays = [rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes]  # whose products bfloat16 nearly has
    x, y = (ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays)
    found = ek.jit(lambda a, b: a @ b)(x, y)
    np.testing.assert_allclose(found.astype("float32").numpy(), products(*arrays), rtol=8e-3)
    assert driver.at_once
    assert driver.calls.count(drivers.MAP) >= 2


def test_transposed_operands_are_read_where_they_lie(driver):
    rng = np.random.default_rng(4)
    for left, right in combined((False, True), repeat=2):
        a, b = (rng.integers(-3, 4, (64, 64)).astype(np.float32) for _ in range(2))
        x, y = (ek.tensor(v, dtype="bfloat16", device="cuda") for v in (a, b))
        f = ek.jit(lambda x, y, left=left, right=right: (x.T if left else x) @ (y.T if right else y))
        wanted = products(a.T if left else a, b.T if right else b)
        np.testing.assert_allclose(f(x, y).astype("float32").numpy(), wanted, rtol=8e-3)
    assert len(driver.at_once) == 4


def test_maps_are_made_again_only_for_other_addresses(driver):
    x = ek.tensor(np.ones((48, 64)), dtype="bfloat16", device="cuda")
    f = ek.jit(lambda a, b: (a @ b.T).sum() + (b @ a.T).sum())
    for _ in range(3):
        f(x, x).item()
    before = driver.calls.count(drivers.MAP)
    for _ in range(3):
        assert f(x, x).item() == 2 * 64 * 48 * 48
    assert driver.calls.count(drivers.MAP) == before
    y = ek.tensor(np.full((48, 64), 2.0), dtype="bfloat16", device="cuda")
    assert f(y, y).item() == 4 * 2 * 64 * 48 * 48
    assert driver.calls.count(drivers.MAP) > before


@pytest.mark.parametrize(("width", "causal"), [(16, False), (16, True), (144, True)])
def test_attention_is_one_launch_with_maps(driver, width, causal):
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((2, 2, 70, width)).astype(np.float32) for _ in range(3)]
    q, k, v = (ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays)
    rounded = [x.astype("float32").numpy() for x in (q, k, v)]
    found = ek.jit(lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, is_causal=causal))(q, k, v)
    scores = rounded[0] @ rounded[1].swapaxes(-1, -2) / width**0.5
    if causal:
        scores = np.where(np.tri(70, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ rounded[2]
    np.testing.assert_allclose(found.astype("float32").numpy(), wanted, atol=0.02)
    assert len(driver.at_once) == 1


@pytest.mark.parametrize("width", [32, 160])
def test_gradients_of_attention_take_the_sums_that_it_told(driver, width):
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal((1, 2, 40, width)).astype(np.float32) for _ in range(3)]

    def loss(q, k, v):
        return (ek.scaled_dot_product_attention(q, k, v, is_causal=True).astype("float32") ** 2).sum()

    gradients = ek.jit(ek.grad(loss, argnums=(0, 1, 2)))
    there = gradients(*(ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays))
    here = ek.grad(loss, argnums=(0, 1, 2))(*(ek.tensor(a) for a in arrays))
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), atol=0.05 * abs(other.numpy()).max())
    done = [program for program in driver.programs.values() if program.digest in driver.at_once]
    assert sorted((str(p.instructions[0].op.name), driver.at_once[p.digest]) for p in done) == [
        ("BatchedAttention", 4), ("BatchedAttentionGradKeyValue", 6), ("BatchedAttentionGradQuery", 5),
    ]  # fmt: skip


@pytest.mark.parametrize(("heads", "causal"), [((4, 2), True), ((6, 2), False), ((3, 1), True)])
def test_heads_that_share_keys_are_read_where_they_lie(driver, heads, causal):
    """Keys are not copied for each head, and their gradients are sums: of queries that lie beside each other too."""
    rng = np.random.default_rng(11)
    shapes = [(2, 24, heads[0], 16), *[(2, heads[1], 20, 16)] * 2, (2, heads[0], 24, 16)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def attend(q, k, v):
        return ek.scaled_dot_product_attention(q.permute(0, 2, 1, 3), k, v, is_causal=causal)

    def loss(q, k, v, ct):
        return (attend(q, k, v) * ct).astype("float32").sum()

    def trained(*given):
        return attend(*given[:3]), *ek.grad(loss, argnums=(0, 1, 2))(*given)

    there = ek.jit(trained)(*(ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays))
    for one, other in zip(there, trained(*(ek.tensor(a) for a in arrays)), strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), atol=0.03 * abs(other.numpy()).max())
    done = [program for program in driver.programs.values() if program.digest in driver.at_once]
    assert sorted(str(p.instructions[0].op.name) for p in done) == [
        "BatchedAttention", "BatchedAttentionGradKeyValue", "BatchedAttentionGradQuery",
    ]  # fmt: skip


def padded(*shape: int) -> np.ndarray:
    """Fewer keys for each example, and none for the last."""
    keys, examples = shape[-1], shape[0]
    return np.arange(keys) < np.linspace(keys, 0, examples).astype(int).reshape(-1, *[1] * (len(shape) - 1)) + np.zeros(
        shape, int
    )


@pytest.mark.parametrize(("how", "mask"), [
    ({"window": 5, "is_causal": True}, None), ({"window": 3}, None),
    ({}, padded(2, 1, 1, 20)), ({"is_causal": True}, padded(2, 4, 24, 20)),
    ({"is_causal": True, "window": 9}, np.where(padded(2, 1, 24, 20), 0.5, -np.inf)),
    ({}, np.random.default_rng(3).standard_normal((24, 20))),
])  # fmt: skip
def test_attention_to_some_of_the_keys_is_whole_too(driver, how, mask):
    """Windows and masks, of truth values and of numbers, with gradients; a query that sees nothing gets zeros."""
    rng = np.random.default_rng(12)
    shapes = [(2, 4, 24, 16), *[(2, 2, 20, 16)] * 2, (2, 4, 24, 16)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def trained(q, k, v, ct, *masks):
        def attend(q, k, v):
            return ek.scaled_dot_product_attention(q, k, v, *masks, **how)

        loss = ek.grad(lambda q, k, v: (attend(q, k, v) * ct).astype("float32").sum(), argnums=(0, 1, 2))
        return attend(q, k, v), *loss(q, k, v)

    masks = [] if mask is None else [mask.astype(np.float32) if mask.dtype != bool else mask]
    given = [ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays]
    there = ek.jit(trained)(*given, *(ek.tensor(m, device="cuda") for m in masks))
    here = trained(*(ek.tensor(a) for a in arrays), *(ek.tensor(m) for m in masks))
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), atol=0.03 * abs(other.numpy()).max())
    done = [program for program in driver.programs.values() if program.digest in driver.at_once]
    assert sorted(str(p.instructions[0].op.name) for p in done) == [
        "BatchedAttention", "BatchedAttentionGradKeyValue", "BatchedAttentionGradQuery",
    ]  # fmt: skip
    for i in (p.instructions[0] for p in done):
        assert (i.window, i.causal) == (how.get("window", 0), how.get("is_causal", False))
        assert (i.mask is not None, i.bias is not None) == (
            mask is not None and mask.dtype == bool, mask is not None and mask.dtype != bool
        )  # fmt: skip


@pytest.mark.parametrize(("heads", "queries", "mask"), [
    ((4, 2), 2, None), ((2, 2), 1, np.arange(260) < 200), ((3, 1), 1, np.where(padded(2, 3, 1, 260), 0.5, -np.inf)),
])  # fmt: skip
def test_few_queries_of_many_keys_are_rows_of_one_block(driver, heads, queries, mask):
    """Of all heads that share keys, with masks for each; there is no map of the result, which threads write."""
    rng = np.random.default_rng(13)
    shapes = [(2, heads[0], queries, 16), *[(2, heads[1], 260, 16)] * 2]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    masks = [] if mask is None else [mask if mask.dtype == bool else mask.astype(np.float32)]
    given = [ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays]
    found = ek.jit(ek.scaled_dot_product_attention)(*given, *(ek.tensor(m, device="cuda") for m in masks))
    wanted = ek.scaled_dot_product_attention(*(ek.tensor(a) for a in arrays), *(ek.tensor(m) for m in masks)).numpy()
    np.testing.assert_allclose(found.astype("float32").numpy(), wanted, atol=0.02 * abs(wanted).max())
    assert list(driver.at_once.values()) == [3]


def decoded(heads: int, keys: int, width: int = 128, queries: int = 2, **more: object) -> decoding.Decoding:
    """Queries of four heads that share keys."""
    rows = Rows("x", 0, width, (width * keys,))
    made = decoding.Decoding(
        Type.BF16, queries, keys, width, (heads,), *[rows] * 4, 0.5, Sight(False), 4, width * queries, 0, (88, 0)
    )
    return replace(made, **more)


@pytest.mark.parametrize(
    ("heads", "keys", "parts"),
    [(8, 4096, 8), (64, 4096, 2), (100, 4096, 4), (120, 4096, 1), (512, 4096, 1), (8, 256, 4)],
)
def test_blocks_share_keys_until_processors_have_two_or_nearly_all_one(heads, keys, parts):
    d = decoded(heads, keys)
    tile = decoding.tile_for(d, PROCESSORS)
    assert tile is not None
    assert (tile.parts, tile.memory <= tiling.MEMORY // 2) == (parts, True)
    assert decoding.blocks(d, tile) == heads * parts
    text = decoding.decoding_kernel(d, tile, 1024, (80, 0))
    assert ("barrier.cluster" in text) == (parts > 1)
    assert [m.box for m in decoding.maps(d, tile)] == [(64, 2, 4, 1), (64, tile.keys, 1), (64, tile.keys, 1)]


def test_many_queries_few_keys_and_what_is_near_are_not_shared_by_a_cluster():
    for change in ({"queries": 17}, {"keys": 255}, {"width": 264}, {"sight": Sight(True)}, {"sight": Sight(False, 9)}):
        assert decoding.tile_for(replace(decoded(8, 4096), **change), PROCESSORS) is None


def test_layers_attend_as_a_whole(driver):
    """To keys that are no padding, which a mask hides; and to a cache, of which there are more than have been seen."""
    rng = np.random.default_rng(14)
    padding = np.arange(40) > np.array([[30], [20]])
    with ek.device("cuda"):
        layer = ek.nn.MultiheadAttention(64, 4, batch_first=True, dtype="bfloat16")
        for weight in layer.parameters():
            weight.requires_grad_(False)
        x, cache = ek.tensor(rng.standard_normal((2, 40, 64)), dtype="bfloat16"), layer.empty_cache(2, 300)
        whole_ones = ek.jit(lambda x, m: layer(x, key_padding_mask=m, need_weights=False)[0])(x, ek.tensor(padding))
        extend = ek.jit(lambda x, k, v, at: layer.extend(x, type(cache)(k, v), at))
        _, cache = extend(x[:, :3], *cache, ek.tensor(0))
        last, _ = extend(x[:, 3:4], *cache, ek.tensor(3))
        here = [x.astype("float32").numpy() for x in (whole_ones, last)]
        wanted = [layer(x, key_padding_mask=ek.tensor(padding), need_weights=False)[0]]
        wanted.append(layer(x[:, 3:4], x[:, :4], need_weights=False)[0])
    for one, other in zip(here, (x.astype("float32").numpy() for x in wanted), strict=True):
        np.testing.assert_allclose(one, other, atol=0.03 * abs(other).max())
    names = [
        (str(i.op.name), i) for p in driver.programs.values() if p.digest in driver.at_once for i in p.instructions
    ]
    assert [i.mask is not None for name, i in names if name == "BatchedAttention"][:3] == [True] * 3


def test_a_cotangent_of_which_one_row_is_many_is_left_to_fragments(driver):
    """The machine's copies go from one row to another: what they cannot fetch must not be code of one lane."""
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (*[(1, 1, 16, 16)] * 3, (16,))]

    def loss(q, k, v, w):
        return (ek.scaled_dot_product_attention(q, k, v) * w).astype("float32").sum()

    gradients = ek.grad(loss, argnums=(0, 1, 2))
    there = ek.jit(gradients)(*(ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays))
    for one, other in zip(there, gradients(*(ek.tensor(a) for a in arrays)), strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), atol=0.05 * abs(other.numpy()).max())
    named = [i.op.name for program in driver.programs.values() for i in program.instructions]
    assert "BatchedAttention" in named
    assert not any("BatchedAttentionGrad" in name for name in named)


def at_once(driver: object) -> list[str]:
    """The names of instructions that were launched as a whole."""
    done = [program for program in driver.programs.values() if program.digest in driver.at_once]
    return sorted(str(program.instructions[0].op.name) for program in done)


def test_such_a_cotangent_of_attention_with_a_window_is_left_to_other_kernels(driver):
    """Fragments have no window."""
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (*[(1, 1, 16, 16)] * 3, (16,))]

    def loss(q, k, v, w):
        return (ek.scaled_dot_product_attention(q, k, v, window=3) * w).astype("float32").sum()

    gradients = ek.grad(loss, argnums=(0, 1, 2))
    there = ek.jit(gradients)(*(ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays))
    for one, other in zip(there, gradients(*(ek.tensor(a) for a in arrays)), strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), atol=0.05 * abs(other.numpy()).max())


def convolved(x: np.ndarray, w: np.ndarray, **how: object) -> np.ndarray:
    return ek.conv2d(ek.tensor(x), ek.tensor(w), **how).numpy()


@pytest.mark.parametrize(("x", "w", "how"), [
    ((2, 16, 9, 7), (24, 16, 3, 3), {"padding": 1}),
    ((3, 8, 8, 6), (16, 8, 2, 3), {"padding": (0, 2), "stride": (1, 2), "dilation": (2, 1)}),
    ((2, 14, 6, 6), (20, 14, 3, 3), {}),
])  # fmt: skip
def test_convolutions_are_launched_with_maps_of_windows(driver, x, w, how):
    rng = np.random.default_rng(7)
    arrays = [rng.integers(-2, 3, shape).astype(np.float32) for shape in (x, w)]
    given = [ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays]
    found = ek.jit(lambda x, w: ek.conv2d(x, w, **how))(*given)
    np.testing.assert_allclose(found.astype("float32").numpy(), convolved(*arrays, **how), rtol=8e-3)
    assert len(driver.at_once) == 1
    assert driver.calls.count(drivers.MAP_WINDOWS) == 1


@pytest.mark.parametrize(("x", "w", "how", "names"), [
    ((2, 24, 16, 16), (16, 24, 3, 3), {"padding": 1}, ["ChannelsLastConv2D", "ChannelsLastConv2DGradWeight"]),
    ((2, 22, 5, 6), (20, 22, 2, 3), {"padding": (0, 2), "stride": (1, 2), "dilation": (2, 1)},
     ["ChannelsLastConv2DGradWeight"]),
    ((2, 16, 6, 7), (24, 16, 1, 1), {}, ["ChannelsLastConv2D", "ChannelsLastConv2DGradWeight"]),
    ((3, 16, 8, 9), (24, 16, 1, 1), {}, ["BatchedGEMM", "SummedGEMM"]),
    ((2, 16, 8, 7), (24, 16, 1, 1), {"stride": 2}, ["BatchedGEMM", "SummedGEMM"]),
    ((2, 16, 7, 6), (24, 16, 1, 1), {"stride": (3, 2)}, ["ChannelsLastConv2D", "ChannelsLastConv2DGradWeight"]),
    ((2, 3, 7, 6), (16, 3, 3, 2), {"padding": 1, "stride": 2}, ["ChannelsLastConv2DGradWeight"]),
    ((2, 24, 8, 7), (16, 24, 3, 3), {"padding": 1, "stride": 2},
     ["ChannelsLastConv2DGradInput", "ChannelsLastConv2DGradWeight"]),
    ((1, 16, 11, 12), (24, 16, 2, 4), {"padding": (0, 2), "stride": (3, 2)},
     ["ChannelsLastConv2DGradInput", "ChannelsLastConv2DGradWeight"]),
])  # fmt: skip
def test_gradients_of_convolutions_are_instructions_too(driver, x, w, how, names):
    """Towards the input, unless taps lie apart that a stride spreads; towards the weight in parts, then added up."""
    rng = np.random.default_rng(8)
    x, w = (rng.integers(-2, 3, shape).astype(np.float32) for shape in (x, w))
    ct = rng.integers(-2, 3, convolved(x, w, **how).shape).astype(np.float32)

    def gradients(x, w, ct):
        return ek.grad(lambda x, w: (ek.conv2d(x, w, **how) * ct).astype("float32").sum(), argnums=(0, 1))(x, w)

    found = ek.jit(gradients)(*(ek.tensor(a, dtype="bfloat16", device="cuda") for a in (x, w, ct)))
    for one, wanted in zip(found, gradients(*map(ek.tensor, (x, w, ct))), strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), wanted.numpy(), rtol=8e-3)
    assert at_once(driver) == names


def test_blocks_that_add_up_all_taps(driver, monkeypatch):
    monkeypatch.setattr(weight_products, "MANY", 1)
    rng = np.random.default_rng(10)
    x, ct = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((2, 16, 5, 7), (2, 24, 4, 5)))

    def gradient(x, ct):
        w = ek.zeros((24, 16, 2, 3), dtype=x.dtype, device=x.device)
        return ek.vjp(lambda w: ek.conv2d(x, w), w)[1](ct)

    (found,) = ek.jit(gradient)(*(ek.tensor(a, dtype="bfloat16", device="cuda") for a in (x, ct)))
    np.testing.assert_allclose(
        found.astype("float32").numpy(), gradient(ek.tensor(x), ek.tensor(ct))[0].numpy(), rtol=8e-3
    )
    assert at_once(driver) == ["ChannelsLastConv2DGradWeight"]


@pytest.mark.parametrize(("x", "w", "how", "name"), [
    ((2, 16, 8, 9), (24, 16, 1, 1), {}, "BatchedGEMM"),
    ((2, 16, 7, 7), (24, 16, 1, 1), {}, "ChannelsLastConv2D"),
    ((2, 16, 8, 8), (24, 16, 1, 1), {"stride": 2}, "BatchedGEMM"),
    ((2, 16, 8, 7), (24, 16, 1, 1), {"padding": (0, 1)}, "ChannelsLastConv2D"),
    ((2, 3, 12, 11), (16, 3, 5, 7), {"padding": (2, 3), "stride": 2}, "ChannelsLastConv2D"),
])  # fmt: skip
def test_convolutions_of_one_tap_and_of_few_channels(driver, x, w, how, name):
    rng = np.random.default_rng(9)
    arrays = [rng.integers(-2, 3, shape).astype(np.float32) for shape in (x, w)]
    given = [ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays]
    found = ek.jit(lambda x, w: ek.conv2d(x, w, **how))(*given)
    np.testing.assert_allclose(found.astype("float32").numpy(), convolved(*arrays, **how), rtol=8e-3)
    assert at_once(driver) == [name]


def test_parts_of_weight_gradients_keep_processors_busy():
    b = ProgramBuilder("p")
    places = [b.buffer(name, ty).address for name, ty in (("w", Type.F32), ("x", Type.BF16), ("g", Type.BF16))]
    sizes = {"in_channels": 64, "out_channels": 64, "height": 56, "width": 56, "kernel_h": 3, "kernel_w": 3}
    b.channels_last_conv2d_grad_weight(Type.BF16, *places, batch=32, **sizes, padding=(1, 1), each=2304)
    found = whole(b.build(), PROCESSORS)
    assert found is not None
    assert found.blocks == PROCESSORS
    assert [one.box for one in found.maps] == [(64, 64), (64, 64)]
    assert "st.global.v2.f32" in found.text


def convolution(ty: Type = Type.BF16, **more: object) -> object:
    b = ProgramBuilder("p")
    places = [b.buffer(name, ty).address for name in ("y", "x", "w")]
    sizes = {
        "batch": 32,
        "in_channels": 64,
        "out_channels": 64,
        "height": 56,
        "width": 56,
        "kernel_h": 3,
        "kernel_w": 3,
    }
    b.channels_last_conv2d(ty, *places, **{**sizes, "padding": (1, 1), **more})
    return b.build()


def test_convolutions_with_channels_last_are_done_as_a_whole():
    found = whole(convolution(), PROCESSORS)
    assert found is not None
    assert ".im2col" in found.text
    assert [len(one.axes) for one in found.maps] == [3, 4, 3]
    assert found.maps[1].windows == ((-1, -1), (-1, -1), (1, 1), (2, 2))
    strided = whole(convolution(stride=(2, 1), padding=(0, 3, 1, 2), dilation=(1, 4)), PROCESSORS)
    assert strided is not None
    assert strided.maps[1].windows == ((-3, 0), (-6, -1), (1, 2), (8, 2))  # rows 0, 2 … 54, columns -3 … 49


@pytest.mark.parametrize("given", [
    {"ty": Type.F32}, {"in_channels": 12}, {"groups": 2}, {"batch": 0}, {"stride": (1, 9)}, {"padding": (200, 1)},
])  # fmt: skip
def test_other_convolutions_are_code_of_lanes(given):
    assert whole(convolution(**given), PROCESSORS) is None


def test_results_that_the_machine_cannot_copy_are_stored_by_threads():
    """Planes that are no multiple of 64 windows: two at once where both lie in one plane."""
    for side, stored in ((28, "st.global.b32"), (14, "st.global.b32"), (7, "st.global.b16")):
        found = whole(convolution(height=side, width=side), PROCESSORS)
        assert found is not None
        assert len(found.maps) == 2
        assert stored in found.text


def test_attention_has_what_its_tile_says():
    for width, queries, causal in combined((32, 64, 80, 128, 136, 256), (512, 8192), (False, True)):
        tile = attention.tile_for(width, queries, Sight(causal))
        assert tile is not None
        assert tile.memory <= tiling.MEMORY
        assert tile.keys % 16 == 0
        rows = Rows("x", 0, width, ())
        a = attention.Attention(Type.F16, queries, queries, width, (), rows, rows, rows, rows, 1.0, Sight(causal))
        text = attention.attention_kernel(a, tile, 1024, (88, 0))
        # Twice queries by keys, where zeros beyond a head are not multiplied, and twice powers by values.
        counts = [(tile.keys, 2 * -(-width // 16)), (tile.widest, 2 * (tile.keys // 16))]
        for columns in {columns for columns, _ in counts}:
            wanted = sum(count for n, count in counts if n == columns)
            assert text.count(f"m64n{columns}k16") == wanted
        assert ("selp.f32" in text) == (causal or queries % tile.keys != 0)  # scores are masked
    assert attention.tile_for(264, 512, Sight(False)) is None


def tile_of(width: int, *, of_keys: bool, causal: bool) -> attention_gradients.Tile:
    tile = attention_gradients.tile_for(width, Sight(causal), of_keys=of_keys)
    assert tile is not None
    return tile


@pytest.mark.parametrize("of_keys", [False, True])
def test_gradients_have_what_their_tile_says(of_keys):
    """A block's own rows and tiles of the others are mapped, and what is masked is what must be."""
    for width, causal, keys in combined((32, 64, 80, 128, 136, 256), (False, True), (960, 1000)):
        g, tile = (
            gradients(width, of_keys=of_keys, causal=causal, keys=keys),
            tile_of(width, of_keys=of_keys, causal=causal),
        )
        assert tile.memory <= tiling.MEMORY
        assert tile.others % 16 == 0
        text = attention_gradients.gradients_kernel(g, tile, 1024, (88, 0), (96, 0))
        assert f"m64n{tile.others}k16" in text
        assert f"m64n{tile.widest}k16" in text
        # Keys that are not there have no weight in what goes along them; queries that are not have none in any case.
        assert ("selp.f32" in text) == (causal or (not of_keys and keys % tile.others != 0))
        own, others = (keys, 1000) if of_keys else (1000, keys)
        found = [(m.axes[1].extent, m.box[1]) for m in attention_gradients.maps(g, tile)]
        assert found == [(own, tile.rows)] * 2 + [(others, tile.others)] * 2 + [(own, ROWS)] * len(g.outs)
        assert attention_gradients.blocks(g, tile) == 3 * -(-own // tile.rows)
        if of_keys:
            assert attention_gradients.blocks(grouped(width, causal=causal), tile) == 2 * -(-1000 // tile.rows)
    assert attention_gradients.tile_for(264, Sight(False), of_keys=of_keys) is None


def test_blocks_of_a_cluster_share_heads_that_share_keys_where_there_are_few():
    """Those of keys that queries see in part have unequal work, of which there should be more."""
    g = replace(grouped(128, causal=False), batch=(2, 8))
    for sight, heads, split in (
        (Sight(False), 2, 8),
        (Sight(False), 20, 1),
        (Sight(True), 20, 4),
        (Sight(True), 99, 1),
    ):
        found = replace(g, sight=sight, batch=(heads, 8))
        tile = attention_gradients.shared(found, tile_of(128, of_keys=True, causal=True), PROCESSORS)
        assert (tile.split, attention_gradients.blocks(found, tile)) == (split, heads * 8 * split)
        assert 2 * tile.rows * tile.widest * 4 <= tile.memory  # there is room for sums
        text = attention_gradients.gradients_kernel(found, tile, 1024, (88, 0), (96, 0), ((104, 0), (112, 0)))
        assert ("mapa" in text) == (split > 1)
    assert attention_gradients.shared(grouped(128, causal=True), tile, PROCESSORS).split == 1  # of three heads


@pytest.mark.parametrize("change", [{}, {"ty": Type.F32}, {"head_dim": 12}, {"head_dim": 264}, {"queries": 0}])
def test_gradients_that_have_no_kernel_are_expanded(change):
    given = {"ty": Type.BF16, "head_dim": 16, "queries": 8, **change}
    ty, width, queries = given["ty"], given["head_dim"], given["queries"]
    for outs in (1, 2):
        b = ProgramBuilder("p")
        places = [b.buffer(f"x{k}", ty).address for k in range(outs + 4)]
        places += [b.buffer(name, Type.F32).address for name in ("sums", "inner")]
        made = b.batched_attention_grad_query if outs == 1 else b.batched_attention_grad_key_value
        made(ty, *places, batch=2, queries=queries, keys=8, head_dim=width, scale=1.0, batches=(2,),
             **{f"{name}_strides": (8 * width, width) for name in ("query", "key", "value", "cotangent")})  # fmt: skip
        assert (whole(b.build(), PROCESSORS) is None) == bool(change)


def test_a_driver_that_refuses_a_map_is_told(driver):
    driver.fails[drivers.MAP] = 1
    x = ek.tensor(np.ones((48, 64)), dtype="bfloat16", device="cuda")
    with pytest.raises(TensorError, match=drivers.MAP):
        ek.jit(lambda a: a @ a.T)(x).numpy()
