"""`jax.scipy.stats.norm`: the normal distribution's density and its kin.

Comes in: points, a mean and a standard deviation. Goes out: tensors.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from eshkol.tensors import api as ek


def _logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    z = (ek.asarray(x) - loc) / scale
    return -ek.square(z) / 2 - ek.log(ek.asarray(scale) * 1.0) - math.log(2 * math.pi) / 2


def _pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return ek.exp(_logpdf(x, loc, scale))


def _cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return ek.ndtr((ek.asarray(x) - loc) / scale)


def _logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return ek.log(_cdf(x, loc, scale))


def _ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    return ek.ndtri(q) * scale + loc


norm = SimpleNamespace(logpdf=_logpdf, pdf=_pdf, cdf=_cdf, logcdf=_logcdf, ppf=_ppf)

__all__ = ["norm"]
