"""What values registers can have: which accesses are surely in range, which sums do not wrap, what loops touch.

Comes in: a program and what is known about its lanes. Goes out: `Ranges`, from one walk along the code. For every
register it knows an interval, an upper bound that grows with the lane's number (`slope · ⌊r255 / over⌋ + offset`: the
leading digit of lanes that are spread over several axes), and, where there is one, the value as a linear form over the
lane's number, counters of loops and values it knows nothing about (`Form`). What a loop changes is unknown within it
and after it, but for its counter.

An access is trusted if its bytes lie in the declared count of its buffer, or if they do for all lanes below a limit
that the kernel computes from the buffer's size before it runs them. Likewise arithmetic wraps in no lane below
`lanes_below`. Where extents are scalar parameters, slopes and offsets of bounds are computed from them (`amounts.py`),
and so are the lanes that do not wrap. Nothing here is believed of code that jumps, but for accesses by r255 itself;
a branch over a stretch of arithmetic (sines of huge angles) is no such jump: what it writes is unknown afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd, lcm
from typing import Any

from eshkol.atlas.flow import Slot, slots_read, slots_written
from eshkol.atlas.fragments import LINE_BYTES
from eshkol.atlas.isa import Control, Instruction, Values
from eshkol.atlas.operands import GLOBAL, SPECIAL_TYPES, Address, BufferOffset, Indexed, Register, Shared
from eshkol.atlas.program import LANE_LIMIT, ParamKind, Program
from eshkol.atlas.types import Type
from eshkol.atlas.typing_rule import resolve_types
from eshkol.atlas.validate import Analysis
from eshkol.backends.lanes.amounts import Amount, Number, is_small, least_above, parameter, shared_out
from eshkol.errors import IsaError

FEW_LANES = 64  # a limit on lanes below this is not worth what it would prove: numbers are hashed, perhaps
LANE_ATOM = 0  # the lane's number
SHARED_MEMORY = "%shared"  # in place of a buffer's name; no parameter is called so
# Instructions whose accesses are followed: operands that are addresses, and bytes, to which they are aligned too, where
# that is not one element.
REACHED: Mapping[str, tuple[tuple[str, ...], int | None]] = {
    "LDG": (("src",), None), "STG": (("dst",), None), "LDS": (("src",), None), "STS": (("dst",), None),
    "CopyAsync": (("dst", "src"), LINE_BYTES), "MatrixLoad": (("src",), LINE_BYTES),
}  # fmt: skip
COARSEST = 1 << 22  # the most lanes that share a leading digit: byte counts times it must fit 64 bits


@dataclass(frozen=True, slots=True)
class Form:
    """constant + Σ factor · atom, exactly. Atoms are the lane's number, counters of loops, and unknown values."""

    terms: tuple[tuple[int, int], ...]  # (atom, factor), by atom
    constant: int

    def plus(self, other: Form, sign: int = 1) -> Form:
        terms = dict(self.terms)
        for atom, factor in other.terms:
            terms[atom] = terms.get(atom, 0) + sign * factor
        return Form(tuple(sorted((a, f) for a, f in terms.items() if f)), self.constant + sign * other.constant)

    def times(self, factor: int) -> Form:
        return Form(tuple((a, f * factor) for a, f in self.terms) if factor else (), self.constant * factor)

    def factor(self, atom: int) -> int:
        return next((f for a, f in self.terms if a == atom), 0)


@dataclass(frozen=True, slots=True)
class Bound:
    """slope · ⌊r255 / over⌋ + offset; the slope is not negative."""

    slope: Number
    offset: Number
    over: int

    @property
    def is_plain(self) -> bool:
        """Whether it follows from the program alone."""
        return not isinstance(self.slope, Amount) and not isinstance(self.offset, Amount)

    def coarser(self, over: int) -> Bound:
        """A bound above this one in steps of so many lanes, a multiple of its own."""
        times = over // self.over
        return Bound(self.slope * times, self.offset + self.slope * (times - 1), over)

    def plus(self, other: Bound) -> Bound:
        mine, others = self.alike(other)
        return Bound(mine.slope + others.slope, mine.offset + others.offset, mine.over)

    def alike(self, other: Bound) -> tuple[Bound, Bound]:
        over = lcm(self.over if self.slope else 1, other.over if other.slope else 1)
        return self._in_steps(over), other._in_steps(over)

    def _in_steps(self, over: int) -> Bound:
        return self.coarser(over) if self.slope else Bound(0, self.offset, over)

    def times(self, factor: Number) -> Bound:
        return Bound(self.slope * factor, self.offset * factor, self.over)

    def divided(self, divisor: int) -> Bound:
        """A bound of quotients of what is not negative."""
        exact = not isinstance(self.slope, Amount) and self.slope % divisor == 0
        whole = self if exact else self.coarser(self.over * divisor)  # whose slope is a multiple
        return Bound(shared_out(whole.slope, divisor), shared_out(whole.offset, divisor), whole.over)

    def lanes_within(self, most: int) -> int:
        """The first lane for which a bound that is plain, and grows, is above a number."""
        assert isinstance(self.slope, int)
        assert isinstance(self.offset, int)
        return ((most - self.offset) // self.slope + 1) * self.over


@dataclass(frozen=True, slots=True)
class IntegerFacts:
    """What is known about an integer: low ≤ it ≤ high, it ≤ its bound, its form.

    It is tight if the upper bounds follow from what the program says, and not only from the width of its type.
    """

    low: int
    high: int
    form: Form
    tight: bool
    rising: Bound | None = None  # a bound that grows with the lane's number, or is not plain

    @property
    def known(self) -> int | None:
        return self.low if self.low == self.high else None

    @property
    def bound(self) -> Bound:
        return Bound(0, self.high, 1) if self.rising is None else self.rising


@dataclass(frozen=True, slots=True)
class Access:
    """A load or store of a buffer parameter: its byte offset as a form, and the loops around it, outermost first."""

    index: int
    stores: bool
    handle: str
    place: Form
    size: int
    loops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that must be at most the bytes of a buffer (or shared memory), which is named, or a number."""

    most: str | int
    end: Bound


@dataclass
class Ranges:
    """What was found out."""

    trusted: set[int] = field(default_factory=set)  # accesses that need no check in lanes below all limits
    proven: set[int] = field(default_factory=set)  # those of them that need none in any lane, if sizes are as declared
    limits: dict[Limit, None] = field(default_factory=dict)
    lanes_below: int = LANE_LIMIT
    exact: dict[int, str] = field(default_factory=dict)  # instructions that do not wrap → what LLVM calls that
    accesses: list[Access] = field(default_factory=list)
    counters: dict[int, int] = field(default_factory=dict)  # LOOP → the atom of its counter
    rounds: dict[int, int] = field(default_factory=dict)  # atom of a counter → the most rounds of its loop
    varies: dict[int, frozenset[int]] = field(default_factory=dict)  # atom → the loops in which it may change
    counted: set[int] = field(default_factory=set)  # LOOPs whose rounds are surely not a negative number
    steps: dict[int, int] = field(default_factory=dict)  # trusted accesses → what divides their byte offsets
    structured: bool = True


def ranges(analysis: Analysis, lanes: int | None) -> Ranges:
    """The ranges of a program of which so many lanes run at most, if it says so."""
    return _Walk(analysis, lanes).found


class _Walk:
    def __init__(self, analysis: Analysis, lanes: int | None) -> None:
        self.analysis, self.flow, self.program = analysis, analysis.flow, analysis.flow.program
        self.found = Ranges(structured=_is_structured(analysis))
        skipped = _skipped(analysis) if self.found.structured else {}
        self.state: dict[Slot, IntegerFacts] = {}
        self.loops: list[int] = []
        self._atoms: dict[Any, int] = {}
        most = LANE_LIMIT if lanes is None else min(LANE_LIMIT, max(lanes, 1))
        assert self._atom(GLOBAL, frozenset()) == LANE_ATOM
        self.lane = IntegerFacts(0, most - 1, Form(((LANE_ATOM, 1),), 0), True, Bound(1, 0, 1))
        for index, i in enumerate(self.program.instructions):
            if index in skipped:
                self._forget(self._written(skipped[index], index - 1))
            if analysis.reachable(index):
                self._step(index, i)
            if self.loops and self.flow.loop_end[self.loops[-1]] == index:
                self._forget(self._written(self.loops.pop(), index))

    # --- atoms --------------------------------------------------------------------------------------

    def _atom(self, key: Any, varies: frozenset[int]) -> int:
        if key not in self._atoms:
            self._atoms[key] = len(self._atoms)
            self.found.varies[self._atoms[key]] = varies
        return self._atoms[key]

    def _unknown(self, key: Any, low: int, high: int, varies: frozenset[int] | None = None) -> IntegerFacts:
        """A value of which only an interval is known. Equal keys mean equal values."""
        around = frozenset(self.loops) if varies is None else varies
        return IntegerFacts(low, high, Form(((self._atom(key, around), 1),), 0), False)

    def _varies(self, *values: IntegerFacts) -> frozenset[int]:
        return frozenset().union(*(self.found.varies[a] for v in values for a, _ in v.form.terms))

    # --- registers ----------------------------------------------------------------------------------

    def _type(self, index: int, register: Register) -> Type | None:
        if register.is_special:
            return SPECIAL_TYPES[register.index]
        return self.analysis.type_before(index, register)

    def _value(self, index: int, register: Register) -> IntegerFacts:
        if register.index == GLOBAL:
            return self.lane
        ty = self._type(index, register)
        if ty is None or not ty.is_integer:
            return self._unknown(("register", register, index), -1 << 600, 1 << 600)
        known = self.state.get(register)
        if known is None or not self.found.structured:
            known = self._unknown(("register", register, index), ty.min_value, ty.max_value)
            if self.found.structured and not register.is_special:
                self.state[register] = known
        return known

    def _forget(self, slots: set[Slot]) -> None:
        for slot in slots:
            self.state.pop(slot, None)

    # --- the walk -----------------------------------------------------------------------------------

    def _step(self, index: int, i: Instruction) -> None:
        reached = REACHED.get(i.op.name)
        if reached is not None:
            self._accesses(index, i, *reached)
        if i.op.control is Control.LOOP:
            self._enter(index, i)
        else:
            result = self._computed(index, i) if self.found.structured else None
            self._forget(set(slots_written(i)))
            if result is not None:
                self.state[slots_written(i)[0]] = result
            elif i.op.name == "LDG" and i.ty.is_integer:
                self.state[i.dst] = self._loaded(index, i)

    def _loaded(self, index: int, i: Instruction) -> IntegerFacts:
        source = i.src
        param = self.program.param.get(source.handle) if isinstance(source, BufferOffset) else None
        if param is None or param.kind is not ParamKind.SCALAR or i.ty is not Type.U32 or param.ty is not Type.U32:
            return self._unknown(("load", index), i.ty.min_value, i.ty.max_value)
        value = self._unknown(("parameter", param.name), 0, i.ty.max_value, frozenset())
        return replace(value, tight=True, rising=Bound(0, parameter(param.name), 1))

    def _written(self, start: int, end: int) -> set[Slot]:
        return {slot for i in self.program.instructions[start : end + 1] for slot in slots_written(i)}

    def _enter(self, index: int, i: Instruction) -> None:
        most, tight, rising = i.iterations, True, None
        if isinstance(most, Register):
            value = self._value(index, most)
            most, tight = value.high, value.tight
            rising = None if value.rising is None else value.rising.plus(Bound(0, -1, 1))
            if value.low >= 0:
                self.found.counted.add(index)
        self._forget(self._written(index, self.flow.loop_end[index]))
        self.loops.append(index)
        atom = self.found.counters[index] = self._atom(("counter", index), frozenset({index}))
        self.found.rounds[atom] = most
        if self.found.structured:  # each round begins with it, whatever the body does to the register
            self.state[i.counter] = IntegerFacts(0, max(most - 1, 0), Form(((atom, 1),), 0), tight, rising)

    def _computed(self, index: int, i: Instruction) -> IntegerFacts | None:
        """What an instruction gives, if it gives an integer (or a truth, of which only the form is told)."""
        written = slots_written(i)
        if not isinstance(i.op.meaning, Values) or len(written) != 1:
            return None
        types = [self._type(index, r) for r in i.reads()]
        if any(ty is None for ty in types):
            return None
        if types and isinstance(written[0], Register) and all(ty is not None and ty.is_float for ty in types):
            (ty,) = resolve_types(i, [ty for ty in types if ty is not None])
            if ty.is_float:  # nothing is asked of floats, but predicates are met here
                for slot in slots_read(i)[len(types) :]:
                    self._slot(index, slot)
                return None
        values = [self._slot(index, slot) for slot in slots_read(i)]
        key = (i.op.name, *(v for v in i.operands if not isinstance(v, Register)), *(v.form for v in values), *types)
        if not isinstance(written[0], Register):
            return self._unknown(key, 0, 1, self._varies(*values))
        try:
            (ty,) = resolve_types(i, [ty for ty in types if ty is not None])
        except IsaError:
            return None
        top = self._unknown(key, ty.min_value if ty.is_integer else 0, ty.max_value if ty.is_integer else 0,
                            self._varies(*values))  # fmt: skip
        if not ty.is_integer or any(t is not None and not t.is_integer for t in types):
            return top
        if i.op.name == "MOV_IMM":
            return _constant(i.value.value)
        rule = RULES.get(i.op.name)
        result = rule(top, *values) if rule is not None else None
        if result is None:
            return top
        return self._fitted(index, i, ty, top, values, result)

    def _slot(self, index: int, slot: Slot) -> IntegerFacts:
        if isinstance(slot, Register):
            return self._value(index, slot)
        known = self.state.get(slot)
        if known is None:
            known = self.state[slot] = self._unknown(("predicate", slot, index), 0, 1)
        return known

    def _fitted(
        self, index: int, i: Instruction, ty: Type, top: IntegerFacts, values: list[IntegerFacts], result: IntegerFacts
    ) -> IntegerFacts:
        """The result, if it is sure not to wrap; else what every value of the type obeys."""
        if result.low < ty.min_value:
            from_end = i.op.name == "SUB" and ty.is_unsigned and values[0].known is not None
            less = values[1].rising if from_end else None
            if less is None or not self._promised(values[0].low, less):  # places counted from the end: n - 1 - r255
                return top
            result = replace(result, low=0)
        if result.high > ty.max_value:
            if result.rising is None or not self._limited(result.rising, ty.max_value):
                return top
            result = replace(result, high=ty.max_value)
        if i.op.name in ("ADD", "SUB", "MUL", "SHL"):
            sign_limit = (1 << (ty.bits - 1)) - 1
            no_sign = result.low >= 0 and all(v.low >= 0 for v in values)
            small = result.high <= sign_limit and all(v.high <= sign_limit for v in values)
            flags = ["nuw"] * (ty.is_unsigned or no_sign) + ["nsw"] * (ty.is_signed or small)
            self.found.exact[index] = " ".join(flags)
        elif i.op.name == "CVT" and i.dst_ty.bits < i.src_ty.bits:
            self.found.exact[index] = "nuw" if result.low >= 0 else ""
        return result

    def _limited(self, bound: Bound, most: int) -> bool:
        """Whether a bound is at most that in all lanes below a limit, which is noted."""
        if not bound.is_plain:
            return self._promised(most, bound)
        lanes = bound.lanes_within(most)
        if lanes < FEW_LANES:
            return False
        self.found.lanes_below = min(self.found.lanes_below, lanes)
        return True

    # --- accesses -----------------------------------------------------------------------------------

    def _accesses(self, index: int, i: Instruction, names: Sequence[str], whole: int | None) -> None:
        """The accesses of an instruction, which is trusted if all of them can be."""
        size = i.ty.size_bytes if whole is None else whole
        aligned = i.ty.alignment if whole is None else whole
        found = [self._access(index, i, getattr(i, name), size, aligned) for name in names]
        if all(found):
            self.found.trusted.add(index)
        if all(kind == "proven" for kind in found):
            self.found.proven.add(index)

    def _access(self, index: int, i: Instruction, address: Address, size: int, aligned: int) -> str:
        """Whether an access is "proven" to be in range, or "promised" to be, or neither: ""."""
        base = address.base if isinstance(address, Indexed) else address
        param = self.program.param[base.handle] if isinstance(base, BufferOffset) else None
        if not isinstance(base, Shared) and (param is None or param.kind is not ParamKind.BUFFER):
            return ""
        assert isinstance(base, BufferOffset | Shared)
        value, scale = _constant(0), aligned
        if isinstance(address, Indexed):
            value, scale = self._value(index, address.index), address.scale
        place = value.form.times(scale).plus(Form((), base.offset))
        if isinstance(base, BufferOffset):
            stores = i.op.name == "STG"
            self.found.accesses.append(Access(index, stores, base.handle, place, size, tuple(self.loops)))
        if base.offset % aligned or scale % aligned or value.low * scale + base.offset < 0:
            return ""
        if param is not None and param.count is not None:
            assert param.ty is not None
            if value.high * scale + base.offset + size <= param.count * param.ty.size_bytes:
                self.found.steps[index] = gcd(place.constant, *(factor for _, factor in place.terms))
                return "proven"
        end = value.bound.times(scale).plus(Bound(0, base.offset + size, 1))
        most = base.handle if isinstance(base, BufferOffset) else SHARED_MEMORY
        if not value.tight or not self._promised(most, end):
            return ""
        self.found.steps[index] = gcd(place.constant, *(factor for _, factor in place.terms))
        return "promised"

    def _promised(self, most: str | int, end: Bound) -> bool:
        """Note that a bound must be at most that, if that can be found out before lanes run."""
        if end.over > COARSEST or not is_small(end.slope, 62) or not is_small(end.offset, 62):
            return False
        self.found.limits[Limit(most, end)] = None
        return True


def _is_structured(analysis: Analysis) -> bool:
    """Whether code runs from the start to the end, in loops, with branches to the end and over arithmetic alone."""
    program, targets = analysis.flow.program, analysis.flow.targets
    if program.start != 0:
        return False
    skipped = _skipped(analysis)
    for index, i in enumerate(program.instructions):
        if i.op.control in (Control.CALL, Control.RETURN):
            return False
        if i.op.control is Control.BRANCH and not _is_end(program, targets[index]):
            over = index + (targets[index] == index + 2)  # or into the stretch, over the branch over it
            if skipped.get(targets.get(over, -1)) != over:
                return False
    return True


def _skipped(analysis: Analysis) -> dict[int, int]:
    """Where stretches of arithmetic end that a branch goes over, and into which none goes → the branch."""
    program, targets = analysis.flow.program, analysis.flow.targets
    branches = [k for k, i in enumerate(program.instructions) if i.op.control is Control.BRANCH]
    found: dict[int, int] = {}
    for index in branches:
        end = targets[index]
        between = range(index + 1, end)
        if not index < end < len(program):
            continue
        entered = any(targets[k] in between and (k, targets[k]) != (index - 1, index + 1) for k in branches)
        if not entered and all(isinstance(program.instructions[k].op.meaning, Values) for k in between):
            found[end] = index if end not in found else -1  # where two end, neither is one
    return found


def _is_end(program: Program, index: int) -> bool:
    return index == len(program) or program.instructions[index].op.control is Control.EXIT


# --- what operations do to ranges -------------------------------------------------------------------


def _constant(number: int) -> IntegerFacts:
    return IntegerFacts(number, number, Form((), number), True)


def _value(low: int, high: int, form: Form, tight: bool, bound: Bound) -> IntegerFacts:
    return IntegerFacts(low, high, form, tight, None if bound.slope == 0 and bound.is_plain else bound)


def _sum(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts:
    bound = x.bound.plus(y.bound)
    return _value(x.low + y.low, x.high + y.high, x.form.plus(y.form), x.tight and y.tight, bound)


def _difference(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts:
    tight, bound = x.tight and y.tight, x.bound.plus(Bound(0, -y.low, 1))
    return _value(x.low - y.high, x.high - y.low, x.form.plus(y.form, -1), tight, bound)


def _product(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts:
    x, y = (y, x) if x.known is not None else (x, y)
    tight, factor = x.tight and y.tight, y.known
    if factor is not None and factor >= 0:
        return _value(x.low * factor, x.high * factor, x.form.times(factor), tight, x.bound.times(factor))
    if x.low < 0 or y.low < 0:
        corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
        return IntegerFacts(min(corners), max(corners), top.form, tight)
    steady, other = (y.bound, x.bound) if y.bound.slope == 0 else (x.bound, y.bound)
    bound = other.times(steady.offset) if steady.slope == 0 else Bound(0, x.high * y.high, 1)
    return _value(x.low * y.low, x.high * y.high, top.form, tight, bound)


def _quotient(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts | None:
    if x.low < 0 or y.low <= 0:
        return None
    if y.known == 1:
        return x
    return _value(x.low // y.high, x.high // y.low, top.form, x.tight, x.bound.divided(y.low))


def _remainder(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts | None:
    if x.low < 0 or y.low <= 0:
        return None
    if x.high < y.low:
        return x
    if y.known is not None and x.low // y.known == x.high // y.known:  # what is subtracted is known
        return _difference(top, x, _constant(x.low // y.known * y.known))
    return IntegerFacts(0, min(x.high, y.high - 1), top.form, y.tight or x.tight)


def _power(top: IntegerFacts, amount: IntegerFacts) -> IntegerFacts | None:
    """2 to the power of a known amount, by which a value of the type can be shifted."""
    width = (top.high - top.low).bit_length()
    return _constant(1 << amount.known) if amount.known is not None and 0 <= amount.known < width else None


def _left(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts | None:
    factor = _power(top, y)
    return None if factor is None else _product(top, x, factor)


def _right(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts | None:
    factor = _power(top, y)
    return None if factor is None else _quotient(top, x, factor)


def _mask(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts | None:
    masks = [v for v in (x, y) if v.low >= 0]
    if not masks:
        return None
    least = min(masks, key=lambda v: v.high)
    return IntegerFacts(0, least.high, top.form, least.tight)


def _bits(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts | None:
    if x.low < 0 or y.low < 0:
        return None
    return IntegerFacts(0, (1 << max(x.high, y.high).bit_length()) - 1, top.form, x.tight and y.tight)


def _least(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts:
    less = min((x, y), key=lambda v: (v.high, not v.tight, v.bound.slope != 0))
    return _value(min(x.low, y.low), less.high, top.form, less.tight, less.bound)


def _greatest(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts) -> IntegerFacts:
    return _value(max(x.low, y.low), max(x.high, y.high), top.form, x.tight and y.tight, _common(x, y))


def _either(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts, predicate: IntegerFacts) -> IntegerFacts:
    return _value(min(x.low, y.low), max(x.high, y.high), top.form, x.tight and y.tight, _common(x, y))


def _common(x: IntegerFacts, y: IntegerFacts) -> Bound:
    """A bound that both are under."""
    one, other = x.bound.alike(y.bound)
    return Bound(least_above(one.slope, other.slope), least_above(one.offset, other.offset), one.over)


def _fused(top: IntegerFacts, x: IntegerFacts, y: IntegerFacts, z: IntegerFacts) -> IntegerFacts:
    return replace(_sum(top, _product(top, x, y), z), form=top.form)


RULES: Mapping[str, Callable[..., IntegerFacts | None]] = {
    "MOV": lambda top, x: x,
    "CVT": lambda top, x: x,
    "ADD": _sum, "SUB": _difference, "MUL": _product, "DIV": _quotient, "REM": _remainder, "FMA": _fused,
    "SHL": _left, "SHR": _right, "AND": _mask, "OR": _bits, "XOR": _bits,
    "MIN": _least, "MAX": _greatest, "SEL": _either,
}  # fmt: skip
