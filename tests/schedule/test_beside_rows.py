"""Sums over a row that a vector does not fit: neighbours of a broadcast operand lie side by side in one row only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import BLOCKS
from eshkol.backends import blocks


@pytest.mark.parametrize(("shape", "row"), [((20, 5), (5,)), ((8, 6), (6,)), ((20, 8), (8,)), ((20, 5), (20, 1))])
def test_sums_with_a_row_that_is_broadcast(monkeypatch, shape, row):
    monkeypatch.setattr(blocks, "DESCRIPTION", replace(BLOCKS, name="blocks with vectors"))
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in (shape, row))
    with ek.device("blocks"):
        found = (ek.tensor(x) + ek.tensor(y)).sum().item()
    np.testing.assert_allclose(found, (x + y).sum(), rtol=1e-5)
