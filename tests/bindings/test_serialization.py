"""serialize and deserialize: values come back as they were, and bytes that are no values are refused."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.bindings.serialization import packed, unpacked
from eshkol.errors import EshkolError
from eshkol.io.crc64 import crc64

PROGRAM = """
(define-record-type point (make-point x y) point? (x point-x) (y point-y set-point-y!))
(define k 3)
(define (scaled x) (* k x))
(define (factorial n) (if (= n 0) 1 (* n (factorial (- n 1)))))
(define (adder y) (lambda (x) (+ x y)))
(define x "one of the program's own")
(define-syntax doubled (syntax-rules () ((_ e) (* 2 e))))
(define (again value . options) (apply deserialize (serialize value) options))
"""


@pytest.fixture(scope="module")
def scheme() -> Callable[[str], Any]:
    ek.eval(PROGRAM)
    return ek.eval


def test_values_come_back(scheme):
    plain = """(list 1 -1 0 255 256 -128 -129 (expt 2 100) (- (expt 3 77)) 2/3 -1/7 1.5 -0.0 +inf.0 1+2i 1.5-2.5i
      "" "häß" 'sym '|a b| :key #\\λ #t #f '() (void) (eof-object) #() #(1 #(2)) '(1 . 2) '(1 (2) . 3) #u8(1 2 255))"""
    assert scheme(f"(let ((v {plain})) (equal? v (again v)))")
    assert scheme("(eqv? -0.0 (again -0.0))")
    assert scheme("(nan? (again +nan.0))")
    assert scheme("(unbox (again (box '(1))))") == [1]


def test_what_is_shared_stays_shared_and_cycles_too(scheme):
    both = "(and (eq? (vector-ref v 0) (vector-ref v 1)) (eq? (cdr (vector-ref v 0)) (vector-ref v 2)))"
    assert scheme(f"(let* ((s (list 1 2)) (v (again (vector s s (cdr s))))) {both})")
    assert scheme("(let ((c (list 1 2 3))) (set-cdr! (cddr c) c) (let ((d (again c))) (eq? d (cdddr d))))")
    assert scheme("(let ((v (vector 0))) (vector-set! v 0 v) (let ((w (again v))) (eq? w (vector-ref w 0))))")
    assert scheme("(let ((h (make-hash-table))) (hash-table-set! h 'me h) (let ((i (again h))) "
                  "(eq? i (hash-table-ref/default i 'me #f))))")  # fmt: skip


def test_tables_keep_their_kind_and_order(scheme):
    scheme('(define t (make-hash-table string=?)) (hash-table-set! t "b" 1) (hash-table-set! t "a" 2)')
    assert scheme("(hash-table->alist (again t))") == scheme("(hash-table->alist t)")
    assert scheme("(eq? string=? (hash-table-equivalence-function (again t)))")
    with pytest.raises(EshkolError, match="equivalence of its own"):
        scheme("(serialize (make-hash-table (lambda (a b) #t)))")


def test_records_come_back_as_their_type(scheme):
    assert scheme("(let ((p (again (make-point 1 '(2)) :types (list point)))) (and (point? p) (point-y p)))") == [2]
    scheme("(define p (make-point 1 2)) (set-point-y! p p) (define q (again p :types (list point)))")
    assert scheme("(eq? q (point-y q))")
    with pytest.raises(EshkolError, match=r"type was not given.*point \(x y\)"):
        scheme("(again p)")
    with pytest.raises(EshkolError, match="a list of record types"):
        scheme("(again p :types '(point))")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "complex128"])
def test_tensors_come_back_bit_by_bit(dtype):
    with ek.use_backend("reference"):
        x = ek.tensor(np.random.default_rng(0).integers(0, 2, (3, 2))).astype(dtype)
        found = ek.lang.deserialize(ek.lang.serialize(x))
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    assert found.numpy().tobytes() == x.numpy().tobytes()
    assert ek.lang.deserialize(ek.lang.serialize(ek.zeros((0, 3)))).shape == (0, 3)


def test_procedures_are_their_source(scheme):
    assert scheme("((again factorial :procedures #t) 10)") == 3628800
    assert scheme("((again (lambda (x . r) (vector x r '#(1))) :procedures #t) 1 2)") == [1, [2], [1]]
    assert scheme("((again (lambda (n) (let ((x 2)) (list 'x (* x n)))) :procedures #t) 4)") == [ek.lang.Symbol("x"), 8]
    assert scheme("(eq? car (again car :procedures #t))")
    assert scheme("(eq? tensor-sum (again tensor-sum :procedures #t))")
    kept = "(serialize scaled :bindings (list (cons 'k k)))"
    assert scheme(f"((deserialize {kept} :procedures #t) 5)") == 15
    assert scheme(f"((deserialize {kept} :procedures #t :bindings '((k . 100))) 5)") == 500
    assert scheme("((deserialize (serialize (adder 1) :bindings '((y . 7))) :procedures #t) 5)") == 12


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(again car)", "comes only with :procedures"),
        ("(again (lambda (x) x))", r"comes only with :procedures #t.*\(lambda \(x\) x\)"),
        ("(serialize scaled)", r"uses names from where it was written.*\(k\)"),
        ("(serialize (adder 2))", r"uses names from where it was written.*\(y\)"),
        ("(let ((x 1)) (serialize (lambda () x)))", r"\(x\)"),
        ("(serialize (lambda () (set! x 1)))", r"\(x\)"),
        ("(serialize (lambda (n) (doubled n)))", r"\(doubled\)"),
        ("(call/cc serialize)", "names from where it was written|no source"),
        ("(serialize (current-output-port))", "cannot be written"),
        ("(serialize (delay 1))", "cannot be written"),
        ("(serialize (generate-symbol))", "the same as no other"),
        ("(serialize (linear 2 3))", "save-checkpoint"),
        ("(serialize 1 :what 2)", "none of its options"),
        ("(serialize 1 2)", "none of its options"),
        ("(deserialize 5)", "a bytevector that serialize has made"),
        ("(deserialize (serialize 1) :bindings 5)", "list of pairs"),
    ],
)
def test_what_cannot_be_is_refused(scheme, text, why):
    with pytest.raises(EshkolError, match=why):
        scheme(text)


def test_deep_and_long_values(scheme):
    scheme("(define deep (let loop ((n 0) (v '())) (if (= n 20000) v (loop (+ n 1) (list v)))))")
    assert scheme("(equal? deep (again deep))")
    assert scheme("(let ((v (iota 20000))) (equal? v (again v)))")


# ---- bytes that are no values ----------------------------------------------------------------------------------------


def sealed(body: bytes) -> bytes:
    return b"ESKVAL01" + struct.pack("<Q", len(body)) + body + struct.pack("<Q", crc64(body))


HOSTILE = {
    "nothing": b"",
    "no such kind": b"\xff",
    "a list of 2^40": b"\x0c\x80\x80\x80\x80\x80\x20",
    "a count without end": b"\x0c" + b"\xff" * 20,
    "a list of nothing": b"\x0c\x00",
    "bytes that are not there": b"\x0a\xe8\x07abc",
    "a string that is no UTF-8": b"\x06\x02\xff\xfe",
    "a ratio with 0 below": b"\x04\x01\x01\x01\x00",
    "a ratio that is an integer": b"\x04\x01\x04\x01\x02",
    "a tensor of an unknown dtype": b"\x0b\x04what\x00\x00",
    "a tensor of 2^50 elements": b"\x0b\x07float32\x00\x02" + b"\x80\x80\x80\x80\x04" * 2,
    "two characters": b"\x09\x02ab",
    "something behind": b"\x01\x01",
    "a table of an odd count": b"\x15\x02\x07\x05equal\x01",
    "a table of no kind": b"\x15\x01\x07\x06custom",
    "a record without fields": b"\x16\x01\x07\x01p",
    "a procedure that is an expression": b"\x18\x03\x02\x0c\x02\x07\x04exit\x03\x01\x01\x00",
    "itself again": b"\x0d\x02\x03\x01\x00\x0e\x01\x03\x01\x00",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused(name):
    with pytest.raises(EshkolError, match="are no value of Eshkol's"):
        unpacked(sealed(HOSTILE[name]))


def test_what_refers_to_nothing_is_refused(scheme):
    with pytest.raises(EshkolError, match="are no value of Eshkol's"):
        ek.lang.deserialize(sealed(b"\x0e\x01\x03\x01\x05"))


def test_every_cut_and_every_flipped_bit_is_refused():
    whole = packed([["some", 1.5, [2, True], ek.lang.Symbol("s")]])
    for end in range(len(whole)):
        with pytest.raises(EshkolError):
            unpacked(whole[:end])
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        with pytest.raises(EshkolError):
            unpacked(bytes(changed))


def test_random_bodies_end_in_a_value_or_in_an_error():
    draw = random.Random(0)
    for _ in range(2000):
        body = bytes(draw.choice((draw.randrange(26), draw.randrange(256))) for _ in range(draw.randrange(1, 24)))
        try:
            unpacked(sealed(body))
        except EshkolError:
            continue
