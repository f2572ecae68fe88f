"""Backends: one folder each. `NAMES` lists them; asking for one imports it only then."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from eshkol.backends.base import Backend
from eshkol.errors import BackendUnavailable

_PLACES: Mapping[str, str] = {
    "reference": "ReferenceBackend", "cpu": "CpuBackend", "discrete": "DiscreteBackend", "blocks": "BlocksBackend",
    "card": "CardBackend", "cuda": "CudaBackend", "rocm": "RocmBackend", "opencl": "OpenClBackend",
    "webgpu": "WebGpuBackend", "vulkan": "VulkanBackend", "metal": "MetalBackend", "wasm": "WasmBackend",
    "xla": "XlaBackend",
}  # fmt: skip
"""Name of the folder → name of the class in it."""

NAMES = tuple(_PLACES)


def backend_class(name: str) -> type[Backend]:
    """The class of a backend by name; of several machines of a kind, by name and number: "cuda:1"."""
    kind, colon, number = name.partition(":")
    if kind not in _PLACES or (colon and not (number.isascii() and number.isdigit())):
        raise BackendUnavailable(f"there is no backend '{name}'", hint=f"backends: {', '.join(NAMES)}")
    found: type[Backend] = getattr(import_module(f"eshkol.backends.{kind}"), _PLACES[kind])
    assert issubclass(found, Backend)
    return found.numbered(int(number)) if colon else found


def open_backend(name: str) -> Backend:
    """A backend ready for use, or BackendUnavailable with the reason."""
    cls = backend_class(name)
    reason = cls.unavailable()
    if reason is not None:
        hint = None if name == "cpu" else "compute on the CPU meanwhile: ESHKOL_DEVICE=cpu"
        raise BackendUnavailable(f"the {name} backend is not available: {reason}", hint=hint)
    return cls()


def available_backends() -> list[str]:
    """The names of the backends that work on this machine."""
    return [name for name in NAMES if backend_class(name).available()]


def own_machines() -> list[str]:
    """Of these, those that run programs of Atlas and do not only stand in for others."""
    found = ((name, backend_class(name)) for name in available_backends())
    return [name for name, cls in found if not cls.stands_in and not cls.whole_graphs]
