"""HIP, AMD's interface to its GPUs, called directly: the library that ROCm installs, and nothing else.

Comes in: nothing; the library is looked for when someone first asks. Goes out: `Driver`, whose functions raise Eshkol's
errors, and `Device`. The name of a device's architecture is found in what HIP says of it wherever that stands: the
record has changed from version to version.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from eshkol.atlas.machines import BLOCKS, MachineDescription
from eshkol.backends.driven import Known
from eshkol.backends.rocm import translate
from eshkol.errors import AllocationFailed, BackendError, DeviceLost, ExecutionFailed

LIBRARIES = ("amdhip64.dll",) if sys.platform == "win32" else (
    "libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"
)  # fmt: skip
INSTALL = "install AMD's driver and ROCm (rocm.docs.amd.com)"
OUT_OF_MEMORY, NO_DEVICE = 2, 100
PROPERTY_BYTES = 1 << 14  # more than the record of a device's properties ever had
ARCHITECTURE = re.compile(rb"gfx[0-9a-f]{3,4}(?::[a-z]+[+-])*")
SHARED_BYTES = 64 << 10  # of a block, of every such GPU
_PARAMETERS, _PARAMETER_BYTES, _END = 1, 2, 3  # what a launch's extra list says
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "hipInit": (c_uint,),
    "hipGetDeviceCount": (POINTER(c_int),),
    "hipSetDevice": (c_int,),
    "hipDeviceGetName": (c_char_p, c_int, c_int),
    "hipDeviceTotalMem": (POINTER(c_size_t), c_int),
    "hipMalloc": (POINTER(c_void_p), c_size_t),
    "hipFree": (c_void_p,),
    "hipMemcpyHtoD": (c_void_p, c_void_p, c_size_t),
    "hipMemcpyDtoH": (c_void_p, c_void_p, c_size_t),
    "hipMemcpyDtoD": (c_void_p, c_void_p, c_size_t),
    "hipDeviceSynchronize": (),
    "hipModuleLoadData": (POINTER(c_void_p), c_char_p),
    "hipModuleUnload": (c_void_p,),
    "hipModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "hipModuleLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
}
"""What is called of HIP, with the types of its arguments. All give a number, 0 where nothing went wrong."""
_PROPERTIES = ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties")


@dataclass(frozen=True)
class Device:
    """A GPU."""

    number: int
    name: str
    architecture: str  # as HIP says it, with its modes
    memory: int
    shared_bytes: int = SHARED_BYTES
    lanes: int = translate.MOST_LANES

    @property
    def largest(self) -> int:
        return self.memory

    def description(self) -> MachineDescription:
        """What schedules for it are made with."""
        return _description(self.name, self.memory)

    def facts(self) -> dict[str, Any]:
        """What there is to say of it, as JSON values."""
        summary = f"{self.architecture}, {self.memory >> 20} MiB"
        known = {"architecture": self.architecture, "memory": self.memory}
        return {"number": self.number, "name": self.name, **known, "summary": summary}


@cache
def _description(name: str, largest: int) -> MachineDescription:
    return replace(BLOCKS, name=f"rocm {name}", largest=largest, shared_memory=SHARED_BYTES)


class Driver:
    """The functions of HIP."""

    def __init__(self, library: Any) -> None:
        self._library = library
        for name, types in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = c_int, types
        properties = next((f for name in _PROPERTIES if (f := getattr(library, name, None)) is not None), None)
        if properties is None:
            raise AttributeError("hipGetDeviceProperties")
        self._properties: Callable[..., int] = properties
        library.hipGetErrorName.restype, library.hipGetErrorName.argtypes = c_char_p, (c_int,)
        library.hipGetErrorString.restype, library.hipGetErrorString.argtypes = c_char_p, (c_int,)

    def call(self, name: str, *given: Any) -> None:
        """Ask for something; what HIP says to it becomes one of our errors."""
        code = int(getattr(self._library, name)(*given))
        if code:
            raise self.error(code, name)

    def error(self, code: int, asked: str) -> BackendError:
        """What a number means that HIP has answered with."""
        name = (self._library.hipGetErrorName(code) or b"?").decode()
        said = (self._library.hipGetErrorString(code) or b"").decode()
        text = f"HIP says {name} ({code}, {said}) to {asked}"
        if code == OUT_OF_MEMORY:
            return AllocationFailed(text, hint="free tensors, or take smaller batches")
        if name in ("hipErrorDeinitialized", "hipErrorContextIsDestroyed"):
            return DeviceLost(text)
        if name in ("hipErrorIllegalAddress", "hipErrorLaunchFailure", "hipErrorAssert"):
            return DeviceLost(text, hint="values on the GPU are gone: start the process again")
        return ExecutionFailed(text) if "Launch" in asked else BackendError(text)

    def handle(self, name: str, *given: Any) -> int:
        """A handle or an address that HIP gives by its first argument."""
        found = c_void_p()
        self.call(name, byref(found), *given)
        return found.value or 0

    def devices(self) -> tuple[Device, ...]:
        """The GPUs that HIP sees."""
        self.call("hipInit", 0)
        count = c_int()
        self.call("hipGetDeviceCount", byref(count))
        return tuple(self._device(number) for number in range(count.value))

    def _device(self, number: int) -> Device:
        name, memory = ctypes.create_string_buffer(256), c_size_t()
        self.call("hipDeviceGetName", name, 256, number)
        self.call("hipDeviceTotalMem", byref(memory), number)
        raw = ctypes.create_string_buffer(PROPERTY_BYTES)
        code = int(self._properties(raw, c_int(number)))
        if code:
            raise self.error(code, "hipGetDeviceProperties")
        found = ARCHITECTURE.search(raw.raw)
        if found is None:
            raise BackendError(f"HIP does not say what architecture {name.value.decode()} has")
        return Device(number, name.value.decode(errors="replace"), found[0].decode(), memory.value)

    def launch(self, function: int, blocks: int, lanes: int, shared: int, arguments: bytes) -> None:
        """Ask for a launch; a kernel's arguments are given as they lie in memory."""
        held, size = ctypes.create_string_buffer(arguments, len(arguments)), c_size_t(len(arguments))
        extra = (c_void_p * 5)(
            _PARAMETERS, ctypes.addressof(held), _PARAMETER_BYTES, ctypes.addressof(size), _END
        )  # fmt: skip
        given = (blocks, 1, 1, lanes, 1, 1, shared)
        self.call("hipModuleLaunchKernel", function, *given, None, None, ctypes.cast(extra, c_void_p))


@cache
def _found() -> tuple[Driver, tuple[Device, ...]] | str:
    """HIP and its GPUs, or why there are none."""
    library = None
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    if library is None:
        return f"AMD's HIP is not installed: {INSTALL}"
    try:
        driver = Driver(library)
        found = driver.devices()
    except AttributeError as error:
        return f"this version of HIP lacks a function ({error}): {INSTALL}"
    except BackendError as error:
        return f"HIP finds no GPU: {error.message}"
    if not found:
        return "HIP finds no GPU"
    if translate.linker() is None:
        return f"no lld is installed, which makes code objects: {translate.LINKER_HINT}"
    return driver, found


def _gpus() -> tuple[Device, ...] | str:
    found = _found()
    return found if isinstance(found, str) else found[1]


KNOWN = Known("rocm", _gpus)
unavailable, devices = KNOWN.unavailable, KNOWN.devices


def device(number: int) -> tuple[Driver, Device]:
    """HIP, and a GPU by its number."""
    gpu, found = KNOWN.device(number), _found()
    assert not isinstance(found, str)
    return found[0], gpu
