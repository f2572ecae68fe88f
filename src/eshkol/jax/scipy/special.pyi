"""The names of eshkol.jax.scipy.special. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.special import beta as beta
from eshkol.jax.functions.special import betaln as betaln
from eshkol.jax.functions.special import entr as entr
from eshkol.jax.functions.special import factorial as factorial
from eshkol.jax.functions.special import gamma as gamma
from eshkol.jax.functions.special import gammasgn as gammasgn
from eshkol.jax.functions.special import kl_div as kl_div
from eshkol.jax.functions.special import log_ndtr as log_ndtr
from eshkol.jax.functions.nn import log_softmax as log_softmax
from eshkol.jax.functions.special import logit as logit
from eshkol.jax.functions.nn import logsumexp as logsumexp
from eshkol.jax.functions.special import multigammaln as multigammaln
from eshkol.jax.functions.special import ndtr as ndtr
from eshkol.jax.functions.special import rel_entr as rel_entr
from eshkol.jax.functions.nn import softmax as softmax
from eshkol.jax.functions.special import xlog1py as xlog1py
from eshkol.tensors.methods import TensorLike

__all__ = ["beta", "betaln", "digamma", "entr", "erf", "erfc", "erfinv", "expit", "expm1", "factorial", "gamma", "gammaln", "gammasgn", "kl_div", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "rel_entr", "softmax", "xlog1py", "xlogy"]

def digamma(x: TensorLike) -> Tensor:
    """The derivative of log Γ(x); NaN at the negative integers.

    Arguments:
        x: a tensor
    """
    ...
def erf(x: TensorLike) -> Tensor:
    """The error function.

    Arguments:
        x: a tensor
    """
    ...
def erfc(x: TensorLike) -> Tensor:
    """1 - erf(x), accurate for large x.

    Arguments:
        x: a tensor
    """
    ...
def erfinv(x: TensorLike) -> Tensor:
    """The number whose erf is x; ±inf at ±1, NaN beyond.

    Arguments:
        x: a tensor
    """
    ...
def expit(x: TensorLike) -> Tensor:
    """1 / (1 + e^-x), stable for large |x|.

    Arguments:
        x: a tensor
    """
    ...
def expm1(x: TensorLike) -> Tensor:
    """e^x - 1, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def gammaln(x: TensorLike) -> Tensor:
    """log |Γ(x)|; infinite at 0 and the negative integers.

    Arguments:
        x: a tensor
    """
    ...
def log1p(x: TensorLike) -> Tensor:
    """log(1 + x), accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def ndtri(x: TensorLike) -> Tensor:
    """The number below which x of the normal distribution lies, accurate for small x; ±inf at 0 and 1, NaN beyond.

    Arguments:
        x: a tensor
    """
    ...
def polygamma(n: builtins.int, x: TensorLike) -> Tensor:
    """The n-th derivative of digamma, for n from 0 to 30.

    Arguments:
        n: which derivative
        x: a tensor
    """
    ...
def psi(x: TensorLike) -> Tensor:
    """The derivative of log Γ(x); NaN at the negative integers.

    Arguments:
        x: a tensor
    """
    ...
def xlogy(x: TensorLike, y: TensorLike) -> Tensor:
    """x·log(y), which is 0 where x is 0, whatever y is (unless NaN).

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
