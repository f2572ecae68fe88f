"""Values on the command line: from `--param NAME=VALUE` to arrays, and from arrays to text and .npy files.

Comes in: the text of a VALUE with the type it must have, or the name of a .npy file. Goes out: host values as
`Arguments`, which `place` copies into a backend; one line of text that shows an array; or a `UsageError` that
says in one line what is wrong. `atlas.py` uses it; NumPy is imported only when a value is read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from eshkol.cli.usage import UsageError
from eshkol.errors import EshkolError

if TYPE_CHECKING:
    from eshkol.atlas.program import Param, Program
    from eshkol.atlas.types import Array, Type
    from eshkol.backends.base import Backend, PoolHandle, TypedBuffer

ELEMENT_LIMIT = 1 << 28  # elements that zeros:N and its like make
SHOWN_WHOLE, SHOWN_FIRST, SHOWN_LAST = 12, 6, 3  # of the elements of a buffer
T = TypeVar("T")


def as_usage(option: str, make: Callable[[], T]) -> T:
    """make(), with an error of the values as an error of the arguments."""
    try:
        return make()
    except EshkolError as error:
        raise UsageError(f"{option}: {error.message}") from None


def reason_of(error: Exception) -> str:
    """Why a file could not be read or written."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


@dataclass
class Arguments:
    """What a launch gives to a program: host values first, then buffers and pools of the backend."""

    arrays: dict[str, Array]
    scalars: dict[str, int | float]
    pools: dict[str, int]  # capacities

    def place(self, backend: Backend, program: Program) -> dict[str, TypedBuffer | PoolHandle | int | float]:
        """Copied into the backend, by name."""
        placed: dict[str, TypedBuffer | PoolHandle | int | float] = dict(self.scalars)
        for name, capacity in self.pools.items():
            placed[name] = backend.allocate_pool(capacity)
        for name, values in self.arrays.items():
            placed[name] = backend.array(values, program.param[name].ty)
        return placed


def describe_param(param: Param) -> str:
    """'x F32[1024]', 'a F32', 'pool q'."""
    if param.ty is None:
        return f"pool {param.name}"
    size = f"[{'' if param.count is None else param.count}]" if param.kind.value == "buffer" else ""
    return f"{param.name} {param.ty}{size}"


# --- from text ------------------------------------------------------------------------------------


def read_arguments(program: Program, given: Mapping[str, str]) -> Arguments:
    """The values of all parameters, from NAME=VALUE texts."""
    for name in given:
        if name not in program.param:
            known = ", ".join(program.param) or "none"
            raise UsageError(f"--param: the program has no parameter '{name}'; its parameters: {known}")
    result = Arguments({}, {}, {})
    for param in program.params:
        text, option = given.get(param.name), f"--param {param.name}"
        if text is None:
            raise UsageError(f"the {param.kind.value} {describe_param(param)} has no value: add {option}=VALUE")
        if param.ty is None:
            match = re.fullmatch(r"pool:([0-9]{1,12})", text)
            if match is None:
                raise UsageError(f"{option}: a pool is given as pool:BYTES, not '{text}'")
            result.pools[param.name] = int(match[1])
        elif param.kind.value == "scalar":
            result.scalars[param.name] = read_number(text, param.ty, option)
        else:
            result.arrays[param.name] = read_array(text, param.ty, option, param.count)
    return result


def read_number(text: str, ty: Type, option: str) -> int | float:
    """One number of a type."""
    from eshkol.atlas.operands import Immediate

    shown = text if len(text) < 40 else text[:36] + "..."
    try:
        if ty.is_integer:
            value: int | float = int(text, 16) if "x" in text.lower() else int(text)
            fits = ty.min_value <= value <= ty.max_value
        else:
            value = float(text)
            fits = "inf" in text.lower() or abs(Immediate(ty, value).value) != float("inf")
    except ValueError:
        raise UsageError(f"{option}: '{shown}' is not {'an integer' if ty.is_integer else 'a number'}") from None
    if not fits:
        raise UsageError(f"{option}: {shown} does not fit {ty}")
    return value


def read_array(text: str, ty: Type, option: str, count: int | None = None) -> Array:
    """The elements of a buffer of a type: a file, made by a rule, or listed."""
    from eshkol.atlas.rounding import to_array

    if text.startswith("@"):
        return _load_npy(text[1:], ty, option)
    word, *rest = text.split(":")
    if word not in ("zeros", "ones", "arange", "random"):
        return to_array([read_number(part.strip(), ty, option) for part in text.split(",")], ty)
    if len(rest) > (2 if word == "random" else 1) or not all(re.fullmatch("[0-9]{1,18}", part) for part in rest):
        raise UsageError(f"{option}: expected {word}:N{'[:SEED]' * (word == 'random')}, not '{text}'")
    size = int(rest[0]) if rest else count
    if size is None:
        raise UsageError(f"{option}: how many? the program does not say; write {word}:N")
    if size > ELEMENT_LIMIT:
        raise UsageError(f"{option}: {size} elements are over the limit of {ELEMENT_LIMIT}")
    values = _generate(word, size, int(rest[1]) if len(rest) > 1 else 0, ty)
    return as_usage(option, lambda: to_array(values, ty))


def _generate(word: str, size: int, seed: int, ty: Type) -> Array:
    import numpy as np

    if word == "random":
        source = np.random.default_rng(seed)
        return source.integers(0, 100, size) if ty.is_integer else source.random(size)
    return np.arange(size) if word == "arange" else np.full(size, int(word == "ones"))


def _load_npy(file: str, ty: Type, option: str) -> Array:
    """The elements of a .npy file as values of a type. What the type cannot hold is an error."""
    import numpy as np

    from eshkol.atlas.rounding import to_array
    from eshkol.atlas.types import decode

    try:
        with open(file, "rb") as stream:
            values = np.lib.format.read_array(stream, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise UsageError(f"{option}: cannot read '{file}': {reason_of(error)}") from None
    if values.dtype.kind not in "biuf":
        raise UsageError(f"{option}: '{file}' holds {values.dtype}, not numbers")
    if ty.is_wide and values.dtype == np.uint8 and values.ndim == 2 and values.shape[1] == ty.size_bytes:
        return decode(values, ty)  # as `save_npy` writes them
    if ty.is_integer and values.dtype.kind == "f":
        raise UsageError(f"{option}: '{file}' holds {values.dtype}, but the buffer holds {ty}")
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    with np.errstate(over="ignore"):
        result = as_usage(option, lambda: to_array(values, ty))
    if ty.is_float:
        _tell_losses(values, result, ty, file, option)
    return result


def _tell_losses(values: Array, held: Array, ty: Type, file: str, option: str) -> None:
    """Rounding to a narrower float is told on stderr; a number that becomes infinite is an error."""
    import numpy as np

    exact, rounded = values.ravel().astype(np.float64), held.astype(np.float64)
    lost = (exact != rounded) & ~np.isnan(exact)
    if (lost & np.isinf(rounded)).any():
        raise UsageError(f"{option}: a value in '{file}' does not fit {ty}")
    if lost.any():
        print(f"note: {int(lost.sum())} values of '{file}' are rounded to {ty}", file=sys.stderr)


# --- and back ---------------------------------------------------------------------------------------


def save_npy(file: str, buffer: TypedBuffer) -> None:
    """A buffer as .npy. NumPy has no BF16, which F32 holds exactly, and no wide integers: those go as bytes."""
    import numpy as np

    from eshkol.atlas.types import Type, encode

    values = buffer.read()
    if buffer.ty.is_wide:
        values = encode(values, buffer.ty)
    elif buffer.ty is Type.BF16:
        values = values.astype(np.float32)
    try:
        with open(file, "wb") as stream:  # by handle: np.save adds .npy to a name that lacks it
            np.save(stream, values, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--save: cannot write '{file}': {reason_of(error)}") from None


def summarize(values: Array, ty: Type) -> str:
    """All values of a short array, the first and last few of a long one."""
    from eshkol.atlas.types import element_text

    def text(part: Array) -> list[str]:
        return [element_text(value, ty) for value in part]

    if values.size <= SHOWN_WHOLE:
        return " ".join(text(values)) or "(empty)"
    return " ".join([*text(values[:SHOWN_FIRST]), "…", *text(values[-SHOWN_LAST:])])
