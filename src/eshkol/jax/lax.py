"""`ek.lax`: what stands under jax.numpy in JAX, by its names: loops and branches, slices, convolutions, elementwise.

Comes in: tensors, numbers, functions. Goes out: tensors. Most names are rows of the op table (`ROWS`, `RENAMED`); the
rest stand in `functions/`. Collectives over named axes and the general gather and scatter are refused, with what to
use instead (`missing.py`). Types stand in lax.pyi, which `make generate` writes.
"""

from __future__ import annotations

from eshkol.jax.functions import convolutions, lax
from eshkol.jax.missing import refusing
from eshkol.jax.tables import table

ROWS = """
abs add asin acos atan atan2 asinh acosh atanh bitwise_and bitwise_or bitwise_xor bitwise_not ceil complex conj cos cosh
digamma div erf erfc exp exp2 expm1 expand_dims floor full full_like imag lgamma log log1p mul neg polygamma pow real
reciprocal round rsqrt shift_left sign sin sinh sqrt square squeeze sub tan tanh stop_gradient switch associative_scan
"""
RENAMED = {
    "batch_matmul": "matmul", "eq": "equal", "ne": "not_equal", "ge": "greater_equal", "gt": "greater",
    "le": "less_equal", "lt": "less", "erf_inv": "erfinv", "is_finite": "isfinite", "logistic": "sigmoid",
    "max": "maximum", "min": "minimum", "reduce_sum": "sum",
    "reduce_prod": "prod", "rem": "fmod", "rev": "flip", "shift_right_arithmetic": "shift_right",
    "transpose": "permute",
}  # fmt: skip

_NAMES = table(ROWS, RENAMED, lax, convolutions)
globals().update(_NAMES)
__all__ = sorted(_NAMES)
__getattr__ = refusing("lax", __all__)
