"""Parameters, gradients and numbers of optimizers, as Scheme gives them: tensors, or numbers of its own.

Comes in: one value. Goes out: a tensor (`as_leaf`) or a number of Python's (`as_number`), or an error that says what
was wanted.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from eshkol.bindings.forms import number
from eshkol.bindings.rows import shown
from eshkol.errors import DTypeError
from eshkol.ops import dtypes
from eshkol.tensors.make import tensor
from eshkol.tensors.value import Tensor


def as_leaf(given: Any, what: str) -> Any:
    """A parameter, a gradient or what is remembered, as a tensor; numbers in 64 bits."""
    if isinstance(given, Tensor):
        return given
    if type(given) in (int, float, Fraction):
        return tensor(float(given), dtypes.float64)
    raise DTypeError(f"{what} are tensors or numbers, and not {shown(given)}")


def as_number(name: str, given: Any) -> Any:
    """A number that is called so; one that is differentiated or traced stays what it is."""
    if isinstance(given, Tensor) and not given.shape:
        return number(given)
    if type(given) in (int, float, Fraction):
        return float(given)
    raise DTypeError(f"{name} is a number, and not {shown(given)}")
