"""Functions to functions: grad, jvp, vjp, jacobian, hessian, vmap and their kin, over structures of tensors.

A transformation runs the function on marked inputs (or on placeholders, where values cannot be known), takes the graph
of its results and transforms that. What comes out is an ordinary graph, so transformations nest in any order.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from eshkol.errors import DerivativeError, DTypeError, ShapeError, TensorError, TraceError
from eshkol.graph import derive
from eshkol.graph.batch import batch
from eshkol.graph.function import repeated
from eshkol.graph.node import Node, Scope, buffer, constant, here, make, mark, placeholder
from eshkol.ops import TABLE
from eshkol.ops.elementwise import conj
from eshkol.ops.movement import permute, reshape
from eshkol.ops.row import Aval
from eshkol.ops.structural import STOP
from eshkol.support.whole import is_whole
from eshkol.tensors import pytree
from eshkol.tensors.value import Tensor, as_node, wrapped

Function = Callable[..., Any]
Argnums = int | Sequence[int]


@contextmanager
def scoped(kind: str, name: str) -> Iterator[Scope]:
    """A scope that is closed afterwards, however that comes."""
    scope = Scope(kind, name)
    Scope.at_work.append(scope)
    try:
        yield scope
    finally:
        Scope.at_work.remove(scope)
        scope.open = False


def name_of(function: Function, what: str) -> str:
    return f"{what} of {getattr(function, '__name__', type(function).__name__)}"


def nodes_of(value: Any, what: str) -> tuple[list[Node], pytree.Tree]:
    """The leaves of a structure as nodes."""
    leaves, tree = pytree.flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, Tensor | Node | bool | int | float | complex | np.ndarray | np.generic):
            raise TensorError(
                f"{what} has a {type(leaf).__name__} where a tensor should be", span=here(),
                hint="give back tensors, in tuples, lists, dicts or dataclasses",
            )  # fmt: skip
    return [as_node(leaf) for leaf in leaves], tree


class _Aux:
    """A function that gives a pair (value, aux) as one that gives the value, and the aux of its last call."""

    def __init__(self, function: Function) -> None:
        self.function, self.aux = function, None
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    aux: Any

    def __call__(self, *args: Any, **given: Any) -> Any:
        pair = self.function(*args, **given)
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TensorError("with has_aux the function gives a pair (value, aux)", span=here())
        value, self.aux = pair
        return value


def results_of(function: Function, args: Sequence[Any], given: dict[str, Any]) -> tuple[list[Node], pytree.Tree]:
    return nodes_of(function(*args, **given), f"the result of {getattr(function, '__name__', 'the function')}")


def of_inputs(
    function: Function, leaves: Sequence[Any], tree: pytree.Tree, places: Sequence[int], trees: list[pytree.Tree]
) -> Callable[..., list[Node]]:
    """A function of nodes for the leaves at some places; the others stay. `trees` takes the tree of its results."""

    def run(*nodes: Node) -> list[Node]:
        inside = list(leaves)
        for k, x in zip(places, wrapped(list(nodes)), strict=True):
            inside[k] = x
        built, named = tree.build(inside)
        results, out_tree = results_of(function, built, named)
        trees.append(out_tree)
        return results

    return run


def smooth(nodes: Sequence[Node], what: str) -> None:
    """Refuse to differentiate with respect to what does not vary smoothly."""
    for node in nodes:
        if not node.dtype.differentiable:
            raise DTypeError(
                f"{what} with respect to a {node.dtype}{list(node.shape)}: only floats and complex numbers vary",
                span=here(), hint="cast it to a float, or name other arguments with argnums=",
            )  # fmt: skip


class _Chosen:
    """The arguments that a transformation is about, as leaves, and the way back to a call."""

    def __init__(self, args: Sequence[Any], argnums: Argnums, what: str) -> None:
        self.args, self.single = list(args), not isinstance(argnums, Iterable)
        places = list(argnums) if isinstance(argnums, Iterable) else [argnums]
        for k in places:
            if not -len(args) <= k < len(args):
                raise TensorError(f"{what}: there is no argument {k} among {len(args)}", span=here())
        self.places = [k % len(args) for k in places]
        found = [nodes_of(args[k], f"argument {k}") for k in self.places]
        self.trees = [tree for _, tree in found]
        self.counts = [len(nodes) for nodes, _ in found]
        self.nodes = [node for nodes, _ in found for node in nodes]
        smooth(self.nodes, what)

    def call_with(self, nodes: Sequence[Node]) -> list[Any]:
        """All arguments, with these in place of the chosen leaves."""
        args = list(self.args)
        for place, value in zip(self.places, self._split(wrapped(list(nodes))), strict=True):
            args[place] = value
        return args

    def structured(self, leaves: Sequence[Any]) -> Any:
        """Leaves in the structure of the chosen arguments."""
        values = self._split(leaves)
        return values[0] if self.single else tuple(values)

    def _split(self, leaves: Sequence[Any]) -> list[Any]:
        feed = iter(leaves)
        return [tree.build(next(feed) for _ in range(n)) for tree, n in zip(self.trees, self.counts, strict=True)]


def _or_zeros(tangents: Sequence[Node | None], like: Sequence[Any]) -> list[Node]:
    return [derive.zeros(x) if t is None else t for t, x in zip(tangents, like, strict=True)]


def _conjugated(nodes: Sequence[Node]) -> list[Node]:
    """Gradients point uphill: of a real function of complex numbers, ∂f/∂x + i·∂f/∂y."""
    return [conj(n) if n.dtype.is_complex else n for n in nodes]


# --- reverse --------------------------------------------------------------------------------------


def value_and_grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the value of `function` and its gradient with respect to some arguments.

    The function must give a real scalar; with `has_aux`, a pair of it and anything else, which is passed on.
    """

    @wraps(function)
    def transformed(*args: Any, **given: Any) -> Any:
        chosen = _Chosen(args, argnums, "grad")
        with scoped("grad", name_of(function, "grad")) as scope:
            marks = [mark(x, scope) for x in chosen.nodes]
            value = function(*chosen.call_with(marks), **given)
            aux = None
            if has_aux:
                if not (isinstance(value, tuple) and len(value) == 2):
                    raise TensorError("with has_aux the function gives a pair (value, aux)", span=here())
                value, aux = value
            node = _scalar(value)
            found = derive.vjp([node], marks, scope)([constant(1, node.dtype)])
        grads = _conjugated(_or_zeros(found, marks))
        gradient = chosen.structured(wrapped(grads))
        return ((Tensor(node), aux) if has_aux else Tensor(node)), gradient

    return transformed


def _scalar(value: Any) -> Node:
    if not isinstance(value, Tensor):
        raise DerivativeError(
            f"grad needs a function that gives a tensor, and it gave a {type(value).__name__}", span=here(),
            hint="keep to tensor operations: float(x), math.sin(x) and x.numpy() leave the derivative behind",
        )  # fmt: skip
    node = as_node(value)
    if node.shape != () or not node.dtype.is_float:
        raise DerivativeError(
            f"grad needs a real scalar, and the function gave {node.dtype}{list(node.shape)}", span=here(),
            hint="take the mean or the sum of it; for all derivatives of several values use jacobian or vjp",
        )  # fmt: skip
    return node


def grad(function: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that gives the gradient of `function` with respect to some arguments, in their structure.

    >>> ek.grad(lambda x: (x * x).sum())(ek.tensor([1.0, 2.0]))
    """
    both = value_and_grad(function, argnums, has_aux)

    @wraps(function)
    def transformed(*args: Any, **given: Any) -> Any:
        value, gradient = both(*args, **given)
        return (gradient, value[1]) if has_aux else gradient

    return transformed


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of `function`, and the function from its cotangents to those of the arguments (a tuple).

    Cotangents pair with tangents by Re(ct·t); `grad` is the conjugate of that where numbers are complex. With `has_aux`
    the function gives a pair (value, aux), and aux comes third.
    """
    if has_aux:
        split = _Aux(function)
        return (*vjp(split, *primals), split.aux)
    chosen = _Chosen(primals, range(len(primals)), "vjp")
    with scoped("grad", name_of(function, "vjp")) as scope:
        marks = [mark(x, scope) for x in chosen.nodes]
        outputs, tree = results_of(function, chosen.call_with(marks), {})
        pull = derive.vjp(outputs, marks, scope)

    def pullback(cotangents: Any) -> Any:
        given = _matching(cotangents, outputs, tree, "cotangents")
        return chosen.structured(wrapped(_or_zeros(pull(given), marks)))

    return tree.build(wrapped(outputs)), pullback


def _matching(value: Any, like: Sequence[Node], tree: pytree.Tree, what: str) -> list[Node]:
    """Leaves of a structure that must be like another's."""
    nodes, found = nodes_of(value, what)
    if found != tree:
        raise TensorError(f"the {what} have structure {found}, not {tree}", span=here())
    for given, wanted in zip(nodes, like, strict=True):
        if given.shape != wanted.shape:
            raise ShapeError(f"a shape of {list(given.shape)} among the {what}, not {list(wanted.shape)}", span=here())
    return [n if n.dtype is w.dtype else TABLE["cast"](n, w.dtype) for n, w in zip(nodes, like, strict=True)]


# --- forward --------------------------------------------------------------------------------------


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """The result of `function` at the primals, and its derivative along the tangents.

    With `has_aux` the function gives a pair (value, aux), and aux comes third.
    """
    if has_aux:
        split = _Aux(function)
        return (*jvp(split, primals, tangents), split.aux)
    for given, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(given, tuple | list):
            raise TensorError(
                f"jvp takes a tuple of {what}, one for each argument, not a {type(given).__name__}", span=here(),
                hint="write jvp(f, (x,), (t,)) for a function of one argument",
            )  # fmt: skip
    value, push = linearize(function, *primals)
    return value, push(*tangents)  # nothing keeps `push`, and with it goes the history it needed


def linearize(function: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of `function`, and its derivative there as a linear function of tangents.

    With `has_aux` the function gives a pair (value, aux), and aux comes third.
    """
    if has_aux:
        split = _Aux(function)
        return (*linearize(split, *primals), split.aux)
    chosen = _Chosen(primals, range(len(primals)), "jvp")
    with scoped("grad", name_of(function, "jvp")) as scope:
        marks = [mark(x, scope) for x in chosen.nodes]
        outputs, tree = results_of(function, chosen.call_with(marks), {})
    scope.kept = True

    def push(*tangents: Any) -> Any:
        if len(tangents) != len(primals):
            raise TensorError(f"{len(tangents)} tangents for {len(primals)} primals", span=here())
        given: list[Node] = []
        feed = iter(marks)
        for tangent, in_tree, n in zip(tangents, chosen.trees, chosen.counts, strict=True):
            given += _matching(tangent, [next(feed) for _ in range(n)], in_tree, "tangents")
        found = derive.jvp(outputs, dict(zip(marks, given, strict=True)), scope)
        return tree.build(wrapped(_or_zeros(found, outputs)))

    weakref.finalize(push, setattr, scope, "kept", False)
    return tree.build(wrapped(outputs)), push


# --- whole matrices -------------------------------------------------------------------------------


def _basis(node: Node) -> Node:
    """One unit tangent per element: shape (size, *shape)."""
    eye = np.eye(node.size, dtype=np.float32).astype(node.dtype.numpy)
    return buffer(eye.reshape((node.size, *node.shape)), node.dtype, loose=True)


def jacobian(function: Function, argnums: Argnums = 0, mode: str = "auto") -> Function:
    """A function that gives all derivatives of `function`, each of shape(result) + shape(argument).

    `mode` is "forward", "reverse", or "auto" (forward unless there are fewer results than arguments).
    """
    if mode not in ("auto", "forward", "reverse"):
        raise TensorError(f"the mode of jacobian is auto, forward or reverse, not {mode!r}")

    @wraps(function)
    def transformed(*args: Any, **given: Any) -> Any:
        chosen = _Chosen(args, argnums, "jacobian")
        with scoped("grad", name_of(function, "jacobian")) as scope:
            marks = [mark(x, scope) for x in chosen.nodes]
            outputs, tree = results_of(function, chosen.call_with(marks), given)
            smooth(outputs, "jacobian of a function")
            forward = (
                sum(x.size for x in marks) <= sum(x.size for x in outputs) if mode == "auto" else mode == "forward"
            )
            rows = forward_rows(outputs, marks, scope) if forward else reverse_rows(outputs, marks, scope)
        return tree.build(chosen.structured(wrapped(row)) for row in rows)

    return transformed


def forward_rows(outputs: Sequence[Node], marks: Sequence[Node], scope: Scope) -> list[list[Node]]:
    """For each output the derivatives by each input, one batch of unit tangents per input."""
    columns = []
    for x in marks:
        with scoped("trace", "jacobian") as unit:
            tangent = placeholder(Aval(x.shape, x.dtype), unit)
            found = derive.jvp(outputs, {x: tangent}, scope)
            live = [t for t in found if t is not None]
            wide = iter(batch(live, {tangent: _basis(x)}, unit))
        column = []
        for output, t in zip(outputs, found, strict=True):
            shape = (*output.shape, *x.shape)
            some = None if t is None else next(wide)
            if some is None:
                column.append(derive.zeros(Aval(shape, output.dtype)))
            else:
                column.append(reshape(permute(some, (*range(1, some.ndim), 0)), shape))
        columns.append(column)
    return [[column[k] for column in columns] for k in range(len(outputs))]


def reverse_rows(outputs: Sequence[Node], marks: Sequence[Node], scope: Scope) -> list[list[Node]]:
    """For each output the derivatives by each input, one batch of unit cotangents per output."""
    rows = []
    for output in outputs:
        pull = derive.vjp([output], marks, scope)
        with scoped("trace", "jacobian") as unit:
            cotangent = placeholder(Aval(output.shape, output.dtype), unit)
            found = pull([cotangent])
            live = [t for t in found if t is not None]
            wide = iter(batch(live, {cotangent: _basis(output)}, unit))
        row = []
        for x, t in zip(marks, found, strict=True):
            shape = (*output.shape, *x.shape)
            some = None if t is None else next(wide)
            row.append(derive.zeros(Aval(shape, x.dtype)) if some is None else reshape(some, shape))
        rows.append(row)
    return rows


def _whole(function: Function, argnums: Argnums, has_aux: bool, holomorphic: bool, mode: str) -> Function:
    """A jacobian as JAX has it: with `has_aux` the result is a pair (jacobian, aux)."""
    if holomorphic:
        raise DerivativeError(
            "holomorphic=True: derivatives of complex results are not made by jacfwd and jacrev", span=here(),
            hint="ek.jvp along 1 gives the complex derivative of a holomorphic function",
        )  # fmt: skip
    if not has_aux:
        return jacobian(function, argnums, mode)

    @wraps(function)
    def transformed(*args: Any, **given: Any) -> Any:
        split = _Aux(function)
        return jacobian(split, argnums, mode)(*args, **given), split.aux

    return transformed


def jacfwd(function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """`jacobian` in the forward mode: for functions with more results than arguments."""
    return _whole(function, argnums, has_aux, holomorphic, "forward")


def jacrev(function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """`jacobian` in the reverse mode: for functions with more arguments than results."""
    return _whole(function, argnums, has_aux, holomorphic, "reverse")


def hessian(function: Function, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False) -> Function:
    """A function that gives all second derivatives of a scalar `function`.

    With `has_aux` the function gives a pair (value, aux), and the result is a pair (derivatives, aux).
    """
    inner = _whole(function, argnums, has_aux, holomorphic, "reverse")
    return _whole(inner, argnums, has_aux, holomorphic, "forward")


# --- vmap -----------------------------------------------------------------------------------------


def vmap(function: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """A function over one more axis of its arguments: what `function` does to one example, for a whole batch.

    `in_axes` says which axis of each argument counts examples (None: the argument is the same for all); `out_axes`
    where the axis goes in the results.
    """

    @wraps(function)
    def transformed(*args: Any, **given: Any) -> Any:
        leaves, tree = nodes_of(args, "the arguments of vmap")
        axes = _axes_of(in_axes, args)
        size = _batch_size(leaves, axes)
        with scoped("trace", name_of(function, "vmap")) as scope:
            wide: dict[Node, Node] = {}
            ones = []
            for node, axis in zip(leaves, axes, strict=True):
                if axis is None:
                    ones.append(node)
                    continue
                front = _moved(node, axis, 0)
                ones.append(placeholder(Aval(front.shape[1:], front.dtype), scope))
                wide[ones[-1]] = front
            outputs, out_tree = results_of(function, tree.build(wrapped(ones)), given)
            found = batch(outputs, wide, scope)
        out = []
        places = _axes_of(out_axes, out_tree.build(wrapped(outputs)), nested=True)
        for some, single, axis in zip(found, outputs, places, strict=True):
            if axis is None:
                if some is not None:
                    raise TraceError("out_axes is None for a result that differs from example to example", span=here())
                out.append(single)
                continue
            whole = repeated(single, size) if some is None else some
            if not -whole.ndim <= axis < whole.ndim:
                raise ShapeError(f"vmap: the result of shape {list(whole.shape)} has no axis {axis}", span=here())
            out.append(_moved(whole, 0, axis % whole.ndim))
        return out_tree.build(wrapped(out))

    return transformed


def _moved(node: Node, source: int, target: int) -> Node:
    source %= node.ndim
    if source == target:
        return node
    order = [k for k in range(node.ndim) if k != source]
    order.insert(target, source)
    result = permute(node, order)
    assert isinstance(result, Node)
    return result


def _axes_of(axes: Any, value: Any, nested: bool = False) -> list[int | None]:
    """One axis per leaf of a value; a single axis stands for all leaves below."""
    if axes is None or is_whole(axes):
        return [axes] * len(pytree.leaves(value))
    if isinstance(value, dict) and isinstance(axes, dict) and axes.keys() == value.keys():
        keys = pytree.flatten(value)[1].data
        return [a for k in keys for a in _axes_of(axes[k], value[k], True)]
    if isinstance(value, tuple | list) and isinstance(axes, tuple | list) and len(axes) == len(value):
        return [a for one, v in zip(axes, value, strict=True) for a in _axes_of(one, v, True)]
    raise TensorError(f"the axes {axes!r} do not fit the structure of what they are for", span=here())


def _batch_size(leaves: Sequence[Node], axes: Sequence[int | None]) -> int:
    sizes = {}
    for k, (node, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is not None:
            if not -node.ndim <= axis < node.ndim:
                raise ShapeError(f"vmap: there is no axis {axis} in shape {list(node.shape)}", span=here())
            sizes[k] = node.shape[axis]
    if not sizes:
        raise TensorError("vmap needs at least one argument with an axis of examples", span=here())
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{n} in leaf {k}" for k, n in sizes.items())
        raise ShapeError(
            f"vmap: the arguments have different numbers of examples: {shown}", span=here(),
            hint="in_axes=(0, None) takes the second argument whole for each example",
        )  # fmt: skip
    return next(iter(sizes.values()))


def stop_gradient(value: Any) -> Any:
    """The same values, as if they were constant: derivatives do not flow through."""
    nodes, tree = nodes_of(value, "stop_gradient")
    return tree.build(wrapped([make(STOP, (n,), None) for n in nodes]))
