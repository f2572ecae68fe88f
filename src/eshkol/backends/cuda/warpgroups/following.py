"""What follows a product element by element, as a program says it: found in its code, and written again as PTX.

Comes in: a program that multiplies matrices, and in which then a lane for each element of the product computes what
follows (`schedule/kernels/followed_products.py`). Goes out: an `Epilogue`, values that depend on each other, from the
sums, other matrices of the same shape, rows that all rows read, and numbers, to what is written. `Elements` writes them
for one element at a time, in float32: what the program rounds in between is not rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import BufferOffset, Condition, Immediate, Indexed, Predicate, Register
from eshkol.atlas.program import MEANWHILE, ParamKind, Program
from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups.ptx import Kernel, real

LANE_REGISTER = Register(255)
FLOATS = frozenset({Type.F32, Type.BF16, Type.F16})
LOG2_E = 1.4426950216293335, 1.925963033500011e-08  # in two parts
LEAST, MOST = -126.0, 126.0  # exponents that a power of two is given as a factor of its own
BIASED = 1.5 * 2**23 + 127  # adding it rounds to an integer, which then stands in the low bits as a float's exponent


class Reach(IntEnum):
    """Where a value is the same: everywhere, in a column, or nowhere else."""

    ALL = 0
    COLUMN = 1
    ELEMENT = 2


@dataclass(frozen=True)
class Value:
    """One of the numbers that an element is computed from, of others that come before it."""

    op: str  # "sum", "read", "number", "constant", or an instruction
    inputs: tuple[int, ...]
    reach: Reach
    name: str = ""  # of a buffer, or of a number
    ty: Type = Type.F32
    offset: int = 0  # bytes
    constant: float = 0.0


@dataclass(frozen=True)
class Written:
    """A matrix of results: where it lies, and which value it is of."""

    name: str
    ty: Type
    offset: int
    value: int


@dataclass(frozen=True)
class Epilogue:
    """What follows a product."""

    values: tuple[Value, ...]
    outs: tuple[Written, ...]


class _Unknown(Exception):
    """The program is another one."""


_LANE, _COLUMN, _PAST = "lane", "column", "past"  # what a register can hold besides numbers


def followed(program: Program) -> Epilogue | None:
    """What follows the product that a program begins with; None if it is no such program."""
    try:
        return _Reader(program).found()
    except _Unknown:
        return None


class _Reader:
    """A program as it is walked through: what its registers hold, for the lane of any element."""

    def __init__(self, program: Program) -> None:
        self.program, self.product = program, program.instructions[0]
        self.size = self.product.batch * self.product.m * self.product.n
        self.values: list[Value] = [Value("sum", (), Reach.ELEMENT)]
        self.holds: dict[Register | Predicate, Any] = {LANE_REGISTER: _LANE}
        self.outs: dict[str, Written] = {}

    def found(self) -> Epilogue:
        for i in self.program.instructions[1:]:
            how = getattr(self, f"_do_{i.op.name}", None)
            if how is not None:
                how(i)
            elif i.op.name in _CODE:
                self._compute(i)
            else:
                raise _Unknown
        c = self.product.c
        if c.handle not in self.outs and c.handle not in self.program.metadata.get(MEANWHILE, "").split():
            self.outs = {c.handle: Written(c.handle, self.product.ty, c.offset, 0), **self.outs}
        if not self.outs or any(out.ty not in FLOATS for out in self.outs.values()):
            raise _Unknown
        return Epilogue(tuple(self.values), tuple(self.outs.values()))

    def _put(self, into: Register | Predicate, held: Any) -> None:
        self.holds[into] = held

    def _value(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _number(self, register: Register) -> int:
        """The number of the value that a register holds."""
        held = self.holds.get(register)
        if isinstance(held, Immediate) and held.ty in FLOATS:
            return self._value(Value("constant", (), Reach.ALL, constant=float(held.value)))
        if not isinstance(held, int):
            raise _Unknown
        return held

    # --- the lane, and who it is -------------------------------------------------------------------------

    def _do_MOV_IMM(self, i: Instruction) -> None:
        self._put(i.dst, i.value)

    def _do_MOV(self, i: Instruction) -> None:
        self._put(i.dst, self.holds.get(i.src))

    def _whole(self, register: Register) -> int | None:
        """A whole number that is known."""
        held = self.holds.get(register)
        return int(held.value) if isinstance(held, Immediate) and held.ty not in FLOATS else None

    def _do_SETcc(self, i: Instruction) -> None:
        if self.holds.get(i.lhs) != _LANE or i.cond is not Condition.GE or self._whole(i.rhs) != self.size:
            raise _Unknown
        self._put(i.pred, _PAST)

    def _do_BRA(self, i: Instruction) -> None:
        if self.holds.get(i.pred) != _PAST or self.program.labels[i.target.name] != len(self.program.instructions):
            raise _Unknown

    def _do_REM(self, i: Instruction) -> None:
        if self.holds.get(i.lhs) != _LANE or self._whole(i.rhs) != self.product.n:
            raise _Unknown
        self._put(i.dst, _COLUMN)

    # --- numbers -----------------------------------------------------------------------------------------

    def _do_CVT(self, i: Instruction) -> None:
        held = self.holds.get(i.src)
        if isinstance(held, int) and not (i.src_ty in FLOATS and i.dst_ty in FLOATS):
            raise _Unknown
        self._put(i.dst, held)

    def _address(self, address: Any) -> tuple[BufferOffset, str | None]:
        """Where an element lies from, and by what it is found."""
        if isinstance(address, BufferOffset):
            return address, None
        base = address.base if isinstance(address, Indexed) else None
        if not isinstance(base, BufferOffset):
            raise _Unknown
        return base, self.holds.get(address.index)

    def _do_LDG(self, i: Instruction) -> None:
        base, index = self._address(i.src)
        scalar = self.program.param[base.handle].kind is ParamKind.SCALAR
        if i.ty not in FLOATS or (scalar and i.ty is not Type.F32) or base.handle in self.outs:
            raise _Unknown
        if index is not None and i.src.scale != i.ty.size_bytes:
            raise _Unknown
        if index == _LANE and base == self.product.c:
            self._put(i.dst, 0)
        elif index in (_LANE, _COLUMN):
            reach = Reach.ELEMENT if index == _LANE else Reach.COLUMN
            self._put(i.dst, self._value(Value("read", (), reach, base.handle, i.ty, base.offset)))
        elif index is None and scalar:
            self._put(i.dst, self._value(Value("number", (), Reach.ALL, base.handle, i.ty)))
        else:
            raise _Unknown

    def _do_STG(self, i: Instruction) -> None:
        base, index = self._address(i.dst)
        if index != _LANE or i.dst.scale != i.ty.size_bytes or base.handle in self.outs:
            raise _Unknown
        self.outs[base.handle] = Written(base.handle, i.ty, base.offset, self._number(i.src))

    def _compute(self, i: Instruction) -> None:
        inputs = tuple(self._number(r) for r in i.reads() if isinstance(r, Register))
        reach = max((self.values[k].reach for k in inputs), default=Reach.ALL)
        self._put(i.dst, self._value(Value(i.op.name, inputs, reach)))


# --- as PTX ---------------------------------------------------------------------------------------------


class Elements:
    """Writes values, those that are shared once: for all elements, or for those of a column."""

    def __init__(self, k: Kernel, epilogue: Epilogue, words: Mapping[str, int]) -> None:
        self.k, self.epilogue = k, epilogue
        self.known: dict[int, str] = {}
        for number, value in enumerate(epilogue.values):
            if value.op == "constant":
                self.known[number] = real(value.constant)
            elif value.op == "number":
                self.known[number] = k.op("ld.param.f32", f"[record+{words[value.name]}]", kind="f32")

    def column(self, reads: Mapping[int, str]) -> dict[int, str]:
        """The values of a column, from what is read of it."""
        return self._written(Reach.COLUMN, self.known | dict(reads))

    def at(self, column: Mapping[int, str], total: str, reads: Mapping[int, str]) -> list[str]:
        """What is written for an element: of its column's values, its sum, and what is read."""
        found = self._written(Reach.ELEMENT, {**column, 0: total, **reads})
        return [found[out.value] for out in self.epilogue.outs]

    def _written(self, reach: Reach, found: dict[int, str]) -> dict[int, str]:
        for number, value in enumerate(self.epilogue.values):
            if value.reach <= reach and number not in found and value.op in _CODE:
                found[number] = _CODE[value.op](self.k, *(found[x] for x in value.inputs))
        return found


def _plain(instruction: str) -> Callable[..., str]:
    return lambda k, *operands: k.op(instruction, *operands, kind="f32")


def _float(k: Kernel, instruction: str, *operands: str | float) -> str:
    return k.op(instruction, *(x if isinstance(x, str) else real(x) for x in operands), kind="f32")


def _select(k: Kernel, condition: str, a: str, b: float, then: str | float, otherwise: str) -> str:
    """One of two numbers, by how two others compare."""
    truth = k.op(f"setp.{condition}.f32", a, real(b), kind="pred")
    return k.op("selp.f32", then if isinstance(then, str) else real(then), otherwise, truth, kind="f32")


def _exponential(k: Kernel, x: str) -> str:
    """As lanes compute it (`lane.py`): 2^n 2^f."""
    scaled = _float(k, "mul.f32", x, LOG2_E[0])
    bounded = _float(k, "min.f32", _float(k, "max.f32", scaled, LEAST), MOST)
    rounded = _float(k, "add.f32", bounded, BIASED)
    power = _float(k, "sub.f32", rounded, BIASED)
    rest = _float(k, "fma.rn.f32", x, LOG2_E[0], _float(k, "neg.f32", power))
    rest = _float(k, "fma.rn.f32", x, LOG2_E[1], rest)
    bits = k.op("shl.b32", k.op("mov.b32", rounded), 23)
    return _float(k, "mul.f32", _float(k, "ex2.approx.ftz.f32", rest), k.op("mov.b32", bits, kind="f32"))


def _sigmoid(k: Kernel, x: str) -> str:
    """1 / (1 + 2^(-x log2 e)), where what is too large is infinite, and its reciprocal 0."""
    power = _float(k, "ex2.approx.ftz.f32", _float(k, "mul.f32", x, -LOG2_E[0]))
    return _float(k, "rcp.approx.ftz.f32", _float(k, "add.f32", power, 1.0))


def _tanh(k: Kernel, x: str) -> str:
    """2 sigmoid(2x) - 1, and near 0, where little would be left of it, the series."""
    twice = _sigmoid(k, _float(k, "add.f32", x, x))
    large = _float(k, "fma.rn.f32", twice, 2.0, -1.0)
    square = _float(k, "mul.f32", x, x)
    series = _float(k, "fma.rn.f32", square, -0.05396825, 0.13333334)
    series = _float(k, "fma.rn.f32", series, square, -0.33333334)
    series = _float(k, "mul.f32", series, square)
    small = _float(k, "fma.rn.f32", series, x, x)
    return _select(k, "lt", square, 0.04, small, large)


def _erf(k: Kernel, x: str) -> str:
    """1 - e^p(|x|) with the sign of x, and near 0 a polynomial, each within an ulp or two."""
    size, square = _float(k, "abs.f32", x), _float(k, "mul.f32", x, x)
    first = _float(k, "fma.rn.f32", size, -1.72853470e-5, 3.83197126e-4)
    second = _float(k, "fma.rn.f32", size, -3.88396438e-3, 2.42546219e-2)
    power = _float(k, "fma.rn.f32", first, square, second)
    for factor in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        power = _float(k, "fma.rn.f32", power, size, factor)
    power = _float(k, "fma.rn.f32", power, size, _float(k, "neg.f32", size))
    large = _float(k, "ex2.approx.ftz.f32", _float(k, "mul.f32", power, LOG2_E[0]))
    large = _float(k, "copysign.f32", x, _float(k, "sub.f32", 1.0, large))
    small = real(-5.96761703e-4)
    for factor in (4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1):
        small = _float(k, "fma.rn.f32", small, square, factor)
    small = _float(k, "fma.rn.f32", small, x, x)
    return _select(k, "gt", size, 0.927734375, large, small)


_CODE: dict[str, Callable[..., str]] = {
    "ADD": _plain("add.f32"), "SUB": _plain("sub.f32"), "MUL": _plain("mul.f32"), "DIV": _plain("div.full.f32"),
    "NEG": _plain("neg.f32"), "RELU": lambda k, x: _select(k, "lt", x, 0.0, 0.0, x), "EXP": _exponential,
    "SIGMOID": _sigmoid, "TANH": _tanh, "ERF": _erf,
}  # fmt: skip
