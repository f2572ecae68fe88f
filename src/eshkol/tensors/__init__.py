"""What a Python user holds: `Tensor`, the functions on it, and the transformations of functions.

`import eshkol as ek` finds everything here under `ek.`; this package is imported when the first name is asked for.
(It is called tensors, because `ek.tensor` is the function that makes one.)
"""

from __future__ import annotations

from typing import Any

from eshkol.errors import EshkolError
from eshkol.graph.node import Node
from eshkol.ops import dtypes as _dtypes
from eshkol.ops.masks import Ways
from eshkol.schedule.check.switch import CHECKS, check
from eshkol.schedule.run import places
from eshkol.schedule.run.execute import check_nan, compute, set_check_nan
from eshkol.schedule.run.resident import transfers
from eshkol.tensors import at as _at  # noqa: F401  (puts `at` on Tensor)
from eshkol.tensors import devices, random
from eshkol.tensors import learning as _learning  # noqa: F401  (which C asks)
from eshkol.tensors.autograd import enable_grad, no_grad
from eshkol.tensors.control import cond, fori_loop, scan, while_loop
from eshkol.tensors.custom import checkpoint, custom_jvp, custom_vjp
from eshkol.tensors.devices import autotune, device, set_device
from eshkol.tensors.draws import key
from eshkol.tensors.export import export_native
from eshkol.tensors.export_pages import export_wasm, export_webgpu
from eshkol.tensors.functions import FUNCTIONS
from eshkol.tensors.jit import jit
from eshkol.tensors.keys import Generator, seed
from eshkol.tensors.make import asarray, device_put, from_dlpack, from_numpy, tensor
from eshkol.tensors.precision import default_dtype, get_default_dtype, set_default_dtype
from eshkol.tensors.pytree import flatten as tree_flatten
from eshkol.tensors.pytree import leaves as tree_leaves
from eshkol.tensors.pytree import register as register_pytree
from eshkol.tensors.pytree import tree_map
from eshkol.tensors.torch_names import NAMES as TORCH_NAMES
from eshkol.tensors.transforms import (
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from eshkol.tensors.usage import memory_report, memory_usage, peak_memory_allocated, reset_peak_memory
from eshkol.tensors.value import Tensor
from eshkol.tensors.ways import ShapeDtypeStruct, associative_scan, eval_shape, switch

Node.evaluator = staticmethod(lambda node: compute([node]))
Ways.held, Ways.within = staticmethod(places.held), staticmethod(places.within)
CHECKS.reference = staticmethod(lambda: devices.open_backend("reference"))

_OWN = (
    EshkolError, Generator, Tensor, asarray, autotune, check, check_nan, checkpoint, cond, custom_jvp, custom_vjp,
    default_dtype, device, device_put, enable_grad, export_native, export_wasm, export_webgpu, fori_loop, from_dlpack,
    from_numpy, get_default_dtype, grad, hessian, jacobian, jit, jvp, key, linearize, memory_report, memory_usage,
    no_grad, peak_memory_allocated, reset_peak_memory, scan, seed, set_check_nan, set_default_dtype, set_device,
    stop_gradient, tensor, transfers, tree_map, value_and_grad, vjp, vmap, while_loop,
    ShapeDtypeStruct, associative_scan, eval_shape, jacfwd, jacrev, switch,
)  # fmt: skip

NAMES: dict[str, Any] = (
    dict(FUNCTIONS)
    | {d.name.rstrip("_"): d for d in _dtypes.ALL}
    | {"bool_": _dtypes.bool_, "float_": _dtypes.float32}
    | {"random": random}
    | {"tree_flatten": tree_flatten, "tree_leaves": tree_leaves, "register_pytree": register_pytree}
    | {thing.__name__: thing for thing in _OWN}
    | {"remat": checkpoint}
    | {"set_backend": set_device, "use_backend": device}  # by what computes there
    | TORCH_NAMES
)
"""Everything that `ek.` offers."""
