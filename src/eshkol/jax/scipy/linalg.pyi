"""The names of eshkol.jax.scipy.linalg. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.scipy_linalg import block_diag as block_diag
from eshkol.jax.functions.scipy_linalg import cho_factor as cho_factor
from eshkol.jax.functions.scipy_linalg import cho_solve as cho_solve
from eshkol.jax.functions.scipy_linalg import cholesky as cholesky
from eshkol._names import det as det
from eshkol._names import expm as expm
from eshkol._names import inv as inv
from eshkol._names import qr as qr
from eshkol._names import solve as solve
from eshkol.jax.functions.scipy_linalg import solve_triangular as solve_triangular
from eshkol._names import svd as svd

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "expm",
    "inv",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
]

