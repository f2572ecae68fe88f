"""One lane of a program as an LLVM function.

Registers are stack slots (one per register and type), which LLVM turns into values; labels are blocks; CALL and
RET go through a small stack of return points. A lane that comes to a barrier saves what it still needs in its
context and returns the barrier's number; called again with that number it goes on behind it. A lane that fails
records lane and place in the launch record and ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from eshkol.atlas.classes import CLASS_BYTES, CLASS_MEMORY_BYTES, CLASSES, MAX_NEIGHBOURS, neighbours
from eshkol.atlas.expand import is_collective
from eshkol.atlas.flow import Slot
from eshkol.atlas.isa import Control, Instruction, Kind, Values, resolve_types
from eshkol.atlas.operands import (
    BLOCK,
    BLOCK_SIZE,
    GLOBAL,
    LANE,
    Address,
    BufferOffset,
    ClassOffset,
    Indexed,
    PoolOffset,
    Predicate,
    Register,
    RegisterIndirect,
    Shared,
    StaticAddress,
    address_register,
    far_index,
)
from eshkol.atlas.program import ParamKind
from eshkol.atlas.types import Type
from eshkol.atlas.validate import UNWRITTEN, Analysis
from eshkol.backends.llvm import layout as words
from eshkol.backends.llvm.emitter import Emitter, llvm_type
from eshkol.backends.llvm.layout import Layout
from eshkol.backends.llvm.macro import Macro
from eshkol.backends.llvm.macro_call import write_call
from eshkol.backends.llvm.scalars import lower
from eshkol.errors import BackendUnavailable

CALL_DEPTH = 256
SIGNATURE = "ptr %args, ptr %context, ptr %shared, i64 %gid, i64 %block, i64 %lane, i32 %phase"
_BEYOND = 1 << 62  # more bytes than any memory has; keeps constants inside 64 bits


class LaneWriter:
    """Writes the function of one lane.

    Accesses in `trusted` are known to be in range and not checked; branches in `never` are known not to be taken.
    Instructions in `macros` call native functions; if all lanes carry them out together, they are barriers where the
    host does.
    """

    def __init__(
        self, analysis: Analysis, layout: Layout, trusted: frozenset[int], never: frozenset[int] = frozenset(),
        macros: Mapping[int, Macro] | None = None,
    ) -> None:  # fmt: skip
        self.macros = macros or {}
        self.analysis, self.flow, self.program = analysis, analysis.flow, analysis.flow.program
        self.layout, self.trusted, self.never = layout, trusted, never
        self.e = Emitter()
        self.slots: dict[tuple[Register, Type], str] = {}
        self.predicates: dict[Predicate, str] = {}
        self.written: dict[Slot, str] = {}  # flags of slots that may be read before they are written
        self.loops: dict[int, tuple[str, str]] = {}  # LOOP → slots of rounds done and wanted
        self.places: dict[str, tuple[int, str]] = {}  # slot → offset in the context, LLVM type
        self.has_calls = bool(self.flow.return_points)
        self.resumes: list[tuple[int, str]] = []
        self.index = 0
        if self.has_calls:
            self.depth = self.e.alloca("i32", "depth")
            self.stack = self.e.alloca(f"[{CALL_DEPTH} x i32]", "stack")

    # --- the whole ---------------------------------------------------------------------------------

    def write(self, name: str) -> str:
        """The function as text."""
        for slot in self._uncertain():
            self.written[slot] = self.e.alloca("i1", "w")
        body_start = len(self.e.lines)
        for index, instruction in enumerate(self.program.instructions):
            if not self.analysis.reachable(index):
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
        attributes = "alwaysinline nounwind"
        return "\n".join([f"define internal i32 @{name}({SIGNATURE}) {attributes} {{", "entry:", *lines, "}"])

    def _uncertain(self) -> set[Slot]:
        """Registers and predicates that some instruction may read before they are written."""
        found: set[Slot] = set()
        for index, instruction in enumerate(self.program.instructions):
            if self.analysis.reachable(index):
                for slot in (*instruction.reads(), *instruction.of_kind(Kind.PUSE)):
                    if UNWRITTEN in self.analysis.possible(index, slot):
                        found.add(slot)
        return found

    def _go(self, index: int) -> None:
        self.e.do(f"br label %i{index}")

    def fail_if(self, condition: str, message: str, hint: str | None = None) -> None:
        """End the lane with a fault where the condition holds."""
        site = self.layout.site(self.index, message, hint)
        bad, good = self.e.new_block("bad"), self.e.new_block("ok")
        self.e.do(f"br i1 {condition}, label %{bad}, label %{good}, !prof !1")
        self.e.place(bad)
        self.e.do(f"call void @fault(ptr %args, i64 %gid, i64 {site})")
        self.e.do("ret i32 0")
        self.e.place(good)

    # --- registers ---------------------------------------------------------------------------------

    def type_of(self, register: Register) -> Type:
        """The one type a register can hold here."""
        possible = self.analysis.possible(self.index, register) - {UNWRITTEN}
        if len(possible) != 1:
            names = " or ".join(sorted(t.name for t in possible if t is not None))
            raise BackendUnavailable(
                f"native code needs to know the type of {register}, which may be {names} here",
                span=self.program.instructions[self.index].span,
                hint="use another register on one of the paths",
            )
        ty = next(iter(possible))
        assert ty is not None
        return ty

    def slot(self, register: Register, ty: Type) -> str:
        if (register, ty) not in self.slots:
            self.slots[register, ty] = self.e.alloca(llvm_type(ty), f"r{register.index}_")
        return self.slots[register, ty]

    def read(self, register: Register) -> str:
        special = {GLOBAL: "%gid", LANE: "lane", BLOCK: "block", BLOCK_SIZE: "size"}.get(register.index)
        if special == "%gid":
            return "%gid"
        if special is not None:
            return self._special(special.capitalize() if special != "size" else "BlockSize", 0)
        ty = self.type_of(register)
        self._check_written(register)
        return self.e.op(f"load {llvm_type(ty)}, ptr {self.slot(register, ty)}")

    def write_register(self, register: Register, ty: Type, value: str) -> None:
        self.e.do(f"store {llvm_type(ty)} {value}, ptr {self.slot(register, ty)}")
        self._mark_written(register)

    def predicate_slot(self, predicate: Predicate) -> str:
        if predicate not in self.predicates:
            self.predicates[predicate] = self.e.alloca("i1", f"p{predicate.index}_")
        return self.predicates[predicate]

    def read_predicate(self, predicate: Predicate) -> str:
        self._check_written(predicate)
        return self.e.op(f"load i1, ptr {self.predicate_slot(predicate)}")

    def _mark_written(self, slot: Slot) -> None:
        if slot in self.written:
            self.e.do(f"store i1 true, ptr {self.written[slot]}")

    def _check_written(self, slot: Slot) -> None:
        if UNWRITTEN in self.analysis.possible(self.index, slot):
            flag = self.e.op(f"load i1, ptr {self.written[slot]}")
            self.fail_if(self.e.op(f"xor i1 {flag}, true"), f"{slot} is read before it is written")

    # --- launch record -----------------------------------------------------------------------------

    def word(self, number: int, llvm: str = "i64") -> str:
        """A word of the launch record that no kernel writes."""
        place = self.e.op(f"getelementptr i64, ptr %args, i64 {number}")
        return self.e.op(f"load {llvm}, ptr {place}, !invariant.load !0")

    def _special(self, which: str, axis: int) -> str:
        """An index or size of the launch as i32."""
        if which in ("BlockSize", "GridSize"):
            value = self.word((words.BLOCK if which == "BlockSize" else words.GRID) + axis)
        else:
            linear, first = ("%lane", words.BLOCK) if which == "Lane" else ("%block", words.GRID)
            value = linear
            for step in range(axis):
                value = self.e.op(f"udiv i64 {value}, {self.word(first + step)}")
            if axis < 2:
                value = self.e.op(f"urem i64 {value}, {self.word(first + axis)}")
        return self.e.op(f"trunc i64 {value} to i32")

    # --- instructions ------------------------------------------------------------------------------

    def _instruction(self, i: Instruction) -> None:
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
        types: list[Type] = []
        for f, operand in zip(i.op.fields, i.operands, strict=True):
            if f.kind is Kind.USE:
                types.append(self.type_of(operand))
                values.append(self.read(operand))
            elif f.kind is Kind.PUSE:
                values.append(self.read_predicate(operand))
        outputs = resolve_types(i, types)
        result = lower(self.e, i, types[0] if types else outputs[0], values, self.fail_if)
        for predicate in i.of_kind(Kind.PDEF):
            self.e.do(f"store i1 {result}, ptr {self.predicate_slot(predicate)}")
            self._mark_written(predicate)
        for register, ty in zip(i.writes(), outputs, strict=True):
            self.write_register(register, ty, result)

    def _do_SREG(self, i: Instruction) -> None:
        name = i.which.name
        self.write_register(i.dst, Type.U32, self._special(name[:-1], "XYZ".index(name[-1])))

    # --- memory ------------------------------------------------------------------------------------

    def _do_LDG(self, i: Instruction) -> None:
        param = self.program.param.get(getattr(i.src, "handle", ""))
        if isinstance(i.src, BufferOffset) and param is not None and param.kind is ParamKind.SCALAR:
            pointer = self.word(self.layout.word(param.name), "ptr")
            value = self.e.op(f"load {llvm_type(i.ty)}, ptr {pointer}, !invariant.load !0")
            self.write_register(i.dst, i.ty, value)
            return
        self._load(i.dst, i.src, i.ty)

    def _load(self, dst: Register, address: Address, ty: Type) -> None:
        pointer, alignment = self.pointer(address, ty)
        self.write_register(dst, ty, self.e.op(f"load {llvm_type(ty)}, ptr {pointer}, align {alignment}"))

    def _store(self, address: Address, src: Register, ty: Type) -> None:
        pointer, alignment = self.pointer(address, ty)
        self.e.do(f"store {llvm_type(ty)} {self.read(src)}, ptr {pointer}, align {alignment}")

    def _do_STG(self, i: Instruction) -> None:
        self._store(i.dst, i.src, i.ty)

    def _do_LDS(self, i: Instruction) -> None:
        self._load(i.dst, i.src, i.ty)

    _do_STS = _do_STG

    def _do_PoolLoad(self, i: Instruction) -> None:
        self._load(i.dst, PoolOffset(i.pool, i.offset), i.ty)

    def _do_PoolStore(self, i: Instruction) -> None:
        self._store(PoolOffset(i.pool, i.offset), i.src, i.ty)

    def pointer(self, address: Address, ty: Type, start: int = 0, size: int | None = None) -> tuple[str, int]:
        """The checked pointer an address means, and the alignment that can be relied on.

        Checked are `size` bytes from `start` on; without a size, one element.
        """
        size = ty.size_bytes if size is None else size
        if not size:  # no elements lie anywhere, whatever the address says; its register must be written all the same
            if (register := address_register(address)) is not None:
                self.read(register)
            return "null", 1
        if isinstance(address, RegisterIndirect):
            return self._linear(address, start, size), 1
        base = address.base if isinstance(address, Indexed) else address
        assert isinstance(base, StaticAddress)
        region, limit, name = self._region(base)
        aligned = ty.alignment if isinstance(base, BufferOffset | Shared) else 1
        steady = base.offset % aligned == 0
        if isinstance(address, Indexed):
            steady = steady and address.scale % aligned == 0
            offset = self._indexed(address)
        else:
            offset = str(base.offset)
        if self.index not in self.trusted:
            self._check_range(offset, start, size, limit, name)
            if not steady:
                rest = self.e.op(f"and i64 {offset}, {aligned - 1}")
                self.fail_if(self.e.op(f"icmp ne i64 {rest}, 0"), f"the address in {name} is not aligned to {aligned}")
        return self.e.op(f"getelementptr i8, ptr {region}, i64 {offset}"), aligned

    def _indexed(self, address: Indexed) -> str:
        index = self.read(address.index)
        ty = Type.U64 if address.index.index == GLOBAL else self.type_of(address.index)
        if ty.bits < 64:
            index = self.e.op(f"{'sext' if ty.is_signed else 'zext'} i{ty.bits} {index} to i64")
        elif address.index.index != GLOBAL:  # lane numbers are never that far; other indices could overflow below
            far = far_index(address.scale)
            shifted, width = (self.e.op(f"add i64 {index}, {far}"), 2 * far) if ty.is_signed else (index, far)
            self.fail_if(self.e.op(f"icmp ugt i64 {shifted}, {width}"), f"address out of range: {address}")
        steps = self.e.op(f"mul nsw i64 {index}, {address.scale}")
        return self.e.op(f"add nsw i64 {steps}, {address.base.offset}")

    def _region(self, base: StaticAddress) -> tuple[str, str, str]:
        """Start, byte count and name of the memory a static address lies in."""
        if isinstance(base, Shared):
            return "%shared", self.word(words.SHARED_BYTES), "shared memory"
        if isinstance(base, ClassOffset):
            memory = self.word(words.CLASS_MEMORY, "ptr")
            start = self.e.op(f"getelementptr i8, ptr {memory}, i64 {base.class_id * CLASS_BYTES}")
            return start, str(CLASS_BYTES), f"class {base.class_id}"
        assert isinstance(base, BufferOffset | PoolOffset)
        number = self.layout.word(base.handle)
        kind = "pool" if isinstance(base, PoolOffset) else "buffer"
        return self.word(number, "ptr"), self.word(number + 1), f"{kind} '{base.handle}'"

    def _check_range(self, offset: str, start: int, size: int, limit: str, name: str) -> None:
        if not size:
            return
        room = self.e.op(f"sub i64 {limit}, {min(start + size, _BEYOND)}")
        before = self.e.op(f"icmp slt i64 {offset}, 0")
        beyond = self.e.op(f"icmp sgt i64 {offset}, {room}")
        self.fail_if(
            self.e.op(f"or i1 {before}, {beyond}"), f"address out of range in {name}",
            "guard the access, for instance by comparing r255 with the element count",
        )  # fmt: skip

    def _linear(self, address: RegisterIndirect, start: int, size: int) -> str:
        linear, source = self.read(address.register), self.type_of(address.register)
        if source.bits < 64:
            linear = self.e.op(f"{'sext' if source.is_signed else 'zext'} i{source.bits} {linear} to i64")
        outside = self.e.op(f"icmp uge i64 {linear}, {CLASS_MEMORY_BYTES}")
        self.fail_if(outside, "address out of range of the class memory")
        offset = self.e.op(f"urem i64 {linear}, {CLASS_BYTES}")
        self._check_range(offset, start, size, str(CLASS_BYTES), "class memory")
        return self.e.op(f"getelementptr i8, ptr {self.word(words.CLASS_MEMORY, 'ptr')}, i64 {linear}")

    def _do_ATOM(self, i: Instruction) -> None:
        pointer, alignment = self.pointer(i.address, i.ty)
        value, t = self.read(i.src), llvm_type(i.ty)
        old = self.e.op(f"load atomic {_bits(i.ty)}, ptr {pointer} monotonic, align {max(alignment, i.ty.size_bytes)}")
        # One loop of compare and exchange serves every operation and type, 16-bit floats included.
        before, again, done = (self.e.new_block(hint) for hint in ("from", "again", "done"))
        self.e.do(f"br label %{before}")
        self.e.place(before)
        self.e.do(f"br label %{again}")
        self.e.place(again)
        seen, found = self.e.name("seen"), self.e.name("found")
        self.e.do(f"{seen} = phi {_bits(i.ty)} [ {old}, %{before} ], [ {found}, %{again}_end ]")
        current = self._from_bits(seen, i.ty)
        if i.operation.value == "MOV":
            after = value
        else:
            from eshkol.atlas.table import ROWS

            row = ROWS[i.operation.value]
            after = lower(self.e, row(*(Register(k) for k in range(3))), i.ty, [current, value], self.fail_if)
        new = after if t == _bits(i.ty) else self.e.op(f"bitcast {t} {after} to {_bits(i.ty)}")
        pair = self.e.op(f"cmpxchg ptr {pointer}, {_bits(i.ty)} {seen}, {_bits(i.ty)} {new} acq_rel monotonic")
        self.e.do(f"{found} = extractvalue {{ {_bits(i.ty)}, i1 }} {pair}, 0")
        success = self.e.op(f"extractvalue {{ {_bits(i.ty)}, i1 }} {pair}, 1")
        self.e.do(f"br label %{again}_end")
        self.e.place(f"{again}_end")
        self.e.do(f"br i1 {success}, label %{done}, label %{again}")
        self.e.place(done)
        self.write_register(i.dst, i.ty, self._from_bits(seen, i.ty))

    def _from_bits(self, value: str, ty: Type) -> str:
        t = llvm_type(ty)
        return value if t == _bits(ty) else self.e.op(f"bitcast {_bits(ty)} {value} to {t}")

    # --- Atlas-specific ----------------------------------------------------------------------------

    def _neighbour(self, cls: Register, k: int) -> str:
        ty, value = self.type_of(cls), self.read(cls)
        outside = self.e.op(f"icmp uge {llvm_type(ty)} {value}, {CLASSES}")
        self.fail_if(outside, f"the class does not exist: classes are 0 to {CLASSES - 1}")
        if ty.bits < 64:
            value = self.e.op(f"zext {llvm_type(ty)} {value} to i64")
        place = self.e.op(f"mul i64 {value}, {MAX_NEIGHBOURS}")
        place = self.e.op(f"add i64 {place}, {k}")
        entry = self.e.op(f"getelementptr i64, ptr @neighbours, i64 {place}")
        other = self.e.op(f"load i64, ptr {entry}")
        self.fail_if(self.e.op(f"icmp slt i64 {other}, 0"), f"the class has no neighbour {k}")
        offset = self.e.op(f"mul i64 {other}, {CLASS_BYTES}")
        return self.e.op(f"getelementptr i8, ptr {self.word(words.CLASS_MEMORY, 'ptr')}, i64 {offset}")

    def _do_NBRLoad(self, i: Instruction) -> None:
        pointer = self._neighbour(i.src, i.k)
        self.write_register(i.dst, i.ty, self.e.op(f"load {llvm_type(i.ty)}, ptr {pointer}, align 1"))

    def _do_NBRStore(self, i: Instruction) -> None:
        pointer = self._neighbour(i.dst, i.k)
        self.e.do(f"store {llvm_type(i.ty)} {self.read(i.src)}, ptr {pointer}, align 1")

    def _phase_word(self) -> str:
        return self.e.op(f"getelementptr i64, ptr %args, i64 {words.PHASE}")

    def _do_PhaseRead(self, i: Instruction) -> None:
        phase = self.e.op(f"load i64, ptr {self._phase_word()}")
        seen = self.e.op(f"urem i64 {self.e.op(f'add i64 {phase}, {768 - 8 * i.class_id % 768}')}, 768")
        self.write_register(i.dst, Type.U32, self.e.op(f"trunc i64 {seen} to i32"))

    def _do_PhaseWrite(self, i: Instruction) -> None:
        ty, value = self.type_of(i.src), self.read(i.src)
        if ty.bits < 64:
            value = self.e.op(f"{'sext' if ty.is_signed else 'zext'} {llvm_type(ty)} {value} to i64")
        rest = self.e.op(f"{'srem' if ty.is_signed else 'urem'} i64 {value}, 768")
        total = self.e.op(f"add i64 {rest}, {768 + 8 * i.class_id}")
        self.e.do(f"store i64 {self.e.op(f'urem i64 {total}, 768')}, ptr {self._phase_word()}")

    # --- control flow ------------------------------------------------------------------------------

    def _do_BRA(self, i: Instruction) -> None:
        target = self.flow.targets[self.index]
        if self.index in self.never:
            self._go(self.index + 1)
        elif i.pred is None:
            self._go(target)
        else:
            self.e.do(f"br i1 {self.read_predicate(i.pred)}, label %i{target}, label %i{self.index + 1}")

    def _do_EXIT(self, i: Instruction) -> None:
        self.e.do("ret i32 0")

    def _do_CALL(self, i: Instruction) -> None:
        depth = self.e.op(f"load i32, ptr {self.depth}")
        self.fail_if(self.e.op(f"icmp uge i32 {depth}, {CALL_DEPTH}"), f"calls are nested more than {CALL_DEPTH} deep")
        place = self.e.op(f"getelementptr i32, ptr {self.stack}, i32 {depth}")
        self.e.do(f"store i32 {self.index + 1}, ptr {place}")
        self.e.do(f"store i32 {self.e.op(f'add i32 {depth}, 1')}, ptr {self.depth}")
        self._go(self.flow.targets[self.index])

    def _do_RET(self, i: Instruction) -> None:
        depth = self.e.op(f"load i32, ptr {self.depth}")
        self.fail_if(self.e.op(f"icmp eq i32 {depth}, 0"), "there is no CALL to return from", "use EXIT to end a lane")
        less = self.e.op(f"sub i32 {depth}, 1")
        self.e.do(f"store i32 {less}, ptr {self.depth}")
        place = self.e.op(f"load i32, ptr {self.e.op(f'getelementptr i32, ptr {self.stack}, i32 {less}')}")
        points = [p for p in self.flow.return_points if p == len(self.program) or self.analysis.reachable(p)]
        cases = " ".join(f"i32 {p}, label %i{p}" for p in points)
        impossible = self.e.new_block("nowhere")
        self.e.do(f"switch i32 {place}, label %{impossible} [{cases}]")
        self.e.place(impossible)
        self.e.do("unreachable")

    def _loop_slots(self, start: int) -> tuple[str, str]:
        """Where rounds done and wanted are kept: one pair per call depth, where there are calls."""
        if start not in self.loops:
            kind = f"[{CALL_DEPTH + 1} x i64]" if self.has_calls else "i64"
            self.loops[start] = self.e.alloca(kind, "done"), self.e.alloca(kind, "wanted")
        done, wanted = self.loops[start]
        if not self.has_calls:
            return done, wanted
        depth = self.e.op(f"load i32, ptr {self.depth}")
        done, wanted = (self.e.op(f"getelementptr i64, ptr {slots}, i32 {depth}") for slots in (done, wanted))
        return done, wanted

    def _do_LOOP(self, i: Instruction) -> None:
        ty = Type.U32
        if isinstance(i.iterations, Register):
            ty, count = self.type_of(i.iterations), self.read(i.iterations)
            if ty.is_signed:
                negative = self.e.op(f"icmp slt {llvm_type(ty)} {count}, 0")
                self.fail_if(negative, "a loop cannot run a negative number of times")
            if ty.bits < 64:
                count = self.e.op(f"zext {llvm_type(ty)} {count} to i64")
        else:
            count = str(i.iterations)
        done, wanted = self._loop_slots(self.index)
        self.e.do(f"store i64 0, ptr {done}")
        self.e.do(f"store i64 {count}, ptr {wanted}")
        self.write_register(i.counter, ty, "0")
        enters = self.e.op(f"icmp ne i64 {count}, 0")
        self.e.do(f"br i1 {enters}, label %i{self.index + 1}, label %i{self.flow.loop_end[self.index] + 1}")

    def _do_ENDLOOP(self, i: Instruction) -> None:
        start = self.flow.loop_start[self.index]
        loop = self.program.instructions[start]
        done, wanted = self._loop_slots(start)
        rounds = self.e.op(f"add nuw i64 {self.e.op(f'load i64, ptr {done}')}, 1")
        self.e.do(f"store i64 {rounds}, ptr {done}")
        more = self.e.op(f"icmp ult i64 {rounds}, {self.e.op(f'load i64, ptr {wanted}')}")
        again = self.e.new_block("again")
        self.e.do(f"br i1 {more}, label %{again}, label %i{self.index + 1}")
        self.e.place(again)
        ty = Type.U32
        if isinstance(loop.iterations, Register):
            here, self.index = self.index, start
            ty = self.type_of(loop.iterations)
            self.index = here
        value = rounds if ty.bits == 64 else self.e.op(f"trunc i64 {rounds} to {llvm_type(ty)}")
        self.write_register(loop.counter, ty, value)
        self._go(start + 1)

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
        for slot in sorted(self.flow.live_out[index], key=str):
            if isinstance(slot, Predicate):
                kept.append((self.predicate_slot(slot), "i1", 1))
            elif not slot.is_special:
                for ty in sorted(self.analysis.possible(index, slot) - {UNWRITTEN}, key=str):
                    assert ty is not None
                    kept.append((self.slot(slot, ty), llvm_type(ty), ty.size_bytes))
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
        self.e.do(f"store {llvm} {self.e.op(f'load {llvm}, ptr {source}')}, ptr {target}")

    def _do_MemFence(self, i: Instruction) -> None:
        self.e.do("fence seq_cst")


def _bits(ty: Type) -> str:
    return f"i{ty.bits}"


def neighbour_table() -> str:
    """The neighbours of every class as a constant, -1 where a class has no such neighbour."""
    entries = []
    for cls in range(CLASSES):
        around = [*neighbours(cls), *[-1] * MAX_NEIGHBOURS][:MAX_NEIGHBOURS]
        entries += [f"i64 {n}" for n in around]
    return f"@neighbours = internal constant [{len(entries)} x i64] [{', '.join(entries)}]"
