"""The primitives that typed programs know: lists, vectors, records, and what ends a run (typed_numbers.py begins).

Data whose parts are known costs nothing; lists and vectors whose length is known only later are memory of the run.
Vectors as a whole are in typed_vectors.py.
"""

from __future__ import annotations

from collections.abc import Callable

from eshkol.calculus import ir
from eshkol.calculus.abstract import NIL, UNSPECIFIED, Abstract, Fields, Known, Leaf, NotFast, element_type
from eshkol.calculus.ir import F64, I1, I64, Jump, TypedValue
from eshkol.calculus.specialize import RAISING, Key, Rule, Specializer
from eshkol.calculus.typed_numbers import PRIMITIVES as PRIMITIVES  # with those of this module: all
from eshkol.calculus.typed_numbers import binary, is_integer, primitive
from eshkol.calculus.writer import NEW, WriterJoin, as_list, fixed_list, listed, said

LONGEST = 1 << 24  # items of a list that a program counts
NO_INTEGER = -(1 << 63)

# ---- what a list is --------------------------------------------------------------------------------------------------


def _is_memory_list(a: Abstract) -> bool:
    return isinstance(a, Leaf) and a.value.type.kind in ("cell", "pairs")


@primitive("null?")
def _null(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    (a,) = args
    if _is_memory_list(a):
        assert isinstance(a, Leaf)
        if a.value.type.length is not None:
            return Known(False)
        return Leaf(s.op("is_null", [a.value], I1))
    return Known(isinstance(a, Known) and a.datum is NIL)


@primitive("pair?")
def _pair(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    (a,) = args
    if _is_memory_list(a):
        assert isinstance(a, Leaf)
        if a.value.type.length is not None:
            return Known(True)
        return Leaf(s.op("not", [s.op("is_null", [a.value], I1)], I1))
    return Known(isinstance(a, Fields) and a.kind == "pair")


@primitive("list?")
def _is_list(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a = spelled(s, args[0])
    while isinstance(a, Fields) and a.kind == "pair":
        a = a.items[1]
    if isinstance(a, Leaf) and a.value.type.kind == "pairs":
        length(s, [a], key)  # gives up where it is none
    return Known(_is_memory_list(a) or (isinstance(a, Known) and a.datum is NIL))


# ---- pairs and lists -------------------------------------------------------------------------------------------------


@primitive("cons")
def _cons(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    first, rest = args
    if isinstance(rest, Leaf) and rest.value.type.kind == "cell":
        kind = rest.value.type
        assert kind.element is not None
        return Leaf(s.op("cell_new", [s.fit_leaf(first, kind.element), rest.value], kind))
    return Fields("pair", (first, rest))


def part(s: Specializer, a: Abstract, which: int) -> Abstract:
    """The car or the cdr."""
    if isinstance(a, Fields) and a.kind == "pair":
        return a.items[which]
    if _is_memory_list(a):
        assert isinstance(a, Leaf)
        kind = a.value.type
        assert kind.element is not None
        operation = (("pairs_car", "pairs_cdr") if kind.kind == "pairs" else ("cell_value", "cell_next"))[which]
        result = kind.element if which == 0 else kind
        if which == 1 and kind.length is not None:
            result = ir.pairs(kind.element, kind.length - 1)
        found = s.op(operation, [a.value], result)
        return Known(NIL) if result.length == 0 else Leaf(found)
    if isinstance(a, Known):
        s.fail()
    raise NotFast(f"a part of {said(a)}")


def spelled(s: Specializer, a: Abstract) -> Abstract:
    """A list with all its items in registers, where it is known how many they are."""
    items: list[Abstract] = []
    while (isinstance(a, Fields) and a.kind == "pair") or (isinstance(a, Leaf) and a.value.type.length is not None):
        items.append(part(s, a, 0))
        a = part(s, a, 1)
    for item in reversed(items):
        a = Fields("pair", (item, a))
    return a


def _parts(path: str) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        found = args[0]
        for letter in reversed(path):
            found = part(s, found, "ad".index(letter))
        return found

    return rule


for _name in [a + b + c for a in ("", "a", "d") for b in ("", "a", "d") for c in ("a", "d")]:
    PRIMITIVES[f"c{_name}r"] = _parts(_name)
PRIMITIVES["%spelled"] = lambda s, args, key: spelled(s, args[0])  # for apply
PRIMITIVES["cdddr"], PRIMITIVES["cadddr"] = _parts("ddd"), _parts("addd")
for _index, _name in enumerate(("first", "second", "third")):
    PRIMITIVES[_name] = _parts("a" + "d" * _index)


@primitive("list")
def _list(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    return as_list(args)


@primitive("cons*")
def _cons_star(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    found = args[-1]
    for arg in reversed(args[:-1]):
        found = _cons(s, [arg, found], key)
    return found


def walk(
    s: Specializer,
    source: TypedValue,
    state: list[TypedValue],
    step: Callable[[Abstract, list[TypedValue]], list[TypedValue]],
) -> list[TypedValue]:
    """A loop through a list in memory: each item changes the state."""
    header, body, after = s.new_block("walk"), s.new_block("item"), s.new_block("walked")
    header.params = [TypedValue(source.type), *(TypedValue(v.type) for v in state)]
    s.jump(header, [source, *state])
    s.begin(header)
    at, *now = header.params
    s.block.end = ir.Branch(s.op("is_null", [at], I1), Jump(after, []), Jump(body, []))
    s.begin(body)
    item = part(s, Leaf(at), 0)
    following = step(item, now)
    rest = part(s, Leaf(at), 1)
    assert isinstance(rest, Leaf)
    s.jump(header, [rest.value, *following])
    s.begin(after)
    return now


@primitive("length")
def length(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a = spelled(s, args[0])
    if fixed_list(a):
        return Known(len(list(listed(a))))
    if isinstance(a, Fields) and a.kind == "pair":
        return binary(s, "+", Known(1), length(s, [a.items[1]], key))
    if not _is_memory_list(a):
        raise NotFast(f"the length of {said(a)}")
    assert isinstance(a, Leaf)
    one, most = s.literal(1, I64), s.literal(LONGEST, I64)

    def step(item: Abstract, now: list[TypedValue]) -> list[TypedValue]:
        s.need(s.op("icompare", [now[0], most], I1, "lt"))  # it may have no end
        return [s.op("iadd", [now[0], one], I64)]

    return Leaf(walk(s, a.value, [s.literal(0, I64)], step)[0])


def _apply_rule(name: str, none: int | None) -> Rule:
    """A procedure of any number of arguments, with the items of a list as the last of them."""

    def combined(s: Specializer, a: Abstract, b: Abstract, key: Key) -> Abstract:
        return PRIMITIVES[name](s, [a, b], key)

    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        *given, last = args
        last = spelled(s, last)
        while isinstance(last, Fields) and last.kind == "pair":
            given.append(last.items[0])
            last = last.items[1]
        if not _is_memory_list(last):
            raise NotFast(f"apply of {name} to {said(last)}")
        assert isinstance(last, Leaf)
        element = last.value.type.element
        if element not in (F64, I64):
            raise NotFast(f"apply of {name} to a list of other things than numbers")
        join = WriterJoin(1)
        if given:
            start = PRIMITIVES[name](s, given, key)
        else:
            yes, no = s.new_block("empty"), s.new_block("some")
            s.block.end = ir.Branch(s.op("is_null", [last.value], I1), Jump(yes, []), Jump(no, []))
            s.begin(yes)
            if none is not None:
                s.deliver([Known(none)], join)
            s.begin(no)
            start, last = part(s, last, 0), part(s, last, 1)
            assert isinstance(last, Leaf)
        kind = I64 if is_integer(start) and element == I64 else F64

        def step(item: Abstract, now: list[TypedValue]) -> list[TypedValue]:
            return [s.fit_leaf(combined(s, Leaf(now[0]), item, key), kind)]

        found = walk(s, last.value, [s.fit_leaf(start, kind)], step)[0]
        s.deliver([Leaf(found)], join)
        return s.met(join)[0]

    return rule


for _name, _none in (("+", 0), ("*", 1), ("max", None), ("min", None)):
    PRIMITIVES[f"apply {_name}"] = _apply_rule(_name, _none)


@primitive("iota")
def _iota(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    usual: list[Abstract] = [Known(0), Known(1)]
    times, start, step = args + usual[len(args) - 1 :]
    if not all(map(is_integer, args)):
        raise NotFast("iota of other numbers than integers")
    length = s.i64(times)
    s.need(s.op("icompare", [length, s.literal(0, I64)], I1, "ge"))
    kind, one = ir.cell(I64), s.literal(1, I64)

    def made(i: TypedValue, now: list[TypedValue]) -> list[TypedValue]:
        index = s.op("isub", [s.op("isub", [length, i], I64), one], I64)
        item = binary(s, "+", start, binary(s, "*", Leaf(index), step))
        return [s.op("cell_new", [s.i64(item), now[0]], kind)]

    return Leaf(count(s, length, [typed_null(s, kind)], made)[0])


@primitive("reverse", "%fresh-reverse")
def _reverse(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a = spelled(s, args[0])
    if fixed_list(a):
        return as_list(list(listed(a))[::-1])
    if not _is_memory_list(a):
        raise NotFast(f"the reverse of {said(a)}")
    assert isinstance(a, Leaf)
    return _appended(s, a.value, s.literal(None, ir.NULL))


def _appended(s: Specializer, source: TypedValue, onto: TypedValue) -> Leaf:
    """The items of a list in memory, in reverse, in front of another."""
    assert source.type.element is not None
    kind = ir.cell(source.type.element)
    element = source.type.element
    start = onto if onto.type == kind else typed_null(s, kind)

    def step(item: Abstract, now: list[TypedValue]) -> list[TypedValue]:
        return [s.op("cell_new", [s.fit_leaf(item, element), now[0]], kind)]

    return Leaf(walk(s, source, [start], step)[0])


def typed_null(s: Specializer, kind: ir.Type) -> TypedValue:
    """The empty list, as a list of a type: a parameter of a block says which."""
    null = s.literal(None, ir.NULL)
    block = s.new_block("empty")
    block.params = [TypedValue(kind)]
    s.jump(block, [null])
    s.begin(block)
    return block.params[0]


@primitive("append")
def _append(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    if not args:
        return Known(NIL)
    result = args[-1]
    for each in reversed(args[:-1]):
        a = spelled(s, each)
        if fixed_list(a):
            result = _cons_star(s, [*listed(a), result], key)
        elif _is_memory_list(a):
            assert isinstance(a, Leaf)
            assert a.value.type.element is not None
            backwards = _appended(s, a.value, s.literal(None, ir.NULL))
            kind = backwards.value.type
            result = _appended(s, backwards.value, s.fit_leaf(result, kind))
        else:
            raise NotFast(f"append of {said(a)}")
    return result


@primitive("list-ref")
def _list_ref(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    return part(s, _list_tail(s, args, key), 0)


@primitive("list-tail")
def _list_tail(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, index = args
    if isinstance(index, Known) and type(index.datum) is int and 0 <= index.datum < 1000:
        for _ in range(index.datum):
            a = part(s, a, 1)
        return a
    raise NotFast("a place in a list that is known only later")


# ---- vectors ---------------------------------------------------------------------------------------------------------


@primitive("vector")
def vector(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    made = Fields("vector", tuple(args), key)
    if key in s.notes.changed:
        kind = s.notes.memory.get(key) or element_type(as_vector(args), s.free).element
        assert kind is not None
        memory = s.fit_leaf(as_vector(args), ir.array(kind))
        s.origins[memory] = key
        return Leaf(memory)
    return made


def as_vector(args: list[Abstract]) -> Abstract:
    return Fields("vector", tuple(args), NEW)


def memory_of(s: Specializer, a: Abstract) -> TypedValue:
    """A vector as memory; one that was thought to have known parts is made as memory the next time."""
    if isinstance(a, Leaf) and a.value.type.kind in ("array", "vector"):
        return a.value
    if isinstance(a, Fields) and a.kind == "vector":
        s.must_be_memory(a)
    raise NotFast(f"{said(a)} where a vector must be")


@primitive("vector-length")
def _vector_length(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    (a,) = args
    if isinstance(a, Fields) and a.kind == "vector":
        return Known(len(a.items))
    memory = memory_of(s, a)
    return Leaf(s.op(f"{memory.type.kind}_length", [memory], I64))


@primitive("vector-ref", "%vector-ref")
def _vector_ref(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, index = args
    if isinstance(a, Fields) and a.kind == "vector" and isinstance(index, Known) and type(index.datum) is int:
        if not 0 <= index.datum < len(a.items):
            s.fail()
        return a.items[index.datum]
    memory = memory_of(s, a)
    assert memory.type.element is not None
    found = s.op(f"{memory.type.kind}_get", [memory, s.i64(index)], memory.type.element)
    if memory.type in s.notes.unfilled:
        s.need(is_filled(s, found))
    return Leaf(found)


def is_filled(s: Specializer, element: TypedValue) -> TypedValue:
    """Whether an element is something else than what a vector has for nothing (`nothing`)."""
    if element.type == F64:
        return s.op("compare", [element, element], I1, "eq")
    if element.type == I64:
        return s.op("not", [s.op("icompare", [element, s.literal(NO_INTEGER, I64)], I1, "eq")], I1)
    return s.op("not", [s.op("is_null", [element], I1)], I1)


def nothing(s: Specializer, kind: ir.Type) -> TypedValue:
    """What stands in memory where nothing was stored yet: where a program could come upon it, it gives up."""
    if kind == F64:
        return s.literal(float("nan"), F64)
    return s.literal(NO_INTEGER, I64) if kind == I64 else s.literal(None, ir.NULL)


@primitive("vector-set!", "%vector-set!")
def vector_set(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, index, value = args
    memory = memory_of(s, a)
    if memory.type.kind != "array":
        raise NotFast("a vector from outside is changed")
    assert memory.type.element is not None
    if memory not in s.origins:
        s.mutated.add(memory.type)
    s.store(memory, s.i64(index), value, memory.type.element, s.origins.get(memory))
    return Known(UNSPECIFIED)


def count(
    s: Specializer,
    times: TypedValue,
    state: list[TypedValue],
    step: Callable[[TypedValue, list[TypedValue]], list[TypedValue]],
) -> list[TypedValue]:
    """A loop over the integers below a number."""
    header, body, after = s.new_block("count"), s.new_block("step"), s.new_block("counted")
    header.params = [TypedValue(I64), *(TypedValue(v.type) for v in state)]
    s.jump(header, [s.literal(0, I64), *state])
    s.begin(header)
    at, *now = header.params
    s.block.end = ir.Branch(s.op("icompare", [at, times], I1, "lt"), Jump(body, []), Jump(after, []))
    s.begin(body)
    following = step(at, now)
    s.jump(header, [s.op("iadd", [at, s.literal(1, I64)], I64), *following])
    s.begin(after)
    return now


# ---- records ---------------------------------------------------------------------------------------------------------


@primitive("%record")
def _record(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    if not (isinstance(args[0], Known) and type(args[0].datum) is tuple and args[0].datum[0] == "record type"):
        raise NotFast(f"a record of the type {said(args[0])}")
    return Fields("record", tuple(args[1:]), args[0])


@primitive("%record?")
def _is_record(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, kind = args
    return Known(isinstance(a, Fields) and a.kind == "record" and a.origin == kind)


@primitive("%record-ref")
def _record_ref(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, kind, index, _ = args
    if not isinstance(a, Fields) or a.kind != "record" or not isinstance(index, Known):
        raise NotFast(f"a field of {said(a)}")
    if a.origin != kind:
        s.fail()
    field: Abstract = a.items[index.datum]
    return field


# ---- what ends a run -------------------------------------------------------------------------------------------------


@primitive("number->string", "string-append", "symbol->string", "string", "%written")
def _text(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    """Text, which goes into messages of errors; nothing can be computed with it."""
    return Known(("text", key))


@primitive(*RAISING)
def _error(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    s.fail()
