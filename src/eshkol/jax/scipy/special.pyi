"""The names of eshkol.jax.scipy.special. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.special import beta as beta
from eshkol.jax.functions.special import betaln as betaln
from eshkol._names import digamma as digamma
from eshkol.jax.functions.special import entr as entr
from eshkol._names import erf as erf
from eshkol._names import erfc as erfc
from eshkol._names import erfinv as erfinv
from eshkol._names import sigmoid as expit
from eshkol._names import expm1 as expm1
from eshkol.jax.functions.special import factorial as factorial
from eshkol.jax.functions.special import gamma as gamma
from eshkol._names import lgamma as gammaln
from eshkol.jax.functions.special import gammasgn as gammasgn
from eshkol.jax.functions.special import kl_div as kl_div
from eshkol._names import log1p as log1p
from eshkol.jax.functions.special import log_ndtr as log_ndtr
from eshkol.jax.functions.nn import log_softmax as log_softmax
from eshkol.jax.functions.special import logit as logit
from eshkol.jax.functions.nn import logsumexp as logsumexp
from eshkol.jax.functions.special import multigammaln as multigammaln
from eshkol._names import ndtr as ndtr
from eshkol._names import ndtri as ndtri
from eshkol._names import polygamma as polygamma
from eshkol._names import digamma as psi
from eshkol.jax.functions.special import rel_entr as rel_entr
from eshkol.jax.functions.nn import softmax as softmax
from eshkol.jax.functions.special import xlog1py as xlog1py
from eshkol._names import xlogy as xlogy

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "expm1",
    "factorial",
    "gamma",
    "gammaln",
    "gammasgn",
    "kl_div",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
]

