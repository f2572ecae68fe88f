"""What C takes down of a program at work: turned on, turned off, and read (runtime/native/profiling).

Comes in: machines of Scheme and threads to be sampled. Goes out: `Found`, arrays of NumPy that are copies of C's tables,
and the callables of Python that Scheme called.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eshkol.errors import EshkolError
from eshkol.runtime.library import native

NO_STACK = (1 << 32) - 1
_WORD = "<u8"
_TABLES: dict[str, list[tuple[str, str]]] = {  # as the structures of profiling.h lie
    "stacks": [("hash", _WORD), ("first", _WORD), ("depth", "<u4"), ("kind", "<u4")],
    "samples": [("time", _WORD), ("weight", _WORD), ("stack", "<u4"), ("thread", "<u4")],
    "kernels": [(name, _WORD) for name in ("sequence", "step", "count", "total", "least", "most")],
    "calls": [("sequence", _WORD), ("begin", _WORD), ("end", _WORD), ("step", "<u4"), ("thread", "<u4")],
    "collections": [(name, _WORD) for name in ("begin", "end", "before", "after", "context")],
    "sites": [(name, _WORD) for name in ("handed_out", "live", "at_peak")],
    "callbacks": [(name, _WORD) for name in ("function", "count", "total")],
}
_POINTERS = ("addresses", "stacks", "samples", "kernels", "calls", "collections", "sites", "callbacks")
_COUNTS = ("address", "stack", "sample", "kernel", "call", "collection", "callback")
_LOST = ("samples_lost", "calls_lost", "objects_lost", "stacks_lost")


class _Profile(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64) for name in (*_POINTERS, *(f"{c}_count" for c in _COUNTS), *_LOST, "heap_peak")
    ]


class Kind:
    """Where a thread was that ran Scheme (value.h, ESK_IN_...)."""

    SCHEME, PYTHON, HOST, COLLECTOR = range(4)


@dataclass(frozen=True)
class Found:
    """The tables, by their names; see profiling.h."""

    addresses: NDArray[np.uint64]
    stacks: Any
    samples: Any
    kernels: Any
    calls: Any
    collections: Any
    sites: Any
    callbacks: list[tuple[Any, int, int]]  # (the callable or None, how often, nanoseconds)
    lost: dict[str, int]
    heap_peak: int

    def frames(self, stack: int) -> list[int]:
        """The return addresses of a stack, innermost first."""
        row = self.stacks[stack]
        return self.addresses[int(row["first"]) : int(row["first"]) + int(row["depth"])].tolist()


def _checked(what: str, status: int) -> None:
    if status:
        raise EshkolError(f"{what} cannot be profiled: {os.strerror(status)}")


class Watch:
    """C's part of a profile: what is asked for is watched from here on, until `stop`."""

    def __init__(self) -> None:
        library = self._library = native()
        library.eshkol_sampler_start.argtypes = [ctypes.c_uint64]
        library.eshkol_sampler_watch.argtypes = [ctypes.c_uint32, ctypes.c_void_p]
        library.eshkol_sampler_unwatch.argtypes = library.eshkol_heaps_forget.argtypes = [ctypes.c_void_p]
        library.eshkol_kernels_stop.restype = library.eshkol_callbacks_stop.restype = ctypes.c_int64
        library.eshkol_callbacks_start.argtypes = [ctypes.c_void_p]
        self.sampling = self._kernels = self._heaps = self._callbacks = False

    def begin(self) -> None:
        """Empty the tables."""
        if self._library.eshkol_profile_begin():
            raise MemoryError("no memory for a profile")

    def samples(self, nanoseconds: int) -> bool:
        """Sample threads; False where the system has no way."""
        self.sampling = self._library.eshkol_sampler_start(nanoseconds) == 0
        return self.sampling

    def thread(self, number: int, context: int | None) -> None:
        """Sample a thread that runs Scheme in a context, or is one of Python's."""
        if self.sampling:
            self._library.eshkol_sampler_watch(number, context)

    def kernels(self) -> None:
        """Take down what kernels take."""
        _checked("kernels", self._library.eshkol_kernels_start())
        self._kernels = True

    def heaps(self) -> None:
        """Take down who allocates, and collections."""
        _checked("memory", self._library.eshkol_heaps_start())
        self._heaps = True

    def callbacks(self) -> None:
        """Take down what calls of Python take."""
        keep = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p)
        _checked("calls of Python", self._library.eshkol_callbacks_start(keep))
        self._callbacks = True

    def forget(self, context: int) -> None:
        """A context is about to be given back."""
        self._library.eshkol_sampler_unwatch(context)
        self._library.eshkol_heaps_forget(context)

    def stop(self) -> Found:
        """What was found."""
        library = self._library
        if self.sampling:
            library.eshkol_sampler_stop()
        kernels = library.eshkol_kernels_stop() if self._kernels else 0
        if self._heaps:
            library.eshkol_heaps_stop()
        callbacks = library.eshkol_callbacks_stop() if self._callbacks else 0
        profile = _Profile.in_dll(library, "eshkol_profile")
        stacks = profile.stack_count
        rows = {
            "stacks": stacks, "samples": profile.sample_count, "kernels": kernels, "calls": profile.call_count,
            "collections": profile.collection_count, "sites": stacks if self._heaps else 0, "callbacks": callbacks,
        }  # fmt: skip
        tables = {name: _table(getattr(profile, name), count, np.dtype(_TABLES[name])) for name, count in rows.items()}
        tables["kernels"] = tables["kernels"][tables["kernels"]["sequence"] != 0]
        return Found(
            _table(profile.addresses, profile.address_count, np.dtype(_WORD)),
            tables["stacks"], tables["samples"], tables["kernels"], tables["calls"], tables["collections"],
            tables["sites"], _called(tables["callbacks"]), {name: getattr(profile, name) for name in _LOST},
            profile.heap_peak,
        )  # fmt: skip


def _table(address: int, count: int, dtype: np.dtype[Any]) -> Any:
    """A copy of the rows that lie at an address."""
    if not count or not address:
        return np.zeros(0, dtype)
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address), dtype).copy()


def _called(rows: Any) -> list[tuple[Any, int, int]]:
    """The callables, which C has held until now."""
    found = []
    for function, count, total in rows[rows["count"] != 0].tolist():
        called = ctypes.cast(function, ctypes.py_object).value if function else None
        if function:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(called))
        found.append((called, count, total))
    return found
