"""Random graphs of elementwise and shape ops, computed on the backends and by the NumPy references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer
from eshkol.ops import dtypes
from eshkol.ops import elementwise as ew
from eshkol.ops.movement import expand, permute, reshape
from eshkol.ops.reductions import sum_
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend

SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (4, 1, 3), (0, 3)]
FLOATS = [dtypes.float32, dtypes.float64]
INTEGERS = [dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.int64]
UNARY = [ew.neg, ew.absolute, ew.sign, lambda x: x * x, lambda x: x + 3, lambda x: 2 - x]
BINARY = [ew.add, ew.sub, ew.mul, ew.maximum, ew.minimum]
MOVES = [
    lambda x: permute(x, tuple(reversed(range(x.ndim)))), lambda x: reshape(x, (-1,)) if x.size else x,
    lambda x: expand(x, (2, *x.shape)), lambda x: sum_(x, axis=-1, keepdims=True) if x.ndim else x, lambda x: sum_(x),
]  # fmt: skip


@st.composite
def graphs(draw, kinds) -> tuple[list[Node], int]:
    """Leaves and ops over them, in one dtype; the results are all nodes that were made."""
    dtype, rng = draw(st.sampled_from(kinds)), np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes = [
        buffer(rng.integers(-3 if dtype.signed else 0, 4, draw(st.sampled_from(SHAPES))).astype(dtype.numpy), dtype)
        for _ in range(draw(st.integers(1, 3)))
    ]
    for _ in range(draw(st.integers(1, 8))):
        kind, x, y = draw(st.integers(0, 3)), draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        if kind == 0:
            made = draw(st.sampled_from(UNARY))(x)
        elif kind == 1:
            made = draw(st.sampled_from(MOVES))(x)
        else:
            try:
                x, y = (ew.cast(v, dtype) for v in (x, y))
                made = draw(st.sampled_from(BINARY))(x, y) if kind == 2 else ew.where(ew.less(x, y), x, y - 1)
            except ValueError:  # they do not broadcast
                continue
        if made.size < 500:
            nodes.append(made)
    return nodes


def agree(nodes, machine) -> None:
    wanted = interpret.evaluate(nodes)
    for got, want, node in zip(realize(nodes, machine), wanted, nodes, strict=True):
        if node.dtype.is_float:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, want)


@given(graphs(FLOATS + INTEGERS))
@settings(max_examples=60)
def test_on_the_reference_backend(nodes):
    agree(nodes, open_backend("reference"))


@pytest.mark.slow
@given(graphs(FLOATS + INTEGERS))
@settings(max_examples=300)
def test_on_the_cpu(nodes):
    agree(nodes, open_backend("cpu"))


@given(graphs([dtypes.float32]))
@settings(max_examples=15, derandomize=True)
def test_some_on_the_cpu(nodes):
    agree(nodes[-1:], open_backend("cpu"))
