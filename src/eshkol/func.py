"""`ek.func`: transformations of functions under the names that PyTorch has for them; the same as in `ek`."""

from __future__ import annotations

from typing import Any

from eshkol.nn.functional import functional_call as functional_call
from eshkol.tensors import NAMES
from eshkol.tensors.sizes import no_attribute

_SAME = {
    "grad": "grad", "hessian": "hessian", "jvp": "jvp", "linearize": "linearize", "vmap": "vmap",
    "jacrev": "jacobian", "jacfwd": "jacobian",
}  # fmt: skip


def grad_and_value(function: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """A function that gives (gradient, value)."""
    both = NAMES["value_and_grad"](function, argnums, has_aux=has_aux)

    def turned(*args: Any, **given: Any) -> Any:
        value, slope = both(*args, **given)
        return slope, value

    return turned


def __getattr__(name: str) -> Any:
    if name in _SAME:
        return NAMES.get(name, NAMES[_SAME[name]])
    raise no_attribute(name, _SAME, "eshkol.func")
