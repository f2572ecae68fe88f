"""Scans and reductions: columns side by side, those that are left over, and among how many cores they are divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.backends.cpu import sequence
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.steps import Launch, walk


@pytest.mark.parametrize("shape", [(3, 64), (5, 256), (4, 257), (3, 997), (2, 6, 300), (1, 2, 70, 4)])
def test_columns_that_lanes_do_not_divide(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    summed = ek.jit(lambda x: ek.cumsum(x, -2))
    assert (summed(ek.tensor(x)).numpy() == np.cumsum(x, -2)).all()
    weights = np.random.default_rng(1).integers(-4, 5, shape).astype(np.float32)
    gradient = ek.grad(lambda x: (ek.cumsum(x, -2) * ek.tensor(weights)).sum())(ek.tensor(x)).numpy()
    assert (gradient == np.flip(np.cumsum(np.flip(weights, -2), -2), -2)).all()


def test_columns_of_any_number() -> None:
    """One trace for all lengths, where lanes divide some of them and not others."""
    summed = ek.jit(lambda x: ek.cumsum(x, 0), dynamic={"x": 1})
    for n in (300, 301, 512, 997, 64):
        x = np.random.default_rng(n).integers(-4, 5, (4, n)).astype(np.float32)
        assert (summed(ek.tensor(x)).numpy() == np.cumsum(x, 0)).all()


@pytest.mark.parametrize(("axis", "least"), [(0, 4), (1, 200)])
def test_long_rows_and_columns_are_divided_among_cores(axis: int, least: int) -> None:
    x = ek.zeros((1000, 1000)).realize()
    plan = compiled([ek.cumsum(x, axis)._node], [x._node], CORES)
    (launch,) = [step.kernel.launch for step in walk(plan.steps) if isinstance(step, Launch)]
    assert launch is not None
    assert launch.blocks >= least


@pytest.mark.unchecked
@pytest.mark.parametrize("reduce", [lambda x: x.max(), lambda x: (x > 0.5).sum(), lambda x: x.sum()])
def test_reductions_that_are_told_how_long_they_are_are_divided_among_cores(reduce: Any, monkeypatch: Any) -> None:
    """How often loops run is not in such a program, but in what it is given."""
    grains = []
    chosen = sequence.grain_of
    monkeypatch.setattr(sequence, "grain_of", lambda *given: grains.append(given) or chosen(*given))
    x = np.arange(1 << 20, dtype=np.float32)
    assert float(ek.jit(reduce)(ek.tensor(x))) == pytest.approx(float(reduce(x)), rel=1e-3)
    parts, few = max(grains)
    assert parts >= 8
    assert few <= parts // 4
