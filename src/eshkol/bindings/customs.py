"""Scheme's custom-derivative and checkpoint where tensors are among the arguments.

Both are functions of tensors like others to whoever calls them, so that they work inside of all derivatives: those of
the graph find the user's rule, or the function that is run again; those of Scheme's differentiated numbers go through
`derivatives.tangents_of` and `cotangents_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.bindings.derivatives import is_number, node_of, result_leaves
from eshkol.bindings.results import outward
from eshkol.errors import ShapeError, TensorError
from eshkol.graph import custom
from eshkol.graph.function import trace
from eshkol.graph.node import Node
from eshkol.ops import TABLE
from eshkol.ops.row import Aval
from eshkol.tensors import pytree
from eshkol.tensors.scalars import NUMBERS, Scalar, is_known
from eshkol.tensors.transforms import nodes_of
from eshkol.tensors.value import Tensor, wrapped

Code = Callable[..., Any]


class _Arguments:
    """The arguments of a call: the leaves that may vary, as nodes, and the way back."""

    def __init__(self, args: Sequence[Any]) -> None:
        self.leaves, self.tree = pytree.flatten(list(args))
        self.places = [k for k, leaf in enumerate(self.leaves) if _may_vary(leaf)]
        self.nodes = [node_of(self.leaves[k]) for k in self.places]

    @property
    def known(self) -> bool:
        """Whether nothing at work depends on them."""
        return all(is_known(node) for node in self.nodes)

    def with_nodes(self, nodes: Sequence[Node]) -> Any:
        """The arguments with other values of what varies."""
        leaves = list(self.leaves)
        for k, node in zip(self.places, nodes, strict=True):
            leaves[k] = Scalar(node) if is_number(leaves[k]) else Tensor(node)
        return self.tree.build(leaves)


def _may_vary(leaf: Any) -> bool:
    if isinstance(leaf, Tensor):
        return leaf.dtype.differentiable
    return isinstance(leaf, NUMBERS) and not isinstance(leaf, bool)


# --- rules of one's own ---------------------------------------------------------------------------


class CustomFunction:
    """A function of one value whose derivative is given: by a tensor, in its shape; of a tensor, element by element."""

    def __init__(self, function: Code, derivative: Code) -> None:
        self.function, self.derivative = function, derivative
        self.__name__ = getattr(function, "__name__", "procedure")

    def __call__(self, *args: Any) -> Any:
        value = self.function(*args)
        arguments = _Arguments(args)
        if arguments.known:
            return value
        leaves = result_leaves(value)
        if len(leaves) != 1 or leaves[0] is not value:
            raise TensorError(
                "a function with a derivative of its own gives one number or one tensor",
                hint="take custom-derivative of the parts of what it gives",
            )
        (node,) = custom.custom([node_of(value)], arguments.nodes, _CustomRule(self, arguments, node_of(value)))
        return Scalar(node) if is_number(value) else Tensor(node)


class _CustomRule:
    """The tangent of the value from what the user's procedure gives."""

    def __init__(self, function: CustomFunction, arguments: _Arguments, value: Node) -> None:
        self.function, self.arguments = function, arguments
        self.aval = Aval(value.shape, value.dtype)

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Node | None]) -> list[Node | None]:
        given = self.function.derivative(*self.arguments.with_nodes(inputs))
        partials = [node_of(leaf) for leaf in result_leaves(given)]
        if len(partials) != len(inputs):
            raise TensorError(
                f"the derivative of {self.function.__name__} gave {len(partials)} partial derivatives, and there are "
                f"{len(inputs)} numbers and tensors in the arguments"
            )
        total: Any = None
        for partial, tangent in zip(partials, tangents, strict=True):
            if tangent is not None:
                term = self._product(partial, tangent)
                total = term if total is None else total + term
        return [None if total is None else TABLE["cast"](total, self.aval.dtype)]

    def _product(self, partial: Node, tangent: Node) -> Any:
        if not self.aval.shape and partial.shape == tangent.shape:
            product = partial * tangent
            return TABLE["sum"](product) if product.shape else product
        if partial.shape == self.aval.shape and tangent.shape in ((), self.aval.shape):
            return partial * tangent
        raise ShapeError(
            f"a partial derivative of shape {list(partial.shape)}, by an argument of shape {list(tangent.shape)}, of a "
            f"value of shape {list(self.aval.shape)}",
            hint="of a number, give it in the shape of the argument; of a tensor, element by element, in its shape",
        )


def custom_function(function: Code, derivative: Code) -> CustomFunction:
    return CustomFunction(function, derivative)


# --- memory traded for time -----------------------------------------------------------------------


class Checkpointed:
    """A function that is computed again for its derivative."""

    def __init__(self, function: Code) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "procedure")

    def __call__(self, *args: Any) -> Any:
        arguments = _Arguments(args)
        if arguments.known:
            return self.function(*args)
        trees: list[pytree.Tree] = []

        def run(*nodes: Node) -> list[Node]:
            result = outward(self.function(*arguments.with_nodes(nodes)))
            found, tree = nodes_of(result, f"the result of {self.__name__}")
            trees.append(tree)
            return found

        avals = [Aval(x.shape, x.dtype) for x in arguments.nodes]
        traced, captures = trace(run, avals, f"checkpoint of {self.__name__}")
        return trees[0].build(wrapped(list(custom.checkpoint(traced, [*arguments.nodes, *captures]))))


def checkpointed(function: Code) -> Checkpointed:
    return Checkpointed(function)
