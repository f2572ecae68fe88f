"""Which backend tensors are computed on. Backends are opened when they are first asked for, and kept.

The default is the CPU; `use_backend` changes it, for good or for a block of code. `autotune` has kernels measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from eshkol.backends import available_backends
from eshkol.backends import open_backend as open_new
from eshkol.backends.base import Backend

HOST = ("cpu", "reference")  # the backends that compute on the host
_opened: dict[str, Backend] = {}
_default: ContextVar[str] = ContextVar("backend", default="cpu")


def open_backend(name: str) -> Backend:
    """The backend of a name: always the same object."""
    found = _opened.get(name)
    if found is None:
        found = _opened[name] = open_new(name)
    return found


def current_name() -> str:
    """The name of the backend on which tensors are computed now."""
    return _default.get()


def has_other() -> bool:
    """Whether there is something else to compute on than the host."""
    return any(name not in HOST for name in available_backends())


def current_backend() -> Backend:
    """The backend on which tensors are computed now."""
    return open_backend(_default.get())


def set_backend(name: str) -> None:
    """Compute on another backend from here on."""
    open_backend(name)  # refuses an unknown one before it becomes the default
    _default.set(name)


@contextmanager
def use_backend(name: str) -> Iterator[Backend]:
    """Within it, tensors are computed on another backend."""
    found = open_backend(name)
    token = _default.set(name)
    try:
        yield found
    finally:
        _default.reset(token)


@contextmanager
def autotune() -> Iterator[None]:
    """Within it, sizes of kernels that are compiled for the first time are chosen by measuring, and kept on disk.

    See docs/performance.md. `ESHKOL_TUNE=1` does the same for the whole process.
    """
    from eshkol.backends.cpu.tune import measuring

    with measuring():
        yield
