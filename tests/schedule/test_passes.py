"""Passes over graphs keep values: what they make of planned functions, interpreted, is what the functions are.

Rows that passes make have references of their own, which validation relies on; so these are compared here, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plan_sizes import MACHINES, graphs
from planned_functions import FUNCTIONS

from eshkol.schedule.cache import nothing_kept
from eshkol.schedule.check.agreement import Interpretation, difference
from eshkol.schedule.pipeline import PASSES

pytestmark = pytest.mark.unchecked  # it compares by itself
NAMES = (
    "signals", "spectra on blocks", "symmetric matrices", "inverses", "systems", "complex matrices", "complex parts",
    "complex ways", "values and vectors", "few of many", "of orders", "halves in order", "running extremes",
    "nearly attention", "scaled keys", "seen batches", "chains", "behind one image", "fragments of attention",
    "masked halves", "wide heads", "seen parts", "taken alone", "tallied", "columns beside", "pooled over",
    "beside each other", "to the power", "affine twice", "filter", "cells", "known loops", "behind loops", "pivots",
    "set in rows", "picked in rows", "many updates", "complex arithmetic", "diagonals alone", "scaled distances",
    "places in planes", "taken at computed",
)  # fmt: skip


def values(node: Any, rng: np.random.Generator) -> Any:
    """Of whole numbers such as are places and pivots, too."""
    kind = node.dtype.numpy.kind
    if kind == "b":
        return rng.random(node.shape) < 0.5
    if kind in "iu":
        return rng.integers(1, 3, node.shape).astype(node.dtype.numpy)
    drawn = rng.uniform(0.5, 1.5, node.shape) * rng.choice([-1, 1], node.shape)
    return (drawn + 1j * rng.uniform(-1, 1, node.shape) if kind == "c" else drawn).astype(node.dtype.numpy)


@pytest.mark.parametrize("name", NAMES)
def test_passes_keep_values(name: str) -> None:
    rng = np.random.default_rng(0)
    for which, (results, params) in graphs(name):
        given = {p: values(p, rng) for p in params}
        expected = Interpretation()(results, given)
        for machine in FUNCTIONS[name].machines:
            after = results
            with nothing_kept():
                for _, graph_pass in PASSES:
                    after = graph_pass(after, MACHINES[machine])
            wrong = difference(results, given, expected, Interpretation()(after, given))
            assert wrong is None, f"{name}{which} on {machine}: {wrong}"
