"""The emitter `e` with which rows write the scalar code of a kernel (see `Pull` and `Push` in `ops/row.py`).

Comes in: calls of a row's code. Goes out: an Atlas program in which each lane computes one element (or one row of
them) of the result; lanes beyond the count, a scalar parameter `n`, end at once. Code is straight lines and counted
loops. Whether anything in it depends on the shapes is noted: what does not serves every size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import BufferOffset, Condition, Immediate, ReduceOperation, Register, Shared
from eshkol.atlas.program import Program
from eshkol.atlas.types import Type
from eshkol.errors import Span, TensorError
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.cache import Cache
from eshkol.schedule.kernels.code import TRUTH, Item, Virtual, put
from eshkol.schedule.kernels.reads import CARRIED, INDEX, LANE, BlockMemory, Here, Number, Read, Unraveled, Write, place
from eshkol.schedule.kernels.scalars import FOLDED, NARROW_LIMIT, TYPES, Scalar, bounds, compared

_programs = Cache()  # by their code

INDEX_TRAP = "<index>"  # the span of the instruction that stops a launch because of an index; its text is the extent


class Emitter:
    """Writes one kernel. `shape` is what lanes are spread over: the result's, or that of its rows."""

    def __init__(self, shape: Shape) -> None:
        self._numbers, self._serials = itertools.count(), itertools.count(1)
        self.prologue: list[Item] = []
        self.body: list[Item] = []
        self._items = self.body
        self.used: set[str] = set()  # names of the inputs that are read
        self.needs_shape = False
        self.shared_memory = 0  # bytes that the lanes of a block share
        self.extents: dict[str, int] = {}  # scalar parameters that tell extents, and what they are told
        self._lane = Scalar(self, INDEX, LANE, most=max(count(shape) - 1, 0))
        self._lane.serial = 0
        self._lane_in: dict[Type, Virtual] = {}
        self.here = Here(self, shape)

    # --- code ---------------------------------------------------------------------------------------

    def next_serial(self) -> int:
        """Numbers scalars in the order they are made; those of the prologue depend on no loop and are before all."""
        return next(self._serials) if self._items is self.body else 0

    def record(self, name: str, *operands: Any, span: Span | None = None) -> None:
        self._items.append(Item(name, operands, span))

    def fresh(self, ty: Type) -> Virtual:
        return Virtual(next(self._numbers), ty)

    def emit(self, name: str, dtype: DType, operands: Sequence[Any], suffixes: Sequence[Any] = ()) -> Scalar:
        """An instruction that gives a scalar; suffixes (types) stand before its target, operands behind it."""
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

    def finish(
        self, name: str, inputs: Sequence[Read | Number], outs: Sequence[Write], lanes: int | None = None
    ) -> Program:
        """The program: a guard, the prologue, the body. Inputs that are not read are no parameters.

        A program for so many lanes and no others has no parameter `n`, and says how large its buffers are. Code that
        was finished before is the same program: it was checked, and is perhaps compiled.
        """
        scalars = [("n", Type.U64)] if lanes is None else []
        scalars += [(extent, Type.U32) for extent in self.extents]
        buffers = [(w.name, w.ty, None if lanes is None else count(w.shape)) for w in outs]
        for read in inputs:
            if read.name in self.used:
                ty = TYPES[read.dtype]
                if isinstance(read, Read):
                    buffers.append((read.name, ty, None if lanes is None else read.size))
                else:
                    scalars.append((read.name, CARRIED.get(ty, ty)))
        key = (name, lanes, *scalars, *buffers, *self.prologue, None, *self.body)
        found: Program | None = _programs.get(key)
        if found is None:
            found = self._program(name, scalars, buffers, lanes)
            _programs.keep(key, found)
        return found

    def _program(
        self, name: str, scalars: Sequence[tuple[str, Type]], buffers: Sequence[tuple[str, Type, int | None]],
        lanes: int | None,
    ) -> Program:  # fmt: skip
        b = ProgramBuilder(name)
        for scalar in scalars:
            b.scalar(*scalar)
        for buffer in buffers:
            b.buffer(*buffer)
        end, bound = b.label("end"), self.fresh(Type.U64)
        guard = [
            Item("LDG", (Type.U64, bound, BufferOffset("n"))) if lanes is None
            else Item("MOV_IMM", (bound, Immediate(Type.U64, lanes))),
            Item("SETcc", (Condition.GE, TRUTH, LANE, bound)),
            Item("BRA", (end, TRUTH)),
        ]  # fmt: skip
        put(b, [*guard, *self.prologue, *self.body])
        b.place(end)
        return b.build()

    # --- registers ----------------------------------------------------------------------------------

    def register(self, scalar: Scalar, ty: Type | None = None) -> Virtual | Register:
        """The register that holds a scalar, in the type of its dtype unless another is asked for (of an index)."""
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
        return self.address(BufferOffset(buffer), position, ty)

    def address(self, base: BufferOffset | Shared, position: Scalar, ty: Type) -> Any:
        """The address of the element at a flat position from a place in memory on."""
        if position.known is not None:
            return replace(base, offset=base.offset + position.known * ty.size_bytes)
        if isinstance(position.register, Register):
            return place(base, position.register, ty)
        return place(base, self.register(position, _index_type(position)), ty)

    # --- lanes of a block ---------------------------------------------------------------------------

    def shared(self, dtype: DType, size: int) -> BlockMemory:
        """Memory for so many elements that the lanes of a block share."""
        width = TYPES[dtype].size_bytes
        offset = -(-self.shared_memory // width) * width
        self.shared_memory = offset + size * width
        return BlockMemory(self, offset, dtype)

    def barrier(self) -> None:
        """Wait for the other lanes of the block. All come here: it stands in no loop that some leave earlier."""
        self.record("BarSync", 0)

    def only_if(self, truth: Scalar) -> AbstractContextManager[Scalar]:
        """Around code for the lanes for which something holds: a loop of one round or none."""
        return self.counted(self.at_most(self.convert(truth, INDEX), 1))

    # --- scalars ------------------------------------------------------------------------------------

    def constant(self, value: Any, dtype: DType) -> Scalar:
        """A number of a dtype."""
        if dtype.is_bool:
            value = bool(value)
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
            return self.number(value)
        name = f"s{len(self.extents)}"
        self.extents[name] = value
        with self.in_prologue():
            register = self.fresh(Type.U32)
            self.record("LDG", Type.U32, register, BufferOffset(name))
            return Scalar(self, INDEX, register, most=max(value, 1))  # at most 0 would be known, and not be told

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
        """An instruction of Atlas, by its mnemonic, on scalars of one dtype."""
        found = self._alike(scalars)
        return self.emit(name, found[0].dtype, [self.register(x) for x in found])

    def arithmetic(self, name: str, x: Any, y: Any) -> Scalar:
        """x + y and its kin. Indices stay narrow as long as they fit; they are divided by what is not 0."""
        one, other = self._alike((x, y))
        if one.dtype is not INDEX:
            return self.op(name, one, other)
        if one.known is not None and other.known is not None:
            return self.number(FOLDED[name](one.known, other.known))
        if other.known is not None:
            if (name in ("ADD", "SUB") and other.known == 0) or (name in ("MUL", "DIV") and other.known == 1):
                return one
            if (name == "REM" and other.known == 1) or (name == "MUL" and other.known == 0):
                return self.number(0)
        if one.known == 0 and name == "ADD":
            return other
        least, most = bounds(name, one, other)
        narrow = most is not None and max(one.most or 0, other.most or 0, most) < NARROW_LIMIT
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
        decided = compared(condition, one, other) if one.dtype is INDEX else None
        if decided is not None:
            return self.constant(decided, dtypes.bool_)
        yes, no = (self.register(self.constant(v, dtypes.bool_)) for v in (True, False))
        self._test(condition, x, y)
        return self.emit("SEL", dtypes.bool_, (TRUTH, yes, no))

    def negation(self, truth: Scalar) -> Scalar:
        """Whether a bool does not hold."""
        return self.op("XOR", truth, True)

    def select(self, condition: Scalar, x: Any, y: Any) -> Scalar:
        """x where the condition holds, else y; both are computed."""
        one, other = self._alike((x, y))
        if condition.known is not None:
            return one if condition.known else other
        ty, most = TYPES[one.dtype], None
        if one.dtype is INDEX and one.most is not None and other.most is not None:
            most = max(one.most, other.most)
            ty = Type.U32 if most < NARROW_LIMIT else ty
        operands = self.register(one, ty), self.register(other, ty)
        self._test("NE", condition, False)
        register = self.fresh(ty)
        self.record("SEL", register, TRUTH, *operands)
        return Scalar(self, one.dtype, register, most=most)

    # --- indices ------------------------------------------------------------------------------------

    def digit(self, flat: Scalar, stride: int, extent: int) -> Scalar:
        """(flat // stride) % extent, where that can be anything else than flat // stride."""
        quotient = flat // stride
        if quotient.most is not None and quotient.most < extent:
            return quotient
        return quotient % extent

    def ravel(self, index: Any, shape: Shape) -> Scalar:
        """The flat position of an index in a shape."""
        shape = tuple(shape)
        if index is self.here and self.here.shape == shape:
            return self._lane
        if isinstance(index, Unraveled) and index.shape == shape:
            return index.flat
        if not shape:  # there is only one element
            return self.number(0)
        self.note_shape()
        position, stride = self.number(0), 1
        for extent, given in zip(reversed(shape), reversed(list(index)), strict=True):
            place = self._scalar(given, INDEX)
            place = place if place.dtype is INDEX else self.convert(place, INDEX)
            position = place * stride + position
            stride *= extent
        return position

    def unravel(self, flat: Scalar, shape: Shape) -> Any:
        """The index that a flat position has in a shape."""
        shape = tuple(shape)
        if flat is self._lane and self.here.shape == shape:
            return self.here
        self.note_shape()
        places = [self.digit(flat, count(shape[k + 1 :]), extent) for k, extent in enumerate(shape)]
        return Unraveled(places, flat, shape)

    def index(self, scalar: Any, extent: int) -> Scalar:
        """An integer as an index: negative ones count from the end, and one out of range stops the launch."""
        given = self._scalar(scalar, INDEX)
        if given.most is not None and given.most < extent:
            self.note_shape()
            return given
        found, inside = self.located(given, extent)
        self.stop_unless(inside, extent)
        return found

    def located(self, scalar: Scalar, extent: int, wrap: bool = True) -> tuple[Scalar, Scalar]:
        """An integer as an index, negative ones counted from the end, and 1 if it is in range (as uint32), else 0.

        Out of range, the index is any one that is not.
        """
        self.note_shape()
        if scalar.dtype is dtypes.uint64:
            position = self.register(scalar)
        else:
            signed = self.convert(scalar, INDEX)
            if wrap and scalar.dtype.signed:
                signed = self.select(self.compare("LT", signed, 0), signed + extent, signed)
            position = self._converted(self.register(signed), Type.I64, Type.U64)
        limit = self.register(self.constant(extent, dtypes.uint64))
        one, zero = (self.register(self.number(v), Type.U32) for v in (1, 0))
        inside = self.fresh(Type.U32)
        self.record("SETcc", Condition.LT, TRUTH, position, limit)
        self.record("SEL", inside, TRUTH, one, zero)
        return self._sure(position, Type.U64, extent), Scalar(self, dtypes.uint32, inside)

    def stop_unless(self, inside: Scalar, extent: int) -> None:
        """Stop the launch if an index was out of range: `inside` is 0 then, else 1."""
        one, nothing = self.register(self.constant(1, dtypes.uint32)), self.fresh(Type.U32)
        self.record("DIV", nothing, one, self.register(inside), span=Span(INDEX_TRAP, 1, 1, 1, str(extent)))

    def sure_index(self, scalar: Scalar, extent: int) -> Scalar:
        """An integer that is a position in range, as an index."""
        self.note_shape()
        if scalar.most is not None and scalar.most < extent:
            return scalar
        unsigned = scalar if scalar.dtype in (dtypes.uint32, dtypes.uint64) else self.convert(scalar, dtypes.uint64)
        return self._sure(self.register(unsigned), TYPES[unsigned.dtype], extent)

    def _sure(self, position: Virtual | Register, ty: Type, extent: int) -> Scalar:
        """A position in range, said so that a machine need not look further to see that it is."""
        found = self.fresh(ty)
        last = self.constant(max(extent - 1, 0), dtypes.uint64 if ty is Type.U64 else dtypes.uint32)
        self.record("MIN", found, position, self.register(last))
        wanted = Type.U32 if extent <= NARROW_LIMIT else Type.I64
        index = found if ty is wanted else self._converted(found, ty, wanted)
        return Scalar(self, INDEX, index, most=max(extent - 1, 0))

    def read_if(self, valid: Scalar, read: Any, index: Sequence[Any], otherwise: Any) -> Scalar:
        """An element of an input where `valid` holds, else another value; the index may be out of range then."""
        other = self._scalar(otherwise, read.dtype)
        if read.size == 0 or valid.known is False:
            return other
        if valid.known:
            found: Scalar = read(index)
            return found
        inside = [self.within(self._scalar(given, INDEX), n) for given, n in zip(index, read.shape, strict=True)]
        return self.select(valid, read(inside), other)

    def both(self, one: Scalar, other: Scalar) -> Scalar:
        """Whether two bools hold."""
        if one.known is not None or other.known is not None:
            known, open_one = (one, other) if one.known is not None else (other, one)
            return open_one if known.known else known
        return self.op("AND", one, other)

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
        if most >= NARROW_LIMIT or (place.most is not None and place.most <= most):
            return place
        return Scalar(self, INDEX, self.register(place, Type.U32), most=most)

    # --- loops --------------------------------------------------------------------------------------

    @contextmanager
    def counted(self, extent: int | Scalar) -> Iterator[Scalar]:
        """A loop around what is written within; gives its counter."""
        if isinstance(extent, Scalar) and extent.known is not None:
            extent = int(extent.known)
        if isinstance(extent, Scalar) and extent.most is not None and extent.most < NARROW_LIMIT:
            counter = self.fresh(Type.U32)
            rounds: Any = self.register(extent, Type.U32)
            index = Scalar(self, INDEX, counter, most=max(extent.most - 1, 0))
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

    def variable(self, scalar: Scalar) -> Scalar:
        """A scalar in a register of its own, which `assign` may change."""
        register = self.fresh(TYPES[scalar.dtype])
        self.record("MOV", register, self.register(scalar))
        return Scalar(self, scalar.dtype, register)

    def assign(self, variable: Scalar, value: Scalar) -> None:
        """Give a variable another value."""
        self.record("MOV", variable.register, self.register(value))

    def accumulate(self, variable: Scalar, operation: str, term: Scalar) -> None:
        """Take a term into a variable by Sum, Product, Min or Max: a machine may take the terms of a loop in any order.

        Min and Max of floats are NaN as soon as a term is. The variable may be read again only behind the loop.
        """
        (given,) = (self.register(x) for x in self._alike((variable, term))[1:])
        self.record("ACC", ReduceOperation[operation], variable.register, variable.register, given)

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

    def reduce(self, instruction: str, extents: Sequence[int], body: Callable[..., Any], first: Any) -> Scalar:
        """The scalars `body(j)` for all j in `extents`, combined with an instruction, starting from `first`."""
        from eshkol.schedule.kernels.reduce import Reduction

        return Reduction(self, instruction, list(extents), body, first).result()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is written into the body within it is forgotten."""
        length = len(self.body)
        yield
        del self.body[length:]


def _index_type(index: Scalar) -> Type:
    """The type in which an index is held, or can be had cheaply."""
    return Type.U32 if index.most is not None and index.most < NARROW_LIMIT else Type.I64
