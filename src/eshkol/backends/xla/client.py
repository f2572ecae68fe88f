"""What is asked of jaxlib: a client of PJRT, arrays in its memory, programs compiled and run.

Comes in: arrays of the host, and StableHLO as text. Goes out: PJRT's arrays and executables; what PJRT says of faults,
as our errors. jaxlib alone is needed, not jax: `jaxlib.xla_client` makes the client, which takes StableHLO as text.
There is no public way to compile such text in either package (`jax.jit` traces Python, `jax.export` reads what it has
written itself), so this module is the one place that knows these names. `unavailable` looks for each of them, and says
what is missing in a jaxlib that has others. The first device is the processor; those of plugins come behind it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from eshkol.atlas.types import Array
from eshkol.backends.xla.plugins import Plugin, plugins
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable, EshkolError

INSTALL = "pip install eshkol[xla]"
NAMES = (
    "make_cpu_client", "CompileOptions", "HloSharding",
    "load_pjrt_plugin_dynamically", "initialize_pjrt_plugin", "pjrt_plugin_loaded", "make_c_api_client",
    "_xla.batched_device_put", "_xla.SingleDeviceSharding", "_xla.HostBufferSemantics", "_xla.JaxRuntimeError",
    "_xla.Client.compile_and_load", "_xla.LoadedExecutable.execute_sharded", "_xla.ArrayImpl",
    "_xla.ExecuteResults.disassemble_into_single_device_arrays",
)  # fmt: skip
QUIET = "TF_CPP_MIN_LOG_LEVEL"  # else PJRT tells on stderr which devices it has


@cache
def unavailable() -> str | None:
    """Why there is no XLA here; None where there is."""
    if find_spec("jaxlib") is None:
        return f"jaxlib is not installed: {INSTALL}"
    try:
        found = _module()
    except Exception as error:  # a library that does not load says so in its own way
        return f"jaxlib does not load: {' '.join(str(error).split())[:200]}"
    for name in NAMES:
        place: Any = found
        for part in name.split("."):
            place = getattr(place, part, None)
        if place is None:
            return f"jaxlib {version('jaxlib')} has no {name}, which is asked for: {INSTALL}"
    return None


def _module() -> Any:
    had = os.environ.get(QUIET)
    os.environ[QUIET] = had or "1"
    try:
        from jaxlib import xla_client

        return xla_client
    finally:
        if had is None:
            del os.environ[QUIET]


@contextmanager
def asked(what: str) -> Iterator[None]:
    """Within it, what PJRT refuses is an error of ours."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        if name not in ("JaxRuntimeError", "XlaRuntimeError"):
            raise
        said = " ".join(str(error).split())
        if said.startswith("RESOURCE_EXHAUSTED"):
            raise AllocationFailed(
                f"XLA has no memory for {what}: {said}", hint="free tensors, or take smaller batches"
            ) from None
        raise BackendError(
            f"XLA refuses {what}: {said[:2000]}", hint="ESHKOL_DUMP=kernel prints the program that it was given"
        ) from None


@cache
def _on_processor() -> Any:
    with asked("a device"):
        return _module().make_cpu_client(asynchronous=True)


@cache
def _of(plugin: Plugin) -> Any:
    """PJRT's client of a plugin: one for each, since it has the memory of all its devices."""
    xla = _module()
    plugin.load_what_it_needs()
    with asked(f"the devices of {plugin.library}"):
        if not xla.pjrt_plugin_loaded(plugin.name):
            xla.load_pjrt_plugin_dynamically(plugin.name, str(plugin.library))
            xla.initialize_pjrt_plugin(plugin.name)
        return xla.make_c_api_client(plugin.name, {**plugin.options})


@cache
def _found() -> tuple[tuple[Any, Any], ...]:
    """Clients with their devices, the processor first."""
    clients = [_on_processor()]
    for plugin in plugins():
        try:
            clients.append(_of(plugin))
        except EshkolError as error:
            _refused.append(f"{plugin.name}: {error.message}")
    return tuple((client, device) for client in clients for device in client.local_devices())


_refused: list[str] = []  # plugins without devices, with the reason


def devices() -> list[dict[str, Any]]:
    """What the devices are, as JSON values."""
    return [Client(number).facts() for number in range(len(_found()))]


class Client:
    """A device of PJRT, by its number."""

    def __init__(self, number: int = 0) -> None:
        self._client = _module()
        self._pjrt = self._client._xla
        self.number = number
        # A program for the processor alone does not wait until plugins have been asked for their devices.
        found = _found() if number else ((_on_processor(), _on_processor().local_devices()[0]),)
        if number >= len(found):
            said = f" ({'; '.join(_refused)})" if _refused else ""
            raise BackendUnavailable(
                f"there is no device xla:{number}{said}",
                hint=f"there is {'xla' if len(found) == 1 else f'xla:0 to xla:{len(found) - 1}'}; PJRT's plugins "
                "bring others, such as the package jax-cuda13-pjrt",
            )
        self.client, self.device = found[number]
        self._sharding = _sharding(self._client, self.device)

    def facts(self) -> dict[str, Any]:
        """What the device is, as JSON values."""
        kind = getattr(self.device, "device_kind", "")
        return {
            "number": self.number, "name": f"{self.device} {kind}" if kind not in ("", "cpu") else str(self.device),
            "platform": f"PJRT {self.client.platform}", "version": f"jaxlib {version('jaxlib')}",
        }  # fmt: skip

    def put(self, array: Array) -> Any:
        """A copy of a contiguous array in the device's memory."""
        keep = self._pjrt.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
        with asked(f"{array.nbytes} bytes"):
            return self._pjrt.batched_device_put(
                _Described(array), self._sharding, [array], [self.device], True, True, keep, True
            )

    def read(self, array: Any) -> Array:
        """A copy of what the device has, when it is done with it."""
        with asked("a value"):
            found, _ = array._single_device_array_to_np_array_did_copy()
        return np.array(found)

    def wait(self, arrays: Sequence[Any]) -> None:
        """Wait until the device has computed these."""
        with asked("a result"):
            for array in arrays:
                array.block_until_ready()

    def compile(self, text: str) -> Any:
        """A program, ready to be run."""
        options = self._client.CompileOptions()
        with asked("a program"):
            return self.client.compile_and_load(text, [self.device], options)

    def run(self, executable: Any, arrays: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        with asked("the run of a program"):
            found = executable.execute_sharded(arrays)
            return [shards[0] for shards in found.disassemble_into_single_device_arrays()]

    def statistics(self) -> dict[str, int]:
        """What the device says of its memory; nothing where it says nothing."""
        found = self.device.memory_stats()
        return {} if found is None else {str(name): int(value) for name, value in found.items()}


class _Described:
    """An array as PJRT wants it described."""

    __slots__ = ("dtype", "ndim", "shape", "weak_type")

    def __init__(self, array: Array) -> None:
        self.shape, self.dtype, self.ndim, self.weak_type = array.shape, array.dtype, array.ndim, False


def _sharding(client: Any, device: Any) -> Any:
    """All of an array on one device, as jaxlib asks Python for it."""

    class OneDevice(client._xla.SingleDeviceSharding):  # type: ignore[misc]
        memory_kind = None

        def _to_xla_hlo_sharding(self, rank: int) -> Any:
            return client.HloSharding.replicate()

    return OneDevice(device)
