"""`ek.fft`: Fourier transforms, as PyTorch and NumPy have them; called itself, it is `ek.fft.fft`.

The table is in `tensors/torch_names.py`.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from eshkol.tensors.sizes import no_attribute
from eshkol.tensors.torch_names import NAMESPACES

_FUNCTIONS = NAMESPACES["fft"]
__all__ = sorted(_FUNCTIONS)
globals().update(_FUNCTIONS)


class _Transform(ModuleType):
    """The module, which is also the function that it is named after."""

    __doc__ = __doc__

    def __call__(self, *args: Any, **given: Any) -> Any:
        return _FUNCTIONS["fft"](*args, **given)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(_FUNCTIONS["fft"])


def __getattr__(name: str) -> Any:
    raise no_attribute(name, _FUNCTIONS, "eshkol.fft")


sys.modules[__name__].__class__ = _Transform
