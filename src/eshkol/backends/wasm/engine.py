"""wasmtime as a machine: an engine, one linear memory, and modules whose functions work in it.

Comes in: modules as `llvm/wasm_objects.py` makes them. Goes out: numbers of functions that can be called, and the
memory as an array of bytes. What the engine says (a trap, memory that it has not) becomes one of our errors. The memory
begins with the stack, below which a stack that is too small would leave the memory and trap.

wasmtime compiles a module to machine code; that is kept in the program cache, in the user's own folder, as code of the
CPU backend is. Modules stay loaded as long as the engine: a store gives nothing back before it goes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from eshkol.atlas.machines import CORES, MachineDescription
from eshkol.atlas.types import Array
from eshkol.backends.wasm.blocks import Blocks
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable
from eshkol.llvm.targets import Target, host_cpu, host_triple
from eshkol.llvm.wasm_objects import WasmCode
from eshkol.llvm.webassembly import target
from eshkol.support import installed
from eshkol.support.store import ProgramCache

INSTALL = "pip install eshkol[wasm]"
TRAP = "wasm trap: "  # behind which the engine says why it stopped
PAGE = 1 << 16
ADDRESSES = 1 << 32  # bytes that 32 bits address
STACK = 4 << 20
LARGEST = (1 << 31) - PAGE  # of a buffer: distances within it have a sign
SHARED = 1 << 20  # bytes of a block, as on the CPU
LANES = 1 << 20  # of a block
INSTANCES = 1 << 24  # modules of a store
FIRST_PAGES = (STACK + (1 << 20)) // PAGE
FUSED = """(module (memory (import "env" "memory") 1)
  (func (export "f32") (param f32 f32 f32) (result f32) (f32x4.extract_lane 0
    (f32x4.relaxed_madd (f32x4.splat (local.get 0)) (f32x4.splat (local.get 1)) (f32x4.splat (local.get 2)))))
  (func (export "f64") (param f64 f64 f64) (result f64) (f64x2.extract_lane 0
    (f64x2.relaxed_madd (f64x2.splat (local.get 0)) (f64x2.splat (local.get 1)) (f64x2.splat (local.get 2))))))"""
"""Asks whether relaxed products are rounded once."""

ARGUMENTS = 3 * 8  # bytes: where a record is, and which of its tasks are to be done
CALLING = """(module (import "env" "memory" (memory 1)) (import "env" "run" (func $run (param i32 i64 i64)))
  (func (export "call") (call $run (i32.load (i32.const {place}))
    (i64.load offset=8 (i32.const {place})) (i64.load offset=16 (i32.const {place})))))"""
"""Calls a function with what lies in memory: the package takes five times as long to hand over three arguments."""


@cache
def _wasmtime() -> Any:
    """wasmtime, or the reason why there is none."""
    try:
        import wasmtime
    except ImportError as error:
        missing = error.name == "wasmtime"
        return f"wasmtime is not installed: {INSTALL}" if missing else f"wasmtime does not load ({error}): {INSTALL}"
    except OSError as error:
        return f"wasmtime does not load ({error}): {INSTALL}"
    return wasmtime


def unavailable() -> str | None:
    """Why there is no engine; None where there is one."""
    found = _wasmtime()
    return found if isinstance(found, str) else None


@cache
def version() -> str:
    """The version of wasmtime."""
    from importlib.metadata import version as version_of

    return version_of("wasmtime")


@dataclass(frozen=True)
class Device:
    """The engine as backends see devices."""

    name: str
    memory: int
    fused: bool  # whether relaxed products are rounded once, as those of the CPU

    largest: int = LARGEST
    shared_bytes: int = SHARED
    lanes: int = LANES

    def description(self) -> MachineDescription:
        """What schedules for it are made with: those of cores, of which it is one."""
        return _description(self.name)

    @property
    def target(self) -> Target:
        return target(fused=self.fused)

    def facts(self) -> dict[str, Any]:
        """What there is to say of it, as JSON values."""
        products = "products with sums in one" if self.fused else "products with sums in several"
        summary = f"vectors of 128 bits, {products}, one thread, at most {self.memory >> 20} MiB"
        return {"number": 0, "name": self.name, "memory": self.memory, "fused": self.fused, "summary": summary}


@cache
def _description(name: str) -> MachineDescription:
    from dataclasses import replace

    return replace(CORES, name=f"wasm {name}", largest=LARGEST, shared_memory=SHARED)


@cache
def device() -> Device:
    """The engine that is installed."""
    reason = unavailable()
    if reason is not None:
        raise BackendUnavailable(f"the wasm backend is not available: {reason}", hint="ESHKOL_DEVICE=cpu")
    return Device(f"wasmtime {version()}", min(ADDRESSES, installed.memory()), _fuses())


def _engine() -> Any:
    w = _wasmtime()
    config = w.Config()
    config.wasm_simd = config.wasm_bulk_memory = config.wasm_relaxed_simd = True
    return w.Engine(config)


def _fuses() -> bool:
    """Whether the engine rounds relaxed products with sums once, in F32 and F64, also where they are subnormal."""
    w, engine = _wasmtime(), _engine()
    try:
        module = w.Module(engine, FUSED)
        store = w.Store(engine)
        memory = w.Memory(store, w.MemoryType(w.Limits(1, None)))
        exports = w.Instance(store, module, [memory]).exports(store)
    except w.WasmtimeError:
        return False
    small, tiny = 2.0**-12, 2.0**-27
    cases = [
        ("f32", 1.0 + small, 1.0 + small, -1.0 - 2 * small, small * small),
        ("f32", 1.0 + small, 1.0 - small, -1.0, -small * small),
        ("f32", 2.0**-75, 2.0**-75, 2.0**-149, 2.0**-148),
        ("f64", 1.0 + tiny, 1.0 + tiny, -1.0 - 2 * tiny, tiny * tiny),
        ("f64", 1.0 + tiny, 1.0 - tiny, -1.0, -tiny * tiny),
    ]
    return all(exports[name](store, *given) == wanted for name, *given, wanted in cases)


class Loaded:
    """A module in the memory: numbers of its functions, by name."""

    def __init__(self, functions: dict[str, int]) -> None:
        self._functions = functions

    def address(self, name: str) -> int:
        return self._functions[name]


@dataclass
class Engine:
    """An engine with its memory."""

    device: Device
    limit: int
    functions: list[Callable[..., Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.w = w = _wasmtime()
        self.engine = _engine()
        self.store = w.Store(self.engine)
        self.limit = min(self.limit, ADDRESSES)
        most = max(FIRST_PAGES, self.limit // PAGE)
        self.store.set_limits(memory_size=most * PAGE, instances=INSTANCES)
        with self.asked("its memory"):
            self.memory = w.Memory(self.store, w.MemoryType(w.Limits(FIRST_PAGES, most)))
        self._pages = FIRST_PAGES
        self.blocks = Blocks(STACK, most * PAGE)
        self._stack = self._number(STACK, mutable=True)
        self.view = self._seen()
        self._arguments = self.take(ARGUMENTS)
        self._calling = w.Module(self.engine, CALLING.format(place=self._arguments))

    @contextmanager
    def asked(self, what: str) -> Iterator[None]:
        """Around what the engine is asked for: what it says becomes one of our errors."""
        try:
            yield
        except self.w.Trap as trap:
            self._stack.set_value(self.store, self.w.Val.i32(STACK))  # functions that did not return left it as it was
            text = str(trap.message)
            said = text[text.find(TRAP) + len(TRAP) :].split("\n")[0] if TRAP in text else " ".join(text.split())
            raise BackendError(
                f"{self.device.name} stopped {what}: {said}",
                hint="this is a bug of Eshkol, unless memory was changed from outside: please report it",
            ) from None
        except self.w.WasmtimeError as error:
            raise BackendError(f"{self.device.name} refuses {what}: {error}") from None

    def _number(self, value: int, *, mutable: bool = False) -> Any:
        kind = self.w.GlobalType(self.w.ValType.i32(), mutable)
        return self.w.Global(self.store, kind, self.w.Val.i32(value - ADDRESSES if value >= ADDRESSES // 2 else value))

    def _seen(self) -> Array:
        """All of the memory."""
        raw = self.memory.get_buffer_ptr(self.store)
        return np.frombuffer(raw, np.uint8)

    def take(self, size: int) -> int:
        """A block of the memory, which grows where it must."""
        offset = self.blocks.take(size)
        if offset is None:
            raise AllocationFailed(
                f"{self.device.name} has no room for {size} bytes in a memory of {self.blocks.end} bytes",
                hint="free tensors, or take smaller batches: addresses have 32 bits",
            )
        needed = -(-(offset + max(size, 1)) // PAGE)
        if needed > self._pages:
            try:
                self.memory.grow(self.store, needed - self._pages)
            except self.w.WasmtimeError as error:
                self.blocks.drop(offset)
                raise AllocationFailed(f"{self.device.name} gives no memory for {size} bytes: {error}") from None
            self._pages = needed
            self.view = self._seen()
        return offset

    @contextmanager
    def meanwhile(self, size: int) -> Iterator[int]:
        """A block for the time being."""
        offset = self.take(size)
        try:
            yield offset
        finally:
            self.blocks.drop(offset)

    def words(self, offset: int, count: int) -> Array:
        """So many words of 64 bits from an offset on."""
        return self.view[offset : offset + 8 * count].view(np.uint64)

    def load(self, code: WasmCode, names: tuple[str, ...], cache: ProgramCache, label: str) -> Loaded:
        """A module, compiled now or found in the cache, in the memory."""
        w = self.w
        parts: dict[str, str | bytes] = {
            "backend": "wasm", "engine": self.device.name, "triple": host_triple(), "cpu": host_cpu(),
            "form": "machine code", "module": code.module,
        }  # fmt: skip

        def build() -> bytes:
            return bytes(w.Module(self.engine, code.module).serialize())

        with self.asked(f"the code of '{label}'"):
            machine_code = cache.get_or_build(parts, build, label)
            try:
                module = w.Module.deserialize(self.engine, machine_code)
            except w.WasmtimeError:  # of an engine with other settings, or another processor: made anew
                module = w.Module(self.engine, code.module)
            base = self.take(len(code.data)) if code.data else STACK
            self.view[base : base + len(code.data)] = np.frombuffer(code.data, np.uint8)
            given = {"__linear_memory": self.memory, "__stack_pointer": self._stack,
                     "__memory_base": self._number(base)}  # fmt: skip
            instance = w.Instance(self.store, module, [given[i.name] for i in module.imports])
            exports = instance.exports(self.store)
            found = {}
            for name in names:
                found[name] = len(self.functions)
                calling = w.Instance(self.store, self._calling, [self.memory, exports[name]])
                self.functions.append(calling.exports(self.store)["call"])
            return Loaded(found)

    def call(self, function: int, place: int, begin: int, end: int) -> None:
        """Call a function with the place of its record and what it is to do."""
        self.words(self._arguments, 3)[:] = place, begin, end
        self.functions[function](self.store)
