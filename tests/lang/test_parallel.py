"""Parallel programs: random ones mean what they mean in order, under the collector's stress too; Ctrl-C, exit, Python,
executables. Transcripts of the single forms are in tests/scheme/parallel.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from parallel_programs import PARALLEL, SEQUENTIAL, programs

import eshkol as ek

COMMAND = (sys.executable, "-m", "eshkol")


def run(path: Path, text: str, **settings: str) -> subprocess.CompletedProcess[str]:
    path.write_text(text, encoding="utf-8")
    environment = os.environ | {"ESHKOL_THREADS": "4"} | settings
    return subprocess.run([*COMMAND, path], env=environment, capture_output=True, text=True, check=False, timeout=300)


def written(path: Path, text: str, **settings: str) -> str:
    done = run(path, text, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- random programs -------------------------------------------------------------------------------------------------


def compare(folder: Path, seeds: range, **settings: str) -> None:
    meant = written(folder / "sequential.esk", programs(SEQUENTIAL, seeds), ESHKOL_TIER="quick").splitlines()
    found = written(folder / "parallel.esk", programs(PARALLEL, seeds), **settings).splitlines()
    assert len(meant) == len(seeds)
    for seed, right, value in zip(seeds, meant, found, strict=True):
        assert value == right, f"seed {seed}"


def test_random_programs_mean_what_they_mean_in_order(tmp_path: Path) -> None:
    compare(tmp_path, range(12), ESHKOL_TIER="quick")


def test_random_programs_while_memory_is_collected(tmp_path: Path) -> None:
    compare(tmp_path, range(100, 108), ESHKOL_TIER="quick", ESHKOL_GC_STRESS="29")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_many_random_programs(tmp_path: Path, first: int) -> None:
    settings = [{"ESHKOL_THREADS": "2"}, {"ESHKOL_THREADS": "16"}, {"ESHKOL_GC_CHECK": "1"}, {"ESHKOL_GC_STRESS": "11"}]
    compare(tmp_path, range(first, first + 50), ESHKOL_TIER="quick", **settings[first // 50 % 4])


@pytest.mark.parametrize("threads", ["1", "2", "13"])
def test_the_number_of_threads_changes_nothing(tmp_path: Path, threads: str) -> None:
    text = """
    (define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
    (write (list (thread-count) (apply + (parallel-map fib (make-list 60 15)))
                 (parallel-reduce + 0.0 (map (lambda (i) (/ 1.0 (+ i 1))) (iota 3000)))
                 (apply + (map touch (map (lambda (i) (future (fib 10))) (iota 100))))))"""
    found = written(tmp_path / "threads.esk", text, ESHKOL_THREADS=threads)
    assert found == f"({threads} 36600 8.583749889959186 5500)"


# ---- leaving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "waiting",
    [
        "(parallel-for (i 0 10) (if (> i 3) (let loop () (loop))))",
        "(touch (future (let loop () (loop))))",
        "(thread-join! (thread-start! (make-thread (lambda () (let loop () (loop))))))",
        "(parallel-map (lambda (i) (parallel-map (lambda (j) (let loop () (loop))) (list i i))) (iota 6))",
        "(channel-receive! (let ((c (make-channel))) (future (let loop () (loop))) c))",
    ],
)
def test_an_interrupt_ends_what_all_threads_do(tmp_path: Path, waiting: str) -> None:
    path = tmp_path / "endless.esk"
    path.write_text(f'(display "begun") (newline) (flush-output-port)\n{waiting}\n(display "never")', encoding="utf-8")
    environment = os.environ | {"ESHKOL_THREADS": "3"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*COMMAND, path], env=environment, text=True, **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "never" not in out
    assert "interrupted" in err


def test_a_form_can_be_used_again_after_an_interrupt() -> None:
    text = """
    (define (slowly n) (let loop ((i 0)) (if (< i 30000) (loop (+ i 1)) n)))
    (guard (e (#t #f)) (parallel-map (lambda (x) (if (= x 9) (raise 'out) (slowly x))) (iota 100)))
    (apply + (parallel-map slowly (iota 100)))"""
    assert ek.eval(text) == 4950


def test_exit_on_another_thread_ends_the_program(tmp_path: Path) -> None:
    text = "(thread-start! (make-thread (lambda () (thread-sleep! 0.05) (exit 7))))\n(let loop () (loop))"
    assert run(tmp_path / "exit.esk", text).returncode == 7


def test_the_program_ends_with_its_first_thread(tmp_path: Path) -> None:
    text = "(define t (thread-start! (make-thread (lambda () (let loop () (loop))))))\n(display 1)"
    assert written(tmp_path / "end.esk", text) == "1"


def test_a_wait_that_nobody_can_end_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path / "wait.esk", "(channel-receive! (make-channel))")
    assert done.returncode == 1
    assert "this would wait for ever" in done.stderr


def test_an_error_shows_where_it_was_raised(tmp_path: Path) -> None:
    text = """(define (third v) (+ 1 (vector-ref v 2)))
(define (slowly n) (let loop ((i 0)) (if (< i 30000) (loop (+ i 1)) n)))
(parallel-map (lambda (i) (slowly i) (if (= i 70) (third (vector 1 2)) i)) (iota 100))"""
    done = run(tmp_path / "error.esk", text)
    assert done.returncode == 1
    assert "error: vector-ref: expected an index from 0 to 1" in done.stderr
    assert "(define (third v) (+ 1 (vector-ref v 2)))" in done.stderr


def test_futures_are_cancelled_from_their_first_moment(tmp_path: Path) -> None:
    """Those that began just then, too; else each would keep a thread of the pool for ever."""
    text = """
    (define (endless) (let loop () (loop)))
    (define (cancelled n) (let ((f (make-future endless))) (thread-yield!) (future-cancel! f) n))
    (let loop ((i 0)) (if (< i 400) (begin (cancelled i) (loop (+ i 1)))))
    (write (touch (future (apply + (iota 10)))))"""
    assert written(tmp_path / "cancelled.esk", text) == "45"


def test_a_future_that_nobody_refers_to_runs_on(tmp_path: Path) -> None:
    """Collections while it runs do not take it away."""
    text = """
    (define ended (make-atomic-fxbox 0))
    (define (work) (let loop ((i 0)) (if (< i 2000) (begin (make-vector 500 i) (loop (+ i 1))))) (note))
    (define (note) (atomic-fxbox+/fetch! ended 1))
    (define (begin-some) (let loop ((i 0)) (if (< i 40) (begin (make-future work) (loop (+ i 1))))))
    (begin-some)
    (let wait () (if (< (atomic-fxbox-ref ended) 40) (begin (collect-garbage) (make-vector 20000 0) (wait))))
    (write (atomic-fxbox-ref ended))"""
    assert written(tmp_path / "dropped.esk", text) == "40"


def test_threads_that_end_leave_no_memory_twice(tmp_path: Path) -> None:
    """Blocks in which they looked for memory are found again by collections, once."""
    text = """
    (define (small i)
      (let loop ((n 0) (made '())) (if (< n 300) (loop (+ n 1) (cons (vector i n) made)) (length made))))
    (define (start i) (thread-start! (make-thread (lambda () (small i)))))
    (define (some) (apply + (map thread-join! (map start (iota 12)))))
    (write (let loop ((i 0) (sum 0)) (if (< i 40) (begin (collect-garbage) (loop (+ i 1) (+ sum (some)))) sum)))"""
    assert written(tmp_path / "threads.esk", text, ESHKOL_GC_CHECK="1") == "144000"


# ---- derivatives -----------------------------------------------------------------------------------------------------

DERIVATIVES = """
(import (eshkol) (only (eshkol primitives) %fast-statistics))
(define (f x) (let loop ((i 0) (s 0.0)) (if (= i 50) s (loop (+ i 1) (+ s (* x (sin (* x (exact->inexact i)))))))))
(define (g x) (gradient f x))
(define points (map (lambda (i) (/ i 7.0)) (iota 300)))
(define (runs) (car (%fast-statistics)))
"""


def test_compiled_derivatives_run_on_any_thread(tmp_path: Path) -> None:
    text = (
        DERIVATIVES
        + """
    (define (elsewhere thunk) (thread-join! (thread-start! (make-thread thunk))))
    (define found (elsewhere (lambda () (map g points))))     ; which also asks for the program
    (define after (runs))
    (write (list (equal? found (map g points)) (= after 300) (= (runs) 600)
                 (equal? found (parallel-map g points)) (= (runs) 900)))"""
    )
    assert written(tmp_path / "fast.esk", text) == "(#t #t #t #t #t)"


@pytest.mark.slow
def test_what_threads_run_is_not_given_back(tmp_path: Path) -> None:
    """More programs than are kept, while other threads run earlier ones."""
    text = (
        DERIVATIVES
        + """
    (define expected (map g points))
    (define right (make-atomic-fxbox 0))
    (define stop (make-atomic-fxbox 0))
    (define (check)
      (if (= 0 (atomic-fxbox-ref stop))
          (begin
            (if (equal? expected (map g points)) (atomic-fxbox+/fetch! right 1) (error "another derivative"))
            (check))))
    (define threads (map (lambda (i) (thread-start! (make-thread check))) (iota 2)))
    (define (another i) (eval `(lambda (x) (let loop ((k 0) (s x)) (if (= k 2) s (loop (+ k 1) (* s x ,i)))))
                              (environment '(scheme base))))
    (for-each (lambda (i) (if (not (= (derivative (another i) 1.0) (* 3.0 i i))) (error "wrong" i))) (iota 215 1))
    (atomic-fxbox-set! stop 1)
    (for-each thread-join! threads)
    (write (> (atomic-fxbox-ref right) 0))"""
    )
    assert written(tmp_path / "many.esk", text) == "#t"


# ---- large -----------------------------------------------------------------------------------------------------------


def test_many_futures_and_threads(tmp_path: Path) -> None:
    text = """
    (define (sum fs) (let loop ((fs fs) (s 0)) (if (pair? fs) (loop (cdr fs) (+ s (touch (car fs)))) s)))
    (write (sum (let loop ((i 0) (fs '())) (if (< i 100000) (loop (+ i 1) (cons (future (* 2 i)) fs)) fs))))
    (newline)
    (write (apply + (map thread-join! (map (lambda (i) (thread-start! (make-thread (lambda () i)))) (iota 300)))))"""
    assert written(tmp_path / "many.esk", text) == "9999900000\n44850"


@pytest.mark.slow
def test_a_million_futures(tmp_path: Path) -> None:
    text = """
    (define (sum fs) (let loop ((fs fs) (s 0)) (if (pair? fs) (loop (cdr fs) (+ s (touch (car fs)))) s)))
    (write (sum (let loop ((i 0) (fs '())) (if (< i 1000000) (loop (+ i 1) (cons (future (* 2 i)) fs)) fs))))"""
    assert written(tmp_path / "million.esk", text) == "999999000000"


def test_the_program_of_the_plan(tmp_path: Path) -> None:
    """A map over a million numbers, in order and parallel, timed, as the language's plan shows it."""
    text = """
    (require stdlib)
    (define data (range 1 1000001))
    (define (square x) (* x x))
    (define (timed name mapped)
      (let* ((start (current-milliseconds)) (result (mapped square data)))
        (display name) (display (>= (- (current-milliseconds) start) 0)) (newline)
        result))
    (define first (timed "Sequential map... " map))
    (define second (timed "Parallel map... " parallel-map))
    (display (equal? first second))"""
    assert written(tmp_path / "plan.esk", text).endswith("Parallel map... #t\n#t")


# ---- Python ----------------------------------------------------------------------------------------------------------


def test_what_threads_call_of_python_runs_one_after_the_other() -> None:
    seen: list[int] = []

    def note(number: int) -> int:
        seen.append(number)
        return number * number

    text = """(lambda (note)
                (parallel-map (lambda (x) (let loop ((i 0)) (if (< i 30000) (loop (+ i 1)) (note x)))) (iota 60)))"""
    assert ek.eval(text)(note) == [number * number for number in range(60)]
    assert sorted(seen) == list(range(60))


def test_errors_of_python_and_scheme_come_out() -> None:
    def bad(number: int) -> int:
        raise KeyError(number)

    with pytest.raises(KeyError):
        ek.parallel_map(bad, [1, 2, 3])
    with pytest.raises(ek.EshkolError, match="vector-ref"):
        ek.parallel_map(ek.eval("(lambda (x) (vector-ref (vector 1 2) x))"), [0, 1, 2])


def test_parallel_map_from_python() -> None:
    assert ek.parallel_map(ek.eval("(lambda (x) (* x x))"), range(5)) == [0, 1, 4, 9, 16]
    assert ek.parallel_map(lambda x, y: x + y, [1, 2, 3], [10, 20, 30]) == [11, 22, 33]
    assert ek.parallel_map(str, []) == []


def test_a_thread_goes_on_while_the_first_one_is_in_python() -> None:
    start = "(define counter (make-atomic-fxbox 0)) (define ended #f)"
    ek.eval(start)
    ek.eval("""(define t (thread-start! (make-thread (lambda ()
                 (let loop () (atomic-fxbox+/fetch! counter 1) (vector 1 2) (if (not ended) (loop)))))))""")
    before = ek.eval("(atomic-fxbox-ref counter)")
    time.sleep(0.2)
    assert ek.eval("(atomic-fxbox-ref counter)") > before
    assert ek.eval("(begin (set! ended #t) (thread-join! t) 5)") == 5


def test_a_forked_process_goes_on_with_one_thread(tmp_path: Path) -> None:
    program = tmp_path / "forks.py"
    program.write_text(
        """
import os, eshkol as ek
text = "(define (work n) (length (map (lambda (x) (* 1.5 x)) (iota 3000))))"
ek.eval(text + "(apply + (parallel-map work (iota 200)))")
child = os.fork()
found = ek.eval("(apply + (parallel-map work (iota 400)))")
if child:
    assert os.waitpid(child, 0)[1] == 0
os._exit(found != 1200000)
""",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


# ---- executables -----------------------------------------------------------------------------------------------------


def test_an_executable_has_threads(tmp_path: Path) -> None:
    source, program = tmp_path / "built.esk", tmp_path / "built"
    source.write_text(
        """
        (define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
        (define ch (make-channel 3))
        (define (send) (for-each (lambda (i) (channel-send! ch i)) (iota 50)) 'sent)
        (define t (thread-start! (make-thread send)))
        (define (take n sum) (if (= n 0) sum (take (- n 1) (+ sum (channel-receive! ch)))))
        (write (list (apply + (parallel-map fib (make-list 40 16))) (touch (future (fib 10))) (take 50 0)
                     (thread-join! t)
                     (guard (e (#t (error-object-message e))) (parallel-map car (list '(1) 2)))))""",
        encoding="utf-8",
    )
    built = subprocess.run([*COMMAND, "build", source, "-o", program], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == '(39480 55 1225 sent "expected a pair as argument 1, but got")', done.stderr
