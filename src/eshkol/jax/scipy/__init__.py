"""`jax.scipy`: special functions, linear algebra and densities by SciPy's names; modules of their own."""

from __future__ import annotations

from eshkol.jax.scipy import linalg as linalg
from eshkol.jax.scipy import special as special
from eshkol.jax.scipy import stats as stats

__all__ = ["linalg", "special", "stats"]
