"""Tensors from Python and NumPy data, and from other libraries; and whole structures of data put on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import DTypeError
from eshkol.graph.node import here
from eshkol.ops import dtypes
from eshkol.tensors import devices, dlpack, lending, pytree
from eshkol.tensors.arrays import array_of, is_fixed
from eshkol.tensors.value import Tensor, is_input, of_data


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False, device: str | None = None) -> Tensor:
    """A tensor of numbers, nested lists, a NumPy array or another tensor; the data is copied.

    It is made on a device, or on the default one; a tensor stays where it is unless a device is named. So does an array
    of another library on a GPU, with `__cuda_array_interface__`: that is taken as it is, without a copy.

    >>> ek.tensor([[1.0, 2.0], [3.0, 4.0]])
    """
    lent = lending.of_interface(data)
    made = of_data(data if lent is None else Tensor(lent), None if dtype is None else dtypes.of(dtype), device)
    return made.requires_grad_() if requires_grad else made


def adopted(array: Any, device: str | None = None) -> Tensor:
    """A tensor in the memory of a contiguous array that nothing writes to afterwards: one that was made for it.

    On a device with memory of its own it is copied when it is first used.
    """
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"from_numpy takes a NumPy array, not a {type(array).__name__}", span=here())
    dtype = dtypes.OF_NUMPY.get(array.dtype)
    if dtype is None or type(array) is not np.ndarray or not array.flags.c_contiguous:
        array = array_of(array, None)
        dtype = dtypes.of(array.dtype)
    return Tensor(devices.made(array, dtype, device))


def from_numpy(array: Any) -> Tensor:
    """A tensor of a NumPy array: in its memory if the array is read-only and contiguous, else of a copy.

    Values are computed when they are looked at, so an array that is written to meanwhile would change them. Who has a
    large array and no need to write to it says `a.flags.writeable = False` first, and nothing is copied.
    """
    if isinstance(array, np.ndarray) and not is_fixed(array):
        return tensor(array)
    return adopted(array)


def asarray(data: Any, dtype: Any = None) -> Tensor:
    """A tensor of whatever is given: a tensor itself, anything else as `from_numpy` and `tensor` take it."""
    if isinstance(data, Tensor) and dtype is None:
        return data
    if isinstance(data, np.ndarray) and dtype is None:
        return from_numpy(data)
    return tensor(data, dtype)


def from_dlpack(data: Any) -> Tensor:
    """A tensor of another library's, by DLPack; of a copy, as that library may write to its own at any time.

    Memory of a GPU is taken as it is, without a copy: it must not be written to as long as the tensor is used. A
    capsule of such memory may be given too.
    """
    node = lending.of_dlpack(data) if dlpack.is_capsule(data) or hasattr(data, "__dlpack_device__") else None
    return tensor(np.from_dlpack(data)) if node is None else Tensor(node)


def device_put(tree: Any, device: str) -> Any:
    """A structure with its tensors on a device; arrays become tensors there.

    >>> params = ek.device_put(params, "discrete")
    """

    def put(x: Any) -> Any:
        if isinstance(x, Tensor):
            return x.to(device)
        return tensor(x, device=device) if is_input(x) else x

    if not isinstance(device, str):
        raise DTypeError(f"a device is named by a string, not a {type(device).__name__}", span=here())
    return pytree.tree_map(put, tree)
