"""`jax.scipy.linalg`: linear algebra by SciPy's names.

Comes in and goes out: tensors. Types stand in linalg.pyi, which `make generate` writes.
"""

from __future__ import annotations

from eshkol.jax.functions import scipy_linalg
from eshkol.jax.tables import table

_NAMES = table("det expm inv qr solve svd", {}, scipy_linalg)
globals().update(_NAMES)
__all__ = sorted(_NAMES)
