"""One lane of a program as an LLVM function, as far as it is the same on every machine.

Comes in: a program's `Analysis`. Goes out: the text of a function that returns 0 when the lane has ended. Registers are
stack slots (one per register and type), which LLVM turns into values; labels are blocks; CALL and RET go through a
small stack of return points. A lane that fails records lane and place in the launch record and ends.

What a machine does in its own way is left to a class of its own that derives from `LaneWriter`: what the function takes
(`parameters`), how lanes wait for each other, and array instructions that it has functions for
(`cpu/kernels/lane.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import ClassVar

from eshkol.atlas.isa import Control, Instruction, Values
from eshkol.atlas.operands import Predicate, Register
from eshkol.atlas.types import INDEX_TYPES, Type
from eshkol.atlas.typing_rule import resolve_types
from eshkol.atlas.validate import Analysis
from eshkol.backends.lanes.emitter import llvm_type
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.memory import LaneMemory
from eshkol.backends.lanes.module import OUTER_LOOP, SCALAR_LOOP
from eshkol.backends.lanes.ranges import LANE_ATOM, Ranges
from eshkol.backends.lanes.scalars import lower
from eshkol.backends.lanes.state import TAGS
from eshkol.errors import BackendUnavailable, IsaError

CALL_DEPTH = 256


class LaneWriter(LaneMemory):
    """Writes the function of one lane.

    Where ranges are `known`, accesses that are in range are not checked, and LLVM is told what does not wrap. Branches
    in `never` are known not to be taken. What loads in `given` load comes as arguments. Instructions in `elsewhere` are
    written by someone else. Loads, stores and loops carry what `groups` and `loop_metadata` say, by instruction.
    """

    # Of the function: the launch record, the block's shared memory, and the numbers of the lane in the launch, of its
    # block, and of the lane in the block.
    parameters: ClassVar[str] = "ptr %args, ptr %shared, i64 %gid, i64 %block, i64 %lane"

    def __init__(
        self, analysis: Analysis, layout: Layout, known: Ranges | None = None, never: frozenset[int] = frozenset(),
        given: frozenset[int] = frozenset(), elsewhere: frozenset[int] = frozenset(),
        groups: Mapping[int, str] | None = None, loop_metadata: Mapping[int, str] | None = None, *, shifts_bf16: bool,
    ) -> None:  # fmt: skip
        super().__init__(analysis, layout, shifts_bf16=shifts_bf16)
        self.fast = known is not None
        self.trusted = frozenset(known.trusted) if known is not None else frozenset()
        self.counted = frozenset(known.counted) if known is not None else frozenset()
        self.steps = known.steps if known is not None else {}
        self.exact: Mapping[int, str] = known.exact if known is not None else {}
        self.access = {a.index: a for a in known.accesses if a.index in known.trusted} if known is not None else {}
        self.atoms = {atom: loop for loop, atom in known.counters.items()} if known is not None else {}
        self.groups, self.loop_metadata = groups or {}, loop_metadata or {}
        self.never, self.given, self.elsewhere = never, given, elsewhere
        ends, starts = self.flow.loop_end.values(), self.flow.loop_end.keys()
        # instructions that something else than `go` leads to
        self._entered = {self.program.start, *self.flow.targets.values(), *self.flow.return_points}
        self._entered |= {place + 1 for place in (*starts, *ends)}
        self._came: dict[int, int] = {}  # from how many places `go` leads to an instruction
        self.loops: dict[int, tuple[str, str, str]] = {}  # LOOP → slots of rounds done and wanted, and of a type's tag
        self.has_calls = bool(self.flow.return_points)
        if self.has_calls:
            self.depth = self.e.slot("i32", "depth")
            self.stack = self.e.slot(f"[{CALL_DEPTH} x i32]", "stack")

    # --- the whole ---------------------------------------------------------------------------------

    def write(self, name: str, *, seldom: bool = False) -> str:
        """The function as text; one that is called seldom is worth less of LLVM's time."""
        for index, instruction in enumerate(self.program.instructions):
            if not self.analysis.reachable(index) or index in self.elsewhere:
                continue
            self.begin(index)
            self._instruction(instruction)
        self.begin(len(self.program))
        self.e.do("ret i32 0")
        start = [f"  store i1 false, ptr {flag}" for flag in self.written.values()]
        start += [f"  store i32 0, ptr {self.depth}"] if self.has_calls else []
        attributes = "noinline cold nounwind" if seldom else "alwaysinline nounwind"
        more = [f"{llvm_type(self.program.instructions[n].ty)} %given{n}" for n in sorted(self.given)]
        head = f"internal i32 @{name}({', '.join([self.parameters, *more])}) {attributes}"
        return self.e.defined(head, begin=[*start, f"  {self.begins()}"])

    def begins(self) -> str:
        """The branch to where a lane begins."""
        return f"br label %i{self.program.start}"

    def go(self, index: int) -> None:
        self.e.br(f"i{index}")
        self._came[index] = self._came.get(index, 0) + 1

    def begin(self, index: int) -> None:
        """What is written from now on is an instruction, or the end: where only the one before goes on, behind it."""
        self.index = index
        alone = index not in self._entered and self._came.get(index) == 1
        (self.e.place_behind if alone else self.e.place)(f"i{index}")

    # --- instructions ------------------------------------------------------------------------------

    def _instruction(self, i: Instruction) -> None:
        """The instruction; once per type that its registers may hold, where that depends on the path."""
        if self.index in self.analysis.certain_types:  # which the validator has found legal
            self.one_typing(i)
            return
        mixed = [r for r in dict.fromkeys(i.reads()) if len(self.types_of(self.index, r)) > 1]
        for register in mixed:
            self.check_written(register)
        for types in itertools.product(*(self.types_of(self.index, r) for r in mixed)):
            self.assumed = dict(zip(mixed, types, strict=True))
            others = self._unless_as_assumed()
            try:
                resolve_types(i, [self.type_of(r) for r in i.reads()])
            except IsaError as error:
                self.fail_if("true", error.message, error.hint, IsaError)
                self.e.do("unreachable")
            else:
                self.one_typing(i)
            if others is not None:
                self.e.place(others)
        if mixed:
            self.e.do("unreachable")
        self.assumed = {}

    def _unless_as_assumed(self) -> str | None:
        """Go on only where registers hold the types that are assumed; the block for all other cases."""
        if not self.assumed:
            return None
        here, others = self.e.new_block("typed"), self.e.new_block("others")
        holds = "true"
        for register, ty in self.assumed.items():
            tag = self.e.load("i8", self.tags[register])
            holds = self.e.op(f"and i1 {holds}, {self.e.op(f'icmp eq i8 {tag}, {TAGS[ty]}')}")
        self.e.br_if(holds, here, others)
        self.e.place(here)
        return others

    def one_typing(self, i: Instruction) -> None:
        if isinstance(i.op.meaning, Values):
            self._compute(i)
            self.go(self.index + 1)
            return
        handler = getattr(self, f"_do_{i.op.name}", None)
        if handler is None:
            raise BackendUnavailable(f"native code has no {i.op.name} yet", span=i.span)
        handler(i)
        if i.op.control is Control.NEXT:
            self.go(self.index + 1)

    def lowered(self, i: Instruction, ty: Type, values: list[str], exact: str) -> str:
        """The LLVM value of a register instruction, whose value operands are of a type."""
        return lower(self.e, i, ty, values, self.fail_if, exact)

    def _compute(self, i: Instruction) -> None:
        values: list[str] = []
        certain = self.analysis.certain_types.get(self.index)
        types = [self.type_of(r) for r in i.reads()] if certain is None else certain
        following = iter(types)
        for k in i.op.inputs:
            operand = i.operands[k]
            if isinstance(operand, Predicate):
                values.append(self.read_predicate(operand))
                continue
            ty = next(following)
            if certain is None or operand.is_special:
                values.append(self.read(operand))
            else:
                values.append(self.e.load(llvm_type(ty), self.slot(operand, ty)))
        outputs = resolve_types(i, types)
        exact = self.exact.get(self.index, "")
        result = self.lowered(i, types[0] if types else outputs[0], values, exact)
        for predicate in i.touched.slots_written[len(outputs) :]:
            assert isinstance(predicate, Predicate)
            self.e.store("i1", result, self.predicate_slot(predicate))
            self.mark_written(predicate)
        for register, ty in zip(i.writes(), outputs, strict=True):
            self.write_register(register, ty, result)

    def _do_SREG(self, i: Instruction) -> None:
        name = i.which.name
        self.write_register(i.dst, Type.U32, self.special(name[:-1], "XYZ".index(name[-1])))

    # --- control flow ------------------------------------------------------------------------------

    def _do_BRA(self, i: Instruction) -> None:
        target = self.flow.targets[self.index]
        if self.index in self.never:
            self.go(self.index + 1)
        elif i.pred is None:
            self.go(target)
        else:
            self.e.br_if(self.read_predicate(i.pred), f"i{target}", f"i{self.index + 1}")
            self._came[self.index + 1] = 1

    def _do_EXIT(self, i: Instruction) -> None:
        self.e.do("ret i32 0")

    def _do_CALL(self, i: Instruction) -> None:
        depth = self.e.load("i32", self.depth)
        too_deep = self.e.op(f"icmp uge i32 {depth}, {CALL_DEPTH}")
        self.fail_if(too_deep, f"calls are nested more than {CALL_DEPTH} deep", kind=IsaError)
        place = self.e.op(f"getelementptr i32, ptr {self.stack}, i32 {depth}")
        self.e.store("i32", self.index + 1, place)
        self.e.store("i32", self.e.op(f"add i32 {depth}, 1"), self.depth)
        self.go(self.flow.targets[self.index])

    def _do_RET(self, i: Instruction) -> None:
        depth = self.e.load("i32", self.depth)
        outside = self.e.op(f"icmp eq i32 {depth}, 0")
        self.fail_if(outside, "there is no CALL to return from", "use EXIT to end a lane", IsaError)
        less = self.e.op(f"sub i32 {depth}, 1")
        self.e.store("i32", less, self.depth)
        place = self.e.load("i32", self.e.op(f"getelementptr i32, ptr {self.stack}, i32 {less}"))
        points = [p for p in self.flow.return_points if p == len(self.program) or self.analysis.reachable(p)]
        cases = " ".join(f"i32 {p}, label %i{p}" for p in points)
        impossible = self.e.new_block("nowhere")
        self.e.do(f"switch i32 {place}, label %{impossible} [{cases}]")
        self.e.place(impossible)
        self.e.do("unreachable")

    def loop_slots(self, start: int) -> list[str]:
        """Where rounds done and wanted and the counter's type are kept: one of each per call depth, if any."""
        if start not in self.loops:
            kind = f"[{CALL_DEPTH + 1} x i64]" if self.has_calls else "i64"
            slot = self.e.slot if self.has_calls else self.e.cell
            done, wanted, tag = (slot(kind, hint) for hint in ("done", "wanted", "counts_in"))
            self.loops[start] = done, wanted, tag
        if not self.has_calls:
            return list(self.loops[start])
        depth = self.e.load("i32", self.depth)
        return [self.e.op(f"getelementptr i64, ptr {slot}, i32 {depth}") for slot in self.loops[start]]

    def rounds_done(self, atom: int) -> str | None:
        """The lane's number or a loop's counter, by its atom, in 64 bits; None for what is neither."""
        if atom == LANE_ATOM:
            return "%gid"
        return self.e.load("i64", self.loops[self.atoms[atom]][0]) if atom in self.atoms else None

    def _do_LOOP(self, i: Instruction) -> None:
        ty = Type.U32
        if isinstance(i.iterations, Register):
            ty, count = self.type_of(i.iterations), self.read(i.iterations)
            if ty.is_signed and self.index not in self.counted:
                negative = self.e.op(f"icmp slt {llvm_type(ty)} {count}, 0")
                self.fail_if(negative, "a loop cannot run a negative number of times")
            if ty.bits < 64:
                count = self.e.op(f"zext {llvm_type(ty)} {count} to i64")
        else:
            count = str(i.iterations)
        done, wanted, tag = self.loop_slots(self.index)
        self.e.store("i64", "0", done)
        self.e.store("i64", count, wanted)
        self.e.store("i64", TAGS[ty], tag)
        self.write_register(i.counter, ty, "0")
        enters = self.e.op(f"icmp ne i64 {count}, 0")
        self.e.br_if(enters, f"i{self.index + 1}", f"i{self.flow.loop_end[self.index] + 1}")

    def _do_ENDLOOP(self, i: Instruction) -> None:
        start = self.flow.loop_start[self.index]
        loop = self.program.instructions[start]
        done, wanted, tag = self.loop_slots(start)
        rounds = self.e.op(f"add nuw nsw i64 {self.e.load('i64', done)}, 1")
        self.e.store("i64", rounds, done)
        more = self.e.op(f"icmp ult i64 {rounds}, {self.e.load('i64', wanted)}")
        again = self.e.new_block("again")
        self.e.br_if(more, again, f"i{self.index + 1}")
        self.e.place(again)
        types = self.types_of(start, loop.iterations) if isinstance(loop.iterations, Register) else [Type.U32]
        *others, last = [ty for ty in types if ty in INDEX_TYPES]
        for ty in others:
            is_this = self.e.op(f"icmp eq i64 {self.e.load('i64', tag)}, {TAGS[ty]}")
            here, further = self.e.new_block("typed"), self.e.new_block("others")
            self.e.br_if(is_this, here, further)
            self.e.place(here)
            self._next_round(loop, start, ty, rounds)
            self.e.place(further)
        self._next_round(loop, start, last, rounds)

    def _next_round(self, loop: Instruction, start: int, ty: Type, rounds: str) -> None:
        value = rounds if ty.bits == 64 else self.e.op(f"trunc nuw i64 {rounds} to {llvm_type(ty)}")
        self.write_register(loop.counter, ty, value)
        metadata = self.loop_metadata.get(start, "") if self.fast else SCALAR_LOOP
        if not metadata and any(start < inner < self.flow.loop_end[start] for inner in self.flow.loop_end):
            metadata = OUTER_LOOP
        self.e.br(f"i{start + 1}", metadata)

    # --- memory order ------------------------------------------------------------------------------

    def _do_MemFence(self, i: Instruction) -> None:
        self.e.do("fence seq_cst")
