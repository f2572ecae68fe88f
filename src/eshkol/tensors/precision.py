"""The dtype of floats that are given none, as users ask for it and choose it (support/defaults.py).

Comes in: a dtype or its name. Goes out: tensors and layers that are made from then on without a dtype have it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType


def get_default_dtype() -> DType:
    """The dtype of floats, and of layers, that are given none: float32 in Python, float64 in Scheme, unless chosen."""
    return dtypes.default_float()


def set_default_dtype(dtype: Any) -> None:
    """Let floats and layers without a dtype be of this one from now on: of float16, bfloat16, float32 or float64.

    Each language has a default of its own; what Scheme sets does not change what Python makes.

    >>> ek.set_default_dtype(ek.float64)
    """
    dtypes.set_default_float(dtype)


def default_dtype(dtype: Any) -> AbstractContextManager[None]:
    """Within it, floats and layers without a dtype are of this one, on this thread.

    >>> with ek.default_dtype("float64"):
    ...     model = nn.Linear(2, 3)
    """
    return dtypes.default_as(dtype)
