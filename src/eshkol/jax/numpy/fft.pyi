"""The names of eshkol.jax.numpy.fft. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol._names import fft as fft
from eshkol._names import fft2 as fft2
from eshkol._names import fftfreq as fftfreq
from eshkol._names import fftn as fftn
from eshkol._names import fftshift as fftshift
from eshkol._names import ifft as ifft
from eshkol._names import ifft2 as ifft2
from eshkol._names import ifftn as ifftn
from eshkol._names import ifftshift as ifftshift
from eshkol._names import irfft as irfft
from eshkol._names import rfft as rfft
from eshkol._names import rfftfreq as rfftfreq

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "irfft",
    "rfft",
    "rfftfreq",
]

