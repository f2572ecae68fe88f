"""Numbers in order by native code against NumPy: bit for bit, with special values, for one thread and several."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.atlas import sequence
from eshkol.atlas.sequence import NativeCode
from eshkol.backends.cpu import order
from eshkol.graph.node import Node, topological
from eshkol.ops import dtypes
from eshkol.ops.row import Aval
from eshkol.runtime.scheduler import Scheduler
from eshkol.schedule.check.switch import check
from eshkol.schedule.pipeline import PASSES
from eshkol.schedule.rewrite.orders import ORDERED, Ordered
from eshkol.tensors.devices import machine

KINDS = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
    ml_dtypes.bfloat16,
]  # fmt: skip
SPECIAL = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf]


def drawn(rng: np.random.Generator, shape: tuple[int, ...], kind: object) -> np.ndarray:
    """Numbers with many equal ones among them; floats with special ones."""
    dtype = np.dtype(kind)
    x = (rng.normal(size=shape) * rng.choice([1, 1e3])).round(2)
    if dtype.kind in "bu":
        x = abs(x)
    if dtype.kind in "biu":
        return x.astype(dtype) if dtype.itemsize > 1 else (x % 100).astype(dtype)
    with np.errstate(all="ignore"):
        x = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), x)
        return x.astype(dtype)


def ran(code: NativeCode, inputs: list[np.ndarray], outs: list[np.ndarray]) -> None:
    """Let native code of a plan compute."""
    arrays = [*outs, *(np.ascontiguousarray(x) for x in inputs)]
    steps = [sequence.Native(code, tuple((k, 0) for k in range(len(arrays))))]
    machine("cpu").sequence(steps, len(arrays)).run([x.ctypes.data for x in arrays])


def compare(x: np.ndarray, a: Ordered) -> None:
    wanted = ORDERED.reference(a, x)
    wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
    outs = [np.empty(w.shape, w.dtype) for w in wanted]
    avals = [Aval(w.shape, dtypes.of(w.dtype)) for w in wanted]
    if x.size:
        code = order.CODES["ordered"](a, [Aval(x.shape, dtypes.of(x.dtype))], avals)
        assert code is not None
        ran(code, [x], outs)
        for got, want in zip(outs, wanted, strict=True):
            assert got.tobytes() == want.tobytes(), (x.dtype, x.shape, a)


WANTED = [(True, False), (False, True), (True, True)]


@st.composite
def ranges(draw, length: int) -> tuple[tuple[int, int], ...]:
    """Ranks of an order: all, the first few, some in the middle, or several."""
    if draw(st.booleans()):
        return ((0, length),)
    ends = sorted(draw(st.sets(st.integers(0, length), min_size=2, max_size=6)))
    return tuple(zip(ends[::2], ends[1::2], strict=False))


@examples(600, 100)
@given(st.sampled_from(KINDS), st.lists(st.integers(1, 40), max_size=2), st.integers(1, 700), st.data())
def test_any_part_of_any_order(kind, rows, length, data):
    x = drawn(np.random.default_rng(data.draw(st.integers(0, 99))), (*rows[:1], length), kind)
    values, places = data.draw(st.sampled_from(WANTED))
    compare(x, Ordered(data.draw(st.booleans()), data.draw(ranges(length)), values, places))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_long_rows(threads, monkeypatch):
    rng = np.random.default_rng(threads)
    with Scheduler(threads) as pool:
        monkeypatch.setattr(order, "default_scheduler", lambda: pool)
        for kind in ("uint8", "int64", "float32", "float64", ml_dtypes.bfloat16):
            for length in (20_000, 100_017):
                x = drawn(rng, (length,), kind)
                for values, places in WANTED:
                    few = ((0, 1), (length // 2, length // 2 + 3), (length - 1, length))
                    for part in (((0, length),), ((0, 50),), ((100, 10_100),), few):
                        compare(x, Ordered(descending=values, ranges=part, values=values, places=places))


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "uint32"])
def test_long_runs_of_one_digit_belong_to_one_thread(kind, monkeypatch):
    """Numbers crowd around a few sizes: runs with the same first bits reach from one thread's piece into others."""
    rng = np.random.default_rng(7)
    with Scheduler(8) as pool:
        monkeypatch.setattr(order, "default_scheduler", lambda: pool)
        for _ in range(6):
            x = rng.normal(size=400_000) if kind.startswith("f") else abs(rng.normal(size=400_000)) * 2**29
            for values, places in WANTED:
                compare(x.astype(kind), Ordered(False, ((0, len(x)),), values=values, places=places))


@pytest.mark.parametrize("kind", KINDS)
def test_short_rows_beside_each_other(kind):
    """As many as vectors have lanes, and some more; zeros of both signs and NaNs are told apart where they stand."""
    rng = np.random.default_rng(8)
    for length in (1, 2, 3, 7, 8, 20, 31, 33, 63, 64, 65):
        x = drawn(rng, (37, length), kind)
        for values, places in WANTED:
            for part in (((0, length),), ((0, 1), (length // 2, length // 2 + 1))[: 1 + (length > 2)]):
                compare(x, Ordered(values, part, values=values, places=places))


def test_keys_that_first_bits_do_not_tell_apart():
    rng = np.random.default_rng(5)
    x = np.ldexp(1.0, rng.choice([-1000, 0, 1000], 30_000)) * (1 + rng.integers(0, 50, 30_000) * 2.0**-52)
    compare(x, Ordered(descending=False, ranges=((0, 30_000),), values=True, places=True))
    compare(x[:1000], Ordered(descending=True, ranges=((0, 1000),), values=False, places=True))


@pytest.mark.parametrize("threads", [1, 3])
def test_wide_numbers_with_their_places(threads, monkeypatch):
    """Keys and places in 8 bytes: exactly, or with bits left out that matter or not; evenly spread or not."""
    rng = np.random.default_rng(threads)
    n = 70_001
    high = rng.integers(0, 2**63, n, dtype=np.int64)
    rows = [
        high, high.view(np.uint64) * 2, high % 1000, high % 100 * 10**9, rng.normal(size=n),
        drawn(rng, (n,), "float64"),
        (high >> 50 << 50) + high % 3,  # what is left out tells apart what is kept does not
        np.where(high % 2 == 0, -(2**63), 2**63 - 1) + high % 40 * np.where(high % 2 == 0, 1, -1),
        np.full(n, 7), np.r_[high[: n - 1], 0], (high % 64 << 57).view(np.uint64) + (high % 7).astype(np.uint64),
        high - high % 2**30 * (np.arange(n) % 5 > 0), np.repeat(high, 2)[:n] - np.arange(n) % 2,  # even, but for some
        np.where(np.arange(n) % (n // 256), 2**50 + high % 2**40, high),  # only where one might look
    ]  # fmt: skip
    with Scheduler(threads) as pool:
        monkeypatch.setattr(order, "default_scheduler", lambda: pool)
        for x in rows:
            for descending, values in ((False, False), (True, True)):
                compare(x, Ordered(descending, ((0, n),), values, places=True))
        compare(np.stack([rows[0], rows[2]])[:, :300], Ordered(False, ((0, 300),), True, places=True))


def test_what_has_no_order_has_no_code():
    x = Aval((3,), dtypes.complex64)
    assert order.CODES["ordered"](Ordered(False, ((0, 3),), True, False), [x], [x]) is None


def test_searches():
    """Among boundaries of any kind; evenly lying ones, where a value's number is computed, up to the last bit."""
    rng = np.random.default_rng(6)
    for kind in KINDS[1:]:
        wide = np.float32 if kind is ml_dtypes.bfloat16 else kind
        for extent, count in ((5, 9), (6, 1), (70, 700), (1000, 3000)):
            boundaries, values = drawn(rng, (extent,), kind), drawn(rng, (count,), kind)
            boundaries = boundaries[np.argsort(boundaries.astype(wide), kind="stable")]
            values[: count // 2] = rng.choice(boundaries, count // 2)
            for side in ("left", "right"):
                got = ek.searchsorted(ek.tensor(boundaries), ek.tensor(values), side=side).numpy()
                np.testing.assert_array_equal(got, np.searchsorted(boundaries.astype(wide), values.astype(wide), side))
    for kind in (np.float32, np.float64):
        for extent in (5, 100, 1001, 4096):
            edges = np.linspace(-1.3, 2.7, extent).astype(kind)
            near = [edges, np.nextafter(edges, kind(9)), np.nextafter(edges, kind(-9)), np.array(SPECIAL, kind)]
            values = np.concatenate([*near, rng.uniform(-3, 4, 9000).astype(kind)])
            for side in ("left", "right"):
                got = ek.searchsorted(ek.tensor(edges), ek.tensor(values), side=side).numpy()
                np.testing.assert_array_equal(got, np.searchsorted(edges, values, side))
    rows = np.sort(rng.normal(size=(3, 50)), axis=-1)
    values = rng.normal(size=(3, 4, 5))
    got = ek.searchsorted(ek.tensor(rows), ek.tensor(values)).numpy()
    np.testing.assert_array_equal(got, [np.searchsorted(r, v) for r, v in zip(rows, values, strict=True)])


def test_places_of_extremes():
    """The first of equal ones, or of NaNs, in short rows and in long ones that threads share."""
    rng = np.random.default_rng(7)
    for kind in KINDS[1:]:
        for shape, axis in (((600,), None), ((7, 300), 1), ((3, 20, 30), (1, 2)), ((300_000,), 0), ((300, 3), 0)):
            x = drawn(rng, shape, kind)
            x.reshape(-1)[: x.size // 2] = 1
            rows = x.reshape(3, 600) if axis == (1, 2) else x
            with np.errstate(all="ignore"):
                rows = rows.astype(np.float32) if kind is ml_dtypes.bfloat16 else rows
            for name in ("argmax", "argmin"):
                node = getattr(ek, name)(ek.tensor(x).reshape(3, 600) if axis == (1, 2) else ek.tensor(x),
                                         1 if axis == (1, 2) else axis)  # fmt: skip
                want = getattr(np, name)(rows, 1 if axis == (1, 2) else axis)
                np.testing.assert_array_equal(node.numpy(), want, err_msg=f"{kind} {shape} {name}")


def test_places_of_extremes_in_rows_of_any_length():
    """With and without NaN anywhere: vectors, what is left of them, and where one glance ends."""
    rng = np.random.default_rng(8)
    for length in (1, 3, *rng.integers(4, 1200, 12).tolist(), 512, 513):
        for kind in (np.float32, np.float64):
            x = np.round(rng.standard_normal((6, length)) * 3).astype(kind)
            x[2, rng.integers(length)] = np.nan
            x[3, rng.integers(length)] = -np.inf
            x[4, rng.integers(length)] = np.inf
            x[5, [0, length - 1]] = np.nan
            for name in ("argmax", "argmin"):
                found = getattr(ek, name)(ek.tensor(x), 1).numpy()
                np.testing.assert_array_equal(found, getattr(np, name)(x, 1), err_msg=f"{kind} {length} {name}")


def planned(*results: ek.Tensor) -> list[Node]:
    """The nodes of the plan that gives these tensors."""
    nodes = [r._node for r in results]
    description = machine("cpu").description
    for _, graph_pass in PASSES:
        nodes = graph_pass(nodes, description)
    return topological(nodes)


def parts(*results: ek.Tensor) -> list[Ordered]:
    """What the plan that gives these tensors asks of orders."""
    return [node.attrs for node in planned(*results) if node.op is ORDERED]


def test_orders_are_found_as_far_as_they_are_read():
    x = ek.tensor(np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32))
    wanted, places = np.sort(x.numpy(), axis=0), np.argsort(x.numpy(), axis=0)
    ordered, order = ek.sort(x, 0)
    whole = ((0, 64),)
    cases = (
        ((ordered[:4], order[:4]), ((0, 4),), (True, True), (wanted[:4], places[:4])),
        ((order[:4],), ((0, 4),), (False, True), (places[:4],)),
        ((ordered[:4], order[60:]), ((0, 4), (60, 64)), (True, True), (wanted[:4], places[60:])),
        ((ordered[1:4], ordered[3:9:2]), ((1, 9),), (True, False), (wanted[1:4], wanted[3:9:2])),
        ((ordered[5:6, :2],), ((5, 6),), (True, False), (wanted[5:6, :2],)),
        ((ordered[:40],), whole, (True, False), (wanted[:40],)),
        ((ordered[:4], order), whole, (True, True), (wanted[:4], places)),
        ((ordered[:4], ordered.exp()), whole, (True, False), (wanted[:4], np.exp(wanted))),
    )
    for results, ranges, both, _ in cases:  # before any of them is computed
        assert parts(*results) == [Ordered(False, ranges, *both)], ranges
    with check():
        for results, _, _, found in cases:
            for got, want in zip(results, found, strict=True):
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_only_the_numbers_around_a_median_are_sorted():
    x = ek.tensor(np.random.default_rng(0).normal(size=(3, 101)))
    assert parts(ek.quantile(x, 0.5, 1)) == [Ordered(False, ((50, 51), (100, 101)), True, False)]
    np.testing.assert_array_equal(ek.quantile(x, 0.5, 1).numpy(), np.median(x.numpy(), 1))
    values, places = ek.kthvalue(x, 7)
    np.testing.assert_array_equal(values.numpy(), np.sort(x.numpy())[:, 6])
    np.testing.assert_array_equal(places.numpy(), np.argsort(x.numpy())[:, 6])


def test_derivatives_of_the_first_few():
    x = ek.tensor(np.random.default_rng(2).normal(size=(2, 50)))
    with check():
        gradient = ek.grad(lambda x: (ek.topk(x, 3)[0] ** 2).sum())(x).numpy()
    wanted = np.where(x.numpy() >= np.sort(x.numpy(), axis=1)[:, -3:-2], 2 * x.numpy(), 0)
    np.testing.assert_allclose(gradient, wanted)
