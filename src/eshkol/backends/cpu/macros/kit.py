"""What macros are written with: native functions with loops, arrays and arithmetic that reads like arithmetic.

    k = Kernel("scale_f32", target, operands=2)
    y, x = k.operand(0, Type.F32), k.operand(1, Type.F32)
    with k.tasks() as row, k.loop(0, k.word(0)) as i:
        y[row * n + i] = x[row * n + i] * 2.0
    Macro((k.function(),), (Phase("scale_f32", rows),), (n,), k.declarations)

Loops over single elements are vectorized by LLVM; sums only inside `with k.reordering()`, which lets it change their
order (the same order every time, whatever the number of threads). Vectors can also be used explicitly
(`Array.vector`, `Kernel.splat`), which is how the matrix product is written. 16-bit floats are read as F32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.expand import expand
from eshkol.atlas.isa import Control, Instruction, Kind
from eshkol.atlas.operands import Register
from eshkol.atlas.program import Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.atlas.typing_rule import resolve_types
from eshkol.backends.cpu.kernels.macro import FIRST_OPERAND, PLAIN_LOOP, SCRATCH, Macro, Phase
from eshkol.backends.lanes.emitter import Emitter, constant, llvm_type
from eshkol.backends.lanes.scalars import LOWERINGS, Fail, lower
from eshkol.llvm.targets import Target
from eshkol.llvm.text import vector

REORDERING = "reassoc nsz contract "
PARALLEL_METADATA = """\
!93 = distinct !{}
!94 = distinct !{!94, !95}
!95 = !{!"llvm.loop.parallel_accesses", !93}"""


def compute_type(ty: Type) -> Type:
    """The type that elements of `ty` are computed in."""
    return Type.F32 if ty.is_half else ty


def real_bits(value: float) -> int:
    """A real number as a word of the record, for `Kernel.real_word`."""
    return int.from_bytes(struct.pack("<d", value), "little")


class Value:
    """A value of the function under construction; Python's operators write instructions."""

    __slots__ = ("k", "lanes", "text", "ty")

    def __init__(self, k: Kernel, ty: Type, text: str, lanes: int = 1) -> None:
        self.k, self.ty, self.text, self.lanes = k, ty, text, lanes

    def __str__(self) -> str:
        return self.text

    @property
    def llvm(self) -> str:
        return self.k.llvm(self.ty, self.lanes)

    def _binary(self, other: Operand, floating: str, integer: str, *, turned: bool = False) -> Value:
        left, right = (self.k.like(self, other), self) if turned else (self, self.k.like(self, other))
        word = f"{floating} {self.k.flags}" if self.ty.is_float else f"{integer} "
        return Value(self.k, self.ty, self.k.op(f"{word}{self.llvm} {left}, {right}"), self.lanes)

    def __add__(self, other: Operand) -> Value:
        return self._binary(other, "fadd", "add")

    def __sub__(self, other: Operand) -> Value:
        return self._binary(other, "fsub", "sub")

    def __mul__(self, other: Operand) -> Value:
        return self._binary(other, "fmul", "mul")

    def __truediv__(self, other: Operand) -> Value:
        assert self.ty.is_float
        return self._binary(other, "fdiv", "")

    def __floordiv__(self, other: Operand) -> Value:
        return self._binary(other, "", "sdiv" if self.ty.is_signed else "udiv")

    def __mod__(self, other: Operand) -> Value:
        return self._binary(other, "", "srem" if self.ty.is_signed else "urem")

    def __radd__(self, other: Operand) -> Value:
        return self._binary(other, "fadd", "add", turned=True)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary(other, "fsub", "sub", turned=True)

    def __rmul__(self, other: Operand) -> Value:
        return self._binary(other, "fmul", "mul", turned=True)

    def __rtruediv__(self, other: Operand) -> Value:
        assert self.ty.is_float
        return self._binary(other, "fdiv", "", turned=True)

    def __lshift__(self, places: int) -> Value:
        return self._binary(places, "", "shl")

    def __rshift__(self, places: int) -> Value:
        return self._binary(places, "", "ashr" if self.ty.is_signed else "lshr")

    def __and__(self, other: Operand) -> Value:
        return self._binary(other, "", "and")

    def __neg__(self) -> Value:
        return (
            Value(self.k, self.ty, self.k.op(f"fneg {self.llvm} {self}"), self.lanes) if self.ty.is_float else 0 - self
        )

    def compare(self, condition: str, other: Operand) -> str:
        """An i1: condition is eq ne lt le gt ge."""
        right = self.k.like(self, other)
        if self.ty.is_float:
            word = "fcmp " + ("une" if condition == "ne" else f"o{condition}")
        elif condition in ("eq", "ne"):
            word = f"icmp {condition}"
        else:
            word = f"icmp {'s' if self.ty.is_signed else 'u'}{condition}"
        return self.k.op(f"{word} {self.llvm} {self}, {right}")

    def __lt__(self, other: Operand) -> str:
        return self.compare("lt", other)

    def __le__(self, other: Operand) -> str:
        return self.compare("le", other)

    def __gt__(self, other: Operand) -> str:
        return self.compare("gt", other)

    def __ge__(self, other: Operand) -> str:
        return self.compare("ge", other)

    def to(self, ty: Type) -> Value:
        """The value converted: between floats, between integers, from integer to float. Nothing is checked."""
        if ty is self.ty:
            return self
        wide = self.ty.bits < ty.bits
        if self.ty.is_float:
            assert ty in (Type.F32, Type.F64)
            word = "fpext" if wide else "fptrunc"
        elif ty.is_float:
            word = "sitofp" if self.ty.is_signed else "uitofp"
        elif self.ty.bits == ty.bits:
            return Value(self.k, ty, self.text, self.lanes)
        else:
            word = ("sext" if self.ty.is_signed else "zext") if wide else "trunc"
        return Value(self.k, ty, self.k.op(f"{word} {self.llvm} {self} to {self.k.llvm(ty, self.lanes)}"), self.lanes)

    def bits(self, ty: Type) -> Value:
        """The same bits as another type of the same width."""
        return Value(self.k, ty, self.k.op(f"bitcast {self.llvm} {self} to {self.k.llvm(ty, self.lanes)}"), self.lanes)


Operand = Value | int | float


class Variable:
    """A local variable; LLVM keeps it in a register."""

    def __init__(self, k: Kernel, start: Value) -> None:
        self.k, self.ty, self.lanes = k, start.ty, start.lanes
        self.slot = k.slot(start.llvm, "v")
        self.value = start

    @property
    def value(self) -> Value:
        llvm = self.k.llvm(self.ty, self.lanes)
        return Value(self.k, self.ty, self.k.load(llvm, self.slot), self.lanes)

    @value.setter
    def value(self, new: Value) -> None:
        self.k.store(new.llvm, new.text, self.slot)


class Array:
    """Elements of one type in memory. Reading gives the compute type, writing takes it."""

    def __init__(self, k: Kernel, pointer: str, ty: Type) -> None:
        self.k, self.pointer, self.ty = k, pointer, ty

    def at(self, index: Operand) -> Array:
        """The array that starts at an element."""
        return Array(self.k, self._place(index), self.ty)

    def _place(self, index: Operand) -> str:
        return self.k.op(f"getelementptr inbounds {llvm_type(self.ty)}, ptr {self.pointer}, i64 {index}")

    def vector(self, index: Operand, lanes: int) -> Value:
        """Elements index … index + lanes - 1."""
        k = self.k
        text = k.load(k.llvm(self.ty, lanes), self._place(index), f", align {self.ty.alignment}{k.access}")
        return Value(k, compute_type(self.ty), k.widen(text, self.ty, lanes), lanes)

    def put(self, index: Operand, value: Value) -> None:
        """Store one element, or as many as the value has lanes."""
        k, text, place = self.k, self.k.narrow(value.text, self.ty, value.lanes), self._place(index)
        k.store(k.llvm(self.ty, value.lanes), text, place, f", align {self.ty.alignment}{k.access}")

    def put_some(self, index: Operand, value: Value, mask: str) -> None:
        """Store those lanes of a vector of which a vector of i1 says so; other places need not exist."""
        k, kind, lanes = self.k, llvm_type(self.ty), value.lanes
        name = f"llvm.masked.store.v{lanes}{kind[0] if kind[0] == 'i' else 'f'}{self.ty.bits}.p0"
        text, place = k.narrow(value.text, self.ty, lanes), self._place(index)
        where = ("ptr", place), ("i32", str(self.ty.alignment)), (vector("i1", lanes), mask)
        k.call("void", name, (vector(kind, lanes), text), *where)

    def __getitem__(self, index: Operand) -> Value:
        return self.vector(index, 1)

    def __setitem__(self, index: Operand, value: Value) -> None:
        self.put(index, value)


class Kernel(Emitter):
    """One native function `name(record, begin, end)` under construction."""

    def __init__(self, name: str, target: Target, operands: int, *, inline: bool = False) -> None:
        super().__init__(shifts_bf16=target.shifts_bf16)
        self.inline = inline  # into the lanes that call it, where sizes are then constants
        self.function_name, self.target, self.operands = name, target, operands
        self.flags = ""
        self.access = ""  # metadata of the accesses of arrays in a parallel loop

    def llvm(self, ty: Type, lanes: int = 1) -> str:
        return vector(llvm_type(ty), lanes)

    # --- what comes in ----------------------------------------------------------------------------

    def _record(self, number: int, llvm: str) -> str:
        place = self.offset("%record", number, "i64")
        return self.load(llvm, place, ", align 8")

    def operand(self, number: int, ty: Type) -> Array:
        """The memory of an operand (or of a register that is written)."""
        return Array(self, self._record(FIRST_OPERAND + number, "ptr"), ty)

    def scratch(self, ty: Type, offset: Operand = 0) -> Array:
        """Scratch memory from a byte offset on."""
        start = Array(self, self._record(SCRATCH, "ptr"), Type.U8)
        return Array(self, start.at(offset).pointer, ty)

    def word(self, number: int) -> Value:
        """A size or other number of the call."""
        return Value(self, Type.I64, self._record(FIRST_OPERAND + self.operands + number, "i64"))

    def real_word(self, number: int, ty: Type) -> Value:
        """A word that holds the bits of an F64 (see `real_bits`), as a float of `ty`."""
        raw = self._record(FIRST_OPERAND + self.operands + number, "double")
        return Value(self, Type.F64, raw).to(ty)

    def fault(self, number: int) -> None:
        """Note that fault `number` was found."""
        self.op(f"atomicrmw umin ptr %record, i64 {number} monotonic")

    # --- values -----------------------------------------------------------------------------------

    def const(self, ty: Type, value: int | float, lanes: int = 1) -> Value:
        if ty is Type.F32:  # LLVM takes no constant that the type does not hold
            (value,) = struct.unpack("<f", struct.pack("<f", value))
        single = Value(self, ty, constant(ty, value))
        return single if lanes == 1 else self.splat(single, lanes)

    def like(self, model: Value, operand: Operand) -> Value:
        """A Python number as a value of the model's type and width."""
        if isinstance(operand, Value):
            assert operand.ty is model.ty or (operand.ty.is_integer and operand.ty.bits == model.ty.bits)
            return operand if operand.lanes == model.lanes else self.splat(operand, model.lanes)
        return self.const(model.ty, operand, model.lanes)

    def splat(self, value: Value, lanes: int) -> Value:
        """One value in every lane of a vector."""
        if lanes == 1:
            return value
        vector = self.llvm(value.ty, lanes)
        one = self.op(f"insertelement {vector} poison, {value.llvm} {value}, i64 0")
        text = self.op(f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer")
        return Value(self, value.ty, text, lanes)

    def splat_lane(self, value: Value, lane: int, lanes: int) -> Value:
        """One lane of a vector in every lane of another."""
        chosen = ", ".join([f"i32 {lane}"] * lanes)
        text = self.op(f"shufflevector {value.llvm} {value}, {value.llvm} poison, <{lanes} x i32> <{chosen}>")
        return Value(self, value.ty, text, lanes)

    def lane(self, value: Value, lane: int) -> Value:
        """One lane of a vector."""
        return Value(self, value.ty, self.op(f"extractelement {value.llvm} {value}, i64 {lane}"))

    def joined(self, values: list[Value]) -> Value:
        """Single values as the lanes of a vector."""
        llvm, text = self.llvm(values[0].ty, len(values)), "poison"
        for lane, value in enumerate(values):
            text = self.op(f"insertelement {llvm} {text}, {value.llvm} {value}, i64 {lane}")
        return Value(self, values[0].ty, text, len(values))

    def shuffle(self, a: Value, b: Value, places: Sequence[int]) -> Value:
        """The elements at these places of a and b, one after the other, as a vector."""
        mask = ", ".join(f"i32 {place}" for place in places)
        text = self.op(f"shufflevector {a.llvm} {a}, {b.llvm} {b}, <{len(places)} x i32> <{mask}>")
        return Value(self, a.ty, text, len(places))

    def variable(self, start: Value) -> Variable:
        return Variable(self, start)

    def prefetch(self, place: Array, *, near: bool = False) -> None:
        """Ask for what lies at a place, which need not exist, before it is read: into the first cache if it is near."""
        level = ("i32", "3" if near else "2")
        self.call("void", "llvm.prefetch.p0", ("ptr", place.pointer), ("i32", "0"), level, ("i32", "1"))

    def local(self, ty: Type, count: int) -> Array:
        """A small array on the stack, aligned to 64; it must be asked for outside of loops."""
        return Array(self, self.slot(f"[{count} x {llvm_type(ty)}], align 64", "local"), ty)

    def select(self, condition: str, yes: Value, no: Value) -> Value:
        """yes where the (scalar) condition holds, no elsewhere."""
        return Value(self, yes.ty, self.op(f"select i1 {condition}, {yes.llvm} {yes}, {no.llvm} {no}"), yes.lanes)

    def where(self, condition: str, yes: Value, no: Operand) -> Value:
        """Lane by lane: yes where the condition (a comparison of values of this width) holds, no elsewhere."""
        other = self.like(yes, no)
        text = self.op(f"select {vector('i1', yes.lanes)} {condition}, {yes.llvm} {yes}, {other.llvm} {other}")
        return Value(self, yes.ty, text, yes.lanes)

    def both(self, left: str, right: str, lanes: int = 1) -> str:
        """Whether both conditions hold, lane by lane."""
        return self.op(f"and {vector('i1', lanes)} {left}, {right}")

    def negated(self, condition: str) -> str:
        return self.op(f"xor i1 {condition}, true")

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        return self._intrinsic("fma", a, b, c)

    def muladd(self, a: Value, b: Operand, c: Operand) -> Value:
        """a·b + c, rounded once where the machine does that at once, twice elsewhere; integers wrap."""
        return self._intrinsic("fmuladd", a, b, c) if a.ty.is_float else a * b + c

    def maximum(self, a: Value, b: Operand) -> Value:
        """The greater; NaN if either is (floats), signed or unsigned by type (integers)."""
        return self._intrinsic("maximum" if a.ty.is_float else "smax" if a.ty.is_signed else "umax", a, b)

    def minimum(self, a: Value, b: Operand) -> Value:
        return self._intrinsic("minimum" if a.ty.is_float else "smin" if a.ty.is_signed else "umin", a, b)

    def max_number(self, a: Value, b: Value) -> Value:
        """As `maximum`, but of a number and NaN the number."""
        return self._intrinsic("maxnum", a, b) if a.ty.is_float else self.maximum(a, b)

    def min_number(self, a: Value, b: Value) -> Value:
        return self._intrinsic("minnum", a, b) if a.ty.is_float else self.minimum(a, b)

    def sqrt(self, a: Value) -> Value:
        return self._intrinsic("sqrt", a)

    def _intrinsic(self, name: str, first: Value, *others: Operand) -> Value:
        values = [first, *(self.like(first, o) for o in others)]
        return Value(self, first.ty, self.intrinsic(name, first.llvm, *(v.text for v in values)), first.lanes)

    def reduce_add(self, value: Value) -> Value:
        """The sum of a vector's lanes, in any order."""
        return self.reduce("add", value)

    def reduce(self, operation: str, value: Value) -> Value:
        """The lanes of a vector in one: their sum (add), product (mul), least (min), greatest (max, maximum).

        The order is free. Of floats, min and max pass over NaN, maximum does not.
        """
        if value.lanes == 1:
            return value
        llvm, ordered = llvm_type(value.ty), operation in ("min", "max", "maximum")
        if value.ty.is_float:
            name, start = f"f{operation}", "" if ordered else f"{llvm} {'-0.0' if operation == 'add' else '1.0'}, "
            short = f"v{value.lanes}f{value.ty.bits}"
        else:
            name, start = f"{('s' if value.ty.is_signed else 'u') if ordered else ''}{operation[:3]}", ""
            short = f"v{value.lanes}{llvm}"
        function = f"llvm.vector.reduce.{name}.{short}"
        self.declared[function] = f"declare {llvm} @{function}({f'{llvm}, ' if start else ''}{value.llvm})"
        flags = "" if ordered or value.ty.is_integer else "reassoc "
        return Value(self, value.ty, self.op(f"call {flags}{llvm} @{function}({start}{value.llvm} {value})"))

    def math(self, mnemonic: str, *values: Value, fail: Fail | None = None) -> Value:
        """A row of the table by its mnemonic (EXP, TANH …), on scalars other than 16-bit floats; written in place.

        `fail` is told the condition under which it would fail; without it, it must not be able to.
        """
        ty = values[0].ty
        code, result = _scalar_code(mnemonic, ty, len(values))
        return Value(self, ty, _InPlace(self, code, fail or _cannot_fail).write(ty, values, result))

    # --- control ----------------------------------------------------------------------------------

    @contextmanager
    def reordering(self) -> Iterator[None]:
        """Within it, sums and products of floats may be taken in another order and contracted."""
        before, self.flags = self.flags, REORDERING
        yield
        self.flags = before

    @contextmanager
    def loop(
        self, start: Operand, stop: Operand, step: int = 1, *, plain: bool = False, metadata: str = ""
    ) -> Iterator[Value]:
        """for index in range(start, stop, step); a plain loop is neither vectorized nor unrolled."""
        metadata = PLAIN_LOOP if plain else metadata
        before, head, inside, latch, after = (self.new_block(h) for h in ("pre", "head", "body", "latch", "end"))
        index, following = self.name("i"), self.name("n")
        self.br(before)
        self.place(before)
        self.br(head)
        self.place(head)
        self.phi(index, "i64", (str(start), before), (following, latch))
        self.br_if(self.op(f"icmp slt i64 {index}, {stop}"), inside, after)
        self.place(inside)
        yield Value(self, Type.I64, index)
        self.br(latch)
        self.place(latch)
        self.do(f"{following} = add nsw i64 {index}, {step}")
        self.br(head, f", {metadata}" if metadata else "")
        self.place(after)

    @contextmanager
    def parallel(self, start: Operand, stop: Operand) -> Iterator[Value]:
        """A loop of which no round writes what another reads: LLVM vectorizes it even where it works in place."""
        self.declared["parallel"] = PARALLEL_METADATA
        before, self.access = self.access, ", !llvm.access.group !93"
        with self.loop(start, stop, metadata="!llvm.loop !94") as index:
            yield index
        self.access = before

    def widths(self, ty: Type) -> tuple[int, ...]:
        """Lanes of the vectors that `strips` takes an array of `ty` by: four registers, one, a short one, single."""
        lanes = max(self.target.vector_bits // compute_type(ty).bits, 1)
        return tuple(dict.fromkeys((4 * lanes, lanes, min(lanes, 4), 1)))

    def strips(self, ty: Type, stop: Operand) -> Iterator[tuple[Value, int]]:
        """The elements from 0 to stop in vectors, wide ones first; what is written for one is written for each width.

        for p, lanes in k.strips(Type.F32, n):
            y.put(p, x.vector(p, lanes) * 2.0)
        """
        start: Operand = 0
        for lanes in self.widths(ty):
            whole = Value(self, Type.I64, self.op(f"and i64 {stop}, {-lanes}"))
            with self.loop(start, whole, lanes, plain=True) as index:
                yield index, lanes
            start = whole

    @contextmanager
    def tasks(self) -> Iterator[Value]:
        """The tasks of this call."""
        with self.loop(Value(self, Type.I64, "%begin"), Value(self, Type.I64, "%end"), plain=True) as task:
            yield task

    @contextmanager
    def pieces(self, n: Value, size: int) -> Iterator[tuple[Value, Value]]:
        """Start and length of the piece of n elements that is each task's, `size` but for the last."""
        with self.tasks() as task:
            start = task * size
            yield start, self.minimum(n - start, self.const(Type.I64, size))

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        inside, after = self.new_block("then"), self.new_block("after")
        self.br_if(condition, inside, after)
        self.place(inside)
        yield
        self.br(after)
        self.place(after)

    def function(self) -> str:
        """The finished function."""
        head = (
            f"{{linkage}} void @{self.function_name}(ptr noalias %record, i64 %begin, i64 %end) "
            f"nounwind {'alwaysinline ' if self.inline else ''}{self.target.attributes}"
        )
        return self.defined(head, ["  ret void"])

    @property
    def declarations(self) -> tuple[str, ...]:
        return tuple(self.declared.values())


def macro_of(
    kernels: Sequence[Kernel], phases: Sequence[Phase], words: Sequence[int], scratch: int = 0,
    faults: Sequence[str] = (),
) -> Macro:  # fmt: skip
    """A macro of several kernels, which may stand for several phases each."""
    declared = dict.fromkeys(text for k in kernels for text in k.declarations)
    return Macro(
        tuple(k.function() for k in kernels), tuple(phases), tuple(words), tuple(declared), scratch, tuple(faults)
    )


def _cannot_fail(condition: str, message: str) -> None:
    raise AssertionError(f"an elementary function that can fail: {message}")


class _InPlace:
    """Writes the code of a scalar row into a kernel. Where it branches, registers are variables."""

    def __init__(self, k: Kernel, code: Program, fail: Fail) -> None:
        self.k, self.code, self.fail = k, code, fail
        self.types: dict[Register, Type] = {}
        self.values: dict[object, str] = {}  # of registers and predicates: their values, or their variables' places
        self.blocks = {name: k.new_block(name) for name in code.labels}

    def write(self, ty: Type, values: Sequence[Value], result: Register) -> str:
        for number, value in enumerate(values):
            self._put(Register(number), llvm_type(ty), value.text, ty)
        for index, i in enumerate(self.code.instructions):
            self._labels(index)
            if i.op.control is Control.BRANCH:
                self._branch(i)
            else:
                self._compute(i)
        self._labels(len(self.code))
        return self._get(result, llvm_type(ty))

    def _get(self, key: object, llvm: str) -> str:
        return self.k.load(llvm, self.values[key]) if self.blocks else self.values[key]

    def _put(self, key: object, llvm: str, text: str, ty: Type | None = None) -> None:
        if isinstance(key, Register) and ty is not None:
            self.types[key] = ty
        if not self.blocks:
            self.values[key] = text
            return
        if key not in self.values:
            self.values[key] = self.k.slot(llvm, "r")
        self.k.store(llvm, text, self.values[key])

    def _labels(self, index: int) -> None:
        for name in self.code.labels_at.get(index, ()):
            self.k.br(self.blocks[name])
            self.k.place(self.blocks[name])

    def _branch(self, i: Instruction) -> None:
        target, following = self.blocks[i.target.name], self.k.new_block()
        if i.pred is None:
            self.k.br(target)
        else:
            self.k.br_if(self._get(i.pred, "i1"), target, following)
        self.k.place(following)

    def _compute(self, i: Instruction) -> None:
        types = [self.types[r] for r in i.reads()]
        inputs = [
            self._get(v, llvm_type(self.types[v]) if isinstance(v, Register) else "i1")
            for f, v in zip(i.op.fields, i.operands, strict=True)
            if f.kind in (Kind.USE, Kind.PUSE)
        ]
        outputs = resolve_types(i, types)
        value = lower(self.k, i, types[0] if types else outputs[0], inputs, self.fail)
        for predicate in i.of_kind(Kind.PDEF):
            self._put(predicate, "i1", value)
        for register, out in zip(i.writes(), outputs, strict=True):
            self._put(register, llvm_type(out), value, out)


@cache
def _scalar_code(mnemonic: str, ty: Type, arity: int) -> tuple[Program, Register]:
    """The instructions of a scalar row from r0 (and r1) to the register given."""
    b = ProgramBuilder(mnemonic)
    place = b.buffer("x", ty)
    values = [b.reg(ty) for _ in range(arity)]
    result = b.reg(ty)
    for value in values:
        b.ldg(ty, value, place.at(0))
    b.emit(ROWS[mnemonic](result, *values))
    b.stg(ty, place.at(0), result)
    whole = expand(b.build(), lambda i: i.op.name not in LOWERINGS)
    labels = {name: index - arity for name, index in whole.labels.items()}
    return replace(whole, instructions=whole.instructions[arity:-1], labels=labels), result
