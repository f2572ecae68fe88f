"""One lane of a program as an LLVM function.

Registers are stack slots (one per register and type), which LLVM turns into values; labels are blocks; CALL and
RET go through a small stack of return points. A lane that comes to a barrier saves what it still needs in its
context and returns the barrier's number; called again with that number it goes on behind it. A lane that fails
records lane and place in the launch record and ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from eshkol.atlas.expand import is_collective
from eshkol.atlas.isa import Control, Instruction, Values, resolve_types
from eshkol.atlas.operands import Predicate, Register
from eshkol.atlas.types import INDEX_TYPES, Type
from eshkol.atlas.validate import UNWRITTEN, Analysis
from eshkol.backends.llvm.emitter import llvm_type
from eshkol.backends.llvm.lane_memory import LaneMemory
from eshkol.backends.llvm.lane_state import TAGS
from eshkol.backends.llvm.layout import Layout
from eshkol.backends.llvm.loops import Metadata
from eshkol.backends.llvm.macro import Macro
from eshkol.backends.llvm.macro_call import write_call
from eshkol.backends.llvm.ranges import LANE_ATOM, Ranges
from eshkol.backends.llvm.rare import Rare
from eshkol.backends.llvm.rare import call as call_rare
from eshkol.backends.llvm.scalars import lower
from eshkol.errors import BackendUnavailable, IsaError

CALL_DEPTH = 256
OUTER_LOOP = ", !llvm.loop !7"  # around other loops: unrolled, it would be many copies of them
COLD_LOOP = ", !llvm.loop !4"  # of checked code: neither vectorized nor unrolled, which takes LLVM long
SIGNATURE = "ptr %args, ptr %context, ptr %shared, i64 %gid, i64 %block, i64 %lane, i32 %phase"


class LaneWriter(LaneMemory):
    """Writes the function of one lane.

    Where ranges are `known`, accesses that are in range are not checked, and LLVM is told what does not wrap. Branches
    in `never` are known not to be taken. What loads in `given` load comes as arguments.
    Instructions in `macros` call native functions; if all lanes carry them out together, they are barriers where the
    host does. Stretches in `rare`, by the branches to them, are calls of functions.
    """

    def __init__(
        self, analysis: Analysis, layout: Layout, known: Ranges | None = None, never: frozenset[int] = frozenset(),
        macros: Mapping[int, Macro] | None = None, given: frozenset[int] = frozenset(),
        metadata: Metadata | None = None, rare: Mapping[int, Rare] | None = None, *, shifts_bf16: bool,
    ) -> None:  # fmt: skip
        super().__init__(analysis, layout, shifts_bf16=shifts_bf16)
        self.fast = known is not None
        self.trusted = frozenset(known.trusted) if known is not None else frozenset()
        self.counted = frozenset(known.counted) if known is not None else frozenset()
        self.exact: Mapping[int, str] = known.exact if known is not None else {}
        self.access = {a.index: a for a in known.accesses if a.index in known.trusted} if known is not None else {}
        self.atoms = {atom: loop for loop, atom in known.counters.items()} if known is not None else {}
        self.groups: Mapping[int, str] = metadata.accesses if metadata is not None else {}
        self.loop_metadata: Mapping[int, str] = metadata.loops if metadata is not None else {}
        self.never, self.macros, self.given, self.rare = never, macros or {}, given, rare or {}
        self.elsewhere = frozenset(index for one in self.rare.values() for index in one.skipped)
        self.loops: dict[int, tuple[str, str, str]] = {}  # LOOP → slots of rounds done and wanted, and of a type's tag
        self.places: dict[str, tuple[int, str]] = {}  # slot → offset in the context, LLVM type
        self.has_calls = bool(self.flow.return_points)
        self.resumes: list[tuple[int, str]] = []
        if self.has_calls:
            self.depth = self.e.alloca("i32", "depth")
            self.stack = self.e.alloca(f"[{CALL_DEPTH} x i32]", "stack")

    # --- the whole ---------------------------------------------------------------------------------

    def write(self, name: str, *, seldom: bool = False) -> str:
        """The function as text; one that is called seldom is worth less of LLVM's time."""
        body_start = len(self.e.lines)
        for index, instruction in enumerate(self.program.instructions):
            if not self.analysis.reachable(index) or index in self.elsewhere:
                continue
            self.e.place(f"i{index}")
            self.index = index
            self._instruction(instruction)
        end = len(self.program)
        self.e.place(f"i{end}")
        self.e.do("ret i32 0")
        start = [f"  store i1 false, ptr {flag}" for flag in self.written.values()]
        start += [f"  store i32 0, ptr {self.depth}"] if self.has_calls else []
        if self.resumes:
            cases = " ".join(f"i32 {number}, label %{block}" for number, block in self.resumes)
            start.append(f"  switch i32 %phase, label %i{self.program.start} [{cases}]")
        else:
            start.append(f"  br label %i{self.program.start}")
        lines = [*self.e.entry, *start, *self.e.lines[body_start:]]
        attributes = "noinline cold nounwind" if seldom else "alwaysinline nounwind"
        more = [f"{llvm_type(self.program.instructions[n].ty)} %given{n}" for n in sorted(self.given)]
        signature = ", ".join([SIGNATURE, *more])
        return "\n".join([f"define internal i32 @{name}({signature}) {attributes} {{", "entry:", *lines, "}"])

    def _go(self, index: int) -> None:
        self.e.do(f"br label %i{index}")

    # --- instructions ------------------------------------------------------------------------------

    def _instruction(self, i: Instruction) -> None:
        """The instruction; once per type that its registers may hold, where that depends on the path."""
        if self.index in self.analysis.certain_types:  # which the validator has found legal
            self._one_typing(i)
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
                self._one_typing(i)
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
            tag = self.e.op(f"load i8, ptr {self.tags[register]}")
            holds = self.e.op(f"and i1 {holds}, {self.e.op(f'icmp eq i8 {tag}, {TAGS[ty]}')}")
        self.e.do(f"br i1 {holds}, label %{here}, label %{others}")
        self.e.place(here)
        return others

    def _one_typing(self, i: Instruction) -> None:
        if isinstance(i.op.meaning, Values):
            self._compute(i)
            self._go(self.index + 1)
            return
        if self.index in self.macros:
            if is_collective(i):
                self._do_BarSync(i)
            else:
                write_call(self, i, self.macros[self.index])
                self._go(self.index + 1)
            return
        handler = getattr(self, f"_do_{i.op.name}", None)
        if handler is None:
            raise BackendUnavailable(f"native code has no {i.op.name} yet", span=i.span)
        handler(i)
        if i.op.control is Control.NEXT:
            self._go(self.index + 1)

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
                values.append(self.e.op(f"load {llvm_type(ty)}, ptr {self.slot(operand, ty)}"))
        outputs = resolve_types(i, types)
        exact = self.exact.get(self.index, "")
        result = lower(self.e, i, types[0] if types else outputs[0], values, self.fail_if, exact)
        for predicate in i.touched.slots_written[len(outputs) :]:
            assert isinstance(predicate, Predicate)
            self.e.do(f"store i1 {result}, ptr {self.predicate_slot(predicate)}")
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
            self._go(self.index + 1)
        elif self.index in self.rare:
            self._call_rare(self.rare[self.index], self.read_predicate(i.pred))
        elif i.pred is None:
            self._go(target)
        else:
            self.e.do(f"br i1 {self.read_predicate(i.pred)}, label %i{target}, label %i{self.index + 1}")

    def _call_rare(self, rare: Rare, wanted: str) -> None:
        values = [self.read(register) for register in (rare.result, *(r for r, _ in rare.reads))]
        self.write_register(rare.result, rare.ty, call_rare(self.e, rare, wanted, values))
        self._go(rare.end)

    def _do_EXIT(self, i: Instruction) -> None:
        self.e.do("ret i32 0")

    def _do_CALL(self, i: Instruction) -> None:
        depth = self.e.op(f"load i32, ptr {self.depth}")
        too_deep = self.e.op(f"icmp uge i32 {depth}, {CALL_DEPTH}")
        self.fail_if(too_deep, f"calls are nested more than {CALL_DEPTH} deep", kind=IsaError)
        place = self.e.op(f"getelementptr i32, ptr {self.stack}, i32 {depth}")
        self.e.do(f"store i32 {self.index + 1}, ptr {place}")
        self.e.do(f"store i32 {self.e.op(f'add i32 {depth}, 1')}, ptr {self.depth}")
        self._go(self.flow.targets[self.index])

    def _do_RET(self, i: Instruction) -> None:
        depth = self.e.op(f"load i32, ptr {self.depth}")
        outside = self.e.op(f"icmp eq i32 {depth}, 0")
        self.fail_if(outside, "there is no CALL to return from", "use EXIT to end a lane", IsaError)
        less = self.e.op(f"sub i32 {depth}, 1")
        self.e.do(f"store i32 {less}, ptr {self.depth}")
        place = self.e.op(f"load i32, ptr {self.e.op(f'getelementptr i32, ptr {self.stack}, i32 {less}')}")
        points = [p for p in self.flow.return_points if p == len(self.program) or self.analysis.reachable(p)]
        cases = " ".join(f"i32 {p}, label %i{p}" for p in points)
        impossible = self.e.new_block("nowhere")
        self.e.do(f"switch i32 {place}, label %{impossible} [{cases}]")
        self.e.place(impossible)
        self.e.do("unreachable")

    def _loop_slots(self, start: int) -> list[str]:
        """Where rounds done and wanted and the counter's type are kept: one of each per call depth, if any."""
        if start not in self.loops:
            kind = f"[{CALL_DEPTH + 1} x i64]" if self.has_calls else "i64"
            done, wanted, tag = (self.e.alloca(kind, hint) for hint in ("done", "wanted", "counts_in"))
            self.loops[start] = done, wanted, tag
        if not self.has_calls:
            return list(self.loops[start])
        depth = self.e.op(f"load i32, ptr {self.depth}")
        return [self.e.op(f"getelementptr i64, ptr {slot}, i32 {depth}") for slot in self.loops[start]]

    def rounds_done(self, atom: int) -> str | None:
        """The lane's number or a loop's counter, by its atom, in 64 bits; None for what is neither."""
        if atom == LANE_ATOM:
            return "%gid"
        return self.e.op(f"load i64, ptr {self.loops[self.atoms[atom]][0]}") if atom in self.atoms else None

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
        done, wanted, tag = self._loop_slots(self.index)
        self.e.do(f"store i64 0, ptr {done}")
        self.e.do(f"store i64 {count}, ptr {wanted}")
        self.e.do(f"store i64 {TAGS[ty]}, ptr {tag}")
        self.write_register(i.counter, ty, "0")
        enters = self.e.op(f"icmp ne i64 {count}, 0")
        self.e.do(f"br i1 {enters}, label %i{self.index + 1}, label %i{self.flow.loop_end[self.index] + 1}")

    def _do_ENDLOOP(self, i: Instruction) -> None:
        start = self.flow.loop_start[self.index]
        loop = self.program.instructions[start]
        done, wanted, tag = self._loop_slots(start)
        rounds = self.e.op(f"add nuw nsw i64 {self.e.op(f'load i64, ptr {done}')}, 1")
        self.e.do(f"store i64 {rounds}, ptr {done}")
        more = self.e.op(f"icmp ult i64 {rounds}, {self.e.op(f'load i64, ptr {wanted}')}")
        again = self.e.new_block("again")
        self.e.do(f"br i1 {more}, label %{again}, label %i{self.index + 1}")
        self.e.place(again)
        types = self.types_of(start, loop.iterations) if isinstance(loop.iterations, Register) else [Type.U32]
        *others, last = [ty for ty in types if ty in INDEX_TYPES]
        for ty in others:
            is_this = self.e.op(f"icmp eq i64 {self.e.op(f'load i64, ptr {tag}')}, {TAGS[ty]}")
            here, further = self.e.new_block("typed"), self.e.new_block("others")
            self.e.do(f"br i1 {is_this}, label %{here}, label %{further}")
            self.e.place(here)
            self._next_round(loop, start, ty, rounds)
            self.e.place(further)
        self._next_round(loop, start, last, rounds)

    def _next_round(self, loop: Instruction, start: int, ty: Type, rounds: str) -> None:
        value = rounds if ty.bits == 64 else self.e.op(f"trunc nuw i64 {rounds} to {llvm_type(ty)}")
        self.write_register(loop.counter, ty, value)
        metadata = self.loop_metadata.get(start, "") if self.fast else COLD_LOOP
        if not metadata and any(start < inner < self.flow.loop_end[start] for inner in self.flow.loop_end):
            metadata = OUTER_LOOP
        self.e.do(f"br label %i{start + 1}{metadata}")

    # --- barriers ----------------------------------------------------------------------------------

    def _do_BarSync(self, i: Instruction) -> None:
        """Save what is needed later, return; resume behind the barrier when called again."""
        number = len(self.layout.barriers) + 1
        if self.index in self.layout.barriers:  # a second version of the lane shares the numbers
            number = self.layout.barriers.index(self.index) + 1
        else:
            self.layout.barriers.append(self.index)
        kept = self._needed_after(self.index)
        for slot, llvm, size in kept:
            self._copy(slot, llvm, size, into_context=True)
        self.e.do(f"ret i32 {number}")
        resume = self.e.new_block("resume")
        self.resumes.append((number, resume))
        self.e.place(resume)
        for slot, llvm, size in kept:
            self._copy(slot, llvm, size, into_context=False)
        self._go(self.index + 1)

    _do_GridSync = _do_PoolAlloc = _do_PoolFree = _do_BarSync

    def _needed_after(self, index: int) -> list[tuple[str, str, int]]:
        """The slots that hold anything a lane may read after a barrier: (slot, LLVM type, bytes)."""
        kept: list[tuple[str, str, int]] = []
        for slot in sorted(self.flow.live_after(index), key=str):
            if isinstance(slot, Predicate):
                kept.append((self.predicate_slot(slot), "i1", 1))
            elif not slot.is_special:
                for ty in sorted(self.analysis.possible(index, slot) - {UNWRITTEN}, key=str):
                    assert ty is not None
                    kept.append((self.slot(slot, ty), llvm_type(ty), ty.size_bytes))
                if slot in self.tags:
                    kept.append((self.tags[slot], "i8", 1))
            if slot in self.written:
                kept.append((self.written[slot], "i1", 1))
        entries = CALL_DEPTH + 1 if self.has_calls else 1
        for start in self.flow.loop_end:
            if self.analysis.reachable(start):
                self._loop_slots(start)
                kept += [(s, f"[{entries} x i64]" if self.has_calls else "i64", 8 * entries) for s in self.loops[start]]
        if self.has_calls:
            kept += [(self.depth, "i32", 4), (self.stack, f"[{CALL_DEPTH} x i32]", 4 * CALL_DEPTH)]
        return kept

    def _copy(self, slot: str, llvm: str, size: int, *, into_context: bool) -> None:
        if slot not in self.places:
            self.places[slot] = self.layout.keep(size), llvm
        place = self.e.op(f"getelementptr i8, ptr %context, i64 {self.places[slot][0]}")
        source, target = (slot, place) if into_context else (place, slot)
        if llvm.startswith("["):  # as a value it would be taken apart, element by element
            pieces = (("ptr", target), ("ptr", source), ("i64", str(size)), ("i1", "false"))
            self.e.call("void", "llvm.memcpy.p0.p0.i64", *pieces)
        else:
            self.e.do(f"store {llvm} {self.e.op(f'load {llvm}, ptr {source}')}, ptr {target}")

    def _do_MemFence(self, i: Instruction) -> None:
        self.e.do("fence seq_cst")
