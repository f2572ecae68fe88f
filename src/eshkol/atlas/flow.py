"""Control flow of a program: matching loops, successors, and liveness.

Comes in: a program whose operands are well-formed. Goes out: `Flow`, or an IsaError where the structure is
broken (a label that is not there, LOOP without ENDLOOP, a jump into a loop).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from eshkol.atlas.isa import Control, Instruction
from eshkol.atlas.operands import REGISTERS, Predicate, Register
from eshkol.atlas.program import Program
from eshkol.atlas.writing import format_instruction
from eshkol.errors import IsaError

Slot = Register | Predicate


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call of one label can come to: the RETs that may end it, and the slots that may be written before."""

    returns: frozenset[int]
    writes: frozenset[Slot]


def located(program: Program, index: int, message: str, hint: str | None = None) -> IsaError:
    """An error about one instruction of a program: its place and text, with a caret where it has a source."""
    instruction = program.instructions[index]
    where = f"instruction {index}, {format_instruction(instruction)}"
    return IsaError(f"{where}: {message}", span=instruction.span, hint=hint)


@dataclass(frozen=True)
class Flow:
    """Where each instruction can go. Index `len(program)` is the end."""

    program: Program
    loop_end: dict[int, int]  # LOOP → its ENDLOOP
    loop_start: dict[int, int]  # ENDLOOP → its LOOP
    targets: dict[int, int]  # BRA and CALL → the instruction at their label

    @classmethod
    def of(cls, program: Program) -> Flow:
        """The flow of a program whose loops match and whose jumps are legal."""
        loop_end, loop_start, enclosing = _match_loops(program)
        if program.entry is not None and program.entry not in program.labels:
            raise IsaError(f"the entry label '{program.entry}' is not in the program")
        for name, place in program.labels.items():
            if not 0 <= place <= len(program):
                raise IsaError(f"the label '{name}' stands before instruction {place} of {len(program)}")
        targets: dict[int, int] = {}
        for index, instruction in enumerate(program.instructions):
            if instruction.op.control not in (Control.BRANCH, Control.CALL):
                continue
            name = instruction.target.name
            if name not in program.labels:
                raise located(program, index, f"there is no label '{name}'", _known_labels(program))
            target = program.labels[name]
            outer = enclosing[index] if instruction.op.control is Control.BRANCH else ()
            if enclosing[target] != outer[: len(enclosing[target])]:
                raise located(program, index, f"'{name}' is inside a loop that this instruction is outside of",
                              "go to the LOOP instruction instead, or move the label out of the loop")  # fmt: skip
            targets[index] = target
        if enclosing[program.start]:
            raise IsaError(f"the entry label '{program.entry}' is inside a loop")
        return cls(program, loop_end, loop_start, targets)

    @cached_property
    def return_points(self) -> tuple[int, ...]:
        """The instructions after a CALL, where a RET may go."""
        return tuple(i + 1 for i, x in enumerate(self.program.instructions) if x.op.control is Control.CALL)

    def successors(self, index: int) -> tuple[int, ...]:
        """The instructions that may run next."""
        instruction = self.program.instructions[index]
        control = instruction.op.control
        if control is Control.BRANCH:
            target = (self.targets[index],)
            return target if instruction.pred is None else (*target, index + 1)
        if control is Control.CALL:
            return (self.targets[index],)
        if control is Control.RETURN:
            return self.return_points
        if control is Control.LOOP:
            return (index + 1, self.loop_end[index] + 1)
        if control is Control.ENDLOOP:
            return (self.loop_start[index] + 1, index + 1)
        return () if control is Control.EXIT else (index + 1,)

    @cached_property
    def calls(self) -> dict[int, int]:
        """CALL → the instruction at its label."""
        instructions = self.program.instructions
        return {i: t for i, t in self.targets.items() if instructions[i].op.control is Control.CALL}

    @cached_property
    def callees(self) -> dict[int, Callee]:
        """What each called label can come to, by the index it stands at."""
        instructions, calls = self.program.instructions, self.calls
        own = {target: self._body(target) for target in calls.values()}
        found = {}
        for target, body in own.items():
            reached, pending = {target}, [target]
            while pending:
                inner = own[pending.pop()]
                nested = {calls[i] for i in inner if i in calls} - reached
                reached |= nested
                pending.extend(nested)
            writes = {slot for t in reached for i in own[t] for slot in slots_written(instructions[i])}
            returns = (i for i in body if instructions[i].op.control is Control.RETURN)
            found[target] = Callee(frozenset(returns), frozenset(writes))
        return found

    def _body(self, start: int) -> set[int]:
        """The instructions that may run from `start` on at the same call depth, up to the RETs."""
        seen: set[int] = set()
        pending = [start]
        while pending:
            index = pending.pop()
            if index in seen or index >= len(self.program):
                continue
            seen.add(index)
            control = self.program.instructions[index].op.control
            if control is Control.CALL:
                pending.append(index + 1)
            elif control is not Control.RETURN:
                pending.extend(self.successors(index))
        return seen

    @cached_property
    def block_starts(self) -> frozenset[int]:
        """The instructions that begin a basic block."""
        starts = {self.program.start, *self.program.labels.values(), *self.return_points}
        for index, instruction in enumerate(self.program.instructions):
            if instruction.op.control is not Control.NEXT:
                starts.update(self.successors(index))
                starts.add(index + 1)
        return frozenset(starts)

    @cached_property
    def _live_masks(self) -> list[int]:
        """For each instruction, what may still be read after it, as bits (see `_mask`).

        Blocks are gone through from the last to the first, until nothing changes any more: once, but for loops.
        """
        instructions, count = self.program.instructions, len(self.program)
        reads = [_mask(i.touched.slots_read) for i in instructions]
        kept = [~_mask(i.touched.slots_written) for i in instructions]
        # Code that cannot be reached may begin anywhere; what does not start a block follows its predecessor alone.
        starts = sorted({0, *self.block_starts} - {count}, reverse=True)
        ends = dict(zip(starts, [count, *starts], strict=False))
        live_in = dict.fromkeys([*starts, count], 0)
        live_out = [0] * count
        changed = True
        while changed:
            changed = False
            for start in starts:
                last = ends[start] - 1
                live = 0
                for successor in self.successors(last):
                    live |= live_in[successor]
                for index in range(last, start - 1, -1):
                    live_out[index] = live
                    live = live & kept[index] | reads[index]
                if live != live_in[start]:
                    live_in[start] = live
                    changed = True
        return live_out

    def live_after(self, index: int) -> frozenset[Slot]:
        """The registers and predicates whose values may still be read after an instruction."""
        mask, found = self._live_masks[index], []
        while mask:
            number = (mask & -mask).bit_length() - 1
            found.append(Register(number) if number < REGISTERS else Predicate(number - REGISTERS))
            mask &= mask - 1
        return frozenset(found)

    def any_live_after(self, index: int, slots: Iterable[Slot]) -> bool:
        """Whether one of these may still be read after an instruction."""
        return bool(self._live_masks[index] & _mask(slots))

    def counter_of(self, index: int) -> Register | None:
        """The register an ENDLOOP advances."""
        if index in self.loop_start:
            counter = self.program.instructions[self.loop_start[index]].counter
            assert isinstance(counter, Register)
            return counter
        return None


def slots_read(instruction: Instruction) -> tuple[Slot, ...]:
    return instruction.touched.slots_read


def slots_written(instruction: Instruction) -> tuple[Slot, ...]:
    return instruction.touched.slots_written


def _mask(slots: Iterable[Slot]) -> int:
    """Registers and predicates as bits of an integer."""
    mask = 0
    for slot in slots:
        mask |= 1 << (slot.index if isinstance(slot, Register) else REGISTERS + slot.index)
    return mask


def _match_loops(program: Program) -> tuple[dict[int, int], dict[int, int], list[tuple[int, ...]]]:
    loop_end: dict[int, int] = {}
    loop_start: dict[int, int] = {}
    enclosing: list[tuple[int, ...]] = []
    open_loops: list[int] = []
    for index, instruction in enumerate(program.instructions):
        enclosing.append(tuple(open_loops))
        if instruction.op.control is Control.LOOP:
            open_loops.append(index)
        elif instruction.op.control is Control.ENDLOOP:
            if not open_loops:
                raise located(program, index, "there is no LOOP to end")
            start = open_loops.pop()
            loop_end[start], loop_start[index] = index, start
    if open_loops:
        raise located(program, open_loops[-1], "this loop has no ENDLOOP")
    enclosing.append(())
    return loop_end, loop_start, enclosing


def _known_labels(program: Program) -> str:
    names = sorted(program.labels)
    return f"the labels are {', '.join(names[:8])}{', …' * (len(names) > 8)}" if names else "the program has no labels"
