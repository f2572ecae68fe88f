"""Tensors that are joined: along every axis, of few parts and many, empty ones too, alone and with what is around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.graph.node import Node
from eshkol.schedule.kernels.elements import MOST_PARTS, MOST_STRETCHES
from eshkol.schedule.rewrite.joins import join_rows

EXTENTS = (1, 2, 3, 5, 9, 17, 40)
WAYS: dict[str, tuple[Any, Any]] = {
    "alone": (lambda xs, axis: ek.concatenate(xs, axis), lambda xs, axis: np.concatenate(xs, axis)),
    "of computed, and computed with": (
        lambda xs, axis: ek.exp(ek.concatenate([x * 2 + 1 for x in xs], axis)),
        lambda xs, axis: np.exp(np.concatenate([x * 2 + 1 for x in xs], axis)),
    ),
    "of moved, and summed": (
        lambda xs, axis: ek.sum(ek.concatenate([ek.flip(x, (0,)) for x in xs], axis), 0),
        lambda xs, axis: np.concatenate([np.flip(x, 0) for x in xs], axis).sum(0),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(12))
def test_joined_as_numpy_joins(way: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 5))
    axis, shape = int(rng.integers(axes)), [int(rng.choice(EXTENTS)) for _ in range(axes)]
    if seed == 0:
        axis, shape = 0, [1, 20_000]  # few rows, which are cut in pieces
    parts = []
    for _ in range(int(rng.choice((2, 3, MOST_STRETCHES + 1, MOST_PARTS + 1, 20)))):
        parts.append(rng.standard_normal([int(rng.integers(7)) if k == axis else n for k, n in enumerate(shape)]))
    ours, theirs = WAYS[way]
    given = [ek.tensor(x.astype(np.float32)) for x in parts]
    found = ek.jit(lambda *xs: ours(list(xs), axis))(*given).numpy()
    wanted = theirs([x.astype(np.float32) for x in parts], axis)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)


def _depth(node: Node) -> int:
    return max((_depth(x) + (node.op.name == "concatenate") for x in node.inputs), default=0)


@pytest.mark.parametrize(("parts", "axis", "depth"), [(8, 1, 1), (9, 1, 2), (16, 0, 1), (17, 0, 2), (300, 0, 3)])
def test_many_are_joined_in_groups(parts: int, axis: int, depth: int) -> None:
    with ek.no_grad():
        joined = ek.concatenate([ek.zeros((16, 16)) + k for k in range(parts)], axis)
    (found,) = join_rows([joined._node], CORES)
    assert _depth(found) == depth
    assert found.shape == joined.shape
