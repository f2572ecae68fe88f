"""Values that cross the border and come back are what they were: random nested ones both ways, and the odd ones.

The oracle is Python's own equality, with types; for values of Scheme, `equal?` there.
"""

from __future__ import annotations

import enum
import math
import sys
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eshkol as ek
from effort import amount
from eshkol.bindings.values import Char, Keyword, Opaque, Pair, Procedure, Record, Symbol, Values, Vector
from eshkol.errors import ConversionError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**200), 2**200), st.floats(), st.binary(max_size=8), TEXT,
    st.fractions().filter(lambda f: f.denominator != 1), st.complex_numbers(), NAMES.map(Symbol), NAMES.map(Keyword),
    st.characters(exclude_categories=["Cs"]).map(Char),
)  # fmt: skip
KEYS = st.one_of(st.integers(), TEXT, NAMES.map(Symbol), st.tuples(st.integers(), TEXT))
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.lists(inner, max_size=5).map(Vector),
        st.dictionaries(KEYS, inner, max_size=4),
        st.builds(Pair, inner, ATOMS.filter(lambda value: value != [])),
    ),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def identity() -> Any:
    return ek.eval("(lambda (x) x)")


def same(a: Any, b: Any) -> bool:
    """Equal, of one type, all the way down; NaN is itself and -0.0 is not 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) and (a == b or (math.isnan(a) and math.isnan(b)))
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(key, other) for key, other in zip(a, b, strict=True)) and all(
            same(a[key], b[key]) for key in a
        )  # fmt: skip
    if isinstance(a, Pair):
        return same(a.car, b.car) and same(a.cdr, b.cdr)
    return bool(a == b)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_what_goes_to_scheme_comes_back(identity: Any, value: Any) -> None:
    assert same(identity(value), value)


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_what_goes_to_python_comes_back(value: Any) -> None:
    """In a list: a keyword by itself would announce an argument."""
    there = ek.eval("(lambda (x back) (let ((again (back x))) (and (equal? (list 1 x) (list 1 x)) again)))")
    assert same(there([value], lambda x: x), [value])


SCHEME = st.recursive(
    st.sampled_from(
        ["1", "-7", "1/3", "2.5", "+inf.0", "#t", "#f", '"a\\nb"', "#\\x", "sym", ":key", "#u8(1 2)", "1+2.5i", "()",
         "123456789012345678901234567890", "|odd name|"],
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda parts: f"({' '.join(parts)})"),
        st.lists(inner, max_size=4).map(lambda parts: f"#({' '.join(parts)})"),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]} . {parts[1]})"),
    ),
    max_leaves=12,
)  # fmt: skip


@given(SCHEME)
@settings(max_examples=60, deadline=None)
def test_data_of_scheme_are_equal_after_the_way_through_python(text: str) -> None:
    # in a list: a keyword by itself would be the name of an argument
    check = ek.eval(f"(lambda (f) (let ((data (list '{text}))) (equal? data (f data))))")
    assert check(lambda value: value) is True


# ---- rows of the table -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42), ("(expt 2 64)", 2**64), ("(- (expt 2 63))", -(2**63)), ("2/4", Fraction(1, 2)), ("1.5", 1.5),
        ("1+2i", 1 + 2j), ("#t", True), ('"añ"', "añ"), ("#u8(0 255)", b"\x00\xff"), ("'a-b", Symbol("a-b")),
        (":axis", Keyword("axis")), ("#\\a", Char("a")), ("'(1 (2))", [1, [2]]),
        ("#(1 #(2))", Vector([1, Vector([2])])),
        ("'(1 . 2)", Pair(1, 2)), ("'(1 2 . 3)", Pair(1, Pair(2, 3))),
            ("(values 1 2)", Values((1, 2))), ("(values)", Values()),
        ("(if #f #f)", None), ("'()", []), ("#()", Vector()), ('""', ""),
        ('(let ((t (make-hash-table))) (hash-table-set! t "k" (list 1)) t)', {"k": [1]}),
    ],
)  # fmt: skip
def test_what_values_of_scheme_are_in_python(text: str, value: Any) -> None:
    assert same(ek.eval(text), value)


class Color(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ((1, (2, "x")), '#(1 #(2 "x"))'), (np.float64(1.5), "1.5"), (np.int32(7), "7"), (np.bool_(True), "#t"),
        (True, "#t"), (-0.0, "-0.0"), (float("nan"), "+nan.0"), ({"a": {"b": 1}}, None), (Fraction(6, 3), "2"),
    ],
)  # fmt: skip
def test_what_objects_of_python_are_in_scheme(value: Any, written: str | None) -> None:
    shown = ek.eval("(lambda (x) (call-with-output-string (lambda (port) (write x port))))")(value)
    assert shown == written if written is not None else shown.startswith("#<hash table")


def test_what_has_no_like_stays_the_same_object(identity: Any) -> None:
    for value in (
        object(),
        Decimal("1.5"),
        {1, 2},
        OrderedDict(a=1),
        Color.RED,
        sys,
        len,
        print,
        Exception("x"),
        range(3),
    ):
        assert identity(value) is value
    assert ek.eval("(lambda (x) (procedure? x))")(len) is True
    assert ek.eval("(lambda (a b) (eq? a b))")(sys, sys) is True
    assert ek.eval("(lambda (a b) (eq? a b))")(len, len) is True


def test_tensors_and_arrays(identity: Any) -> None:
    tensor = ek.tensor([1.0, 2.0])
    assert identity(tensor) is tensor
    array = np.arange(4.0)
    made = identity(array)
    assert isinstance(made, ek.Tensor)
    assert made.numpy().tolist() == array.tolist()


def test_values_that_stay_in_scheme_are_the_same_when_they_go_back(identity: Any) -> None:
    point = ek.eval("(define-record-type point (make-point x-part y) point? (x-part px) (y py)) (make-point 1 '(2))")
    assert isinstance(point, Record)
    assert (point.x_part, point.y) == (1, [2])
    assert ek.eval("(lambda (p) (point? p))")(point) is True
    assert identity(point) == point
    with pytest.raises(AttributeError, match="no field 'z'"):
        _ = point.z
    procedure = ek.eval('(define (twice x) "Two times x." (* 2 x)) twice')
    assert isinstance(procedure, Procedure)
    assert (procedure.__name__, procedure.__doc__, procedure(4)) == ("twice", "Two times x.", 8)
    assert ek.eval("(lambda (f) (eq? f twice))")(procedure) is True
    assert hash(identity(procedure)) == hash(procedure)
    port = ek.eval("(current-output-port)")
    assert type(port) is Opaque
    assert ek.eval("(lambda (p) (eq? p (current-output-port)))")(port) is True


# ---- what cannot be converted, and what is large ---------------------------------------------------------------------


def test_cycles_are_told(identity: Any) -> None:
    cyclic: list[Any] = [1]
    cyclic.append({"k": (cyclic,)})
    with pytest.raises(ConversionError, match="cyclic structure of Python"):
        identity(cyclic)
    pair = Pair(1, 2)
    pair.cdr = pair
    with pytest.raises(ConversionError, match="cyclic structure of Python"):
        identity(pair)
    for text in ("(let ((l (list 1 2 3))) (set-cdr! (cddr l) l) l)", "(let ((v (vector 1 2))) (vector-set! v 1 v) v)",
                 "(let ((l (list 1 2))) (set-car! (cdr l) (list (cdr l))) l)"):  # fmt: skip
        with pytest.raises(ConversionError, match="of Scheme has no value in Python"):
            ek.eval(text)
    long: list[Any] = list(range(1000))
    long.append(long)
    with pytest.raises(ConversionError, match="cyclic"):
        identity(long)


def test_surrogates_are_told(identity: Any) -> None:
    with pytest.raises(ConversionError, match="lone surrogate"):
        identity(["a\ud800b"])


@pytest.mark.parametrize("depth", [amount(100_000, 30_000)])
def test_depth_does_not_matter(identity: Any, depth: int) -> None:
    for wrap in (lambda x: [x], lambda x: Vector([x]), lambda x: (x,), lambda x: {1: x}, lambda x: Pair(1, Pair(x, 2))):
        value: Any = 0
        for _ in range(depth):
            value = wrap(value)
        made = identity(value)
        assert type(made) is (Vector if isinstance(value, tuple) else type(value))
        while not isinstance(made, int):  # taken apart from outside: Python itself cannot drop what is so deep
            made = made.cdr.car if isinstance(made, Pair) else made.pop() if isinstance(made, list) else made.pop(1)
        while not isinstance(value, int):
            value = value.cdr.car if isinstance(value, Pair) else value[0] if not isinstance(value, dict) else value[1]


def test_large_integers(identity: Any) -> None:
    for number in (10**5000, -(10**5000), 2**63, 2**63 - 1, -(2**63) - 1, 2**64, (1 << 100_000) + 1):
        assert identity(number) == number


class Nasty:
    """An object whose methods all fail: nothing of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __float__(self) -> float:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def test_nasty_objects(identity: Any) -> None:
    nasty = Nasty()
    assert identity([nasty])[0] is nasty
    with pytest.raises(RuntimeError, match="no text"):
        ek.eval("(lambda (x) (call-with-output-string (lambda (port) (write x port))))")(nasty)
    with pytest.raises(TypeError, match="unhashable"):
        ek.eval("(lambda (k) (let ((t (make-hash-table))) (hash-table-set! t (make-hash-table) 1) t))")(1)


def test_many_types_of_objects(identity: Any) -> None:
    """More types than are remembered."""
    for number in range(1500):
        value = type(f"T{number}", (), {})()
        assert identity(value) is value
