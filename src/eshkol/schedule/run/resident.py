"""Values in the memory of the machine that computes them, and the copies between machines and the host.

A `Stored` is memory that one or several values (a tensor and its reshapes) share; it is given back when the last of
them goes. A `Resident` is such memory under a shape and a dtype: what a node of the graph holds where a machine has
memory of its own. It is copied to the host when someone looks, and from the host when the machine first reads it; each
copy is counted (`transfers`). `Machine` is what is asked of a backend.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.sequence import NativeCode, Runner, SequenceStep
from eshkol.atlas.types import Type
from eshkol.errors import TensorError
from eshkol.graph.node import on_host
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.runtime import front
from eshkol.schedule.kernels.scalars import STORED
from eshkol.schedule.run.memory import LARGE, Array, empty
from eshkol.support import observing
from eshkol.support.references import ALONE
from eshkol.support.store import ProgramCache

SPARES = 8  # small arrays kept of one size
SPARE_SIZES = 64


class Buffer(Protocol):
    """Memory of a machine."""

    @property
    def handle(self) -> Any: ...

    def read(self) -> Any: ...
    def free(self) -> None: ...


class Machine(Protocol):
    """What runs programs: a backend."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> MachineDescription: ...

    @property
    def store(self) -> ProgramCache | None:
        """Where finished plans are kept, if they are."""
        ...

    @property
    def shares_host_memory(self) -> bool:
        """Whether a buffer over a host array is that array, so that nothing needs to be copied."""
        ...

    @property
    def whole_graphs(self) -> bool:
        """Whether it compiles graphs as they are (`whole.py`), and runs no programs of Atlas."""
        ...

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None: ...
    def adopt(self, array: Array, ty: Type) -> Buffer: ...
    def allocate_typed(self, ty: Type, count: int) -> Buffer: ...

    def copy_within(self, target: Any, target_offset: int, source: Any, source_offset: int, size: int) -> None:
        """Copy bytes from one buffer to another."""
        ...

    @property
    def copies_at_once(self) -> bool:
        """Whether values that are moved there are copied now: a stream is used that does so beside others."""
        ...

    @property
    def has_addresses(self) -> bool:
        """Whether its memory has addresses, and it runs sequences over them."""
        ...

    def sequence(self, steps: Sequence[SequenceStep], places: int) -> Runner:
        """Steps to be run in one go; this and the next are asked only of machines that have addresses."""
        ...

    def native(self, op: str, attrs: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        """Code of the machine's own for an op that programs do not say; None where it has none."""
        ...

    def address(self, handle: Any) -> int: ...

    def take(self, size: int) -> int:
        """Memory of a machine that has its own, by its address alone; `give` is how it is given back."""
        ...

    def give(self, address: int) -> None: ...

    def buffer_at(self, address: int, ty: Type, count: int) -> Buffer:
        """A buffer of memory that was taken; to free it gives the memory back."""
        ...

    def read_at(self, address: int, size: int) -> bytes: ...
    def write_at(self, address: int, data: Any) -> None: ...


# --- copies between host and machines ---------------------------------------------------------------


@dataclass
class Transfers:
    """Copies between the host and machines with memory of their own."""

    uploads: int = 0
    uploaded: int = 0  # bytes
    reads: int = 0
    read: int = 0  # bytes

    def __str__(self) -> str:
        return f"{self.uploads} uploads of {self.uploaded} bytes, {self.reads} reads of {self.read} bytes"


_watching: list[Transfers] = []


@contextmanager
def transfers() -> Iterator[Transfers]:
    """Count what is copied between the host and machines with memory of their own, by any thread, within the block.

    >>> with ek.transfers() as seen: step(batch)
    >>> print(seen)
    """
    seen = Transfers()
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching[:] = [other for other in _watching if other is not seen]


def _note_upload(size: int) -> None:
    for seen in _watching:
        seen.uploads += 1
        seen.uploaded += size


def _note_read(size: int) -> None:
    for seen in _watching:
        seen.reads += 1
        seen.read += size


def read_at(machine: Machine, address: int, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """What lies at an address of a machine's memory, as an array of the host."""
    size = math.prod(shape) * dtype.itemsize
    with observing.timed(observing.TRANSFER, f"{machine.name} to host", size):
        raw = machine.read_at(address, size)
    _note_read(len(raw))
    return np.frombuffer(raw, dtype).reshape(shape)


def write_at(machine: Machine, address: int, array: Array) -> None:
    """Copy a contiguous array of the host to an address of a machine's memory."""
    with observing.timed(observing.TRANSFER, f"host to {machine.name}", array.nbytes):
        machine.write_at(address, array)
    _note_upload(array.nbytes)


# --- values -----------------------------------------------------------------------------------------


class Stored(front.StoredBase):
    """Memory of a value: a host array, memory of the machine, or both.

    The machine's is a buffer, or an address alone: most values of a machine with memory of its own are read by kernels
    and by nothing else, and to make a buffer takes longer than to launch one. Memory that was made here and never shown
    to anyone is used again for another value, buffer and all. The machine's memory goes with the last value in it
    (runtime/native/front/residents.c).
    """

    __slots__ = ()

    machine: Machine
    ty: Type
    array: Array | None
    buffer: Buffer | None

    def __init__(
        self, machine: Machine, ty: Type, size: int, array: Array | None, buffer: Buffer | None,
        address: int | None = None,
    ) -> None:  # fmt: skip
        self.machine, self.ty, self.size = machine, ty, size
        self.array, self.buffer = array, buffer
        self.address = address  # where the machine's memory begins, once that is known
        self.own = False
        self.lent = False  # whether it is another library's, which sees what is written to it

    @property
    def on_machine(self) -> bool:
        """Whether the machine has it."""
        return self.buffer is not None or self.address is not None


def _let_go(machine: Machine, ty: Type, array: Array | None, buffer: Buffer, own: bool) -> None:
    """What becomes of a buffer whose value is gone."""
    if own and array is not None and len(spare := _spare(machine, ty, array.size)) < SPARES:
        spare.append((array, buffer))
    else:
        buffer.free()


def _spare(machine: Machine, ty: Type, size: int) -> list[tuple[Any, Any]]:
    """Arrays of this many elements that nothing uses now, with their buffers."""
    of_machine = _spares.setdefault(machine, {})
    key = ty, size
    if key not in of_machine:
        if len(of_machine) >= SPARE_SIZES:
            for spare in of_machine.pop(next(iter(of_machine))):
                spare[1].free()
        of_machine[key] = []
    return of_machine[key]


_spares: WeakKeyDictionary[Machine, dict[Any, list[tuple[Any, Any]]]] = WeakKeyDictionary()


def stored_as(shape: Shape, dtype: DType) -> tuple[Type, int]:
    """What a value lies in memory as: elements of a type of Atlas, and how many of them."""
    ty, parts = STORED[dtype]
    return ty, math.prod(shape) * parts


class Resident(front.ResidentBase):
    """A value that is there, as memory of a machine under a shape."""

    __slots__ = ()

    stored: Stored
    dtype: DType

    def __init__(self, stored: Stored, shape: Shape, dtype: DType) -> None:
        self.stored, self.shape, self.dtype = stored, shape, dtype

    @staticmethod
    def of(array: Any, dtype: DType, machine: Machine) -> Resident:
        """The value of a host array; it is copied when the machine first reads it."""
        ty, parts = STORED[dtype]
        return Resident(Stored(machine, ty, array.size * parts, array, None), array.shape, dtype)

    @staticmethod
    def brought(array: Any, dtype: DType, machine: Machine) -> Resident:
        """The value of a host array that a user asks for there: copied now, where that is to be beside other work."""
        made = Resident.of(array, dtype, machine)
        if machine.copies_at_once:
            made.address()
        return made

    @staticmethod
    def fresh(shape: Shape, dtype: DType, machine: Machine) -> Resident:
        """Memory for a value that the machine is going to compute."""
        ty, size = stored_as(shape, dtype)
        if not machine.shares_host_memory:
            if machine.has_addresses:
                stored = Stored(machine, ty, size, None, None, machine.take(size * ty.size_bytes))
            else:
                stored = Stored(machine, ty, size, None, machine.allocate_typed(ty, size))
            return Resident(stored, shape, dtype)
        if size * ty.size_bytes >= LARGE:
            return Resident(Stored(machine, ty, size, empty(shape, dtype.numpy), None), shape, dtype)
        spare = _spare(machine, ty, size)
        array, buffer = spare.pop() if spare else (np.empty(size, ty.dtype), None)
        stored = Stored(machine, ty, size, array, buffer)
        stored.own = True
        return Resident(stored, shape, dtype)

    @property
    def device(self) -> str:
        return self.stored.machine.name

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.size

    @property
    def on_host(self) -> Array | None:
        """The value as an array, if the host has it: it came from there, or someone has looked."""
        return None if self.stored.array is None else self.host()

    def reshaped(self, shape: Shape, dtype: DType) -> Resident:
        """The same memory under another shape; the dtype is of the same elements."""
        return self if (shape, dtype) == (self.shape, self.dtype) else Resident(self.stored, shape, dtype)

    def buffer(self) -> Buffer:
        """The value in the machine's memory."""
        stored = self.stored
        if stored.buffer is None and stored.address is not None:
            stored.buffer = stored.machine.buffer_at(stored.address, stored.ty, stored.size)
        elif stored.buffer is None:
            array, ty = stored.array, stored.ty
            assert array is not None
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                array = stored.array = np.array(array, order="C")
            plain = array if array.dtype == ty.dtype else array.reshape(-1).view(ty.dtype)  # bools are bytes
            stored.buffer = stored.machine.adopt(plain, ty)
            if not stored.machine.shares_host_memory:
                _note_upload(array.nbytes)
        return stored.buffer

    def address(self) -> int:
        """Where the value begins in the machine's memory."""
        stored = self.stored
        if stored.address is None:
            stored.address = stored.machine.address(self.buffer().handle)
        return stored.address

    @property
    def exclusive(self) -> bool:
        """Whether nothing but this refers to its memory."""
        stored = self.stored
        return stored.on_machine and not stored.lent and sys.getrefcount(stored) <= ALONE

    def forget_host(self) -> None:
        """Drop what the host has of the value, if that is other memory than the machine's."""
        if self.stored.on_machine and not self.stored.machine.shares_host_memory:
            self.stored.array = None

    def host(self) -> Array:
        """The value as a contiguous host array, which nothing may write to."""
        stored = self.stored
        stored.own = False
        if stored.array is None:
            stored.array = self.buffer().read()
            _note_read(stored.array.nbytes)
        array = stored.array
        if array.dtype != self.dtype.numpy:
            array = array.reshape(-1).view(self.dtype.numpy)  # bools are computed as bytes, complex numbers as pairs
        if array.shape != self.shape:
            array = array.reshape(self.shape)
        return array if array.flags.c_contiguous else np.array(array, order="C")

    # --- pieces of it, for loops that a machine goes through round by round ---

    def copy(self) -> Resident:
        """The value in memory that nothing else has."""
        if self._is_on_host:
            return Resident.of(self.host().copy(), self.dtype, self.stored.machine)
        made = Resident.fresh(self.shape, self.dtype, self.stored.machine)
        made._copy_elements(0, self, 0, math.prod(self.shape))
        return made

    def element(self, number: int, shape: Shape, dtype: DType) -> Resident:
        """One of the values of this shape that it is made of, in memory of its own."""
        size = math.prod(shape)
        if self._is_on_host:
            part = self.host().reshape(-1)[number * size : (number + 1) * size]
            return Resident.of(np.array(part).reshape(shape), dtype, self.stored.machine)
        made = Resident.fresh(shape, dtype, self.stored.machine)
        made._copy_elements(0, self, number * size, size)
        return made

    def put(self, number: int, value: Resident) -> None:
        """Give one of the values of a shape that it is made of: the counterpart of `element`."""
        size = math.prod(value.shape)
        if self._is_on_host:
            assert self.stored.array is not None
            self.stored.array.reshape(-1)[number * size : (number + 1) * size] = value.host().reshape(-1)
        else:
            self._copy_elements(number * size, value, 0, size)

    @property
    def _is_on_host(self) -> bool:
        """Whether the host has the elements at no cost."""
        return self.stored.machine.shares_host_memory

    def _copy_elements(self, to: int, source: Resident, start: int, count: int) -> None:
        if not count:
            return
        stored, width = self.stored, self.dtype.size
        target: Any = self.buffer()
        given: Any = source.buffer()
        stored.machine.copy_within(target.handle, to * width, given.handle, start * width, count * width)
        self.forget_host()


def unfilled(shape: Shape, dtype: DType, machine: Machine) -> Resident:
    """Memory for a value that is going to be put together from pieces (`Resident.put`)."""
    if not machine.shares_host_memory:
        return Resident.fresh(shape, dtype, machine)
    return Resident.of(np.empty(shape, dtype.numpy), dtype, machine)


def on_machine(data: Any, dtype: DType, machine: Machine) -> Resident:
    """A value as memory of a machine; an array of the host is copied there when it is first read."""
    if type(data) is Resident and data.stored.machine is machine:
        return data
    if type(data) is np.ndarray:
        return Resident.of(data, dtype, machine)
    raise TensorError(
        f"a value in the memory of one '{data.device}' was given to another '{machine.name}'",
        hint="read it with .numpy() before its machine is replaced, and make a tensor of that",
    )


def moved(data: Any, dtype: DType, machine: Machine) -> Any:
    """A value for another machine: an array where that shares the host's memory."""
    array = on_host(data)
    return array if machine.shares_host_memory else Resident.brought(array, dtype, machine)


for _name, _given in {"stored": Stored, "resident": Resident, "let_go": _let_go}.items():
    front.give(_name, _given)
