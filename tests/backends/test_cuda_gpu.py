"""On a GPU: values, gradients, training, faults, memory. Skipped where there is none; the reason says what is missing.

`python -m eshkol.conformance cuda` goes over all rows; here are those that go different ways, and what is not a row.
"""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from effort import FULL
from eshkol.backends.cuda import CudaBackend
from eshkol.conformance import checks
from eshkol.conformance.outcomes import FAIL
from eshkol.conformance.samples import rows
from eshkol.errors import AllocationFailed, IndexOutOfRange

MISSING = CudaBackend.unavailable()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"it needs a GPU: {MISSING}")
ROWS = ("add", "softmax", "sum", "matmul", "layer_norm", "take", "cumsum", "conv2d", "fmod", "lgamma", "max", "scatter")
RNG = np.random.default_rng(7)


@pytest.mark.parametrize("name", [op.name for op in rows()] if FULL else ROWS)
def test_rows(name):
    (op,) = [op for op in rows() if op.name == name]
    outcomes = [checks.forward(case, "cuda") for case in checks.cases_of(op)]
    if (case := checks.gradient_case(op)) is not None:
        outcomes.append(checks.gradient(case, "cuda"))
    assert not [str(o) for o in outcomes if o.result == FAIL]


@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (33, 65, 17), (257, 300, 129)])
def test_products_of_any_size(shape):
    m, k, n = shape
    a, b = RNG.standard_normal((m, k)).astype(np.float32), RNG.standard_normal((k, n)).astype(np.float32)
    with ek.device("cuda"):
        got = (ek.tensor(a) @ ek.tensor(b)).numpy()
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 8e-3), ("float16", 1e-3)])
@pytest.mark.parametrize(
    ("left", "right"),
    [((16, 16), (16, 16)), ((128, 64), (64, 256)), ((33, 65), (65, 17)), ((1000, 1000), (1000, 1000)),
     ((1025, 511), (511, 770)), ((64, 20000), (20000, 64)), ((3, 2, 40, 96), (2, 96, 130)), ((5, 129, 72), (72, 100))],
)  # fmt: skip
def test_products_of_16_bit_floats(left, right, dtype, tolerance):
    """In fragments, where the device has them: of whole chunks and others, long sums in parts, batches."""
    a, b = RNG.standard_normal(left), RNG.standard_normal(right)
    with ek.device("cuda"):
        x, y = ek.tensor(a, dtype=dtype), ek.tensor(b, dtype=dtype)
        products = [(x @ y), ek.swapaxes(ek.swapaxes(y, -1, -2) @ ek.swapaxes(x, -1, -2), -1, -2)]
        p, q = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
        for found in products:
            np.testing.assert_allclose(found.numpy().astype(np.float64), p @ q, atol=tolerance * np.abs(p @ q).max())


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("m", "n", "k", "batch"),
    [(4096, 2048, 512, ()), (1, 4096, 1024, ()), (300, 304, 5000, ()), (512, 512, 16384, ()), (2050, 1998, 776, ()),
     (130, 77, 200, (3, 2)), (8200, 8192, 64, ()), (64, 11008, 256, ()), (64, 3136, 64, (32,)), (8192, 768, 64, ())],
)  # fmt: skip
def test_products_in_all_kinds_of_tiles(m, n, k, batch, turned):
    """Tiles of a cluster, tiles that blocks share, edges, results whose rows cannot be copied, all ways to lie."""
    a = RNG.standard_normal((*batch, *((k, m) if turned[0] else (m, k)))).astype(np.float32)
    b = RNG.standard_normal((*batch, *((n, k) if turned[1] else (k, n)))).astype(np.float32)
    with ek.device("cuda"):
        x, y = ek.tensor(a, dtype="bfloat16"), ek.tensor(b, dtype="bfloat16")

        def product(x, y):
            left, right = (ek.swapaxes(v, -1, -2) if t else v for v, t in zip((x, y), turned, strict=True))
            return left @ right

        found = ek.jit(product)(x, y).astype("float32").numpy()
        p, q = (v.astype("float32").numpy() for v in (x, y))
    wanted = np.matmul(*(v.swapaxes(-1, -2) if t else v for v, t in zip((p, q), turned, strict=True)))
    np.testing.assert_allclose(found, wanted, atol=8e-3 * np.abs(wanted).max())


FOLLOWED = {
    "relu": lambda x, w, b, r: ek.relu(x @ w + b),
    "gelu": lambda x, w, b, r: (x @ w, ek.gelu(x @ w + b, approximate="tanh")),
    "tanh": lambda x, w, b, r: ek.tanh(x @ w * 0.5) * r,
    "silu": lambda x, w, b, r: (ek.silu(x @ w + b).astype("float32") + r.astype("float32"), ek.exp(x @ w / 8)),
    "erf": lambda x, w, b, r: ek.erf(x @ w) - r,
}


@pytest.mark.parametrize("name", list(FOLLOWED))
@pytest.mark.parametrize(
    ("m", "k", "n", "batch"),
    [(512, 256, 768, ()), (100, 40, 72, ()), (64, 4096, 64, ()), (333, 128, 264, ()), (200, 64, 136, (3,))],
)
def test_products_and_what_follows_them(name, m, k, n, batch):
    """Results that the machine copies, those that threads store, tiles that blocks share, edges, and batches."""
    shapes = ((*batch, m, k), 1.0), ((*batch, k, n), 2 * k**-0.5), ((n,), 1.0), ((*batch, m, n), 1.0)
    arrays = [RNG.standard_normal(s) * scale for s, scale in shapes]
    with ek.device("cpu"):
        given = [ek.tensor(a, dtype="bfloat16") for a in arrays]
        wanted = FOLLOWED[name](*(x.astype("float32") for x in given))
    found = ek.jit(FOLLOWED[name])(*(x.to("cuda") for x in given))
    for one, other in zip(*([*x] if isinstance(x, tuple) else [x] for x in (found, wanted)), strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), rtol=4e-2, atol=4e-2)


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("m", "n", "k", "batch"),
    [(1024, 1024, 1024, ()), (2050, 1996, 776, ()), (1500, 1501, 130, ()), (300, 260, 100, (3, 4))],
)  # fmt: skip
@pytest.mark.parametrize(("precision", "error"), [("highest", 3e-6), ("high", 2e-3), ("medium", 2e-2)])
def test_large_products_of_float32(m, n, k, batch, turned, precision, error):
    """Exact and rounded: edges, rows that the machine cannot copy, batches, all ways to lie."""
    a = RNG.standard_normal((*batch, *((k, m) if turned[0] else (m, k)))).astype(np.float32)
    b = RNG.standard_normal((*batch, *((n, k) if turned[1] else (k, n)))).astype(np.float32)

    def product(x, y):
        left, right = (v.swapaxes(-1, -2) if t else v for v, t in zip((x, y), turned, strict=True))
        return left @ right

    try:
        ek.set_float32_matmul_precision(precision)
        found = ek.jit(product)(ek.tensor(a, device="cuda"), ek.tensor(b, device="cuda")).numpy()
    finally:
        ek.set_float32_matmul_precision("highest")
    wanted = product(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(found, wanted, atol=error * np.abs(wanted).max())


@pytest.mark.parametrize(("m", "n", "k"), [(256, 256, 128), (1000, 777, 2032), (1, 64, 4096), (4096, 4096, 64)])
def test_products_of_int8(m, n, k):
    x, w = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (n, k)))
    product = ek.jit(lambda x, w: x.astype("int32") @ w.astype("int32").T)
    found = product(ek.tensor(x, device="cuda"), ek.tensor(w, device="cuda")).numpy()
    np.testing.assert_array_equal(found, (x.astype(np.float64) @ w.astype(np.float64).T).astype(np.int32))


def test_terms_beyond_the_end_are_zeros_in_both_factors():
    """Copies of slabs reach beyond the end of the sums, and 0 · ∞ is no 0."""
    for terms in (68, 100):
        a, b = np.full((1024, terms), np.inf, np.float32), np.ones((terms, 1024), np.float32)
        with ek.device("cuda"):
            assert np.isinf((ek.tensor(a) @ ek.tensor(b)).numpy()).all()
            assert np.isinf((ek.tensor(b.T.copy()) @ ek.tensor(a.T.copy())).numpy()).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "width"),
    [
        (64, 64, 64),
        (1000, 777, 128),
        (512, 512, 80),
        (4100, 4100, 128),
        (300, 300, 32),
        (500, 300, 136),
        (700, 700, 256),
    ],
)
def test_attention_of_16_bit_floats(queries, keys, width, causal):
    q, k, v = (RNG.standard_normal((2, 2, n, width)).astype(np.float32) for n in (queries, keys, keys))
    with ek.device("cuda"):
        given = [ek.tensor(x, dtype="bfloat16") for x in (q, k, v)]
        attend = ek.jit(lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, is_causal=causal))
        found = attend(*given).astype("float32").numpy()
        q, k, v = (x.astype("float32").numpy() for x in given)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width)
    if causal:
        scores = np.where(np.tri(queries, keys, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(found, wanted, atol=8e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "width"),
    [(64, 64, 64), (1000, 777, 128), (100, 700, 64), (520, 520, 80), (300, 300, 32), (300, 260, 136), (260, 260, 256)],
)
def test_gradients_of_attention_of_16_bit_floats(queries, keys, width, causal):
    """As those of float32, and the same bits each time."""
    shapes = [(2, 2, n, width) for n in (queries, keys, keys, queries)]
    with ek.device("cuda"):
        given = [ek.tensor(RNG.standard_normal(shape), dtype="bfloat16") for shape in shapes]

        def loss(q, k, v, ct):
            return (ek.scaled_dot_product_attention(q, k, v, is_causal=causal) * ct).astype("float32").sum()

        gradients = ek.jit(ek.grad(loss, argnums=(0, 1, 2)))
        found = [x.astype("float32").numpy() for x in gradients(*given)]
        for again, before in zip(gradients(*given), found, strict=True):
            np.testing.assert_array_equal(again.astype("float32").numpy(), before)
        q, k, v, ct = (x.astype("float32").numpy() for x in given)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width)
    if causal:
        scores = np.where(np.tri(queries, keys, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    inner = (weights @ v * ct).sum(-1, keepdims=True)
    slopes = weights * (ct @ v.swapaxes(-1, -2) - inner) / np.sqrt(width)
    turned, of_v = slopes.swapaxes(-1, -2), weights.swapaxes(-1, -2) @ ct
    for got, wanted in zip(found, (slopes @ k, turned @ q, of_v), strict=True):
        np.testing.assert_allclose(got, wanted, atol=0.02 * np.abs(wanted).max())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("heads", "shared", "queries", "keys", "width"), [
    (4, 2, 300, 300, 64), (8, 1, 520, 700, 128), (6, 3, 700, 200, 80),
])  # fmt: skip
def test_heads_that_share_keys(heads, shared, queries, keys, width, causal):
    """As if keys and values were repeated, with gradients that are sums."""
    shapes = [(2, heads, queries, width), *[(2, shared, keys, width)] * 2, (2, heads, queries, width)]
    with ek.device("cuda"):
        given = [ek.tensor(RNG.standard_normal(shape), dtype="bfloat16") for shape in shapes]

        def loss(q, k, v, ct):
            return (ek.scaled_dot_product_attention(q, k, v, is_causal=causal) * ct).astype("float32").sum()

        gradients = ek.grad(loss, argnums=(0, 1, 2))
        attend = ek.jit(lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, is_causal=causal))
        found = [attend(*given[:3]), *ek.jit(gradients)(*given)]
        found = [x.astype("float32").numpy() for x in found]
        wide = [x.astype("float32").numpy() for x in given]
    with ek.device("cpu"):
        q, k, v, ct = map(ek.tensor, wide)
        wanted = [ek.scaled_dot_product_attention(q, k, v, is_causal=causal), *gradients(q, k, v, ct)]
    for got, one in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, one.numpy(), atol=0.02 * np.abs(one.numpy()).max())


KEY = np.array([5, 2**31 + 9], np.uint32)


@pytest.mark.parametrize(("shape", "how", "given"), [
    ((2, 4, 4, 300, 300, 64), {"dropout": 0.1}, {"dropout_key": KEY}),
    ((1, 4, 2, 1000, 777, 128), {"dropout": 0.25, "is_causal": True}, {"dropout_key": KEY}),
    ((2, 3, 3, 260, 301, 256), {"dropout": 0.5}, {"dropout_key": KEY}),
    ((3, 4, 4, 300, 500, 64), {}, {"key_lengths": np.array([500, 0, 129])}),
    ((3, 4, 2, 700, 700, 128), {"is_causal": True}, {"key_lengths": np.array([1, 700, 300])}),
    ((2, 2, 2, 260, 260, 160), {"window": 40}, {"key_lengths": np.array([100, 260])}),
    ((1, 4, 4, 1000, 1000, 64), {"is_causal": True}, {"offsets": np.array([0, 1, 200, 200, 640, 1000])}),
    ((1, 4, 1, 900, 900, 128), {}, {"offsets": np.array([7, 300, 301, 800])}),
    ((2, 4, 2, 600, 600, 80), {"dropout": 0.2, "window": 99},
     {"offsets": np.array([0, 100, 600]), "key_lengths": np.array([600, 333]), "dropout_key": KEY}),
])  # fmt: skip
def test_attention_with_dropout_and_of_several_lengths(shape, how, given):
    """With gradients, as the CPU has it, which draws the same random bits; the same bits each time."""
    b, heads, shared, queries, keys, width = shape
    shapes = [(b, heads, queries, width), *[(b, shared, keys, width)] * 2, (b, heads, queries, width)]

    def trained(q, k, v, ct, *rest):
        more = dict(zip(given, rest, strict=True))

        def attend(q, k, v):
            return ek.scaled_dot_product_attention(q, k, v, **how, **more)

        gradients = ek.grad(lambda q, k, v: (attend(q, k, v) * ct).astype("float32").sum(), argnums=(0, 1, 2))
        return attend(q, k, v), *gradients(q, k, v)

    with ek.device("cuda"):
        arrays = [ek.tensor(RNG.standard_normal(shape), dtype="bfloat16") for shape in shapes]
        rest = [ek.tensor(x) for x in given.values()]
        found, again = ([x.astype("float32").numpy() for x in ek.jit(trained)(*arrays, *rest)] for _ in range(2))
        wide = [x.astype("float32").numpy() for x in arrays]
    with ek.device("cpu"):
        wanted = [x.numpy() for x in trained(*map(ek.tensor, (*wide, *given.values())))]
    for got, same, one in zip(found, again, wanted, strict=True):
        np.testing.assert_array_equal(got, same)
        np.testing.assert_allclose(got, one, atol=0.02 * np.abs(one).max())


def padding(b, h, n, m):
    return (np.arange(m) < np.linspace(m, 0, b).astype(int)[:, None])[:, None, None, :]


@pytest.mark.parametrize(("shape", "how", "mask"), [
    ((1, 2, 2, 300, 300, 64), {"window": 50, "is_causal": True}, None),
    ((1, 2, 1, 700, 500, 128), {"window": 90}, None),
    ((1, 2, 2, 900, 200, 64), {"window": 30}, None), ((3, 2, 2, 260, 330, 64), {}, padding),
    ((2, 4, 2, 300, 300, 128), {"is_causal": True}, padding),
    ((2, 2, 2, 200, 301, 64), {}, lambda *shape: RNG.random(shape) < 0.7),
    ((1, 4, 2, 257, 300, 80), {"is_causal": True, "window": 99}, lambda b, h, n, m: RNG.standard_normal((h, n, m))),
])  # fmt: skip
def test_attention_to_some_of_the_keys(shape, how, mask):
    """Windows and masks, with gradients: tiles that nobody sees are left out, and who sees nothing gets zeros."""
    b, heads, shared, queries, keys, width = shape
    shapes = [(b, heads, queries, width), *[(b, shared, keys, width)] * 2, (b, heads, queries, width)]
    masks = [] if mask is None else [mask(b, heads, queries, keys)]
    masks = [m if m.dtype == bool else m.astype(np.float32) for m in masks]

    def trained(q, k, v, ct, *masks):
        def attend(q, k, v):
            return ek.scaled_dot_product_attention(q, k, v, *masks, **how)

        gradients = ek.grad(lambda q, k, v: (attend(q, k, v) * ct).astype("float32").sum(), argnums=(0, 1, 2))
        return attend(q, k, v), *gradients(q, k, v)

    with ek.device("cuda"):
        given = [ek.tensor(RNG.standard_normal(shape), dtype="bfloat16") for shape in shapes]
        found = [x.astype("float32").numpy() for x in ek.jit(trained)(*given, *map(ek.tensor, masks))]
        wide = [x.astype("float32").numpy() for x in given]
    with ek.device("cpu"):
        wanted = [x.numpy() for x in trained(*map(ek.tensor, (*wide, *masks)))]
    for got, one in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, one, atol=0.02 * np.abs(one).max())


@pytest.mark.parametrize(("b", "heads", "shared", "queries", "keys", "width", "mask"), [
    (2, 4, 4, 1, 1000, 64, None), (1, 32, 8, 1, 4096, 128, None), (3, 4, 1, 2, 600, 256, padding),
    (40, 8, 2, 3, 777, 80, lambda b, h, n, m: np.arange(m) <= m - 9 + np.arange(n)[:, None]),
])  # fmt: skip
def test_few_queries_of_many_keys(b, heads, shared, queries, keys, width, mask):
    """Blocks that share the keys find what one would, and the same bits each time."""
    shapes = [(b, heads, queries, width), *[(b, shared, keys, width)] * 2]
    masks = [] if mask is None else [mask(b, heads, queries, keys)]
    with ek.device("cuda"):
        given = [ek.tensor(RNG.standard_normal(shape), dtype="bfloat16") for shape in shapes]
        attend, seen = ek.jit(ek.scaled_dot_product_attention), [ek.tensor(m) for m in masks]
        found, again = (attend(*given, *seen).astype("float32").numpy() for _ in range(2))
        wide = [x.astype("float32").numpy() for x in given]
    np.testing.assert_array_equal(found, again)
    with ek.device("cpu"):
        wanted = ek.scaled_dot_product_attention(*map(ek.tensor, (*wide, *masks))).numpy()
    np.testing.assert_allclose(found, wanted, atol=0.01 * np.abs(wanted).max())


@pytest.mark.parametrize(("heads", "shared", "queries", "keys", "width"), [
    (4, 4, 1, 1000, 64), (32, 8, 1, 4096, 128), (8, 2, 3, 777, 80),
])  # fmt: skip
def test_few_queries_of_as_many_keys_as_each_sample_has(heads, shared, queries, keys, width):
    shapes = [(5, heads, queries, width), *[(5, shared, keys, width)] * 2]
    lengths = np.array([keys, 0, 1, 300, keys - 1])
    with ek.device("cuda"):
        given = [ek.tensor(RNG.standard_normal(shape), dtype="bfloat16") for shape in shapes]
        attend = ek.jit(lambda q, k, v, n: ek.scaled_dot_product_attention(q, k, v, key_lengths=n))
        found = attend(*given, ek.tensor(lengths)).astype("float32").numpy()
        wide = [x.astype("float32").numpy() for x in given]
    with ek.device("cpu"):
        wanted = ek.scaled_dot_product_attention(*map(ek.tensor, wide), key_lengths=ek.tensor(lengths)).numpy()
    np.testing.assert_allclose(found, wanted, atol=0.01 * np.abs(wanted).max())


@pytest.mark.parametrize(("heads", "shared", "queries", "width", "page", "most"), [
    (4, 4, 1, 64, 16, 40), (32, 8, 1, 128, 64, 33), (8, 1, 2, 256, 16, 20), (6, 3, 1, 80, 256, 5),
])  # fmt: skip
def test_decoding_from_pages(heads, shared, queries, width, page, most):
    """Pages lie anywhere, in any order, and what the table says beyond the lengths is not looked at."""
    samples, count = 5, 5 * most + 3
    pages = [RNG.standard_normal((count, page, shared, width)).astype(np.float32) for _ in range(2)]
    query = RNG.standard_normal((samples, heads, queries, width))
    table = RNG.permutation(count)[: samples * most].reshape(samples, most)
    lengths = np.array([most * page, 0, 1, page, most * page // 2 + 5])
    for row, length in zip(table, lengths, strict=True):
        row[-(-length // page) :] = -1
    with ek.device("cuda"):
        given = [ek.tensor(x, dtype="bfloat16") for x in (query, *pages)]
        attend, rest = ek.jit(ek.paged_attention), [ek.tensor(table), ek.tensor(lengths)]
        found, again = (attend(*given, *rest).astype("float32").numpy() for _ in range(2))
        wide = [x.astype("float32").numpy() for x in given]
    np.testing.assert_array_equal(found, again)
    with ek.device("cpu"):
        wanted = ek.paged_attention(*map(ek.tensor, (*wide, table, lengths))).numpy()
    np.testing.assert_allclose(found, wanted, atol=0.01 * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("rows", "columns", "terms", "formats"), [
    (128, 256, 512, ("e4m3", "e4m3")), (1000, 521, 272, ("e5m2", "e4m3")), (3, 4096, 4096, ("e4m3", "e5m2")),
    (700, 64, 48, ("e5m2", "e5m2")),
])  # fmt: skip
def test_products_of_floats_of_8_bits(rows, columns, terms, formats, dtype):
    """As NumPy's of what the bytes stand for: machines sum such products to some 13 bits."""
    x, y = RNG.standard_normal((rows, terms)), RNG.standard_normal((columns, terms))
    with ek.device("cuda"):
        x, y = (ek.to_float8(ek.tensor(a, dtype="float32"), f) for a, f in zip((x, y), formats, strict=True))
        multiply = ek.jit(lambda x, y, s: ek.float8_matmul(x, y, s, formats, dtype))
        found = multiply(x, y, ek.tensor(0.25)).astype("float32").numpy()
        one, other = (ek.from_float8(a, f).numpy().astype(np.float64) for a, f in zip((x, y), formats, strict=True))
    wanted = 0.25 * one @ other.T
    rounded = {"float32": 0.0, "float16": 2**-11, "bfloat16": 2**-8}[dtype]
    np.testing.assert_allclose(found, wanted, atol=4e-3 * np.abs(wanted).max(), rtol=rounded)


def test_gradients_of_products_of_16_bit_floats():
    a, b = RNG.standard_normal((200, 136)), RNG.standard_normal((136, 72))
    with ek.device("cuda"):
        x, y = ek.tensor(a, dtype="bfloat16"), ek.tensor(b, dtype="bfloat16")
        found = ek.jit(ek.grad(lambda p, q: ((p @ q) * (p @ q)).sum(), (0, 1)))(x, y)
        p, q = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
        for got, wanted in zip(found, (2 * p @ q @ q.T, 2 * p.T @ (p @ q)), strict=True):
            np.testing.assert_allclose(got.numpy().astype(np.float64), wanted, atol=0.02 * np.abs(wanted).max())


@pytest.mark.parametrize(("x", "w", "how"), [
    ((3, 72, 15, 13), (40, 72, 5, 5), {"stride": 2, "padding": 2}), ((5, 200, 9, 11), (136, 200, 3, 3), {"padding": 1}),
    ((2, 64, 20, 20), (96, 64, 3, 3), {"padding": 2, "dilation": 2}), ((9, 64, 28, 28), (64, 64, 3, 3), {"padding": 1}),
    ((4, 128, 14, 14), (264, 128, 1, 1), {}), ((4, 128, 28, 28), (72, 128, 1, 1), {}),
    ((4, 64, 28, 27), (128, 64, 1, 1), {"stride": 2}), ((2, 64, 20, 23), (96, 64, 4, 3), {"stride": 3, "padding": 1}),
    ((2, 3, 64, 60), (64, 3, 7, 7), {"stride": 2, "padding": 3}), ((3, 64, 40), (32, 64, 5), {"padding": 2}),
])  # fmt: skip
def test_convolutions_of_16_bit_floats(x, w, how):
    """With their gradients: of all taps, of one, of strides that spread cotangents, of few channels."""
    x, w = (RNG.standard_normal(shape).astype(np.float32) for shape in (x, w))
    convolved = ek.conv2d if x.ndim == 4 else ek.conv1d
    ct = RNG.standard_normal(convolved(ek.tensor(x), ek.tensor(w), **how).shape).astype(np.float32)

    def all_three(x, w, ct):
        found, pulled = ek.vjp(lambda x, w: convolved(x, w, **how), x, w)
        return found, *pulled(ct)

    given = [ek.tensor(a, dtype="bfloat16", device="cuda") for a in (x, w, ct)]
    wanted = all_three(*(ek.tensor(a.numpy().astype(np.float64)) for a in given))
    for one, other in zip(ek.jit(all_three)(*given), wanted, strict=True):
        exact = other.numpy()
        np.testing.assert_allclose(one.numpy().astype(np.float64), exact, atol=8e-3 * np.abs(exact).max())


def test_large_inputs_do_not_overflow_softmax():
    a = (RNG.standard_normal((65, 1000)) * 1000).astype(np.float32)
    powers = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    with ek.device("cuda"):
        got = ek.softmax(ek.tensor(a), axis=1).numpy()
    np.testing.assert_allclose(got, powers / powers.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_a_compiled_step_trains_as_on_the_cpu():
    x = RNG.standard_normal((256, 2)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    weights = [(RNG.standard_normal(s) * 0.5).astype(np.float32) for s in ((2, 32), (32,), (32, 2), (2,))]
    losses = {}
    for device in ("cpu", "cuda"):
        with ek.device(device):
            given, labels = ek.tensor(x), ek.tensor(y)

            @ek.jit
            def step(*p, given=given, labels=labels):
                def loss(w1, b1, w2, b2):
                    return ek.cross_entropy(ek.tanh(given @ w1 + b1) @ w2 + b2, labels)

                value, slopes = ek.value_and_grad(loss, argnums=(0, 1, 2, 3))(*p)
                return value, [a - 0.5 * b for a, b in zip(p, slopes, strict=True)]

            parameters, losses[device] = [ek.tensor(w) for w in weights], []
            for _ in range(50):
                value, parameters = step(*parameters)
                losses[device].append(float(value))
    assert losses["cuda"][-1] < 0.5 * losses["cuda"][0]
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-3)


@pytest.mark.parametrize(("precision", "scale"), [("bfloat16", None), ("float16", "dynamic")])
def test_mixed_precision_trains_as_on_the_cpu(precision, scale):
    x = RNG.standard_normal((256, 32)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    losses = {}
    for device in ("cpu", "cuda"):
        with ek.device(device):
            ek.seed(3)
            model = ek.nn.Sequential(ek.nn.Linear(32, 64), ek.nn.ReLU(), ek.nn.Linear(64, 2))
            optimizer = ek.optim.Adam(model.parameters(), lr=0.01)
            step = ek.train.Step(model, ek.cross_entropy, optimizer, precision=precision, loss_scale=scale)
            losses[device] = [float(step(ek.tensor(x), ek.tensor(y)).loss) for _ in range(60)]
    assert losses["cuda"][-1] < 0.5 * losses["cuda"][0]
    np.testing.assert_allclose(losses["cuda"][:20], losses["cpu"][:20], rtol=0.03)


def test_an_index_out_of_range_is_an_error_and_the_rest_goes_on():
    with ek.device("cuda"):
        x = ek.tensor(np.arange(5.0))
        taken = ek.jit(lambda values, at: ek.take(values, at, axis=0))
        with pytest.raises(IndexOutOfRange):
            taken(x, ek.tensor(np.array([1, 7]))).numpy()
        np.testing.assert_array_equal(taken(x, ek.tensor(np.array([1, 4]))).numpy(), [1, 4])


def test_more_than_the_device_has():
    with ek.device("cuda") as machine:
        with pytest.raises(AllocationFailed):
            machine.allocate(machine.description.largest)
        assert float((ek.ones((4,)) + 1).sum()) == 8.0


def test_ten_thousand_allocations():
    with ek.device("cuda") as machine:
        used, held = machine.statistics.used, []
        for _ in range(10_000):
            held.append(machine.allocate(int(RNG.integers(0, 1 << 22))))
            if len(held) > 50:
                machine.free(held.pop(int(RNG.integers(len(held)))))
        for handle in held:
            machine.free(handle)
        assert machine.statistics.used == used


def test_launches_that_come_again_are_right_with_other_memory_each_time():
    """From the third run on they are a graph; a loop in it moves its places."""

    def rolled(x, y):
        carry, rows = ek.scan(lambda c, row: (c * 0.5 + row, (c + row).sum()), y, x)
        return carry, rows, ek.softmax(carry * rows.sum(), 0)

    compiled, kept = ek.jit(rolled), []
    for k in range(8):
        x, y = RNG.standard_normal((50, 40)).astype(np.float32), RNG.standard_normal(40).astype(np.float32)
        with ek.device("cuda"):
            found = compiled(ek.tensor(x), ek.tensor(y))
        for a, b in zip(found, rolled(ek.tensor(x), ek.tensor(y)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-3, atol=1e-4)
        kept += [found] * (k % 2)


def test_events_measure_the_device():
    with ek.device("cuda") as machine:
        x = ek.tensor(RNG.standard_normal((2048, 2048)).astype(np.float32)).realize()
        product = ek.jit(lambda x: x @ x)
        product(x).numpy()
        start, middle, end = (machine.event() for _ in range(3))
        start.record()
        product(x)
        middle.record()
        for _ in range(20):
            product(x)
        end.record()
        end.wait()
        assert end.done()
        assert 0 < start.seconds_until(middle) < start.seconds_until(end) < 10
