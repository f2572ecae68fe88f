"""Dropout of attention on Hopper: the bits that its kernels draw, in the PTX that draws them, carried out here.

What a thread has of a product of matrices is known (`wgmma`'s accumulators: rows 8 apart, neighbours in every 8
columns); which of that is dropped is compared with the tensor that the op says.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import product as combined

import numpy as np
import pytest
from interpreted_driver import installed
from straight_ptx import LANES, run

import eshkol as ek
from effort import amount
from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import attention, attention_gradients
from eshkol.backends.cuda.warpgroups.dropout import Dropout, Dropping, apply, mark
from eshkol.backends.cuda.warpgroups.heads import Rows
from eshkol.backends.cuda.warpgroups.ptx import Kernel
from eshkol.backends.cuda.warpgroups.sight import Lengths, Sight
from eshkol.support import threefry

from .test_cuda_warpgroups import assembled, gradients, grouped

KEY = np.array([0xDEADBEEF, 77], np.uint32)
ONE = 0x3F800000


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        yield made


def drawn(queries: int, keys: int, head: int, first: int, start: int, *, of_keys: bool) -> np.ndarray:
    """What a warp makes of a tile of ones, of 16 rows and 48 columns: rows × columns."""
    k = Kernel(128, 1, 128)
    lane, row, at, which = (k.register() for _ in range(4))
    scores = k.registers(24)
    dropping = Dropping(k, Dropout(99, (96, 8)), queries, keys, lane)
    if of_keys:
        dropping.of_keys(which, row, at, 48, mark(scores, k))
    else:
        dropping.of_queries(which, row, at, 48, apply(scores, k))
    lines = [line for line in k.lines if "ld.param" not in line]
    address = k.lines[next(n for n, line in enumerate(k.lines) if "ld.param" in line)].split()[1].strip(",")
    known = {lane: LANES, row: first + LANES // 4, at: start, which: head, address: 1000, **dict.fromkeys(scores, ONE)}
    held = run(lines, known, {1008: int(KEY[0]), 1012: int(KEY[1])}.__getitem__)
    found = np.zeros((16, 48))
    for number, score in enumerate(scores):
        column = number // 4 * 8 + LANES % 4 * 2 + number % 2
        found[LANES // 4 + number // 2 % 2 * 8, column] = [1 if x == ONE else -1 if x >> 31 else 0 for x in held[score]]
    return found


def test_heads_are_counted_one_after_another():
    wanted = threefry.dropped(KEY, 3, 19, 35, 99)
    np.testing.assert_array_equal([of_head(head, 19, 35) for head in range(3)], wanted)


@pytest.mark.parametrize(("head", "rows", "columns"), [(0, 0, 0), (5, 16, 48), (2**20, 112, 96)])
def test_threads_draw_what_tensors_are(head, rows, columns):
    """For queries as rows, where what is dropped becomes 0, and for keys as rows, where it becomes negative."""
    queries, keys = 150, 170
    for of_keys in (False, True):
        lines, others = (rows, columns) if not of_keys else (columns, rows)
        there = of_head(head, queries, keys)
        found = drawn(queries, keys, head, rows, columns, of_keys=of_keys)
        wanted = there[lines : lines + (48 if of_keys else 16), others : others + (16 if of_keys else 48)]
        wanted = wanted.T if of_keys else wanted
        np.testing.assert_array_equal(found[: wanted.shape[0], : wanted.shape[1]], np.where(wanted, -of_keys, 1))


def of_head(head: int, queries: int, keys: int) -> np.ndarray:
    """What is dropped of one head, counted in 64 bits."""
    rows, columns = threefry.blocks(queries, keys)
    counter = np.arange(rows * columns, dtype=np.uint64) + np.uint64(head * rows * columns)
    words = [(counter >> np.uint64(n)).astype(np.uint32) for n in (32, 0)]
    with np.errstate(over="ignore"):
        found = np.stack(threefry.threefry(threefry.ARRAYS, (KEY[0], KEY[1]), (words[0], words[1])))
    return threefry.chosen(found.reshape(2, rows, columns), queries, keys, 99)


@pytest.mark.parametrize(("heads", "how"), [((4, 4), {}), ((4, 2), {"causal": True}), ((3, 1), {"window": 9})])
def test_attention_with_dropout_is_whole_with_its_gradients(driver, heads, how):
    """As the CPU has it, which draws the same bits for the same key."""
    rng = np.random.default_rng(8)
    shapes = [(2, heads[0], 24, 16), *[(2, heads[1], 20, 16)] * 2, (2, heads[0], 24, 16)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def trained(q, k, v, ct, key):
        def attend(q, k, v):
            return ek.scaled_dot_product_attention(q, k, v, dropout=0.25, dropout_key=key, **how)

        loss = ek.grad(lambda q, k, v: (attend(q, k, v) * ct).astype("float32").sum(), argnums=(0, 1, 2))
        return attend(q, k, v), *loss(q, k, v)

    there = ek.jit(trained)(
        *(ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays), ek.tensor(KEY, device="cuda")
    )
    for one, other in zip(there, trained(*map(ek.tensor, (*arrays, KEY))), strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), atol=0.03 * abs(other.numpy()).max())
    done = [p.instructions[0] for p in driver.programs.values() if p.digest in driver.at_once]
    assert sorted(str(i.op.name) for i in done) == [
        "BatchedAttention", "BatchedAttentionGradKeyValue", "BatchedAttentionGradQuery",
    ]  # fmt: skip
    assert {i.dropout for i in done} == {64}


LENGTHS, OFFSETS = np.array([17, 0]), np.array([2, 3, 3, 20])


@pytest.mark.parametrize(("shared", "queries", "how", "given"), [
    (4, 24, {}, {"key_lengths": LENGTHS}), (2, 20, {"causal": True}, {"key_lengths": LENGTHS, "offsets": OFFSETS}),
    (1, 20, {"window": 3, "dropout": 0.5}, {"offsets": OFFSETS, "dropout_key": KEY}),
])  # fmt: skip
def test_attention_of_several_lengths_is_whole_with_its_gradients(driver, shared, queries, how, given):
    rng = np.random.default_rng(8)
    shapes = [(2, 4, queries, 16), *[(2, shared, 20, 16)] * 2, (2, 4, queries, 16)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def trained(q, k, v, ct, *rest):
        more = dict(zip(given, rest, strict=True))

        def attend(q, k, v):
            return ek.scaled_dot_product_attention(q, k, v, **how, **more)

        loss = ek.grad(lambda q, k, v: (attend(q, k, v) * ct).astype("float32").sum(), argnums=(0, 1, 2))
        return attend(q, k, v), *loss(q, k, v)

    matrices = [ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays]
    there = ek.jit(trained)(*matrices, *(ek.tensor(x, device="cuda") for x in given.values()))
    for one, other in zip(there, trained(*map(ek.tensor, (*arrays, *given.values()))), strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), atol=0.03 * abs(other.numpy()).max())
    done = [p.instructions[0] for p in driver.programs.values() if p.digest in driver.at_once]
    assert len(done) == 3
    assert {(i.lengths is None, i.spans is None) for i in done} == {
        ("key_lengths" not in given, "offsets" not in given)
    }


@pytest.mark.parametrize("samples", [1, 2])
def test_decoding_as_many_keys_as_there_are_is_one_launch(driver, samples):
    """Of a single sample too, whose axis the graph leaves out."""
    rng = np.random.default_rng(9)
    shapes = [(samples, 4, 1, 16), *[(samples, 2, 300, 16)] * 2]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    lengths = np.array([200, 299])[:samples]
    attend = ek.jit(lambda q, k, v, n: ek.scaled_dot_product_attention(q, k, v, key_lengths=n))
    given = [ek.tensor(a, dtype="bfloat16", device="cuda") for a in arrays]
    found = attend(*given, ek.tensor(lengths, device="cuda")).astype("float32").numpy()
    wanted = ek.scaled_dot_product_attention(*map(ek.tensor, arrays), key_lengths=ek.tensor(lengths)).numpy()
    np.testing.assert_allclose(found, wanted, atol=0.02 * abs(wanted).max())
    assert list(driver.at_once.values()) == [3]  # maps: none of the result, which threads write


@pytest.mark.parametrize(("heads", "shared", "page"), [(4, 2, 64), (2, 2, 16)])
def test_pages_are_read_where_they_lie(driver, heads, shared, page):
    """Of a table that has other numbers where nothing is, which is not looked at; it has been checked before."""
    rng, most = np.random.default_rng(2), 320 // page
    query = rng.standard_normal((3, heads, 1, 16)).astype(np.float32)
    pages = [rng.standard_normal((3 * most + 2, page, shared, 16)).astype(np.float32) for _ in range(2)]
    table, lengths = rng.permutation(3 * most + 2)[: 3 * most].reshape(3, most), np.array([290, 1, 320])
    table[1, 1:] = -9
    given = [*(ek.tensor(x, dtype="bfloat16", device="cuda") for x in (query, *pages))]
    found = ek.jit(ek.paged_attention)(*given, *(ek.tensor(x, device="cuda") for x in (table, lengths)))
    wanted = ek.paged_attention(*map(ek.tensor, (query, *pages, table, lengths))).numpy()
    np.testing.assert_allclose(found.astype("float32").numpy(), wanted, atol=0.02 * abs(wanted).max())
    assert [str(p.instructions[0].op.name) for p in driver.programs.values() if p.digest in driver.at_once] == [
        "PagedAttention"
    ]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas, which NVIDIA's toolkit has, is not installed")
def test_kernels_with_dropout_have_registers_enough(tmp_path):
    texts, rows = [], Rows("x", 0, 64, ())
    for width, causal in combined(amount((64, 128, 256), (128,)), (False, True)):
        confined = {} if causal else {"lengths": Lengths((104, 0), (1,)), "spans": (112, 0)}
        sight = Sight(causal, dropout=Dropout(26, (96, 0)), **confined)
        a = attention.Attention(Type.BF16, 999, 999, width, (), rows, rows, rows, rows, 1.0, sight)
        texts.append(attention.attention_kernel(a, attention.tile_for(width, 999, sight), 1024, (88, 0)))
        given = [gradients(width, of_keys=of_keys, causal=causal) for of_keys in (False, True)]
        for g in [*given, grouped(width, causal=causal)]:
            tile = attention_gradients.tile_for(width, sight, of_keys=g.of_keys)
            texts.append(attention_gradients.gradients_kernel(replace(g, sight=sight), tile, 1024, (88, 0), (96, 0)))
    for text in texts:
        said = assembled(text, tmp_path)
        assert " 0 bytes spill stores" in said
        assert "serialized" not in said
