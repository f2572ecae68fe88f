"""Sizes that remember how they were made: an integer of which each use is watched.

A function that is traced, and its compiler, compute with lengths of axes as with any integers. An `Extent` is such an
integer. It has the value of one call, the *hint*, and an expression in the size `n` that gave it. Arithmetic makes
further expressions. A comparison answers for the hint and is noted as a condition under which the answer holds
(`Conditions`); what cannot be followed (a hash, `float(n)`, its digits) holds for the hint alone, and is noted so. What
was computed is then right for every size that meets all conditions, with the expressions evaluated for that size.

Expressions are numbered, and equal ones are one: polynomials in n by their coefficients, everything else by an
operator and its operands. Sizes below `LEAST` are classes of their own, for much is decided by whether an axis has more
than one element.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
LEAST = 2
MOST = 1 << 40
SHOWN = 4  # conditions that are not about n itself

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "/": operator.truediv, "max": max, "min": min,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Conditions:
    """The size at work, its expressions, and what must hold of it so that all that was decided is right."""

    def __init__(self, hint: int) -> None:
        self.hint, self.least, self.most = hint, LEAST, MOST
        self.not_these: set[int] = set()
        self.others: dict[tuple[str, int, int], None] = {}  # comparison of two expressions that holds
        self.fixed: str | None = None  # what made the hint the only size that is right
        self.numbers: Any = None  # (extent, dtype or None) → a number that is computed with
        self._nodes: list[tuple[Any, ...]] = []
        self._places: dict[tuple[Any, ...], int] = {}
        self._made: dict[int, Extent] = {}
        self._late: set[int] = set()  # expressions of what is known for each size later
        self.late_count = 0
        self.size: Any = self._made_of(("poly", (0, 1)), hint)

    # --- expressions --------------------------------------------------------------------------------

    def _made_of(self, node: tuple[Any, ...], value: int) -> Any:
        if node[0] == "poly" and len(node[1]) == 1:
            return node[1][0]
        place = self._places.get(node)
        if place is None:
            place = self._places[node] = len(self._nodes)
            self._nodes.append(node)
        found = self._made.get(place)
        if found is None:
            found = self._made[place] = Extent._of(value, self, place)
        return found

    def _place(self, given: Any) -> int:
        """The number of an expression, of a plain integer too."""
        if type(given) is Extent:
            return given.place
        node = ("poly", (given,)) if isinstance(given, int) else ("number", given)
        place = self._places.get(node)
        if place is None:
            place = self._places[node] = len(self._nodes)
            self._nodes.append(node)
        return place

    def _polynomial(self, given: Any) -> tuple[int, ...] | None:
        if type(given) is not Extent:
            return (int(given),)
        node = self._nodes[given.place]
        return node[1] if node[0] == "poly" else None

    def late(self) -> Extent:
        """One more integer that whoever evaluates expressions for a size gives with it, and that decides nothing."""
        self.late_count += 1
        found: Extent = self._made_of(("late", self.late_count - 1), 0)
        self._late.add(found.place)
        return found

    def _own(self, given: Any) -> Any:
        """What is an extent of other conditions (of a trace around or within this one) is a number here."""
        if type(given) is Extent and given.conditions is not self:
            given.conditions.fix("it meets a size of another function")
            return _plain(given)
        return given

    def compute(self, op: str, one: Any, other: Any) -> Any:
        """The result of an operator on two integers of which at least one is an extent."""
        one, other = self._own(one), self._own(other)
        value = _OPERATORS[op](_plain(one), _plain(other))
        a, b = self._polynomial(one), self._polynomial(other)
        if a is not None and b is not None:
            found = _POLYNOMIALS[op](a, b) if op in _POLYNOMIALS else None
            if found is not None:
                return self._made_of(("poly", found), value)
        found = self._made_of((op, self._place(one), self._place(other)), value)
        if self._late and not self._late.isdisjoint((self._place(one), self._place(other))):
            self._late.add(found.place)
        return found

    # --- conditions ---------------------------------------------------------------------------------

    def compare(self, op: str, one: Any, other: Any) -> bool:
        """The answer for the hint, which is noted where it depends on the size."""
        if one is other:
            return op in ("==", "<=", ">=")
        one, other = self._own(one), self._own(other)
        if type(one) is Extent and type(other) is Extent and one.place == other.place:
            return op in ("==", "<=", ">=")
        if self._late and not self._late.isdisjoint((self._place(one), self._place(other))):
            if op not in ("==", "!="):
                self.fix("where a value lies is asked for")
            return op == "!="  # places may coincide, but nothing is to depend on that
        answer = _COMPARISONS[op](_plain(one), _plain(other))
        if self.fixed is not None:
            return answer
        exact = isinstance(one, int) and isinstance(other, int)
        a, b = (self._polynomial(one), self._polynomial(other)) if exact else (None, None)
        if a is not None and b is not None:
            difference = _subtracted(a, b)
            if len(difference) == 1:
                return answer
            if len(difference) == 2:
                self._linear(op if answer else _OPPOSITE[op], difference[1], difference[0])
                return answer
            if _grows(difference, self.least):
                return answer
        self.others[op if answer else _OPPOSITE[op], self._place(one), self._place(other)] = None
        return answer

    def _linear(self, op: str, factor: int, rest: int) -> None:
        """Note that factor × n + rest stands so to 0, as it does for the hint."""
        if op in ("==", "!="):
            root, left = divmod(-rest, factor)
            if op == "==":
                self.least, self.most = self.hint, self.hint
                self.fix(f"it is asked whether n == {root}")
            elif left == 0 and self.least <= root <= self.most:
                self.not_these.add(root)
            return
        if factor < 0:
            factor, rest, op = -factor, -rest, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
        # n < -rest / factor and so on
        if op == "<":
            self.most = min(self.most, -(rest // factor) - 1)
        elif op == "<=":
            self.most = min(self.most, -rest // factor)
        elif op == ">":
            self.least = max(self.least, -rest // factor + 1)
        else:
            self.least = max(self.least, -(rest // factor))
        assert self.least <= self.hint <= self.most

    def fix(self, why: str) -> None:
        """Note that all of it is right for the hint alone."""
        if self.fixed is None:
            self.fixed = why + _asked_at()

    def told(self) -> str:
        """The conditions, as people read them."""
        parts = []
        if self.most < MOST:
            parts.append(f"{self.least} <= n <= {self.most}")
        else:
            parts.append(f"n >= {self.least}")
        if self.not_these:
            parts.append("n is none of " + ", ".join(map(str, sorted(self.not_these))))
        parts += [f"{self.text(a)} {op} {self.text(b)}" for op, a, b in [*self.others][:SHOWN]]
        if len(self.others) > SHOWN:
            parts.append(f"and {len(self.others) - SHOWN} more")
        return ", ".join(parts)

    def text(self, place: int) -> str:
        """An expression, as people read it."""
        node = self._nodes[place]
        if node[0] == "poly":
            return _written(node[1])
        if node[0] in ("number", "late"):
            return repr(node[1])
        return f"({self.text(node[1])} {node[0]} {self.text(node[2])})"

    # --- evaluation ---------------------------------------------------------------------------------

    def holds(self) -> Callable[[int], bool]:
        """Whether a size meets all conditions; not one for which they divide by 0, as those of a part of it may."""
        lines, named = self._code([p for _, a, b in self.others for p in (a, b)])
        tests = [f"{self.least} <= n <= {self.most}"]
        if self.not_these:
            tests.append(f"n not in {self.not_these}")
        first = " and ".join(tests)
        rest = " and ".join(f"{named[a]} {op} {named[b]}" for op, a, b in self.others) or "True"
        body = "".join(f"    {line}\n" for line in f"{lines}    return {rest}".splitlines())
        found: Callable[[int], bool] = _defined(
            f"    if not ({first}): return False\n    try:\n{body}    except ZeroDivisionError: return False\n"
        )
        return found

    def values(self, wanted: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
        """Extents, evaluated for a size, and for the values of what was to be known later."""
        places = [x.place for x in wanted]
        lines, named = self._code(places)
        code = f"{lines}    return ({''.join(named[p] + ', ' for p in places)})\n"
        found: Callable[..., tuple[Any, ...]] = _defined(code)
        return found

    def expressions(self, wanted: Sequence[int]) -> list[tuple[int, tuple[Any, ...]]]:
        """What expressions consist of, by their numbers: an operator and the numbers of its operands, these before it.

        Others are ("poly", coefficients), ("number", a float) and ("late", which).
        """
        needed: set[int] = set()
        waiting = [*wanted]
        while waiting:
            place = waiting.pop()
            if place not in needed:
                needed.add(place)
                node = self._nodes[place]
                waiting += () if node[0] in ("poly", "number", "late") else node[1:]
        return [(place, self._nodes[place]) for place in sorted(needed)]  # operands have lower numbers

    def _code(self, wanted: Sequence[int]) -> tuple[str, dict[int, str]]:
        """Lines that compute expressions, and what each is called then."""
        named: dict[int, str] = {}
        lines: list[str] = []
        for place, node in self.expressions(wanted):
            if node[0] == "number" or (node[0] == "poly" and len(node[1]) == 1):
                named[place] = f"({node[1]!r})" if node[0] == "number" else f"({node[1][0]})"
                continue
            if node[0] == "late":
                named[place] = f"late[{node[1]}]"
                continue
            if node[0] == "poly":
                code = _written(node[1])
            elif node[0] in ("max", "min"):
                code = f"{node[0]}({named[node[1]]}, {named[node[2]]})"
            else:
                code = f"{named[node[1]]} {node[0]} {named[node[2]]}"
            named[place] = f"t{place}"
            lines.append(f"    t{place} = {code}\n")
        return "".join(lines), named


def _defined(body: str) -> Any:
    space: dict[str, Any] = {}
    exec(compile(f"def found(n, late=()):\n{body}", "<sizes>", "exec"), space)
    return space["found"]


# --- polynomials: coefficients, those of lower powers first; the last is not 0 but in a constant --------------------


def _trimmed(found: list[int]) -> tuple[int, ...]:
    while len(found) > 1 and found[-1] == 0:
        found.pop()
    return tuple(found)


def _added(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if len(a) < len(b):
        a, b = b, a
    return _trimmed([x + (b[k] if k < len(b) else 0) for k, x in enumerate(a)])


def _subtracted(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return _added(a, tuple([-x for x in b]))


def _multiplied(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    found = [0] * (len(a) + len(b) - 1)
    for k, x in enumerate(a):
        for m, y in enumerate(b):
            found[k + m] += x * y
    return _trimmed(found)


def _divided(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The quotient where it is a polynomial again, for all sizes alike."""
    if any(b[:-1]) or b[-1] == 0 or any(x % b[-1] for x in a):
        return None
    power = len(b) - 1
    if any(a[:power]) or len(a) <= power:
        return None
    return _trimmed([x // b[-1] for x in a[power:]])


def _remainder(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    if len(b) == 1 and b[0] and not any(x % b[0] for x in a[1:]):
        return (a[0] % b[0],)
    return (0,) if b != (0,) and _divided(a, b) is not None else None


_POLYNOMIALS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...] | None]] = {
    "+": _added, "-": _subtracted, "*": _multiplied, "//": _divided, "%": _remainder,
}  # fmt: skip


def _grows(a: tuple[int, ...], least: int) -> bool:
    """Whether a polynomial of higher degree is surely of one sign, and not 0, from a size on."""
    if a[-1] < 0:
        a = tuple([-x for x in a])
    return all(x >= 0 for x in a[1:]) and sum(x * least**k for k, x in enumerate(a)) > 0


def _written(a: tuple[int, ...]) -> str:
    parts = []
    for power, factor in enumerate(a):
        if factor or len(a) == 1:
            of_n = "n" if power == 1 else f"n**{power}"
            parts.append(str(factor) if not power else of_n if factor == 1 else f"{factor}*{of_n}")
    return " + ".join(reversed(parts)) if len(parts) == 1 else f"({' + '.join(reversed(parts))})"


# --- the integer ----------------------------------------------------------------------------------


def _plain(given: Any) -> Any:
    """The value alone."""
    return int.__add__(given, 0) if type(given) is Extent else given


def _binary(op: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Extent, other: Any) -> Any:
        if isinstance(other, int):
            return self.conditions.compute(op, self, other)
        return self._beyond(op, self, other)

    def backward(self: Extent, other: Any) -> Any:
        if isinstance(other, int):
            return self.conditions.compute(op, other, self)
        return self._beyond(op, other, self)

    return forward, backward


def _compared(op: str) -> Callable[..., Any]:
    def compare(self: Extent, other: Any) -> Any:
        if isinstance(other, int | float) or type(other) is Extent:
            return self.conditions.compare(op, self, other)
        return NotImplemented

    return compare


def _fixing(name: str) -> Callable[..., Any]:
    """A method of integers whose result is not followed."""
    plain = getattr(int, name)

    def fixed(self: Extent, *given: Any) -> Any:
        self.conditions.fix(f"int.{name} of it is not followed")
        return plain(_plain(self), *given)

    return fixed


class Extent(int):
    """An integer that is an expression in a size."""

    conditions: Conditions
    place: int  # of its expression

    @classmethod
    def _of(cls, value: int, conditions: Conditions, place: int) -> Extent:
        made = super().__new__(cls, value)
        made.conditions, made.place = conditions, place
        return made

    def _beyond(self, op: str, one: Any, other: Any) -> Any:
        """An operator with something that is no integer."""
        beside = other if one is self else one
        if isinstance(beside, float) or (op == "/" and isinstance(beside, int)):
            numbers = self.conditions.numbers
            if numbers is not None and not _of_package(3):
                return _OPERATORS[op](*(numbers(x, None) if x is self else x for x in (one, other)))
            self.conditions.fix(f"a float is computed of it ({op})")
            return _OPERATORS[op](_plain(one), _plain(other))
        if isinstance(beside, list | tuple | str | bytes):
            self.conditions.fix("something is repeated so often")
            return _OPERATORS[op](_plain(one), _plain(other))
        return NotImplemented

    __add__, __radd__ = _binary("+")
    __sub__, __rsub__ = _binary("-")
    __mul__, __rmul__ = _binary("*")
    __floordiv__, __rfloordiv__ = _binary("//")
    __mod__, __rmod__ = _binary("%")
    __lshift__, __rlshift__ = _binary("<<")
    __rshift__, __rrshift__ = _binary(">>")
    __and__, __rand__ = _binary("&")
    __or__, __ror__ = _binary("|")
    __xor__, __rxor__ = _binary("^")
    __eq__, __ne__ = _compared("=="), _compared("!=")
    __lt__, __le__, __gt__, __ge__ = _compared("<"), _compared("<="), _compared(">"), _compared(">=")

    def __truediv__(self, other: Any) -> Any:
        return self._beyond("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._beyond("/", other, self)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if type(other) is int and 0 <= other <= 4 and modulus is None:
            result: Any = 1
            for _ in range(other):
                result = result * self
            return result
        self.conditions.fix("a power of it is not followed")
        return pow(_plain(self), _plain(other), modulus)

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        self.conditions.fix("a power of it is not followed")
        return pow(other, _plain(self), modulus)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else 0 - self

    def __bool__(self) -> bool:
        return self.conditions.compare("!=", self, 0)

    def __round__(self, digits: Any = None) -> Any:
        return self

    def __hash__(self) -> int:
        if _of_package(2):  # a table of the compiler's, where what is not found is made anew
            return hash((Extent, self.place, id(self.conditions)))
        self.conditions.fix("it is looked up in a table")
        return int.__hash__(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        if any(hasattr(x, "_node") for x in inputs):
            return NotImplemented
        self.conditions.fix("NumPy computes with it")
        return getattr(ufunc, method)(*map(_plain, inputs), **given)

    def __reduce__(self) -> Any:
        self.conditions.fix("it is stored")
        return int, (_plain(self),)

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __copy__(self) -> Any:
        return self

    __ceil__ = __floor__ = __trunc__ = __pos__
    __float__, __int__ = _fixing("__float__"), _fixing("__int__")
    __str__ = __repr__ = _fixing("__repr__")
    __format__ = _fixing("__format__")
    __invert__ = _fixing("__invert__")
    bit_length, bit_count, to_bytes = _fixing("bit_length"), _fixing("bit_count"), _fixing("to_bytes")
    as_integer_ratio = _fixing("as_integer_ratio")


def _of_package(depth: int) -> bool:
    """Whether the code that asks is of this package."""
    name = sys._getframe(depth).f_code.co_filename
    return name.startswith(PACKAGE) or name == "<string>"  # code that data classes have written


def _asked_at() -> str:
    """The line that asks, as it is told: the innermost that is not of this package, else the innermost of it."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    inner = frame
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    at = frame or inner
    return "" if at is None else f" ({os.path.basename(at.f_code.co_filename)}:{at.f_lineno})"


# --- structures that hold extents -----------------------------------------------------------------


def found_in(given: Any) -> Iterator[Extent]:
    """The extents in tuples, lists, mappings and data classes."""
    if type(given) is Extent:
        yield given
    elif isinstance(given, tuple | list | set | frozenset):
        for x in given:
            yield from found_in(x)
    elif isinstance(given, dict):
        for key, x in given.items():
            yield from found_in(key)
            yield from found_in(x)
    elif is_dataclass(given) and not isinstance(given, type):
        for name in given.__dataclass_fields__:
            yield from found_in(getattr(given, name))


def plain(given: Any) -> Any:
    """An integer without its expression."""
    return _plain(given)


def about(given: int) -> int:
    """A plain number near a size, for a choice that is right for every size and good for those of about as many.

    It is the same for all sizes from a power of 4 up to the next.
    """
    if type(given) is not Extent:
        return given
    value = _plain(given)
    least = 1
    while 4 * least <= value:
        least *= 4
    assert least <= given < 4 * least  # which is noted
    return 2 * least


def larger(one: int, other: int) -> int:
    """The larger of two integers; of extents an expression, whichever it is."""
    return _chosen("max", one, other)


def smaller(one: int, other: int) -> int:
    """The smaller of two integers, likewise."""
    return _chosen("min", one, other)


def _chosen(which: str, one: int, other: int) -> int:
    given = next((x for x in (one, other) if type(x) is Extent), None)
    if given is None or one is other:
        return int(_OPERATORS[which](one, other)) if given is None else one
    found: int = given.conditions.compute(which, one, other)
    return found


def asked(given: int, why: str) -> int:
    """The number itself; all that is made of an extent is right for it alone then."""
    if type(given) is Extent:
        given.conditions.fix(why)
    return int(_plain(given))


def index(given: Any) -> int:
    """What `operator.index` gives; an extent stays one."""
    return given if type(given) is Extent else operator.index(given)


def length_of(start: int, stop: int, step: int = 1) -> int:
    """What `len(range(start, stop, step))` gives, of extents too."""
    span = stop - start if step > 0 else start - stop
    return -(-span // abs(step)) if span > 0 else 0


def bounds_of(given: slice, extent: int) -> tuple[int, int, int]:
    """What `given.indices(extent)` gives: first, behind the last, step."""
    if not any(type(x) is Extent for x in (given.start, given.stop, given.step, extent)):
        return given.indices(extent)
    step = 1 if given.step is None else given.step
    lower, upper = (-1, extent - 1) if step < 0 else (0, extent)

    def clipped(place: Any, otherwise: Any) -> Any:
        if place is None:
            return otherwise
        if place < 0:
            place = place + extent
            return lower if place < lower else place
        return upper if place > upper else place

    return (
        clipped(given.start, upper if step < 0 else lower), clipped(given.stop, lower if step < 0 else upper), step
    )  # fmt: skip
