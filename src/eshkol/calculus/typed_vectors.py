"""The primitives that typed programs know: vectors as a whole, made, copied, appended, filled.

Their parts are in typed_data.py. A vector that is made to be filled later (with nothing, `#f`, the empty list) takes
its type from the first thing that is stored in it. Until then its elements are marks that no program computes with: who
comes upon one gives up.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.calculus import ir
from eshkol.calculus.abstract import NIL, UNSPECIFIED, Abstract, Fields, Known, Leaf, NotFast, element_type
from eshkol.calculus.ir import F64, I1, I64, Type, TypedValue
from eshkol.calculus.specialize import Key, Specializer
from eshkol.calculus.typed_data import PRIMITIVES as PRIMITIVES  # with those of this module: all
from eshkol.calculus.typed_data import (
    as_vector,
    count,
    is_filled,
    length,
    memory_of,
    nothing,
    spelled,
    typed_null,
    vector,
    walk,
)  # fmt: skip
from eshkol.calculus.typed_numbers import choose, primitive
from eshkol.calculus.writer import Again, as_list, fixed_list, listed, said


@primitive("make-vector")
def _make_vector(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    noted = s.notes.memory.get(key)
    fill = args[1] if len(args) > 1 else None
    is_later = fill is None or (isinstance(fill, Known) and not fill.is_number)
    if is_later:
        kind = noted or F64
        if kind.kind in ("cell", "pairs") and not (isinstance(fill, Known) and fill.datum is NIL):
            raise NotFast("a vector that is filled with lists later")  # null is the empty list, not nothing
    else:
        assert fill is not None
        kind = noted or element_type(fill, s.free)
        if kind.is_pointer:
            raise NotFast("a vector that is filled with vectors or lists")
    times = s.i64(args[0])
    memory_type = ir.array(kind)
    if is_later:
        first = nothing(s, kind)
        is_empty_list = kind.kind in ("cell", "pairs")
        if (fill is not None or kind.is_pointer) and not is_empty_list and memory_type not in s.notes.unfilled:
            s.notes.unfilled.add(memory_type)
            raise Again
        if fill is None and not kind.is_pointer:
            first = s.fit_leaf(Known(0), kind)  # as the runtime fills it
    else:
        assert fill is not None
        first = s.fit_leaf(fill, kind)
    made = Leaf(s.op("array_new", [times, first], memory_type))
    s.origins[made.value] = key
    if is_later and noted is None:
        s.assumed.add(key)
    return made


# ---- parts of vectors ------------------------------------------------------------------------------------------------


def _fresh(s: Specializer, size: TypedValue, element: Type) -> TypedValue:
    """Memory that is filled at once."""
    first = s.literal(0.0, F64) if element == F64 else s.literal(0, I64) if element == I64 else nothing(s, element)
    return s.op("array_new", [size, first], ir.array(element))


def _size(s: Specializer, memory: TypedValue) -> TypedValue:
    return s.op(f"{memory.type.kind}_length", [memory], I64)


def _element(memory: TypedValue) -> Type:
    assert memory.type.element is not None
    return memory.type.element.unsized


def _range(s: Specializer, memory: TypedValue, args: Sequence[Abstract]) -> tuple[TypedValue | None, TypedValue]:
    """Where a part of a vector begins, unless it is at the beginning, and how long it is; both may be left out."""
    size = _size(s, memory)
    if not args:
        return None, size
    start = s.i64(args[0])
    end = s.i64(args[1]) if len(args) > 1 else size
    for low, high in ((s.literal(0, I64), start), (start, end), (end, size)):
        s.need(s.op("icompare", [low, high], I1, "le"))
    return start, s.op("isub", [end, start], I64)


def _known_range(s: Specializer, a: Fields, args: Sequence[Abstract]) -> tuple[Abstract, ...] | None:
    """A part of a vector whose parts are known, where it is known which."""
    places = [arg.datum for arg in args if isinstance(arg, Known) and type(arg.datum) is int]
    if len(places) < len(args):
        return None
    start, end = [*places, *(0, len(a.items))[len(places) :]]
    if not 0 <= start <= end <= len(a.items):
        s.fail()
    return a.items[start:end]


def _at(s: Specializer, start: TypedValue | None, index: TypedValue) -> TypedValue:
    return index if start is None else s.op("iadd", [start, index], I64)


def _get(s: Specializer, memory: TypedValue, index: TypedValue, wanted: Type) -> TypedValue:
    """An element that goes into memory of a type; marks of nothing may go where they are known as such."""
    found = s.op(f"{memory.type.kind}_get", [memory, index], _element(memory))
    if memory.type in s.notes.unfilled and wanted != memory.type:
        s.need(is_filled(s, found))
    return found


def _copy(
    s: Specializer,
    to: TypedValue,
    at: TypedValue | None,
    source: TypedValue,
    start: TypedValue | None,
    size: TypedValue,
    backwards: TypedValue | None = None,
) -> None:
    """Elements of one vector into another, the last ones first where that is said."""

    def step(i: TypedValue, now: list[TypedValue]) -> list[TypedValue]:
        if backwards is not None:
            last = s.op("isub", [size, s.literal(1, I64)], I64)
            i = s.i64(choose(s, backwards, Leaf(s.op("isub", [last, i], I64)), Leaf(i)))
        item = _get(s, source, _at(s, start, i), to.type)
        s.effect("array_set", [to, _at(s, at, i), s.fit_leaf(Leaf(item), _element(to))])
        return []

    count(s, size, [], step)


@primitive("vector-copy", "subvector")
def _vector_copy(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, *rest = args
    if isinstance(a, Fields) and a.kind == "vector":
        items = _known_range(s, a, rest)
        if items is not None:
            return vector(s, list(items), key)
    source = memory_of(s, a)
    start, size = _range(s, source, rest)
    made = _fresh(s, size, _element(source))
    _copy(s, made, None, source, start, size)
    s.origins[made] = key
    kind = s.notes.memory.get(key)
    if kind is not None and kind != _element(source):
        raise NotFast("a copy of a vector is of another type")
    return Leaf(made)


@primitive("vector-append")
def _vector_append(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    if all(isinstance(a, Fields) and a.kind == "vector" for a in args):
        return vector(s, [item for a in args if isinstance(a, Fields) for item in a.items], key)
    kind: Type | None = s.notes.memory.get(key)
    for a in args:
        if isinstance(a, Fields) and a.kind == "vector":
            found = element_type(as_vector(list(a.items)), s.free).element if a.items else kind
        else:
            found = _element(memory_of(s, a))
        if kind is None or found == kind or (kind, found) == (I64, F64):
            kind = found
        elif (kind, found) != (F64, I64):
            raise NotFast("vectors of different types are appended")
    assert kind is not None
    size, sizes = s.literal(0, I64), []
    for a in args:
        one = s.literal(len(a.items), I64) if isinstance(a, Fields) else _size(s, memory_of(s, a))
        sizes.append(one)
        size = s.op("iadd", [size, one], I64)
    made, at = _fresh(s, size, kind), s.literal(0, I64)
    for a, one in zip(args, sizes, strict=True):
        if isinstance(a, Fields):
            for k, item in enumerate(a.items):
                place = s.op("iadd", [at, s.literal(k, I64)], I64)
                s.effect("array_set", [made, place, s.fit_leaf(item, kind)])
        else:
            _copy(s, made, at, memory_of(s, a), None, one)
        at = s.op("iadd", [at, one], I64)
    s.origins[made] = key
    return Leaf(made)


@primitive("vector-copy!")
def _vector_copy_to(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    to, at, source, *rest = args
    memory, place, other = _changed(s, to), s.i64(at), memory_of(s, source)
    if _element(other) != _element(memory) and (_element(memory), _element(other)) != (F64, I64):
        raise NotFast("elements of another type are copied into a vector")
    start, size = _range(s, other, rest)
    s.need(s.op("icompare", [s.literal(0, I64), place], I1, "le"))
    s.need(s.op("icompare", [s.op("iadd", [place, size], I64), _size(s, memory)], I1, "le"))
    first = s.literal(0, I64) if start is None else start
    _copy(s, memory, place, other, start, size, s.op("icompare", [place, first], I1, "gt"))
    return Known(UNSPECIFIED)


def _changed(s: Specializer, a: Abstract) -> TypedValue:
    memory = memory_of(s, a)
    if memory.type.kind != "array":
        raise NotFast("a vector from outside is changed")
    if memory not in s.origins:
        s.mutated.add(memory.type)
    return memory


@primitive("vector-fill!")
def _vector_fill(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, value, *rest = args
    memory = _changed(s, a)
    start, size = _range(s, memory, rest)

    def step(i: TypedValue, now: list[TypedValue]) -> list[TypedValue]:
        s.store(memory, _at(s, start, i), value, _element(memory), s.origins.get(memory))
        return []

    count(s, size, [], step)
    return Known(UNSPECIFIED)


# ---- vectors and lists -----------------------------------------------------------------------------------------------


@primitive("vector->list")
def _vector_to_list(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, *rest = args
    if isinstance(a, Fields) and a.kind == "vector":
        items = _known_range(s, a, rest)
        if items is not None:
            return as_list(items)
    memory = memory_of(s, a)
    kind = ir.cell(_element(memory))
    start, size = _range(s, memory, rest)
    last = s.op("isub", [_at(s, start, size), s.literal(1, I64)], I64)

    def step(i: TypedValue, now: list[TypedValue]) -> list[TypedValue]:
        item = _get(s, memory, s.op("isub", [last, i], I64), kind)
        return [s.op("cell_new", [item, now[0]], kind)]

    return Leaf(count(s, size, [typed_null(s, kind)], step)[0])


@primitive("list->vector")
def _list_to_vector(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a = spelled(s, args[0])
    if fixed_list(a):
        return vector(s, list(listed(a)), key)
    if not (isinstance(a, Leaf) and a.value.type.kind in ("cell", "pairs")):
        raise NotFast(f"{said(a)} as a vector")
    element = a.value.type.element
    assert element is not None
    kind = s.notes.memory.get(key) or element.unsized
    memory = _fresh(s, s.i64(length(s, [a], key)), kind)
    s.origins[memory] = key
    one = s.literal(1, I64)

    def step(item: Abstract, now: list[TypedValue]) -> list[TypedValue]:
        s.effect("array_set", [memory, now[0], s.fit_leaf(item, kind)])
        return [s.op("iadd", [now[0], one], I64)]

    walk(s, a.value, [s.literal(0, I64)], step)
    return Leaf(memory)
