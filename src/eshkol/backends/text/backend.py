"""What backends have in common whose drivers compile source: programs as kernels, launches, and how lanes fail.

Comes in: Atlas programs, launches, a `Dialect`, and what a driver does with a kernel (`_compile`, `_start`). Work goes
to the device in order, and the host waits where it reads something back, and after launches whose lanes may fail:
such a launch raises with the instruction and the lowest lane that failed, as on the CPU. Like the CPU such machines do
not look for races or unwritten memory. What there is no code for is refused by name. `ESHKOL_DUMP=kernel` prints what
the driver is given.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.expand import expand
from eshkol.atlas.isa import Control
from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.validate import validate
from eshkol.backends.base import Binding, bind_params, refuse_launch
from eshkol.backends.driven import DeviceT, NumberedBackend
from eshkol.backends.lanes.guards import Guard, find_guard
from eshkol.backends.lanes.layout import SITE_BITS
from eshkol.backends.lanes.promises import Promises, promises
from eshkol.backends.lanes.ranges import SHARED_MEMORY
from eshkol.backends.text.dialect import Dialect
from eshkol.backends.text.scalars import LOWERED
from eshkol.backends.text.writer import TextKernel, Writer, write_kernel
from eshkol.errors import BackendError, BackendUnavailable, EshkolError
from eshkol.support import flags

REMEMBERED = 1024  # programs kept loaded
LOG = 2000  # letters of what a driver says of a kernel that it refuses
NO_FAULT = (1 << 32) - 1


@dataclass(slots=True, eq=False)
class Loaded:
    """A kernel that the driver has compiled."""

    written: TextKernel
    kernel: Any  # as the driver knows it

    @property
    def sites(self) -> int:
        return len(self.written.layout.sites)


@dataclass(slots=True, eq=False)
class Prepared:
    """A program that is launched: each of its kernels as soon as a launch needs it."""

    program: Program  # as it is translated
    promises: Promises | None
    guard: Guard | None
    waits: bool  # whether lanes meet at barriers
    kernels: dict[tuple[bool, bool], Loaded] = field(default_factory=dict)  # checked, guarded → kernel
    launches: set[LaunchConfig] = field(default_factory=set)  # that were found to suit it


class TextBackend(NumberedBackend[DeviceT]):
    """One device whose driver compiles kernels in a dialect."""

    writer: ClassVar[type[Writer]] = Writer  # that of a language may have memory of its own

    def __init__(self, device: DeviceT, dialect: Dialect, memory_limit: int | None = None) -> None:
        super().__init__(device, memory_limit)
        self.dialect = dialect
        self._prepared: OrderedDict[str, Prepared] = OrderedDict()
        self._status = self._block(8, "status")  # the first fault, and the phase
        self._write(self._status, 0, np.array([NO_FAULT, 0], np.uint32).view(np.uint8))

    # --- what the driver does ---------------------------------------------------------------------

    @abstractmethod
    def _compile(self, written: TextKernel, name: str) -> Any:
        """A kernel as the driver knows it; `Refused` with the driver's words where it does not take it."""

    @abstractmethod
    def _start(
        self, loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int
    ) -> None:
        """Ask for so many blocks of a launch, from one on."""

    def _unguarded(self, prepared: Prepared, launch: LaunchConfig, lanes: int) -> bool:
        """Whether full blocks are run without the guard, of which so many lanes pass it."""
        return lanes == launch.total_threads

    # --- compilation ------------------------------------------------------------------------------

    def prepared(self, program: Program) -> Prepared:
        """What is kept of a program."""
        found = self._prepared.get(program.digest)
        if found is None:
            found = self._prepared[program.digest] = _prepared(program)
            if len(self._prepared) > REMEMBERED:
                self._prepared.popitem(last=False)
        else:
            self._prepared.move_to_end(program.digest)
        return found

    def _loaded(self, prepared: Prepared, *, checked: bool, guarded: bool) -> Loaded:
        """A kernel of a program: one that checks accesses, or none; one for all lanes, or those that pass the guard."""
        found = prepared.kernels.get((checked, guarded))
        if found is None:
            written = self._written(prepared, checked=checked, guarded=guarded)
            found = Loaded(written, self._built(written, prepared.program.name))
            prepared.kernels[checked, guarded] = found
        return found

    def _written(self, prepared: Prepared, *, checked: bool, guarded: bool) -> TextKernel:
        known = None if checked or prepared.promises is None else prepared.promises.known
        never = None if guarded or prepared.guard is None else prepared.guard.branch
        return write_kernel(prepared.program, self.dialect, known, never, self.writer)

    def _built(self, written: TextKernel, name: str) -> Any:
        if flags.dumps("kernel"):
            print(f"--- kernel {name}\n{written.text}", file=sys.stderr)
        try:
            return self._compile(written, name)
        except Refused as refusal:
            raise self._refusal(name, refusal) from None

    def _refusal(self, name: str, refusal: Exception) -> BackendError:
        """The error of a kernel that the driver does not take."""
        said = " ".join(str(refusal).split())[:LOG]
        return BackendError(
            f"the driver of {self.device.name} refuses the kernel of '{name}': {said}",
            hint="ESHKOL_DUMP=kernel prints its source: please report it with the message above",
        )

    def source(self, program: Program) -> str:
        """What the driver is given of a program, without checks where there is such a version."""
        return self._written(_prepared(program), checked=False, guarded=True).text

    def compile_to_expanded(self, program: Program) -> str:
        """The program in the instructions that are translated."""
        return str(in_base_instructions(program))

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        with self.lock:
            prepared = self.prepared(program)
            if launch not in prepared.launches:
                validate(prepared.program, launch)
                self._check_launch(prepared.program, launch)
                prepared.launches.add(launch)
            given = bind_params(self, prepared.program, params)
            relied_on = prepared.promises
            holds = relied_on is not None and relied_on.hold(launch.total_threads, *self._amounts(launch, given))
            lanes, whole = self._lanes(prepared, launch, given), 0
            if prepared.guard is not None and self._unguarded(prepared, launch, lanes):
                whole = lanes // launch.block_size
                self._launch(prepared, launch, given, 0, whole, checked=not holds, guarded=False)
            needed = -(-lanes // launch.block_size)
            self._launch(prepared, launch, given, whole, needed - whole, checked=not holds, guarded=True)

    def _amounts(self, launch: LaunchConfig, given: Mapping[str, Binding]) -> tuple[dict[str, int], dict[str, Any]]:
        """The bytes of buffers and of shared memory, and the scalars."""
        sizes = {SHARED_MEMORY: launch.shared_memory}
        scalars: dict[str, Any] = {}
        for name, binding in given.items():
            if isinstance(binding.value, Immediate):
                scalars[name] = binding.value.value
            else:
                sizes[name] = self.memory_of(binding).size
        return sizes, scalars

    def _lanes(self, prepared: Prepared, launch: LaunchConfig, given: Mapping[str, Binding]) -> int:
        """How many lanes pass the guard."""
        if prepared.guard is None:
            return launch.total_threads
        bound = prepared.guard.bound
        if not isinstance(bound, int):
            value = given[bound].value
            assert isinstance(value, Immediate)
            bound = int(value.value)
        return min(bound, launch.total_threads)

    def _check_launch(self, program: Program, launch: LaunchConfig) -> None:
        if launch.block_size > self.device.lanes:
            raise BackendUnavailable(
                f"a block of {self.device.name} has {self.device.lanes} lanes at most, not {launch.block_size}"
            )
        refuse_launch(self.name, self.device.name, self.device.shared_bytes, program, launch)

    def _launch(
        self, prepared: Prepared, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int, *,
        checked: bool, guarded: bool,
    ) -> None:  # fmt: skip
        """So many blocks from one on."""
        if blocks < 1:
            return
        loaded = self._loaded(prepared, checked=checked, guarded=guarded)
        if loaded.sites and launch.total_threads * loaded.sites >= NO_FAULT:
            raise BackendUnavailable(
                f"the {self.name} backend checks accesses of {NO_FAULT // loaded.sites} lanes of this program at most, "
                f"not of {launch.total_threads}"
            )
        with self._asked(f"a launch of {blocks} blocks of {launch.block_size} lanes"):
            self._start(loaded, launch, given, first, blocks)
        if loaded.sites:
            self._raise_fault(prepared.program, loaded)

    def _raise_fault(self, program: Program, loaded: Loaded) -> None:
        """Wait for a launch; where a lane has failed, say so."""
        code = int(np.frombuffer(self._read(self._status, 0, 4), np.uint32)[0])
        if code == NO_FAULT:
            return
        self._write(self._status, 0, np.array([NO_FAULT], np.uint32).view(np.uint8))
        lane, site = divmod(code, loaded.sites)
        error: EshkolError = loaded.written.layout.error(program, lane << SITE_BITS | site)
        raise error

    @property
    def phase(self) -> int:
        """The phase, which persists between launches."""
        return int(np.frombuffer(self._read(self._status, 4, 4), np.uint32)[0])


class Refused(Exception):
    """A driver does not take a kernel; its words are the message."""


def size_of_launch(name: str, launch: LaunchConfig) -> int:
    """What a kernel asks of a launch by names as "block_x" and "grid_y"."""
    which, axis = name.split("_")
    return (launch.block if which == "block" else launch.grid)["xyz".index(axis)]


def _prepared(program: Program) -> Prepared:
    inner = in_base_instructions(program)
    waits = any(i.op.control is Control.WAIT for i in inner.instructions)
    return Prepared(inner, promises(inner), find_guard(inner, validate(inner)), waits)


def in_base_instructions(program: Program) -> Program:
    """The program with every instruction expanded that has no text of its own."""
    return expand(program, lambda i: i.op.name not in LOWERED)
