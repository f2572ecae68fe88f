"""The interpreter under the description of a card as it is: what it is told, and what only its sizes show."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import BLOCKS
from eshkol.backends import open_backend
from eshkol.backends.card import description
from eshkol.backends.cuda.devices import BLOCK, Device
from eshkol.errors import BackendUnavailable, EshkolError
from eshkol.graph.node import buffer
from eshkol.ops import dtypes
from eshkol.ops.reductions import sum_
from eshkol.schedule.cache import nothing_kept
from eshkol.schedule.kernels.space import Point
from eshkol.schedule.plan.steps import planned
from eshkol.schedule.run import stepwise


@pytest.mark.parametrize(("name", "groups"), [("card", False), ("card:1", True)])
def test_it_is_described_as_a_card(name, groups):
    found = open_backend(name).description
    assert (found.name, found.blocks, found.block, found.subgroup) == (name, True, BLOCK, BLOCKS.subgroup)
    assert (found.long, found.wide, found.product_tiles) == (BLOCKS.long, BLOCKS.wide, BLOCKS.product_tiles)
    assert found.matrices is not None
    assert found.matrices.whole is groups
    assert not found.host_helps
    other = Device(0, name, (9, 0), 1 << 34, 132, 227 << 10, 50 << 20, cooperative=True, warpgroups=True).description()
    assert (description(1).busy, description(1).shared_memory) == (other.busy, other.shared_memory)


def test_there_are_two():
    assert open_backend("card:0").name == "card"
    with pytest.raises(BackendUnavailable, match="there is no card:2"):
        open_backend("card:2")


@pytest.mark.parametrize("device", ["card", "card:1"])
def test_values(device):
    x, w = np.random.default_rng(0).normal(size=(2, 64, 64)).astype(np.float32)
    with ek.device(device):
        y = ek.softmax(ek.relu(ek.tensor(x) @ ek.tensor(w)) + 1, -1).numpy()
        half = (ek.tensor(x).astype(ek.bfloat16) @ ek.tensor(w).astype(ek.bfloat16)).astype(ek.float32).numpy()
    wanted = np.exp(np.maximum(x @ w, 0))
    np.testing.assert_allclose(y, wanted / wanted.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(half, x @ w, rtol=0.1, atol=0.5)


@pytest.mark.parametrize(("device", "seen"), [("blocks", False), ("card", True), ("card:1", True)])
def test_a_vector_past_the_end_of_a_repeated_row_shows(device, seen, monkeypatch):
    """A mistake that was made once, and that machines of small sizes do not make at this shape."""
    x, row = np.arange(100, dtype=np.float32).reshape(20, 5), np.arange(5, dtype=np.float32)
    leaves = [buffer(x, dtypes.float32), buffer(row, dtypes.float32)]
    machine = open_backend(device)

    def total():
        with nothing_kept():
            plan = planned([sum_(leaves[0] + leaves[1])], leaves, machine.description)
            return stepwise.run(plan, [x, row], machine)[0]

    assert total() == (x + row).sum()
    monkeypatch.setattr(Point, "_goes_on", lambda *_: True)
    if seen:
        with pytest.raises(EshkolError, match="address out of range"):
            total()
    else:
        assert total() == (x + row).sum()


@pytest.mark.parametrize("device", ["card", "card:1"])
def test_linear_algebra_of_complex_numbers_is_refused_by_name(device):
    """Where groups of warps multiply matrices, a product of complex numbers beside it was asked for its type."""
    with ek.device(device), pytest.raises(BackendUnavailable, match=rf"svd_with_pivots.* has no kernel for {device}"):
        ek.cofactor(ek.tensor(np.eye(3, dtype=np.complex64) * 1j)).numpy()
