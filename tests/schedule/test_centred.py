"""Sums over elements less their mean: gradients of normalizations are the same, of fewer sums."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import BLOCKS, CORES
from eshkol.graph import interpret
from eshkol.graph.node import Node, topological
from eshkol.ops import TABLE
from eshkol.schedule.rewrite.centred import centred_sums
from eshkol.schedule.rewrite.simplify import simplify

RNG = np.random.default_rng(3)


def large_sums(nodes: list[Node]) -> int:
    """How many sums there are of as many elements as the first result has."""
    return sum(
        n.op is TABLE["sum"] and n.data is None and n.inputs[0].size == nodes[0].size for n in topological(nodes)
    )


@pytest.mark.parametrize(("norm", "before", "after"), [
    # mean and variance; for x twice, and for the scale and the shift once each; and the same without what vanishes
    (lambda x, w, b: ek.batch_norm(x, weight=w, bias=b, training=True), 6, 4),
    (lambda x, w, b: ek.relu(ek.batch_norm(x, training=True)) * ek.reshape(w * b, (4, 1, 1)), 5, 5),
    (lambda x, w, b: x * ek.reshape(w, (4, 1, 1)) + ek.reshape(b, (4, 1, 1)), 2, 2),
])  # fmt: skip
def test_gradients(norm, before, after):
    x, ct = (ek.tensor(RNG.standard_normal((3, 4, 5, 6)).astype(np.float32)) for _ in range(2))
    w, b = (ek.tensor(RNG.standard_normal(4).astype(np.float32)) for _ in range(2))
    found, pulled = ek.vjp(norm, x, w, b)
    nodes = simplify([t._node for t in (found, *pulled(ct))])
    fewer = centred_sums(nodes, BLOCKS)
    for one, other in zip(interpret.evaluate(fewer), interpret.evaluate(nodes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    assert (large_sums(nodes), large_sums(fewer)) == (before, after)
    assert centred_sums(nodes, CORES) == nodes


def test_what_is_less_another_mean_stays():
    """Of other axes, or of something else."""
    x, y = (ek.tensor(RNG.standard_normal((3, 4, 5)).astype(np.float32)) for _ in range(2))
    scale = ek.tensor(RNG.standard_normal((4, 1)).astype(np.float32))
    for away in (
        x - y.mean((0, 2), keepdims=True),
        x - x.mean((0, 1), keepdims=True),
        x - x.sum((0, 2), keepdims=True),
    ):
        nodes = simplify([(away * scale + y).sum((0, 2))._node])
        assert centred_sums(nodes, BLOCKS) == nodes


def test_keepdims_and_what_has_no_scale():
    x, y = (ek.tensor(RNG.standard_normal((3, 4, 5)).astype(np.float32)) for _ in range(2))
    scale = ek.tensor(RNG.standard_normal((4, 1)).astype(np.float32))
    away = x - x.mean((0, 2), keepdims=True)
    for keepdims in (False, True):
        given = [(away * scale + y).sum((0, 2), keepdims=keepdims), (y * scale + away).sum((0, 2), keepdims=keepdims)]
        nodes = simplify([t._node for t in given])
        fewer = centred_sums(nodes, BLOCKS)
        assert all(one is not other for one, other in zip(fewer, nodes, strict=True))
        for one, other in zip(interpret.evaluate(fewer), interpret.evaluate(nodes), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
