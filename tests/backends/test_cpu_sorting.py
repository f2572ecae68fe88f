"""Sorts of the host against NumPy's stable argsort: bit for bit, with special values, for one thread and several."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.backends.cpu import sorting
from eshkol.ops.sorting import Sort, sort
from eshkol.runtime.scheduler import Scheduler
from eshkol.schedule.check.switch import check

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


def compare(x: np.ndarray, axis: int, descending: bool, kept: int | None = None) -> None:
    found = sorting.in_order(x, axis, descending, kept)
    assert found is not None
    for got, want in zip(found, sort.reference(Sort(axis, descending), x), strict=True):
        want = want if kept is None else np.take(want, range(kept), axis)
        assert got.dtype == want.dtype
        assert got.tobytes() == want.tobytes()


@examples(400, 60)
@given(st.sampled_from(KINDS), st.lists(st.integers(0, 40), min_size=1, max_size=3), st.booleans(), st.data())
def test_any_shape(kind, shape, descending, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = drawn(np.random.default_rng(data.draw(st.integers(0, 99))), tuple(shape), kind)
    compare(x, axis, descending, data.draw(st.none() | st.integers(0, shape[axis])))
    compare(x[..., ::-1], axis, descending)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", ["uint8", "int32", "float32", "float64", ml_dtypes.bfloat16], ids=str)
def test_long_rows(kind, threads, monkeypatch):
    rng = np.random.default_rng(threads)
    with Scheduler(threads) as pool:
        monkeypatch.setattr(sorting, "default_scheduler", lambda: pool)
        for length in (sorting.SHARED, 3 * sorting.SHARED + 17):
            x = drawn(rng, (length,), kind)
            compare(x, 0, descending=False)
            compare(x, 0, descending=True)
            compare(x, 0, True, kept=50)
        compare(drawn(rng, (9, 3000), kind), 1, descending=True, kept=7)


def test_what_has_no_order_is_left_to_the_reference():
    assert sorting.in_order(np.zeros(3, np.complex64), 0, descending=False) is None


def kinds(*results: ek.Tensor) -> set[str]:
    """The ops of the plan that gives these tensors."""
    from eshkol.graph.node import topological
    from eshkol.schedule.pipeline import PASSES

    nodes = [r._node for r in results]
    description = ek.tensors.devices.machine("cpu").description
    for _, graph_pass in PASSES:
        nodes = graph_pass(nodes, description)
    return {n.op.name for n in topological(nodes)}


def test_of_topk_only_the_first_are_looked_for():
    x = ek.tensor(np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32))
    values, places = ek.topk(x, 4)
    assert "sorted_first" in kinds(values, places)
    assert "sorted_first" in kinds(places)
    assert "sort" not in kinds(values, places)
    with check():
        np.testing.assert_array_equal(values.numpy(), np.sort(x.numpy(), axis=1)[:, :-5:-1])
        np.testing.assert_array_equal(np.take_along_axis(x.numpy(), places.numpy(), 1), values.numpy())


def test_what_is_read_otherwise_is_sorted_whole():
    x = ek.tensor(np.random.default_rng(1).normal(size=(64, 3)).astype(np.float32))
    ordered, places = ek.sort(x, 0)
    for results in (
        (ordered[:4], places), (ordered[:4], ordered[:3]), (ordered[1:4],), (ordered[:4:2],), (ordered[:4, :2],),
        (ordered[:4], ordered.sum()), (ordered[:5],),
    ):  # fmt: skip
        assert "sort" in kinds(*results), results
    wanted = np.sort(x.numpy(), axis=0)
    with check():
        np.testing.assert_array_equal(ordered[1:4].numpy(), wanted[1:4])
        np.testing.assert_array_equal(ordered[:4].numpy(), wanted[:4])


def test_derivatives_of_the_first_few():
    x = ek.tensor(np.random.default_rng(2).normal(size=(2, 50)))
    with check():
        gradient = ek.grad(lambda x: (ek.topk(x, 3)[0] ** 2).sum())(x).numpy()
    wanted = np.where(x.numpy() >= np.sort(x.numpy(), axis=1)[:, -3:-2], 2 * x.numpy(), 0)
    np.testing.assert_allclose(gradient, wanted)
