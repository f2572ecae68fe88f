"""Tensors of random numbers, for Scheme: `(random-tensor '(2 3) 'normal)` and its like.

Comes in: a shape, and a distribution with its parameters. Goes out: a tensor, drawn by the row of the distribution.
"""

from __future__ import annotations

from typing import Any

from eshkol.bindings.procedures import row
from eshkol.bindings.rows import attribute, shown
from eshkol.errors import DTypeError, TensorError
from eshkol.ops import TABLE
from eshkol.tensors.value import Tensor


def tensor_of(shape: Any, *, key: Any = None, dtype: Any = None) -> Tensor:
    """A tensor of numbers from 0 to below 1."""
    return _drawn("uniform", shape, [], {"dtype": dtype, **({} if key is None else {"key": key})})


def matrix_of(rows: Any, columns: Any, **given: Any) -> Tensor:
    """A matrix of numbers from 0 to below 1."""
    return tensor_of([rows, columns], **given)


def distributed(shape: Any, distribution: Any = "uniform", *params: Any, **given: Any) -> Tensor:
    """A tensor of draws from a distribution, a symbol such as normal, with its parameters or a list of them."""
    op = TABLE.get(str(distribution).replace("-", "_"))
    if not isinstance(distribution, str) or op is None or not op.random or "shape" not in op.signature.parameters:
        known = [op.name.replace("_", "-") for op in TABLE.values() if op.random and "shape" in op.signature.parameters]
        raise TensorError(f"there is no distribution {shown(distribution)}", hint=f"distributions: {', '.join(known)}")
    if len(params) == 1 and isinstance(params[0], list):
        params = tuple(params[0])
    return _drawn(op.name, shape, params, given)


def coins(shape: Any, p: Any = 0.5, *, key: Any = None, dtype: Any = None) -> Tensor:
    """A tensor of ones with probability p, and of zeros."""
    return _drawn("bernoulli", shape, [p], {"dtype": dtype, **({} if key is None else {"key": key})})


def _drawn(name: str, shape: Any, params: Any, given: dict[str, Any]) -> Tensor:
    shape = attribute(shape, TABLE["zeros"].signature.parameters["shape"])
    if not isinstance(shape, int | tuple):
        raise DTypeError(f"a shape is an integer or a list of integers, not {shown(shape)}")
    result = row(name)(*params, shape=list(shape) if isinstance(shape, tuple) else [shape], **given)
    assert isinstance(result, Tensor)
    return result
