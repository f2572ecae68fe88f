"""`jax.scipy.special`: special functions by SciPy's names.

Comes in and goes out: tensors. What no row computes yet (incomplete gamma and beta, Bessel functions) is refused. Types
stand in special.pyi, which `make generate` writes.
"""

from __future__ import annotations

from eshkol.jax.functions import nn, special
from eshkol.jax.missing import refusing
from eshkol.jax.tables import table

ROWS = "digamma erf erfc erfinv expm1 log1p ndtr ndtri polygamma xlogy"
RENAMED = {"expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma"}

_NAMES = table(
    ROWS, RENAMED, special, softmax=nn.softmax, log_softmax=nn.log_softmax, logsumexp=nn.logsumexp
)  # fmt: skip
globals().update(_NAMES)
__all__ = sorted(_NAMES)
__getattr__ = refusing("scipy.special", __all__)
