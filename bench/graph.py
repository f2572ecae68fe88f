"""How fast graphs are built, differentiated and batched, in nodes; and what a small eager step costs."""

from __future__ import annotations

from typing import Any

import numpy as np

import eshkol as ek
from bench.harness import Result, race
from eshkol.graph import derive
from eshkol.graph.node import Node, Scope, buffer, constant, mark, topological
from eshkol.ops import dtypes
from eshkol.ops.elementwise import add, sin
from eshkol.ops.reductions import sum_

TITLE = "Building graphs"
LENGTH = 10_000  # nodes of a graph


def leaf() -> Node:
    return buffer(np.ones((3, 4), np.float32), dtypes.float32)


def chain(x: Node, y: Node) -> Node:
    """Additions alone: the least a node can cost."""
    for _ in range(LENGTH):
        x = add(x, y)
    return x


def mixed(x: Node, y: Node) -> Node:
    """What programs are made of: products, sums, functions, constants."""
    for _ in range(LENGTH // 5):
        x = sin(x * y + 0.5) * 2.0 + y
    return x


def tensors(x: ek.Tensor, y: ek.Tensor) -> ek.Tensor:
    for _ in range(LENGTH):
        x = x + y
    return x


def gradient(x: Node, y: Node) -> Node:
    scope = Scope("grad", "bench")
    marked = mark(x, scope)
    out = sum_(mixed(marked, y))
    (found,) = derive.vjp([out], [marked], scope)([constant(1.0, dtypes.float32)])
    assert found is not None
    return found


def mlp_step() -> Any:
    """A step of a network of 64-32-10 at batch 128, by plain gradient descent."""
    rng = np.random.default_rng(0)
    shapes = ((64, 32), (32,), (32, 10), (10,))
    weights = [ek.tensor(rng.normal(scale=0.1, size=s).astype(np.float32)) for s in shapes]
    x = ek.tensor(rng.normal(size=(128, 64)).astype(np.float32))
    y = ek.tensor(rng.integers(0, 10, 128))

    def loss(w: Any) -> Any:
        return ek.cross_entropy(ek.relu(x @ w[0] + w[1]) @ w[2] + w[3], y)

    def step(w: Any) -> Any:
        value, gradient = ek.value_and_grad(loss)(w)
        return value, ek.tree_map(lambda p, g: p - 0.1 * g, w, gradient)

    def once(function: Any) -> Any:
        value, new = function(weights)
        return [t.realize() for t in (value, *new)]

    compiled = ek.jit(step)
    return {"jit": lambda: once(compiled), "eager": lambda: once(step)}


def run() -> list[Result]:
    x, y = leaf(), leaf()
    built = len(topological([gradient(x, y)]))
    t, u = ek.Tensor(leaf()), ek.Tensor(leaf())
    # Every round starts from a leaf of its own: nodes that are there already are found, not made.
    return [
        race("nodes, add chain", {"graph": lambda: chain(leaf(), y)}, work=LENGTH, unit="nodes"),
        race("nodes, mixed ops", {"graph": lambda: mixed(leaf(), y)}, work=LENGTH, unit="nodes"),
        race("tensors, add chain", {"tensors": lambda: tensors(ek.Tensor(leaf()), u)}, work=LENGTH, unit="nodes"),
        race("value and gradient of mixed ops", {"graph": lambda: gradient(leaf(), y)}, work=built, unit="nodes"),
        race("one small operation, computed", {"tensors": lambda: (t + u).realize()}, work=1, unit="ops"),
        race("training step of a small network", mlp_step(), work=1, unit="steps"),
    ]
