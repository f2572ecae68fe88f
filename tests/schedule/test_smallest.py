"""The smallest graph that still differs: what is left of a graph, over which values, for mistakes of several kinds.

The two ways to compute a graph are played by a rule that says which graphs differ: those that have some ops. So what
must be left is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from eshkol.errors import TensorError
from eshkol.graph.function import trace
from eshkol.graph.node import Node, topological
from eshkol.ops import dtypes
from eshkol.ops import elementwise as ew
from eshkol.ops.reductions import sum_
from eshkol.ops.row import Aval
from eshkol.schedule.check.agreement import Difference
from eshkol.schedule.check.smallest import Case, Differs, _cuts, over, smallest

pytestmark = pytest.mark.unchecked  # it looks for differences itself

NUMBERS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
FOUND = Difference(0, (), 1.0, 2.0)


def names(results: Sequence[Node]) -> list[str]:
    return [node.op.name for node in topological(results) if node.inputs]


def having(*wanted: str) -> Differs:
    """A way that is wrong about every graph with all of these ops."""

    def differs(results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Any]) -> Difference | None:
        assert all(p.shape == a.shape for p, a in zip(params, arrays, strict=True))
        leaves = [x for x in topological(results) if not x.inputs and x.op.name == "placeholder"]
        assert set(leaves) <= set(params), "what stands in a graph is given, or computed in it"
        return FOUND if set(wanted) <= set(names(results)) else None

    return differs


def case(code: Callable[..., Sequence[Node]], wrong: int = 0, count: int = 2) -> Case:
    function, _ = trace(code, [Aval(NUMBERS.shape, dtypes.float64)] * count, "a graph")
    arrays = [NUMBERS + k for k in range(count)]
    return Case(list(function.results), list(function.params), arrays, Difference(wrong, (), 1.0, 2.0))


def test_one_node_over_what_comes_before_it_as_values() -> None:
    found = smallest(case(lambda x, y: [ew.exp(ew.sin(x * y) + y) * 2]), having("sin"))
    assert names(found.results) == ["sin"]
    np.testing.assert_array_equal(found.arrays, [NUMBERS * (NUMBERS + 1)])
    assert found.params == list(found.results[0].inputs)


def test_the_last_node_over_what_comes_before_it() -> None:
    found = smallest(case(lambda x, y: [ew.exp(ew.sin(x) + y)]), having("exp"))
    assert names(found.results) == ["exp"]
    np.testing.assert_allclose(found.arrays, [np.sin(NUMBERS) + NUMBERS + 1])


def test_two_nodes_that_are_wrong_together() -> None:
    found = smallest(case(lambda x, y: [sum_(ew.exp(ew.cos(ew.sin(x * y))), 0)]), having("sin", "exp"))
    assert names(found.results) == ["sin", "cos", "exp"]
    np.testing.assert_array_equal(found.arrays, [NUMBERS * (NUMBERS + 1)])


def test_what_is_beside_the_way_is_given_as_a_value() -> None:
    def code(x: Node, y: Node) -> list[Node]:
        return [ew.exp(ew.sin(x) * ew.tanh(ew.cos(y)))]

    found = smallest(case(code), having("sin", "exp"))
    assert names(found.results) == ["sin", "mul", "exp"]
    given = dict(zip(found.params, found.arrays, strict=True))
    product = found.results[0].inputs[0]
    np.testing.assert_array_equal(given[product.inputs[0].inputs[0]], NUMBERS)
    np.testing.assert_allclose(given[product.inputs[1]], np.tanh(np.cos(NUMBERS + 1)))


@pytest.mark.parametrize("told", [0, 1, 2])
def test_the_one_of_several_results_that_is_wrong(told: int) -> None:
    """Also where another one was told."""

    def code(x: Node, y: Node, z: Node) -> list[Node]:
        return [ew.cos(x) + y, ew.tanh(z) * ew.sin(y), x + z]

    found = smallest(case(code, told, 3), having("tanh"))
    assert names(found.results) == ["tanh"]
    np.testing.assert_array_equal(found.arrays, [NUMBERS + 2])


def test_results_that_are_wrong_only_together_stay() -> None:
    whole = case(lambda x, y: [ew.sin(x), ew.cos(y)])

    def together(results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Any]) -> Difference | None:
        return FOUND if {"sin", "cos"} <= set(names(results)) and len(results) == 2 else None

    assert names(smallest(whole, together).results) == ["sin", "cos"]


def test_what_cannot_be_computed_does_not_differ() -> None:
    whole = case(lambda x, y: [ew.exp(ew.sin(x) + y)])

    def refusing(results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Any]) -> Difference | None:
        if names(results) != ["sin", "add", "exp"]:
            raise TensorError("not alone")
        return FOUND

    assert names(smallest(whole, refusing).results) == ["sin", "add", "exp"]


def test_a_graph_over_nodes_that_are_given() -> None:
    function, _ = trace(lambda x: [ew.exp(ew.sin(x))], [Aval((3,), dtypes.float32)], "a graph")
    (result,) = function.results
    (cut,), (given,) = over([result], [result.inputs[0]])
    assert names([cut]) == ["exp"]
    assert cut.inputs == (given,)
    assert (given.shape, given.dtype) == ((3,), dtypes.float32)


def test_a_parameter_that_is_reached_early_stays_at_the_edge() -> None:
    given = case(lambda x, y: [ew.add(x, ew.sin(ew.exp(y)))])
    x = given.params[0]
    known = {node: None for node in topological(given.results) if node.inputs}
    (outer,) = given.results
    sine = outer.inputs[1]
    assert list(_cuts(given, known)) == [[x, sine], [x, sine.inputs[0]]]
