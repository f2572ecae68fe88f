"""Types: sets of values, as bits for what has no parts and as parts for what has.

Comes in: nothing. Goes out: `Type`, the parts it may have, their names for people, the join of two types, and what a
predicate leaves of one. Which type fits where another is expected is the business of `fitting.py`.

`ANY` is the type of what nothing is known about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

# ---- bits: kinds of values, each of which excludes the others --------------------------------------------------------

_KINDS = (
    "natural", "negative", "big natural", "big negative", "ratio", "float", "complex", "true", "false", "char",
    "string", "symbol", "keyword", "null", "void", "eof", "bytevector", "port", "box", "promise", "table", "pair",
    "vector", "procedure", "tensor", "record", "other",
)  # fmt: skip
BIT = {kind: 1 << number for number, kind in enumerate(_KINDS)}
EVERYTHING = (1 << len(_KINDS)) - 1


def _bits(*kinds: str) -> int:
    return reduce(lambda mask, kind: mask | BIT[kind], kinds, 0)


NATURALS = _bits("natural", "big natural")
INTEGERS = NATURALS | _bits("negative", "big negative")
EXACTS = INTEGERS | BIT["ratio"]
REALS = EXACTS | BIT["float"]
NUMBERS = REALS | BIT["complex"]
PAIR, VECTOR, PROCEDURE, TENSOR, RECORD = (BIT[k] for k in ("pair", "vector", "procedure", "tensor", "record"))
NULL_BIT, FALSE_BIT = BIT["null"], BIT["false"]

# Names of bits, the larger before the smaller; the first spelling is the one that is shown.
GROUND: dict[str, int] = {
    "Number": NUMBERS, "Real": REALS, "Exact": EXACTS, "Integer": INTEGERS, "Int64": _bits("natural", "negative"),
    "Nat": NATURALS, "Float64": BIT["float"], "Boolean": _bits("true", "false"), "True": BIT["true"],
    "False": BIT["false"], "Char": BIT["char"], "String": BIT["string"], "Symbol": BIT["symbol"],
    "Keyword": BIT["keyword"], "Null": BIT["null"], "Void": BIT["void"], "Eof": BIT["eof"],
    "Bytevector": BIT["bytevector"], "Port": BIT["port"], "Box": BIT["box"], "Promise": BIT["promise"],
    "Hash-Table": BIT["table"], "Procedure": PROCEDURE, "Tensor": TENSOR, "Record": RECORD,
}  # fmt: skip
SPELLINGS = {
    "Int": "Integer", "Fixnum": "Int64", "Flonum": "Float64", "Float": "Float64", "Double": "Float64",
    "Bool": "Boolean", "Natural": "Nat", "Unit": "Void", "Unspecified": "Void", "Nothing": "Void", "Character": "Char",
}  # fmt: skip


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairOf:
    first: Type
    rest: Type


@dataclass(frozen=True, slots=True)
class ListOf:
    """Lists of any length, the empty one too."""

    item: Type


@dataclass(frozen=True, slots=True)
class VectorOf:
    item: Type
    length: int | str | None = None  # a number, the name of one, or not known


@dataclass(frozen=True, slots=True)
class RecordOf:
    """Records of one definition; `key` tells definitions of one name apart."""

    name: str
    key: object


@dataclass(frozen=True, slots=True)
class TensorOf:
    dtype: str | None
    dims: tuple[str | int, ...] | None


@dataclass(frozen=True, slots=True)
class HandleOf:
    """What has, or refers to, a value: of the kind Owned, Linear (an owner that must be used up), Shared or Weak."""

    kind: str
    item: Type


@dataclass(frozen=True, slots=True)
class ProofOf:
    """Proofs of a proposition (`propositions.Proposition`): there is nothing of them when a program runs."""

    proposition: Any


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """A type that a polymorphic procedure is told by its caller; inside it nothing is known of it."""

    name: str
    key: object = None


@dataclass(frozen=True, slots=True)
class ValuesOf:
    items: tuple[Type, ...]


class Named:
    """A type that `define-type` gives a name; it may stand within itself."""

    __slots__ = ("_make", "_type", "name")

    def __init__(self, name: str, make: Callable[[], Type]) -> None:
        self.name, self._make = name, make
        self._type: Type | None = None

    @property
    def type(self) -> Type:
        if self._type is None:
            self._type = self._make()
        return self._type


@dataclass(frozen=True, slots=True)
class Arrow:
    """One way to call a procedure; the last `optional` of its parameters may be left out."""

    params: tuple[Type, ...]
    rest: Type | None
    result: Type
    optional: int = 0
    variables: tuple[TypeVariable, ...] = ()
    where: tuple[Any, ...] = ()  # propositions about what it is given (`propositions.Where`)

    def takes(self, count: int) -> bool:
        return len(self.params) - self.optional <= count and (self.rest is not None or count <= len(self.params))

    def param(self, index: int) -> Type:
        if index < len(self.params):
            return self.params[index]
        return ANY if self.rest is None else self.rest


@dataclass(frozen=True, slots=True)
class Function:
    """A procedure; the first of its ways that the arguments fit says what it gives."""

    arrows: tuple[Arrow, ...]


Part = (
    PairOf | ListOf | VectorOf | RecordOf | TensorOf | HandleOf | ProofOf | TypeVariable | ValuesOf | Named | Function
)

# The bits of the values that a part may have among them.
COVER = {
    PairOf: PAIR, ListOf: PAIR | NULL_BIT, VectorOf: VECTOR, RecordOf: RECORD, TensorOf: TENSOR,
    HandleOf: RECORD, ProofOf: BIT["void"], TypeVariable: EVERYTHING, ValuesOf: 0, Function: PROCEDURE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    mask: int
    parts: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return shown(self)


ANY = Type(EVERYTHING)  # compared by identity: other types may have all bits too
NEVER = Type(0)
NUMBER, REAL, EXACT, INTEGER, NAT, FLOAT = (Type(m) for m in (NUMBERS, REALS, EXACTS, INTEGERS, NATURALS, BIT["float"]))
BOOLEAN, TRUE, FALSE = Type(GROUND["Boolean"]), Type(BIT["true"]), Type(FALSE_BIT)
NULL, VOID, STRING, CHAR, SYMBOL = (Type(BIT[k]) for k in ("null", "void", "string", "char", "symbol"))
SOME_PROCEDURE, SOME_TENSOR, SOME_PAIR, SOME_VECTOR = Type(PROCEDURE), Type(TENSOR), Type(PAIR), Type(VECTOR)
MOST_VECTORS = 3  # types of vectors that a union keeps apart: what may be put into one differs
DEEPEST = 6  # parts within parts that inference keeps apart


HANDLES = {"Owned": "owned?", "Linear": "owned?", "Shared": "shared?", "Weak": "weak-ref?"}  # and what asks for them


def handle_of(kind: str, item: Type) -> Type:
    return Type(0, (HandleOf(kind, item),))


def list_of(item: Type) -> Type:
    return NULL if item is NEVER else Type(0, (ListOf(item),))


def pair_of(first: Type, rest: Type) -> Type:
    return Type(0, (PairOf(first, rest),))


def vector_of(item: Type, length: int | str | None = None) -> Type:
    return Type(0, (VectorOf(item, length),))


def tensor_of(dtype: str | None, dims: tuple[str | int, ...] | None) -> Type:
    return Type(TENSOR) if dtype is None and dims is None else Type(0, (TensorOf(dtype, dims),))


def function(*arrows: Arrow) -> Type:
    return Type(0, (Function(arrows),))


def cover(kind: Type) -> int:
    """The kinds of values that may be among those of a type."""
    mask = kind.mask
    for part in kind.parts:
        mask |= cover(part.type) if isinstance(part, Named) else COVER[type(part)]
    return mask


def has_handles(kind: Type) -> bool:
    """Whether a type, or one of a procedure that it is, says who owns what."""
    for part in kind.parts:
        if type(part) is HandleOf:
            return True
        if type(part) is Function and any(has_handles(k) for a in part.arrows for k in (*a.params, a.result)):
            return True
    return False


def opened(kind: Type) -> Type:
    """The same type without names for it."""
    for part in kind.parts:
        if type(part) is Named:
            rest = tuple(p for p in kind.parts if p is not part)
            return opened(join(Type(kind.mask, rest), part.type))
    return kind


# ---- names for people ------------------------------------------------------------------------------------------------


def shown(kind: Type) -> str:
    """A type as it is written."""
    if kind is ANY:
        return "Any"
    names, left = [], kind.mask
    for name, bits in GROUND.items():
        if left & bits == bits:
            names.append(name)
            left &= ~bits
    if left & PAIR:
        names.append("(Pair Any Any)")
    if left & VECTOR:
        names.append("(Vector Any)")
    names += [k.capitalize() for k in ("ratio", "complex", "other") if left & BIT[k]]
    odd = left & _bits("natural", "negative", "big natural", "big negative")
    if odd:
        names.append("Nat" if not odd & ~NATURALS else "Integer")
    names += [_part_shown(part) for part in kind.parts]
    if not names:
        return "Never"
    return names[0] if len(names) == 1 else f"(U {' '.join(names)})"


def _part_shown(part: Part) -> str:
    match part:
        case PairOf(first, rest):
            if rest == list_of(first):
                return f"(List {shown(first)})"  # that it is not empty is not said
            return f"(Pair {shown(first)} {shown(rest)})"
        case ListOf(item):
            return f"(List {shown(item)})"
        case VectorOf(item, length):
            return f"(Vector {shown(item)}{'' if length is None else f' {length}'})"
        case RecordOf(name, _) | TypeVariable(name, _):
            return name
        case HandleOf(of_kind, item):
            return f"({of_kind} {shown(item)})"
        case ProofOf(proposition):
            return f"(Proof {proposition.text})"
        case TensorOf(dtype, dims):
            inside = [dtype_shown(dtype), *map(str, ("...",) if dims is None else dims)]
            return f"(Tensor {' '.join(inside)})"
        case ValuesOf(items):
            return f"(Values {' '.join(map(shown, items))})".replace(" )", ")")
        case Function(arrows):
            ways = [_arrow_shown(arrow) for arrow in arrows]
            return ways[0] if len(ways) == 1 else f"(case-> {' '.join(ways)})"
        case Named():
            return part.name
    raise AssertionError(part)


def dtype_shown(dtype: str | None) -> str:
    """A dtype as annotations write it: Float32, BFloat16, UInt8."""
    if dtype is None:
        return "Any"
    prefix = next((p for p in ("uint", "bfloat") if dtype.startswith(p)), "")
    return prefix[:1].upper() + dtype[len(prefix[:1]) :].capitalize()


def _arrow_shown(arrow: Arrow) -> str:
    params = [shown(p) for p in arrow.params]
    for index in range(len(params) - arrow.optional, len(params)):
        params[index] = f"[{params[index]}]"
    if arrow.rest is not None:
        params += [shown(arrow.rest), "*"]
    text = f"(-> {' '.join([*params, shown(arrow.result)])})"
    return f"(All ({' '.join(v.name for v in arrow.variables)}) {text})" if arrow.variables else text


# ---- joins and meets -------------------------------------------------------------------------------------------------


def join(a: Type, b: Type) -> Type:
    """The least type here that has the values of both; `ANY` wins."""
    if a is b or b == NEVER:
        return a
    if a is ANY or b is ANY:
        return ANY
    if a == NEVER:
        return b
    mask = a.mask | b.mask
    if not b.parts and not a.parts:
        return a if mask == a.mask else Type(mask)
    parts: list[Part] = []
    for part in (*a.parts, *b.parts):
        mask = _add(parts, part, mask)
    pair = next((p for p in parts if type(p) is PairOf), None)
    if pair is not None:
        item = _as_list(pair)
        whole = next((p for p in parts if type(p) is ListOf), None)
        if item is not None and (whole is not None or mask & NULL_BIT):
            parts = [p for p in parts if type(p) not in (PairOf, ListOf)]
            parts.append(ListOf(item if whole is None else join(item, whole.item)))
    if any(type(p) is ListOf for p in parts):
        mask &= ~NULL_BIT
    return Type(mask, tuple(parts))


def _as_list(pair: PairOf) -> Type | None:
    """What the elements are of a pair that begins a list; None where it may not."""
    rest = pair.rest  # names are left alone: what they stand for may be in the making
    if rest.mask & ~NULL_BIT or len(rest.parts) > 1:
        return None
    if not rest.parts:
        return pair.first
    part = rest.parts[0]
    more = part.item if type(part) is ListOf else _as_list(part) if type(part) is PairOf else None
    return None if more is None else join(pair.first, more)


def _add(parts: list[Part], part: Part, mask: int) -> int:
    """Take one more part in; the bits that stand for what cannot be kept apart."""
    if part in parts:
        return mask
    for index, other in enumerate(parts):
        match other, part:
            case PairOf(a, b), PairOf(c, d):
                parts[index] = PairOf(join(a, c), join(b, d))
                return mask
            case ListOf(a), ListOf(b):
                parts[index] = ListOf(join(a, b))
                return mask
            case VectorOf(a, n), VectorOf(b, m) if a == b:
                parts[index] = VectorOf(a, n if n == m else None)
                return mask
            case VectorOf(), VectorOf() if sum(type(p) is VectorOf for p in parts) > MOST_VECTORS:
                parts[:] = [p for p in parts if type(p) is not VectorOf]
                return mask | VECTOR
            case HandleOf(a, x), HandleOf(b, y) if a == b:
                parts[index] = HandleOf(a, join(x, y))
                return mask
            case TensorOf(a, n), TensorOf(b, m):
                parts[index] = TensorOf(a if a == b else None, n if n == m else None)
                return mask
            case ValuesOf(a), ValuesOf(b) if len(a) == len(b):
                parts[index] = ValuesOf(tuple(map(join, a, b)))
                return mask
            case Function(), Function():
                del parts[index]
                return mask | PROCEDURE
    bits = COVER.get(type(part), 0)
    if bits and type(part) not in (ListOf, TypeVariable) and mask & bits == bits:
        return mask  # the bit says it already
    parts.append(part)
    return mask


def join_all(kinds: Iterable[Type]) -> Type:
    return reduce(join, kinds, NEVER)


def flattened(kind: Type, depth: int = DEEPEST) -> Type:
    """A type whose parts do not go on and on, for what grows from one turn of a loop to the next."""
    if kind is ANY or not kind.parts:
        return kind
    if depth == 0:
        return ANY
    parts: list[Part] = []
    for part in kind.parts:
        match part:
            case PairOf(first, rest):
                parts.append(PairOf(flattened(first, depth - 1), flattened(rest, depth - 1)))
            case ListOf(item):
                parts.append(ListOf(flattened(item, depth - 1)))
            case VectorOf(item, length):
                parts.append(VectorOf(flattened(item, depth - 1), length))
            case _:
                parts.append(part)
    return Type(kind.mask, tuple(parts))


def grown(kind: Type) -> Type:
    """What a variable of a loop may become: counters go up and down."""
    if kind is ANY or not kind.mask & NUMBERS:
        return kind
    mask = kind.mask
    if mask & INTEGERS:
        naturals = mask & INTEGERS & ~NATURALS == 0
        mask |= NATURALS if naturals else INTEGERS
    return Type(mask, kind.parts)


def narrowed(kind: Type, by: Type) -> Type:
    """What of a type a predicate lets pass that says `by`."""
    if kind is ANY or by is ANY:
        return by if kind is ANY else kind
    kind = opened(kind)
    by = opened(by)
    mask = kind.mask & by.mask
    parts: list[Part] = []
    covered = cover(by)
    for part in kind.parts:
        bits = COVER[type(part)]
        if type(part) is TypeVariable:
            return by
        if type(part) is ListOf and not any(type(p) is ListOf for p in by.parts):
            if covered & NULL_BIT:
                mask |= NULL_BIT
            if covered & PAIR:
                parts.append(PairOf(part.item, Type(0, (part,))))
        elif by.mask & bits or any(COVER[type(p)] & bits and _alike(p, part) for p in by.parts):
            parts.append(part)
    for other in by.parts:
        bits = COVER[type(other)]
        if kind.mask & bits and other not in parts:
            parts.append(other)
            mask &= ~bits
    return Type(mask, tuple(parts))


def _alike(a: Part, b: Part) -> bool:
    if type(a) is HandleOf and type(b) is HandleOf:
        return HANDLES[a.kind] == HANDLES[b.kind]
    return a == b if COVER[type(a)] == RECORD or COVER[type(b)] == RECORD else True


def without(kind: Type, gone: Type) -> Type:
    """What of a type is left where a predicate does not hold that says `gone`."""
    if kind is ANY:
        return ANY
    kind = opened(kind)
    mask = kind.mask & ~gone.mask
    parts: list[Part] = []
    for part in kind.parts:
        if type(part) is ListOf and not any(type(p) is ListOf for p in gone.parts):
            if gone.mask & PAIR and gone.mask & NULL_BIT:
                continue
            if gone.mask & PAIR:
                mask |= NULL_BIT
                continue
            if gone.mask & NULL_BIT:
                parts.append(PairOf(part.item, Type(0, (part,))))
                continue
        elif type(part) is ListOf or (
            type(part) is not TypeVariable and (gone.mask & COVER[type(part)] or part in gone.parts)
        ):
            continue
        parts.append(part)
    return Type(mask, tuple(parts))


def can_meet(a: Type, b: Type) -> bool:
    """Whether some value may be of both types; False is certain."""
    if a is ANY or b is ANY or a == NEVER or b == NEVER:
        return True
    common = cover(a) & cover(b)
    if not common:
        return any(type(p) is ValuesOf for p in (*a.parts, *b.parts))
    if common == RECORD and not (a.mask | b.mask) & RECORD:
        return any(
            _alike(p, q) for p in opened(a).parts for q in opened(b).parts if COVER[type(p)] == COVER[type(q)] == RECORD
        )
    return True
