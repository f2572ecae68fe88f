"""The names of eshkol.jax.nn. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol._names import celu as celu
from eshkol.jax.functions.nn import dot_product_attention as dot_product_attention
from eshkol._names import elu as elu
from eshkol.jax.functions.nn import gelu as gelu
from eshkol._names import glu as glu
from eshkol._names import hard_sigmoid as hard_sigmoid
from eshkol._names import hard_swish as hard_silu
from eshkol._names import hard_swish as hard_swish
from eshkol._names import hard_tanh as hard_tanh
from eshkol.jax.functions.nn import identity as identity
from eshkol.jax import initializers as initializers
from eshkol._names import leaky_relu as leaky_relu
from eshkol.jax.functions.nn import log1mexp as log1mexp
from eshkol._names import log_sigmoid as log_sigmoid
from eshkol.jax.functions.nn import log_softmax as log_softmax
from eshkol.jax.functions.nn import logmeanexp as logmeanexp
from eshkol.jax.functions.nn import logsumexp as logsumexp
from eshkol._names import mish as mish
from eshkol.jax.functions.nn import one_hot as one_hot
from eshkol._names import relu as relu
from eshkol._names import relu6 as relu6
from eshkol._names import selu as selu
from eshkol._names import sigmoid as sigmoid
from eshkol._names import silu as silu
from eshkol._names import softsign as soft_sign
from eshkol.jax.functions.nn import softmax as softmax
from eshkol._names import softplus as softplus
from eshkol.jax.functions.nn import sparse_plus as sparse_plus
from eshkol.jax.functions.nn import sparse_sigmoid as sparse_sigmoid
from eshkol.jax.functions.nn import squareplus as squareplus
from eshkol.jax.functions.nn import standardize as standardize
from eshkol._names import swish as swish

__all__ = [
    "celu",
    "dot_product_attention",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
]

