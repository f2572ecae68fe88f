"""`ek.eval`: the values of texts of Eshkol in Python, errors with their lines, one session for all of them."""

from __future__ import annotations

import cmath
import math
import os
import signal
import threading
from fractions import Fraction

import pytest

import eshkol as ek
from eshkol.bindings.values import Char, Keyword, Opaque, Pair, Symbol, Values, Vector
from eshkol.errors import EshkolError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(+ 1 2)", 3),
        ("-7", -7),
        ("(expt 2 100)", 2**100),
        ("(/ 6 4)", Fraction(3, 2)),
        ("-1.5e300", -1.5e300),
        ("(make-rectangular 1 2)", 1 + 2j),
        ("1.5-2.5e-3i", 1.5 - 2.5e-3j),
        ("-i", -1j),
        ("1/2+3/4i", 0.5 + 0.75j),
        ("#t", True),
        ('"a\\nλ"', "a\nλ"),
        ("#\\λ", Char("λ")),
        ("'sym", Symbol("sym")),
        (":axis", Keyword("axis")),
        ("#u8(1 2)", b"\x01\x02"),
        ("'()", []),
        ('\'(1 (2.0 #(3/4 "x")) . ())', [1, [2.0, [Fraction(3, 4), "x"]]]),
        ("#()", Vector()),
        ("(cons 1 2)", Pair(1, 2)),
        ("(alist->hash-table '((1 . 2)))", {1: 2}),
        ("(values 1 2.5)", Values((1, 2.5))),
        ("(values)", Values()),
        ("(void)", None),
        ("", None),
        ("(define (f x) x)", None),
        ("1 2 3", 3),
    ],
)
def test_values(text: str, value: object) -> None:
    found = ek.eval(text)
    assert found == value
    assert type(found) is type(value)


def test_long_integers() -> None:
    assert ek.eval("(- (expt 7 6000))") == -(7**6000)
    assert ek.eval("(/ (expt 7 6000) (expt 2 20000))") == Fraction(7**6000, 2**20000)


def test_numbers_that_are_none() -> None:
    assert math.isinf(ek.eval("+inf.0"))
    assert math.isnan(ek.eval("+nan.0"))
    assert cmath.isinf(ek.eval("(make-rectangular 1.0 -inf.0)"))
    assert ek.eval("(make-rectangular -inf.0 2.0)") == complex(-math.inf, 2)


def test_definitions_are_kept() -> None:
    ek.eval("(define twice-of (lambda (x) (* 2 x)))")
    assert ek.eval("(map twice-of '(1 2 3))") == [2, 4, 6]


def test_deep_data() -> None:
    found = ek.eval("(let loop ((n 0) (v '())) (if (= n 5000) v (loop (+ n 1) (list v))))")
    for _ in range(5000):
        (found,) = found
    assert found == []
    assert len(ek.eval("(iota 100000)")) == 100000


def test_what_a_text_writes_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    ek.eval('(display "hello")')
    assert capfd.readouterr().out == "hello"


def test_errors_show_the_line() -> None:
    with pytest.raises(EshkolError) as caught:
        ek.eval("(define (f x)\n  (car x))\n(+ 1 (f 5))", "mine")
    assert "car" in str(caught.value)
    assert "mine:2:" in str(caught.value)
    assert "(car x))" in str(caught.value)
    with pytest.raises(EshkolError, match="no definition"):
        ek.eval("(no-such-name 1)")
    with pytest.raises(EshkolError):
        ek.eval("(car")
    assert ek.eval("(+ 1 1)") == 2


def test_what_python_has_no_value_for_is_an_error() -> None:
    with pytest.raises(EshkolError, match="circular"):
        ek.eval("(let ((l (list 1))) (set-cdr! l l) l)")


def test_other_values_stay_where_they_are() -> None:
    assert ek.eval("car")([1, 2]) == 1
    port = ek.eval('(open-input-string "datum")')
    assert isinstance(port, Opaque)
    assert ek.lang.read(port) == Symbol("datum")


def test_leaving() -> None:
    with pytest.raises(SystemExit) as caught:
        ek.eval("(exit 3)")
    assert caught.value.code == 3


def test_an_interrupt_is_pythons_and_the_session_goes_on() -> None:
    ek.eval("(let loop ((i 0)) (if (< i 10) (loop (+ i 1))))")  # the compiler is there
    ended = threading.Event()

    def press() -> None:
        """Ctrl-C; one that comes too early, while the loop is compiled, is pressed again."""
        while not ended.wait(1.0):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            ek.eval("(let loop ((i 0)) (loop (+ i 1)))")
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert ek.eval("(+ 1 1)") == 2
