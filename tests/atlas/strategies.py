"""Hypothesis strategies for Atlas, derived from the instruction table.

- `instructions()`: any row with any operands that its fields admit.
- `programs()`: well-formed programs (not necessarily valid ones), for the text and JSON forms.
- `runnable_programs()`: valid, terminating programs together with a launch and data, every result observable.
  `run(case, backend)` executes one and gives its outputs as comparable bit patterns.

A row that is added to the table is in all of them without a change here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.vendor import pretty

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.classes import CLASSES
from eshkol.atlas.isa import (
    COUNT_LIMIT,
    MEMORY_KINDS,
    NAMED_TYPE_SETS,
    REQUIRED,
    Field,
    Group,
    Instruction,
    Kind,
    Opcode,
    Values,
)
from eshkol.atlas.operands import (
    BLOCK,
    BLOCK_SIZE,
    GLOBAL,
    LANE,
    PREDICATES,
    REGISTERS,
    AtomicOperation,
    BufferOffset,
    ClassOffset,
    Condition,
    Immediate,
    Indexed,
    Label,
    PoolOffset,
    Predicate,
    Register,
    RegisterIndirect,
    Shared,
    SpecialRegister,
)
from eshkol.atlas.program import LaunchConfig, Param, ParamKind, Program, is_name
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import ALL_TYPES, Array, Type, decode, encode
from eshkol.atlas.typing_rule import resolve_types
from eshkol.backends.base import Backend
from eshkol.errors import IsaError

# A failing example is shown as the text form, not as nested dataclasses with the whole table in them.
for _shown in (Program, Opcode):
    pretty.for_type_by_name(
        _shown.__module__, _shown.__name__, lambda shown, printer, cycle: printer.text(f"\n{shown}")
    )

# --- operands -------------------------------------------------------------------------------------

# Names that look like something else to a hasty reader: numbers, keywords, registers that are none.
TRICKY_NAMES = (
    "inf",
    "nan",
    "R5",
    "P3",
    "e5",
    "x0",
    "true",
    "F32",
    "LDG",
    "r",
    "p",
    "r_1",
    "rp1",
    "Shared",
    "_",
    "b0",
    "end",
)


def names() -> st.SearchStrategy[str]:
    """What may name a parameter, a pool or a label."""
    free = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
    return st.one_of(st.sampled_from(TRICKY_NAMES), free).filter(is_name)


def texts() -> st.SearchStrategy[str]:
    """Any text at all, lone surrogates included: program names and metadata."""
    return st.text(st.characters(), max_size=8)


@cache
def numbers(ty: Type) -> st.SearchStrategy[int | float]:
    """Values of a type, with its extremes and specials often among them."""
    if ty.is_integer:
        low, high = ty.min_value, ty.max_value
        corners = sorted({low, low + 1, -1, 0, 1, 2, ty.bits - 1, ty.bits, high // 2 + 1, high - 1, high})
        return st.one_of(
            st.sampled_from([v for v in corners if low <= v <= high]),
            st.integers(max(low, -9), min(high, 9)),
            st.integers(low, high),
        )
    if ty is Type.BF16:
        return st.integers(0, 0xFFFF).map(lambda bits: float(np.array([bits], np.uint16).view(ty.dtype)[0]))
    return st.one_of(st.floats(width=ty.bits), st.integers(-9, 9).map(float))


@cache
def immediates() -> st.SearchStrategy[Immediate]:
    return st.one_of([numbers(ty).map(lambda value, ty=ty: Immediate(ty, value)) for ty in Type])


@cache
def addresses() -> st.SearchStrategy[Any]:
    """Every address mode; handles are any names, whether declared or not."""
    offset = st.one_of(st.just(0), st.integers(0, 64), st.integers(0, COUNT_LIMIT))
    static = st.one_of(
        st.builds(BufferOffset, names(), offset),
        st.builds(PoolOffset, names(), offset),
        st.builds(Shared, offset),
        st.builds(ClassOffset, st.integers(0, CLASSES + 3), offset),
    )
    scale = st.one_of(st.just(1), st.integers(1, 16), st.integers(1, 1 << 20))
    return st.one_of(static, st.builds(RegisterIndirect, registers()), st.builds(Indexed, static, registers(), scale))


@cache
def registers(limit: int = REGISTERS) -> st.SearchStrategy[Register]:
    return st.integers(0, limit - 1).map(Register)


def operands(op: Opcode, f: Field) -> st.SearchStrategy[Any]:
    """Anything this field of this row admits."""
    counts = st.lists(st.integers(0, COUNT_LIMIT), max_size=4).map(tuple)
    pair = st.tuples(st.integers(0, COUNT_LIMIT), st.integers(0, COUNT_LIMIT))
    if f.kind in MEMORY_KINDS:
        return addresses()
    if f.kind is Kind.TYPE:
        return st.sampled_from([t for t in Type if f.name != "ty" or t in op.types])
    if f.kind is Kind.CHOICE:
        return st.sampled_from(list(f.choices))
    if f.kind is Kind.COUNT:
        return st.one_of(st.integers(f.low, min(f.low + 9, f.high)), st.integers(f.low, f.high))
    return {
        Kind.DEF: registers(LANE),
        Kind.USE: registers(),
        Kind.PDEF: st.integers(0, PREDICATES - 1).map(Predicate),
        Kind.PUSE: st.integers(0, PREDICATES - 1).map(Predicate),
        Kind.LABEL: names().map(Label),
        Kind.POOL: names(),
        Kind.TRIPS: st.one_of(registers(), st.integers(0, 9), st.integers(0, (1 << 32) - 1)),
        Kind.IMMEDIATE: immediates(),
        Kind.REAL: st.floats(),
        Kind.FLAG: st.booleans(),
        Kind.COUNTS: counts,
        Kind.PAIRS: st.lists(pair, max_size=3).map(tuple),
    }[f.kind]


@cache
def instructions_of(op: Opcode) -> st.SearchStrategy[Instruction]:
    """Instructions of one row; operands with a default are sometimes left out."""
    required = {f.name: operands(op, f) for f in op.fields if f.default is REQUIRED}
    optional = {f.name: operands(op, f) for f in op.fields if f.default is not REQUIRED}
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: op(**values))


@cache
def instructions() -> st.SearchStrategy[Instruction]:
    return st.one_of([instructions_of(op) for op in ROWS.values()])


# --- well-formed programs -------------------------------------------------------------------------


@st.composite
def params(draw: st.DrawFn) -> list[Param]:
    found = []
    for name in draw(st.lists(names(), max_size=4, unique=True)):
        kind = draw(st.sampled_from(ParamKind))
        ty = None if kind is ParamKind.POOL else draw(st.sampled_from(Type))
        sized = kind is ParamKind.BUFFER and draw(st.booleans())
        found.append(Param(name, kind, ty, draw(st.integers(0, COUNT_LIMIT)) if sized else None))
    return found


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs that can be written down; most of them would not validate."""
    code = draw(st.lists(instructions(), max_size=8))
    labels = {name: draw(st.integers(0, len(code))) for name in draw(st.lists(names(), max_size=4, unique=True))}
    entry = draw(st.one_of(st.none(), names(), *([st.sampled_from(sorted(labels))] if labels else [])))
    metadata = draw(st.dictionaries(texts(), texts(), max_size=3))
    return Program(tuple(code), labels, tuple(draw(params())), entry, draw(texts()), metadata)


# --- runnable programs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A valid program with everything needed to run it. Buffers that are no inputs are outputs."""

    program: Program
    launch: LaunchConfig
    inputs: Mapping[str, Any]  # buffer → its values, scalar → its number

    @property
    def outputs(self) -> list[Param]:
        return [p for p in self.program.params if p.name not in self.inputs]

    def __str__(self) -> str:
        given = "\n".join(f"; {name} = {value}" for name, value in self.inputs.items())
        return f"{self.launch}\n{given}\n{self.program}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self}")


def run(case: Case, backend: Backend, program: Program | None = None) -> dict[str, Array]:
    """The outputs of a case as bit patterns (see `bit_patterns`), of the given program in place of its own.

    Buffers are made for the run and freed after it, whatever happens.
    """
    given: dict[str, Any] = {}
    buffers = []
    for p in case.program.params:
        if p.kind is ParamKind.SCALAR:
            given[p.name] = case.inputs[p.name]
            continue
        values = case.inputs.get(p.name, [0] * (p.count or 0))
        given[p.name] = backend.array(to_array(values, p.ty), p.ty)
        buffers.append(given[p.name])
    try:
        backend.execute(program or case.program, case.launch, given)
        return {p.name: bit_patterns(given[p.name].read(), p.ty) for p in case.outputs}
    finally:
        for buffer in buffers:
            buffer.free()


def bit_patterns(values: Array, ty: Type) -> Array:
    """Values as unsigned integers of their width (rows of bytes for wide integers), all NaNs as one NaN."""
    if ty.is_wide:
        return encode(values, ty)
    values = np.array(values, ty.dtype)
    if ty.is_float:
        values[np.isnan(values)] = np.nan
    return values.view(f"<u{ty.size_bytes}")


def values_of(patterns: Array, ty: Type) -> Array:
    """The way back from `bit_patterns`, for comparisons within a tolerance."""
    return decode(np.ascontiguousarray(patterns).view(np.uint8).reshape(len(patterns), ty.size_bytes), ty)


def assert_same(left: Mapping[str, Array], right: Mapping[str, Array]) -> None:
    """Both runs gave the same bits in every output."""
    assert left.keys() == right.keys()
    for name in left:
        assert np.array_equal(left[name], right[name]), f"{name}: {left[name]} is not {right[name]}"


def ulp_distance(left: Array, right: Array, ty: Type) -> float:
    """How many floats lie between two outputs at most, for comparisons within a tolerance.

    Both zeros are one float, infinity follows the greatest; NaN is infinitely far from everything but NaN.
    """
    sign = 1 << (ty.bits - 1)
    is_nan = np.isnan(values_of(left, ty)) | np.isnan(values_of(right, ty))
    distances: list[float] = []
    for a, b, nan in zip(left.tolist(), right.tolist(), is_nan.tolist(), strict=True):
        ordered = [-(v & (sign - 1)) if v & sign else v for v in (a, b)]
        distances.append(0 if a == b else math.inf if nan else abs(ordered[0] - ordered[1]))
    return max(distances, default=0)


LAUNCHES = tuple(
    LaunchConfig(grid, block)
    for grid, block in (
        ((1, 1, 1), (1, 1, 1)),
        ((1, 1, 1), (4, 1, 1)),
        ((2, 1, 1), (3, 1, 1)),
        ((1, 2, 1), (2, 1, 2)),
        ((2, 1, 2), (1, 2, 1)),
        ((1, 1, 1), (2, 2, 2)),
    )
)


def is_exact(op: Opcode) -> bool:
    """Whether a row has one right result. Elementary functions, and what is made of them, have a tolerance."""
    return op.group is not Group.ADVANCED and not (op.group is Group.TRANSCENDENTAL and op.is_extension)


def runnable_programs(
    *,
    types: frozenset[Type] = ALL_TYPES,
    wanted: Callable[[Opcode], bool] = lambda op: True,
    shared: bool = True,
    calls: bool = True,
    traps: bool = False,
    launches: tuple[LaunchConfig, ...] = LAUNCHES,
) -> st.SearchStrategy[Case]:
    """Valid programs that end, whose result does not depend on the order of lanes.

    Registers of one to three of the `types` are computed by any of the `wanted` rows with a `Values` meaning,
    inside branches, loops, function calls and exchanges through shared memory, and stored in the end, as are
    the predicates. U32 and U64 are needed besides, for indices. With `traps` integer divisors may be zero, and
    the like: a run may then end in ExecutionFailed. Without it no run fails. Machines agree on the bits where
    only the rows of `is_exact` are wanted.
    """
    known = types | {Type.U32, Type.U64}
    rows = [
        op
        for op in ROWS.values()
        if isinstance(op.meaning, Values)
        and wanted(op)
        and all(f.ty in known for f in op.fields if isinstance(f.ty, Type))
    ]
    return _cases(tuple(t for t in Type if t in types), rows, shared, calls, traps, launches)


@st.composite
def _cases(
    draw: st.DrawFn, types: tuple[Type, ...], rows: list[Opcode], shared: bool, calls: bool, traps: bool,
    launches: tuple[LaunchConfig, ...],
) -> Case:  # fmt: skip
    chosen = draw(st.lists(st.sampled_from(types), min_size=1, max_size=3, unique=True))
    launch = draw(st.sampled_from(launches))
    writer = _Writer(draw, chosen, rows, launch, shared, calls and draw(st.booleans()), traps)
    writer.prologue()
    for _ in range(draw(st.integers(2, 10))):
        writer.statement()
    writer.epilogue()
    sized = LaunchConfig(launch.grid, launch.block, writer.shared_bytes)
    return Case(writer.b.build(), sized, writer.inputs)


def _legal(op: Opcode, given: Mapping[str, Any]) -> bool:
    """Whether the row's own check admits these types and choices; what it says of other operands is left open."""
    blank = {Kind.DEF: Register(0), Kind.USE: Register(0), Kind.PDEF: Predicate(0), Kind.PUSE: Predicate(0)}
    try:
        op.check(op(**given, **{f.name: blank[f.kind] for f in op.fields if f.kind in blank}))
    except IsaError:
        return False
    return True


_ATOMIC_TYPES = (Type.I32, Type.U32)
_COMMUTATIVE = [op for op in AtomicOperation if op is not AtomicOperation.Exchange]


class _Writer:
    """Writes one random program. A register in `visible` surely holds its type wherever code is written now."""

    def __init__(
        self, draw: st.DrawFn, types: list[Type], rows: list[Opcode], launch: LaunchConfig, shared: bool,
        calls: bool, traps: bool,
    ) -> None:  # fmt: skip
        self.draw, self.types, self.launch, self.traps = draw, types, launch, traps
        self.b = ProgramBuilder("random")
        self.inputs: dict[str, Any] = {}
        self.rows = [op for op in rows if self._possible(op)]
        self.shared, self.calls = shared, calls
        self.shared_bytes = 0
        self.functions: list[Label] = []
        self.visible: dict[Type, list[Register]] = {}
        self.stable: dict[Type, list[Register]] = {}  # what functions use: it holds its type at every call
        self.predicates = [self.b.pred() for _ in range(3)]
        self.depth = 0  # of blocks
        self.borrowed: dict[Register, Type] | None = None  # registers that a branch uses with another type for a while
        self.uniform = True  # whether all lanes of a block come here together
        self.in_function = False

    def _possible(self, op: Opcode) -> bool:
        has_variable = any(f.ty == "T" for f in op.fields)
        return bool(self._suffixes(op)) and (not has_variable or any(t in op.types for t in self.types))

    def _suffixes(self, op: Opcode) -> list[dict[str, Any]]:
        """The types and choices that the row admits together."""
        types = [t for t in self.types if t in op.types] or [t for t in Type if t in op.types]
        options = {f.name: types for f in op.fields if f.kind is Kind.TYPE}
        options |= {f.name: list(f.choices) for f in op.fields if f.kind is Kind.CHOICE and f.choices}
        found = [dict(zip(options, chosen, strict=True)) for chosen in itertools.product(*options.values())]
        return found if op.check is None else [given for given in found if _legal(op, given)]

    def pick(self, items: Any) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    # --- registers ---------------------------------------------------------------------------------

    def remember(self, register: Register, ty: Type) -> Register:
        self.visible.setdefault(ty, []).append(register)
        return register

    def source(self, ty: Type) -> Register:
        """A register to read: a visible one, a special register, or a constant made for this."""
        specials = {Type.U32: [LANE, BLOCK, BLOCK_SIZE], Type.U64: [GLOBAL]}.get(ty, [])
        known = self.visible.get(ty, []) + [Register(k) for k in specials]
        if known and not self.chance(8):
            return self.pick(known)
        return self.constant(ty, self.draw(numbers(ty)))

    def target(self, ty: Type) -> Register:
        """A register to write: one that holds the type, one that changes to it, or a fresh one."""
        known = self.visible.get(ty, [])
        if known and not self.chance(4):
            return self.pick(known)
        kept = {r for rs in self.stable.values() for r in rs}
        others = [(old, r) for old, rs in self.visible.items() for r in rs if old is not ty and r not in kept]
        if others and (self.depth == 0 or self.borrowed is not None) and self.chance(2):
            old, register = self.pick(others)
            self.visible[old].remove(register)
            if self.borrowed is not None:
                self.borrowed.setdefault(register, old)
            return self.remember(register, ty)
        if sum(map(len, self.visible.values())) > 24:
            return self.pick(known) if known else self.b.reg()
        return self.remember(self.b.reg(), ty)

    def constant(self, ty: Type, value: int | float) -> Register:
        return self.b.constant(ty, value)

    def predicate(self) -> Predicate:
        return self.pick(self.predicates)

    # --- the parts of a program ----------------------------------------------------------------------

    def prologue(self) -> None:
        lanes = self.launch.total_threads
        for ty in self.types:
            param = self.b.buffer(f"in_{ty}", ty, lanes)
            self.inputs[param.name] = [self.draw(numbers(ty)) for _ in range(lanes)]
            self.b.ldg(ty, self.remember(self.b.reg(), ty), param.at(Register(GLOBAL)))
            self.remember(self.constant(ty, self.draw(numbers(ty))), ty)
            if self.chance(3):
                scalar = self.b.scalar(f"a_{ty}", ty)
                self.inputs[scalar.name] = self.draw(numbers(ty))
                self.b.ldg(ty, self.remember(self.b.reg(), ty), scalar.address)
        for predicate in self.predicates:
            ty = self.pick(self.types)
            self.b.setcc(self.pick(Condition), predicate, self.source(ty), self.source(ty))
        if self.calls:
            self.stable = {ty: list(found) for ty, found in self.visible.items()}
        if self.shared:
            self._number_lanes()

    def _number_lanes(self) -> None:
        """self.slot = the lane's number in its block, counted through x, y and z."""
        self.slot = self.constant(Type.U32, 0)
        part, (x, y, _) = self.b.reg(), self.launch.block
        for axis, stride in (("LaneX", 1), ("LaneY", x), ("LaneZ", x * y)):
            self.b.sreg(SpecialRegister[axis], part)
            self.b.fma(self.slot, part, self.constant(Type.U32, stride), self.slot)

    def epilogue(self) -> None:
        """Store everything that is known; sometimes some lanes leave before."""
        b, lanes, here = self.b, self.launch.total_threads, Register(GLOBAL)
        if self.chance(6):
            with b.when(self.predicate()):
                b.exit()
        for ty, found in self.visible.items():
            if found:
                out = b.buffer(f"out_{ty}", ty, lanes * len(found))
            for k, register in enumerate(found):
                b.stg(ty, BufferOffset(out.name, k * lanes * ty.size_bytes).at(here, ty.size_bytes), register)
        flags, one, zero = b.buffer("flags", Type.U32, lanes * len(self.predicates)), b.reg(), b.reg()
        b.mov_imm(one, Immediate(Type.U32, 1))
        b.mov_imm(zero, Immediate(Type.U32, 0))
        for k, predicate in enumerate(self.predicates):
            flag = b.reg()
            b.sel(flag, predicate, one, zero)
            b.stg(Type.U32, BufferOffset(flags.name, k * lanes * 4).at(here, 4), flag)
        if self.functions:
            b.exit()
        self.in_function, self.depth, self.uniform = True, 1, False
        for label in self.functions:
            self.visible = {ty: list(found) for ty, found in self.stable.items()}
            b.place(label)
            for _ in range(self.draw(st.integers(1, 3))):
                self.statement()
            b.ret()

    def statement(self) -> None:
        kinds: list[Callable[[], None]] = [self.value] * 6
        if self.depth < 3:
            kinds += [self.branch, self.choice, self.loop]
        if self.uniform and self.shared:
            kinds.append(self.rotate)
            if any(t in _ATOMIC_TYPES for t in self.types):
                kinds.append(self.vote)
        if self.calls and not self.in_function:
            kinds.append(self.call)
        self.pick(kinds)()

    @contextmanager
    def block(self, *, uniform: bool = False) -> Iterator[None]:
        """Code that may not run, or run several times: what is first written in it is unknown after it."""
        saved = {ty: list(found) for ty, found in self.visible.items()}, self.uniform, self.borrowed
        self.uniform, self.borrowed = self.uniform and uniform, None
        self.depth += 1
        yield
        self.depth -= 1
        self.visible, self.uniform, self.borrowed = saved

    def body(self) -> None:
        """A block that is left only at its end, where borrowed registers get a value of their own type again."""
        with self.block():
            self.borrowed = {}
            for _ in range(self.draw(st.integers(0, 3))):
                self.statement()
            for register, ty in self.borrowed.items():
                self.b.mov_imm(register, Immediate(ty, self.draw(numbers(ty))))

    def value(self) -> None:
        """One instruction of a row with a `Values` meaning."""
        op = self.pick(self.rows)
        variable = self.pick([t for t in self.types if t in op.types] or self.types)
        given: dict[str, Any] = dict(self.pick(self._suffixes(op)))  # they say the types of the others
        for f in op.fields:
            if f.kind is Kind.IMMEDIATE:
                ty = self.pick(self.types)
                given[f.name] = Immediate(ty, self.draw(numbers(ty)))
        uses: list[Type] = []
        for f in op.fields:
            if f.kind is Kind.USE:
                uses.append(self._type_of(f, given, variable))
                given[f.name] = self.source(uses[-1])
            elif f.kind in (Kind.PUSE, Kind.PDEF):
                given[f.name] = self.predicate()
        if op.traps and uses and uses[-1].is_integer and not (self.traps and self.chance(2)):
            last = [f.name for f in op.fields if f.kind is Kind.USE][-1]
            given[last] = self.harmless(given[last], uses[-1], binary=len(uses) > 1)
        if op.name in ("BITCAST", "PACK") and uses[0].is_float:  # which bits a NaN has is open
            for f in op.fields:
                if f.kind is Kind.USE:
                    given[f.name] = self.number(given[f.name], uses[0])
        writes = [f.name for f in op.fields if f.kind is Kind.DEF]
        trial = op(**given, **{name: Register(0) for name in writes})
        for name, ty in zip(writes, resolve_types(trial, uses), strict=True):
            given[name] = self.target(ty)
        self.b.emit(op(**given))

    def _type_of(self, f: Field, given: Mapping[str, Any], variable: Type) -> Type:
        if f.ty == "T":
            return variable
        if isinstance(f.ty, Type):
            return f.ty
        if f.ty in NAMED_TYPE_SETS:
            return self.pick([t for t in Type if t in NAMED_TYPE_SETS[f.ty]])
        named = given[f.ty]
        return named.ty if isinstance(named, Immediate) else named

    def harmless(self, register: Register, ty: Type, *, binary: bool) -> Register:
        """An operand that no row rejects: a divisor that is odd, a class or packed place below 32."""
        safe, mask = self.b.reg(), self.constant(ty, 1 if binary else 31)
        self.b.emit(ROWS["OR" if binary else "AND"](safe, register, mask))
        return safe

    def number(self, register: Register, ty: Type) -> Register:
        """A float that is no NaN: which NaN an instruction gives is open, and its bits would tell."""
        same, safe = self.b.pred(), self.b.reg()
        self.b.setcc(Condition.EQ, same, register, register)
        self.b.sel(safe, same, register, self.constant(ty, 1))
        self.b.release(same)
        return safe

    def branch(self) -> None:
        """Skip some code where a predicate holds."""
        after = self.b.label("after")
        self.b.bra(after, self.predicate())
        self.body()
        self.b.place(after)

    def choice(self) -> None:
        """One of two pieces of code; both may write the same registers."""
        otherwise, after = self.b.label("else"), self.b.label("after")
        self.b.bra(otherwise, self.predicate())
        self.body()
        self.b.bra(after)
        self.b.place(otherwise)
        self.body()
        self.b.place(after)

    def loop(self) -> None:
        """Up to three rounds, by a constant or a register; lanes may differ; some leave or skip early."""
        uniform, leaves, skips = True, self.chance(4), self.chance(4)
        count: int | Register = self.draw(st.integers(0, 3))
        how = self.pick(["constant", "register", "lane"])
        if how != "constant":
            ty = self.pick([Type.U32, Type.U64])
            size = self.constant(ty, count)
            if how == "lane":
                uniform = False
                place = Register(GLOBAL if ty is Type.U64 else LANE)
                self.b.emit(ROWS["AND"](size, place, self.constant(ty, 3)))
            count = size
        else:
            ty = Type.U32
        counter = count if isinstance(count, Register) and self.chance(3) else self.b.reg()
        out, end = self.b.label("out"), self.b.label("next")
        self.b.begin_loop(counter, count)
        with self.block(uniform=uniform and not leaves and not skips):
            self.remember(counter, ty)  # the body may even write it: that does not change the rounds
            self.statement()
            if leaves:
                self.b.bra(out, self.predicate())
            if skips:
                self.b.bra(end, self.predicate())
            for _ in range(self.draw(st.integers(0, 2))):
                self.statement()
        self.b.place(end)
        self.b.end_loop()
        self.b.place(out)
        if sum(map(len, self.visible.values())) <= 24:
            self.remember(counter, ty)  # what the last round left, or zero after none

    def call(self) -> None:
        if not self.functions or (len(self.functions) < 2 and self.chance(2)):
            self.functions.append(self.b.label("f"))
        self.b.call(self.pick(self.functions))

    # --- between lanes -------------------------------------------------------------------------------

    def rotate(self) -> None:
        """Each lane gives a value to another lane of its block, through shared memory."""
        b, ty, size = self.b, self.pick(self.types), self.launch.block_size
        self.shared_bytes = max(self.shared_bytes, size * ty.size_bytes)
        other, source = b.reg(), self.source(ty)
        b.emit(ROWS["ADD"](other, self.slot, self.constant(Type.U32, self.draw(st.integers(0, size)))))
        b.emit(ROWS["REM"](other, other, self.constant(Type.U32, size)))
        b.bar_sync()  # whatever was there has been read
        b.sts(ty, Shared().at(self.slot, ty.size_bytes), source)
        b.bar_sync()
        b.lds(ty, self.target(ty), Shared().at(other, ty.size_bytes))
        b.bar_sync()

    def vote(self) -> None:
        """All lanes of a block combine values in one cell; what an atomic returns depends on order, and is left."""
        b, ty = self.b, self.pick([t for t in self.types if t in _ATOMIC_TYPES])
        self.shared_bytes = max(self.shared_bytes, ty.size_bytes)
        first, source, start = b.pred(), self.source(ty), self.source(ty)
        b.bar_sync()
        b.setcc(Condition.EQ, first, self.slot, self.constant(Type.U32, 0))
        with b.when(first):
            b.sts(ty, Shared(), start)
        b.release(first)
        b.bar_sync()
        b.atom(ty, self.pick(_COMMUTATIVE), b.reg(), Shared(), source)
        b.bar_sync()
        b.lds(ty, self.target(ty), Shared())
        b.bar_sync()
