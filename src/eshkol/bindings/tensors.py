"""What Scheme's tensor procedures that are no rows of the op table do: making, taking apart, and mapping.

Comes in: values as Scheme gives them (docs of `bindings/rows.py`). Goes out: tensors, numbers, lists and vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from eshkol.bindings.forms import is_known, wanted
from eshkol.bindings.rows import called, data, operand, schemed, shown
from eshkol.bindings.values import Pair, Symbol, Vector
from eshkol.errors import BackendUnavailable, DTypeError, EshkolError, ShapeError
from eshkol.ops import TABLE, dtypes
from eshkol.ops.shapes import axis as axis_of
from eshkol.ops.shapes import broadcast
from eshkol.support import defaults
from eshkol.tensors import devices, usage
from eshkol.tensors.make import tensor
from eshkol.tensors.transforms import stop_gradient
from eshkol.tensors.value import Tensor

# ---- making ----------------------------------------------------------------------------------------------------------


def make(alone: Any, *parts: Any, dtype: Any = None) -> Tensor:
    """A tensor of its parts; with `alone`, of what the one part holds, if that is a list, a vector or a tensor."""
    if alone and isinstance(parts[0], list | Tensor):
        return of_data(parts[0], dtype=dtype)
    return of_data(list(parts), dtype=dtype)


def of_data(given: Any, *, dtype: Any = None) -> Tensor:
    """A tensor of nested lists, vectors, numbers and tensors."""
    if not isinstance(given, list | Tensor | int | float | complex):
        raise DTypeError(f"a tensor is made of numbers, lists and vectors, not of {shown(given)}")
    try:
        return data(given, dtype)
    except EshkolError as error:
        raise schemed(error) from None


def packed(kind: int, shape: list[int], numbers: bytes, *, dtype: Any = None) -> Tensor:
    """A tensor of numbers as `%pack-numbers` gives them."""
    array = np.frombuffer(numbers, np.float64 if kind else np.int64).reshape(shape)
    try:
        return tensor(array, dtype or (dtypes.default_float() if kind else None))
    except EshkolError as error:
        raise schemed(error) from None


def unpacked(t: Any) -> Any:
    """The numbers of a tensor as `%unpack-numbers` takes them; False where it cannot."""
    array = _given_out(t)._array()
    if not array.shape or array.dtype.kind not in "bifu" or array.dtype == np.uint64:
        return False
    kind = {"b": 2, "f": 1}.get(array.dtype.kind, 0)
    wide = array if kind == 2 else array.astype(np.float64 if kind == 1 else np.int64)
    return [kind, list(array.shape), wide.tobytes()]


def copy(t: Any) -> Tensor:
    """A tensor of the same elements, which changes of the other do not change."""
    return wanted(t).clone()


# ---- what is known of one --------------------------------------------------------------------------------------------


def shape(t: Any, axis: Any = None) -> Any:
    """The lengths of the axes, as a list; with an axis, its length."""
    extents = wanted(t).shape
    if axis is None:
        return list(extents)
    if type(axis) is not int:
        raise DTypeError(f"an axis is an exact integer, not {shown(axis)}")
    return extents[axis_of(axis, len(extents))]


def size(t: Any) -> int:
    """How many elements there are."""
    return wanted(t).size


def rank(t: Any) -> int:
    """How many axes there are."""
    return wanted(t).ndim


def dtype(t: Any) -> Symbol:
    """The dtype of the elements, a symbol such as float32."""
    return Symbol(wanted(t).dtype.name.rstrip("_"))


# ---- the dtype of floats that are given none -------------------------------------------------------------------------


def default_dtype() -> Symbol:
    """The dtype of floats and of layers that are given none, a symbol."""
    return Symbol(dtypes.default_float().name)


def set_default_dtype(given: Any) -> None:
    """Let floats and layers without a dtype be of this one from now on."""
    dtypes.set_default_float(_chosen(given))


def exchange_default_dtype(given: Any) -> Any:
    """The same for a while; what held before, to be put back, or False for what holds everywhere."""
    before = defaults.exchange_floats(None if given is False else _chosen(given).name)
    return False if before is None else Symbol(before)


def _chosen(given: Any) -> dtypes.DType:
    if not isinstance(given, str):
        raise DTypeError(f"a dtype is a symbol such as float32, not {shown(given)}")
    try:
        return dtypes.chosen_float(str(given))
    except EshkolError as error:
        raise schemed(error) from None


# ---- taking apart ----------------------------------------------------------------------------------------------------


def to_list(t: Any) -> Any:
    """The elements as nested lists; of a tensor without axes, the number."""
    return _given_out(t).tolist()


def to_vector(t: Any) -> Any:
    """The elements as nested vectors; of a tensor without axes, the number."""
    return _vectors(_given_out(t).tolist())


def _vectors(given: Any) -> Any:
    return Vector(map(_vectors, given)) if isinstance(given, list) else given


def elements(t: Any) -> Any:
    """All elements as one list, those of the last axis next to each other."""
    return _reshaped(_given_out(t), [-1]).tolist()


def to_number(t: Any) -> Any:
    """The one element as a number."""
    if type(t) in (int, float, complex):
        return t
    t = _given_out(t)
    if t.size != 1:
        raise ShapeError(f"a tensor of shape {list(t.shape)} has {t.size} elements, not one", hint="use tensor-ref")
    return t.item()


def _given_out(given: Any) -> Tensor:
    t = wanted(given)
    try:
        if not is_known(t):
            t._leave("to give out its numbers")
            return t.detach()
    except EshkolError as error:
        raise schemed(error) from None
    return t


def _reshaped(t: Tensor, shape: list[int]) -> Tensor:
    made = called(TABLE["reshape"], (t, shape), {})
    assert isinstance(made, Tensor)
    return made


# ---- mapping ---------------------------------------------------------------------------------------------------------


def mapped(function: Any, *tensors: Any) -> Tensor:
    """What a function gives for each element, computed for all of them at once.

    The function is run on an element that is not known, by vmap, so whatever it computes becomes one computation over
    all elements. Of branches both sides are computed (`tensors/branches.py`).
    """
    from eshkol.tensors.branches import branched
    from eshkol.tensors.transforms import vmap

    if not callable(function):
        raise DTypeError(f"a procedure is wanted as argument 1, not {shown(function)}")
    given = [operand(x) for x in tensors]
    if not any(isinstance(x, Tensor) for x in given):
        raise DTypeError(f"a tensor is wanted as argument 2, not {shown(tensors[0] if tensors else None)}")
    try:
        together = broadcast(*(x.shape for x in given if isinstance(x, Tensor)))
    except EshkolError as error:
        raise schemed(error) from None
    flat = [_flat(x, together) for x in given if isinstance(x, Tensor)]

    def one(*elements: Tensor) -> Tensor:
        feed = iter(elements)
        args = [next(feed) if isinstance(x, Tensor) else x for x in given]
        result = branched(lambda *xs: _one_number(function(*xs)), args, _joined, _varying_only)
        return result if isinstance(result, Tensor) else data(result)

    result = vmap(one)(*flat)
    return _reshaped(result, list(together))


def _flat(x: Tensor, together: tuple[int, ...]) -> Tensor:
    if x.shape != together:
        x = called(TABLE["expand"], (x, list(together)), {})
    return _reshaped(x, [-1] if 0 not in together else [0])


def _one_number(result: Any) -> Any:
    if isinstance(result, Fraction):
        return float(result)
    if isinstance(result, Tensor) and not result.shape:
        return result
    if type(result) in (bool, int, float, complex):
        return result
    what = f"a tensor of shape {list(result.shape)}" if isinstance(result, Tensor) else shown(result)
    raise ShapeError(f"the procedure must give a number for each element, not {what}")


def _varying_only(conditions: Sequence[Any], way: Sequence[bool], args: Sequence[Any]) -> list[Any]:
    """The arguments, as constants where the conditions are not as the way says."""
    taken: Any = None
    for condition, side in zip(conditions, way, strict=True):
        holds = condition if side else called(TABLE["logical_not"], (condition,), {})
        taken = holds if taken is None else called(TABLE["logical_and"], (taken, holds), {})

    def one(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.dtype.differentiable:
            return x
        return called(TABLE["where"], (taken, x, stop_gradient(x)), {})

    return [one(x) for x in args]


def _joined(condition: Any, then: Any, otherwise: Any) -> Any:
    return called(TABLE["where"], (condition, then, otherwise), {})


# ---- devices ---------------------------------------------------------------------------------------------------------


def to_device(t: Any, device: Any = "cpu", number: Any = None) -> Tensor:
    """The tensor on a device, a symbol or a string; of several of a kind, by its number too."""
    name = str(device) if number is None else f"{device}:{number}"
    kind = name.partition(":")[0]
    if kind not in devices.names():
        known = " ".join(f"'{known}" for known in devices.names())
        reason = devices.missing(kind)
        raise BackendUnavailable(
            f"there is no device {name} here{f': {reason}' if reason else ''}", hint=f"there are {known}"
        )
    try:
        return wanted(t).to(name)
    except EshkolError as error:
        raise schemed(error) from None


def to_cpu(t: Any) -> Tensor:
    """The tensor in the memory of the host, where the CPU computes."""
    return wanted(t).cpu()


def gpu_available() -> bool:
    """Whether there is a GPU to compute on, or a machine that was chosen to stand for one."""
    return devices.has_gpu()


def memory_usage(given: Any = None) -> Any:
    """The bytes of a tensor, or of a model's parameters and buffers; without either, of all tensors, as pairs."""
    if given is None:
        return [Pair(Symbol(name), count) for name, count in usage.memory_usage().items()]
    if isinstance(given, Tensor):
        return given.nbytes
    if hasattr(given, "parameters") and hasattr(given, "buffers"):
        return sum(t.nbytes for t in (*given.parameters(), *given.buffers()))
    raise DTypeError(f"a model or a tensor is wanted, not {shown(given)}")


def peak_memory_allocated() -> int:
    """The most bytes that tensors have taken at one time."""
    return usage.peak_memory_allocated()


def reset_peak_memory() -> None:
    """Count the peak from here on."""
    usage.reset_peak_memory()


def device(t: Any) -> Symbol:
    """The device that a tensor is computed on, a symbol."""
    return Symbol(wanted(t).device)
