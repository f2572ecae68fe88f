"""What Scheme's derivative operators ask of the graph of tensors.

There are two ways in. A *pass* (`open_pass`) is a derivative by tensors: Scheme gives the leaves of the point, calls
the procedure itself with the marked leaves that it gets, and asks the pass for gradients, Jacobians or products of what
came out. A *differentiated call* serves Scheme's own differentiated numbers when they come to a function of tensors:
`tangents_of` and `cotangents_of` are the derivatives of any Python function of tensors, as functions of tensors again,
so that Scheme differentiates them in turn where its levels are nested.

Numbers go in as Scalars (tensors/scalars.py) and come out as numbers again, unless something at work depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eshkol.errors import DerivativeError, DTypeError, ShapeError, TensorError
from eshkol.graph import derive
from eshkol.graph.node import Node, Scope, constant, make, mark
from eshkol.ops import TABLE, dtypes
from eshkol.ops.elementwise import conj
from eshkol.ops.structural import STOP
from eshkol.tensors import pytree
from eshkol.tensors.changes import changed_while_tracing
from eshkol.tensors.computing import realize
from eshkol.tensors.scalars import NUMBERS, Scalar, as_number, is_known, number_node, scalar_node
from eshkol.tensors.transforms import forward_rows, reverse_rows
from eshkol.tensors.value import Tensor, as_node, operate

Leaf = Any  # a tensor or a number
Place = Sequence[int]  # where a leaf stands in the arguments of a call: an index, and those within


def node_of(leaf: Leaf) -> Node:
    """A leaf as a node that may vary; numbers are wide."""
    if isinstance(leaf, Scalar):
        return leaf._settled()
    if isinstance(leaf, Tensor):
        return as_node(leaf)
    if isinstance(leaf, NUMBERS):
        return number_node(leaf)
    raise TensorError(f"a {type(leaf).__name__} is no tensor and no number")


def varying(leaf: Leaf, scope: Scope) -> tuple[Node, Tensor]:
    """A leaf marked as an input of a scope: the node, and what stands for it in the program."""
    node = node_of(leaf)
    if not node.dtype.differentiable:
        raise DTypeError(
            f"cannot differentiate by a tensor of {node.dtype}{list(node.shape)}: only floats and complex numbers vary",
            hint="cast it to a float, or let the procedure take it from outside instead of as an argument",
        )
    marked = mark(node, scope)
    if isinstance(leaf, Scalar):
        return marked, Scalar(marked, leaf.given)
    return marked, Tensor(marked) if isinstance(leaf, Tensor) else Scalar(marked, leaf)


def is_number(leaf: Leaf) -> bool:
    return isinstance(leaf, Scalar) or not isinstance(leaf, Tensor)


def given_back(nodes: Sequence[Node], numbers: Sequence[bool]) -> list[Any]:
    """Nodes as what Scheme gets: tensors, and numbers where such are wanted. What must be known is computed at once."""
    made = [Scalar(n) if number and not n.shape else Tensor(n) for n, number in zip(nodes, numbers, strict=True)]
    if any(isinstance(x, Scalar) and x.known for x in made):
        realize(*(x for x in made if is_known(x._node)))
    return [as_number(x) if isinstance(x, Scalar) else x for x in made]


def _or_zeros(found: Sequence[Node | None], like: Sequence[Node]) -> list[Node]:
    return [derive.zeros(x) if f is None else f for f, x in zip(found, like, strict=True)]


def _seed(given: Any, like: Node, what: str) -> Node:
    """A tangent or cotangent for a node."""
    node = node_of(given)
    if node.shape != like.shape:
        raise ShapeError(f"{what} has shape {list(node.shape)}, but belongs to one of shape {list(like.shape)}")
    if node.dtype is like.dtype:
        return node
    cast: Node = TABLE["cast"](node, like.dtype)
    return cast


# --- derivatives by tensors -----------------------------------------------------------------------


class DerivativePass:
    """One run of a procedure on marked leaves, and what is known of it afterwards."""

    def __init__(self, name: str, leaves: Sequence[Leaf]) -> None:
        scope = Scope("grad", name)
        both = [varying(leaf, scope) for leaf in leaves]  # which may refuse a leaf
        self.scope = scope
        self.marks = [node for node, _ in both]
        self.inputs = [tensor for _, tensor in both]
        self.numbers = [is_number(leaf) for leaf in leaves]
        self.stack = Scope.at_work.stack  # a thread that finds this as garbage has another
        self.stack.append(self.scope)

    def close(self) -> None:
        """The procedure has returned, or was left."""
        if "stack" in self.__dict__ and self.scope.open:
            self.scope.open = False
            self.stack.remove(self.scope)

    __del__ = close  # where an error has gone past all who could have closed it

    def reopen(self) -> None:
        """The procedure was entered again, by a continuation."""
        if not self.scope.open:
            self.scope.open = True
            self.stack = Scope.at_work.stack
            self.stack.append(self.scope)


def open_pass(name: str, leaves: Sequence[Leaf]) -> list[Any]:
    """A pass, and the marked leaves."""
    made = DerivativePass(str(name), leaves)
    return [made, tuple(made.inputs)]


def close_pass(given: DerivativePass) -> None:
    given.close()


def reopen_pass(given: DerivativePass) -> None:
    given.reopen()


def _one_value(result: Leaf) -> Node:
    """What a function to be differentiated in reverse gave, as a node."""
    node = node_of(result)
    if node.shape:
        raise ShapeError(
            f"the function gave a tensor of shape {list(node.shape)}, but only a number has a gradient",
            hint="take its sum or mean (tensor-sum, tensor-mean), or all derivatives with jacobian",
        )
    if not node.dtype.is_float:
        raise DerivativeError(
            f"the function gave a tensor of {node.dtype}, but only a real number has a gradient",
            hint="cast it to a float; of a complex number take the magnitude",
        )
    return node


def gradient_of(given: DerivativePass, result: Leaf) -> list[Any]:
    """The value, and the gradients by the leaves."""
    try:
        node = _one_value(result)
        found = derive.vjp([node], given.marks, given.scope)([constant(1, node.dtype)])
    finally:
        given.close()
    grads = [conj(n) if n.dtype.is_complex else n for n in _or_zeros(found, given.marks)]
    value, *rest = given_back([node, *grads], [is_number(result), *given.numbers])
    return [value, tuple(rest)]


def _outputs(results: Sequence[Leaf]) -> list[Node]:
    nodes = [node_of(leaf) for leaf in results]
    for node in nodes:
        if not node.dtype.differentiable:
            raise DTypeError(
                f"the function gave a tensor of {node.dtype}{list(node.shape)}, which does not vary smoothly",
                hint="cast it to a float, or leave it out of the result",
            )
    return nodes


def jacobian_of(given: DerivativePass, results: Sequence[Leaf], mode: Any) -> tuple[tuple[Any, ...], ...]:
    """A row for each leaf of the result: its derivatives by each leaf of the point, of both shapes together."""
    try:
        outputs = _outputs(results)
        inputs_size, outputs_size = sum(x.size for x in given.marks), sum(x.size for x in outputs)
        forward = inputs_size <= outputs_size if not mode else mode == "forward"
        rows = (forward_rows if forward else reverse_rows)(outputs, given.marks, given.scope)
    finally:
        given.close()
    numbers = [is_number(leaf) for leaf in results]
    flat = given_back([n for row in rows for n in row], [a and b for a in numbers for b in given.numbers])
    width = len(given.marks)
    return tuple(tuple(flat[k * width : (k + 1) * width]) for k in range(len(rows)))


def jvp_of(given: DerivativePass, results: Sequence[Leaf], tangents: Sequence[Leaf]) -> list[tuple[Any, ...]]:
    """The values and the tangents of the result's leaves, where the point moves along these tangents."""
    try:
        outputs = _outputs(results)
        seeds = [_seed(t, x, "a direction") for t, x in zip(tangents, given.marks, strict=True)]
        found = derive.jvp(outputs, dict(zip(given.marks, seeds, strict=True)), given.scope)
    finally:
        given.close()
    numbers = [is_number(leaf) for leaf in results]
    both = given_back([*outputs, *_or_zeros(found, outputs)], numbers * 2)
    return [tuple(both[: len(outputs)]), tuple(both[len(outputs) :])]


def vjp_of(given: DerivativePass, results: Sequence[Leaf]) -> list[Any]:
    """A function from the weights of the result's leaves to the products by the point's; and the leaves' values."""
    try:
        outputs = _outputs(results)
        pull = derive.vjp(outputs, given.marks, given.scope)
    finally:
        given.close()

    def pullback(weights: Sequence[Leaf]) -> tuple[Any, ...]:
        seeds = [_seed(c, x, "a weight") for c, x in zip(weights, outputs, strict=True)]
        return tuple(given_back(_or_zeros(pull(seeds), given.marks), given.numbers))

    return [pullback, tuple(given_back(outputs, [is_number(leaf) for leaf in results]))]


# --- functions of tensors, for Scheme's own differentiated numbers --------------------------------


def _replaced(value: Any, place: Place, leaf: Any) -> Any:
    """A copy of nested lists with another leaf at a place."""
    if not place:
        return leaf
    copied = list(value)
    copied[place[0]] = _replaced(copied[place[0]], place[1:], leaf)
    return type(value)(copied)


def _at(value: Any, place: Place) -> Any:
    for k in place:
        value = value[k]
    return value


def called(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The function on arguments as Scheme writes them: keywords stand before what they name."""
    from eshkol.bindings.values import Keyword

    positional: list[Any] = []
    named: dict[str, Any] = {}
    feed = iter(arguments)
    for x in feed:
        if isinstance(x, Keyword):
            name = str(x).replace("-", "_")
            if name in named:
                raise TensorError(f":{x} is given twice")
            named[name] = next(feed)
        else:
            positional.append(x)
    return function(*positional, **named)


def result_leaves(value: Any) -> list[Leaf]:
    """The tensors and numbers in what a function gave, as Scheme counts them: in lists and vectors."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in result_leaves(part)]
    if isinstance(value, NUMBERS) and not isinstance(value, bool):
        return [value]
    if any(isinstance(leaf, Tensor) for leaf in pytree.leaves(value)):
        raise DerivativeError(
            f"the function gave a {type(value).__name__} with tensors in it, whose derivatives would be lost",
            hint="give them in a list or a tuple",
        )
    return []


def primal_call(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """What a function gives that Scheme differentiates: one that changes its arguments is refused."""
    with changed_while_tracing() as changed:
        result = called(function, arguments)
    if changed.undo([x for x in pytree.leaves(list(arguments)) if isinstance(x, Tensor)]):
        raise DerivativeError(
            "this changes a tensor in place, to a value that is being differentiated",
            hint="use the form that gives a new tensor, whose name has no !",
        )
    result_leaves(result)
    return result


def varying_leaves(leaves: Sequence[Leaf]) -> list[bool]:
    """Which leaves of a result can have derivatives."""
    return [x.dtype.differentiable if isinstance(x, Tensor) else isinstance(x, float | complex) for x in leaves]


class _Run:
    """A function run with some leaves of its arguments marked."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any], places: Sequence[Place]) -> None:
        scope = self.scope = Scope("grad", f"a derivative of {getattr(function, '__name__', 'a function')}")
        leaves = [_at(arguments, place) for place in places]
        both = [varying(leaf, scope) for leaf in leaves]
        self.marks = [node for node, _ in both]
        self.numbers = [is_number(leaf) for leaf in leaves]
        for place, (_, tensor) in zip(places, both, strict=True):
            arguments = _replaced(arguments, place, tensor)
        Scope.at_work.append(scope)
        try:
            self.leaves = result_leaves(called(function, arguments))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.scope.open = False
        Scope.at_work.remove(self.scope)


def _varies(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.dtype.differentiable


def tangents_of(
    function: Callable[..., Any], arguments: Sequence[Any], places: Sequence[Place], tangents: Sequence[Leaf]
) -> list[Any]:
    """The tangents of what a function gives, leaf by leaf, where its arguments move at some places; 0 for none."""
    run = _Run(function, arguments, places)
    try:
        outputs = [leaf._node for leaf in run.leaves if _varies(leaf)]
        seeds = [_seed(t, x, "a tangent") for t, x in zip(tangents, run.marks, strict=True)]
        found = iter(derive.jvp(outputs, dict(zip(run.marks, seeds, strict=True)), run.scope))
    finally:
        run.close()
    nodes = [next(found) if _varies(leaf) else None for leaf in run.leaves]
    live = [(n, isinstance(leaf, Scalar)) for n, leaf in zip(nodes, run.leaves, strict=True) if n is not None]
    made = iter(given_back([n for n, _ in live], [number for _, number in live]))
    return [0 if n is None else next(made) for n in nodes]


def cotangents_of(
    function: Callable[..., Any], arguments: Sequence[Any], places: Sequence[Place], output: int, cotangent: Leaf
) -> list[Any]:
    """The cotangents of the arguments at some places, given that of one leaf of what the function gives."""
    run = _Run(function, arguments, places)
    try:
        node = run.leaves[output]._node
        found = derive.vjp([node], run.marks, run.scope)([_seed(cotangent, node, "an adjoint")])
    finally:
        run.close()
    return given_back(_or_zeros(found, run.marks), run.numbers)


# --- pieces ---------------------------------------------------------------------------------------


def number_of(leaf: Leaf) -> Any:
    """A tensor without axes as a number; a function of tensors like others, so that it has derivatives."""
    return as_number(Scalar(scalar_node(leaf))) if isinstance(leaf, Tensor) else leaf


def like_leaf(derivative: Leaf, leaf: Leaf) -> Any:
    """A derivative by a tensor that came out as a number, 0 where nothing depends on it, as a tensor of its shape."""
    if not isinstance(leaf, Tensor) or isinstance(leaf, Scalar):
        return derivative
    node = node_of(derivative)
    if node.shape == leaf.shape and node.dtype is leaf.dtype:
        return derivative
    node = TABLE["cast"](node, leaf.dtype)
    return Tensor(node if node.shape == leaf.shape else TABLE["expand"](node, leaf.shape))


def unit_of(leaf: Tensor, index: int) -> Tensor:
    """Zeros like a tensor, with a one at an element, counted along all axes."""
    array = np.zeros(leaf.size, leaf.dtype.numpy)
    array[index] = 1
    from eshkol.tensors.make import adopted

    return adopted(array.reshape(leaf.shape))


def stopped(leaf: Leaf) -> Any:
    """A leaf as a constant to derivatives."""
    if isinstance(leaf, Scalar):
        if any(s.open and s.kind == "trace" for s in leaf._node.scopes):
            return Scalar(make(STOP, (leaf._settled(),), None))
        return leaf.given if leaf.given is not None else _computed(leaf)
    return Tensor(make(STOP, (as_node(leaf),), None))


def _computed(scalar: Scalar) -> Any:
    return Scalar(make(STOP, (scalar._settled(),), None)).item()


def joined(parts: Sequence[Leaf], front: Sequence[int], back: Sequence[int]) -> Tensor:
    """Tensors of one shape, one for each element of a tensor of shape `front`, as one of shape front + back."""
    stacked = operate(TABLE["stack"], ([as_node(p) for p in parts],), {})
    made = operate(TABLE["reshape"], (stacked, (*front, *back)), {})
    assert isinstance(made, Tensor)
    return made


def shape_of(leaf: Leaf) -> list[int]:
    return list(leaf.shape) if isinstance(leaf, Tensor) else []


def trace_of(block: Leaf) -> Any:
    """The sum of the derivatives of each element by itself, of a Jacobian of shape s + s."""
    if not isinstance(block, Tensor) or not block.shape:
        return block
    half = block.ndim // 2
    size = int(np.prod(block.shape[:half]))
    square = operate(TABLE["reshape"], (block, (size, size)), {})
    return operate(TABLE["trace"], (square,), {})


def curl_of(matrix: Tensor) -> Any:
    """The curl, from the Jacobian of a field of two or three components."""
    j = matrix
    if matrix.shape == (2, 2):
        return j[1, 0] - j[0, 1]
    parts = [j[2, 1] - j[1, 2], j[0, 2] - j[2, 0], j[1, 0] - j[0, 1]]
    return operate(TABLE["stack"], (parts,), {})


def widened(leaf: Tensor) -> Tensor:
    """A tensor of floats of 64 bits, whose differences are fine enough to check derivatives with."""
    if not leaf.dtype.is_float:
        raise DTypeError(f"differences are taken of floats, not of {leaf.dtype}", hint="cast it to a float")
    made = operate(TABLE["cast"], (leaf, dtypes.float64), {})
    assert isinstance(made, Tensor)
    return made


def element_of(leaf: Leaf, index: int) -> float:
    """An element of a tensor, counted along all axes."""
    return float(leaf.numpy().reshape(-1)[index]) if isinstance(leaf, Tensor) else float(leaf)


def moved_by(leaf: Tensor, index: int, step: float) -> Tensor:
    """The tensor with a step added to one element."""
    made = leaf + unit_of(leaf, index) * step
    assert isinstance(made, Tensor)
    return made
