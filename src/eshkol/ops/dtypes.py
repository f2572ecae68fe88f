"""The dtypes of tensors: what they are called, how they promote, and which numbers they hold.

Comes in: nothing. Goes out: one `DType` object per dtype (compared by identity), `promote` for two tensors, and
`promote_number` for a tensor and a Python number. Promotion goes by kind (bool < integer < float < complex):

- two dtypes of one kind give the wider one; float16 with bfloat16 gives float32; a signed and an unsigned integer give
  the signed one that holds both, and are an error where there is none (int64 with uint64);
- across kinds the higher kind decides, with its own width: int64 with float32 gives float32;
- a Python number takes the tensor's dtype if its kind allows, else the default dtype of the number's kind, and is an
  error if that dtype cannot hold it: no number is truncated silently.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from eshkol.errors import DTypeError
from eshkol.support import defaults

Number = bool | int | float | complex

KINDS = ("bool", "int", "float", "complex")  # in the order of promotion; unsigned integers are of kind int


@dataclass(frozen=True, eq=False)
class DType:
    """A dtype. There is one object for each, so `is` compares them."""

    name: str
    kind: str  # one of KINDS
    bits: int
    numpy: np.dtype[Any]
    signed: bool = True
    # What follows from the kind; asked for at every node, so it is computed once.
    is_bool: bool = field(init=False)
    is_integer: bool = field(init=False)
    is_float: bool = field(init=False)
    is_complex: bool = field(init=False)
    differentiable: bool = field(init=False)
    rank: int = field(init=False)  # of the kind, in promotion

    def __post_init__(self) -> None:
        for name, kind in (("bool", "bool"), ("integer", "int"), ("float", "float"), ("complex", "complex")):
            object.__setattr__(self, f"is_{name}", self.kind == kind)
        object.__setattr__(self, "differentiable", self.is_float or self.is_complex)
        object.__setattr__(self, "rank", KINDS.index(self.kind))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name  # pickles and copies to the same object

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a float's; PyTorch's name of `is_float`."""
        return self.is_float

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.size

    @property
    def real(self) -> DType:
        """The dtype of the real part."""
        return {complex64: float32, complex128: float64}.get(self, self)

    @property
    def complex(self) -> DType:
        """The complex dtype whose parts hold this dtype."""
        return self if self.is_complex else complex128 if self is float64 else complex64

    def limits(self) -> tuple[Any, Any]:
        """The least and the greatest number; infinities for floats."""
        if self.is_bool:
            return False, True
        if self.is_integer:
            info = np.iinfo(self.numpy)
            return int(info.min), int(info.max)
        return -math.inf, math.inf

    @property
    def epsilon(self) -> float:
        """The gap between 1 and the next float."""
        return float(2.0 ** {"bfloat16": -7, "float16": -10, "float32": -23, "float64": -52}[self.real.name])

    def holds(self, number: Number) -> bool:
        """Whether a Python number fits: exactly for integers and bools, by kind for floats."""
        if isinstance(number, complex):
            return self.is_complex
        if isinstance(number, float) and not isinstance(number, bool):
            return self.kind in ("float", "complex")
        if self.is_bool:
            return isinstance(number, bool)
        if self.is_integer:
            least, most = self.limits()
            return bool(least <= number <= most)
        return True


def _dtype(name: str, kind: str, signed: bool = True) -> DType:
    scalar = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    return DType(name, kind, 8 * scalar.itemsize, scalar, signed)


bool_ = DType("bool_", "bool", 8, np.dtype(np.bool_))
int8, int16, int32, int64 = (_dtype(f"int{n}", "int") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_dtype(f"uint{n}", "int", signed=False) for n in (8, 16, 32, 64))
float16, bfloat16, float32, float64 = (_dtype(n, "float") for n in ("float16", "bfloat16", "float32", "float64"))
complex64, complex128 = _dtype("complex64", "complex"), _dtype("complex128", "complex")

ALL: tuple[DType, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
FLOATS = tuple(d for d in ALL if d.is_float)
INTEGERS = tuple(d for d in ALL if d.is_integer)
COMPLEX = tuple(d for d in ALL if d.is_complex)

OF_NUMPY: dict[np.dtype[Any], DType] = {d.numpy: d for d in ALL}
_OF_NAME: dict[str, DType] = {d.name: d for d in ALL} | {
    "bool": bool_, "half": float16, "float": float32, "double": float64, "long": int64, "int": int64,
    "f16": float16, "bf16": bfloat16, "f32": float32, "f64": float64, "c64": complex64, "c128": complex128,
    **{f"i{n}": OF_NUMPY[np.dtype(f"int{n}")] for n in (8, 16, 32, 64)},
    **{f"u{n}": OF_NUMPY[np.dtype(f"uint{n}")] for n in (8, 16, 32, 64)},
}  # fmt: skip


def default_float() -> DType:
    """The dtype of floats that are given none (support/defaults.py)."""
    return _OF_NAME[defaults.floats()]


def set_default_float(given: Any) -> None:
    """Let floats without a dtype be of this one from now on, in the language that this thread computes for."""
    defaults.set_floats(chosen_float(given).name)


def default_as(given: Any) -> AbstractContextManager[None]:
    """Within it, floats without a dtype are of this one, on this thread."""
    return defaults.floats_as(chosen_float(given).name)


def chosen_float(given: Any) -> DType:
    """The dtype that a user chooses for floats."""
    dtype = of(given)
    if not dtype.is_float:
        raise DTypeError(f"the default dtype is one of floats, not {dtype}", hint=f"choose one of {_listed(FLOATS)}")
    return dtype


def _listed(among: tuple[DType, ...]) -> str:
    return ", ".join(d.name for d in among)


def default(kind: str) -> DType:
    """The dtype of what is of a kind and is given none; complex numbers have the parts of default floats."""
    if kind == "float":
        return default_float()
    return default_float().complex if kind == "complex" else int64 if kind == "int" else bool_


def of(given: Any) -> DType:
    """The dtype meant by a DType, a name, a NumPy dtype or scalar type, or Python's bool, int, float or complex.

    None means the default of floats.
    """
    if isinstance(given, DType):
        return given
    if isinstance(given, np.dtype) and (known := OF_NUMPY.get(given)) is not None:  # what arrays say: asked the most
        return known
    if given is None:
        return default_float()
    if isinstance(given, str) and given in _OF_NAME:
        return _OF_NAME[given]
    if isinstance(given, type) and given in (bool, int, float, complex):
        return default(given.__name__)
    try:
        found = OF_NUMPY.get(np.dtype(given).newbyteorder("="))
    except TypeError:
        found = None
    if found is None:
        named = f"dtypes: {_listed(ALL)}"
        hint = f"{named}; a shape of several extents is a tuple: zeros((2, 3))" if isinstance(given, int) else named
        raise DTypeError(f"there is no dtype '{given}'", hint=hint)
    return found


def of_number(number: Number) -> DType:
    """The dtype of a tensor made of a Python number alone."""
    if isinstance(number, bool):
        return bool_
    return default("int" if isinstance(number, int) else "float" if isinstance(number, float) else "complex")


@cache
def promote(a: DType, b: DType) -> DType:
    """The dtype in which values of two dtypes meet."""
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: (d.rank, d.bits))
    if low.kind != high.kind:
        if high.is_complex and low is float64:
            return complex128
        return high
    if low.is_integer and low.signed != high.signed:
        unsigned = a if not a.signed else b
        signed = b if unsigned is a else a
        if signed.bits > unsigned.bits:
            return signed
        if unsigned.bits == 64:
            raise DTypeError(
                f"no integer dtype holds both {a} and {b}", hint="cast one of them: x.astype(ek.int64), or to a float"
            )
        return _OF_NAME[f"int{2 * unsigned.bits}"]
    return float32 if {low, high} == {float16, bfloat16} else high


def promote_number(dtype: DType, number: Number) -> DType:
    """The dtype in which a tensor of `dtype` meets a Python number."""
    if isinstance(number, bool) or (dtype.differentiable and isinstance(number, float | int)):
        return dtype
    kind = "int" if isinstance(number, int) else "float" if isinstance(number, float) else "complex"
    found = dtype
    if KINDS.index(kind) > dtype.rank:
        found = dtype.complex if kind == "complex" and dtype.is_float else default(kind)
    if not found.holds(number):
        least, most = found.limits()
        raise DTypeError(
            f"{number} does not fit {found}, which holds {least} to {most}",
            hint="cast the tensor to a wider dtype first",
        )
    return found


def floating(dtype: DType) -> DType:
    """The dtype of a function with real results: floats and complex stay, the rest becomes the default float."""
    return dtype if dtype.differentiable else default_float()


def summed(dtype: DType) -> DType:
    """The dtype of a sum: bools and integers are summed in 64 bits."""
    if dtype.is_bool:
        return int64
    return dtype if not dtype.is_integer else int64 if dtype.signed else uint64


def held(number: Any, dtype: DType) -> Any:
    """A number that a dtype holds; bools hold 0 and 1."""
    if dtype.is_bool and number in (0, 1):
        return bool(number)
    if not dtype.holds(number):
        raise DTypeError(f"{dtype} cannot hold {number}", hint="cast the tensor first")
    return number
