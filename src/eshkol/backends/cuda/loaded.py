"""What the backend keeps of memory and of programs on a device.

Comes in: what the driver gave, and what a program is translated to. Goes out: records of it, which give back what they
hold when the last one lets go of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eshkol.atlas.program import LaunchConfig, Program
from eshkol.backends.cuda.driver import Driver
from eshkol.backends.cuda.memory import Allocator
from eshkol.backends.cuda.warpgroups.instructions import Whole
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.promises import Promises

PLAIN_SHARED = 48 << 10  # bytes of shared memory that a kernel may have without asking


@dataclass(frozen=True, slots=True)
class Memory:
    """A block of the device's memory."""

    address: int
    size: int
    owner: Any = None  # of memory of another library: what keeps it


@dataclass(slots=True, eq=False)
class Loaded:
    """A module on the device."""

    layout: Layout
    handle: int
    kernel: int
    can_fail: bool  # whether its lanes can
    driver: Driver
    shared: int = PLAIN_SHARED  # the most shared memory that it has asked for

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():  # when Python ends, the driver takes everything back
            self.driver.try_call("cuModuleUnload", self.handle)


@dataclass(slots=True, eq=False)
class StatusBlock:
    """Memory of the device for what lanes of a sequence's launches leave behind."""

    address: int
    memory: Allocator

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():
            self.memory.free(self.address)


@dataclass(slots=True, eq=False)
class Prepared:
    """A program that is launched: plain and fast, each on the device as soon as a launch needs it."""

    program: Program  # as it is translated
    layout: Layout
    promises: Promises | None
    has_classes: bool  # whether it touches the classes' memory
    whole: Whole | None  # the kernel that does it all at once, if there is one
    plain: Loaded | None = None
    fast: Loaded | None = None
    read: frozenset[int] | None = None  # words of its record that fast code reads, if it was looked at
    launches: set[LaunchConfig] = field(default_factory=set)  # that were found to suit it

    def is_fast(self, launch: LaunchConfig, sizes: Mapping[str, int], scalars: Mapping[str, float]) -> bool:
        """Whether a launch with buffers of these bytes and such scalars needs no checks."""
        return self.promises is not None and self.promises.hold(launch.total_threads, sizes, scalars)
