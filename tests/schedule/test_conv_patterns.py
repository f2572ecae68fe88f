"""Convolutions with what follows them: the same values as without, from one node; and what is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import TABLE, dtypes
from eshkol.schedule.rewrite.convolutions import fold_convolutions
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend


def node(*shape: int, low: float = -1.0, seed: int = 0) -> Node:
    values = np.random.default_rng((seed, *shape)).uniform(low, 1.5, shape).astype(np.float32)
    return buffer(values, dtypes.float32)


def names(results: list[Node]) -> list[str]:
    return [n.op.name for n in topological(results)]


def normalized(y: Node) -> Node:
    channels = y.shape[1]
    statistics = [node(channels, low=0.5, seed=k) for k in range(4)]
    result = TABLE["batch_norm"](y, *statistics)
    assert isinstance(result, Node)
    return result


X, W = node(2, 4, 7, 6), node(6, 4, 3, 3)
Y = {"padding": 1, "stride": 2}
CASES = {
    "bias": lambda: TABLE["conv2d"](X, W, node(6), **Y),
    "bias and relu": lambda: TABLE["relu"](TABLE["conv2d"](X, W, node(6), **Y)),
    "relu": lambda: TABLE["relu"](TABLE["conv2d"](X, W)),
    "normalized": lambda: TABLE["relu"](normalized(TABLE["conv2d"](X, W, node(6)))),
    "numbers": lambda: 2.0 - TABLE["conv2d"](X, W) / 3.0 * 0.5,
    "groups": lambda: TABLE["relu"](TABLE["conv2d"](X, node(6, 2, 3, 3), groups=2) * node(6, 1, 1)),
    "depthwise": lambda: TABLE["relu"](TABLE["depthwise_conv2d"](X, node(8, 1, 3, 3), node(8), padding=1)),
    "one axis": lambda: TABLE["relu"](TABLE["conv1d"](node(2, 4, 9), node(5, 4, 3), node(5))),
    "two layers": lambda: TABLE["relu"](TABLE["conv2d"](
        TABLE["relu"](TABLE["conv2d"](X, W, node(6), padding=1)), node(3, 6, 1, 1), node(3))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_chain_is_one_node_of_the_same_value(name: str) -> None:
    results = [CASES[name]()]
    folded = fold_convolutions(results)
    found = names(folded)
    assert not {"conv", "relu"} & set(found)
    assert found.count("fused_convolution") == (2 if name == "two layers" else 1)
    (wanted,), (same,) = interpret.evaluate(results), interpret.evaluate(folded)
    np.testing.assert_allclose(same, wanted, rtol=1e-5, atol=1e-5)
    (got,) = realize(folded, open_backend("cpu"))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def used_twice() -> list[Node]:
    y = TABLE["conv2d"](X, W)
    return [TABLE["relu"](y), y + 1.0]


def asked_for() -> list[Node]:
    y = TABLE["conv2d"](X, W) + node(6, 1, 1)
    return [y, TABLE["relu"](y)]


@pytest.mark.parametrize(
    ("results", "fused"),
    [
        (used_twice(), 0),
        (asked_for(), 1),  # the sum itself, but not relu
        ([TABLE["conv2d"](X, W) + node(5, 4)], 0),  # more than a number per channel
        ([1.0 / TABLE["conv2d"](X, W)], 0),
        ([TABLE["conv2d"](X, W) * TABLE["conv2d"](X, W)], 0),
        ([TABLE["conv2d"](X, W)], 0),
    ],
)
def test_what_is_needed_elsewhere_or_is_no_chain_stays(results: list[Node], fused: int) -> None:
    folded = fold_convolutions(results)
    assert names(folded).count("fused_convolution") == fused
    for got, wanted in zip(interpret.evaluate(folded), interpret.evaluate(results), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
