"""JAX's names: `import eshkol.jax as jax; import eshkol.jax.numpy as jnp`.

Comes in: programs written by the habit of JAX. Goes out: the tensors and transformations of `ek`, under the names, the
order of arguments and the defaults that JAX has. `ek.lax`, `ek.tree`, `ek.tree_util` and `ek.jnp` are modules of this
package. What is not here is refused by name, with what to use instead (`missing.py`); docs/jax.md says what differs.
Types stand in __init__.pyi, which `make generate` writes.
"""

from __future__ import annotations

from eshkol.jax import debug, lax, nn, numpy, ops, scipy, tree, tree_util
from eshkol.jax.functions import devices
from eshkol.jax.missing import refusing
from eshkol.jax.tables import table
from eshkol.tensors import random
from eshkol.tensors.value import Tensor

ROWS = """
ShapeDtypeStruct checkpoint custom_jvp custom_vjp eval_shape grad hessian jacfwd jacrev jit jvp linearize remat
value_and_grad vjp vmap
"""

_NAMES = table(
    ROWS, {}, devices, Array=Tensor, debug=debug, lax=lax, nn=nn, numpy=numpy, ops=ops, random=random, scipy=scipy,
    tree=tree, tree_util=tree_util,
)  # fmt: skip
globals().update(_NAMES)
__all__ = sorted(_NAMES)
__getattr__ = refusing("", __all__)
