"""Names of JAX's that are not here, and what to use instead: each module of this package refuses them by name.

Comes in: the name of a module and a name that it does not have. Goes out: an AttributeError that says what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

_NAMED_AXES = "there are no named axes; reduce along the axis that vmap adds, after vmap"
_ONE_MACHINE = "one process computes on one machine; ek.train and ek.jit are for that"
_NO_ROW = "no operation computes it yet"

MISSING: dict[str, dict[str, str]] = {
    "": {
        "make_jaxpr": "there are no jaxprs; ek.eval_shape(f, *args) gives shapes, ek.jit(f).plan(*args) what is run",
        "pmap": _ONE_MACHINE,
        "shard_map": _ONE_MACHINE,
        "sharding": _ONE_MACHINE,
        "distributed": _ONE_MACHINE,
        "config": "dtypes do not depend on a switch: float64 and int64 are always there; pass dtype=",
        "experimental": "nothing here is called experimental; look for the name under ek",
        "pure_callback": "compiled functions do not call Python; compute outside of ek.jit",
        "disable_jit": "call the function itself, without ek.jit",
        "named_scope": "errors and profiles name your own lines",
        "custom_gradient": "use ek.custom_vjp",
        "linear_transpose": "ek.vjp of a linear function is its transpose",
        "profiler": "ek.profile(); see docs/profiling.md",
        "export": "ek.export_native writes a function as a library for C",
        "closure_convert": "what a function reads beside its arguments is differentiated all the same",
    },
    "lax": {
        **dict.fromkeys(
            ("psum", "pmean", "pmax", "pmin", "ppermute", "all_gather", "all_to_all", "axis_index", "pshuffle",
             "psum_scatter", "axis_size"), _NAMED_AXES,
        ),
        "gather": "use x[indices], ek.take or ek.gather",
        "scatter": "use x.at[indices].set(values)",
        "scatter_add": "use x.at[indices].add(values)",
        "scatter_mul": "use x.at[indices].multiply(values)",
        "scatter_min": "use x.at[indices].min(values)",
        "scatter_max": "use x.at[indices].max(values)",
        "reduce": "use ek.sum, ek.prod, ek.max, ek.min, ek.any or ek.all, or ek.associative_scan",
        "reduce_window": "use ek.max_pool2d, ek.avg_pool2d, or ek.sliding_window and a reduction",
        "bitcast_convert_type": "use x.numpy().view(dtype)",
        "reduce_precision": "use x.astype(dtype)",
        "conv_transpose": "use ek.conv_transpose2d, or conv_general_dilated with lhs_dilation",
        "custom_root": "use ek.custom_vjp around the iteration",
        "custom_linear_solve": "use ek.solve, which is differentiable",
        "population_count": _NO_ROW, "clz": _NO_ROW, "nextafter": _NO_ROW, "betainc": _NO_ROW, "igamma": _NO_ROW,
        "igammac": _NO_ROW, "zeta": _NO_ROW, "bessel_i0e": _NO_ROW, "bessel_i1e": _NO_ROW,
        "optimization_barrier": "nothing is moved across ek.checkpoint",
        "rng_bit_generator": "use ek.random.bits(key, shape)",
        "approx_max_k": "use top_k", "approx_min_k": "use top_k of -x",
    },
    "numpy": {
        "i0": _NO_ROW, "nextafter": _NO_ROW, "spacing": _NO_ROW, "gcd": _NO_ROW, "lcm": _NO_ROW, "frexp": _NO_ROW,
        "vectorize": "use ek.vmap", "apply_along_axis": "use ek.vmap", "piecewise": "use select",
        "save": "use ek.io.save_npz", "load": "use ek.io.load_npz", "histogram2d": _NO_ROW, "roots": _NO_ROW,
        "polyfit": "use ek.lstsq of powers", "unpackbits": _NO_ROW, "packbits": _NO_ROW, "fromfunction": "use ek.vmap",
        "digitize": "use ek.searchsorted(boundaries, x, right=True)", "string_": "tensors hold no text",
    },
    "nn": {"scaled_matmul": _NO_ROW, "scaled_dot_general": _NO_ROW},
    "nn.initializers": {},
    "scipy.special": dict.fromkeys(
        ("betainc", "gammainc", "gammaincc", "i0", "i0e", "i1", "i1e", "zeta", "sph_harm", "lpmn", "bessel_jn", "exp1",
         "expi", "expn", "hyp1f1", "fresnel", "spence", "sici"), _NO_ROW,
    ),
    "ops": {},
    "tree": {},
    "tree_util": {},
    "debug": {
        "callback": "compiled functions do not call Python; compute outside of ek.jit",
        "breakpoint": "call the function without ek.jit and use Python's breakpoint()",
    },
}  # fmt: skip


def refusing(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module: names that it does not have, refused with what to use instead."""
    known = list(names)

    def refuse(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        said = MISSING[module].get(name)
        near = difflib.get_close_matches(name, known, 1)
        place = f"eshkol.jax.{module}".rstrip(".")
        hint = f": {said}" if said else f"; did you mean '{near[0]}'?" if near else ""
        raise AttributeError(f"{place} has no '{name}'{hint}")

    return refuse
