"""The names of eshkol.jax.nn. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.nn import dot_product_attention as dot_product_attention
from eshkol.jax.functions.nn import gelu as gelu
from eshkol.jax.functions.nn import identity as identity
from eshkol.jax import initializers as initializers
from eshkol.jax.functions.nn import log1mexp as log1mexp
from eshkol.jax.functions.nn import log_softmax as log_softmax
from eshkol.jax.functions.nn import logmeanexp as logmeanexp
from eshkol.jax.functions.nn import logsumexp as logsumexp
from eshkol.jax.functions.nn import one_hot as one_hot
from eshkol.jax.functions.nn import softmax as softmax
from eshkol.jax.functions.nn import sparse_plus as sparse_plus
from eshkol.jax.functions.nn import sparse_sigmoid as sparse_sigmoid
from eshkol.jax.functions.nn import squareplus as squareplus
from eshkol.jax.functions.nn import standardize as standardize
from eshkol.tensors.methods import TensorLike

__all__ = ["celu", "dot_product_attention", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish"]

def celu(x: TensorLike, alpha: builtins.float = 1.0) -> Tensor:
    """x where it is positive, else alpha·(e^(x/alpha) - 1).

    Arguments:
        x: a tensor
        alpha: the value that is approached far below 0, with its sign turned
    """
    ...
def elu(x: TensorLike, alpha: builtins.float = 1.0) -> Tensor:
    """x where it is positive, else alpha·(e^x - 1).

    Arguments:
        x: a tensor
        alpha: the value that is approached far below 0, with its sign turned
    """
    ...
def glu(x: TensorLike, axis: builtins.int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def hard_sigmoid(x: TensorLike) -> Tensor:
    """x/6 + 1/2 brought between 0 and 1, where the derivative is 0.

    Arguments:
        x: a tensor
    """
    ...
def hard_silu(x: TensorLike) -> Tensor:
    """x·hard_sigmoid(x): 0 up to -3, x from 3 on.

    Arguments:
        x: a tensor
    """
    ...
def hard_swish(x: TensorLike) -> Tensor:
    """x·hard_sigmoid(x): 0 up to -3, x from 3 on.

    Arguments:
        x: a tensor
    """
    ...
def hard_tanh(x: TensorLike, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
    """x brought between min_val and max_val, where the derivative is 0.

    Arguments:
        x: a tensor
        min_val: the least value
        max_val: the greatest value
    """
    ...
def leaky_relu(x: TensorLike, negative_slope: builtins.float = 0.01) -> Tensor:
    """x where it is positive, else x times a small slope (as at 0).

    Arguments:
        x: a tensor
        negative_slope: the slope where x is negative
    """
    ...
def log_sigmoid(x: TensorLike) -> Tensor:
    """log(sigmoid(x)), without overflow.

    Arguments:
        x: a tensor
    """
    ...
def mish(x: TensorLike) -> Tensor:
    """x·tanh(softplus(x)).

    Arguments:
        x: a tensor
    """
    ...
def relu(x: TensorLike) -> Tensor:
    """x where it is positive, else 0; the derivative at 0 is 0. NaN stays.

    Arguments:
        x: a tensor
    """
    ...
def relu6(x: TensorLike) -> Tensor:
    """relu that stops at 6; the derivative at 0 and 6 is 0.

    Arguments:
        x: a tensor
    """
    ...
def selu(x: TensorLike) -> Tensor:
    """elu scaled so that a normal distribution keeps mean 0 and variance 1.

    Arguments:
        x: a tensor
    """
    ...
def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + e^-x), stable for large |x|.

    Arguments:
        x: a tensor
    """
    ...
def silu(x: TensorLike) -> Tensor:
    """x·sigmoid(x).

    Arguments:
        x: a tensor
    """
    ...
def soft_sign(x: TensorLike) -> Tensor:
    """x / (1 + |x|).

    Arguments:
        x: a tensor
    """
    ...
def softplus(x: TensorLike, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> Tensor:
    """log(1 + e^(beta·x))/beta, without overflow; above a threshold of beta·x, if one is given, x itself.

    Arguments:
        x: a tensor
        beta: how sharp the bend is
        threshold: where the one rule ends and the other begins
    """
    ...
def swish(x: TensorLike) -> Tensor:
    """x·sigmoid(x).

    Arguments:
        x: a tensor
    """
    ...
