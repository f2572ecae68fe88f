"""Mixed precision: which dtype layers multiply in.

Within `autocast("bfloat16")` layers that multiply matrices (linear, convolutions, attention, recurrent) cast what they
multiply with `lowered`; normalizations and losses cast what they are given back with `raised`. Parameters stay as they
are, and so do their gradients. Each thread has its own setting; outside of it nothing is cast.

A function that is compiled keeps the setting with which it was traced: enter `autocast` inside of it.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import wraps
from typing import Any

from eshkol.errors import DTypeError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

# The dtype in which products are computed, if any; it goes along where a call is done on another thread, as calls of
# Scheme are.
_setting: ContextVar[Any] = ContextVar("autocast", default=None)


def dtype_of(given: Any) -> Any:
    """The dtype that a dtype, or a name of one, means; it must be a float."""
    found = ek.empty((0,), dtype=given).dtype
    if not found.is_float:
        raise DTypeError(f"a layer computes with floats, not {found}", span=ek.here(), hint="float32, bfloat16 …")
    return found


class autocast:
    """Within it (or within a function it decorates) products of layers are computed in a dtype; None for none.

    >>> with nn.autocast("bfloat16"):
    ...     loss = ek.cross_entropy(model(x), y)
    """

    def __init__(self, dtype: Any = "bfloat16") -> None:
        self._dtype = None if dtype is None else dtype_of(dtype)
        self._earlier: list[Any] = []  # one may be entered again within itself

    def __enter__(self) -> None:
        self._earlier.append(_setting.get())
        _setting.set(self._dtype)

    def __exit__(self, *error: object) -> None:
        _setting.set(self._earlier.pop())

    def __call__(self, function: Any) -> Any:
        @wraps(function)
        def within(*args: Any, **given: Any) -> Any:
            with autocast(self._dtype):
                return function(*args, **given)

        return within


def current() -> Any:
    """The dtype in which layers multiply now, or None for that of what they are given."""
    return _setting.get()


def lowered(*values: Any) -> tuple[Any, ...]:
    """Values as they are multiplied: floats in the dtype of `autocast`, everything else as it is."""
    dtype = _setting.get()
    if dtype is None:
        return values
    return tuple(
        ek.cast(x, dtype) if isinstance(x, Tensor) and x.dtype.is_float and x.dtype is not dtype else x for x in values
    )


def raised(*values: Any) -> tuple[Any, ...]:
    """Values as they are normalized and compared: within `autocast` floats of 16 bits in float32."""
    if _setting.get() is None:
        return values
    return tuple(
        ek.cast(x, "float32") if isinstance(x, Tensor) and x.dtype.is_float and x.dtype.size < 4 else x for x in values
    )
