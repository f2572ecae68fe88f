"""The table of primitives as a whole; symbols, records, boxes, errors and the statistics of the heap."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheme_data import UNSPECIFIED, Pair, Scheme, SchemeError, Symbol

from effort import examples
from eshkol.runtime.scheme import Value
from eshkol.runtime.scheme_table import layout, rows

# Names of primitives that every program may rely on without a library around them.
OWN = ("eq?", "not", "values", "error", "error-object?", "symbol->string", "string->symbol", "procedure?", "%throw")


@pytest.fixture(scope="module")
def scheme() -> Iterator[Scheme]:
    machine = Scheme()
    yield machine
    machine.close()


def test_every_row_is_complete(scheme: Scheme) -> None:
    assert len(scheme.rows) == scheme.library.esk_primitive_count()  # no name twice
    assert set(OWN) <= set(scheme.rows)
    for name, row in rows().items():
        assert row.signature.startswith(f"({name}"), row
        assert row.signature.endswith(")"), row
        assert row.doc.strip().endswith("."), row
        assert (row.address == 0) == row.is_entry, row
        assert row.min >= 0, row
        assert row.max == -1 or row.max >= row.min, row
        if row.convention in "012":
            assert row.min == row.max == int(row.convention), row


def test_signatures_say_how_many_arguments_there_are() -> None:
    """Plain parameters are required, those in brackets optional, an ellipsis means any number."""
    for row in rows().values():
        inside = row.signature[len(row.name) + 1 : -1]
        assert ("..." in inside) == (row.max == -1), row
        if row.max != -1:
            optional = sum(len(found.split()) for found in re.findall(r"\[([^][]*)", inside))
            assert len(re.sub(r"[][]", " ", inside).split()) == row.max, row
            assert row.max - optional == row.min, row


def test_layout() -> None:
    numbers = layout()
    assert numbers["TAG_PAIR"] == 3
    assert numbers["Pair.car"] == 8
    assert numbers["Pair"] == 24
    assert numbers["Context.stack_limit"] == 0
    assert numbers["Value.bits"] == 8
    tags = [number for name, number in numbers.items() if name.startswith("TAG_") and name != "TAG_COUNT"]
    assert sorted(tags) == list(range(numbers["TAG_COUNT"]))
    assert numbers["POINTER_TAGS"] >> numbers["TAG_PAIR"] & 1
    assert not numbers["POINTER_TAGS"] >> numbers["TAG_CHAR"] & 1


@given(st.text())
@examples(2000, 100)
def test_symbols_are_their_names(scheme: Scheme, name: str) -> None:
    symbol = scheme.raw("string->symbol", scheme.value(name))
    assert scheme.python(scheme.raw("symbol->string", symbol)) == name
    again = scheme.raw("string->symbol", scheme.value(name))
    assert scheme.call("eq?", symbol, again) is True
    other = scheme.raw("string->uninterned-symbol", scheme.value(name))
    assert scheme.call("eq?", symbol, other) is False
    assert scheme.call("symbol-interned?", symbol) is True
    assert scheme.call("symbol-interned?", other) is False
    assert scheme.python(scheme.raw("symbol->string", other)) == name
    keyword = scheme.raw("symbol->keyword", symbol)
    assert scheme.call("keyword?", keyword) is True
    assert scheme.call("symbol?", keyword) is False
    assert scheme.call("eq?", scheme.raw("keyword->symbol", keyword), symbol) is True


def test_generated_symbols_differ(scheme: Scheme) -> None:
    made = [scheme.raw("generate-symbol") for _ in range(100)]
    assert len({scheme.python(symbol) for symbol in made}) == 100
    assert len({symbol.bits for symbol in made}) == 100
    assert scheme.python(scheme.raw("generate-symbol", scheme.value("temporary"))).name.startswith("temporary")
    assert scheme.call("symbol=?", Symbol("a"), Symbol("a"), Symbol("a")) is True
    assert scheme.call("symbol=?", Symbol("a"), Symbol("b"), Symbol("a")) is False
    with pytest.raises(SchemeError, match="expected a symbol as argument 2, but got"):
        scheme.call("symbol=?", Symbol("a"), 1)


def test_booleans_and_boxes(scheme: Scheme) -> None:
    assert scheme.call("not", False) is True
    assert scheme.call("not", []) is False
    assert scheme.call("boolean=?", False, False) is True
    assert scheme.call("boolean=?", True, True, False) is False
    box = scheme.raw("make-box", scheme.value(5))
    assert scheme.call("set-box!", box, 6) == UNSPECIFIED
    assert scheme.call("unbox", box) == 6
    with pytest.raises(SchemeError, match="wrong-type: unbox: expected a box as argument 1"):
        scheme.call("unbox", 1)
    first, second = scheme.raw("make-object"), scheme.raw("make-object")
    assert scheme.call("eq?", first, first) is True
    assert scheme.call("eq?", first, second) is False
    assert scheme.call("values", 7) == 7


def test_records(scheme: Scheme) -> None:
    point = scheme.raw("%make-record-type", scheme.value(Symbol("point")), scheme.value((Symbol("x"), Symbol("y"))))
    other = scheme.raw("%make-record-type", scheme.value(Symbol("point")), scheme.value((Symbol("x"), Symbol("y"))))
    record = scheme.raw("%record", point, scheme.value(3), scheme.value(4))
    assert scheme.call("%record?", record, point) is True
    assert scheme.call("%record?", record, other) is False
    assert scheme.call("%record-ref", record, point, 1, Symbol("point-y")) == 4
    scheme.call("%record-set!", record, point, 1, "new", Symbol("set-point-y!"))
    assert scheme.call("%record-ref", record, point, 1, Symbol("point-y")) == "new"
    assert scheme.call("record-type-name", scheme.raw("record-type-descriptor", record)) == Symbol("point")
    assert scheme.call("record-type-fields", point) == [Symbol("x"), Symbol("y")]
    with pytest.raises(
        SchemeError, match="wrong-type: point-y: expected a record of type point as argument 1"
    ) as error:
        scheme.call("%record-ref", 17, point, 1, Symbol("point-y"))
    assert error.value.irritants == [17]
    for wrong in (-1, 2, 1 << 40):
        with pytest.raises(SchemeError, match="index from 0 to 1"):
            scheme.call("%record-ref", record, point, wrong, Symbol("point-y"))
    with pytest.raises(SchemeError, match="wrong-arity"):
        scheme.call("%record", point, 1)
    with pytest.raises(SchemeError, match="vector of symbols"):
        scheme.call("%make-record-type", Symbol("p"), (1,))


def caught(scheme: Scheme, name: str, *args: Value) -> SchemeError:
    with pytest.raises(SchemeError) as error:
        scheme.raw(name, *args)
    return error.value


def test_errors(scheme: Scheme) -> None:
    error = caught(scheme, "error", scheme.value("no such thing:"), scheme.value(1), scheme.value("two"))
    assert (error.kind, error.message, error.irritants, error.who) == ("error", "no such thing:", [1, "two"], False)
    error = caught(scheme, "error", scheme.value(Symbol("seek")), scheme.value("nothing"), scheme.value(1))
    assert (error.message, error.irritants, error.who) == ("nothing", [1], "seek")
    error = caught(scheme, "error", scheme.value(Symbol("alone")))
    assert error.message == Symbol("alone")
    made = scheme.raw("%make-error", *map(scheme.value, (Symbol("file-error"), Symbol("open"), "gone", ["f"])))
    assert scheme.call("error-object?", made) is True
    assert scheme.call("error-object?", 1) is False
    assert scheme.call("file-error?", made) is True
    assert scheme.call("read-error?", made) is False
    assert scheme.call("error-object-message", made) == "gone"
    assert scheme.call("error-object-irritants", made) == ["f"]
    assert scheme.call("error-object-who", made) == Symbol("open")
    assert scheme.call("error-object-kind", made) == Symbol("file-error")
    assert len(scheme.call("%error-trace", made)) % 8 == 0
    assert caught(scheme, "%uncaught", made).message == "gone"
    assert caught(scheme, "error-object-message", scheme.value(1)).kind == "wrong-type"
    arity = caught(scheme, "eq?", scheme.value(1))
    assert (arity.kind, arity.message) == ("wrong-arity", "(eq? a b) takes 2 arguments, but was given 1")


@given(st.binary(max_size=40))
@examples(5000, 200)
def test_bytes_become_text_as_in_python(scheme: Scheme, data: bytes) -> None:
    made = scheme.library.esk_string_utf8(scheme.context, data, len(data))
    assert scheme.python(made) == data.decode("utf-8", "replace")


def test_statistics() -> None:
    scheme = Scheme(64 << 20)
    assert scheme.call("%heap-statistic", 4) == 64 << 20
    before = scheme.call("%heap-statistic", 1)
    scheme.call("make-vector", 1000, 0)
    assert scheme.call("%heap-statistic", 1) - before >= 16000
    collections = scheme.call("%heap-statistic", 2)
    scheme.pause(-1)
    scheme.call("collect-garbage")
    assert scheme.call("%heap-statistic", 2) == collections + 1
    assert 0 < scheme.call("%heap-statistic", 0) < 1 << 20
    with pytest.raises(SchemeError, match="index"):
        scheme.call("%heap-statistic", 99)
    scheme.close()


def test_what_compiled_code_allocates_by_never_lies_in_two_cache_lines() -> None:
    """It was a sixth of the time of a program that makes pairs."""
    scheme, found = Scheme(64 << 20), layout()
    assert found["Bump"] == 16
    assert (scheme.context + found["Context.bump"]) % 16 == 0
    scheme.close()


def test_free_memory_goes_back_to_the_system_little_by_little() -> None:
    """A program whose needs come and go does not ask for the same pages again and again; one that is done keeps few."""
    scheme = Scheme(64 << 20)
    scheme.call("make-bytevector", 32 << 20, 0)
    scheme.pause(-1)

    def resident_after(collections: int) -> int:
        for _ in range(collections):
            scheme.call("collect-garbage")
        found: int = scheme.call("%heap-statistic", 3)
        return found

    assert resident_after(3) > 20 << 20
    assert resident_after(20) < 16 << 20
    scheme.close()


def test_too_large_is_refused_at_once() -> None:
    scheme = Scheme(64 << 20)
    for size in (1 << 23, 1 << 40, (1 << 62) - 1):
        with pytest.raises(SchemeError, match="out-of-memory") as error:
            scheme.call("make-vector", size, 0)
        assert error.value.kind == "out-of-memory"
    assert scheme.call("make-vector", 10, Pair(1, 2)) == (Pair(1, 2),) * 10
    scheme.close()
