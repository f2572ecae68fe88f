"""What the compiler finds out about values (codegen/inference.py), and what it makes of it, beside Python's numbers."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import in_session, outcome, written
from drawn_numbers import Program, number, same

from effort import amount
from eshkol.codegen.compiling import llvm_text, simplify_unit, table
from eshkol.codegen.functions import Analysis
from eshkol.codegen.inference import Inference
from eshkol.lang.source import Source
from eshkol.session import Session


def programs(seeds: range) -> Iterator[tuple[Program, list[int | float]]]:
    """Random programs with their values; without those whose integers are too large for Python's doubles."""
    for seed in seeds:
        program = Program(random.Random(seed)).draw()
        try:
            yield program, program.values()
        except OverflowError:
            continue


def agrees(session: Session, text: str, values: list[int | float]) -> None:
    shown = written(session, text).split()
    for one, value in zip(shown, values, strict=True):
        assert same(number(one), value), f"{one} instead of {value}:\n{text}"


def test_random_programs_of_numbers() -> None:
    def work(session: Session) -> None:
        for program, values in programs(range(amount(400, 16))):
            agrees(session, program.text(), values)

    in_session(work)


def test_the_same_where_nothing_is_known_of_procedures() -> None:
    def work(session: Session) -> None:
        for program, values in programs(range(1000, 1000 + amount(60, 3))):
            agrees(session, program.text(known=False), values)

    in_session(work)


def test_parts_of_large_programs_share_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_TIER", "full")

    def work(session: Session) -> None:
        texts, expected = [], []
        for number_, (program, values) in enumerate(programs(range(2000, 2012))):
            text = program.text()
            for name in ("table", *(p.name for p in program.procedures)):
                text = text.replace(f"({name} ", f"({name}-{number_} ").replace(f" {name} ", f" {name}-{number_} ")
            texts.append(text)
            expected += values
        agrees(session, "\n".join(texts), expected)

    in_session(work)


def inferred(session: Session, text: str) -> tuple[Inference, Analysis, str]:
    """What is found out about a program, and its code."""
    unit = session.world.program(Source("<inferred>", text)).unit
    simplify_unit(unit)
    analysis = Analysis.of(unit.forms)
    return Inference(unit.forms, analysis, table(), unit.private), analysis, llvm_text(unit, unit.forms)[0]


def told(text: str) -> dict[str, list[str]]:
    """The tags of the parameters of procedures that are known, by their names."""
    found: dict[str, list[str]] = {}

    def work(session: Session) -> None:
        inference, analysis, _ = inferred(session, text)
        bits = inference.kinds.bit
        for function in analysis.functions.values():
            kinds = [inference.kind(v) for v in function.code.clauses[0].params]
            found[function.code.name or ""] = [
                "any" if kind == inference.kinds.any else " ".join(n for n, bit in bits.items() if kind.tags & bit)
                for kind in kinds
            ]

    in_session(work)
    return found


def test_what_is_found_out() -> None:
    found = told("""
        (define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
        (define (half x n) (if (= n 0) x (half (* x 0.5) (- n 1))))
        (define (total v i sum) (if (= i (vector-length v)) sum (total v (+ i 1) (+ sum (vector-ref v i)))))
        (define (same x) x)
        (define (power b n) (if (= n 0) 1 (* b (power b (- n 1)))))
        (define (grown n) (if (> n 100) n (grown (* n 3))))
        (display (list (fib 20) (half 3.0 10) (total (vector 1 2 3) 0 0) (apply same '(4)) (power 3 100) (grown 1)))
    """)
    assert found["fib"] == ["FIXNUM"]
    assert found["half"] == ["FLONUM", "FIXNUM"]
    assert found["total"][:2] == ["VECTOR", "FIXNUM"]
    assert found["same"] == ["any"]
    assert found["power"] == ["FIXNUM", "FIXNUM"]
    assert found["grown"] == ["FIXNUM"]


def test_ranges_end_where_fixnums_do() -> None:
    program = """
        (define (up n) (if (= n 9223372036854775807) (+ n 1) (up (+ n 1))))
        (define (down n) (if (< n -9223372036854775807) (- n 1) (down (- n 1))))
        (define (twice n k) (if (= k 0) n (twice (* n 2) (- k 1))))
        (define (sum from to) (if (> from to) 0 (+ from (sum (+ from 1) to))))
        (write (list (up 9223372036854775800) (down -9223372036854775800) (twice 1 64)
                     (sum 9223372036854775797 9223372036854775807)))
    """
    values = [2**63, -(2**63) - 1, 2**64, sum(range(2**63 - 11, 2**63))]

    def work(session: Session) -> None:
        assert written(session, program) == f"({' '.join(map(str, values))})"

    in_session(work)


def test_flonums_are_passed_as_doubles() -> None:
    def work(session: Session) -> None:
        _, _, text = inferred(
            session,
            """
            (define (norm x y) (if (< x 1e-3) (* y y) (+ (norm (* x 0.5) y) (* x x))))
            (display (norm 1.5 2.5))
        """,
        )
        head = next(line for line in text.splitlines() if line.startswith("define") and '"norm~0' in line)
        assert "double %a0d, double %a1d" in head

    in_session(work)


TYPED = """
(define (near (x : Float64) (n : Integer)) : Float64 (if (= n 0) x (near (+ (* x 0.999) 0.5) (- n 1))))
(define items (list 2.0 3.0))
(write (near (car items) 3))
(write (derivative (lambda (x) (near x 3)) 2.0))
(write (near 1.0 (* 1 3)))
"""


def test_typed_procedures_are_there_once_more_for_machine_numbers() -> None:
    def work(session: Session) -> None:
        shown = written(session, TYPED.replace("(write", "(newline) (write")).split()
        expected = [2.0, 1.0]
        for _ in range(3):
            expected = [x * 0.999 + 0.5 for x in expected]
        assert [float(x) for x in shown] == pytest.approx([expected[0], 0.999**3, expected[1]], rel=1e-15)
        _, analysis, text = inferred(session, TYPED)
        assert any("machine numbers" in f.cell.name for f in analysis.functions.values() if f.cell is not None)
        assert "double %a0d, i64 %a1p" in text

    in_session(work)


def test_errors_stand_where_they_did() -> None:
    def work(session: Session) -> None:
        found = outcome(session, "(define (f x) (if (< x 10) (f (+ x 1)) (car x)))\n(write (f 1))", "<wrong>")
        assert found.error is not None
        assert "car" in found.error
        assert "<wrong>:1:" in found.error
        typed = "(define (area (w : Float64)) : Float64 (* w w))\n(define (id x) x)\n(area (id 'a))"
        found = outcome(session, typed, "<typed>")
        assert found.error is not None
        assert "area takes a Float64 as w" in found.error

    in_session(work)


def test_continuations_bring_values_of_any_kind_back() -> None:
    program = """
        (define again #f)
        (define (count n) (+ n (call-with-current-continuation (lambda (k) (set! again k) 1))))
        (define found (count 10))
        (write found) (newline)
        (if (eqv? found 11) (again 2.5))
        (if (eqv? found 12.5) (again 100000000000000000000))
    """

    def work(session: Session) -> None:
        assert written(session, program).split() == ["11", "12.5", "100000000000000000010"]

    in_session(work)


def test_why_says_what_has_no_tags(tmp_path: Path) -> None:
    file = tmp_path / "kinds.esk"
    file.write_text(
        "(define (half x n) (if (= n 0) x (half (* x 0.5) (- n 1))))\n"
        "(define (same x) x)\n"
        "(display (half (car (map same '(3.0))) 10))\n(display (half 2.0 5))\n"
        "(define (pure x n) (if (= n 0) x (pure (* x 0.5) (- n 1))))\n(display (pure 2.0 5))\n"
    )
    command = [sys.executable, "-m", "eshkol", "run", "--why", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = (done.stdout + done.stderr).splitlines()
    assert any("x is a flonum, passed as a double" in line for line in lines)
    assert any("n is a fixnum from 0 to 5" in line for line in lines)
    assert any("x may be anything: it is given what car gives at 3:16" in line for line in lines)
    assert any("same may be called by anyone" in line for line in lines)


def test_counters_that_begin_far_away_may_get_beyond() -> None:
    """What is counted from below stays a fixnum for years; but not what begins near the end."""
    program = "(define (up n) (if (> n {0}) n (up (+ n 1)))) (write (up {1}))"

    def work(session: Session) -> None:
        for end in (2**62 - 2**32, 2**62, 2**63 - 1, 2**63 + 5):
            assert written(session, program.format(end, end - 10)) == str(end + 1)

    in_session(work)
