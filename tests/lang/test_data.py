"""Equality, lists, vectors and bytevectors of the runtime, against Python's and against plain definitions."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheme_data import UNSPECIFIED, Char, Pair, Scheme, SchemeError, Symbol

from batches import of_each
from effort import amount, examples
from eshkol.runtime.scheme import Value


@pytest.fixture(scope="module")
def scheme() -> Iterator[Scheme]:
    machine = Scheme()
    yield machine
    machine.close()


def failure(scheme: Scheme, name: str, *args: object) -> SchemeError:
    with pytest.raises(SchemeError) as caught:
        scheme.call(name, *args)
    return caught.value


def circle(scheme: Scheme, *items: Any) -> Value:
    found = scheme.value(list(items))
    scheme.raw("set-cdr!", scheme.raw("last-pair", found), found)
    return found


# ---- equality


def test_eqv(scheme: Scheme) -> None:
    text = scheme.value("a")
    for a, b, eqv in (
        (1, 1, True), (1, 1.0, False), (0.0, -0.0, False), (math.nan, -math.nan, True), (1 << 80, 1 << 80, True),
        (1 << 80, 1.0, False), ("a", "a", False), (text, text, True), (Char(97), Char(97), True), (Char(97), 97, False),
        ([], [], True), (Symbol("x"), Symbol("x"), True), (True, 1, False), ((), (), False), (100.5, 100.5, True),
    ):  # fmt: skip
        assert scheme.call("eqv?", a, b) is eqv
        if eqv:
            assert scheme.call("equal?", a, b) is True
            if not isinstance(a, Value):
                assert scheme.call("eqv-hash", a) == scheme.call("eqv-hash", b)


data = st.recursive(
    st.one_of(st.integers(0, 2), st.sampled_from([0.0, 1 << 65, Char(97), Symbol("a"), "a", "", b"a", b"", True])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.tuples(inner, inner).map(lambda p: Pair(*p)),
    ),
    max_leaves=12,
)


@given(data, data)
@examples(1000, 200)
def test_equal_is_equality_of_what_is_read(scheme: Scheme, a: Any, b: Any) -> None:
    x, y, again = scheme.value(a), scheme.value(b), scheme.value(a)
    same = repr(scheme.python(x)) == repr(scheme.python(y))
    assert scheme.call("equal?", x, y) is same
    assert scheme.call("equal?", x, again) is True
    assert scheme.call("equal-hash", x) == scheme.call("equal-hash", again)
    if same:
        assert scheme.call("equal-hash", x) == scheme.call("equal-hash", y)


def unfoldings(nodes: list[tuple[int, ...]], leaves: int) -> list[int]:
    """Classes of nodes that look the same: each round parts what the round before has shown to differ."""
    classes = [i if i < leaves else leaves for i in range(len(nodes))]
    while True:
        keys = [(classes[i], *(classes[child] for child in node)) for i, node in enumerate(nodes)]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        refined = [numbers[key] for key in keys]
        if len(set(refined)) == len(set(classes)):
            return refined
        classes = refined


@given(st.data())
@examples(400, 80)
def test_equal_on_cyclic_graphs(scheme: Scheme, choose: st.DataObject) -> None:
    """Pairs and vectors that refer to one another at random are equal? when no path tells them apart."""
    leaves, count = 2, choose.draw(st.integers(1, 8))
    total = leaves + count
    child = st.integers(0, total - 1)
    kind = choose.draw(st.sampled_from([2, 3]))
    nodes: list[tuple[int, ...]] = [()] * leaves + [choose.draw(st.tuples(*[child] * kind)) for _ in range(count)]
    values = [scheme.value(i) for i in range(leaves)]
    values += [scheme.value((0, 0, 0)) if kind == 3 else scheme.value(Pair(0, 0)) for _ in range(count)]
    for node, value in zip(nodes[leaves:], values[leaves:], strict=True):
        if kind == 3:
            for i, at in enumerate(node):
                scheme.set_item(value, i, values[at])
        else:
            scheme.raw("set-car!", value, values[node[0]])
            scheme.raw("set-cdr!", value, values[node[1]])
    classes = unfoldings(nodes, leaves)
    for i, j in itertools.product(range(total), repeat=2):
        same = classes[i] == classes[j]
        assert scheme.call("equal?", values[i], values[j]) is same
        if same:
            assert scheme.call("equal-hash", values[i]) == scheme.call("equal-hash", values[j])


def test_equal_ends_on_long_circles(scheme: Scheme) -> None:
    for m, n in ((1, 2), (2, 3), (999, 1000), (4999, 5000), (30_000, 40_000)):
        a, b = circle(scheme, *[7] * m), circle(scheme, *[7] * n)
        assert scheme.call("equal?", a, b) is True
        scheme.raw("set-car!", scheme.raw("list-tail", b, scheme.value(n - 1)), scheme.value(8))
        assert scheme.call("equal?", a, b) is False


def test_equal_on_shared_structure_takes_no_exponential_time(scheme: Scheme) -> None:
    def shared(end: int, depth: int) -> Value:
        found = scheme.value(end)
        for _ in range(depth):
            found = scheme.cons(found, found)
        return found

    assert scheme.call("equal?", shared(1, 300), shared(1, 300)) is True
    assert scheme.call("equal?", shared(1, 300), shared(2, 300)) is False
    assert scheme.call("equal?", shared(1, 300), shared(1, 301)) is False


def test_deep_structures(scheme: Scheme) -> None:
    depth = amount(1_000_000, 100_000)

    def nested(end: int) -> tuple[Value, Value]:
        null, pairs, vectors = scheme.value([]), scheme.value(end), scheme.value(end)
        for _ in range(depth):
            pairs = scheme.cons(pairs, null)
        for _ in range(depth // 10):
            vectors = scheme.raw("vector", vectors)
        return pairs, vectors

    first, second, other = nested(1), nested(1), nested(2)
    for a, b, c in zip(first, second, other, strict=True):
        assert scheme.call("equal?", a, b) is True
        assert scheme.call("equal?", a, c) is False
        assert scheme.call("equal-hash", a) == scheme.call("equal-hash", b)
    long, same = (scheme.raw("iota", scheme.value(1_000_000)) for _ in range(2))
    assert scheme.call("equal?", long, same) is True
    scheme.raw("set-car!", scheme.raw("last-pair", same), scheme.value(-1))
    assert scheme.call("equal?", long, same) is False


# ---- lists


@given(st.lists(st.integers(), max_size=8), st.lists(st.integers(), max_size=8), st.integers(0, 8))
@examples(300, 100)
def test_lists_are_lists(scheme: Scheme, a: list[int], b: list[int], k: int) -> None:
    call = scheme.call
    assert call("list", *a) == a
    assert call("length", a) == len(a)
    assert call("append", a, b) == a + b
    assert call("append", a, b, 5) == scheme.python(scheme.list_of(map(scheme.value, a + b), scheme.value(5)))
    assert call("reverse", a) == a[::-1]
    assert call("append-reverse", a, b) == a[::-1] + b
    assert call("list-copy", a) == a
    assert call("list?", a) is True
    assert call("list?", Pair(1, 2)) is False
    assert call("cons*", *a, b) == a + b
    assert call("list->vector", a) == tuple(a)
    assert call("vector->list", tuple(a)) == a
    if k <= len(a):
        assert call("list-tail", a, k) == a[k:]
        assert call("list-head", a, k) == a[:k]
    else:
        assert failure(scheme, "list-tail", a, k).kind == failure(scheme, "list-head", a, k).kind == "range"
    if k < len(a):
        assert call("list-ref", a, k) == a[k]
        changed = scheme.value(a)
        call("list-set!", changed, k, "x")
        assert scheme.python(changed) == [*a[:k], "x", *a[k + 1 :]]
    else:
        assert failure(scheme, "list-ref", a, k).kind == "range"
    for name in ("memq", "memv", "member"):
        assert call(name, k, a) == (a[a.index(k) :] if k in a else False)
    alist = [Pair(key, str(key)) for key in a]
    for name in ("assq", "assv", "assoc"):
        assert call(name, k, alist) == (Pair(k, str(k)) if k in a else False)
    assert call("assoc-ref", alist, k) == (str(k) if k in a else False)


def test_append_shares_its_last_argument(scheme: Scheme) -> None:
    tail = scheme.value([3])
    found = scheme.raw("append", scheme.value([1, 2]), tail)
    assert scheme.raw("list-tail", found, scheme.value(2)).bits == tail.bits
    assert scheme.call("append") == []
    assert scheme.call("append", 5) == 5
    assert scheme.call("append", [], [], 5) == 5


def test_every_path_of_car_and_cdr(scheme: Scheme) -> None:
    def tree(depth: int, path: str) -> Any:
        return Symbol(path or "top") if depth == 0 else Pair(tree(depth - 1, "a" + path), tree(depth - 1, "d" + path))

    for depth in (1, 2, 3, 4):
        for letters in itertools.product("ad", repeat=depth):
            name = "c" + "".join(letters) + "r"
            assert scheme.call(name, tree(depth, "")) == Symbol("".join(letters))
            assert failure(scheme, name, []).kind == "wrong-type"
    error = failure(scheme, "caddr", [1, 2])
    assert (error.who, error.irritants) == ("caddr", [[1, 2]])


def test_searching_by_content(scheme: Scheme) -> None:
    assert scheme.call("member", "b", ["a", "b", "c"]) == ["b", "c"]
    assert scheme.call("memv", "b", ["a", "b"]) is False
    assert scheme.call("memv", 1.5, [1, 1.5]) == [1.5]
    assert scheme.call("member", [1 << 70], [[1], [1 << 70]]) == [[1 << 70]]
    assert scheme.call("assoc", 2.0, [[1, "one"], [2, "two"]]) is False
    assert scheme.call("assoc", [2], [[[1], 1], [[2], 4]]) == [[2], 4]
    assert scheme.call("assv", 5, [[2, 3], [5, 7]]) == [5, 7]


@given(st.integers(0, 6), st.integers(-5, 5) | st.just(1 << 63), st.integers(-3, 3) | st.just(1 << 62))
def test_iota(scheme: Scheme, count: int, start: int, step: int) -> None:
    assert scheme.call("iota", count) == list(range(count))
    assert scheme.call("iota", count, start) == [start + i for i in range(count)]
    assert scheme.call("iota", count, start, step) == [start + i * step for i in range(count)]
    assert scheme.call("iota", count, 0.5, 0.1) == [0.5 + i * 0.1 for i in range(count)]
    assert failure(scheme, "iota", 2, "a").kind == "wrong-type"


def test_lists_that_do_not_end(scheme: Scheme) -> None:
    ring, dotted = circle(scheme, 1, 2, 3), scheme.value(Pair(1, Pair(2, 3)))
    tailed = scheme.list_of([scheme.value(i) for i in range(1000)], circle(scheme, *range(500)))
    assert scheme.call("list?", ring) is scheme.call("list?", dotted) is scheme.call("list?", tailed) is False
    for name in ("length", "reverse", "list->vector", "list->string", "string-concatenate"):
        for wrong in (ring, tailed, dotted):
            assert raw_failure(scheme, name, wrong) == "wrong-type"
    for name, args in (("append", (ring, [])), ("memq", (9, ring)), ("member", ("x", ring)), ("list-copy", (ring,)),
                       ("last-pair", (tailed,)), ("append-reverse", (ring, []))):  # fmt: skip
        assert raw_failure(scheme, name, *args) == "wrong-type"
    assert scheme.call("list-ref", ring, 10_000) == 2
    assert scheme.call("list-head", ring, 5) == [1, 2, 3, 1, 2]
    assert scheme.call("list-copy", dotted) == Pair(1, Pair(2, 3))
    assert scheme.call("last-pair", dotted) == Pair(2, 3)
    assert failure(scheme, "memq", 9, dotted).kind == "wrong-type"
    assert failure(scheme, "assq", 9, [1]).kind == "wrong-type"


def raw_failure(scheme: Scheme, name: str, *args: object) -> str:
    """The kind of an error whose irritant Python could not finish reading."""
    values = [scheme.value(arg) for arg in args]
    array, result = (Value * len(values))(*values), Value()
    row = scheme.rows[name]
    assert scheme.library.esk_enter_primitive(scheme.context, row, array, len(values), ctypes.byref(result)) == 1
    kind: Symbol = scheme.python(Value.from_address(result.bits + 16))
    return kind.name


def test_constants_are_not_changed(scheme: Scheme) -> None:
    for constant, calls in (
        ([1, 2], (("set-car!", 0), ("set-cdr!", 0), ("list-set!", 0, 5))),
        ((1, 2), (("vector-set!", 0, 5), ("vector-fill!", 5), ("vector-copy!", 0, (3,)))),
        (b"ab", (("bytevector-u8-set!", 0, 5), ("bytevector-fill!", 5), ("bytevector-copy!", 0, b"x"))),
    ):
        literal = scheme.literal(constant)
        for name, *args in calls:
            assert "constant" in failure(scheme, str(name), literal, *args).message
        assert scheme.python(literal) == constant


# ---- vectors and bytevectors


@given(st.data(), st.lists(st.integers(0, 255), max_size=8), st.lists(st.integers(0, 255), max_size=8))
@examples(300, 100)
def test_vectors_and_bytevectors(scheme: Scheme, choose: st.DataObject, a: list[int], b: list[int]) -> None:
    start = choose.draw(st.integers(0, len(a)))
    end = choose.draw(st.integers(start, len(a)))
    at = choose.draw(st.integers(0, len(b)))
    for name, make in (("vector", tuple), ("bytevector", bytes)):
        call, part = scheme.call, make(a[start:end])
        assert call(name, *a) == make(a)
        assert call(f"{name}?", make(a)) is True
        assert call(f"{name}-length", make(a)) == len(a)
        assert call(f"{name}-copy", make(a), start, end) == part
        assert call(f"{name}-copy", make(a), start) == make(a[start:])
        assert call(f"{name}-append", make(a), make(b), make(a)) == make(a + b + a)
        filled = scheme.value(make(a))
        assert call(f"{name}-fill!", filled, 9, start, end) is UNSPECIFIED
        assert scheme.python(filled) == make(a[:start] + [9] * (end - start) + a[end:])
        to = scheme.value(make(b))
        if end - start > len(b) - at:
            assert failure(scheme, f"{name}-copy!", to, at, make(a), start, end).kind == "range"
            assert scheme.python(to) == make(b)
        else:
            call(f"{name}-copy!", to, at, make(a), start, end)
            assert scheme.python(to) == make(b[:at] + a[start:end] + b[at + end - start :])
    assert scheme.call("vector->list", tuple(a), start, end) == a[start:end]
    assert scheme.call("subvector", tuple(a), start, end) == tuple(a[start:end])
    assert scheme.call("bytevector=?", bytes(a), bytes(a), bytes(b)) is (a == b)
    for i, byte in enumerate(a):
        assert scheme.call("vector-ref", tuple(a), i) == scheme.call("bytevector-u8-ref", bytes(a), i) == byte
        assert scheme.call("bytevector-s8-ref", bytes(a), i) == byte - (byte >> 7 << 8)


def test_copying_within_one_vector(scheme: Scheme) -> None:
    for at, start, end, expected in ((2, 0, 4, [0, 1, 0, 1, 2, 3, 6, 7]), (0, 2, 6, [2, 3, 4, 5, 4, 5, 6, 7])):
        for name, make in (("vector", tuple), ("bytevector", bytes)):
            both = scheme.value(make(range(8)))
            scheme.call(f"{name}-copy!", both, at, both, start, end)
            assert scheme.python(both) == make(expected)


@of_each("call, kind, position", [
        (("vector-ref", (1, 2, 3), 5), "range", 2), (("vector-ref", (1, 2), -1), "range", 2),
        (("vector-ref", (), 0), "range", 2), (("vector-ref", (1,), 1 << 64), "range", 2),
        (("vector-ref", (1,), 0.0), "wrong-type", 2), (("vector-ref", [1], 0), "wrong-type", 1),
        (("vector-set!", (1,), 1, 0), "range", 2), (("vector-append", (1,), [2]), "wrong-type", 2),
        (("vector-copy", (1, 2), 3), "range", 2), (("vector-copy", (1, 2), 0, 3), "range", 3),
        (("bytevector", 1, 256), "wrong-type", 2), (("bytevector", -1), "wrong-type", 1),
        (("make-bytevector", 2, 300), "wrong-type", 2), (("bytevector-u8-set!", b"a", 0, 256), "wrong-type", 3),
        (("bytevector-u8-ref", b"a", 1), "range", 2), (("bytevector-s8-set!", b"a", 0, 128), "wrong-type", 3),
        (("make-vector", "x"), "wrong-type", 1), (("make-list", -2), "wrong-type", 1), (("car", []), "wrong-type", 1),
        (("set-cdr!", 5, 1), "wrong-type", 1), (("length", 5), "wrong-type", 1),
        (("list-tail", [1], "x"), "wrong-type", 2),
    ])  # fmt: skip
def test_errors(scheme: Scheme, call: tuple[object, ...], kind: str, position: int) -> None:
    name, *args = call
    error = failure(scheme, str(name), *args)
    assert (error.kind, error.who, error.irritants) == (kind, name, [args[position - 1]])
    assert f"argument {position}" in error.message
