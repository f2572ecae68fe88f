"""Hash tables of the runtime, against Python's dict, which keeps the order of insertion too."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheme_data import Char, Pair, Scheme, SchemeError, Symbol

from effort import examples
from eshkol.runtime.scheme import Value


@pytest.fixture(scope="module")
def scheme() -> Iterator[Scheme]:
    machine = Scheme()
    yield machine
    machine.close()


def new(scheme: Scheme, kind: str) -> Value:
    return scheme.raw("%make-table", scheme.value(Symbol(kind)), scheme.value(False))


def identity(data: Any) -> object:
    """What equal? looks at: Python's 1, 1.0 and True are one key, Scheme's are three."""
    match data:
        case float():
            return ("nan",) if math.isnan(data) else (float, struct.pack("<d", data))
        case list() | tuple():
            return (type(data), tuple(identity(item) for item in data))
    return (type(data), data)


atoms = st.one_of(
    st.integers(-3, 3),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([0.0, -0.0, 1.0, math.nan, -math.nan, math.inf]),
    st.booleans(),
    st.text("ab", max_size=3),
    st.binary(max_size=2),
    st.sampled_from([Char(97), Symbol("a"), Symbol("b")]),
)
keys = st.recursive(atoms, lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)))


def check(scheme: Scheme, table: Value, model: dict[object, tuple[Any, int]]) -> None:
    pairs = scheme.python(scheme.raw("%table->alist", table))
    found = [(p.car, p.cdr) if isinstance(p, Pair) else (p[0], p[1:]) for p in pairs]
    assert [(identity(key), value) for key, value in found] == [(identity(key), value) for key, value in model.values()]
    assert scheme.call("%table-count", table) == len(model)
    assert len(scheme.call("%table-keys", table)) == len(scheme.call("%table-values", table)) == len(model)


@given(st.lists(st.tuples(st.sampled_from(["set", "set", "set", "delete", "ref", "contains"]), keys), max_size=60))
@examples(500, 100)
def test_equal_tables_are_dictionaries(scheme: Scheme, steps: list[tuple[str, Any]]) -> None:
    table, model = new(scheme, "equal"), dict[object, tuple[Any, int]]()
    for number, (what, key) in enumerate(steps):
        known = identity(key)
        match what:
            case "set":
                scheme.call("%table-set!", table, key, number)
                model[known] = (model[known][0] if known in model else key, number)
            case "delete":
                assert scheme.call("%table-delete!", table, key) is (model.pop(known, None) is not None)
            case "ref":
                assert scheme.call("%table-ref", table, key, -1) == model.get(known, (key, -1))[1]
            case "contains":
                assert scheme.call("%table-contains?", table, key) is (known in model)
    check(scheme, table, model)
    check(scheme, scheme.raw("%table-copy", table), model)
    scheme.call("%table-clear!", table)
    check(scheme, table, {})


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=400), st.sampled_from(["eq", "eqv", "equal"]))
@examples(300, 60)
def test_growth_and_holes(scheme: Scheme, steps: list[tuple[bool, int]], kind: str) -> None:
    table, model = new(scheme, kind), dict[int, int]()
    for number, (keep, key) in enumerate(steps):
        if keep:
            scheme.call("%table-set!", table, key, number)
            model[key] = number
        else:
            assert scheme.call("%table-delete!", table, key) is (model.pop(key, None) is not None)
    assert scheme.call("%table-keys", table) == list(model)
    assert scheme.call("%table-values", table) == list(model.values())


def test_kinds(scheme: Scheme) -> None:
    text, same_text, big, same_big = (scheme.value(data) for data in ("key", "key", 1 << 80, 1 << 80))
    found = {}
    for kind in ("eq", "eqv", "equal"):
        table = new(scheme, kind)
        for key in (text, big, scheme.value(math.nan)):
            scheme.call("%table-set!", table, key, 1)
        found[kind] = [
            scheme.call("%table-contains?", table, key) for key in (text, same_text, big, same_big, math.nan, -math.nan)
        ]
        assert scheme.call("%table-kind", table) == Symbol(kind)
    assert found["eq"] == [True, False, True, False, True, False]
    assert found["eqv"] == [True, False, True, True, True, True]
    assert found["equal"] == [True] * 6


def test_tables_of_strings(scheme: Scheme) -> None:
    for kind, found in (("string", [True, False, False]), ("string-ci", [True, True, True])):
        table = new(scheme, kind)
        scheme.call("%table-set!", table, "straße", 1)
        assert [scheme.call("%table-contains?", table, key) for key in ("straße", "STRASSE", "Strasse")] == found
        with pytest.raises(SchemeError, match="expected a string as argument 2") as caught:
            scheme.call("%table-ref", table, 5, 0)
        assert caught.value.who == "hash-table-ref"


def test_cyclic_keys(scheme: Scheme) -> None:
    def circle(*items: int) -> Value:
        found = scheme.value(list(items))
        scheme.raw("set-cdr!", scheme.raw("last-pair", found), found)
        return found

    table = new(scheme, "equal")
    scheme.call("%table-set!", table, circle(1, 2), "two")
    assert scheme.call("%table-ref", table, circle(1, 2, 1, 2), "none") == "two"
    assert scheme.call("%table-ref", table, circle(1, 2, 1), "none") == "none"
    vector = scheme.value((1, 2))
    scheme.set_item(vector, 1, vector)
    scheme.call("%table-set!", table, vector, "vector")
    assert scheme.call("%table-ref", table, vector, "none") == "vector"


def test_walking_by_index_while_entries_are_deleted(scheme: Scheme) -> None:
    table = new(scheme, "eqv")
    for i in range(1000):
        scheme.call("%table-set!", table, i, i * i)
    seen, index = [], scheme.call("%table-entry-next", table, 0)
    while index is not False:
        key = scheme.call("%table-entry-key", table, index)
        assert scheme.call("%table-entry-value", table, index) == key * key
        seen.append(key)
        if key % 3:
            assert scheme.call("%table-delete!", table, key) is True
        index = scheme.call("%table-entry-next", table, index + 1)
    assert seen == list(range(1000))
    assert scheme.call("%table-keys", table) == list(range(0, 1000, 3))
    with pytest.raises(SchemeError) as caught:
        scheme.call("%table-entry-key", table, 1)
    assert caught.value.kind == "range"
    with pytest.raises(SchemeError):
        scheme.call("%table-entry-key", table, scheme.call("%table-entry-limit", table))
    scheme.call("%table-entry-set!", table, 3, "nine")
    assert scheme.call("%table-ref", table, 3, 0) == "nine"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=150))
@examples(200, 50)
def test_tables_whose_equivalence_the_library_knows(scheme: Scheme, steps: list[tuple[bool, int]]) -> None:
    table, model = new(scheme, "custom"), dict[int, int]()

    def find(key: int) -> Any:
        index = scheme.call("%table-candidate", table, key % 3, False)
        while index is not False and scheme.call("%table-entry-key", table, index) != key:
            index = scheme.call("%table-candidate", table, key % 3, index)
        return index

    for number, (keep, key) in enumerate(steps):
        index = find(key)
        assert (index is not False) is (key in model)
        if keep and index is False:
            scheme.call("%table-add!", table, key % 3, key, number)
            model[key] = number
        elif keep:
            scheme.call("%table-entry-set!", table, index, number)
            model[key] = number
        elif index is not False:
            assert scheme.call("%table-remove!", table, key % 3, index) is True
            del model[key]
    assert scheme.call("%table-keys", table) == list(model)
    assert scheme.call("%table-values", table) == list(model.values())
    with pytest.raises(SchemeError, match="equivalence"):
        scheme.call("%table-ref", table, 1, 2)


def test_wrong_arguments(scheme: Scheme) -> None:
    for call in (("%table-ref", 5, 1, 2), ("%table-set!", [], 1, 2), ("%table-count", "x"), ("%table->alist", False)):
        with pytest.raises(SchemeError) as caught:
            scheme.call(*call)
        assert (caught.value.kind, caught.value.irritants) == ("wrong-type", [call[1]])
        assert "a hash table as argument 1" in caught.value.message
    with pytest.raises(SchemeError, match="weak"):
        scheme.call("%make-table", Symbol("eq"), True)
    with pytest.raises(SchemeError, match="one of eq"):
        scheme.call("%make-table", Symbol("eqq"), False)


@given(keys, st.integers(1, 1000))
@examples(300, 100)
def test_hashes(scheme: Scheme, key: Any, bound: int) -> None:
    for name in ("hash", "equal-hash"):
        assert scheme.call(name, key) == scheme.call(name, key) >= 0
        assert scheme.call(name, key, bound) == scheme.call(name, key) % bound
    value = scheme.value(key)
    for name in ("eq-hash", "hash-by-identity", "eqv-hash"):
        assert scheme.call(name, value, bound) == scheme.call(name, value) % bound
    if isinstance(key, int | float):
        assert scheme.call("eqv-hash", key) == scheme.call("eqv-hash", key)
    for wrong in (0, -5, 1.5, -(1 << 70)):
        with pytest.raises(SchemeError, match="positive exact integer"):
            scheme.call("hash", key, wrong)


def test_hashes_spread(scheme: Scheme) -> None:
    """Keys of regular patterns fall evenly: the fullest of 1,024 buckets stays near what chance gives."""
    patterns = (range(4096), range(0, 4096 << 12, 1 << 12), range(0, 4096 << 32, 1 << 32))
    families: list[list[Any]] = [list(pattern) for pattern in patterns]
    families += [[float(i) for i in range(4096)], [f"key{i}" for i in range(4096)], [[i, -i] for i in range(4096)]]
    for family in families:
        counts = [0] * 1024
        for key in family:
            counts[scheme.call("hash", key, 1024)] += 1
        assert max(counts) < 20


# ---- memory


def root(scheme: Scheme, value: Value) -> int:
    place: int = scheme.library.esk_root(scheme.context)
    ctypes.memmove(place, ctypes.byref(value), 16)
    return place


def test_keys_survive_collections() -> None:
    scheme = Scheme(64 << 20)
    table = new(scheme, "equal")
    root(scheme, table)
    scheme.pause(-1)
    for i in range(3000):
        scheme.raw("%table-set!", table, scheme.value(f"key {i}"), scheme.value(i))
        scheme.raw("make-vector", scheme.value(10_000))  # 480 MB in all
    scheme.library.esk_collect(scheme.context)
    scheme.pause(1)
    assert scheme.call("%table-keys", table) == [f"key {i}" for i in range(3000)]
    assert all(scheme.call("%table-ref", table, f"key {i}", -1) == i for i in range(3000))
    scheme.close()


def test_a_table_outlives_the_end_of_memory() -> None:
    scheme = Scheme(4 << 20)
    table = new(scheme, "eqv")
    root(scheme, table)
    scheme.pause(-1)
    kind, count = "", 0
    while not kind:
        try:
            scheme.raw("%table-set!", table, scheme.value(count), scheme.value(-count))
            count += 1
        except SchemeError as error:
            kind = error.kind
    assert kind == "out-of-memory"
    assert count > 5_000
    assert scheme.call("%table-count", table) == count
    for key in range(0, count, 7):
        assert scheme.call("%table-ref", table, key, 0) == -key
    for key in range(0, count, 2):
        assert scheme.raw("%table-delete!", table, scheme.value(key)).bits
    for key in range(0, count, 2):  # the holes are room enough
        scheme.raw("%table-set!", table, scheme.value(key), scheme.value(key))
        if key > 100:
            break
    scheme.call("%table-clear!", table)
    assert scheme.call("%table-count", table) == 0
    scheme.close()
