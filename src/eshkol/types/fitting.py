"""What fits where: whether a type may stand where another is expected, and what its variables and sizes are there.

Comes in: types. Goes out: whether one fits another, for certain (`proven`) or behind a check (`fits`); types with
others for their variables, and with sizes for names of sizes.

`ANY` fits everywhere, and everything fits it; a check at run time stands where it meets a type that someone wrote down.
Numbers narrow in the same way: an `Integer` fits where a `Nat` is expected, behind a check, since `(- n 1)` would
otherwise fit nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from eshkol.types.kinds import (
    ANY,
    COVER,
    HANDLES,
    NULL_BIT,
    NUMBERS,
    PAIR,
    VOID,
    Arrow,
    Function,
    HandleOf,
    ListOf,
    Named,
    PairOf,
    Part,
    ProofOf,
    TensorOf,
    Type,
    TypeVariable,
    ValuesOf,
    VectorOf,
    cover,
    function,
    handle_of,
    join,
    join_all,
    list_of,
    opened,
    pair_of,
    vector_of,
)
from eshkol.types.sizes import UNKNOWN, Size, put

# ---- what fits where -------------------------------------------------------------------------------------------------

_Seen = frozenset[tuple[object, object]]


def fits(a: Type, b: Type) -> bool:
    """Whether values of one type may stand where the other is expected; some of them behind a check."""
    return _fits(a, b, False, frozenset())


@lru_cache(maxsize=1 << 14)
def _proven(a: Type, b: Type) -> bool:
    return _fits(a, b, True, frozenset())


def proven(a: Type, b: Type) -> bool:
    """Whether all values of one type are of the other: no check is needed."""
    if a is b or b is ANY:
        return True
    if a is ANY:
        return False
    if not a.parts and not a.mask & ~b.mask:
        return True
    return _proven(a, b)


def _fits(a: Type, b: Type, strict: bool, seen: _Seen) -> bool:
    if a is b or b is ANY:
        return True
    if a is ANY:
        return not strict
    missing = a.mask & ~b.mask
    if missing and not strict and missing & NUMBERS and a.mask & b.mask & NUMBERS:
        missing &= ~NUMBERS  # numbers narrow
    if (missing or a.parts) and any(type(p) is Named for p in (*a.parts, *b.parts)):
        if (a, b) in seen:
            return True
        seen = seen | {(a, b)}
        return _fits(opened(a), opened(b), strict, seen)
    if missing:
        inside = 0
        for part in b.parts:
            if type(part) is ListOf:
                inside |= NULL_BIT if strict else PAIR | NULL_BIT
            elif type(part) is not TypeVariable and (not strict or _holds_anything(part)):
                inside |= COVER[type(part)]
        if missing & ~inside:
            return False
    return all(_part_fits(part, b, strict, seen) for part in a.parts)


def _holds_anything(part: Part) -> bool:
    return part.item is ANY if type(part) is VectorOf else type(part) is PairOf and part.first is part.rest is ANY


def _part_fits(part: Part, b: Type, strict: bool, seen: _Seen) -> bool:
    if type(part) is TypeVariable:
        return part in b.parts
    bits = COVER[type(part)]
    if b.mask & bits == bits and bits:
        return True
    if any(_one_fits(part, other, strict, seen) for other in b.parts):
        return True
    if type(part) is ListOf:  # as what is empty, or a pair
        parted = Type(NULL_BIT, (PairOf(part.item, Type(0, (part,))),))
        return not any(type(p) is ListOf for p in b.parts) and _covers_both(b) and _fits(parted, b, strict, seen)
    return False


def _covers_both(b: Type) -> bool:
    return bool(cover(b) & NULL_BIT and cover(b) & PAIR)


def _one_fits(a: Part, b: Part, strict: bool, seen: _Seen) -> bool:
    match a, b:
        case PairOf(first, rest), PairOf(to_first, to_rest):
            return _fits(first, to_first, strict, seen) and _fits(rest, to_rest, strict, seen)
        case PairOf(first, rest), ListOf(item):
            return _fits(first, item, strict, seen) and _fits(rest, Type(0, (b,)), strict, seen)
        case ListOf(x), ListOf(y):
            return _fits(x, y, strict, seen)
        case VectorOf(x, n), VectorOf(y, m):
            if n != m and m is not None and (strict or n is not None):
                return False
            empty = x == Type(0)  # into which nothing can be put
            return empty or (_fits(x, y, strict, seen) and (y is ANY or _fits(y, x, strict, seen)))
        case TensorOf(dtype, dims), TensorOf(to_dtype, to_dims):
            return _dtype_fits(dtype, to_dtype, strict) and _dims_fit(dims, to_dims, strict)
        case HandleOf(of_kind, x), HandleOf(to_kind, y):
            return HANDLES[of_kind] == HANDLES[to_kind] and _fits(x, y, strict, seen)
        case ValuesOf(items), ValuesOf(others):
            return len(items) == len(others) and all(
                _fits(x, y, strict, seen) for x, y in zip(items, others, strict=True)
            )
        case Function(arrows), Function(others):
            return all(any(_arrow_fits(x, y, strict, seen) for x in arrows) for y in others)
    return a == b


def _dtype_fits(a: str | None, b: str | None, strict: bool) -> bool:
    return b is None or a == b or (a is None and not strict)


def _dims_fit(a: tuple[str | int, ...] | None, b: tuple[str | int, ...] | None, strict: bool) -> bool:
    if b is None:
        return True
    if a is None:
        return not strict
    return len(a) == len(b) and all(x == y or y == "_" or (x == "_" and not strict) for x, y in zip(a, b, strict=True))


def _arrow_fits(a: Arrow, b: Arrow, strict: bool, seen: _Seen) -> bool:
    if a.variables:
        a = substituted_arrow(a, dict.fromkeys(a.variables, ANY))
    least, most = len(b.params) - b.optional, len(b.params)
    if not a.takes(least) or not a.takes(most) or (b.rest is not None and a.rest is None):
        return False
    if not all(_fits(b.param(i), a.param(i), strict, seen) for i in range(most)):
        return False
    if b.rest is not None and a.rest is not None and not _fits(b.rest, a.rest, strict, seen):
        return False
    return b.result == VOID or _fits(a.result, b.result, strict, seen)


# ---- procedures ------------------------------------------------------------------------------------------------------


def function_in(kind: Type) -> Function | None:
    """The procedures of a type, if it has one part of such."""
    found = [part for part in kind.parts if type(part) is Function]
    return found[0] if len(found) == 1 else None


def wanted_arrow(wanted: Function | None, count: int, has_rest: bool) -> Arrow | None:
    """The way that a procedure with so many parameters is to have; of several, what they have in common."""
    if wanted is None:
        return None
    fitting = [a for a in wanted.arrows if a.takes(count) and (has_rest or len(a.params) == count)]
    if len(fitting) < 2:
        return fitting[0] if fitting else None
    params = tuple(join_all(a.param(i) for a in fitting) for i in range(count))
    return Arrow(params, fitting[0].rest, join_all(a.result for a in fitting))


# ---- sizes -----------------------------------------------------------------------------------------------------------


def sizes_in(kind: Type) -> list[tuple[int | str, ...]]:
    """The shapes that stand in a type, at its surface."""
    found: list[tuple[int | str, ...]] = []
    for part in kind.parts:
        if type(part) is TensorOf and part.dims is not None:
            found.append(part.dims)
        elif type(part) is VectorOf and part.length is not None:
            found.append((part.length,))
    return found


def resized(kind: Type, sizes: dict[str, Size]) -> Type:
    """A type with sizes for names of sizes."""
    return sizes_changed(kind, lambda size: put(size, sizes)) if sizes else kind


def sizes_changed(kind: Type, change: Callable[[Size], Size]) -> Type:
    """A type with other sizes at its surface."""
    if not kind.parts:
        return kind
    parts: list[Part] = []
    for part in kind.parts:
        match part:
            case TensorOf(dtype, dims) if dims is not None:
                parts.append(TensorOf(dtype, tuple(map(change, dims))))
            case VectorOf(item, length) if length is not None:
                parts.append(VectorOf(item, change(length)))
            case _:
                parts.append(part)
    return Type(kind.mask, tuple(parts))


def without_proofs(kind: Type) -> Type:
    """What a procedure gives to those outside, where the names that its proofs are about mean nothing."""
    if not any(type(part) is ProofOf for part in kind.parts):
        return kind
    return join(Type(kind.mask, tuple(p for p in kind.parts if type(p) is not ProofOf)), VOID)


def solved(wanted: Type, given: Type, sizes: dict[str, int | str]) -> None:
    """Take in what the shape of an argument says of the names in the shape that is wanted."""
    for dims, found in zip(sizes_in(wanted), sizes_in(given), strict=False):
        if len(dims) == len(found):
            for name, size in zip(dims, found, strict=True):
                if isinstance(name, str) and name.isidentifier() and sizes.get(name, UNKNOWN) == UNKNOWN:
                    sizes[name] = size


# ---- type variables --------------------------------------------------------------------------------------------------


def substituted(kind: Type, by: dict[TypeVariable, Type]) -> Type:
    """A type with types in place of variables."""
    if kind is ANY or not kind.parts:
        return kind
    result = Type(kind.mask)
    for part in kind.parts:
        match part:
            case TypeVariable():
                new = by.get(part, Type(0, (part,)))
            case PairOf(first, rest):
                new = pair_of(substituted(first, by), substituted(rest, by))
            case ListOf(item):
                new = list_of(substituted(item, by))
            case VectorOf(item, length):
                new = vector_of(substituted(item, by), length)
            case HandleOf(of_kind, item):
                new = handle_of(of_kind, substituted(item, by))
            case ValuesOf(items):
                new = Type(0, (ValuesOf(tuple(substituted(i, by) for i in items)),))
            case Function(arrows):
                new = function(*(substituted_arrow(arrow, by) for arrow in arrows))
            case _:
                new = Type(0, (part,))
        if new is ANY:
            return ANY
        result = join(result, new)
    return result


def substituted_arrow(arrow: Arrow, by: dict[TypeVariable, Type]) -> Arrow:
    return Arrow(
        tuple(substituted(p, by) for p in arrow.params),
        None if arrow.rest is None else substituted(arrow.rest, by),
        substituted(arrow.result, by),
        arrow.optional,
        tuple(v for v in arrow.variables if v not in by),
    )
