"""`jax.nn`: activations and their kin as functions, by JAX's names and defaults.

Comes in: tensors. Goes out: tensors. Most are rows of the op table; the rest stands in `functions/nn.py`.
`initializers` makes first values of weights. Types stand in nn.pyi, which `make generate` writes.
"""

from __future__ import annotations

from eshkol.jax import initializers
from eshkol.jax.functions import nn
from eshkol.jax.missing import refusing
from eshkol.jax.tables import table

ROWS = """
celu elu glu hard_sigmoid hard_swish hard_tanh leaky_relu log_sigmoid mish relu relu6 selu sigmoid silu softplus swish
"""
RENAMED = {"hard_silu": "hard_swish", "soft_sign": "softsign"}

_NAMES = table(ROWS, RENAMED, nn, initializers=initializers)
globals().update(_NAMES)
__all__ = sorted(_NAMES)
__getattr__ = refusing("nn", __all__)
