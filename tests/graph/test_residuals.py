"""What a linearized function keeps: no residual that a few additions and products make of others."""

from __future__ import annotations

import numpy as np

import eshkol as ek
from eshkol.graph.function import FEW, linearized, trace
from eshkol.ops import dtypes
from eshkol.ops.elementwise import exp, sigmoid, tanh
from eshkol.ops.row import Aval

X = np.random.default_rng(2).normal(size=(3, 4))


def kept(code):
    function, _ = trace(code, [Aval((3, 4), dtypes.float64)], "kept")
    first, second, live = linearized(function, [True])
    residuals = first.results[len(function.results) :]
    assert len(second.params) == 1 + len(residuals)
    assert live == [True]
    return [node.op.name for node in residuals]


def test_what_is_soon_computed_is_not_kept():
    assert sorted(kept(lambda x: [sigmoid(x) * tanh(x)])) == ["sigmoid", "tanh"]
    assert sorted(kept(lambda x: [exp(x) * x])) == ["exp", "mark"]


def test_long_ways_are_not_gone_again():
    def summed(times):
        def code(x):
            s = y = sigmoid(x)
            for _ in range(times):
                y = y + s
            return [y * tanh(x) * s]

        return code

    assert "add" not in kept(summed(FEW - 2))
    assert "add" in kept(summed(FEW + 1))


def test_gradients_of_scans_are_those_of_loops():
    def cell(h, x):
        gate = ek.sigmoid(x + h)
        return gate * ek.tanh(h) + (1 - gate) * x, gate

    def scanned(h, xs):
        last, gates = ek.scan(cell, h, xs)
        return (last * last).sum() + gates.sum()

    def looped(h, xs):
        total = 0.0
        for k in range(5):
            h, gate = cell(h, xs[k])
            total = total + gate.sum()
        return (h * h).sum() + total

    h, xs = ek.tensor(X), ek.tensor(np.random.default_rng(3).normal(size=(5, 3, 4)))
    for found, wanted in zip(ek.grad(scanned, (0, 1))(h, xs), ek.grad(looped, (0, 1))(h, xs), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-14)
