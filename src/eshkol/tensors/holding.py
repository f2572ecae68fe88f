"""Handles that stand for other values for a while, and values that are taken out of their handles.

A model's parameters are tensors that everybody holds: its layers, an optimizer, closures of the user. `standing_for`
lets them stand for other values within a call, so that a model is a pure function of them; `take` and `put` move
values out and in, so that a compiled step may overwrite their memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from sys import getrefcount

from eshkol.errors import DTypeError, ShapeError
from eshkol.graph.node import Node, all_inputs, buffer, here, lift, topological
from eshkol.ops.structural import MARK, STOP
from eshkol.support.references import ALONE
from eshkol.tensors.tape import TAPE, detached
from eshkol.tensors.value import Tensor, as_node

_TAKEN = lift(0)  # what a handle holds while its value is out


def _second(node: Node) -> Node:
    """Another node of the same memory."""
    return node if node.data is None else buffer(node.data, node.dtype, loose=node.device is None)


def is_marked(tensor: Tensor) -> bool:
    """Whether a tensor is a leaf that requires grad."""
    node = tensor._node
    return node.op is MARK and node.attrs.scope is TAPE and TAPE not in node.inputs[0].scopes


def bare(tensor: Tensor) -> Tensor:
    """The value of a tensor without the mark of one that requires grad, or without its history."""
    return Tensor(_bare_node(tensor))


def _bare_node(tensor: Tensor) -> Node:
    node = tensor._node
    if not node.scopes:
        return node
    return node.inputs[0] if is_marked(tensor) else detached(node)


def fits(name: str, value: Tensor, tensor: Tensor) -> None:
    """Refuse a value of another shape or dtype than the tensor that is to stand for it."""
    if value.shape != tensor.shape:
        raise ShapeError(f"{name} has shape {list(tensor.shape)}, and was given {list(value.shape)}", span=here())
    if value.dtype is not tensor.dtype:
        raise DTypeError(
            f"{name} is {tensor.dtype}, and was given {value.dtype}", span=here(),
            hint=f"cast it: x.astype(ek.{tensor.dtype})",
        )  # fmt: skip


def differentiated(result: Tensor, tensors: Sequence[Tensor]) -> list[bool]:
    """Which tensors a result has a derivative with respect to: those it was computed from, not through a stop."""
    below = set(topological([result._node], through=lambda node: () if node.op is STOP else all_inputs(node)))
    return [tensor._node in below for tensor in tensors]


@contextmanager
def standing_for(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> Iterator[None]:
    """Within it each tensor stands for a value; changes in place are of that alone, and are gone afterwards."""
    earlier = [tensor._node for tensor in tensors]
    try:
        for tensor, value in zip(tensors, values, strict=True):
            tensor._become(as_node(value))
        yield
    finally:
        for tensor, node in zip(tensors, earlier, strict=True):
            tensor._become(node)


class Taken:
    """Values out of their tensors, so that a call may be given their memory.

    What others hold too (a state that was taken, `weight.detach()`) stays theirs: the call is given a second node of
    the same memory, which it then sees is not its own. `put` gives the tensors new values; `put_back` the old ones, as
    far as no call has used them up.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._marked = [is_marked(tensor) for tensor in tensors]
        self._nodes: list[Node] = [_bare_node(tensor) for tensor in tensors]
        for tensor in tensors:
            tensor._become(_TAKEN)

    def values(self) -> list[Tensor]:
        return [Tensor(node if getrefcount(node) <= ALONE else _second(node)) for node in self._nodes]

    def put(self, values: Sequence[Tensor]) -> None:
        for tensor, marked, value in zip(self._tensors, self._marked, values, strict=True):
            tensor._become(value._node)
            if marked:
                tensor._mark()
        self._nodes = []

    def put_back(self) -> None:
        self.put([Tensor(node) for node in self._nodes])


def put(tensor: Tensor, value: Tensor, name: str = "a tensor") -> None:
    """Give a tensor another value, in place: of the same shape and dtype, without a history, where the tensor is."""
    fits(name, value, tensor)
    marked = is_marked(tensor)
    tensor._become(detached(as_node(value.to(tensor.device))))
    if marked:
        tensor._mark()
