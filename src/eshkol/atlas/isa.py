"""The shape of the instruction table: operand fields, rows (`Opcode`) and instructions.

A row states everything about one instruction: its mnemonic, its operand fields with their types, what it means, how an
extension expands into base instructions, and one line of documentation. The builder, the text and JSON forms, the
validator, the reference interpreter, the docs page and the tests read rows; none of them names an instruction of its
own accord. The rows stand in `atlas/table/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from eshkol.atlas.operands import (
    ADDRESS_MODES,
    Address,
    Choice,
    ClassOffset,
    Immediate,
    Indexed,
    Label,
    Predicate,
    Register,
    StaticAddress,
    address_register,
    shortened,
)
from eshkol.atlas.types import INDEX_TYPES, NARROW_INTEGERS, Array, Type
from eshkol.errors import IsaError, Span


class Kind(Enum):
    """What an operand is. The text and JSON forms and the checks follow from this alone."""

    DEF = auto()  # register written
    USE = auto()  # register read
    PDEF = auto()  # predicate written
    PUSE = auto()  # predicate read
    LABEL = auto()
    POOL = auto()  # name of a pool
    READ = auto()  # address read
    WRITE = auto()  # address written
    UPDATE = auto()  # address read and written
    TRIPS = auto()  # a count, or a register that holds one
    IMMEDIATE = auto()
    TYPE = auto()
    CHOICE = auto()
    COUNT = auto()
    REAL = auto()
    FLAG = auto()
    COUNTS = auto()  # a list of counts
    PAIRS = auto()  # a list of pairs of counts

    __hash__ = object.__hash__  # members are single objects; Enum's own hash is a slow Python call


MEMORY_KINDS = frozenset({Kind.READ, Kind.WRITE, Kind.UPDATE})
READING_KINDS = MEMORY_KINDS | {Kind.USE, Kind.TRIPS}  # whose operands may read a register
SUFFIX_KINDS = frozenset({Kind.TYPE, Kind.CHOICE})  # written after the mnemonic: CVT.F32.I32
NAMED_KINDS = frozenset({Kind.COUNT, Kind.REAL, Kind.FLAG, Kind.COUNTS, Kind.PAIRS})  # written m=16
COUNT_LIMIT = 1 << 48  # no count or offset is larger; keeps every address computation inside 64 bits
LIST_LIMIT = 64  # no list operand is longer


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()

# A register's type: a fixed Type, the row's variable "T", the name of a TYPE or IMMEDIATE operand whose type
# it is, or one of these sets.
NAMED_TYPE_SETS: Mapping[str, frozenset[Type]] = {"index": INDEX_TYPES, "integer": NARROW_INTEGERS}


@dataclass(frozen=True, slots=True)
class Field:
    """One operand of a row."""

    name: str
    kind: Kind
    ty: Type | str | None = None  # of the register, or of the elements in memory
    default: Any = REQUIRED
    low: int = 0  # least and greatest value of a COUNT
    high: int = COUNT_LIMIT
    choices: type[Choice] | None = None
    shape: Callable[[Instruction], tuple[int, ...]] | None = None  # of an array operand
    read_if: Callable[[Instruction], bool] | None = None  # an UPDATE that is sometimes only a WRITE
    # Where the operand's array begins, in elements beyond its address (KVCacheUpdate writes in mid-cache).
    start: Callable[[Instruction], int] | None = None

    @property
    def is_named(self) -> bool:
        """Whether it is written with its name: m=16, and addresses that may be left out, bias=[x]."""
        return self.kind in NAMED_KINDS or (self.kind in MEMORY_KINDS and self.default is None)


class Group(Enum):
    """The chapters of the table, in the order of the documentation."""

    DATA = "Data movement"
    ARITHMETIC = "Arithmetic"
    LOGIC = "Logic"
    CONTROL = "Control flow"
    SYNC = "Synchronization"
    ATLAS = "Atlas-specific"
    REDUCTION = "Reductions"
    TRANSCENDENTAL = "Transcendentals"
    POOL = "Pool storage"
    HIGHER_ORDER = "Higher-order"
    SIMPLE = "Simple extensions"
    COMPLEX = "Complex extensions"
    ADVANCED = "Advanced extensions"


class Control(Enum):
    """How an instruction moves the program counter."""

    NEXT = auto()
    BRANCH = auto()
    CALL = auto()
    RETURN = auto()
    EXIT = auto()
    LOOP = auto()
    ENDLOOP = auto()
    WAIT = auto()  # goes on to the next, once all lanes of the block or launch have come


class LaneFault(Exception):
    """Raised by a meaning when some lanes cannot go on; the interpreter names instruction and lane."""

    def __init__(self, lanes: Array, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.lanes = lanes  # a mask over the values the meaning was given
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Values:
    """Meaning of a register instruction: `fn(instruction, type, *inputs)` on arrays, one value a lane.

    16-bit floats arrive as F32 and the result is rounded once, unless `raw`.
    """

    fn: Callable[..., Array]
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Arrays:
    """Meaning of an array instruction: `fn(instruction, *inputs)` gives the outputs, in field order.

    Memory operands arrive as arrays of their shape, floats as F64; outputs are rounded once.
    """

    fn: Callable[..., Sequence[Array]]


@dataclass(frozen=True, slots=True)
class Effect:
    """Meaning of an instruction that touches the machine: `fn(machine, instruction)`."""

    fn: Callable[[LaneMachine, Instruction], None]


class LaneMachine(Protocol):
    """What an `Effect` may ask of the lanes that execute it together."""

    def load(self, dst: Register, src: Address, ty: Type) -> None: ...
    def store(self, dst: Address, src: Register, ty: Type) -> None: ...
    def atomic(self, instruction: Instruction) -> None: ...
    def special(self, instruction: Instruction) -> None: ...
    def branch(self, target: Label, pred: Predicate | None) -> None: ...
    def call(self, target: Label) -> None: ...
    def ret(self) -> None: ...
    def exit(self) -> None: ...
    def loop(self, counter: Register, iterations: int | Register) -> None: ...
    def end_loop(self) -> None: ...
    def barrier(self) -> None: ...
    def grid_barrier(self) -> None: ...
    def exchange_lanes(self, instruction: Instruction) -> None: ...
    def multiply_fragments(self, instruction: Instruction) -> None: ...
    def load_fragments(self, instruction: Instruction) -> None: ...
    def begin_copy(self, instruction: Instruction) -> None: ...
    def commit_copies(self) -> None: ...
    def wait_for_copies(self, pending: int) -> None: ...
    def fence(self) -> None: ...
    def neighbour(self, cls: Register, k: int, value: Register, ty: Type, *, write: bool) -> None: ...
    def accumulate(self, dst: Register, src: Register, cls: int) -> None: ...
    def read_phase(self, dst: Register, cls: int) -> None: ...
    def write_phase(self, src: Register, cls: int) -> None: ...
    def pool_alloc(self, pool: str, size: int) -> None: ...
    def pool_free(self, pool: str) -> None: ...
    def exchange(self, instruction: Instruction) -> None: ...


class CodeBuilder(Protocol):
    """What an expansion may ask of the builder that collects its code; `ProgramBuilder` is one."""

    instructions: list[Instruction]
    span: Span | None

    def __getattr__(self, method: str) -> Callable[..., Any]: ...  # one for each row
    def emit(self, instruction: Instruction) -> Any: ...
    def take(self, *operands: Register | Predicate) -> None: ...
    def reg(self, ty: Type | None = None) -> Register: ...
    def pred(self) -> Predicate: ...
    def release(self, *operands: Register | Predicate) -> None: ...
    def passing(self) -> AbstractContextManager[None]: ...
    def type_of(self, register: Register) -> Type: ...
    def constant(self, ty: Type, value: int | float) -> Register: ...
    def label(self, hint: str = ...) -> Label: ...
    def place(self, label: Label | str) -> Label: ...
    def loop(self, iterations: int | Register, ty: Type = ...) -> AbstractContextManager[Register]: ...
    def when(self, pred: Predicate) -> AbstractContextManager[None]: ...
    def element(self, address: Address, index: Register, ty: Type) -> Address: ...


@dataclass(frozen=True, eq=False)
class Opcode:
    """One row of the table."""

    name: str
    group: Group
    doc: str
    fields: tuple[Field, ...]
    meaning: Values | Arrays | Effect
    types: frozenset[Type] = frozenset()  # what the variable T, or the operand `ty`, may be
    expand: Callable[[CodeBuilder, Instruction], None] | None = None
    check: Callable[[Instruction], None] | None = None  # legality beyond kinds and types
    control: Control = Control.NEXT
    default_type: Type | None = None  # T where no operand fixes it
    traps: bool = False  # may fail at run time even on initialised operands of the right types
    zero_trap: str | None = None  # the operand whose being an integer zero is the only way it can fail
    in_place: bool = False  # an output may be the same place as an input
    method: str = ""  # the builder method

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def positions(self) -> dict[str, int]:
        return {f.name: k for k, f in enumerate(self.fields)}

    @cached_property
    def places(self) -> dict[Kind, tuple[int, ...]]:
        """The positions of the operands of each kind."""
        return {kind: tuple(k for k, f in enumerate(self.fields) if f.kind is kind) for kind in Kind}

    @cached_property
    def touching(self) -> tuple[tuple[int, ...], ...]:
        """The positions of operands that read registers, write them, read predicates and write them."""
        reading = tuple(k for k, f in enumerate(self.fields) if f.kind in READING_KINDS)
        return reading, self.places[Kind.DEF], self.places[Kind.PUSE], self.places[Kind.PDEF]

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The positions of the values it computes from: registers and predicates, in field order."""
        return tuple(k for k, f in enumerate(self.fields) if f.kind in (Kind.USE, Kind.PUSE))

    @cached_property
    def deciding(self) -> tuple[int, ...]:
        """The positions of operands that are types, or have one: with the types read, they decide those written."""
        return tuple(k for k, f in enumerate(self.fields) if f.kind in (Kind.TYPE, Kind.IMMEDIATE))

    @cached_property
    def addressed(self) -> tuple[int, ...]:
        """The positions of the operands that are addresses."""
        return tuple(k for k, f in enumerate(self.fields) if f.kind in MEMORY_KINDS)

    @cached_property
    def typings(self) -> dict[tuple[Any, ...], tuple[Type, ...]]:
        """What `resolve_types` has found: the types written, by those that decide them. Only what is legal is kept."""
        return {}

    @cached_property
    def memory(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if f.kind in MEMORY_KINDS)

    @property
    def is_extension(self) -> bool:
        return self.expand is not None

    @cached_property
    def writes_memory(self) -> bool:
        return any(f.kind in (Kind.WRITE, Kind.UPDATE) for f in self.fields)

    def __call__(self, *args: Any, span: Span | None = None, **named: Any) -> Instruction:
        """An instruction of this row, from operands by position or by name."""
        if len(args) > len(self.fields):
            raise IsaError(f"{self.name} takes at most {len(self.fields)} operands, not {len(args)}", span=span)
        values: list[Any] = []
        for k, f in enumerate(self.fields):
            if k < len(args):
                value = args[k]
                if f.name in named:
                    raise IsaError(f"{self.name} was given '{f.name}' twice", span=span)
            else:
                value = named.pop(f.name, f.default)
            if value is REQUIRED:
                raise IsaError(f"{self.name} needs the operand '{f.name}'", span=span, hint=usage(self))
            values.append(_check_operand(self, f, value, span))
        unknown = [name for name in named if name not in self.positions]
        if unknown:
            raise IsaError(f"{self.name} has no operand '{unknown[0]}'", span=span, hint=usage(self))
        return Instruction(self, tuple(values), span)


def usage(op: Opcode) -> str:
    """The operands of a row in one line, for hints and help."""
    return f"{op.name} " + ", ".join(f.name if f.default is REQUIRED else f"[{f.name}]" for f in op.fields)


class Touched(NamedTuple):
    """What an instruction reads and writes: registers alone, and with the predicates after them."""

    reads: tuple[Register, ...]
    writes: tuple[Register, ...]
    slots_read: tuple[Register | Predicate, ...]
    slots_written: tuple[Register | Predicate, ...]


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Instruction:
    """A row with its operands. `instruction.dst` reads the operand named dst.

    Equal instructions have the same text: NaN is equal to itself and 0.0 is not -0.0; spans do not count.
    """

    op: Opcode
    operands: tuple[Any, ...]
    span: Span | None = None
    _touched: Touched | None = field(default=None, init=False, repr=False)  # found once, asked for again and again

    def __init__(self, op: Opcode, operands: tuple[Any, ...], span: Span | None = None) -> None:
        _set_op(self, op)
        _set_operands(self, operands)
        _set_span(self, span)
        _set_touched(self, None)

    def _key(self) -> tuple[Any, ...]:
        reals = self.op.places[Kind.REAL]
        if not reals:
            return self.operands
        return tuple(v.hex() if k in reals else v for k, v in enumerate(self.operands))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instruction) and self.op is other.op and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.op, self._key()))

    def __getattr__(self, name: str) -> Any:
        position = self.op.positions.get(name)
        if position is None:
            raise AttributeError(f"{self.op.name} has no operand '{name}'")
        return self.operands[position]

    def with_operands(self, changes: Callable[[Field, Any], Any]) -> Instruction:
        """The same instruction with every operand passed through `changes`."""
        return Instruction(self.op, tuple(map(changes, self.op.fields, self.operands)), self.span)

    def with_span(self, span: Span | None) -> Instruction:
        """The same instruction, made at another place."""
        return Instruction(self.op, self.operands, span)

    def of_kind(self, *kinds: Kind) -> list[Any]:
        """The operands of these kinds that are present, in field order."""
        places = self.op.places
        if len(kinds) == 1:
            positions: Sequence[int] = places[kinds[0]]
        else:
            positions = sorted(k for kind in kinds for k in places[kind])
        return [v for k in positions if (v := self.operands[k]) is not None]

    @property
    def touched(self) -> Touched:
        """The registers and predicates it reads and writes."""
        found = self._touched
        if found is None:
            _set_touched(self, found := self._find_touched())
        return found

    def _find_touched(self) -> Touched:
        operands, (reading, writing, asking, telling) = self.operands, self.op.touching
        reads = []
        for k in reading:
            v = operands[k]
            register = v if isinstance(v, Register) else address_register(v)  # of a count there is none
            if register is not None:
                reads.append(register)
        writes, asked = tuple([operands[k] for k in writing]), [operands[k] for k in asking if operands[k] is not None]
        told = (*writes, *[operands[k] for k in telling]) if telling else writes
        return Touched(tuple(reads), writes, (*reads, *asked), told)

    def reads(self) -> tuple[Register, ...]:
        """Every register read: values, loop counts, and indices of addresses."""
        return self.touched.reads

    def writes(self) -> tuple[Register, ...]:
        return self.touched.writes

    @property
    def is_uniform(self) -> bool:
        """Whether no address depends on a register: every lane means the same memory."""
        return all(address_register(a) is None for a in self.of_kind(*MEMORY_KINDS))


# `object.__setattr__` takes twice as long, and there are many instructions.
_set_op, _set_operands, _set_span, _set_touched = (getattr(Instruction, f.name).__set__ for f in fields(Instruction))


def element_type(instruction: Instruction, f: Field) -> Type:
    """The type of the elements that a memory operand addresses."""
    spec = f.ty
    if isinstance(spec, Type):
        return spec
    assert isinstance(spec, str)
    ty = getattr(instruction, spec)
    assert isinstance(ty, Type)
    return ty


def described_types(allowed: frozenset[Type]) -> str:
    """Types in words."""
    if all(t.is_float for t in allowed):
        return "a float"
    if all(t.is_integer for t in allowed):
        return "an integer" if any(t.is_wide for t in allowed) else "an integer of at most 64 bits"
    return "one of " + " ".join(t.name for t in Type if t in allowed)


_PYTHON_TYPES: Mapping[Kind, tuple[tuple[type, ...], str]] = {
    Kind.DEF: ((Register,), "a register"),
    Kind.USE: ((Register,), "a register"),
    Kind.PDEF: ((Predicate,), "a predicate"),
    Kind.PUSE: ((Predicate,), "a predicate"),
    Kind.LABEL: ((Label,), "a label"),
    Kind.POOL: ((str,), "the name of a pool"),
    Kind.READ: (ADDRESS_MODES, "an address"),
    Kind.WRITE: (ADDRESS_MODES, "an address"),
    Kind.UPDATE: (ADDRESS_MODES, "an address"),
    Kind.TRIPS: ((int, Register), "a count or a register"),
    Kind.IMMEDIATE: ((Immediate,), "a typed constant"),
    Kind.TYPE: ((Type,), "a type"),
    Kind.COUNT: ((int,), "an integer"),
    Kind.REAL: ((float, int), "a number"),
    Kind.FLAG: ((bool,), "true or false"),
    Kind.COUNTS: ((tuple, list), "a list of integers"),
    Kind.PAIRS: ((tuple, list), "a list of pairs of integers"),
}


def _check_operand(op: Opcode, f: Field, value: Any, span: Span | None) -> Any:
    """The operand in its normal form; anything that does not fit the field is an IsaError."""
    kind = f.kind
    if type(value) is Register and (kind is Kind.USE or (kind is Kind.DEF and not value.is_special)):
        return value  # most operands are these

    def fail(wanted: str) -> IsaError:
        return IsaError(
            f"{op.name}: operand '{f.name}' must be {wanted}, not {shortened(value)}", span=span, hint=usage(op)
        )

    if value is None and f.default is None:
        return None
    if f.kind is Kind.CHOICE:
        assert f.choices is not None
        if isinstance(value, str) and value in f.choices.__members__:
            return f.choices[value]
        if isinstance(value, Choice) and not isinstance(value, f.choices):
            raise fail(f"of {f.choices.__name__}, and it is of {type(value).__name__}")
        if not isinstance(value, f.choices):
            raise fail("one of " + " ".join(c.name for c in f.choices))
        return value
    accepted, words = _PYTHON_TYPES[f.kind]
    if not isinstance(value, accepted) or (isinstance(value, bool) and f.kind is not Kind.FLAG):
        raise fail(words)
    if f.kind is Kind.TYPE and f.name == "ty" and value not in op.types:
        raise fail(described_types(op.types))
    if f.kind in (Kind.COUNT, Kind.TRIPS) and isinstance(value, int):
        high = min(f.high, (1 << 32) - 1) if f.kind is Kind.TRIPS else f.high
        if not f.low <= value <= high:
            raise fail(f"between {f.low} and {high}")
    if f.kind is Kind.REAL:
        try:
            return float(value)
        except OverflowError:
            raise fail("a number that F64 can hold") from None
    if f.kind is Kind.COUNTS:
        return _check_counts(value, fail)
    if f.kind is Kind.PAIRS:
        pairs = tuple(_check_counts(pair, fail) if isinstance(pair, tuple | list) else () for pair in value)
        if any(len(pair) != 2 for pair in pairs):
            raise fail(words)
        return pairs
    if f.kind is Kind.DEF and value.is_special:
        raise IsaError(
            f"{op.name} cannot write the special register {value}",
            span=span,
            hint="r252 to r255 are read-only; use another register",
        )
    if f.kind in MEMORY_KINDS:
        _check_address(op, value, fail)
    return value


def _check_counts(value: Sequence[Any], fail: Callable[[str], IsaError]) -> tuple[int, ...]:
    counts = tuple(value)
    if len(counts) > LIST_LIMIT or not all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= COUNT_LIMIT for v in counts
    ):
        raise fail(f"a list of at most {LIST_LIMIT} integers from 0 to {COUNT_LIMIT}")
    return counts


def _check_address(op: Opcode, address: Any, fail: Callable[[str], IsaError]) -> None:
    base = address.base if isinstance(address, Indexed) else address
    if isinstance(base, StaticAddress) and not 0 <= base.offset <= COUNT_LIMIT:
        raise fail(f"an address with an offset from 0 to {COUNT_LIMIT}")
    if isinstance(base, ClassOffset) and abs(base.class_id) > COUNT_LIMIT:  # the validator says which classes there are
        raise fail("an address in a class that exists")
    if isinstance(address, Indexed) and not (isinstance(base, StaticAddress) and 1 <= address.scale <= 1 << 20):
        raise fail("an address with a scale from 1 to 1048576")
