"""Sorts for machines of blocks against NumPy: runs of all lengths, both directions, NaN, equal elements in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.backends import open_backend
from eshkol.backends.blocks import DESCRIPTION
from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import dtypes
from eshkol.ops.contraction import wide
from eshkol.ops.sorting import sort
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.plan.steps import Launch, planned
from eshkol.schedule.run import stepwise

from .trust import trusted


def few_numbers(*shape: int, dtype: dtypes.DType = dtypes.float32) -> Node:
    """Numbers of which many are equal; of floats some are NaN."""
    found = np.random.default_rng(sum(shape)).integers(0, 5, shape).astype(dtype.numpy)
    if dtype.is_float:
        found.reshape(-1)[1::4] = np.nan
    return buffer(found, dtype)


def agrees(results: Any, count: int) -> None:
    """Compare a sort with NumPy; it takes so many launches."""
    nodes = list(results)
    leaves = [n for n in topological(nodes) if n.op.name == "buffer"]
    plan = planned(nodes, leaves, DESCRIPTION)
    assert [type(step) for step in plan.steps] == [Launch] * count
    found = stepwise.run(plan, [n.data for n in leaves], open_backend("blocks"))
    for got, wanted in zip(found, interpret.evaluate(nodes), strict=True):
        assert np.asarray(got).dtype == wanted.dtype
        np.testing.assert_array_equal(wide(np.asarray(got)), wide(wanted))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "launches"),
    [((1,), 0, 1), ((2, 2), 1, 1), ((3,), 0, 2), ((2, 8), 1, 3), ((9, 2), 0, 4), ((2, 5, 3), 1, 3), ((1, 33), 1, 6)],
)
def test_sorts(shape: tuple[int, ...], axis: int, launches: int, descending: bool) -> None:
    agrees(sort(few_numbers(*shape), axis, descending), launches)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if not d.is_complex], ids=str)
def test_sorts_of_every_dtype(dtype: dtypes.DType) -> None:
    agrees(sort(few_numbers(2, 7, dtype=dtype)), 3)


def test_infinities_zeros_and_the_ends_of_integers() -> None:
    odd = np.array([0.0, -np.inf, np.nan, -0.0, np.inf, -1.0, np.nan, 0.0], np.float32)
    agrees(sort(buffer(odd, dtypes.float32), descending=True), 3)
    for dtype in (dtypes.int64, dtypes.uint64):
        ends = np.iinfo(dtype.numpy)
        agrees(sort(buffer(np.array([0, ends.max, ends.min, 1, ends.max - 1], dtype.numpy), dtype)), 3)


def test_nothing_is_sorted_without_a_launch() -> None:
    agrees(sort(buffer(np.zeros((3, 0), np.float32), dtypes.float32)), 0)


@pytest.mark.parametrize("shape", [(2, 7), (40,), (3, 16, 2)])
def test_no_access_needs_a_check(shape: tuple[int, ...]) -> None:
    [node] = [n for n in topological(list(sort(few_numbers(*shape), 0))) if n.op is sort]
    kernels = lowered(node, DESCRIPTION)
    assert isinstance(kernels, tuple)
    assert all(trusted(kernel) for kernel in kernels)


MADE_OF_SORTS: dict[str, Callable[[Any], Any]] = {
    "argsort": lambda x: ek.argsort(x, 1), "topk": lambda x: ek.topk(x, 3)[1], "median": lambda x: ek.median(x, 1)[0],
    "quantile": lambda x: ek.quantile(x, 0.3, 1), "kthvalue": lambda x: ek.kthvalue(x, 2)[0],
    "randperm": lambda x: ek.random.randperm(ek.random.key(3), 6),
    "multinomial": lambda x: ek.random.multinomial(ek.random.key(3), abs(x), 4),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_OF_SORTS)
def test_what_is_made_of_sorts_needs_no_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eshkol.backends.blocks.DESCRIPTION", replace(DESCRIPTION, host_helps=False))
    x = np.random.default_rng(4).normal(size=(2, 5)).astype(np.float32)
    found = []
    for device in ("cpu", "blocks"):
        with ek.device(device):
            found.append(np.asarray(MADE_OF_SORTS[name](ek.tensor(x)).numpy()))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
