"""What every backend offers: buffers, pools, execution, emitted code, a description of itself.

Comes in: Atlas programs, launches and host data. A backend implements the abstract methods; handles, typed
buffers and the checking of parameters are written here once, so that misuse gives the same clear error
everywhere. Nothing above this package needs to know which backend it talks to.
"""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import Immediate
from eshkol.atlas.pool import Pool
from eshkol.atlas.program import LaunchConfig, Param, ParamKind, Program
from eshkol.atlas.rounding import to_array
from eshkol.atlas.sequence import NativeCode, Runner, SequenceStep
from eshkol.atlas.types import Array, Type, decode, encode
from eshkol.errors import AllocationFailed, BackendUnavailable, InvalidBuffer, IsaError
from eshkol.support.store import ProgramCache

_backend_numbers = itertools.count(1)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BufferHandle:
    """Names a buffer of one backend. It owns nothing by itself: `free` gives the memory back."""

    backend: int
    number: int


@dataclass(frozen=True, slots=True)
class PoolHandle:
    """Names a pool of one backend."""

    backend: int
    number: int


class HandleTable(Generic[T]):
    """The live objects behind handles. Numbers are never used again, so a stale handle is always seen."""

    def __init__(self, backend: int, what: str) -> None:
        self._backend, self._what = backend, what
        self._numbers = itertools.count(1)
        self._live: dict[int, T] = {}
        self.find = self._live.get  # the object of a number that is known to be of this backend, if it still lives
        self.removals = 0  # as long as this number stays, whatever lived lives

    def __len__(self) -> int:
        return len(self._live)

    def add(self, item: T) -> int:
        number = next(self._numbers)
        self._live[number] = item
        return number

    def get(self, handle: BufferHandle | PoolHandle) -> T:
        self._check(handle)
        return self._live[handle.number]

    def remove(self, handle: BufferHandle | PoolHandle) -> T:
        self._check(handle)
        self.removals += 1
        return self._live.pop(handle.number)

    def _check(self, handle: BufferHandle | PoolHandle) -> None:
        kind = BufferHandle if self._what == "buffer" else PoolHandle
        if not isinstance(handle, kind):
            raise InvalidBuffer(f"{handle!r} is not a {self._what} handle")
        if handle.backend != self._backend:
            raise InvalidBuffer(
                f"the {self._what} belongs to another backend",
                hint="copy the data out there and in here: copy_from, then copy_to",
            )
        if handle.number not in self._live:
            raise InvalidBuffer(f"the {self._what} has been freed, or never existed")


@dataclass(frozen=True, slots=True, eq=False)
class TypedBuffer:
    """A buffer with its element type and count, read and written as NumPy arrays."""

    backend: Backend
    handle: BufferHandle
    ty: Type
    count: int

    def write(self, values: Any) -> None:
        """Copy as many values as the buffer has elements into it."""
        flat = to_array(values, self.ty)
        if flat.size != self.count:
            raise InvalidBuffer(f"{flat.size} values do not fit a buffer of {self.count} elements")
        self.backend.copy_to(self.handle, encode(flat, self.ty))

    def read(self) -> Array:
        """The elements as a NumPy array."""
        size = self.count * self.ty.size_bytes  # the memory of no elements may have some bytes
        raw = np.frombuffer(self.backend.copy_from(self.handle, 0, size), np.uint8)
        return decode(raw.reshape(self.count, self.ty.size_bytes), self.ty)

    def free(self) -> None:
        self.backend.free(self.handle)


class Event:
    """A point in what a machine is asked for, and when it came there; of machines that return when they are done."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Let it be here: after all that was asked for so far, of a stream."""
        self._seconds = time.perf_counter()

    def done(self) -> bool:
        """Whether the machine has come there; one that was never recorded is nowhere, and waits for nothing."""
        return True

    def wait(self) -> None:
        """Wait until the machine has come there."""

    def seconds_until(self, later: Event) -> float:
        """How long the machine took from here to there; both must have been recorded."""
        assert self._seconds is not None
        assert later._seconds is not None
        return later._seconds - self._seconds


class Stream:
    """What a machine does in order, beside other streams; of machines that return when they are done."""

    number = 0  # the one that there always is

    @property
    def handle(self) -> int:
        """As the driver knows it."""
        return 0

    def synchronize(self) -> None:
        """Wait until all that it was asked for is done."""

    def done(self) -> bool:
        """Whether it is."""
        return True

    def wait(self, event: Event) -> None:
        """Let what it is asked for from now on be done after an event."""

    @contextmanager
    def used(self) -> Iterator[None]:
        """What the machine is asked for meanwhile goes to this stream."""
        yield


class Backend(ABC):
    """One kind of machine that runs Atlas programs."""

    name: ClassVar[str]
    targets: ClassVar[tuple[str, ...]] = ()  # what `compile_to` can emit
    stands_in: ClassVar[bool] = False  # whether it only stands in for a machine that is not there, for tests
    shares_host_memory: ClassVar[bool] = False  # whether `adopt` makes a buffer of the array's own memory
    has_addresses: ClassVar[bool] = False  # whether its buffers have addresses, and it runs `sequence`s over them
    whole_graphs: ClassVar[bool] = False  # whether it compiles graphs as they are, and runs no programs of Atlas

    def __init__(self) -> None:
        self.number = next(_backend_numbers)

    @property
    def copies_at_once(self) -> bool:
        """Whether values that are moved to it are copied now, and not when they are first read there."""
        return False

    @classmethod
    @abstractmethod
    def unavailable(cls) -> str | None:
        """Why this backend cannot be used on this machine; None when it can."""

    @classmethod
    def available(cls) -> bool:
        return cls.unavailable() is None

    @classmethod
    def numbered(cls, number: int) -> type[Backend]:
        """The backend of one of several such machines."""
        raise BackendUnavailable(f"there is only one {cls.name}, and no {cls.name}:{number}")

    @classmethod
    def machines(cls) -> list[dict[str, Any]]:
        """What is known of each machine that it can run on, as JSON values, where there may be several."""
        return []

    @property
    @abstractmethod
    def description(self) -> MachineDescription:
        """What the machine is like; schedules are made by it.

        Always the same, but for how precise products are wanted of a machine that has several ways (`matrices`).
        """

    @property
    def store(self) -> ProgramCache | None:
        """Where finished plans of the machine are kept, if they are."""
        return None

    @abstractmethod
    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        """Run a program over a launch; `params` maps parameter names to buffers, numbers and pools."""

    @abstractmethod
    def allocate(self, size: int) -> BufferHandle: ...

    @abstractmethod
    def free(self, handle: BufferHandle) -> None: ...

    @abstractmethod
    def copy_to(self, handle: BufferHandle, data: Any, offset: int = 0) -> None:
        """Copy bytes of the host into a buffer."""

    @abstractmethod
    def copy_from(self, handle: BufferHandle, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes of a buffer, by default from the offset to its end."""

    def copy_within(
        self, target: BufferHandle, target_offset: int, source: BufferHandle, source_offset: int, size: int
    ) -> None:
        """Copy bytes from one buffer to another; a machine whose memory is far from the host has its own way."""
        self.copy_to(target, self.copy_from(source, source_offset, size), target_offset)

    @abstractmethod
    def size(self, handle: BufferHandle) -> int: ...

    @abstractmethod
    def allocate_pool(self, capacity: int) -> PoolHandle: ...

    @abstractmethod
    def free_pool(self, handle: PoolHandle) -> None: ...

    @abstractmethod
    def copy_to_pool(self, handle: PoolHandle, offset: int, data: Any) -> None: ...

    @abstractmethod
    def copy_from_pool(self, handle: PoolHandle, offset: int, size: int) -> bytes: ...

    @abstractmethod
    def pool_size(self, handle: PoolHandle) -> int: ...

    def compile_to(self, target: str, program: Program) -> str:
        """The program as the target's text, for a person to read."""
        method = getattr(self, f"compile_to_{target}", None) if target in self.targets else None
        if method is None:
            known = ", ".join(self.targets) or "nothing"
            raise BackendUnavailable(f"the {self.name} backend does not emit '{target}'", hint=f"it emits {known}")
        text = method(program)
        assert isinstance(text, str)
        return text

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        """An array of the host that the machine copies from by itself; None where such memory would be no better."""
        return None

    def synchronize(self) -> None:
        """Wait until all that was asked for is done; a machine that returns only then has nothing to wait for."""
        return

    def event(self) -> Event:
        """A point in what the machine is asked for, to be recorded: for times as the machine takes them."""
        return Event()

    def stream_numbered(self, number: int | None = None) -> Stream:
        """A stream by its number, 0 being the one that there always is; without one, the stream that is used now."""
        return Stream()

    def new_stream(self) -> Stream:
        """A stream beside the others."""
        return Stream()

    def release(self) -> None:
        """Give back memory that is kept for what comes, where a machine keeps any."""
        return

    def sequence(self, steps: Sequence[SequenceStep], places: int) -> Runner:
        """Steps over so many places of memory, to be run in one go."""
        raise BackendUnavailable(f"the {self.name} backend runs one launch at a time")

    def native(self, op: str, attrs: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        """Code of the machine's own for an op that programs do not say, by its name; None where it has none."""
        return None

    def address(self, handle: BufferHandle) -> int:
        """Where a buffer begins, on a machine that has addresses."""
        raise BackendUnavailable(f"memory of the {self.name} backend has no addresses")

    def take(self, size: int) -> int:
        """Memory by its address alone, for whoever launches over addresses; `give` is how it is given back."""
        raise BackendUnavailable(f"memory of the {self.name} backend is asked for by buffers")

    def give(self, address: int) -> None:
        """Give back memory that was taken."""
        raise BackendUnavailable(f"memory of the {self.name} backend is asked for by buffers")

    def buffer_at(self, address: int, ty: Type, count: int) -> TypedBuffer:
        """A buffer of memory that was taken; to free it gives the memory back."""
        raise BackendUnavailable(f"memory of the {self.name} backend is asked for by buffers")

    def read_at(self, address: int, size: int) -> bytes:
        """Bytes from an address on, which lie in a buffer that the caller knows to be there."""
        raise BackendUnavailable(f"memory of the {self.name} backend has no addresses")

    def write_at(self, address: int, data: Any) -> None:
        """Copy bytes of the host to an address, which lies in a buffer that the caller knows to be there."""
        raise BackendUnavailable(f"memory of the {self.name} backend has no addresses")

    def allocate_typed(self, ty: Type, count: int) -> TypedBuffer:
        """A buffer for `count` elements of a type."""
        if not isinstance(count, int) or count < 0:
            raise AllocationFailed(f"a buffer cannot have {count} elements")
        return TypedBuffer(self, self.allocate(count * ty.size_bytes), ty, count)

    def array(self, values: Any, ty: Type | None = None) -> TypedBuffer:
        """A buffer that holds these values; the type is that of the NumPy array unless said."""
        ty = ty or Type.of_dtype(np.asarray(values).dtype)
        flat = to_array(values, ty)
        buffer = self.allocate_typed(ty, flat.size)
        buffer.write(flat)
        return buffer

    def adopt(self, array: Array, ty: Type) -> TypedBuffer:
        """A buffer of a contiguous host array's elements: over its memory where that is shared, else a copy."""
        buffer = self.allocate_typed(ty, array.size)
        self.copy_to(buffer.handle, array)
        return buffer

    def checked_copy(self, handle: BufferHandle, offset: int, size: int) -> None:
        """Refuse a copy that would leave the buffer."""
        total = self.size(handle)
        if offset < 0 or size < 0 or offset + size > total:
            raise InvalidBuffer(f"bytes {offset} to {offset + size} are outside a buffer of {total} bytes")


class HostPoolBackend(Backend):
    """A backend whose pools lie in host memory."""

    def __init__(self) -> None:
        super().__init__()
        self._pools: HandleTable[Pool] = HandleTable(self.number, "pool")

    def allocate_pool(self, capacity: int) -> PoolHandle:
        check_size(capacity, self.description.largest, "pool")
        return PoolHandle(self.number, self._pools.add(Pool(capacity)))

    def free_pool(self, handle: PoolHandle) -> None:
        self._pools.remove(handle)

    def pool(self, handle: PoolHandle) -> Pool:
        """The pool itself, for streaming through it from the host."""
        return self._pools.get(handle)

    def copy_to_pool(self, handle: PoolHandle, offset: int, data: Any) -> None:
        self._pools.get(handle).store(offset, as_bytes(data))

    def copy_from_pool(self, handle: PoolHandle, offset: int, size: int) -> bytes:
        return self._pools.get(handle).load(offset, size)

    def pool_size(self, handle: PoolHandle) -> int:
        return self._pools.get(handle).capacity


def check_size(size: object, limit: int, what: str) -> int:
    """A sensible allocation size, or AllocationFailed."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise AllocationFailed(f"a {what} cannot have {size} bytes")
    if size > limit:
        raise AllocationFailed(
            f"a {what} of {size} bytes is over the limit of {limit} bytes",
            hint="that is all the machine has: compute in smaller pieces",
        )
    return size


def refuse_launch(backend: str, device: str, shared_bytes: int, program: Program, launch: LaunchConfig) -> None:
    """Refuse what a device cannot run whose blocks are done in no order and share no more memory than that."""
    names = {i.op.name: i for i in program.instructions}
    if launch.shared_memory > shared_bytes:
        raise BackendUnavailable(
            f"a block of {device} has {shared_bytes} bytes of shared memory at most, not {launch.shared_memory}"
        )
    if "GridSync" in names and launch.blocks > 1:
        raise BackendUnavailable(
            f"the {backend} backend has GridSync for launches of one block only, not of {launch.blocks}",
            span=names["GridSync"].span, hint="launch one block, or split the program there",
        )  # fmt: skip
    if "PhaseWrite" in names and launch.total_threads > 1:
        raise BackendUnavailable(
            f"the {backend} backend has PhaseWrite for launches of one lane only: lanes write in no order",
            span=names["PhaseWrite"].span,
        )


def as_bytes(data: Any) -> Array:
    """Host data as a flat array of bytes."""
    if isinstance(data, np.ndarray):
        if data.dtype == object:
            raise InvalidBuffer("an array of Python objects has no bytes to copy", hint="use backend.array(values, ty)")
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError):
        raise InvalidBuffer(f"cannot copy a {type(data).__name__}: bytes or a NumPy array is needed") from None


@dataclass(frozen=True, slots=True)
class Binding:
    """A parameter with what the launch gave for it: a handle, or the scalar as an immediate."""

    param: Param
    value: BufferHandle | PoolHandle | Immediate


def bind_params(backend: Backend, program: Program, params: Mapping[str, Any] | None) -> dict[str, Binding]:
    """The program's parameters with their values; whatever is missing, unknown or unfit is an error."""
    given = dict(params or {})
    bindings = {}
    for param in program.params:
        if param.name not in given:
            raise IsaError(f"the launch gives no value for the {param.kind.value} '{param.name}'")
        bindings[param.name] = Binding(param, _bind(backend, param, given.pop(param.name)))
    if given:
        known = ", ".join(program.param) or "none"
        raise IsaError(f"the program has no parameter '{next(iter(given))}'", hint=f"its parameters: {known}")
    return bindings


def bind_scalar(param: Param, value: Any) -> Immediate:
    """A number for a scalar parameter."""
    assert param.ty is not None
    if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        value = value.item()
    if not isinstance(value, int | float) or (isinstance(value, float) and param.ty.is_integer):
        raise IsaError(f"the scalar '{param.name}' must be a number of type {param.ty}, not {value!r}")
    return Immediate(param.ty, int(value) if isinstance(value, bool) else value)


def _bind(backend: Backend, param: Param, value: Any) -> BufferHandle | PoolHandle | Immediate:
    if param.kind is ParamKind.SCALAR:
        return bind_scalar(param, value)
    if param.kind is ParamKind.POOL:
        if not isinstance(value, PoolHandle):
            raise IsaError(f"'{param.name}' must be a pool handle, not {type(value).__name__}")
        backend.pool_size(value)  # refuses a stale or foreign handle
        return value
    assert param.ty is not None
    if isinstance(value, TypedBuffer):
        if value.ty is not param.ty:
            raise IsaError(f"the buffer '{param.name}' holds {param.ty}, but was given {value.ty}")
        value = value.handle
    if not isinstance(value, BufferHandle):
        raise IsaError(
            f"'{param.name}' must be a buffer, not {type(value).__name__}",
            hint="copy an array in with backend.array(values)",
        )
    size = backend.size(value)
    if param.count is not None and size < param.count * param.ty.size_bytes:
        raise IsaError(f"the buffer '{param.name}' needs {param.count} × {param.ty}, but was given {size} bytes")
    return value
