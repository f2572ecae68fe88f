"""Kinds: what the code generator knows of a value before a program runs: a set of tags, and a range of fixnums.

Comes in: constants, operators with the kinds of their operands, predicates. Goes out: kinds. `inference.py` carries
them through a unit, `values.py` and `shared.py` write code by them. A kind holds of a value whatever happens later,
for variables that nothing assigns have one value.

`FAR` is how far a variable gets that is counted up or down by small steps: to pass it takes years. So counters stay
fixnums although nothing else bounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from eshkol.lang import datum

LEAST, MOST = -(1 << 63), (1 << 63) - 1
FAR = (1 << 62) - (1 << 32)
STEP = 16  # by how much a counter goes on at once
LONGEST = 1 << 48  # things in a row
EXACT_IN_DOUBLE = 1 << 53


class Kind(NamedTuple):
    """A set of tags, as bits, and the range of the fixnums in it."""

    tags: int
    low: int = 0
    high: int = 0


NOTHING = Kind(0)  # of what never has a value


class Kinds:
    """Kinds over the runtime's tags."""

    def __init__(self, tags: Mapping[str, str]) -> None:
        bit = {name: 1 << int(number) for name, number in tags.items() if name != "COUNT"}
        self.bit = bit
        self.names = {bits: number for name, number in tags.items() if (bits := bit.get(name))}
        self.fixnum, self.flonum, self.bignum = bit["FIXNUM"], bit["FLONUM"], bit["BIGNUM"]
        self.boolean_tag, self.several = bit["BOOLEAN"], bit["VALUES"]
        self.exact = self.fixnum | self.bignum
        self.real = self.exact | self.flonum | bit["RATIONAL"]
        self.any = Kind(sum(bit.values()), LEAST, MOST)
        self.all_integers = Kind(self.exact, LEAST, MOST)
        self.double, self.boolean = Kind(self.flonum), Kind(self.boolean_tag)
        self.procedure, self.special = Kind(bit["PROCEDURE"]), Kind(bit["SPECIAL"])
        self.list = Kind(bit["PAIR"] | bit["NULL"])
        self.null, self.pair = Kind(bit["NULL"]), Kind(bit["PAIR"])
        self._constants: dict[type, Kind] = {
            bool: self.boolean, float: self.double, datum.Char: Kind(bit["CHAR"]), datum.Special: self.special,
            str: Kind(bit["STRING"]), datum.Symbol: Kind(bit["SYMBOL"]), datum.Vector: Kind(bit["VECTOR"]),
            bytes: Kind(bit["BYTEVECTOR"]),
        }  # fmt: skip
        self.results = self._results()

    def _results(self) -> dict[str, Kind]:
        """What primitives give, whatever they are given."""
        bit, size = self.bit, self.fixnums(0, LONGEST)
        table: tuple[tuple[Kind, str], ...] = (
            (self.pair, "cons"),
            (size, "vector-length string-length bytevector-length length"),
            (self.fixnums(0, 0x10FFFF), "char->integer"),
            (self.fixnums(0, 255), "bytevector-u8-ref"),
            (Kind(bit["CHAR"]), "string-ref integer->char char-upcase char-downcase"),
            (Kind(bit["VECTOR"]), "vector make-vector list->vector"),
            (Kind(bit["STRING"]), "make-string string-append substring number->string list->string symbol->string"),
            (Kind(bit["SYMBOL"]), "string->symbol"),
            (Kind(bit["BOX"]), "box make-box"),
        )
        return {name: kind for kind, names in table for name in names.split()}

    def telling(self) -> dict[str, tuple[Kind, ...]]:
        """What must have been so of the arguments of primitives that gave a value."""
        index, bit = self.fixnums(0, LONGEST), self.bit
        vector, string, pair = Kind(bit["VECTOR"]), Kind(bit["STRING"]), self.pair
        return {
            "vector-ref": (vector, index), "vector-set!": (vector, index), "string-ref": (string, index),
            "%vector-ref": (vector, index), "%vector-set!": (vector, index),
            "vector-length": (vector,), "string-length": (string,), "car": (pair,), "cdr": (pair,),
        }  # fmt: skip

    # ---- kinds --------------------------------------------------------------------------------------------------

    def fixnums(self, low: int, high: int) -> Kind:
        """Exact integers of a range: some of them may be no fixnums."""
        if low < LEAST or high > MOST:
            return (
                Kind(self.exact, max(low, LEAST), min(high, MOST))
                if low <= MOST and high >= LEAST
                else Kind(self.bignum)
            )
        return Kind(self.fixnum, low, high)

    def constant(self, found: Any) -> Kind:
        kind = type(found)
        if kind is int:
            return Kind(self.fixnum, found, found) if LEAST <= found <= MOST else Kind(self.bignum)
        if kind is datum.List:
            return self.pair if found.items else self.null
        return self._constants.get(kind, self.any)

    def single(self, kind: Kind) -> str | None:
        """The one tag that values of a kind have, as LLVM writes it."""
        return self.names.get(kind.tags)

    def join(self, one: Kind, other: Kind) -> Kind:
        """Values of either kind."""
        if one is other or not other.tags:
            return one
        if not one.tags:
            return other
        tags = one.tags | other.tags
        if not one.tags & self.fixnum:
            return Kind(tags, other.low, other.high)
        if not other.tags & self.fixnum:
            return Kind(tags, one.low, one.high)
        return Kind(tags, min(one.low, other.low), max(one.high, other.high))

    def with_tags(self, kind: Kind, tags: int) -> Kind:
        """Those values of a kind that have one of these tags."""
        left = kind.tags & tags
        return kind if left == kind.tags else Kind(left, kind.low, kind.high) if left & self.fixnum else Kind(left)

    def within(self, kind: Kind, low: int, high: int) -> Kind:
        """Those values of a kind that, if they are fixnums, lie in a range."""
        if not kind.tags & self.fixnum or (low <= kind.low and kind.high <= high):
            return kind
        low, high = max(low, kind.low), min(high, kind.high)
        return Kind(kind.tags, low, high) if low <= high else Kind(kind.tags & ~self.fixnum)

    # ---- operators ----------------------------------------------------------------------------------------------

    def operator(self, name: str, args: list[Kind]) -> Kind:
        """What arithmetic of any number of arguments gives."""
        if not args:
            return self.any
        for kind in args:
            if not kind.tags:
                return NOTHING
        if len(args) == 1:
            return (
                self.arithmetic("-", self.constant(0), args[0]) if name == "-" else args[0] if name != "/" else self.any
            )
        found = args[0]
        for kind in args[1:]:
            found = self.arithmetic(name, found, kind)
        return found

    def arithmetic(self, name: str, one: Kind, other: Kind) -> Kind:
        """What an operator gives of two numbers."""
        either = one.tags | other.tags
        if either & ~self.real:
            return self.any
        if name not in _RANGES:  # division of whole numbers
            return self._divided(name, one, other)
        if either == self.fixnum and name != "/":
            low, high = _RANGES[name](one, other)
            return self.fixnums(low, high)
        doubles = self.flonum if either & self.flonum else 0
        if one.tags == self.flonum or other.tags == self.flonum:
            return self.double
        if name == "/" or either & self.bit["RATIONAL"]:
            return Kind(doubles | self.exact | self.bit["RATIONAL"], LEAST, MOST)
        return Kind(doubles | self.exact, LEAST, MOST)

    def _divided(self, name: str, one: Kind, other: Kind) -> Kind:
        if (one.tags | other.tags) & ~self.exact:
            return self.any if (one.tags | other.tags) & ~self.real else Kind(self.exact | self.flonum, LEAST, MOST)
        if other.tags != self.fixnum or other.low <= 0:
            return self.all_integers
        if name == "modulo":
            return Kind(self.fixnum, 0, other.high - 1)
        if name == "remainder":
            whole = one.tags == self.fixnum
            low = 0 if whole and one.low >= 0 else 1 - other.high
            high = 0 if whole and one.high <= 0 else other.high - 1
            return Kind(self.fixnum, max(low, one.low) if whole and one.low < 0 else low,
                        min(high, one.high) if whole and one.high > 0 else high)  # fmt: skip
        if one.tags != self.fixnum:
            return self.all_integers
        ends = [_truncated(a, b) for a in (one.low, one.high) for b in (other.low, other.high)]
        return Kind(self.fixnum, min(ends), max(ends))

    def compared(self, one: Kind, other: Kind) -> Kind:
        """What a comparison of two numbers gives: of tensors, that may be one."""
        return self.any if (one.tags | other.tags) & ~self.real else self.boolean

    def primitive(self, name: str, args: list[Kind], is_test: bool) -> Kind:
        """What another primitive gives."""
        for kind in args:
            if not kind.tags:
                return NOTHING
        if is_test:
            return self.boolean
        if name == "list" or name == "cons*":
            return self.null if not args else self.any if name == "cons*" and len(args) == 1 else self.pair
        found = self.results.get(name)
        if found is not None:
            return found
        if name in _OF_DOUBLES and len(args) == 1 and args[0].tags == self.flonum:
            return self.double
        if name in _CONVERSIONS and len(args) == 1 and not args[0].tags & ~self.real:
            return self.double
        if name in ("1+", "-1+") and len(args) == 1:
            return self.arithmetic("+", args[0], self.constant(1 if name == "1+" else -1))
        if name in ("max", "min", "abs"):
            return self._chosen(name, args)
        return self.any

    def _chosen(self, name: str, args: list[Kind]) -> Kind:
        tags = 0
        for kind in args:
            tags |= kind.tags
        if tags == self.flonum:
            return self.double
        if tags != self.fixnum:
            return self.any
        if name == "abs":
            kind = args[0]
            low = 0 if kind.low <= 0 <= kind.high else min(abs(kind.low), abs(kind.high))
            return self.fixnums(low, max(abs(kind.low), abs(kind.high)))
        choose: Callable[[Iterable[int]], int] = max if name == "max" else min
        return Kind(self.fixnum, choose(k.low for k in args), choose(k.high for k in args))

    # ---- what comparisons tell -------------------------------------------------------------------------------------

    def ordered(self, relation: str, one: Kind, other: Kind) -> Kind:
        """What is known of a value that is in a relation to a fixnum."""
        if other.tags != self.fixnum:
            return one
        match relation:
            case "=":
                if not one.tags & ~self.exact:
                    one = self.with_tags(one, self.fixnum)
                return self.within(one, other.low, other.high)
            case "<":
                return self.within(one, LEAST, other.high - 1)
            case "<=":
                return self.within(one, LEAST, other.high)
            case ">":
                return self.within(one, other.low + 1, MOST)
            case ">=":
                return self.within(one, other.low, MOST)
        if other.low == other.high and one.tags & self.fixnum:  # it is another number
            if one.low == other.low:
                return self.within(one, one.low + 1, MOST)
            if one.high == other.low:
                return self.within(one, LEAST, one.high - 1)
        return one


OPPOSITE = {"=": "/=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
TURNED = {"=": "=", "/=": "/=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OF_DOUBLES = frozenset(
    ["sin", "cos", "tan", "atan", "exp", "floor", "ceiling", "round", "truncate", "square", "sinh", "cosh", "tanh"]
)
_CONVERSIONS = frozenset({"inexact", "exact->inexact"})


def _truncated(a: int, b: int) -> int:
    return -(-a // b) if a < 0 else a // b


def _near(kind: Kind) -> bool:
    return kind.low >= -STEP and kind.high <= STEP


def _sum(one: Kind, other: Kind) -> tuple[int, int]:
    low, high = one.low + other.low, one.high + other.high
    if _near(other):  # a counter's step
        low = one.low if one.low == -FAR else low
        high = one.high if one.high == FAR else high
    elif _near(one):
        low = other.low if other.low == -FAR else low
        high = other.high if other.high == FAR else high
    return low, high


def _difference(one: Kind, other: Kind) -> tuple[int, int]:
    return _sum(one, Kind(other.tags, -other.high, -other.low))


def _product(one: Kind, other: Kind) -> tuple[int, int]:
    ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return min(ends), max(ends)


_RANGES: dict[str, Callable[[Kind, Kind], tuple[int, int]]] = {
    "+": _sum, "-": _difference, "*": _product, "/": _sum,
}  # fmt: skip
