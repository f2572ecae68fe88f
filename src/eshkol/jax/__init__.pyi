"""The names of eshkol.jax.__init__. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.tensors.value import Tensor as Array
from eshkol.tensors.ways import ShapeDtypeStruct as ShapeDtypeStruct
from eshkol.jax.functions.devices import block_until_ready as block_until_ready
from eshkol.tensors.custom import checkpoint as checkpoint
from eshkol.tensors.custom import custom_jvp as custom_jvp
from eshkol.tensors.custom import custom_vjp as custom_vjp
from eshkol.jax import debug as debug
from eshkol.jax.functions.devices import device_get as device_get
from eshkol.jax.functions.devices import device_put as device_put
from eshkol.tensors.ways import eval_shape as eval_shape
from eshkol.tensors.transforms import grad as grad
from eshkol.tensors.transforms import hessian as hessian
from eshkol.tensors.transforms import jacfwd as jacfwd
from eshkol.tensors.transforms import jacrev as jacrev
from eshkol.tensors.jit import jit as jit
from eshkol.tensors.transforms import jvp as jvp
from eshkol.jax import lax as lax
from eshkol.tensors.transforms import linearize as linearize
from eshkol.jax import nn as nn
from eshkol.jax import numpy as numpy
from eshkol.jax import ops as ops
from eshkol.tensors import random as random
from eshkol.tensors.custom import checkpoint as remat
from eshkol.jax import scipy as scipy
from eshkol.jax import tree as tree
from eshkol.jax import tree_util as tree_util
from eshkol.jax.functions.devices import typeof as typeof
from eshkol.tensors.transforms import value_and_grad as value_and_grad
from eshkol.tensors.transforms import vjp as vjp
from eshkol.tensors.torch_names import vmapped as vmap

__all__ = [
    "Array",
    "ShapeDtypeStruct",
    "block_until_ready",
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "device_get",
    "device_put",
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linearize",
    "nn",
    "numpy",
    "ops",
    "random",
    "remat",
    "scipy",
    "tree",
    "tree_util",
    "typeof",
    "value_and_grad",
    "vjp",
    "vmap",
]

