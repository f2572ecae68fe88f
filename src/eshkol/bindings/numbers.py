"""Numbers and tensors together: what Scheme's numeric procedures, equal? and the hashes ask of Python.

Comes in: tensors and Python's numbers. Goes out: tensors, numbers, truth. Procedures that are rows of the op table are
called as such (`op:add`); here is what stands around them. Functions are found by the names in bindings/registry.py.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np

from eshkol.calculus.rules import SAID
from eshkol.errors import TraceError
from eshkol.graph.node import here, noted
from eshkol.ops import TABLE, dtypes
from eshkol.tensors.branches import Branches
from eshkol.tensors.scalars import Scalar, number_node
from eshkol.tensors.value import Tensor, as_node, operate_at, wrapped

HASHED = 1 << 12  # elements that a hash looks at, at most


def comparison(name: str) -> Callable[[Any, Any], Any]:
    """A comparison: true or false where the result has no axes, else a tensor of truth values."""
    op = TABLE[name]

    def compare(x: Any, y: Any) -> Any:
        result = operate_at(op, (x, y), {}, None)
        return result if result.shape else truth(result, f"(tensor-{name.replace('_', '-')} x y)")

    compare.__name__ = name
    return compare


def truth(tensor: Tensor, instead: str) -> bool:
    """Whether a tensor without axes says that something is so; `instead` is said where no one knows yet."""
    scope = next((s for s in tensor._node.scopes if s.open and s.kind == "trace"), None)
    if scope is None:
        return bool(tensor._array())
    branches = Branches.deciding(tensor._node)
    if branches is not None:  # tensor-map runs the procedure on both ways
        return branches.truth(tensor)
    raise TraceError(
        f"whether it is so is not known inside {scope.name}", span=here(),
        hint=f"{instead} stays a tensor, by which tensor-where chooses",
    )  # fmt: skip


def said(name: str) -> Callable[..., Any]:
    """A procedure that is said with rows (`calculus.rules`)."""
    formula = next(formula for known, _, _, formula in SAID if known == name)

    @noted
    def calculate(*args: Any) -> Any:
        if any(type(x) is Scalar for x in args) and not any(type(x) is Tensor for x in args):
            return Scalar(formula(*(x._node if type(x) is Scalar else number_node(x) for x in args)))
        return wrapped(formula(*map(as_node, args)))

    calculate.__name__ = name
    return calculate


def number(tensor: Tensor) -> Any:
    """The number that a tensor without axes is; False where it has axes. Truth counts as 1 and 0."""
    if tensor.shape:
        return False
    found = tensor.item()
    return int(found) if isinstance(found, bool) else found


def inexact(tensor: Tensor) -> Any:
    """The same as a float or complex number; a tensor where it is being traced or differentiated."""
    if tensor.shape:
        return False
    try:
        found = tensor.item()
    except TraceError:
        return (
            tensor
            if tensor.dtype.differentiable
            else operate_at(TABLE["cast"], (tensor, dtypes.default_float()), {}, None)
        )
    return found if isinstance(found, complex) else float(found)


def _bits(tensor: Tensor) -> Any:
    """The elements in a row, as integers that tell -0.0 from 0.0 and nothing of NaN but that it is one."""
    array = np.ascontiguousarray(tensor._array()).reshape(-1)
    if tensor.dtype.is_complex:
        array = array.view(tensor.dtype.real.numpy)
    if tensor.dtype.differentiable:
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.view(f"u{array.dtype.itemsize}")


def same(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors have one dtype, one shape and the same elements, as eqv? has it."""
    if x.dtype is not y.dtype or x.shape != y.shape:
        return False
    return x._node is y._node or bool(np.array_equal(_bits(x), _bits(y)))


def hashed(tensor: Tensor) -> int:
    """63 bits that are the same for the same tensors."""
    bits = _bits(tensor)
    kept = bits[:: max(1, len(bits) // HASHED)]
    digest = blake2b(repr((tensor.dtype, tensor.shape)).encode() + kept.tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
