"""`ek.jnp`: NumPy's functions on tensors, as jax.numpy has them.

Comes in: tensors, arrays, numbers, lists. Goes out: tensors. Rows of the op table that NumPy calls alike are named in
`ROWS`, those under another name in `RENAMED`; where NumPy's arguments differ there is a function in `functions/`. What
is not here is refused (`missing.py`). Floats have the default dtype and integers are int64 unless said, where JAX has
float32 and int32. Types stand in __init__.pyi, which `make generate` writes.
"""

from __future__ import annotations

import math

from eshkol.jax.functions import numpy as arguments_of_numpy
from eshkol.jax.functions import numpy_more
from eshkol.jax.missing import refusing
from eshkol.jax.numpy import fft, linalg
from eshkol.jax.tables import table
from eshkol.tensors.value import Tensor

ROWS = """
abs absolute acos acosh add all allclose any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
argwhere asin asinh atan atan2 atanh bfloat16 bincount bitwise_and bitwise_not bitwise_or bitwise_xor bool_
broadcast_arrays broadcast_to ceil complex128 complex64 concatenate conj copysign cos cosh count_nonzero cross deg2rad
degrees diag diagonal divide dot empty_like equal exp exp2 expand_dims expm1 flip float16 float32 float64 floor
floor_divide fmod full_like greater greater_equal heaviside histogram hstack hypot identity imag inner int16 int32
int64 int8 isclose isfinite isinf isnan kron less less_equal log log10 log1p log2 logaddexp logical_and logical_not
logical_or logical_xor matmul matvec maximum minimum mod moveaxis multiply nan_to_num negative nonzero
not_equal ones_like outer pow power quantile rad2deg radians ravel real reciprocal remainder roll rot90 sign sin sinc
sinh sqrt square squeeze stack subtract swapaxes take_along_axis tan tanh tile trace tril triu true_divide trunc
uint16 uint32 uint64 uint8 unique unstack vdot vecdot vstack zeros_like
"""
RENAMED = {
    "bitwise_invert": "bitwise_not", "concat": "concatenate", "conjugate": "conj",
    "empty": "zeros", "fabs": "absolute", "fix": "trunc", "invert": "bitwise_not", "left_shift": "shift_left",
    "permute_dims": "permute", "right_shift": "shift_right", "row_stack": "vstack",
}  # fmt: skip

_NAMES = table(
    ROWS, RENAMED, arguments_of_numpy, numpy_more, linalg=linalg, fft=fft, ndarray=Tensor, newaxis=None, pi=math.pi,
    e=math.e, inf=math.inf, nan=math.nan, euler_gamma=0.5772156649015329,
)  # fmt: skip
globals().update(_NAMES)
__all__ = sorted(_NAMES)
__getattr__ = refusing("numpy", __all__)
