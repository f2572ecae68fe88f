"""Launches that are repeated: what a program needs for one configuration, and the records that launches run on.

A launch should cost little more than a call from Python to native code. So everything that follows from program and
configuration alone is kept (`Prepared`), and so are the records (`Slot`): a launch takes one that no other launch is
using, writes into it only what has changed since, and calls.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from eshkol.atlas.flow import located
from eshkol.atlas.program import LaunchConfig, Param, ParamKind, Program
from eshkol.atlas.types import Array, Type
from eshkol.backends.cpu.collective import Collective, Held
from eshkol.backends.cpu.kernels.loops import ENDED
from eshkol.backends.cpu.kernels.translate import KernelModule
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.errors import EshkolError, ExecutionFailed, IsaError
from eshkol.llvm.loading import HasAddresses
from eshkol.runtime.scheduler import Phase, PreparedCall, expected_workers

POOL_MAKERS = frozenset({"PoolAlloc", "PoolFree"})
PHASES = frozenset({"PhaseRead", "PhaseWrite"})
SPECIAL = POOL_MAKERS | PHASES
STEPS_PER_TASK = 1 << 17  # fewer instructions are not worth waking another core for
_PACKERS = {
    Type.F32: struct.Struct("<f").pack_into, Type.F64: struct.Struct("<d").pack_into,
    Type.I32: struct.Struct("<i").pack_into, Type.I64: struct.Struct("<q").pack_into,
    Type.U32: struct.Struct("<I").pack_into, Type.U64: struct.Struct("<Q").pack_into,
}  # fmt: skip
_PAIR = struct.Struct("<QQ").pack


def pack_scalar(record: Any, place: int, param: Param, value: float) -> None:
    """Put a scalar into the bytes of a record; one that does not fit its type is an error."""
    assert param.ty is not None
    try:
        _PACKERS[param.ty](record, place, value)
    except (KeyError, struct.error, OverflowError):
        raise IsaError(f"the scalar '{param.name}' must be a number of type {param.ty}, not {value!r}") from None


@dataclass(frozen=True)
class Lanes:
    """The lanes of a program as native code."""

    module: KernelModule
    loaded: HasAddresses
    address: int  # of the kernel


@dataclass(frozen=True)
class Compiled:
    """A program ready to run."""

    expanded: Callable[[], Program]  # the program as it was translated
    layout: Layout
    lanes: Lanes | None  # None where lanes have nothing to do but what all do together
    together: Mapping[int, Collective]  # instructions that the host runs, in program order
    special: frozenset[str]  # instructions of SPECIAL in it

    @cached_property
    def program(self) -> Program:
        """The program as it was translated, for the text of errors and for what the host has to do."""
        return self.expanded()

    def fault(self, code: int) -> EshkolError:
        """What the code that lanes have left in a record means."""
        return self.layout.error(self.program, code)


def diverged(compiled: Compiled, headers: Array, block_size: int) -> ExecutionFailed:
    """Blocks wait at different barriers: the earliest is named, and the first lane of those there."""
    earliest = int(headers[headers != ENDED].min())
    lane = int(np.argmax(headers == earliest)) * block_size
    message = f"divergent barrier: not every lane of the launch has come here (lane {lane})"
    error = located(compiled.program, compiled.layout.barriers[earliest - 1], message)
    return ExecutionFailed(error.message, span=error.span, hint="move the barrier out of the branch")


def special_of(program: Program) -> frozenset[str]:
    """The instructions of a program that launches prepare for."""
    return SPECIAL.intersection(i.op.name for i in program.instructions)


def grain_of(blocks: int, worth: int) -> int:
    """Blocks of a task, of which so many are worth one: fewer where the last tasks would leave most cores idle."""
    return worth if blocks <= worth else max(1, worth // 8, min(worth, blocks // (8 * expected_workers())))


def worth(instructions: int) -> int:
    """Instructions that make a task of so many in all: fewer where the last tasks would leave most cores idle."""
    if instructions <= STEPS_PER_TASK:  # one core has done them before another is awake
        return max(1, instructions)
    return max(STEPS_PER_TASK // 8, min(STEPS_PER_TASK, instructions // (8 * expected_workers())))


class Placed:
    """Memory of a buffer, with address and size as a record holds them: NumPy takes long to tell an address."""

    __slots__ = ("address", "data", "words")

    def __init__(self, data: Array) -> None:
        self.address: int = data.__array_interface__["data"][0]
        self.data = data
        self.words = _PAIR(self.address, data.size)


@dataclass(slots=True, eq=False)
class Slot:
    """A record of a program's launches, in the hands of one launch at a time."""

    record: Any
    view: memoryview  # its words for the parameters, as bytes
    run: Callable[[], int] | None  # what is left to do when parameters are bound, where that is a single call
    call: PreparedCall | None
    held: Held | None  # where the program is one instruction that the host runs
    scalars: list[bytes]  # for each parameter: the words that point to where the record holds a scalar
    given: dict[str, Any] | None = None  # the parameters that are bound, where all are buffers
    removals: int = 0  # of buffers up to then
    states: Placed | None = None  # of blocks that wait for the whole launch


@dataclass(slots=True, eq=False)
class Prepared:
    """A program ready for one launch configuration."""

    program: Program  # kept, so that its id stays its own
    launch: LaunchConfig  # the same
    compiled: Compiled
    only: Collective | None  # the one instruction that is all of the program, if it is that
    quick: list[tuple[str, Param, Any, int]]  # name, parameter, how a scalar of its type is packed, and its place
    blocks: int
    # Blocks that are not worth splitting over cores, at the start and after each barrier; negative after those at
    # which the host has something to do.
    grains: ctypes.Array[ctypes.c_int64]
    template: bytes
    has_scalars: bool
    phased: bool  # whether it reads or writes the phase
    makes_pools: bool
    spare: list[Slot] = field(default_factory=list)  # taken and given back atomically

    @classmethod
    def of(cls, program: Program, launch: LaunchConfig, compiled: Compiled, class_memory: Array) -> Prepared:
        layout, params = compiled.layout, program.params
        template = (ctypes.c_uint64 * (layout.words + len(params)))()  # scalars lie after the record
        template[words.FAULT] = words.NO_FAULT
        template[words.CLASS_MEMORY] = class_memory.ctypes.data
        template[words.SHARED_BYTES] = launch.shared_memory
        template[words.GRID : words.GRID + 3] = [*launch.grid]
        template[words.BLOCK : words.BLOCK + 3] = [*launch.block]
        quick = [
            (p.name, p, _PACKERS.get(p.ty) if p.ty and p.kind is ParamKind.SCALAR else None, 8 * (layout.words + k))
            for k, p in enumerate(params)
        ]
        lanes, blocks = compiled.lanes, launch.blocks
        steps = lanes.module.steps if lanes is not None else ()
        grains = [grain_of(blocks, max(1, STEPS_PER_TASK // (launch.block_size * n))) for n in steps]
        if lanes is not None and lanes.module.serial:
            grains = [blocks] * len(grains)
        for barrier, index in enumerate(layout.barriers, 1):
            of_host = index in compiled.together or compiled.program.instructions[index].op.name in POOL_MAKERS
            grains[barrier] *= -1 if of_host else 1
        only = next(iter(compiled.together.values())) if lanes is None and len(compiled.together) == 1 else None
        return cls(
            program, launch, compiled, only, quick, blocks, (ctypes.c_int64 * len(grains))(*grains), bytes(template),
            any(p.kind is ParamKind.SCALAR for p in params), not PHASES.isdisjoint(compiled.special),
            not POOL_MAKERS.isdisjoint(compiled.special),
        )  # fmt: skip

    def new_slot(self) -> Slot:
        """One more record, where all are in use."""
        record = (ctypes.c_uint64 * (len(self.template) // 8)).from_buffer_copy(self.template)
        where, lanes, only = ctypes.addressof(record), self.compiled.lanes, self.only
        call = held = run = None
        if only is not None:
            held = only.hold()
            run = held.run if only.plain else None
        elif lanes is not None and not lanes.module.grid_wide:
            call = PreparedCall([Phase(lanes.address, self.blocks, self.grains[0])], where)
            run = call.run
        start, stop = (8 * (words.FIRST_PARAM + 2 * n) for n in (0, len(self.quick)))
        view = memoryview(record).cast("B")[start:stop]
        return Slot(record, view, run, call, held, [_PAIR(where + place, 8) for _, _, _, place in self.quick])
