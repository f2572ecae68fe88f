"""Scalars, and the code that computes them: what rows write when they say how one element comes about.

A scalar has a dtype and is held in a register, or is a number known now. Indices are int64 scalars that are known to be
at least `least`, which is not negative, and at most `most`: while that fits 32 bits they are held in U32 registers, in
which dividing is cheap and an address needs no check against overflow. An index that may be negative is held in I64.
A complex number is a `Pair` of such scalars, in registers as in memory; rows that say how they are computed ask for its
parts, and what any other code does with it is an error.

`ScalarCode` takes down instructions, in a prologue and a body; indices of elements (`indices.py`) and whole kernels
(`emit.py`) are built on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from eshkol.atlas.operands import GLOBAL, BufferOffset, Condition, Immediate, ReduceOperation, Register, Shared
from eshkol.atlas.types import Type
from eshkol.errors import Span, TensorError
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.schedule.kernels.code import TRUTH, IndexedPlace, Item, Virtual
from eshkol.support.extents import Extent, asked, larger, smaller

NARROW_LIMIT = 1 << 32
LANE = Register(GLOBAL)
INDEX = dtypes.int64
TYPES: dict[DType, Type] = {d: Type.of_dtype(d.numpy) for d in dtypes.ALL if not d.is_complex and not d.is_bool} | {
    dtypes.bool_: Type.U8
}
# How values lie in memory: elements of a type, and how many of them a value has. Complex numbers are pairs.
STORED: dict[DType, tuple[Type, int]] = {d: (ty, 1) for d, ty in TYPES.items()} | {
    d: (TYPES[d.real], 2) for d in dtypes.ALL if d.is_complex
}


class Scalar:
    """One value of one lane."""

    __slots__ = ("dtype", "e", "known", "least", "most", "origin", "past", "register", "serial")

    def __init__(
        self,
        e: ScalarCode,
        dtype: DType,
        register: Virtual | Register | None,
        *,
        known: Any = None,
        most: int | None = None,
        least: int = 0,
    ) -> None:
        self.e, self.dtype, self.register, self.known = e, dtype, register, known
        self.most, self.least = most, least  # `least` counts only where `most` is known
        self.serial = e.next_serial()
        self.origin: tuple[Any, Sequence[Any]] | None = None  # the `Read` and the index it came from
        self.past: tuple[Scalar, int] | None = None  # the index that it is so far beyond

    def __repr__(self) -> str:
        return f"<scalar {self.dtype} {self.register if self.known is None else self.known}>"

    def __add__(self, other: Any) -> Scalar:
        return self.e.arithmetic("ADD", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return self.e.arithmetic("ADD", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return self.e.arithmetic("SUB", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return self.e.arithmetic("SUB", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return self.e.arithmetic("MUL", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return self.e.arithmetic("MUL", other, self)

    def __floordiv__(self, other: Any) -> Scalar:
        return self.e.arithmetic("DIV", self, other)

    def __rfloordiv__(self, other: Any) -> Scalar:
        return self.e.arithmetic("DIV", other, self)

    def __mod__(self, other: Any) -> Scalar:
        return self.e.arithmetic("REM", self, other)

    def __rmod__(self, other: Any) -> Scalar:
        return self.e.arithmetic("REM", other, self)

    def __bool__(self) -> bool:
        raise TypeError("a scalar of a kernel has no value yet: use e.select instead of if")


class Pair(Scalar):
    """A complex number of one lane: its parts are scalars."""

    __slots__ = ("im", "re")

    def __init__(self, e: ScalarCode, re: Scalar, im: Scalar) -> None:
        super().__init__(e, re.dtype.complex, None)
        self.re, self.im = re, im


FOLDED = {
    "ADD": lambda x, y: x + y, "SUB": lambda x, y: x - y, "MUL": lambda x, y: x * y,
    "DIV": lambda x, y: x // y, "REM": lambda x, y: x % y,
}  # fmt: skip


def bounds(name: str, x: Scalar, y: Scalar) -> tuple[int, int | None]:
    """The least and the greatest number that an operation on indices can give; no greatest if it may be negative."""
    if x.most is None or y.most is None or (name == "SUB" and x.least < y.most):
        return 0, None
    if name == "ADD":
        return x.least + y.least, x.most + y.most
    if name == "SUB":
        return x.least - y.most, x.most - y.least
    if name == "MUL":
        return x.least * y.least, x.most * y.most
    divisor = y.known or 1
    if name == "DIV":
        return (x.least // divisor if y.known else 0), x.most // divisor
    if y.known and x.most // divisor == x.least // divisor:
        return x.least % divisor, x.most % divisor
    return 0, smaller(x.most, y.known - 1 if y.known else y.most)


def compared(condition: str, x: Scalar, y: Scalar) -> bool | None:
    """What a comparison of two indices gives, where their bounds decide it."""
    if x.most is None or y.most is None:
        return None
    if condition in ("EQ", "NE"):
        apart = x.most < y.least or y.most < x.least
        return None if not apart else condition == "NE"
    if condition in ("GT", "LE"):
        found = compared("LT", y, x)
        return found if found is None or condition == "GT" else not found
    if x.most < y.least or x.least >= y.most:
        return (x.most < y.least) is (condition == "LT")
    return None


class ScalarCode:
    """Instructions that compute scalars, for each of so many lanes."""

    def __init__(self, lanes: int) -> None:
        self._numbers, self._serials = itertools.count(), itertools.count(1)
        self.prologue: list[Item] = []
        self.body: list[Item] = []
        self._items = self.body
        self.used: set[str] = set()  # names of the inputs that are read
        self.needs_shape = False
        self.extents: dict[str, int] = {}  # scalar parameters that tell extents, and what they are told
        self._lane = Scalar(self, INDEX, LANE, most=max(lanes - 1, 0))
        self._lane.serial = 0
        self._lane_in: dict[Type, Virtual] = {}

    def next_serial(self) -> int:
        """Numbers scalars in the order they are made; those of the prologue depend on no loop and are before all."""
        return next(self._serials) if self._items is self.body else 0

    def record(self, name: str, *operands: Any, span: Span | None = None) -> None:
        self._items.append(Item(name, operands, span))

    def fresh(self, ty: Type) -> Virtual:
        return Virtual(next(self._numbers), ty)

    def emit(self, name: str, dtype: DType, operands: Sequence[Any], suffixes: Sequence[Any] = ()) -> Scalar:
        """An instruction that gives a scalar; suffixes (types) stand before its target, operands after it."""
        register = self.fresh(TYPES[dtype])
        self.record(name, *suffixes, register, *operands)
        return Scalar(self, dtype, register)

    @contextmanager
    def in_prologue(self) -> Iterator[None]:
        """Code written within it runs before everything else."""
        before, self._items = self._items, self.prologue
        try:
            yield
        finally:
            self._items = before

    def use(self, name: str) -> None:
        self.used.add(name)

    def note_shape(self) -> None:
        self.needs_shape = True

    @property
    def lane(self) -> Scalar:
        """The lane's number, which is the flat position of its element."""
        return self._lane

    # --- registers ---------------------------------------------------------------------------------------

    def register(self, scalar: Scalar, ty: Type | None = None) -> Virtual | Register:
        """The register that holds a scalar, in the type of its dtype unless another is asked for (of an index)."""
        if isinstance(scalar, Pair):
            raise TensorError(f"code for real numbers meets {scalar.dtype}")
        wanted = ty or TYPES[scalar.dtype]
        if scalar.known is not None:
            register = self.fresh(wanted)
            value = int(scalar.known) if wanted.is_integer else scalar.known
            self.record("MOV_IMM", register, Immediate(wanted, value))
            return register
        assert scalar.register is not None
        if isinstance(scalar.register, Register):
            self.note_shape()
            if wanted not in self._lane_in:
                with self.in_prologue():
                    self._lane_in[wanted] = self._converted(LANE, Type.U64, wanted)
            return self._lane_in[wanted]
        if scalar.register.ty is wanted:
            return scalar.register
        return self._converted(scalar.register, scalar.register.ty, wanted)

    def _converted(self, register: Virtual | Register, source: Type, target: Type) -> Virtual:
        found = self.fresh(target)
        self.record("CVT", source, target, found, register)
        return found

    def element(self, buffer: str, position: Scalar, ty: Type) -> Any:
        """The address of the element of a buffer at a flat position."""
        return self.address(BufferOffset(buffer), position, ty.size_bytes)

    def address(self, base: BufferOffset | Shared, position: Scalar, size: int) -> Any:
        """The address of the element at a flat position from a place in memory on, where each takes so many bytes."""
        if position.past is not None:
            position, beyond = position.past
            base = replace(base, offset=base.offset + beyond * size)
        if position.known is not None:
            return replace(base, offset=base.offset + position.known * size)
        own = position.register  # of the lane's number, which addresses take as it is
        found = own if isinstance(own, Register) else self.register(position, _index_type(position))
        return base.at(found, size) if isinstance(found, Register) else IndexedPlace(base, found, size)

    def load(self, name: str, base: BufferOffset | Shared, position: Scalar, dtype: DType) -> Scalar:
        """The element at a flat position from a place in memory on, by an instruction that loads."""
        ty, parts = STORED[dtype]
        if parts == 1:
            return self.emit(name, dtype, (self.address(base, position, ty.size_bytes),), (ty,))
        places = (replace(base, offset=base.offset + k * ty.size_bytes) for k in range(parts))
        re, im = (self.emit(name, dtype.real, (self.address(p, position, dtype.size),), (ty,)) for p in places)
        return Pair(self, re, im)

    def store(self, name: str, base: BufferOffset | Shared, position: Scalar, value: Scalar) -> None:
        """Put a scalar there, by an instruction that stores."""
        ty, size = STORED[value.dtype][0], value.dtype.size
        for k, part in enumerate(self.parts(value)):
            place = replace(base, offset=base.offset + k * ty.size_bytes)
            self.record(name, ty, self.address(place, position, size), self.register(part))

    # --- complex numbers ---------------------------------------------------------------------------------

    def pair(self, re: Scalar, im: Scalar) -> Scalar:
        """The complex number of two parts."""
        return Pair(self, re, im)

    def parts(self, scalar: Scalar) -> tuple[Scalar, ...]:
        """A scalar in as many as it lies in memory: the parts of a complex number, or itself."""
        return (scalar.re, scalar.im) if isinstance(scalar, Pair) else (scalar,)

    def bits(self, scalar: Scalar, dtype: DType) -> Scalar:
        """The same bits as another dtype of that width."""
        return self.emit("BITCAST", dtype, (self.register(scalar),), (TYPES[scalar.dtype], TYPES[dtype]))

    def signed(self, size: Scalar, sign: Scalar) -> Scalar:
        """A float that is not negative, with the sign of another: also that of zeros."""
        whole = dtypes.uint64 if size.dtype.bits == 64 else dtypes.uint32
        mine = self.op("AND", self.bits(sign, whole), 1 << (whole.bits - 1))
        return self.bits(self.op("OR", self.bits(size, whole), mine), size.dtype)

    def _partwise(self, function: Callable[..., Scalar], *scalars: Scalar) -> Scalar:
        re, im = (function(*parts) for parts in zip(*map(self.parts, scalars), strict=True))
        return Pair(self, re, im)

    # --- scalars -----------------------------------------------------------------------------------------

    def constant(self, value: Any, dtype: DType) -> Scalar:
        """A number of a dtype."""
        if dtype.is_complex:
            whole = (
                value if isinstance(value, complex) else complex(value, value if value == 0 else 0.0)
            )  # of -0.0, both
            return Pair(self, *(self.constant(part, dtype.real) for part in (whole.real, whole.imag)))
        if dtype.is_bool:
            value = bool(value)
        elif type(value) is Extent and dtype.is_integer and 0 <= value < NARROW_LIMIT:
            told = self.extent(value)  # what depends on a size is no constant
            return told if dtype is INDEX else self.convert(told, dtype)
        elif dtype.is_integer:
            value = int(value)
        if dtype is INDEX and value >= 0:
            return Scalar(self, dtype, None, known=value, most=value, least=value)
        return Scalar(self, dtype, None, known=value)

    def number(self, value: int) -> Scalar:
        """A number as an index."""
        return self.constant(value, INDEX)

    def extent(self, value: int) -> Scalar:
        """A number that the program is told when it is launched, so that it serves others too."""
        if value >= NARROW_LIMIT:
            return self.constant(asked(value, "it is too large"), INDEX)
        name = f"s{len(self.extents)}"
        self.extents[name] = value
        with self.in_prologue():
            register = self.fresh(Type.U32)
            self.record("LDG", Type.U32, register, BufferOffset(name))
            return Scalar(self, INDEX, register, most=larger(value, 1))  # at most 0 would be known, and not be told

    def _scalar(self, given: Any, dtype: DType) -> Scalar:
        return given if isinstance(given, Scalar) else self.constant(given, dtype)

    def _alike(self, given: Sequence[Any]) -> list[Scalar]:
        """Operands of one dtype; Python numbers take that of the others."""
        dtype = next((x.dtype for x in given if isinstance(x, Scalar)), INDEX)
        found = [self._scalar(x, dtype) for x in given]
        if any(x.dtype is not dtype for x in found):
            raise TensorError(f"scalars of dtypes {', '.join(str(x.dtype) for x in found)} meet in a row's code")
        return found

    def op(self, name: str, *scalars: Any) -> Scalar:
        """An instruction of Atlas, by its mnemonic, on scalars of one dtype; complex ones are added and multiplied."""
        found = self._alike(scalars)
        if isinstance(found[0], Pair):
            return self._complex_op(name, found)
        return self.emit(name, found[0].dtype, [self.register(x) for x in found])

    def _complex_op(self, name: str, given: Sequence[Any]) -> Scalar:
        """What reductions and scans do with complex numbers."""
        if name in ("ADD", "SUB", "NEG"):
            return self._partwise(lambda *parts: self.op(name, *parts), *given)
        if name != "MUL":
            raise TensorError(f"{name} is not for complex numbers")
        x, y = given
        return Pair(self, x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)

    def arithmetic(self, name: str, x: Any, y: Any) -> Scalar:
        """x + y and its kin. Indices stay narrow as long as they fit; they are divided by what is not 0."""
        one, other = self._alike((x, y))
        if one.dtype is not INDEX:
            return self.op(name, one, other)
        if one.known is not None and other.known is not None:
            return self.number(FOLDED[name](one.known, other.known))
        if (name in ("ADD", "SUB") and other.known == 0) or (name in ("MUL", "DIV") and other.known == 1):
            return one
        if (name == "REM" and other.known == 1) or (name == "MUL" and other.known == 0):
            return self.number(0)
        if one.known == 0 and name == "ADD":
            return other
        least, most = bounds(name, one, other)
        narrow = most is not None and all((x or 0) < NARROW_LIMIT for x in (one.most, other.most, most))
        ty = Type.U32 if narrow else Type.I64
        register = self.fresh(ty)
        self.record(name, register, self.register(one, ty), self.register(other, ty))
        return Scalar(self, INDEX, register, most=most, least=least)

    def convert(self, scalar: Scalar, dtype: DType) -> Scalar:
        """The scalar in another dtype: floats to integers truncate and saturate, to bool is `!= 0`."""
        if scalar.dtype is dtype:
            return scalar
        if dtype.is_bool:
            return self.compare("NE", scalar, 0)
        if isinstance(scalar, Pair):
            return self._partwise(lambda part: self.convert(part, dtype.real), scalar)
        if dtype.is_complex:
            return Pair(self, self.convert(scalar, dtype.real), self.constant(0, dtype.real))
        return self.emit("CVT", dtype, (self.register(scalar),), (TYPES[scalar.dtype], TYPES[dtype]))

    def _test(self, condition: str, x: Any, y: Any) -> None:
        """Put a comparison into the predicate, to be used by the next instruction."""
        one, other = self._alike((x, y))
        ty = TYPES[one.dtype]
        if one.dtype is INDEX and _index_type(one) is _index_type(other) is Type.U32:
            ty = Type.U32
        self.record("SETcc", Condition[condition], TRUTH, self.register(one, ty), self.register(other, ty))

    def compare(self, condition: str, x: Any, y: Any) -> Scalar:
        """Whether x EQ, NE, LT, LE, GT or GE y, as a bool."""
        one, other = self._alike((x, y))
        if isinstance(one, Pair):
            return self._compare_parts(condition, one, other)
        decided = compared(condition, one, other) if one.dtype is INDEX else None
        if decided is not None:
            return self.constant(decided, dtypes.bool_)
        yes, no = (self.register(self.constant(v, dtypes.bool_)) for v in (True, False))
        self._test(condition, x, y)
        return self.emit("SEL", dtypes.bool_, (TRUTH, yes, no))

    def _compare_parts(self, condition: str, one: Scalar, other: Scalar) -> Scalar:
        joining = {"EQ": "AND", "NE": "OR"}.get(condition)
        if joining is None:
            raise TensorError(f"complex numbers are not in order: {condition}")
        both = zip(self.parts(one), self.parts(other), strict=True)
        return self.op(joining, *(self.compare(condition, *parts) for parts in both))

    def negation(self, truth: Scalar) -> Scalar:
        """Whether a bool does not hold."""
        return self.op("XOR", truth, True)

    def select(self, condition: Scalar, x: Any, y: Any) -> Scalar:
        """x where the condition holds, else y; both are computed."""
        one, other = self._alike((x, y))
        if condition.known is not None:
            return one if condition.known else other
        if isinstance(one, Pair):
            return self._partwise(lambda *parts: self.select(condition, *parts), one, other)
        ty, most = TYPES[one.dtype], None
        if one.dtype is INDEX and one.most is not None and other.most is not None:
            most = larger(one.most, other.most)
            ty = Type.U32 if most < NARROW_LIMIT else ty
        operands = self.register(one, ty), self.register(other, ty)
        self._test("NE", condition, False)
        register = self.fresh(ty)
        self.record("SEL", register, TRUTH, *operands)
        return Scalar(self, one.dtype, register, most=most)

    def both(self, one: Scalar, other: Scalar) -> Scalar:
        """Whether two bools hold."""
        if one.known is not None or other.known is not None:
            known, open_one = (one, other) if one.known is not None else (other, one)
            return open_one if known.known else known
        return self.op("AND", one, other)

    # --- indices -----------------------------------------------------------------------------------------

    def digit(self, flat: Scalar, stride: int, extent: int) -> Scalar:
        """(flat // stride) % extent, where that can be anything else than flat // stride."""
        quotient = flat // stride
        if quotient.most is not None and quotient.most < extent:
            return quotient
        return quotient % extent

    def within(self, place: Scalar, extent: int) -> Scalar:
        """A place that lies in an extent as it is, and any other at one of its ends."""
        if place.most is not None and place.most < extent:
            return place
        given, register = self.register(place), self.fresh(Type.I64)
        self.record("MAX", register, given, self.register(self.number(0)))
        self.record("MIN", register, register, self.register(self.number(extent - 1)))
        ty = Type.U32 if extent <= NARROW_LIMIT else Type.I64
        found = register if ty is Type.I64 else self._converted(register, Type.I64, ty)
        return Scalar(self, INDEX, found, most=extent - 1)

    def at_most(self, place: Scalar, most: int) -> Scalar:
        """An index that is known to be no more than `most`."""
        exact = type(most) is int and type(place.most) is int  # else what is smaller may depend on the size
        if most >= NARROW_LIMIT or (exact and place.most <= most):  # type: ignore[operator]
            return place
        return Scalar(self, INDEX, self.register(place, Type.U32), most=most)

    def beyond(self, place: Scalar, distance: int) -> Scalar:
        """An index so far beyond another. Addresses say so, and machines see that what lies there are neighbours."""
        found = place + distance
        if distance and found.known is None:
            found.past = place, distance
        return found

    # --- loops -------------------------------------------------------------------------------------------

    @contextmanager
    def counted(self, extent: int | Scalar) -> Iterator[Scalar]:
        """A loop around what is written within; gives its counter."""
        if isinstance(extent, Scalar) and extent.known is not None:
            extent = int(extent.known)
        elif type(extent) is Extent:
            extent = self.number(extent)
        if isinstance(extent, Scalar) and extent.most is not None and extent.most < NARROW_LIMIT:
            counter = self.fresh(Type.U32)
            rounds: Any = self.register(extent, Type.U32)
            index = Scalar(self, INDEX, counter, most=larger(extent.most - 1, 0))
        elif isinstance(extent, Scalar):
            counter = self.fresh(Type.I64)
            rounds = self.register(extent, Type.I64)
            index = Scalar(self, INDEX, counter)
        elif extent < NARROW_LIMIT:
            counter, rounds = self.fresh(Type.U32), extent
            index = Scalar(self, INDEX, counter, most=max(extent - 1, 0))
        else:
            counter = self.fresh(Type.I64)
            rounds = self.register(self.number(extent))
            index = Scalar(self, INDEX, counter, most=extent - 1)
        self.record("LOOP", counter, rounds)
        yield index
        self.record("ENDLOOP")

    def only_if(self, truth: Scalar) -> AbstractContextManager[Scalar]:
        """Around code for the lanes for which something holds: a loop of one round or none."""
        return self.counted(self.at_most(self.convert(truth, INDEX), 1))

    def variable(self, scalar: Scalar) -> Scalar:
        """A scalar in a register of its own, which `assign` may change."""
        if isinstance(scalar, Pair):
            return self._partwise(self.variable, scalar)
        register = self.fresh(TYPES[scalar.dtype])
        self.record("MOV", register, self.register(scalar))
        return Scalar(self, scalar.dtype, register)

    def assign(self, variable: Scalar, value: Scalar) -> None:
        """Give a variable another value."""
        for one, part in zip(self.parts(variable), self.parts(value), strict=True):
            self.record("MOV", one.register, self.register(part))

    def accumulate(self, variable: Scalar, operation: str, term: Scalar) -> None:
        """Take a term into a variable by Sum, Product, Min or Max: a machine may take the terms of a loop in any order.

        Min and Max of floats are NaN as soon as a term is. The variable may be read again only after the loop.
        """
        _, given = self._alike((variable, term))
        if isinstance(given, Pair) and operation != "Sum":  # parts of a product depend on each other
            self.assign(variable, self.op(ReduceOperation[operation].value, variable, given))
            return
        for one, part in zip(self.parts(variable), self.parts(given), strict=True):
            self.record("ACC", ReduceOperation[operation], one.register, one.register, self.register(part))

    def loop(self, extent: int | Scalar, state: Sequence[Any], body: Callable[..., Any]) -> list[Scalar]:
        """`state = body(j, state)` for j = 0 … extent-1, one after another; gives the last state."""
        variables = [self.variable(self._scalar(s, INDEX)) for s in state]
        with self.counted(extent) as j:
            new = list(body(j, list(variables)))
            if len(new) != len(variables):
                raise TensorError(f"the body of a loop gives {len(new)} values for a state of {len(variables)}")
            values = [self._scalar(value, variable.dtype) for variable, value in zip(variables, new, strict=True)]
            for variable, value in zip(variables, values, strict=True):
                if value.dtype is not variable.dtype:
                    raise TensorError(f"a loop's state changes from {variable.dtype} to {value.dtype}")
            # All new values are fetched before any is stored: a body may exchange two parts of the state.
            values = [self.variable(v) if v in variables else v for v in values]
            for variable, value in zip(variables, values, strict=True):
                self.assign(variable, value)
        return variables

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is written into the body within it is forgotten."""
        length = len(self.body)
        yield
        del self.body[length:]


def _index_type(index: Scalar) -> Type:
    """The type in which an index is held, or can be had cheaply."""
    return Type.U32 if index.most is not None and index.most < NARROW_LIMIT else Type.I64
