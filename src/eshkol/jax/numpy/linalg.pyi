"""The names of eshkol.jax.numpy.linalg. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol._names import cholesky as cholesky
from eshkol.jax.functions.linalg import cond as cond
from eshkol._names import cross as cross
from eshkol._names import det as det
from eshkol._names import diagonal as diagonal
from eshkol._names import eig as eig
from eshkol._names import eigh as eigh
from eshkol._names import eigvals as eigvals
from eshkol._names import eigvalsh as eigvalsh
from eshkol._names import inv as inv
from eshkol._names import lstsq as lstsq
from eshkol._names import matmul as matmul
from eshkol._names import matrix_norm as matrix_norm
from eshkol._names import matrix_power as matrix_power
from eshkol._names import matrix_rank as matrix_rank
from eshkol.jax.functions.linalg import matrix_transpose as matrix_transpose
from eshkol.jax.functions.linalg import multi_dot as multi_dot
from eshkol.jax.functions.linalg import norm as norm
from eshkol._names import outer as outer
from eshkol._names import pinv as pinv
from eshkol._names import qr as qr
from eshkol._names import slogdet as slogdet
from eshkol._names import solve as solve
from eshkol.jax.functions.linalg import svd as svd
from eshkol._names import svdvals as svdvals
from eshkol._names import tensordot as tensordot
from eshkol._names import trace as trace
from eshkol._names import vecdot as vecdot
from eshkol._names import norm as vector_norm

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

