"""Control flow for users: `cond`, `scan`, `while_loop`, `fori_loop`, over structures of tensors.

They keep branches and loops in the graph, so that derivatives and vmap go through them. Python's own `if` and `for`
work too wherever values are known; they are then part of the program that builds the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.graph import control
from eshkol.graph.function import Function, trace
from eshkol.graph.node import Node, here, make, noted, placeholder
from eshkol.ops import TABLE
from eshkol.ops.loops import ENDED, Limit
from eshkol.ops.row import Aval
from eshkol.support.whole import is_whole
from eshkol.tensors import pytree
from eshkol.tensors.computing import compute_now
from eshkol.tensors.transforms import nodes_of
from eshkol.tensors.value import ROOT, Tensor, as_node, wrapped

Code = Callable[..., Any]


def _avals(nodes: Sequence[Node]) -> list[Aval]:
    return [Aval(x.shape, x.dtype) for x in nodes]


def _traced(code: Code, avals: Sequence[Aval], name: str) -> tuple[Function, list[Node], pytree.Tree]:
    """Code over nodes as a function, its captures, and the structure of its results."""
    trees: list[pytree.Tree] = []

    def run(*nodes: Node) -> list[Node]:
        results, tree = nodes_of(code(wrapped(list(nodes))), f"the result of {name}")
        trees.append(tree)
        return results

    function, captures = trace(run, avals, name)
    return function, captures, trees[0]


def _alike(found: Sequence[Aval], wanted: Sequence[Aval], tree: pytree.Tree, other: pytree.Tree, what: str) -> None:
    """Refuse a body or branch that gives something else than it must."""
    if tree != other:
        raise TensorError(
            f"{what}: the structure is {tree} instead of {other}", span=here(),
            hint="give results of one structure: as many tensors, in the same tuples, lists and dictionaries",
        )  # fmt: skip
    for k, (got, want) in enumerate(zip(found, wanted, strict=True)):
        if got.shape != want.shape:
            raise ShapeError(f"{what}: leaf {k} has shape {list(got.shape)} instead of {list(want.shape)}", span=here())
        if got.dtype is not want.dtype:
            raise DTypeError(
                f"{what}: leaf {k} is {got.dtype} instead of {want.dtype}", span=here(),
                hint=f"cast it: x.astype(ek.{want.dtype})",
            )  # fmt: skip


def _widened(function: Function, before: int, after: int, others: Sequence[Node]) -> Function:
    """The function with further parameters that it does not use, before and after its captures."""
    spare = [placeholder(Aval(x.shape, x.dtype), function.scope) for x in others]
    params = function.params
    return replace(function, params=(*params[:before], *spare[:after], *params[before:], *spare[after:]))


@noted
def cond(predicate: Any, true: Code, false: Code, *operands: Any) -> Any:
    """`true(*operands)` where the predicate holds, else `false(*operands)`; both must give the same structure.

    >>> ek.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)
    """
    test = as_node(predicate)
    if test.shape != ():
        raise ShapeError(
            f"the predicate of cond has shape {list(test.shape)}", span=here(), hint="use where, or any/all"
        )
    test = test if test.dtype.is_bool else TABLE["not_equal"](test, 0)
    nodes, tree = nodes_of(operands, "the operands of cond")
    one, taken, out_tree = _traced(lambda x: true(*tree.build(x)), _avals(nodes), "the true branch of cond")
    other, left, other_tree = _traced(lambda x: false(*tree.build(x)), _avals(nodes), "the false branch of cond")
    _alike(other.avals, one.avals, other_tree, out_tree, "the false branch of cond differs from the true one")
    # Both branches take the captures of both, each ignoring the other's.
    first = _widened(one, len(one.params), 0, left)
    second = _widened(other, len(nodes), len(taken), taken)
    return out_tree.build(wrapped(control.cond(test, first, second, [*nodes, *taken, *left])))


@noted
def scan(body: Code, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
    """Carry a value along the first axis of `xs`: `body(carry, x)` gives (carry, y); the result is (carry, stacked ys).

    >>> ek.scan(lambda c, x: (c + x, c * x), ek.tensor(0.0), ek.arange(5.0))
    """
    carries, carry_tree = nodes_of(init, "the init of scan")
    elements, element_tree = nodes_of(xs, "the xs of scan")
    for x in elements:
        if not x.shape:
            raise ShapeError("scan cannot walk along a tensor without axes", span=here())
    lengths = {x.shape[0] for x in elements} | ({length} if length is not None else set())
    if len(lengths) != 1:
        said = "scan needs xs or a length" if not lengths else f"scan was given different lengths: {sorted(lengths)}"
        raise ShapeError(said, span=here())
    if min(lengths) < 0:
        raise ShapeError(f"scan cannot take {length} steps", span=here())
    count = len(carries)
    trees: list[pytree.Tree] = []

    def run(leaves: list[Tensor]) -> Any:
        given = body(carry_tree.build(leaves[:count]), element_tree.build(leaves[count:]))
        if not (isinstance(given, tuple) and len(given) == 2):
            raise TensorError("the body of scan gives a pair (carry, y)", span=here(), hint="y may be None")
        trees.extend(pytree.flatten(part)[1] for part in given)
        return given

    avals = [*_avals(carries), *(Aval(x.shape[1:], x.dtype) for x in elements)]
    function, captures, _ = _traced(run, avals, "the body of scan")
    _alike(function.avals[:count], _avals(carries), trees[0], carry_tree, "the carry of scan changes")
    found = wrapped(control.scan(function, carries, elements, captures, lengths.pop(), reverse))
    return carry_tree.build(found[:count]), trees[1].build(found[count:])


@noted
def while_loop(test: Code, body: Code, init: Any, max_iterations: int | None = None) -> Any:
    """`init` after `body` has been applied for as long as `test` holds.

    With `max_iterations` the loop has reverse derivatives, and must have ended after so many steps: if the test still
    holds then, that is an error. Without, it has forward derivatives only.
    """
    carries, tree = nodes_of(init, "the init of while_loop")
    if max_iterations is not None:
        if not is_whole(max_iterations, 0):
            raise TensorError(f"max_iterations is a number of steps, not {max_iterations!r}", span=here())
        return _bounded(test, body, init, int(max_iterations))
    avals = _avals(carries)
    condition, tested, _ = _traced(lambda leaves: test(tree.build(leaves)), avals, "the test of while_loop")
    (aval,) = condition.avals if len(condition.avals) == 1 else (None,)
    if aval is None or aval.shape != () or not aval.dtype.is_bool:
        raise TensorError(f"the test of while_loop must give one truth value, not {condition.avals}", span=here())
    step, used, out_tree = _traced(lambda leaves: body(tree.build(leaves)), avals, "the body of while_loop")
    _alike(step.avals, avals, out_tree, tree, "the body of while_loop changes what it carries")
    return tree.build(wrapped(control.while_loop(condition, step, carries, tested, used)))


def _bounded(test: Code, body: Code, init: Any, most: int) -> Any:
    """A while loop as a scan of known length, whose later steps do nothing."""

    def step(carry: Any, _: Any) -> tuple[Any, None]:
        return cond(test(carry), body, lambda same: same, carry), None

    leaves, tree = nodes_of(scan(step, init, None, length=most)[0], "what while_loop carries")
    (going,), _ = nodes_of(test(tree.build(wrapped(leaves))), "the test of while_loop")
    ended = wrapped([make(ENDED, (x, going), Limit(most)) for x in leaves])
    compute_now(ended)
    return tree.build(ended)


@noted
def fori_loop(lower: Any, upper: Any, body: Code, init: Any) -> Any:
    """`init` after `body(i, carry)` for i from lower to upper - 1; bounds that are tensors make it a while_loop."""
    for bound in (lower, upper):
        if not as_node(bound).dtype.is_integer or as_node(bound).shape:
            raise DTypeError(f"fori_loop counts between two integers, and was given {bound!r}", span=here())
    if isinstance(lower, int | np.integer) and isinstance(upper, int | np.integer):
        counts = Tensor(TABLE["iota"].on(ROOT, (max(0, int(upper) - int(lower)),))) + int(lower)
        return scan(lambda carry, i: (body(i, carry), None), init, counts)[0]
    start = Tensor(as_node(lower)), init
    end = Tensor(as_node(upper))

    def step(state: Any) -> Any:
        i, carry = state
        return i + 1, body(i, carry)

    return while_loop(lambda state: state[0] < end, step, start)[1]
