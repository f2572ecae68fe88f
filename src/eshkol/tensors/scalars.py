"""`Scalar`: a number that is not known yet, or that is being differentiated.

Scheme's numbers and the floats given to `jit(..., floats=True)` become inputs of a trace or of a derivative. There they
are tensors without axes, and yet must do what numbers do: among themselves they are computed in 64 bits, and where one
meets a tensor it takes that tensor's dtype, so that a learning rate does not turn float32 parameters into float64.

In: an op whose operands have a Scalar among them (`value.operate` finds out). Out: a Scalar where all operands were
numbers and the result is one; else a tensor, the same as if the numbers had been known.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from eshkol.graph.node import Node, constant
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.elementwise import cast
from eshkol.ops.row import Op
from eshkol.tensors.tape import detached
from eshkol.tensors.value import Tensor, as_node, operate

NUMBERS = (bool, int, float, complex, Fraction)


class Scalar(Tensor):
    """A number as a tensor without axes, float64 or complex128, that takes the dtype of the tensors it meets."""

    __slots__ = ("given",)

    _is_number = True
    given: Any  # the number that it was made of, where that is known

    def __init__(self, node: Node, given: Any = None) -> None:
        super().__init__(node)
        self.given = given

    def _as_tensor(self) -> Node:
        return _cast(self._settled(), dtypes.default(self.dtype.kind))

    def _operate_beside(self, op: Op, args: Sequence[Any], given: dict[str, Any]) -> Any:
        return operate_with_scalars(op, args, given)

    def detach(self) -> Scalar:
        return Scalar(detached(self._node), self.given)

    def clone(self) -> Scalar:
        return Scalar(self._node, self.given)

    @property
    def known(self) -> bool:
        """Whether nothing that is at work depends on it, so that it may become a number."""
        return is_known(self._node)


def is_known(node: Node) -> bool:
    return not any(s.open for s in node.scopes)


def number_node(number: Any) -> Node:
    """A number as a node of 64 bits for each part."""
    if isinstance(number, complex):
        return constant(number, dtypes.complex128)
    return constant(float(number), dtypes.float64)


def scalar_node(tensor: Tensor) -> Node:
    """A tensor without axes as a node of that width."""
    return _cast(tensor._settled(), dtypes.complex128 if tensor.dtype.is_complex else dtypes.float64)


def as_number(scalar: Scalar) -> Any:
    """The Python number, or the Scalar itself where it is not known or still needed."""
    return scalar.item() if scalar.known else scalar


def _cast(node: Node, dtype: DType) -> Node:
    if node.dtype is dtype:
        return node
    result = cast(node, dtype)
    assert isinstance(result, Node)
    return result


def operate_with_scalars(op: Op, args: Sequence[Any], given: dict[str, Any]) -> Any:
    """An op some of whose operands are Scalars."""
    operands = [*args, *given.values()]
    flat = [x for a in operands for x in (a if isinstance(a, tuple | list) else (a,))]
    others = [as_node(x).dtype for x in flat if isinstance(x, Tensor | np.ndarray) and not isinstance(x, Scalar)]
    if others:
        return _operate_as(op, args, given, reduce(dtypes.promote, others))
    result = _operate_as(op, args, given, None)
    if type(result) is Tensor and not result.shape and result.dtype in (dtypes.float64, dtypes.complex128):
        return Scalar(result._node)
    if (isinstance(result, Tensor) and result.dtype.differentiable) or isinstance(result, tuple | list):
        return _operate_as(op, args, given, dtypes.default_float())  # a tensor that is made of numbers alone
    return result


def _operate_as(op: Op, args: Sequence[Any], given: dict[str, Any], dtype: DType | None) -> Any:
    """The op with Scalars as tensors of the dtype that numbers have beside this one; None: of their own."""

    def changed(x: Any) -> Any:
        if isinstance(x, Scalar):
            node = x._settled()
            if dtype is not None:
                node = _cast(node, dtypes.promote_number(dtype, 1j if node.dtype.is_complex else 1.0))
            return Tensor(node)
        return type(x)(map(changed, x)) if type(x) in (tuple, list) else x

    return operate(op, tuple(map(changed, args)), {name: changed(x) for name, x in given.items()})
