"""The lockstep machine: all lanes of a launch, step by step, in NumPy.

Lanes that stand at the same instruction (having made the same calls) form a group and execute it
together as arrays. The group deepest in calls and earliest in the program goes first, so that paths meet
again as soon as they can. Barriers and collective instructions hold lanes back until all have come; what
cannot come any more is a divergent barrier. This order is one that real machines may choose among many, and
the checks (races, unwritten reads, divergence) reject programs whose result would depend on the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from eshkol.atlas import classes
from eshkol.atlas.expand import is_block_wide, is_collective
from eshkol.atlas.flow import located
from eshkol.atlas.isa import Arrays, Control, Effect, Instruction, LaneFault, Opcode
from eshkol.atlas.numerics import evaluate
from eshkol.atlas.operands import (
    BLOCK,
    BLOCK_SIZE,
    GLOBAL,
    LANE,
    SPECIAL_TYPES,
    Address,
    Label,
    Predicate,
    Register,
    Shared,
    address_base,
)
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Array, Type
from eshkol.atlas.validate import Analysis
from eshkol.backends.reference.addresses import DeviceState, Spaces
from eshkol.backends.reference.arrays import ArrayUnit
from eshkol.backends.reference.decoded import Decoded, Typed
from eshkol.backends.reference.registers import RegisterFile
from eshkol.backends.reference.subgroups import Copies, FragmentUnit
from eshkol.errors import ExecutionFailed, IsaError

CALL_DEPTH = 256
Stack = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A machine asks for the arrays of the other devices: it gives its own, and is sent the result."""

    instruction: Instruction
    values: Array


@dataclass
class Gathering:
    """Lanes that wait at one barrier or collective instruction."""

    groups: list[tuple[Stack, Array]]
    block_wide: bool


@dataclass(frozen=True, slots=True)
class LoopState:
    """Rounds done and wanted of one LOOP, per lane, and which lanes count in which type."""

    done: Array
    wanted: Array
    counts_in: dict[Type, Array]


class LockstepMachine:
    """One launch of one program. `run` is a generator that yields only at exchanges between devices.

    Whoever runs it does so with NumPy's warnings off.
    """

    def __init__(
        self, program: Program, analysis: Analysis, launch: LaunchConfig, state: DeviceState, spaces: Spaces,
        step_limit: int, subgroup: int = 1,
    ) -> None:  # fmt: skip
        self.subgroup = subgroup  # lanes that exchange registers
        self.program, self.flow, self.launch = program, analysis.flow, launch
        self.state, self.spaces, self.step_limit = state, spaces, step_limit
        self.count = launch.total_threads
        everyone = np.arange(self.count)
        self.block_of_lane = everyone // launch.block_size
        self.registers = RegisterFile(self.count)
        self.decoded = Decoded.of(program)
        self._set_special_registers(everyone)
        self.resonance: dict[int, Fraction] = {}
        self.groups: dict[tuple[Stack, int], Array] = {((), program.start): everyone}
        self.waiting: dict[int, Gathering] = {}
        self.ended = np.zeros(self.count, bool)
        self.loops: dict[tuple[int, int], LoopState] = {}  # by call depth and LOOP instruction
        self.arrays = ArrayUnit(self.registers, spaces)
        self.fragments = FragmentUnit(self.registers, spaces, launch.block_size)
        self.copies = Copies(self.registers, spaces, self.count)
        self.steps = 0
        self.exchange_wanted: tuple[Exchange, Callable[[Array], None]] | None = None
        # The group that executes now:
        self.lanes: Array = everyone
        self.stack: Stack = ()
        self.pc = program.start
        self.types: tuple[Type, ...] = ()  # of the registers it reads

    def _set_special_registers(self, everyone: Array) -> None:
        """Those that the program reads: few read more than one."""
        block_x, grid_x = self.launch.block[0], self.launch.grid[0]
        values: dict[int, Callable[[], Array]] = {
            LANE: lambda: everyone % self.launch.block_size % block_x, BLOCK: lambda: self.block_of_lane % grid_x,
            BLOCK_SIZE: lambda: np.full(self.count, block_x), GLOBAL: lambda: everyone,
        }  # fmt: skip
        for index in Decoded.specials(self.program):
            ty = SPECIAL_TYPES[index]
            self.registers.write(Register(index), ty, everyone, values[index]().astype(ty.dtype))

    # --- scheduling --------------------------------------------------------------------------------

    def run(self) -> Generator[Exchange, Array, None]:
        """Execute until every lane has ended."""
        end = len(self.program)
        goes_on = False  # whether the group that executed last is at the next instruction now
        while goes_on or self.groups or self.waiting:
            if goes_on and not self.groups:  # nearly always: there is no other
                self.pc += 1
            else:
                if goes_on:
                    self.go(self.pc + 1, self.lanes)
                self._choose()
            goes_on = False
            if not self.groups and self.lanes.size == self.count:
                self._compute_together(end)
            if self.pc >= end:
                self.ended[self.lanes] = True
                continue
            self.steps += 1
            if self.steps > self.step_limit:
                raise self.failure(
                    f"the launch ran {self.step_limit} steps without ending",
                    "is there an endless loop? ReferenceBackend(step_limit=...) raises the limit",
                )
            goes_on = self._step(self.decoded[self.pc])
            if self.exchange_wanted is not None:
                request, deliver = self.exchange_wanted
                self.exchange_wanted = None
                deliver((yield request))

    def _compute_together(self, end: int) -> None:
        """What only computes, up to the next instruction that does more, or may not be legal: of all lanes at once.

        It is done as `_step` does it, without asking after each whether lanes have parted.
        """
        registers, decoded, pc = self.registers, self.decoded, self.pc
        held, values, lanes = registers.uniform, registers.values, self.lanes
        last = min(end, pc + self.step_limit - self.steps)  # what is beyond the limit is refused where it is counted
        while pc < last:
            now = decoded[pc]
            if not now.computes:
                break
            typed = now.typed.get(tuple([held.get(k) for k in now.where]))  # type: ignore[misc]
            if typed is None or typed.registers is None:
                break
            try:
                result = typed.evaluate([values[key] for key in typed.registers])
            except LaneFault as fault:
                self.pc = pc
                raise self.failure(fault.message, fault.hint, fault.lanes) from None
            for predicate in now.predicates:
                registers.write_predicate(predicate, lanes, result)
            for register, ty in typed.outputs:
                index = register.index
                if held.get(index) is ty:
                    values[index, ty][...] = result
                else:
                    registers.write(register, ty, lanes, result)
            pc += 1
        self.steps += pc - self.pc
        self.pc = pc

    def _choose(self) -> None:
        """Take the group that executes next."""
        if not self.groups:
            raise self._divergence()
        if len(self.groups) == 1:
            (self.stack, self.pc), self.lanes = self.groups.popitem()
        else:
            key = max(self.groups, key=_deepest_then_earliest)
            self.lanes = self.groups.pop(key)
            self.stack, self.pc = key

    def go(self, pc: int, lanes: Array, stack: Stack | None = None) -> None:
        """Let lanes continue at an instruction, together with those already there."""
        if not lanes.size:
            return
        key = (self.stack if stack is None else stack, pc)
        there = self.groups.get(key)
        self.groups[key] = lanes if there is None else np.sort(np.concatenate([there, lanes]))

    def _step(self, decoded: Decoded) -> bool:
        """Execute one instruction for the current group; whether it goes on to the next one."""
        if decoded.collective:
            self._gather(decoded.instruction, is_block_wide(decoded.instruction))
            return False
        held = self.registers.uniform
        try:
            try:  # nearly always: every lane holds the same types, and they fit
                self.types = tuple([held[k] for k in decoded.where])
                typed = decoded.typed.get(self.types) or decoded.of_types(self.types)
            except (KeyError, IsaError):
                self._for_each_signature(decoded)
            else:
                self._execute(decoded, typed)
            return decoded.next  # others have sent the lanes on themselves
        except LaneFault as fault:
            raise self.failure(fault.message, fault.hint, fault.lanes) from None

    def _for_each_signature(self, decoded: Decoded) -> None:
        """Execute it for the lanes of each combination of types; of several that fail, the lowest lane is reported."""
        everyone, op = self.lanes, decoded.instruction.op
        groups = list(self.registers.signatures(decoded.reads, everyone))
        ordered = len(groups) > 1 and _order_matters(op)
        failed: list[tuple[int, ExecutionFailed | IsaError]] = []
        for self.types, self.lanes in _in_lane_order(groups) if ordered else groups:
            if failed and ordered:  # what lanes beyond the one that fails would store is not wanted
                break
            try:
                typed = decoded.of_types(self.types)
            except IsaError as error:
                failed.append((self._first(), self.failure(error.message, error.hint, kind=IsaError)))
                continue
            try:
                self._execute(decoded, typed)
            except LaneFault as fault:
                failed.append((self._first(fault.lanes), self.failure(fault.message, fault.hint, fault.lanes)))
        if failed:
            raise min(failed, key=lambda pair: pair[0])[1]
        self.lanes = everyone

    def _execute(self, decoded: Decoded, typed: Typed) -> None:
        if decoded.computes:
            self._compute(decoded, typed)
        elif decoded.effect is not None:
            decoded.effect(self, decoded.instruction)
        else:
            self.arrays.execute_per_lane(decoded.instruction, self.lanes, self.types)

    def _compute(self, decoded: Decoded, typed: Typed) -> None:
        registers, lanes = self.registers, self.lanes
        if typed.registers is not None and lanes.size == self.count:  # nearly always
            values = registers.values
            inputs = [values[key] for key in typed.registers]
        else:
            inputs = [
                registers.read_predicate(operand, lanes) if ty is None else registers.read(operand, ty, lanes)
                for operand, ty in typed.inputs
            ]
        result = typed.evaluate(inputs)
        for predicate in decoded.predicates:
            registers.write_predicate(predicate, lanes, result)
        for register, ty in typed.outputs:
            registers.write(register, ty, lanes, result)

    def failure(
        self, message: str, hint: str | None = None, mask: Array | None = None,
        kind: type[ExecutionFailed] | type[IsaError] = ExecutionFailed,
    ) -> ExecutionFailed | IsaError:  # fmt: skip
        """An error that names the instruction and the first lane concerned."""
        where = located(self.program, self.pc, message)
        return kind(f"{where.message} (lane {self._first(mask)})", span=where.span, hint=hint)

    def _first(self, mask: Array | None = None) -> int:
        """The first of the current lanes, or of those in the mask."""
        return int(self.lanes[np.flatnonzero(mask)[0]] if mask is not None and mask.any() else self.lanes[0])

    # --- waiting for each other ---------------------------------------------------------------------

    def _gather(self, instruction: Instruction, block_wide: bool) -> None:
        """The current lanes have come to a barrier or collective; go on with those that are complete."""
        gathering = self.waiting.setdefault(self.pc, Gathering([], block_wide))
        gathering.groups.append((self.stack, self.lanes))
        present = np.concatenate([lanes for _, lanes in gathering.groups])
        if present.size == self.count:
            complete = np.ones(self.launch.blocks, bool)
        elif block_wide:
            arrived = np.bincount(self.block_of_lane[present], minlength=self.launch.blocks)
            complete = arrived == self.launch.block_size
        else:
            return
        if complete.any():
            self._release(instruction, gathering, complete)

    def _release(self, instruction: Instruction, gathering: Gathering, complete: Array) -> None:
        blocks = np.flatnonzero(complete)
        del self.waiting[self.pc]
        remaining = []
        for stack, lanes in gathering.groups:
            done = complete[self.block_of_lane[lanes]]
            self.go(self.pc + 1, lanes[done], stack)
            if not done.all():
                remaining.append((stack, lanes[~done]))
        if remaining:
            self.waiting[self.pc] = Gathering(remaining, gathering.block_wide)
        self.spaces.shared.advance(blocks)
        try:
            self._act_together(instruction, gathering.block_wide, blocks)
        except LaneFault as fault:
            raise self.failure(fault.message, fault.hint) from None

    def _act_together(self, instruction: Instruction, block_wide: bool, blocks: Array) -> None:
        """What a collective instruction does once all lanes are there; barriers do nothing more."""
        if isinstance(instruction.op.meaning, Arrays):
            if block_wide:
                for block in blocks:
                    self.arrays.execute(instruction, int(block) * self.launch.block_size)
                self.spaces.shared.advance(blocks)
            else:
                self.arrays.execute(instruction, 0)
        elif is_collective(instruction):
            self._exchange(instruction)
        elif instruction.op.name == "PoolAlloc":
            self.spaces.make_pool(instruction.pool, instruction.size)
        elif instruction.op.name == "PoolFree":
            self.spaces.drop_pool(instruction.pool)

    def _divergence(self) -> ExecutionFailed | IsaError:
        """Some lanes wait for others that will never come."""
        self.pc, gathering = min(self.waiting.items())
        self.lanes = np.sort(np.concatenate([lanes for _, lanes in gathering.groups]))
        block = int(self.block_of_lane[self.lanes[0]])
        if gathering.block_wide:
            expected = np.flatnonzero(self.block_of_lane == block)
            scope = f"block {block}"
        else:
            expected, scope = np.arange(self.count), "the launch"
        here = np.intersect1d(self.lanes, expected)
        missing = int(np.setdiff1d(expected, here)[0])
        other = "has ended" if self.ended[missing] else "waits at another barrier"
        return self.failure(
            f"divergent barrier: {here.size} of {expected.size} lanes of {scope} are here, but lane {missing} {other}",
            "every lane must reach the same barrier: move it out of the branch",
        )

    def barrier(self) -> None:
        self._gather(self.program.instructions[self.pc], block_wide=True)

    def grid_barrier(self) -> None:
        self._gather(self.program.instructions[self.pc], block_wide=False)

    def exchange_lanes(self, instruction: Instruction) -> None:
        mask, width = instruction.mask, self.subgroup
        if mask >= width:
            raise LaneFault(
                np.ones(self.lanes.size, bool),
                f"mask {mask} leaves the sub-group, which has {width} lanes here",
                "a mask is less than the sub-group's width, which the machine's description says",
            )
        size = self.launch.block_size
        within = (self.lanes % size) ^ mask
        others = self.lanes - self.lanes % size + within
        places = np.minimum(np.searchsorted(self.lanes, others), self.lanes.size - 1)
        missing = (within >= size) | (self.lanes[places] != others)
        if missing.any():
            raise LaneFault(
                missing,
                f"lane {others[missing][0]}, with which it exchanges, is not here",
                "all lanes of a sub-group execute SubGroupXor together: move it out of the branch",
            )
        values = self.registers.read(instruction.src, instruction.ty, self.lanes)
        self.registers.write(instruction.dst, instruction.ty, self.lanes, values[places])

    def multiply_fragments(self, instruction: Instruction) -> None:
        self.fragments.multiply(instruction, self.lanes)

    def load_fragments(self, instruction: Instruction) -> None:
        self.fragments.load(instruction, self.lanes, self.types)

    def begin_copy(self, instruction: Instruction) -> None:
        self.copies.begin(instruction, self.lanes, self.types)

    def commit_copies(self) -> None:
        self.copies.commit(self.lanes)

    def wait_for_copies(self, pending: int) -> None:
        self.copies.wait(self.lanes, pending)

    def fence(self) -> None:
        """Lockstep execution is ordered already."""

    def pool_alloc(self, pool: str, size: int) -> None:
        self.grid_barrier()

    def pool_free(self, pool: str) -> None:
        self.grid_barrier()

    def exchange(self, instruction: Instruction) -> None:
        self.grid_barrier()

    def _exchange(self, instruction: Instruction) -> None:
        own, deliver = self.arrays.exchange(instruction)
        if len(instruction.devices) == 1:
            deliver(own)
        else:
            self.exchange_wanted = Exchange(instruction, own), deliver

    # --- control flow --------------------------------------------------------------------------------

    def branch(self, target: Label, pred: Predicate | None) -> None:
        place = self.program.labels[target.name]
        if pred is None:
            self.go(place, self.lanes)
            return
        taken = self.registers.read_predicate(pred, self.lanes)
        self.go(place, self.lanes[taken])
        self.go(self.pc + 1, self.lanes[~taken])

    def call(self, target: Label) -> None:
        if len(self.stack) >= CALL_DEPTH:
            raise self.failure(f"calls are nested more than {CALL_DEPTH} deep", kind=IsaError)
        self.go(self.program.labels[target.name], self.lanes, (*self.stack, self.pc + 1))

    def ret(self) -> None:
        if not self.stack:
            raise self.failure("there is no CALL to return from", "use EXIT to end a lane", kind=IsaError)
        self.go(self.stack[-1], self.lanes, self.stack[:-1])

    def exit(self) -> None:
        self.ended[self.lanes] = True

    def loop(self, counter: Register, iterations: int | Register) -> None:
        if isinstance(iterations, Register):
            ty = self.types[0]
            wanted = self.registers.read(iterations, ty, self.lanes)
            if (wanted < 0).any():
                raise LaneFault(wanted < 0, "a loop cannot run a negative number of times")
        else:
            ty, wanted = Type.U32, np.full(self.lanes.size, iterations)
        key = (len(self.stack), self.pc)
        if key not in self.loops:
            self.loops[key] = LoopState(np.zeros(self.count, np.uint64), np.zeros(self.count, np.uint64), {})
        state = self.loops[key]
        state.done[self.lanes], state.wanted[self.lanes] = 0, wanted
        state.counts_in.setdefault(ty, np.zeros(self.count, bool))
        for other, lanes in state.counts_in.items():
            lanes[self.lanes] = other is ty
        enters = wanted > 0  # before the counter is set, which may be the register that holds the count
        self.registers.write(counter, ty, self.lanes, np.zeros(1, ty.dtype))
        self.go(self.pc + 1, self.lanes[enters])
        self.go(self.flow.loop_end[self.pc] + 1, self.lanes[~enters])

    def end_loop(self) -> None:
        start = self.flow.loop_start[self.pc]
        instruction = self.program.instructions[start]
        state = self.loops[len(self.stack), start]
        state.done[self.lanes] += np.uint64(1)
        again = state.done[self.lanes] < state.wanted[self.lanes]
        going = self.lanes[again]
        for ty, holds in state.counts_in.items():
            lanes = going[holds[going]]
            if lanes.size:
                self.registers.write(instruction.counter, ty, lanes, state.done[lanes].astype(ty.dtype))
        self.go(start + 1, going)
        self.go(self.pc + 1, self.lanes[~again])

    # --- memory and the Atlas-specific units ---------------------------------------------------------

    def _index_types(self) -> Type | None:
        return self.types[0] if self.types else None

    def load(self, dst: Register, src: Address, ty: Type) -> None:
        place = self.spaces.resolve(src, self.registers, self.lanes, self._index_types())
        self.registers.write(dst, ty, self.lanes, place.load(ty, self.lanes))

    def store(self, dst: Address, src: Register, ty: Type) -> None:
        place = self.spaces.resolve(dst, self.registers, self.lanes, self._index_types())
        place.store(ty, self.registers.read(src, ty, self.lanes), self.lanes)

    def atomic(self, instruction: Instruction) -> None:
        """Lanes take their turn in ascending order."""
        i = instruction
        place = self.spaces.resolve(i.address, self.registers, self.lanes, self._index_types())
        sources = self.registers.read(i.src, i.ty, self.lanes)
        row = ROWS[i.operation.value]
        step = row(*(Register(k) for k in range(len(row.fields))))
        place.check_read(i.ty)
        if isinstance(address_base(i.address), Shared):
            self.spaces.shared.note_atomic(place.offsets + place.base, i.ty.size_bytes, self.lanes)
        old = np.empty(self.lanes.size, i.ty.dtype)
        for k in range(self.lanes.size):
            one = place.pick(k)
            before = one.load_quietly(i.ty)
            old[k] = before[0]
            source = sources[k : k + 1]
            after = source if i.operation.name == "Exchange" else evaluate(step, [before, source], i.ty)
            one.store_quietly(i.ty, after)
        self.registers.write(i.dst, i.ty, self.lanes, old)

    def special(self, instruction: Instruction) -> None:
        which, axis = instruction.which.name[:-1], "XYZ".index(instruction.which.name[-1])
        within = self.lanes % self.launch.block_size
        extents = {"Lane": self.launch.block, "Block": self.launch.grid}
        if which in extents:
            linear = within if which == "Lane" else self.block_of_lane[self.lanes]
            x, y, _ = extents[which]
            values = (linear % x, linear // x % y, linear // (x * y))[axis]
        else:
            size = (self.launch.block if which == "BlockSize" else self.launch.grid)[axis]
            values = np.array([size])
        self.registers.write(instruction.dst, Type.U32, self.lanes, values.astype(np.uint32))

    def neighbour(self, cls: Register, k: int, value: Register, ty: Type, *, write: bool) -> None:
        own = self.registers.read(cls, self.types[0], self.lanes)
        bad = (own < 0) | (own >= classes.CLASSES)
        if bad.any():
            raise LaneFault(bad, f"class {own[bad][0]} does not exist: classes are 0 to {classes.CLASSES - 1}")
        around = [classes.neighbours(int(c)) for c in own]
        bad = np.array([k >= len(n) for n in around])
        if bad.any():
            degree = len(around[int(np.flatnonzero(bad)[0])])
            raise LaneFault(bad, f"class {own[bad][0]} has {degree} neighbours: k must be below that, not {k}")
        starts = np.array([n[k] for n in around], np.int64) * classes.CLASS_BYTES
        place = self.spaces.class_place(starts, np.zeros_like(starts))
        if write:
            place.store(ty, self.registers.read(value, ty, self.lanes), self.lanes)
        else:
            self.registers.write(value, ty, self.lanes, place.load(ty, self.lanes))

    def accumulate(self, dst: Register, src: Register, cls: int) -> None:
        values = self.registers.read(src, self.types[0], self.lanes)
        sums = np.empty(self.lanes.size, np.float64)
        total = self.resonance.get(cls, Fraction(0))
        for k, value in enumerate(values.tolist()):
            try:
                total += Fraction(float(value) if self.types[0].is_float else int(value))
            except (ValueError, OverflowError):
                raise LaneFault(np.arange(values.size) == k, f"cannot accumulate {value} exactly") from None
            sums[k] = _as_float(total)
        self.resonance[cls] = total
        self.registers.write(dst, Type.F64, self.lanes, sums)

    def read_phase(self, dst: Register, cls: int) -> None:
        phase = classes.read_phase(self.state.phase, cls)
        self.registers.write(dst, Type.U32, self.lanes, np.array([phase], np.uint32))

    def write_phase(self, src: Register, cls: int) -> None:
        last = self.registers.read(src, self.types[0], self.lanes)[-1]
        self.state.phase = classes.write_phase(int(last), cls)


def _order_matters(op: Opcode) -> bool:
    """Whether the lane that comes last decides: in memory, or in a unit that all lanes share."""
    shared_unit = isinstance(op.meaning, Effect) and op.control is Control.NEXT and not op.memory
    return op.writes_memory or shared_unit


def _in_lane_order(groups: list[tuple[tuple[Type, ...], Array]]) -> list[tuple[tuple[Type, ...], Array]]:
    """The groups cut into stretches of neighbouring lanes, so that lanes follow each other over all groups."""
    lanes = np.concatenate([group for _, group in groups])
    group_of = np.repeat(np.arange(len(groups)), [group.size for _, group in groups])
    order = np.argsort(lanes)
    cuts = np.flatnonzero(np.diff(group_of[order])) + 1
    return [(groups[group_of[part[0]]][0], lanes[part]) for part in np.split(order, cuts)]


def _deepest_then_earliest(key: tuple[Stack, int]) -> tuple[int, int]:
    return len(key[0]), -key[1]


def _as_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
