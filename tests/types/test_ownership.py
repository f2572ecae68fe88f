"""Ownership: random programs against an interpreter of ownership, whole programs and their output, regions."""

from __future__ import annotations

from pathlib import Path

import drawn_owners
import pytest

from eshkol.bindings import install
from eshkol.cli.main import main
from eshkol.lang.source import Source

install()


def refused(programs: list[list[drawn_owners.Statement]]) -> set[int]:
    """The numbers of the programs in which the checker finds something wrong."""
    from eshkol.session import Session, on_session
    from eshkol.session.typing import checked

    found: set[int] = set()
    source = Source("owners.esk", drawn_owners.in_one(programs))

    def work(session: Session) -> None:
        for error in checked(session, source).errors:
            assert error.span is not None
            found.add(error.span.line - drawn_owners.first_line())

    on_session(work, ["owners"])
    return found


def judged(seeds: range, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    programs = [drawn_owners.drawn(seed) for seed in seeds]
    expected = {number for number, program in enumerate(programs) if drawn_owners.faulty(program)}
    found = refused(programs)
    for number in expected ^ found:
        what = "refused without need" if number in found else "accepted wrongly"
        raise AssertionError(f"{what}: {drawn_owners.text(programs[number])}")
    kept = [program for number, program in enumerate(programs) if number not in expected]
    assert len(seeds) // 20 < len(kept) < len(seeds)
    calls = "".join(
        f"(set! tosses '({tosses}))" + "".join(f"(p{number})" for number in range(len(kept)))
        for tosses in ("#t", "#f", "#t #f", "#f #t #t")
    )
    file = folder / "kept.esk"
    file.write_text(drawn_owners.in_one(kept) + calls + '(display "fine")\n', encoding="utf-8")
    assert main(["run", str(file)]) == 0, capfd.readouterr().err
    assert capfd.readouterr().out == "fine"


def test_random_programs_are_refused_where_some_way_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    judged(range(60), tmp_path, capfd)


@pytest.mark.slow
def test_many_random_programs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for first in range(1000, 5000, 200):
        judged(range(first, first + 200), tmp_path, capfd)


PROGRAMS = {
    "owners end with their scope, in reverse order": (
        """(define (resource name) (owned name (lambda (name) (display (list 'close name)))))
        (define (use) (let* ((a (resource 'a)) (b (resource 'b))) (display (borrow a)) 'done))
        (display (use))""",
        "a(close b)(close a)done",
    ),
    "when they are left by an error or a continuation, too": (
        """(define (resource name) (owned name (lambda (name) (display (list 'close name)))))
        (define (fails) (let ((a (resource 'a))) (error "oops" (borrow a))))
        (display (guard (e (#t 'caught)) (fails)))
        (display (call/cc (lambda (out) (let ((b (resource 'b))) (out (borrow b))))))""",
        "(close a)caught(close b)b",
    ),
    "a scope that ended cannot be entered again": (
        """(define again #f)
        (define (enter) (let ((a (owned 1))) (call/cc (lambda (k) (set! again k))) (borrow a) 'left))
        (display (guard (e (#t (error-object-message e))) (enter)))
        (let ((k again)) (set! again #f) (if k (k 1)))""",
        "leftthe scope of this owner was left, which ended it; a continuation cannot enter it again",
    ),
    "what is moved out lives on": (
        """(define (resource name) (owned name (lambda (name) (display (list 'close name)))))
        (define (made) (let ((a (resource 'a))) (display 'made) (move a)))
        (define b (made))
        (display (borrow b))
        (drop b)""",
        "madea(close a)",
    ),
    "a procedure that owns what it is given ends it": (
        """(define (resource name) (owned name (lambda (name) (display (list 'close name)))))
        (define (take (x : (Owned Symbol))) : Symbol (display 'taken) (borrow x) 'given)
        (display (take (resource 'a)))""",
        "taken(close a)given",
    ),
    "files are closed": (
        """(define name "owned.txt")
        (let ((file (owned (open-output-file name)))) (write-string "text" (borrow file)) 'done)
        (define port (open-input-file name))
        (let ((file (owned port))) (display (read-line (borrow file))) 'done)
        (display (input-port-open? port))""",
        "text#f",
    ),
    "shared references are counted, by variable": (
        """(define (resource name) (owned name (lambda (name) (display (list 'close name)))))
        (define (use)
          (let ((a (shared (resource 'a))))
            (let ((b a)) (display (shared-count b)) (drop a) (display (shared-count b)) (display (borrow b)) 'inner)
            'outer))
        (display (use))""",
        "21a(close a)outer",
    ),
    "weak references know when nothing is left": (
        """(define weak #f)
        (let ((a (shared (list 1 2)))) (set! weak (weak-ref a)) (display (if (weak-upgrade weak) 'there 'gone)) 'done)
        (display (if (weak-upgrade weak) 'there 'gone))""",
        "theregone",
    ),
    "a borrow of unknown type is looked at": (
        """(define (id x) x)
        (define (half (x : Float64)) : Float64 (/ x 2.0))
        (define o (id (owned "text")))
        (display (guard (e (#t (error-object-message e))) (half (borrow o))))
        (display (guard (e (#t (error-object-message e))) (let ((b : Float64 (borrow o))) b)))""",
        "half takes a Float64 as x, but is givenb is declared to be a Float64, but is",
    ),
    "borrows are counted where the checker knows nothing": (
        """(define (drop-it box) (guard (e (#t (display (error-object-message e)))) (drop (unbox box))))
        (define o (owned (vector 1)))
        (define b (box o))
        (define (read-it v) (drop-it b) (vector-ref v 0))
        (display (read-it (borrow o)))
        (drop-it b)""",
        "this is lent to someone who reads it1",
    ),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, output = PROGRAMS[name]
    (tmp_path / "a.esk").write_text(text, encoding="utf-8")
    assert main(["run", "a.esk"]) == 0, capfd.readouterr().err
    assert capfd.readouterr().out == output


REGION = """
(define (fill b) (bytevector-u8-set! b 0 1) b)
(define (used) (with-region r
  (define a (region-alloc 100))
  (define b (region-alloc 60))
  (fill a)
  (bytevector-u8-set! b 1 7)
  (list (region-used r) (bytevector-u8-ref a 0) (bytevector-u8-ref b 1))))
(define kept '())
(define (keeps) (with-region r (define a (region-alloc 10)) (set! kept (list a)) (region-used r)))
(define (captured) (with-region r (define a (region-alloc 10)) (set! kept (lambda () a)) (region-used r)))
(define (loops n) (let loop ((i 0) (sum 0))
  (if (= i n) sum
      (loop (+ i 1) (+ sum (with-region "turn" (let ((b (region-alloc 1000))) (bytevector-u8-set! b 5 1)
                                                  (bytevector-u8-ref b 5))))))))
(display (list (used) (keeps) kept (captured) (bytevector-length (kept)) (loops 100000)))
"""


def test_regions(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.esk").write_text(REGION, encoding="utf-8")
    assert main(["run", "--why", "a.esk"]) == 0
    out, err = capfd.readouterr()
    assert out == "(((2 . 160) 1 7) (0 . 0) (#u8(0 0 0 0 0 0 0 0 0 0)) (0 . 0) 10 100000)"
    told = [line for line in err.splitlines() if line.startswith("region-alloc")]
    assert [("memory of the region" in line, line.split(":")[1]) for line in told] == [
        (True, "4"), (True, "5"), (False, "10"), (False, "11"), (True, "14"),
    ]  # fmt: skip


SIZES = """\
(define (sum (b : Bytevector)) : Nat
  (let loop ((i 0) (s 0)) (if (< i (bytevector-length b)) (loop (+ i 1) (+ s (bytevector-u8-ref b i))) s)))
(define (filled (n : Nat)) : Nat
  (with-region sizes
    (let ((a (region-alloc n)) (b (region-alloc n)))
      (let ((before (+ (sum a) (sum b) (bytevector-length a) (bytevector-length b))))
        (let loop ((i 0)) (if (< i n) (begin (bytevector-u8-set! a i 255) (bytevector-u8-set! b i 1) (loop (+ i 1)))))
        (+ before (sum a) (sum b))))))
(define (right? (n : Nat)) : Boolean (= (filled n) (+ (* 2 n) (* 255 n) n)))
(display (every right? (append (iota 70) '(1000 4079 4080 4095 4096 4097 16383 16384 65536 200000) (iota 70))))
(define (tried n) (guard (e (#t 'refused)) (with-region r (bytevector-length (region-alloc n)))))
(display (map tried '(5 -1 0.5 a)))
"""


def test_memory_of_regions_of_every_size(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is all zeros, however often it was used before, and no two of them overlap."""
    file = tmp_path / "a.esk"
    file.write_text(SIZES, encoding="utf-8")
    assert main(["run", "--why", str(file)]) == 0
    out, err = capfd.readouterr()
    assert out == "#t(5 refused refused refused)"
    assert err.count("memory of the region") >= 3
    assert "left to the collector" not in err


@pytest.mark.slow
def test_ten_million_allocations_stay_flat(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.esk"
    turns = (
        "(define before (%regions-held))(loops 1000)(define (resident) (cdr (assq 'resident-bytes (heap-statistics))))"
    )
    file.write_text(
        "(import (eshkol) (only (eshkol primitives) %regions-held))"
        + REGION.rpartition("(display")[0]
        + turns
        + "(define start (resident))(loops 10000000)"
        + "(display (list (- (%regions-held) before) (< (- (resident) start) 30000000)))\n",
        encoding="utf-8",
    )
    assert main(["run", str(file)]) == 0, capfd.readouterr().err
    assert capfd.readouterr().out == "(0 #t)"
