"""write, display and their kin: against texts written by hand, against a plain recursive printer for data with cycles,
and against `read`, which must give back what was written."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from native import Native
from scheme_data import Char, Pair, Symbol, word

from batches import of_each
from effort import examples
from eshkol.runtime.scheme import Value

DISPLAY, WRITE, SHARED, SIMPLE = range(4)


@pytest.fixture(scope="module")
def scheme() -> Iterator[Native]:
    machine = Native()
    yield machine
    machine.close()


def text(scheme: Native, data: Any, style: int = WRITE) -> str:
    found = scheme.call("%text", data, style)
    assert isinstance(found, str)
    return found


def first(scheme: Native, source: str) -> Value:
    return scheme.raw("read", scheme.raw("open-input-string", scheme.value(source)))


# ---- atoms and simple data


@of_each("data, written, displayed", [
        (5, "5", "5"), (-(1 << 63), "-9223372036854775808", "-9223372036854775808"), (0, "0", "0"),
        (10**30, "1" + "0" * 30, "1" + "0" * 30), (1.5, "1.5", "1.5"), (-0.0, "-0.0", "-0.0"),
        (Fraction(1, 3), "1/3", "1/3"), (True, "#t", "#t"), (False, "#f", "#f"), ("", '""', ""),
        ("abc", '"abc"', "abc"), ('a"b\\c', r'"a\"b\\c"', 'a"b\\c'), ("\a\b\t\n\r", r'"\a\b\t\n\r"', "\a\b\t\n\r"),
        ("\0\x1b\x7f", r'"\x0;\x1b;\x7f;"', "\0\x1b\x7f"), ("λ😀é", '"λ😀é"', "λ😀é"), ("|;(", '"|;("', "|;("),
        ("\u202e", r'"\x202e;"', "\u202e"), (Char(97), r"#\a", "a"), (Char(32), r"#\space", " "),
        (Char(10), r"#\newline", "\n"), (Char(0), r"#\null", "\0"), (Char(7), r"#\alarm", "\a"),
        (Char(8), r"#\backspace", "\b"), (Char(127), r"#\delete", "\x7f"), (Char(27), r"#\escape", "\x1b"),
        (Char(13), r"#\return", "\r"), (Char(9), r"#\tab", "\t"), (Char(40), r"#\(", "("), (Char(1), r"#\x1", "\1"),
        (Char(0x3BB), r"#\λ", "λ"), (Char(0xA0), r"#\xa0", "\xa0"), (Symbol("abc"), "abc", "abc"),
        (Symbol(""), "||", ""), (Symbol("a b"), "|a b|", "a b"), (Symbol("A"), "A", "A"), (Symbol("1"), "|1|", "1"),
        (Symbol("+i"), "|+i|", "+i"), (Symbol("-"), "-", "-"), (Symbol("..."), "...", "..."),
        (Symbol("."), "|.|", "."), (Symbol("1+"), "1+", "1+"), (Symbol("a|b"), r"|a\|b|", "a|b"),
        (Symbol("a\\b"), r"|a\\b|", "a\\b"), (Symbol("#a"), "|#a|", "#a"), (Symbol("a#"), "a#", "a#"),
        (Symbol(":a"), "|:a|", ":a"), (Symbol(":"), ":", ":"), (Symbol(":::"), ":::", ":::"), (Symbol("λ"), "λ", "λ"),
        (Symbol("a\nb"), r"|a\nb|", "a\nb"), (Symbol("a\u200bb"), r"|a\x200b;b|", "a\u200bb"),
        (Symbol("'"), "|'|", "'"), (Symbol("+inf.0"), "|+inf.0|", "+inf.0"), (Symbol("é"), "é", "é"),
        ([], "()", "()"), ([1, 2], "(1 2)", "(1 2)"), (Pair(1, 2), "(1 . 2)", "(1 . 2)"),
        (Pair(1, Pair(2, 3)), "(1 2 . 3)", "(1 2 . 3)"), ((), "#()", "#()"),
        ((1, (2,), [3]), "#(1 #(2) (3))", "#(1 #(2) (3))"), (b"", "#u8()", "#u8()"),
        (b"\0\xff", "#u8(0 255)", "#u8(0 255)"), ([[], ()], "(() #())", "(() #())"),
        (["a", Char(98), Symbol("c d")], r'("a" #\b |c d|)', "(a b c d)"), ([[[]]], "((()))", "((()))"),
        ([Symbol("quote"), Symbol("a")], "(quote a)", "(quote a)"),
        (Pair(Pair(1, 2), Pair(3, 4)), "((1 . 2) 3 . 4)", "((1 . 2) 3 . 4)"),
    ])  # fmt: skip
def test_data(scheme: Native, data: object, written: str, displayed: str) -> None:
    assert text(scheme, data) == text(scheme, data, SIMPLE) == text(scheme, data, SHARED) == written
    assert text(scheme, data, DISPLAY) == displayed


@pytest.mark.parametrize("source", [":axis", ":|a b|", ":|:|", ":|:a|", ":λ", ":1", ":||", ":|.|"])
def test_keywords_are_read_back(scheme: Native, source: str) -> None:
    value = first(scheme, source)
    assert value.tag == scheme.tag["KEYWORD"]
    again = first(scheme, text(scheme, value))
    assert (again.tag, again.bits) == (value.tag, value.bits)


def test_other_objects(scheme: Native) -> None:
    assert text(scheme, scheme.raw("eof-object")) == "#<eof>"
    assert text(scheme, Value(scheme.tag["SPECIAL"], 0)) == "#<unspecified>"
    port = scheme.raw("open-input-string", scheme.value("x"))
    assert text(scheme, port) == '#<textual input port "string">'
    scheme.raw("close-port", port)
    assert text(scheme, port) == '#<textual input port "string" (closed)>'
    assert text(scheme, scheme.raw("make-object")) == "#<object>"
    for name, shown in ((b"my-map", "#<procedure my-map>"), (b"", "#<procedure>"), (None, "#<procedure>")):
        about = (ctypes.c_char_p * 8)(name)  # a Procedure begins with its name
        closure = (ctypes.c_void_p * 3)(scheme.tag["PROCEDURE"], 0, ctypes.addressof(about))
        assert text(scheme, Value(scheme.tag["PROCEDURE"], ctypes.addressof(closure))) == shown
    assert text(scheme, scheme.raw("open-output-bytevector")) == '#<binary output port "bytevector">'
    assert (
        text(scheme, scheme.raw("%standard-port", scheme.value(1)), DISPLAY) == "#<textual output port standard output>"
    )


def test_records_boxes_and_values(scheme: Native) -> None:
    kind = scheme.raw("%make-record-type", scheme.value(Symbol("<point>")), scheme.value((Symbol("x"), Symbol("y z"))))
    point = scheme.raw("%record", kind, scheme.value(1), scheme.value("a"))
    assert text(scheme, point) == '#<point x: 1 |y z|: "a">'
    assert text(scheme, point, DISPLAY) == "#<point x: 1 y z: a>"
    assert text(scheme, kind) == "#<record type point>"
    empty = scheme.raw("%make-record-type", scheme.value(Symbol("empty")), scheme.value(()))
    assert text(scheme, scheme.raw("%record", empty)) == "#<empty>"
    box = scheme.raw("box", point)
    assert text(scheme, box) == '#<box #<point x: 1 |y z|: "a">>'
    scheme.raw("set-box!", box, box)
    assert text(scheme, box) == "#0=#<box #0#>"
    assert text(scheme, scheme.raw("values", scheme.value(1), scheme.value("b"))) == '#<values 1 "b">'
    assert text(scheme, scheme.raw("values")) == "#<multiple values>"
    itself = scheme.raw("%record", kind, box, scheme.value([]))
    scheme.raw("set-box!", box, itself)
    assert text(scheme, itself) == "#0=#<point x: #<box #0#> |y z|: ()>"


def test_error_objects(scheme: Native) -> None:
    def error(kind: str, who: object, message: object, irritants: object) -> Value:
        return scheme.raw("%make-error", *map(scheme.value, (Symbol(kind), who, message, irritants)))

    assert text(scheme, error("error", False, "no good", [1, "a"])) == '#<error no good 1 "a">'
    assert text(scheme, error("wrong-type", Symbol("car"), "not a pair", [])) == "#<wrong-type car: not a pair>"
    assert text(scheme, error("error", False, [1], Pair(2, 3))) == "#<error (1) 2 . 3>"
    ring = first(scheme, "#0=(1 . #0#)")
    assert text(scheme, error("error", False, "ring", ring)) == "#<error ring . #0=(1 . #0#)>"


# ---- cycles and sharing


@pytest.mark.parametrize(
    ("source", "written", "shared"),
    [
        ("#0=(a b . #0#)", "#0=(a b . #0#)", "#0=(a b . #0#)"),
        ("#5=(a #5#)", "#0=(a #0#)", "#0=(a #0#)"),
        ("#0=#(#0# 1)", "#0=#(#0# 1)", "#0=#(#0# 1)"),
        ("(#0=(1) #0#)", "((1) (1))", "(#0=(1) #0#)"),
        ("(#0=(1) . #0#)", "((1) 1)", "(#0=(1) . #0#)"),
        ("(1 . #0=(2 . #0#))", "(1 . #0=(2 . #0#))", "(1 . #0=(2 . #0#))"),
        ("(#0=(1 . #0#) #0#)", "(#0=(1 . #0#) #0#)", "(#0=(1 . #0#) #0#)"),
        ("(#0=(1) #1=#(#0# #1#) #0#)", "((1) #0=#((1) #0#) (1))", "(#0=(1) #1=#(#0# #1#) #0#)"),
        ("#0=(#1=(#0# . #1#) . #1#)", "#0=(#1=(#0# . #1#) . #1#)", "#0=(#1=(#0# . #1#) . #1#)"),
        ('(#0="a" #0#)', '("a" "a")', '("a" "a")'),
        ("(#0=() #0#)", "(() ())", "(() ())"),
        ("#0='#0#", "#0=(quote #0#)", "#0=(quote #0#)"),
    ],
)  # fmt: skip
def test_labels(scheme: Native, source: str, written: str, shared: str) -> None:
    value = first(scheme, source)
    assert text(scheme, value) == text(scheme, value, DISPLAY).replace("a", '"a"' if '"' in written else "a") == written
    assert text(scheme, value, SHARED) == shared


def parts(scheme: Native, value: Value) -> list[Value]:
    if value.tag == scheme.tag["PAIR"]:
        head = word(value.bits)
        return [Value(head >> 8 & 255, word(value.bits + 8)), Value(head >> 16 & 255, word(value.bits + 16))]
    if value.tag == scheme.tag["VECTOR"]:
        return [Value.from_address(value.bits + 16 + 16 * i) for i in range(word(value.bits + 8))]
    return []


def plain_text(scheme: Native, root: Value, shared: bool) -> str:
    """What write or write-shared should print, by recursion: labels for what is met again inside itself, or at all."""
    inside: set[int] = set()
    seen: set[int] = set()
    labelled: set[int] = set()
    numbers: dict[int, int] = {}

    def search(value: Value) -> None:
        children = parts(scheme, value)
        if not children:
            return
        if value.bits in seen:
            if shared or value.bits in inside:
                labelled.add(value.bits)
            return
        seen.add(value.bits)
        inside.add(value.bits)
        for child in children:
            search(child)
        inside.remove(value.bits)

    def show(value: Value) -> str:
        children = parts(scheme, value)
        prefix = ""
        if children and value.bits in labelled:
            if value.bits in numbers:
                return f"#{numbers[value.bits]}#"
            prefix = f"#{numbers.setdefault(value.bits, len(numbers))}="
        if value.tag == scheme.tag["VECTOR"]:
            return prefix + "#(" + " ".join(map(show, children)) + ")"
        if value.tag != scheme.tag["PAIR"]:
            return str(scheme.python(value)) if value.tag == scheme.tag["FIXNUM"] else "()"
        items = [show(children[0])]
        rest = children[1]
        while rest.tag == scheme.tag["PAIR"] and rest.bits not in labelled:
            car, cdr = parts(scheme, rest)
            items.append(show(car))
            rest = cdr
        tail = "" if rest.tag == scheme.tag["NULL"] else " . " + show(rest)
        return prefix + "(" + " ".join(items) + tail + ")"

    search(root)
    return show(root)


def same_shape(scheme: Native, a: Value, b: Value, exact: bool) -> bool:
    """Whether two data look alike from outside; and, where `exact`, share the same parts."""
    pairs: dict[tuple[int, int], bool] = {}
    left: dict[int, int] = {}
    stack = [(a, b)]
    while stack:
        a, b = stack.pop()
        if a.tag != b.tag:
            return False
        children, others = parts(scheme, a), parts(scheme, b)
        if not children and not others:
            if a.tag == scheme.tag["FIXNUM"] and a.bits != b.bits:
                return False
            continue
        if len(children) != len(others) or (exact and left.setdefault(a.bits, b.bits) != b.bits):
            return False
        if not pairs.setdefault((a.bits, b.bits), False):
            pairs[a.bits, b.bits] = True
            stack.extend(zip(children, others, strict=True))
    return True


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Nodes (0: a pair, n: a vector of n) and what each of their places refers to: a node or, below zero, an atom."""
    nodes = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=1, max_size=7))
    places = sum(node or 2 for node in nodes)
    return nodes, draw(st.lists(st.integers(-4, len(nodes) - 1), min_size=places, max_size=places))


def build(scheme: Native, nodes: list[int], places: list[int]) -> Value:
    nil = scheme.value([])
    made = [scheme.cons(nil, nil) if not n else scheme.raw("make-vector", scheme.value(n)) for n in nodes]
    targets = iter([nil if p == -1 else scheme.value(-p) if p < 0 else made[p] for p in places])
    for node, value in zip(nodes, made, strict=True):
        if node:
            for i in range(node):
                scheme.set_item(value, i, next(targets))
        else:
            scheme.raw("set-car!", value, next(targets))
            scheme.raw("set-cdr!", value, next(targets))
    return made[0]


@given(graphs())
@examples(3000, 120)
def test_any_graph_is_written_and_read_back(scheme: Native, graph: tuple[list[int], list[int]]) -> None:
    value = build(scheme, *graph)
    written, shared = text(scheme, value), text(scheme, value, SHARED)
    assert written == plain_text(scheme, value, shared=False)
    assert shared == plain_text(scheme, value, shared=True)
    assert same_shape(scheme, value, first(scheme, written), exact=False)
    assert same_shape(scheme, value, first(scheme, shared), exact=True)


def test_a_long_ring_is_found_after_the_quick_look(scheme: Native) -> None:
    size = 50_000
    items = [scheme.value(1) for _ in range(size)]
    chain = scheme.list_of(items)
    last = chain
    for _ in range(size - 1):
        last = parts(scheme, last)[1]
    assert text(scheme, chain) == "(" + "1 " * (size - 1) + "1)"
    scheme.raw("set-cdr!", last, chain)
    assert text(scheme, chain) == "#0=(" + "1 " * size + ". #0#)"
    scheme.raw("set-cdr!", last, scheme.value([]))
    nested = scheme.list_of([chain, chain])
    assert text(scheme, nested).count("1") == 2 * size
    assert text(scheme, nested, SHARED) == "(#0=(" + "1 " * (size - 1) + "1) #0#)"


# ---- what is written is read back

atoms = st.one_of(
    st.integers(), st.floats(allow_nan=False), st.booleans(), st.text(max_size=8), st.binary(max_size=4),
    st.text(max_size=6).map(Symbol),
    st.characters(exclude_categories=["Cs"]).map(lambda c: Char(ord(c))), st.fractions(),
    st.text("+-.0123456789eifn/@#:|\\ ", max_size=5).map(Symbol),
)  # fmt: skip
trees = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.builds(Pair, inner, inner)
    ),
)


def identity(data: Any) -> Any:
    """Distinguishes 1, 1.0 and True, 0.0 and -0.0; a pair whose cdr is a list is a list."""
    match data:
        case Pair(car, cdr):
            items, rest = [identity(car)], cdr
            while isinstance(rest, Pair):
                items.append(identity(rest.car))
                rest = rest.cdr
            if isinstance(rest, list):
                return ("list", *items, *map(identity, rest))
            return ("dotted", *items, identity(rest))
        case list():
            return ("list", *map(identity, data))
        case tuple() if type(data) is tuple:
            return ("vector", *map(identity, data))
        case Fraction() if data.denominator == 1:
            return (int, str(data.numerator))
    return (type(data), repr(data))


@given(trees)
@examples(3000, 120)
def test_data_are_written_and_read_back(scheme: Native, data: Any) -> None:
    for style in (WRITE, SHARED, SIMPLE):
        assert identity(scheme.python(first(scheme, text(scheme, data, style)))) == identity(data)


@given(st.text(max_size=10))
def test_every_symbol_is_read_back(scheme: Native, name: str) -> None:
    assert scheme.python(first(scheme, text(scheme, Symbol(name)))) == Symbol(name)


def test_deep_data_are_printed(scheme: Native) -> None:
    depth = 100_000
    value = scheme.value([])
    for _ in range(depth - 1):
        value = scheme.list_of([value])
    for style in range(4):
        assert text(scheme, value, style) == "(" * depth + ")" * depth


def test_ports_get_what_is_printed(scheme: Native) -> None:
    port = scheme.raw("open-output-string")
    scheme.call("write", "a", port)
    scheme.call("display", "b", port)
    scheme.call("newline", port)
    scheme.call("write-shared", [1], port)
    scheme.call("write-simple", Char(97), port)
    assert scheme.call("get-output-string", port) == '"a"b\n(1)#\\a'
