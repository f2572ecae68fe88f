"""`jnp.linalg`: linear algebra by NumPy's names.

Comes in and goes out: tensors. Most are rows of the op table; results in tuples have the order of NumPy's, without
names. Types stand in linalg.pyi, which `make generate` writes.
"""

from __future__ import annotations

from eshkol.jax.functions import linalg
from eshkol.jax.tables import table

ROWS = """
cholesky cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power matrix_rank outer pinv
qr slogdet solve svdvals tensordot trace vecdot
"""

_NAMES = table(ROWS, {"vector_norm": "norm"}, linalg)
globals().update(_NAMES)
__all__ = sorted(_NAMES)
