"""Memory of a GPU that other libraries compute with too, and theirs with which tensors are made, without a copy.

Comes in: tensors on a GPU of NVIDIA's, and objects that say where their memory lies: by DLPack, or by CUDA's array
interface. Values do not change, so what is given away is read-only as far as that can be said: whoever writes to it all
the same changes tensors. In turn, whoever gives memory must not write to it as long as a tensor of it lives. Before
memory is given back, the device has done whatever may still read it.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from eshkol.errors import BackendError, DTypeError, TensorError, TraceError
from eshkol.graph.node import Node, buffer, here
from eshkol.ops import dtypes
from eshkol.schedule.kernels.scalars import TYPES
from eshkol.schedule.run.resident import Resident, Stored
from eshkol.tensors import devices, dlpack
from eshkol.tensors.computing import realize
from eshkol.tensors.dlpack import TakenMemory
from eshkol.tensors.handle import Handle
from eshkol.tensors.tape import TAPE

INTERFACE = "__cuda_array_interface__"
NO_WAITING, AMBIGUOUS = -1, 0  # as DLPack numbers streams
PLAIN = (int, float, complex, str, bytes, list, tuple, np.ndarray, np.generic)


# --- given to others --------------------------------------------------------------------------------


def number(x: Handle) -> int | None:
    """Which GPU a tensor is on; None where it is on none."""
    kind, _, which = (x._node.device or "").partition(":")
    return int(which or 0) if kind == devices.GPU else None


def shown(x: Handle, how: str) -> Resident:
    """The value in the memory of the device, for others to see."""
    x._leave(how)
    if TAPE in x._node.scopes and x.dtype.differentiable:
        raise TraceError(
            f"{how} of a tensor that requires grad would lose its derivative", span=here(), hint="use x.detach()"
        )
    if x._node.data is None:
        realize(x)
    found: Resident = x._settled().data
    if found.stored.ty is None:
        raise DTypeError(f"{x.dtype} is in no memory of a GPU", span=here(), hint='x.to("cpu") is')
    return found


def capsule(x: Handle, stream: Any, max_version: Any, copy: bool | None) -> Any:
    """The memory of a tensor on a GPU, as DLPack gives it away."""
    if stream == AMBIGUOUS or not (stream is None or (type(stream) is int and stream >= NO_WAITING)):
        raise BufferError(f"a stream of CUDA is None, -1, 1, 2 or a handle, not {stream!r}")
    found = shown(x, "DLPack")
    if copy:
        found = found.copy()
    address, machine = found.address(), _machine(found)
    if stream != NO_WAITING:
        machine.synchronize()
    held: list[Any] = [found]

    def released() -> None:
        _wait_for_others(machine)
        held.clear()

    versioned = (max_version or (0, 0)) >= dlpack.VERSION
    flags = dlpack.COPIED if copy else dlpack.READ_ONLY
    where = dlpack.CUDA, machine.ordinal
    return dlpack.given(address, found.shape, found.dtype, where, released, versioned=versioned, flags=flags)


def interface(x: Handle) -> dict[str, Any]:
    """What `__cuda_array_interface__` says of a tensor on a GPU."""
    found = shown(x, INTERFACE)
    if x.dtype is dtypes.bfloat16:
        raise DTypeError(f"{INTERFACE} has no bfloat16", span=here(), hint="use DLPack, or cast it to a float32")
    address, stream = found.address(), _machine(found).stream
    _machine(found).when_made(address)  # for that stream
    _keep(x, found.stored)
    return {
        "version": 3, "shape": found.shape, "typestr": found.dtype.numpy.str, "data": (address, True), "strides": None,
        "stream": stream,
    }  # fmt: skip


_kept: set[tuple[int, int]] = set()


def _keep(x: Handle, stored: Stored) -> None:
    """Keep memory as long as the tensor lives, which may change in place meanwhile."""
    key = id(x), id(stored)
    if key not in _kept:
        _kept.add(key)
        weakref.finalize(x, _drop, key, stored).atexit = False


def _drop(key: tuple[int, int], stored: Stored) -> None:
    _kept.discard(key)
    _wait_for_others(stored.machine)


def _machine(found: Resident) -> Any:
    return found.stored.machine


def _wait_for_others(machine: Any) -> None:
    """Wait for whatever may still read the memory of a device; where the device is gone, nothing does."""
    try:
        machine.synchronize_all()
    except BackendError:
        return


# --- taken from others ------------------------------------------------------------------------------


def of_dlpack(given: Any) -> Node | None:
    """A value in the memory of an object of DLPack's on a GPU; None for those of the host."""
    if dlpack.is_capsule(given):
        return _adopted(dlpack.taken(given))
    kind, which = given.__dlpack_device__()
    if kind != dlpack.CUDA:
        return None
    machine: Any = devices.machine(f"{devices.GPU}:{which}")
    try:
        found = given.__dlpack__(stream=machine.stream, max_version=dlpack.VERSION)
    except TypeError:  # one from before versions
        found = given.__dlpack__(stream=machine.stream)
    return _adopted(dlpack.taken(found))


def of_interface(given: Any) -> Node | None:
    """A value in the memory of an object with `__cuda_array_interface__`; None for all others."""
    if isinstance(given, PLAIN):
        return None
    said = getattr(given, INTERFACE, None)
    if said is None:
        return None
    shape, kind = tuple(said["shape"]), np.dtype(said["typestr"])
    dtype = dtypes.OF_NUMPY.get(kind)
    if dtype is None or said.get("mask") is not None:
        what = f"elements {said['typestr']}" if dtype is None else "a mask"
        raise DTypeError(f"an array of a GPU with {what} cannot be a tensor", span=here())
    strides = said.get("strides")
    dlpack.check_contiguous(shape, None if strides is None else tuple(s // kind.itemsize for s in strides))
    address = said["data"][0] or 0
    machine: Any = devices.machine(devices.GPU)
    machine = devices.machine(f"{devices.GPU}:{machine.device_of(address)}") if address else machine
    if said.get("stream") is not None:
        machine.wait_for(said["stream"])
    return _adopted(TakenMemory(address, shape, dtype, (dlpack.CUDA, machine.ordinal), given))


def _adopted(taken: TakenMemory) -> Node:
    kind, which = taken.device
    if kind != dlpack.CUDA:
        raise TensorError(
            f"a capsule of DLPack's device {kind} is none of a GPU of NVIDIA's", span=here(),
            hint="give the object itself, ek.from_dlpack(x), where its memory is the host's",
        )  # fmt: skip
    ty = TYPES.get(taken.dtype)
    if ty is None:
        raise DTypeError(f"there are no {taken.dtype} tensors on a GPU yet", span=here(), hint="copy it to the host")
    machine: Any = devices.machine(f"{devices.GPU}:{which}")
    memory = machine.adopt_address(taken.address, ty, int(np.prod(taken.shape, dtype=np.int64)), taken.owner)
    stored = Stored(machine, ty, memory.count, None, memory)
    stored.lent = True
    return buffer(Resident(stored, taken.shape, taken.dtype), taken.dtype)
