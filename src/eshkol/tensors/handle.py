"""`Handle`: a tensor as the modules see it that `Tensor` itself stands on.

Computing, showing, windows and other libraries are told of tensors without knowing their class: `value.py` imports
them, and they import this. Whatever is written here, `Tensor` has; mypy compares the two.
"""

from __future__ import annotations

from typing import Any, Protocol

from eshkol.graph.node import Node
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Op, Shape


class Handle(Protocol):
    """What holds a node of the graph, and gives its value out."""

    _node: Node

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> DType: ...

    @property
    def size(self) -> int: ...

    @property
    def requires_grad(self) -> bool: ...

    def numpy(self) -> Any: ...

    def _array(self) -> Any: ...

    def _leave(self, how: str) -> None: ...

    def _settled(self) -> Node: ...

    def _replace(self, value: Any, what: str) -> Any: ...

    def _operated(self, op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any: ...


class NotForUs(Exception):
    """An operand of a type that tensors do not know."""


class ScalarMet(Exception):
    """Among the operands is a number that is being differentiated or traced."""

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar
