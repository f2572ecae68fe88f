"""Control flow made of other control flow: `switch`, `map_over`, `associative_scan`; and shapes without values.

Comes in: functions and structures of tensors. Goes out: structures of tensors, or of `ShapeDtypeStruct`s
(`eval_shape`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.graph.function import trace
from eshkol.graph.node import here, noted
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.tensors import pytree
from eshkol.tensors.control import cond, scan
from eshkol.tensors.transforms import name_of, nodes_of, of_inputs
from eshkol.tensors.value import Tensor, as_node, is_input, operate, wrapped

Code = Callable[..., Any]


def _op(name: str, *args: Any, **given: Any) -> Any:
    return operate(TABLE[name], args, given)


@noted
def switch(index: Any, branches: Sequence[Code], *operands: Any) -> Any:
    """`branches[index](*operands)`; an index below the first or beyond the last takes that one.

    >>> ek.switch(1, [ek.sin, ek.cos], x)
    """
    if not branches:
        raise TensorError("switch needs a branch at least", span=here())
    node = as_node(index)
    if node.shape != () or not node.dtype.is_integer:
        raise DTypeError(f"the index of switch is an integer, not {node.dtype}{list(node.shape)}", span=here())
    place = _op("clamp", Tensor(node), 0, len(branches) - 1)

    def chosen(low: int, high: int) -> Code:
        """The branches from low to before high, halved until one is left."""
        if high - low == 1:
            return branches[low]
        middle = (low + high) // 2
        return lambda *given: cond(place < middle, chosen(low, middle), chosen(middle, high), *given)

    return chosen(0, len(branches))(*operands)


@noted
def map_over(function: Code, xs: Any) -> Any:
    """The function of each element along the first axis, one after another; the results stacked."""
    return scan(lambda carry, x: (carry, function(x)), (), xs)[1]


@noted
def associative_scan(function: Code, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All partial results of an associative function along an axis, in as many rounds as log2 of its extent.

    `function(a, b)` works on whole slices along the axis. In each round every element is combined with the one 1, 2,
    4 … places before it.

    >>> ek.associative_scan(ek.add, ek.arange(5))
    """
    leaves, tree = nodes_of(elems, "the elements of associative_scan")
    extents = {x.shape[axis] for x in leaves if x.ndim} if all(x.ndim for x in leaves) else set()
    if len(extents) != 1:
        raise ShapeError(f"associative_scan walks along one extent, not along {sorted(extents)}", span=here())
    extent = extents.pop()
    now = wrapped(leaves)
    if reverse:
        now = [_op("flip", x, axis) for x in now]
    distance = 1
    while distance < extent:
        before = tree.build(_cut(x, axis, 0, extent - distance) for x in now)
        after = tree.build(_cut(x, axis, distance, extent) for x in now)
        met, met_tree = nodes_of(function(before, after), "the result of associative_scan's function")
        if met_tree != tree:
            raise TensorError(f"associative_scan: the function gives {met_tree} instead of {tree}", span=here())
        pairs = zip(now, wrapped(met), strict=True)
        now = [_op("concatenate", [_cut(x, axis, 0, distance), y], axis) for x, y in pairs]
        distance *= 2
    return tree.build(_op("flip", x, axis) for x in now) if reverse else tree.build(now)


def _cut(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    """The elements along an axis from start to before stop."""
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, stop)
    return x[tuple(index)]


# --- shapes without values ------------------------------------------------------------------------


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """A shape and a dtype: a tensor without its values."""

    shape: tuple[int, ...]
    dtype: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "dtype", dtypes.of(self.dtype))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


# What it holds is no structure: it stands for one leaf.
pytree.LEAF_CLASSES.add(ShapeDtypeStruct)


def eval_shape(function: Code, *args: Any, **given: Any) -> Any:
    """The shapes and dtypes of what a function would give, in its structure; nothing is computed.

    Tensors, arrays and `ShapeDtypeStruct`s are what it is computed of; other arguments are passed on.

    >>> ek.eval_shape(ek.matmul, ek.ShapeDtypeStruct((2, 3), ek.float32), ek.ones((3, 4)))
    """
    leaves, tree = pytree.flatten((args, given))
    places = [k for k, x in enumerate(leaves) if is_input(x) or isinstance(x, ShapeDtypeStruct)]
    avals = [_aval(leaves[k]) for k in places]
    trees: list[pytree.Tree] = []
    traced, _ = trace(of_inputs(function, leaves, tree, places, trees), avals, name_of(function, "eval_shape"))
    return trees[0].build(ShapeDtypeStruct(aval.shape, aval.dtype) for aval in traced.avals)


def _aval(leaf: Any) -> Aval:
    if isinstance(leaf, ShapeDtypeStruct):
        return Aval(leaf.shape, leaf.dtype)
    node = as_node(leaf)
    return Aval(node.shape, node.dtype)
