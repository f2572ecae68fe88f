"""Results of Scheme procedures as structures of tensors: what else stands in them is kept aside.

In: a structure as a procedure gave it, with numbers, symbols, booleans and the like among its tensors. Out: one whose
leaves are tensors alone, and which becomes the structure again when it is built around other tensors: numbers that were
computed come back as numbers, everything else as it was.
"""

from __future__ import annotations

from typing import Any

from eshkol.tensors import pytree
from eshkol.tensors.scalars import Scalar, as_number, scalar_node
from eshkol.tensors.value import Tensor


class _KeptResult:
    """What is no tensor: it goes out as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Number:
    """A number that was computed."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def _number(_: Any, children: Any) -> Any:
    (child,) = children
    return as_number(Scalar(child._node)) if isinstance(child, Tensor) else child


pytree.register(_KeptResult, lambda kept: ((), kept.value), lambda value, _: value)
pytree.register(_Number, lambda number: ((Tensor(scalar_node(number.tensor)),), None), _number)


def _outward(leaf: Any) -> Any:
    if isinstance(leaf, Scalar):
        return _Number(leaf)
    return leaf if isinstance(leaf, Tensor) else _KeptResult(leaf)


def outward(result: Any) -> Any:
    """The structure with its tensors as its only leaves."""
    return pytree.tree_map(_outward, result)
