"""NVIDIA's driver, called directly: the library that every machine with such a GPU has, and nothing else.

Comes in: nothing; the library is looked for when someone first asks. Goes out: `Driver`, whose functions raise Eshkol's
errors. ctypes suffices: the calls are few and plain, and no package or toolkit of NVIDIA's has to be installed or to
fit the driver's version.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from functools import cache
from typing import Any

from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable, DeviceLost, ExecutionFailed

OLDEST = 11040  # 1000 · major + 10 · minor of CUDA: the driver must read PTX 7.4
OUT_OF_MEMORY, NO_DEVICE, NOT_READY = 2, 100, 600
ERROR_LOG, ERROR_LOG_BYTES, LOG_BYTES = 5, 6, 4096  # the driver's options of loading, and how much it may say
PTX = 1  # the driver's number of a kind of code that it links
LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
INSTALL = "apt install nvidia-driver"  # Debian's; elsewhere it is NVIDIA's own

_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuPointerGetAttribute": (c_void_p, c_int, c_ulonglong),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamQuery": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(c_ulonglong), c_size_t),
    "cuMemFree_v2": (c_ulonglong,),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_ulonglong, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_ulonglong, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_ulonglong, c_ulonglong, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_ulonglong, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventQuery": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuModuleLoadDataEx": (POINTER(c_void_p), c_char_p, c_uint, c_void_p, c_void_p),
    "cuModuleUnload": (c_void_p,),
    "cuLinkCreate_v2": (c_uint, c_void_p, c_void_p, POINTER(c_void_p)),
    "cuLinkAddData_v2": (c_void_p, c_int, c_char_p, c_size_t, c_char_p, c_uint, c_void_p, c_void_p),
    "cuLinkComplete": (c_void_p, POINTER(c_void_p), POINTER(c_size_t)),
    "cuLinkDestroy": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}
"""What is called of the driver, with the types of its arguments. All give a number, 0 where nothing went wrong."""

GRAPHS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "create": ("cuGraphCreate", (c_void_p, c_uint)),
    "add_kernel": ("cuGraphAddKernelNode", (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)),
    "add_copy": ("cuGraphAddMemcpyNode", (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
    "instantiate": ("cuGraphInstantiateWithFlags", (c_void_p, c_void_p, c_ulonglong)),
    "set_kernel": ("cuGraphExecKernelNodeSetParams", (c_void_p, c_void_p, c_void_p)),
    "set_copy": ("cuGraphExecMemcpyNodeSetParams", (c_void_p, c_void_p, c_void_p, c_void_p)),
    "launch": ("cuGraphLaunch", (c_void_p, c_void_p)),
    "destroy_ready": ("cuGraphExecDestroy", (c_void_p,)),
    "destroy": ("cuGraphDestroy", (c_void_p,)),
}
"""What native code calls of the driver for graphs (`runtime/native/graphs.h`)."""

MAP, MAP_WINDOWS = "cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col"
MAPS: Mapping[str, tuple[Any, ...]] = {
    MAP: (c_void_p, c_int, c_uint, c_ulonglong, *[c_void_p] * 4, *[c_int] * 4),
    MAP_WINDOWS: (c_void_p, c_int, c_uint, c_ulonglong, *[c_void_p] * 4, c_uint, c_uint, c_void_p, *[c_int] * 4),
}
"""What makes tensor maps (`runtime/native/launches.h`); older drivers have none."""

_NEWER = "install a newer NVIDIA driver"
_LOST = "; values on it are gone: save what the host has, and start the process again (another device goes on)"

# Number of the driver's error → which of ours it is, and what to do about it. Whatever is not here is a BackendError.
_ERRORS: Mapping[int, tuple[type[BackendError], str]] = {
    OUT_OF_MEMORY: (AllocationFailed, "free tensors, take smaller batches, or see what else uses the GPU (nvidia-smi)"),
    3: (BackendUnavailable, "restart the process: the driver was not initialized, or is shutting down"),
    34: (BackendUnavailable, "the library is one that programs are linked with, no driver: check LD_LIBRARY_PATH"),
    35: (BackendUnavailable, _NEWER),
    46: (BackendUnavailable, "the GPU is busy: another process holds it for itself (nvidia-smi -q -d COMPUTE)"),
    NO_DEVICE: (BackendUnavailable, "check nvidia-smi and CUDA_VISIBLE_DEVICES"),
    101: (BackendUnavailable, "`eshkol doctor` lists the devices that there are"),
    209: (BackendUnavailable, _NEWER),
    214: (DeviceLost, "memory of the GPU is broken (nvidia-smi -q -d ECC)" + _LOST),
    218: (BackendError, "the driver does not take the generated PTX: please report it with the message above"),
    221: (BackendUnavailable, "the driver's compiler of PTX is missing: install libnvidia-ptxjitcompiler, its part"),
    222: (BackendUnavailable, _NEWER + ": it does not know the version of the generated PTX"),
    223: (BackendUnavailable, "unset CUDA_DISABLE_PTX_JIT: programs are compiled here"),
    700: (DeviceLost, "a kernel touched memory that is not its own" + _LOST),
    701: (ExecutionFailed, "the launch needs more registers or shared memory than a block can have"),
    702: (DeviceLost, "a kernel ran longer than the system allows" + _LOST),
    **dict.fromkeys((710, 714, 715, 716, 717, 718, 719), (DeviceLost, "a kernel failed" + _LOST)),
    802: (BackendUnavailable, "the system is still starting, or nvidia-fabricmanager does not run (nvidia-smi -q)"),
    803: (BackendUnavailable, "the driver and its kernel module differ: restart the machine after an update"),
    804: (BackendUnavailable, _NEWER),
    999: (DeviceLost, "the GPU does not answer (nvidia-smi, and the system's log, say why)" + _LOST),
}
_ATTRIBUTES: Mapping[str, int] = {
    "lanes_per_block": 1, "warp": 10, "clock_khz": 13, "multiprocessors": 16, "memory_bus_bits": 37, "l2_bytes": 38,
    "major": 75, "minor": 76, "shared_bytes": 97, "cooperative": 95,
}  # fmt: skip
"""Our name → the driver's number of an attribute of devices. The shared memory is what a block can ask for."""


class Driver:
    """The driver's functions by their names; a call that fails raises."""

    def __init__(self, library: Any) -> None:
        self._functions: dict[str, Any] = {}
        for name, arguments in _FUNCTIONS.items():
            function = getattr(library, name, None)
            if function is None:
                raise BackendUnavailable(f"the NVIDIA driver is too old: it has no {name}", hint="install a newer one")
            function.argtypes, function.restype = arguments, c_int
            self._functions[name] = function
        for name in (*MAPS, *(name for name, _ in GRAPHS.values())):
            self._functions[name] = getattr(library, name, None)

    def address(self, name: str) -> int:
        """Where a function of the driver begins, for native code that calls it."""
        return ctypes.cast(self._functions[name], c_void_p).value or 0

    @property
    def has_maps(self) -> bool:
        """Whether the driver makes tensor maps."""
        return all(self._functions[name] is not None for name in MAPS)

    def graphs(self) -> dict[str, int] | None:
        """Where the functions for graphs begin; None where the driver has not all of them."""
        if any(self._functions[name] is None for name, _ in GRAPHS.values()):
            return None
        return {what: self.address(name) for what, (name, _) in GRAPHS.items()}

    def try_call(self, name: str, *arguments: Any) -> int:
        """The number that a function of the driver gives."""
        return int(self._functions[name](*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver; what it reports is raised."""
        code = self._functions[name](*arguments)
        if code:
            raise self.error(code, name)

    def error(self, code: int, name: str) -> BackendError:
        """What a number of the driver's means, for whoever asked."""
        texts = []
        for function in ("cuGetErrorName", "cuGetErrorString"):
            found = c_char_p()
            self._functions[function](code, byref(found))
            texts.append(found.value.decode() if found.value else "unknown")
        kind, hint = _ERRORS.get(code, (BackendError, ""))
        return kind(f"the NVIDIA driver says {texts[0]} ({texts[1]}) to {name}", hint=hint or None)

    # --- what is asked more than once ---

    def handle(self, name: str, *arguments: Any) -> int:
        """The handle that a function makes."""
        found = c_void_p()
        self.call(name, byref(found), *arguments)
        return found.value or 0

    def machine_code(self, ptx: bytes) -> bytes:
        """What the driver compiles PTX to, as it can be loaded later."""
        linker = c_void_p()
        self.call("cuLinkCreate_v2", 0, None, None, byref(linker))
        try:
            self.call("cuLinkAddData_v2", linker, PTX, ptx + b"\0", len(ptx) + 1, b"kernel", 0, None, None)
            found, size = c_void_p(), c_size_t()
            self.call("cuLinkComplete", linker, byref(found), byref(size))
            return ctypes.string_at(found.value or 0, size.value)  # the linker's, and gone with it
        finally:
            self.call("cuLinkDestroy", linker)

    def loaded(self, image: bytes) -> int:
        """The module of machine code, or of PTX, which the driver compiles; what it says of one that it does not take
        is in the error."""
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        found = c_void_p()
        code = self.try_call("cuModuleLoadDataEx", byref(found), image + b"\0", 2, options, values)
        if code:
            error = self.error(code, "cuModuleLoadDataEx")
            said = " ".join(log.value.decode(errors="replace").split())
            raise type(error)(f"{error.message}{f': {said}' * bool(said)}", hint=error.hint)
        return found.value or 0

    def number(self, name: str, *arguments: Any) -> int:
        """The number that a function tells."""
        found = c_int()
        self.call(name, byref(found), *arguments)
        return found.value

    def attribute(self, device: int, what: str) -> int:
        return self.number("cuDeviceGetAttribute", _ATTRIBUTES[what], device)

    def device_name(self, device: int) -> str:
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, len(text), device)
        return text.value.decode(errors="replace")

    def total_memory(self, device: int) -> int:
        found = c_size_t()
        self.call("cuDeviceTotalMem_v2", byref(found), device)
        return found.value


@cache
def _opened() -> Driver | str:
    """The driver, initialized once; or why there is none."""
    library = _library()
    if library is None:
        return f"there is no NVIDIA driver here: {LIBRARIES[0]} was not found; where there is a GPU: {INSTALL}"
    try:
        driver = Driver(library)
        driver.call("cuInit", 0)
        version, count = driver.number("cuDriverGetVersion"), driver.number("cuDeviceGetCount")
    except BackendError as error:
        return f"{error.message}{f' ({error.hint})' * bool(error.hint)}"
    if version < OLDEST:
        return f"the NVIDIA driver is too old: it is for CUDA {_version(version)}, {_version(OLDEST)} is needed"
    if not count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        return f"there is no NVIDIA GPU{'' if visible is None else f' among CUDA_VISIBLE_DEVICES={visible!r}'}"
    return driver


def _library() -> Any | None:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def unavailable() -> str | None:
    """Why there is no GPU to be used; None where there is one."""
    found = _opened()
    return found if isinstance(found, str) else None


def driver() -> Driver:
    """The driver, or BackendUnavailable with the reason."""
    found = _opened()
    if isinstance(found, str):
        raise BackendUnavailable(
            f"the cuda backend is not available: {found}",
            hint='install the NVIDIA driver, or compute on "cpu": ESHKOL_DEVICE=cpu',
        )
    return found


def driver_version() -> str:
    """The version of CUDA that the driver is for."""
    return _version(driver().number("cuDriverGetVersion"))
