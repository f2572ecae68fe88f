"""Code objects of AMD's GPUs, without such a GPU: what LLVM makes of programs, and what HIP is asked for.

The assembler's text is LLVM's own; objects are read as ELF, disassembled and linked where the tools are installed. What
HIP is asked for is seen by a driver that stands in: it has memory, keeps what is launched, and computes nothing.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

from effort import FULL
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.backends import backend_class
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.promises import promises
from eshkol.backends.rocm import driver as drivers
from eshkol.backends.rocm import translate as code
from eshkol.backends.rocm.backend import RocmBackend
from eshkol.backends.rocm.driver import Device, Driver
from eshkol.conformance.instructions import instruction_cases
from eshkol.errors import AllocationFailed, BackendUnavailable, DeviceLost, ExecutionFailed
from eshkol.llvm import elf

OBJDUMP = next((found for name in ("llvm-objdump", "llvm-objdump-14") if (found := shutil.which(name))), None)
LINKER = code.linker()
needs_linker = pytest.mark.skipif(LINKER is None, reason="lld is not installed (apt install lld)")
SAXPY = """\
.scalar n U64
.scalar a F32
.buffer x F32
.buffer y F32
LDG.U64 r0, [n]
SETcc.GE p0, r255, r0
BRA done, p0
LDG.F32 r1, [a]
LDG.F32 r2, [x+r255*4]
LDG.F32 r3, [y+r255*4]
FMA r3, r1, r2, r3
STG.F32 [y+r255*4], r3
done:
"""
TURNED = """\
.buffer x U32
SREG.LaneX r1
LDG.U32 r2, [x+r255*4]
STS.U32 [shared+r1*4], r2
BarSync
MOV_IMM.U32 r3, 7
XOR r4, r1, r3
LDS.U32 r5, [shared+r4*4]
STG.U32 [x+r255*4], r5
"""
SEVERAL = ["ADD F16", "DIV I64", "REM F32", "FMA BF16", "MIN F32", "MUL I256", "MUL I4096", "CVT F64 to BF16",
           "ATOM Add F16", "ATOM Max I64", "EXP F32", "SubGroupXor F32 by 1", "SubGroupXor U64 by 1"]  # fmt: skip


def written(source: str, architecture: str, *, fast: bool = True) -> str:
    program = code.in_base_instructions(assemble(source))
    target = code.target(architecture)
    return code.assembly(code.translate(program, target, promises(program) if fast else None), target)


@pytest.mark.parametrize("architecture", code.ARCHITECTURES)
def test_a_kernel_has_its_descriptor_and_no_memory_of_its_own(architecture):
    text = written(SAXPY, architecture)
    assert f'.amdgcn_target "{code.TRIPLE}--{architecture}"' in text
    assert re.search(r"\.amdhsa_kernel kernel\b", text)
    assert ".symbol:         kernel.kd" in text
    assert ".amdhsa_private_segment_fixed_size 0" in text
    assert not re.search(r"^\s*(scratch|buffer)_(load|store)", text, re.MULTILINE)
    assert "flat_load" not in text  # buffers are known to be global memory
    assert re.search(r"global_load_(dword|b32)", text)
    assert re.search(r"v_(pk_)?fma", text)
    assert ".value_kind:     global_buffer" in text


@pytest.mark.parametrize("architecture", code.ARCHITECTURES)
def test_blocks_share_memory_and_meet(architecture):
    text = written(TURNED, architecture)
    stored, met, loaded = (re.search(p, text) for p in (r"ds_(write|store)_b32", r"s_barrier", r"ds_(read|load)_b32"))
    assert stored is not None
    assert met is not None
    assert loaded is not None
    assert stored.start() < met.start() < loaded.start()
    assert ".amdhsa_private_segment_fixed_size 0" in text


def test_checks_are_in_the_plain_version_alone():
    plain, fast = (written(SAXPY, "gfx942", fast=fast) for fast in (False, True))
    assert "global_atomic" in plain
    assert "atomic" not in fast


@pytest.mark.parametrize("architecture", code.ARCHITECTURES if FULL else code.ARCHITECTURES[1:2])
def test_instructions_have_code(architecture):
    cases = {c.name: c for c in instruction_cases()}
    target = code.target(architecture)
    for name in cases if FULL else SEVERAL:
        case = cases[name]
        declared = "".join(f".buffer {b} {ty} {len(values)}\n" for b, (ty, values) in case.buffers.items())
        program = code.in_base_instructions(assemble(declared + case.source))
        defined, lacking = elf.names_of(code.compiled(code.translate(program, target), target))
        assert {"kernel", "kernel.kd"} <= set(defined), name
        assert not [x for x in lacking if not x.startswith("amdgpu.")], name


@pytest.mark.skipif(OBJDUMP is None, reason="llvm-objdump is not installed (apt install llvm)")
def test_objects_are_disassembled(tmp_path):
    assert OBJDUMP is not None
    target = code.target("gfx90a")
    place = tmp_path / "kernel.o"
    place.write_bytes(code.compiled(code.translate(code.in_base_instructions(assemble(TURNED)), target), target))
    ran = subprocess.run([OBJDUMP, "-d", "--mcpu=gfx90a", str(place)], capture_output=True, text=True, check=True)
    for word in ("<kernel>:", "ds_write_b32", "s_barrier", "ds_read_b32", "s_endpgm"):
        assert word in ran.stdout


@needs_linker
def test_objects_become_what_hip_loads():
    target = code.target("gfx90a")
    image = code.linked(code.compiled(code.translate(code.in_base_instructions(assemble(SAXPY)), target), target))
    assert elf.is_elf(image)
    assert int.from_bytes(image[16:18], "little") == 3  # a shared object
    assert int.from_bytes(image[18:20], "little") == 224  # of AMD's GPUs
    assert b"kernel.kd\0" in image
    assert image[7:9] == b"\x40\x02"  # of HSA, version 4


def test_modes_of_an_architecture_are_features():
    found = code.target("gfx90a:sramecc+:xnack-")
    assert (found.cpu, found.features) == ("gfx90a", "+sramecc,-xnack")


# --- HIP --------------------------------------------------------------------------------------------


class Function:
    """A function of the library, which ctypes would let types be said of."""

    def __init__(self, call) -> None:
        self.call = call

    def __call__(self, *given):
        return self.call(*given)


class Library:
    """What is asked of HIP, with memory that is the host's."""

    def __init__(self) -> None:
        self.held: dict[int, ctypes.Array] = {}
        self.launches: list[tuple[tuple[int, ...], bytes]] = []
        self.fault: int | None = None
        self.fails: dict[str, int] = {}
        self.loaded: list[bytes] = []

    def __getattr__(self, name: str):
        if name not in drivers._FUNCTIONS and not name.startswith(("hipGetError", "hipGetDeviceProperties")):
            raise AttributeError(name)
        function = Function(lambda *given: self.fails.get(name) or getattr(self, f"on_{name}", lambda *_: 0)(*given))
        setattr(self, name, function)
        return function

    def on_hipGetErrorName(self, number):
        return {2: b"hipErrorOutOfMemory", 700: b"hipErrorIllegalAddress"}.get(number, b"hipErrorUnknown")

    def on_hipGetErrorString(self, number):
        return b"in words"

    def on_hipGetDeviceCount(self, count):
        count._obj.value = 1
        return 0

    def on_hipDeviceGetName(self, name, size, number):
        name.value = b"Instinct"
        return 0

    def on_hipDeviceTotalMem(self, size, number):
        size._obj.value = 1 << 20
        return 0

    def on_hipGetDevicePropertiesR0600(self, raw, number):
        raw[1160:1171] = b"gfx90a:xna\0"
        raw[1160:1174] = b"gfx90a:xnack-\0"
        return 0

    def on_hipMalloc(self, place, size):
        memory = ctypes.create_string_buffer(size)
        self.held[ctypes.addressof(memory)] = memory
        place._obj.value = ctypes.addressof(memory)
        return 0

    def on_hipFree(self, address):
        del self.held[address]
        return 0

    def on_hipMemcpyHtoD(self, target, source, size):
        ctypes.memmove(target, source, size)
        return 0

    on_hipMemcpyDtoH = on_hipMemcpyDtoD = on_hipMemcpyHtoD

    def on_hipModuleLoadData(self, handle, image):
        self.loaded.append(image)
        handle._obj.value = 7
        return 0

    def on_hipModuleGetFunction(self, kernel, handle, name):
        assert (handle, name) == (7, b"kernel")
        kernel._obj.value = 9
        return 0

    def on_hipModuleLaunchKernel(self, *given):
        extra = ctypes.cast(given[10], ctypes.POINTER(ctypes.c_void_p))
        assert (extra[0], extra[2], extra[4]) == (1, 2, 3)
        size = ctypes.c_size_t.from_address(extra[3]).value
        arguments = ctypes.string_at(extra[1], size)
        self.launches.append((given[:8], arguments))
        if self.fault is not None:
            status = int.from_bytes(arguments[:8], "little")
            ctypes.memmove(status, self.fault.to_bytes(8, "little"), 8)
        return 0


@pytest.fixture
def hip(monkeypatch):
    library = Library()
    driver = Driver(library)
    monkeypatch.setattr(drivers, "_found", lambda: (driver, driver.devices()))
    return library


def test_devices_are_found_by_what_hip_says(hip):
    assert drivers.devices() == (Device(0, "Instinct", "gfx90a:xnack-", 1 << 20),)
    assert RocmBackend.machines()[0]["architecture"] == "gfx90a:xnack-"
    assert backend_class("rocm:0") is RocmBackend
    with pytest.raises(BackendUnavailable, match="rocm:5"):
        backend_class("rocm:5")()


@needs_linker
def test_a_launch_is_given_its_record(hip):
    machine = RocmBackend()
    x, y = (machine.array(np.arange(8, dtype=np.float32)) for _ in range(2))
    program, launch = assemble(SAXPY), LaunchConfig.linear(8, 4)
    machine.execute(program, launch, {"n": 8, "a": 2.5, "x": x, "y": y})
    (given, arguments), *_ = hip.launches
    assert given == (9, 2, 1, 1, 4, 1, 1, 0)
    record = np.frombuffer(arguments[8:], np.uint64)
    assert record[words.GRID : words.GRID + 6].tolist() == [2, 1, 1, 4, 1, 1]
    first = words.FIRST_PARAM
    assert record[first] == 8
    assert record[first + 2 : first + 4].view(np.float32)[0] == 2.5
    assert int(record[first + 4]) in hip.held
    assert record[first + 5] == 32
    assert hip.loaded[0][:4] == b"\x7fELF"
    assert (x.read() == np.arange(8)).all()


@needs_linker
def test_a_lane_that_fails_is_named(hip):
    machine = RocmBackend()
    program = assemble(".buffer x F32\nLDG.F32 r0, [x+r255*4]\nSTG.F32 [x+r255*4], r0\n")
    x = machine.array(np.zeros(4, np.float32))
    hip.fault = 4 << words.SITE_BITS
    with pytest.raises(ExecutionFailed, match=r"out of range in buffer 'x' \(lane 4\)"):
        machine.execute(program, LaunchConfig.linear(8, 8), {"x": x})
    hip.fault = None
    machine.execute(program, LaunchConfig.linear(4, 4), {"x": x})


def test_what_hip_says_is_one_of_our_errors(hip):
    machine = RocmBackend()
    with pytest.raises(AllocationFailed, match="are used"):
        machine.allocate((1 << 20) - 8)
    hip.fails = {"hipMalloc": 2}
    with pytest.raises(AllocationFailed, match="hipErrorOutOfMemory"):
        machine.allocate(64)
    hip.fails = {"hipDeviceSynchronize": 700}
    with pytest.raises(DeviceLost, match="hipErrorIllegalAddress"):
        machine.synchronize()
    hip.fails = {}
    held = machine.allocate(64)
    machine.free(held)


def test_where_there_is_no_hip_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setattr(drivers, "LIBRARIES", ("libnothere.so",))
    drivers._found.cache_clear()
    try:
        assert "ROCm" in str(RocmBackend.unavailable())
        assert RocmBackend.machines() == []
        with pytest.raises(BackendUnavailable, match="HIP is not installed"):
            RocmBackend()
    finally:
        drivers._found.cache_clear()
