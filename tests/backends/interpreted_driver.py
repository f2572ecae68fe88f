"""A driver of NVIDIA's whose device is the reference interpreter: for tests of everything around the PTX.

Memory is the host's under addresses of its own. A launch reads the record that the kernel is given, as the PTX would,
and runs the program on the interpreter. So a wrong address, a scalar in the wrong place, memory that is used after it
was given back or an access that was wrongly trusted are seen without a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from eshkol.atlas.program import LaunchConfig, ParamKind, Program
from eshkol.atlas.types import decode
from eshkol.backends.base import TypedBuffer
from eshkol.backends.cuda import backend as backends
from eshkol.backends.cuda import driver as drivers
from eshkol.backends.cuda import modules, translate
from eshkol.backends.cuda.driver import OUT_OF_MEMORY, Driver
from eshkol.backends.cuda.together import STATUS_ADDRESS, Table, tables
from eshkol.backends.cuda.warpgroups import instructions
from eshkol.backends.lanes import layout as words
from eshkol.backends.reference.backend import ReferenceBackend
from eshkol.errors import BackendError, EshkolError
from eshkol.runtime.launches import MAP_WORDS
from eshkol.tensors import devices

ATTRIBUTES = {75: 9, 76: 0, 16: 132, 97: 227 << 10, 38: 50 << 20, 95: 1}
MEMORY = 1 << 26
UNKNOWN = 999
MACHINE_CODE = b"\x7fELF"  # what the driver makes of a text begins with this, and then has the text


@contextmanager
def installed(monkeypatch: Any, driver: InterpretedDriver | None = None) -> Iterator[Any]:
    """The cuda backend on an interpreted driver, opened anew, as long as it lasts."""
    made = driver or InterpretedDriver()

    def translated(program: Program, target: Any, relied_on: Any = None) -> Any:
        module = translate.translate(program, target, relied_on)
        made.programs[module.text] = program
        return module

    def at_once(program: Program, *given: Any) -> Any:
        found = instructions.whole(program, *given)
        if found is not None:
            made.programs[modules.named(found.text.encode(), program.name).decode()] = program
            made.at_once[program.digest] = len(found.maps)
        return found

    def tabled(*given: Any) -> Iterator[Table]:
        for table in tables(*given):
            made.tables[table.module().text] = table
            yield table

    monkeypatch.setattr(drivers, "_opened", lambda: made)
    monkeypatch.setattr(backends, "tables", tabled)
    monkeypatch.setattr(backends, "whole", at_once)
    monkeypatch.setattr(backends, "translate", translated)
    monkeypatch.setattr(backends, "cached_ptx", lambda cache, module, target, label: module.text.encode())
    names = ("cuda", "cuda:1")
    real = {name: devices._opened.pop(name) for name in names if name in devices._opened}
    try:
        yield made
    finally:
        for name in names:
            devices._opened.pop(name, None)
        devices._opened.update(real)


def pointed(address: int) -> Any:
    """The words from an address on."""
    return (ctypes.c_uint64 * 22).from_address(address)


class InterpretedDriver(Driver):
    """What `Driver` is, without a library. `modules` has the programs whose PTX was loaded."""

    def __init__(self, memory: int = MEMORY) -> None:
        self.free_bytes, self.memory = memory, memory
        self.blocks: dict[int, Any] = {}  # address → memory of the host
        self.programs: dict[str, Program] = {}  # text of a module → program
        self.tables: dict[str, Table] = {}  # likewise, of kernels of several calls
        self.at_once: dict[str, int] = {}  # digests of those that groups of warps do as a whole, and their maps
        self.handles: dict[int, Any] = {}
        self.calls: list[str] = []
        self.fails: dict[str, int] = {}  # functions that report this number
        self.refuses_code = False  # whether machine code that it gave is not taken any more
        self.lost = 0  # the number that everything reports, once the device is gone
        self.raised: BaseException | None = None  # by a function that native code has called
        self.natives: dict[str, Any] = {}
        self.held: list[Any] = []  # arguments of the kernels of graphs
        self.reference = ReferenceBackend()
        self._functions = {"cuGetErrorName": self._error_text, "cuGetErrorString": self._error_text}

    def made(self, what: Any) -> int:
        self.handles[len(self.handles) + 1] = what
        return len(self.handles)

    def address(self, name: str) -> int:
        """The address of a function for native code; what goes wrong inside is raised by whoever asks for the error."""

        def called(*arguments: Any) -> int:
            try:
                return self.try_call(name, *arguments)
            except BaseException as error:
                self.raised = error
                return UNKNOWN

        types = (drivers._FUNCTIONS | dict(drivers.GRAPHS.values()) | drivers.MAPS)[name]
        if name not in self.natives:
            self.natives[name] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(called)
        return ctypes.cast(self.natives[name], ctypes.c_void_p).value or 0

    @property
    def has_maps(self) -> bool:
        return True

    def graphs(self) -> dict[str, int]:
        return {what: self.address(name) for what, (name, _) in drivers.GRAPHS.items()}

    def error(self, code: int, name: str) -> BackendError:
        raised, self.raised = self.raised, None
        if raised is not None:
            raise raised
        return super().error(code, name)

    def try_call(self, name: str, *arguments: Any) -> int:
        self.calls.append(name)
        failing = self.lost or self.fails.get(name, 0)
        return failing or getattr(self, name, lambda *given: 0)(*arguments) or 0

    def _failing(self, name: str) -> None:
        self.calls.append(name)
        code = self.lost or self.fails.get(name, 0)
        if code:
            raise self.error(code, name)

    def _error_text(self, code: int, found: Any) -> None:
        found._obj.value = f"error {code}".encode()

    def call(self, name: str, *arguments: Any) -> None:
        code = self.try_call(name, *arguments)
        if code:
            raise self.error(code, name)

    def machine_code(self, ptx: bytes) -> bytes:
        self._failing("cuLinkComplete")
        return MACHINE_CODE + ptx

    def loaded(self, image: bytes) -> int:
        self._failing("cuModuleLoadDataEx")
        if image.startswith(MACHINE_CODE) and self.refuses_code:
            raise self.error(200, "cuModuleLoadDataEx")
        text = image.removeprefix(MACHINE_CODE).decode()
        return self.made(self.tables[text] if text in self.tables else self.programs[text])

    def handle(self, name: str, *arguments: Any) -> int:
        self._failing(name)
        if name == "cuModuleGetFunction":
            asked = self.handles[arguments[0]]
            assert arguments[1].decode() == modules.entry(asked.name)
            return arguments[0]
        return self.made(name)

    def number(self, name: str, *arguments: Any) -> int:
        return {"cuDeviceGetCount": 2, "cuDeviceGet": 0, "cuDriverGetVersion": 13000}[name]

    def attribute(self, device: int, what: str) -> int:
        from eshkol.backends.cuda.driver import _ATTRIBUTES

        return ATTRIBUTES[_ATTRIBUTES[what]]

    def device_name(self, device: int) -> str:
        return "interpreter"

    def total_memory(self, device: int) -> int:
        return self.memory

    # --- functions of the driver ---

    def cuEventElapsedTime(self, found: Any, start: int, end: int) -> None:
        found._obj.value = 2.5

    def cuMemAlloc_v2(self, found: Any, size: int) -> int:
        if size > self.free_bytes:
            return OUT_OF_MEMORY
        block = ctypes.create_string_buffer(size)
        ctypes.memset(block, 0xA5, size)  # which is what no one wrote
        self.free_bytes -= size
        found._obj.value = ctypes.addressof(block)
        self.blocks[found._obj.value] = block
        return 0

    def cuMemFree_v2(self, address: int) -> None:
        self.free_bytes += len(self.blocks.pop(address))

    def cuMemHostAlloc(self, found: Any, size: int, flags: int) -> None:
        block = ctypes.create_string_buffer(size)
        self.handles[-len(self.handles) - 1] = block
        found._obj.value = ctypes.addressof(block)

    def _inside(self, address: int, size: int) -> None:
        ok = any(start <= address and address + size <= start + len(block) for start, block in self.blocks.items())
        assert ok, "a copy leaves the device's memory"

    def cuPointerGetAttribute(self, found: Any, what: int, address: int) -> None:
        found._obj.value = 0

    def cuMemcpyHtoDAsync_v2(self, to: int, origin: int, size: int, stream: int) -> None:
        self._inside(to, size)
        ctypes.memmove(to, origin, size)

    def cuMemcpyDtoHAsync_v2(self, to: int, origin: int, size: int, stream: int) -> None:
        self._inside(origin, size)
        ctypes.memmove(to, origin, size)

    def cuMemcpyDtoDAsync_v2(self, to: int, origin: int, size: int, stream: int) -> None:
        self._inside(to, size)
        self._inside(origin, size)
        ctypes.memmove(to, origin, size)

    def cuMemsetD8Async(self, to: int, value: int, size: int, stream: int) -> None:
        self._inside(to, size)
        ctypes.memset(to, value, size)

    # --- graphs: chains of what is called when they are launched ---

    def cuGraphCreate(self, found: int, flags: int) -> None:
        pointed(found)[0] = self.made([])

    def _added(self, found: int, graph: int, after: int | None, count: int, task: list[Any]) -> None:
        nodes: list[int] = self.handles[graph]
        assert [pointed(after)[0]] == nodes[-1:] if count else not nodes, "it is no chain"
        nodes.append(self.made(task))
        pointed(found)[0] = nodes[-1]

    def cuGraphAddKernelNode(self, found: int, graph: int, after: int | None, count: int, what: int) -> None:
        self._added(found, graph, after, count, self._kernel_task(what))

    def cuGraphAddMemcpyNode(
        self, found: int, graph: int, after: int | None, count: int, what: int, context: int
    ) -> None:
        self._added(found, graph, after, count, self._copy_task(what))

    def cuGraphInstantiateWithFlags(self, found: int, graph: int, flags: int) -> None:
        pointed(found)[0] = self.made({node: self.handles[node] for node in self.handles[graph]})

    def cuGraphExecKernelNodeSetParams(self, ready: int, node: int, what: int) -> None:
        assert node in self.handles[ready]
        self.handles[ready][node] = self._kernel_task(what)

    def cuGraphExecMemcpyNodeSetParams(self, ready: int, node: int, what: int, context: int) -> None:
        assert node in self.handles[ready]
        self.handles[ready][node] = self._copy_task(what)

    def cuGraphLaunch(self, ready: int, stream: int) -> None:
        for name, *given in self.handles[ready].values():
            getattr(self, name)(*given)

    def cuGraphExecDestroy(self, ready: int) -> None:
        self.handles[ready] = None

    cuGraphDestroy = cuGraphExecDestroy

    def _kernel_task(self, what: int) -> list[Any]:
        """A launch with copies of its arguments: the driver reads them when a node is made or changed."""
        kernel, *_ = pointed(what)
        numbers = (ctypes.c_uint * 7).from_address(what + 8)
        given = pointed(pointed(what)[5])
        count = self._words(self.handles[kernel])
        status = (ctypes.c_uint64 * 1)(pointed(given[0])[0])
        record = (ctypes.c_uint64 * count).from_buffer_copy((ctypes.c_uint64 * count).from_address(given[1]))
        arguments = (ctypes.c_uint64 * 2)(ctypes.addressof(status), ctypes.addressof(record))
        self.held.append((status, record, arguments))
        return ["cuLaunchKernel", kernel, *numbers, 0, ctypes.addressof(arguments), None]

    def _copy_task(self, what: int) -> list[Any]:
        """Of one row: the words are 4 of the source's start, its kind, host, address, …, and the target's likewise."""
        source, target = pointed(what)[6], pointed(what)[17]
        width, height, depth = (ctypes.c_uint64 * 3).from_address(what + 8 * 22)
        kinds = pointed(what)[4] & 0xFFFFFFFF, pointed(what)[15] & 0xFFFFFFFF
        assert (kinds, height, depth) == ((2, 2), 1, 1)
        return ["cuMemcpyDtoDAsync_v2", target, source, width, 0]

    def cuTensorMapEncodeTiled(
        self, into: int, kind: int, axes: int, address: int, extents: int, strides: int, box: int, steps: int, *how: int
    ) -> int:
        """A map: the address and the bytes that it may touch. What a driver refuses, it refuses."""
        sizes = {0: 1, 6: 2, 7: 4, 9: 2, 11: 4}
        lengths = (ctypes.c_uint64 * axes).from_address(extents)
        apart = (ctypes.c_uint64 * (axes - 1)).from_address(strides)
        boxes = (ctypes.c_uint32 * axes).from_address(box)
        wrong = (
            into % 64 or address % 16 or any(s % 16 or not s for s in apart) or not all(1 <= b <= 256 for b in boxes)
        )
        exchanged = how[1] == 3 and boxes[0] * sizes[kind] <= 128
        if wrong or not (exchanged or how[1] == 0) or (how[0], *how[2:]) != (0, 3, 0) or not all(lengths):
            return 1
        reach = sizes[kind] * lengths[0] + sum((n - 1) * s for n, s in zip(lengths[1:], apart, strict=True))
        pointed(into)[0], pointed(into)[1] = address, reach
        return 0

    def cuTensorMapEncodeIm2col(
        self, into: int, kind: int, axes: int, address: int, extents: int, strides: int, lower: int, upper: int,
        elements: int, windows: int, steps: int, *how: int,
    ) -> int:  # fmt: skip
        """A map of windows: as one of boxes, if there is at least one window, and corners can be told."""
        lengths = (ctypes.c_uint64 * axes).from_address(extents)
        below, above = ((ctypes.c_int * (axes - 2)).from_address(corner) for corner in (lower, upper))
        apart = (ctypes.c_uint32 * axes).from_address(steps)
        if axes != 4 or windows > 1024 or any(not 1 <= step <= 8 for step in apart) or (apart[0], apart[3]) != (1, 1):
            return 1
        for length, first, last in zip(lengths[1:3], below, above, strict=True):
            if not (min(first, last) >= -128 and max(first, last) <= 127 and first <= length - 1 + last):
                return 1
        box = (ctypes.c_uint32 * axes)(elements, *[1] * (axes - 1))
        given = ctypes.addressof(box), steps
        return self.cuTensorMapEncodeTiled(into, kind, axes, address, extents, strides, *given, *how)

    def _words(self, program: Program | Table) -> int:
        """Words of a program's record; behind those of one that is done as a whole lie maps of its factors."""
        if isinstance(program, Table):
            return (program.size - STATUS_ADDRESS) // 8
        count = words.FIRST_PARAM + 2 * len(program.params)
        return (
            -(-count // 8) * 8 + self.at_once[program.digest] * MAP_WORDS if program.digest in self.at_once else count
        )

    def _mapped(self, names: list[str], record: Any, count: int) -> None:
        """So many maps behind a record are of its buffers, and within them."""
        buffers = [words.FIRST_PARAM + 2 * k for k in range(len(names))]
        for k in range(len(record) - count * MAP_WORDS, len(record), MAP_WORDS):
            address, reach = record[k : k + 2]
            inside = [record[b] <= address and address + reach <= record[b] + record[b + 1] for b in buffers]
            assert any(inside), "a map leaves its buffer"

    def cuLaunchKernel(self, kernel: int, *given: Any) -> None:
        blocks, _, _, lanes, _, _, shared, _, pointers, _ = given
        program = self.handles[kernel]
        pointers = (ctypes.c_uint64 * 2).from_address(pointers)
        record = (ctypes.c_uint64 * self._words(program)).from_address(pointers[1])
        status = (ctypes.c_uint64 * 2).from_address(ctypes.c_uint64.from_address(pointers[0]).value)
        if isinstance(program, Table):
            self._launch_all(program, record, blocks, lanes, shared, status)
        else:
            self._launch(program, record, blocks, lanes, shared, status)

    def _launch_all(self, table: Table, record: Any, blocks: int, lanes: int, shared: int, status: Any) -> None:
        """Each call by itself: its record is what its code reads of the table, and what it does not read."""
        firsts = [*np.frombuffer(bytes(record), np.uint32)[: len(table.members)].tolist(), blocks]
        number = 0
        for part, columns in zip(table.parts, table.columns, strict=True):
            for row, member in enumerate(part):
                program = member.prepared.program
                own = (ctypes.c_uint64 * self._words(program)).from_buffer_copy(member.record.bytes)
                for word, (start, differs) in columns.items():
                    own[word] = record[start + row * differs]
                own_lanes = member.launch.block_size
                assert own_lanes == lanes or member.launch.blocks == 1
                assert own_lanes <= lanes
                self._launch(program, own, firsts[number + 1] - firsts[number], own_lanes, shared, status)
                number += 1

    def _launch(self, program: Program, record: Any, blocks: int, lanes: int, shared: int, status: Any) -> None:
        names = [p.name for p in program.params]
        launch = LaunchConfig(tuple(record[words.GRID : words.GRID + 3]), tuple(record[words.BLOCK : words.BLOCK + 3]),
                              shared)  # fmt: skip
        if program.digest in self.at_once:
            self._mapped(names, record, self.at_once[program.digest])
            launch = LaunchConfig(launch.grid, launch.block)
        else:
            assert (launch.blocks, launch.block_size, record[words.SHARED_BYTES]) == (blocks, lanes, shared)
        params: dict[str, Any] = {}
        buffers: dict[tuple[int, int], TypedBuffer] = {}  # one for each place: parameters may be the same buffer
        for number, param in enumerate(program.params):
            place = words.FIRST_PARAM + 2 * number
            assert param.ty is not None
            assert param.kind is not ParamKind.POOL
            if param.kind is ParamKind.SCALAR:
                raw = np.frombuffer(bytes(record)[8 * place : 8 * place + param.ty.size_bytes], np.uint8)
                params[param.name] = decode(raw.reshape(1, -1), param.ty)[0].item()
                continue
            address, size = record[place], record[place + 1]
            if size:
                self._inside(address, size)
            if (address, size) not in buffers:
                handle = self.reference.allocate(size)
                self.reference.copy_to(handle, ctypes.string_at(address, size) if size else b"")
                buffers[address, size] = TypedBuffer(self.reference, handle, param.ty, size // param.ty.size_bytes)
            params[param.name] = buffers[address, size].handle
        try:
            self.reference.execute(program, launch, params)
        except EshkolError:
            status[0] = 0  # the first site, lane 0: which one it is, only the PTX knows
        for (address, size), buffer in buffers.items():
            if size:
                ctypes.memmove(address, self.reference.copy_from(buffer.handle), size)
            buffer.free()
