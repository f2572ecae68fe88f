"""What C takes down of a program at work: turned on, turned off, and read (runtime/native/profiling).

Comes in: machines of Scheme and threads to be sampled. Goes out: `Found`, arrays of NumPy that are copies of C's
tables, and the callables of Python that Scheme called.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eshkol.errors import EshkolError
from eshkol.runtime.library import PATH, native

NO_STACK = (1 << 32) - 1
_WORD = "<u8"
_TABLES: dict[str, list[tuple[str, str]]] = {  # as the structures of profiling.h lie
    "stacks": [("hash", _WORD), ("first", _WORD), ("depth", "<u4"), ("kind", "<u4")],
    "samples": [("time", _WORD), ("weight", _WORD), ("stack", "<u4"), ("thread", "<u4")],
    "kernels": [(name, _WORD) for name in ("sequence", "step", "stack", "count", "total", "least", "most")],
    "calls": [(n, _WORD) for n in ("sequence", "begin", "end")]
    + [(n, "<u4") for n in ("step", "stack", "thread", "_")],
    "collections": [(name, _WORD) for name in ("begin", "end", "before", "after", "context")],
    "sites": [(name, _WORD) for name in ("handed_out", "live", "at_peak")],
    "callbacks": [(name, _WORD) for name in ("function", "count", "total")],
}
_POINTERS = ("addresses", "stacks", "samples", "kernels", "calls", "collections", "sites", "callbacks")
_COUNTS = ("address", "stack", "sample", "kernel", "call", "collection", "callback")
_LOST = ("samples_lost", "calls_lost", "objects_lost", "stacks_lost")


class _Profile(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (*_POINTERS, *(f"{c}_count" for c in _COUNTS), *_LOST, "heap_peak")]


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
        first, depth = int(row["first"]), int(row["depth"])
        found: list[int] = self.addresses[first : first + depth].tolist()
        return found


@cache
def _locked() -> ctypes.PyDLL:
    """The same library; calls through it keep Python's lock."""
    library = ctypes.PyDLL(str(PATH))
    library.eshkol_callbacks_end.restype, library.eshkol_callbacks_end.argtypes = None, [ctypes.c_void_p]
    return library


def _checked(what: str, status: int) -> None:
    if status:
        raise EshkolError(f"{what} cannot be profiled: {os.strerror(status)}")


class Watch:
    """C's part of a profile: what is asked for is watched from here on, until `stop`."""

    def __init__(self) -> None:
        library = self._library = native()
        library.eshkol_sampler_start.argtypes = [ctypes.c_uint64, ctypes.c_int]
        library.eshkol_sampler_watch.argtypes = [ctypes.c_uint32, ctypes.c_void_p]
        library.eshkol_sampler_unwatch.argtypes = library.eshkol_heaps_forget.argtypes = [ctypes.c_void_p]
        library.eshkol_kernels_stop.restype = library.eshkol_callbacks_stop.restype = ctypes.c_int64
        library.eshkol_callbacks_start.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.sampling = False

    def begin(self) -> None:
        """Empty the tables."""
        if self._library.eshkol_profile_begin():
            raise MemoryError("no memory for a profile")

    def start(self, nanoseconds: int, *, kernels: bool, heaps: bool, anew: bool = True) -> None:
        """Watch, or go on with what is in the tables. `sampling` says whether the system can sample threads."""
        library = self._library
        self.sampling = library.eshkol_sampler_start(nanoseconds, anew) == 0
        keep = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p)
        _checked("calls of Python", library.eshkol_callbacks_start(keep, anew))
        if kernels:
            _checked("kernels", library.eshkol_kernels_start(anew))
        if heaps:
            _checked("memory", library.eshkol_heaps_start(anew))

    def thread(self, number: int, context: int | None) -> None:
        """Sample a thread that runs Scheme in a context, or is one of Python's."""
        if self.sampling:
            self._library.eshkol_sampler_watch(number, context)

    def forget(self, context: int) -> None:
        """A context is about to be given back."""
        self._library.eshkol_sampler_unwatch(context)
        self._library.eshkol_heaps_forget(context)

    def end(self) -> None:
        """Let go of the callables that C has kept."""
        _locked().eshkol_callbacks_end(ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p))

    def stop(self) -> Found:
        """Watch no more; what was found until now."""
        library = self._library
        library.eshkol_sampler_stop()
        kernels, callbacks = library.eshkol_kernels_stop(), library.eshkol_callbacks_stop()
        library.eshkol_heaps_stop()
        profile = _Profile.in_dll(library, "eshkol_profile")
        stacks = profile.stack_count
        rows = {
            "stacks": stacks, "samples": profile.sample_count, "kernels": kernels, "calls": profile.call_count,
            "collections": profile.collection_count, "sites": stacks, "callbacks": callbacks,
        }  # fmt: skip
        tables = {name: _table(getattr(profile, name), count, np.dtype(_TABLES[name])) for name, count in rows.items()}
        tables["kernels"] = tables["kernels"][tables["kernels"]["sequence"] != 0]
        return Found(
            _table(profile.addresses, profile.address_count, np.dtype(_WORD)),
            tables["stacks"], tables["samples"], tables["kernels"], tables["calls"], tables["collections"],
            tables["sites"], _called(tables["callbacks"]), {name: getattr(profile, name) for name in _LOST},
            profile.heap_peak,
        )  # fmt: skip


def _table(address: int | None, count: int, dtype: np.dtype[Any]) -> Any:
    """A copy of the rows that lie at an address."""
    if not count or not address:
        return np.zeros(0, dtype)
    return np.frombuffer(ctypes.string_at(address, count * dtype.itemsize), dtype)


def _called(rows: Any) -> list[tuple[Any, int, int]]:
    """The callables."""
    found = []
    for function, count, total in rows[rows["count"] != 0].tolist():
        called = ctypes.cast(function, ctypes.py_object).value if function else None  # C keeps it
        found.append((called, count, total))
    return found
