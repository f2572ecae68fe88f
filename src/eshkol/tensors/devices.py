"""Devices by their names: which machines there are, and on which one new tensors are made.

A device is a backend: "cpu", whose memory is the host's, or another of `names()`. Backends are opened when they are
first asked for, and kept. Tensors are made on the default device: the CPU, what ESHKOL_DEVICE names, or what `device`
and `set_device` say; whatever is computed from them is computed where they are. `carried` copies a value from one
machine to another. `autotune` has kernels measured.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import cache
from typing import Any

from eshkol.backends import NAMES, available_backends, backend_class
from eshkol.backends import open_backend as open_new
from eshkol.backends.base import Backend
from eshkol.errors import BackendUnavailable, DeviceError
from eshkol.graph.node import HOST as HOST
from eshkol.graph.node import Node, Scope, buffer, here, to_device
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.runtime import front
from eshkol.schedule.run import execute
from eshkol.schedule.run.execute import Machines
from eshkol.schedule.run.resident import Resident
from eshkol.support import flags

GPU = "cuda"
DTYPES = frozenset(d.name for d in dtypes.ALL)  # names that a device cannot have
_opened: dict[str, Backend] = {}
_opening = threading.Lock()
_default: ContextVar[str | None] = ContextVar("device", default=None)


@cache
def _first() -> str:
    """The default device of a program that names none."""
    return flags.text("ESHKOL_DEVICE") or HOST


def open_backend(name: str) -> Backend:
    """The backend of a name: always the same object."""
    found = _opened.get(name)
    if found is None:
        own = backend_class(name).name  # "cuda:0" is "cuda"
        with _opening:
            found = _opened.get(own)
            if found is None:
                found = _opened[own] = open_new(own)
    return found


def machine(name: str | None) -> Backend:
    """The backend of a device; None is the default device."""
    found = _opened.get(name or _default.get() or _first())
    return open_backend(name or current_name()) if found is None else found


Machines.named = staticmethod(machine)
front.give("machines", _opened)


def current_name() -> str:
    """The name of the device on which tensors are made now."""
    return _default.get() or _first()


front.give("device_now", current_name)


def names() -> list[str]:
    """The devices that there are."""
    return available_backends()


def missing(kind: str) -> str | None:
    """Why a kind of machine is not there, where it is known."""
    return backend_class(kind).unavailable() if kind in NAMES else None


def gpu_name() -> str:
    """The machine that programs mean by "the GPU": NVIDIA's, or the one that was chosen to stand for it.

    A device that is in force (`device`, `set_device`) is it, if that is not the CPU; then what ESHKOL_DEVICE names, the
    CPU too: so programs for GPUs run anywhere when that is said, and only then.
    """
    inner = _default.get()
    return inner if inner is not None and inner != HOST else _chosen() or cuda_name()


def cuda_name(number: int = 0) -> str:
    """The GPU of NVIDIA's of a number; where there is none, the machine that ESHKOL_DEVICE names."""
    reason = missing(GPU)
    if reason is None:
        return f"{GPU}:{number}" if number else GPU
    chosen = _chosen()
    if chosen is None:
        raise BackendUnavailable(
            f"there is no GPU: {reason}", hint="ESHKOL_DEVICE=cpu lets the CPU do what is asked of a GPU"
        )
    return chosen


def _chosen() -> str | None:
    """The machine that ESHKOL_DEVICE names, which must be there."""
    name = flags.text("ESHKOL_DEVICE")
    return open_backend(name).name if name else None


def has_gpu() -> bool:
    """Whether there is such a machine, beside the CPU."""
    try:
        return gpu_name() != HOST
    except BackendUnavailable:
        return False


def copying_machine() -> Backend | None:
    """The machine that data of the host is going to be copied to: the default device, or the GPU if there is one."""
    if current_name() != HOST:
        return machine(None)
    return machine(GPU) if missing(GPU) is None else None


def current_backend() -> Backend:
    """The backend of the device on which tensors are made now."""
    return machine(None)


def set_device(name: str) -> None:
    """Make tensors on another device from here on."""
    _default.set(open_backend(name).name)  # which refuses an unknown one


class device(str):
    """A device by its name; within `with`, tensors are made on it, and what is computed from others stays where it is.

    It is a string, so that `x.device == "cpu"` holds.

    >>> with ek.device("discrete"): x = ek.ones((2, 3))
    >>> x.device
    'discrete'
    """

    __slots__ = ("_tokens",)

    def __new__(cls, name: str, index: int | None = None) -> device:
        if not isinstance(name, str):
            raise DeviceError(f"a device is named by a string, not a {type(name).__name__}", span=here())
        return super().__new__(cls, name if index is None else f"{name}:{index}")

    @property
    def type(self) -> str:
        """The kind of machine: of "cuda:1", "cuda"."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]  # PyTorch's; str.index is for text
        """Which of several it is, where its name says so."""
        number = self.partition(":")[2]
        return int(number) if number.isdigit() else None

    def __enter__(self) -> Backend:
        found = open_backend(str(self))
        tokens: list[Token[str | None]] = getattr(self, "_tokens", [])
        tokens.append(_default.set(found.name))
        self._tokens = tokens
        return found

    def __exit__(self, *error: object) -> None:
        _default.reset(self._tokens.pop())

    def __reduce__(self) -> Any:
        return device, (str(self),)


def made(array: Any, dtype: DType, where: str | None = None) -> Node:
    """A leaf of an array of the host, on a device, or on the default one."""
    name = where or current_name()
    return buffer(array if name == HOST else Resident.brought(array, dtype, machine(name)), dtype)


def settled(node: Node) -> Node:
    """A value that was made of numbers alone, on the default device: it would be on any otherwise."""
    name = current_name()
    if name == HOST or any(s.kind == "trace" for s in Scope.at_work):
        return node
    return to_device(node, name)


def carried(node: Node, name: str) -> Node:
    """A value in the memory of a device, copied at once; itself if it is there already.

    Gradients flow back to where it came from. Within a trace (jit, vmap, loops) everything is on one machine, so there
    is nothing to be moved.
    """
    name = open_backend(name).name  # which refuses one that is not there
    if node.device == name:
        return node
    scope = next((s for s in node.scopes if s.open and s.kind == "trace"), None)
    if scope is not None:
        if name == current_name():
            return node
        raise DeviceError(
            f"a value inside {scope.name} cannot go to {name}: all of it is computed on {current_name()}",
            span=here(), hint="move what it is given before the call",
        )  # fmt: skip
    there = to_device(node, name)
    execute.compute([there])
    return there


@contextmanager
def autotune() -> Iterator[None]:
    """Within it, sizes of kernels that are compiled for the first time are chosen by measuring, and kept on disk.

    See docs/performance.md. `ESHKOL_TUNE=1` does the same for the whole process.
    """
    from eshkol.backends.cpu.tune import measuring

    with measuring():
        yield
