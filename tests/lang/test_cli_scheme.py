"""`eshkol run`, `-e` and `expand`: exit codes, what an error says and where it points, Ctrl-C, closed pipes."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import eshkol as ek
from eshkol.cli.main import main
from eshkol.runtime.conditions import named
from eshkol.support.interrupts import on_interrupt

MAIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the tests do not hear of Ctrl-C
import eshkol as ek
from eshkol.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def call(capfd, tmp_path, monkeypatch):
    """Runs a command line in this process; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ESHKOL_DEBUG", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def program(call, tmp_path):
    """Runs the text of a program."""

    def run(text: str, *arguments: str) -> tuple[int, str, str]:
        (tmp_path / "p.esk").write_text(text, encoding="utf-8")
        return call("run", "p.esk", *arguments)

    return run


def start(arguments: Sequence[str], folder: Path, **streams: int) -> subprocess.Popen[str]:
    """A process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=folder,
        text=True,
        stderr=subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if k != "ESHKOL_DEBUG"},
        **streams,
    )


# ---- what goes in and out --------------------------------------------------------------------------------------------


def test_a_program_gets_its_arguments_even_those_that_look_like_options(program):
    text = "(write (command-line))"
    assert program(text, "a", "--heap", "-e", "--", "-x") == (0, '("p.esk" "a" "--heap" "-e" "--" "-x")', "")


@pytest.mark.parametrize(
    ("text", "code"),
    [("(exit 7)", 7), ("(exit)", 0), ("(exit #f)", 1), ("(exit #t)", 0), ("(emergency-exit 9)", 9), ("", 0), ("1", 0)],
)
def test_exit_codes(program, text, code):
    assert program(f'(display "before"){text}') == (code, "before", "")


def test_expressions_print_their_values_in_order(call):
    assert call("-e", "(display 1)", "-e", "(values 2 'a)", "-e", '(begin (display 3) "x")', "-e", "(if #f #f)") == (
        0,
        '1\n2\na\n3\n"x"\n',
        "",
    )
    assert call("--heap", "1G", "-e", "(define x 20)", "-e", "(list x (command-line))", "run", "--help") == (
        0,
        '(20 ("-e" "run" "--help"))\n',
        "",
    )
    code, out, err = call("-e", "1", "-e", "(car 2)", "-e", "3")
    assert (code, out) == (1, "1\n")
    assert "<-e 2>:1:1" in err


def test_programs_from_the_standard_input(call, monkeypatch):
    def given(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    given(b"(write (cdr (command-line)))")
    assert call("run", "-", "-x") == (0, '("-x")', "")
    given(b'(display "\xc3\xa9")')
    assert call() == (0, "é", "")
    given(b"(car\n 5)")
    code, _, err = call("run", "-")
    assert code == 1
    assert "<stdin>:1:1" in err
    given(b"1\n\xff")
    assert call("run", "-")[::2] == (
        1,
        "error: <stdin> is not UTF-8: line 2 has the byte 0xff, which cannot stand there\n"
        "hint: save the file as UTF-8\n",
    )
    given(b"(define-syntax two (syntax-rules () ((_ x) (list x x))))(two 1)")
    assert call("expand", "-") == (0, "(list 1 1)\n", "")


def test_arguments_that_make_no_sense(call, monkeypatch):
    assert call("run", "--heap", "much", "p.esk")[::2] == (
        2,
        "eshkol run: argument --heap: 'much' is no size; write 512M, 2G or a number of bytes "
        "(see 'eshkol run --help')\n",
    )
    assert call("-e")[0] == 2
    monkeypatch.setenv("ESHKOL_HEAP", "0")
    assert call("-e", "1")[::2] == (2, "eshkol: ESHKOL_HEAP: '0' is no size; write 512M, 2G or a number of bytes\n")


def test_help_tells_of_the_heap(call):
    assert all("--heap SIZE" in call(*words, "--help")[1] for words in ([], ["run"], ["repl"]))
    assert "ESHKOL_HEAP" in call("--help")[1]


def test_the_heap_has_a_limit(program, monkeypatch):
    grow = "(let loop ((kept '())) (loop (cons (make-vector 1000 0) kept)))"
    monkeypatch.setenv("ESHKOL_HEAP", "20M")
    code, _, err = program(grow)
    assert code == 1
    assert err.startswith("error: out of memory")


# ---- errors ----------------------------------------------------------------------------------------------------------


def fails(result: tuple[int, str, str], *wanted: str) -> str:
    code, _, err = result
    assert code == 1
    assert "Traceback" not in err
    at = 0
    for part in wanted:
        assert part in err[at:], err
        at = err.index(part, at) + len(part)
    return err


def test_files_that_are_not_there(call, tmp_path):
    fails(call("run", "nothing.esk"), "error: cannot read nothing.esk: no such file or directory")
    fails(call("run", str(tmp_path)), "is a directory")


def test_syntax_errors_have_a_caret_and_the_chain_of_macros(program):
    fails(program("(display 1)\n(define x\n"), "p.esk:2:1", "(define x", "^", "hint:")
    fails(program('(display "a)'), "p.esk:1:10")
    fails(program("(let ((x)) x)"), "p.esk:1:7", "(let ((x)) x)", "      ^~~")
    chain = """(define-syntax inner (syntax-rules () ((_ x) (let ((x)) 1))))
(define-syntax outer (syntax-rules () ((_ x) (inner x))))
(outer 5)
"""
    fails(program(chain), "p.esk:1:", "expansion of `inner`", "p.esk:2:", "expansion of `outer`", "p.esk:3:1")


def test_the_caret_covers_the_form_and_the_trace_names_procedures(program):
    text = """(define (inner x)
  (+ 1 (car x)))
(define (middle x) (+ 2 (inner x)))
(define (outer x) (list (middle x)))
(display "out")
(outer 5)
"""
    err = fails(program(text), "error: car: expected a pair as argument 1, but got 5\n  --> p.esk:2:8\n")
    assert err.splitlines()[2:5] == ["    2 |   (+ 1 (car x)))", "               ^~~~~~~", "  in inner at p.esk:2:8"]
    assert "main" not in err
    again = fails(program(text))  # from the cache
    assert again == err


def test_frames_of_the_library_are_short(program):
    text = "(define (f x) (+ (vector-ref x 9) 1))\n(display\n (list (map f (list (vector 1)))))\n"
    err = fails(program(text), "vector-ref: expected an index from 0 to 0 as argument 2, but got 9", "p.esk:1:18")
    lines = err.splitlines()[4:]
    assert lines[0] == "  in f at p.esk:1:18"
    assert lines[1].startswith("  in (eshkol lists) map")
    assert lines[2:] == ["  in the program's top level at p.esk:3:8", "hint: indices count from 0, and the last is 0"]
    fails(program("(display (list (map car 5)))"), "p.esk:1:16", "                       ^~~~~~~~~~~\n")


def test_what_macros_wrote_is_shown_where_they_are_used(program):
    text = "(define-syntax first (syntax-rules () ((_ x) (vector-ref x 0))))\n(define (f x) (+ 1 (first x)))\n(f '())\n"
    fails(program(text), "vector-ref", "--> p.esk:2:20\n", "   ^~~~~~~~~")


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("(define (f x y) x)\n(display (f 1 2 3))", "f: (f x y) takes 2 arguments, but was given 3", "2:10"),
        ("(define (f x y) x)\n(display (apply f '(1)))", "f: (f x y) takes 2 arguments, but was given 1", "2:10"),
        ("(display (cons 1))", "cons: (cons a b) takes 2 arguments, but was given 1", "1:10"),
        ("(display ((lambda (x . y) x)))", "takes at least 1 argument, but was given 0", "1:10"),
        ("(display (list (5 5)))", "this is not a procedure and cannot be called: 5", "1:16"),
        ("(display (list (+ 1 'a)))", "+: expected a number as argument 2, but got a", "1:16"),
        ("(define (f) (+ 1 (vectr-ref 1)))\n(f)", "vectr-ref", "1:19"),
        ("(display (list (raise 'oops)))", "uncaught exception: oops", "1:16"),
        ("(define (f x) (+ 1 (raise (list x))))\n(display (f 1))", "uncaught exception: (1)", "1:20"),
        ("(guard (e ((string? e) 1)) (+ 1 (raise 'a)))", "uncaught exception: a", "1:33"),
        ('(display (list (error \'me "went wrong:" 1 "b")))', 'me: went wrong: 1 "b"', "1:16"),
        ("(define (f) (+ 1 (f)))\n(f)", "the stack is used up", "1:18"),
    ],
)
def test_errors_and_their_places(program, text, message, place):
    fails(program(text), message, f"--> p.esk:{place}\n")


def test_a_name_that_may_be_meant(program):
    assert "vector-ref" in fails(program("(define (f) (vectr-ref 1))")).split("hint:")[1]


@pytest.mark.parametrize(
    ("who", "said", "shown"),
    [
        ("save-checkpoint", "save_checkpoint: cannot write", "save-checkpoint: cannot write"),
        ("optimizer-adam", "Adam: lr must be positive", "optimizer-adam: lr must be positive"),
        ("multi-head-attention", "MultiheadAttention: 3 heads", "multi-head-attention: 3 heads"),
        ("load-csv", "x.csv: there are no rows", "load-csv: x.csv: there are no rows"),
        ("tensor-max", "x: a tensor is wanted", "tensor-max: x: a tensor is wanted"),
        ("fit", "fit", "fit: fit"),
    ],
)
def test_a_message_names_its_procedure_once(who, said, shown):
    assert named(who, said) == shown


def test_the_name_in_python_does_not_stand_behind_that_in_scheme(call):
    code, out, err = call("-e", '(save-checkpoint (linear 2 2) "there/is/none.eskpt")')
    assert (code, out) == (1, "")
    assert err.startswith("error: save-checkpoint: cannot write 'there/is/none.eskpt': no such file or directory")


# ---- Ctrl-C and closed pipes -----------------------------------------------------------------------------------------


def wait_for(process: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str]:
    """Exit code and stderr."""
    err = process.communicate(timeout=seconds)[1]
    return process.returncode, err


def test_ctrl_c_ends_a_program_and_says_where(tmp_path):
    (tmp_path / "p.esk").write_text('(display "ready\\n")(flush-output-port)\n(let loop ((i 0))\n  (loop (+ i 1)))\n')
    process = start(["run", "p.esk"], tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    code, err = wait_for(process)
    assert code == 130
    assert err.startswith("interrupted\n  --> p.esk:2:1\n")


def test_a_second_ctrl_c_ends_what_goes_on(tmp_path):
    text = """(define (forever) (forever))
(let again () (guard (e (#t (display "caught\\n") (flush-output-port) (again))) (display "ready\\n")
  (flush-output-port) (forever)))
"""
    (tmp_path / "p.esk").write_text(text)
    process = start(["run", "p.esk"], tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "caught\n"
    for _ in range(10):  # on a busy machine it may take more than a second to get here
        process.send_signal(signal.SIGINT)
        if not process.stdout.readline():
            break
    assert wait_for(process)[0] == -signal.SIGINT


def test_ctrl_c_ends_the_expander_and_the_reading_of_input(tmp_path):
    slow = """(begin-for-syntax (write-string "ready\\n") (flush-output-port))
(define-syntax grow (syntax-rules () ((_ x ...) (begin (write-string "") (grow x ... x ...)))))
(grow 1)
"""
    (tmp_path / "p.esk").write_text(slow)
    process = start(["run", "p.esk"], tmp_path, stdout=subprocess.PIPE)
    reading = start(["-e", "(begin (display 'ready) (newline) (flush-output-port) (read-char))"], tmp_path,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    for each in (process, reading):
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
        each.send_signal(signal.SIGINT)
    assert wait_for(process) == (130, "interrupted\n")
    code, err = wait_for(reading)
    assert code == 130
    assert err.startswith("interrupted\n")


def test_ctrl_c_at_any_time_ends_the_command_quietly(tmp_path):
    (tmp_path / "p.esk").write_text("(let loop ((i 0)) (loop (+ i 1)))")
    begin = "import sys, eshkol.cli.command as c; print('begun', flush=True); sys.exit(c.main())"
    for number in range(6):
        process = subprocess.Popen([sys.executable, "-c", begin, "run", "p.esk"], cwd=tmp_path, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(random.random() * 0.06 * number)
        process.send_signal(signal.SIGINT)
        code, err = wait_for(process)
        assert (code, err) == (-signal.SIGINT, "") or (code == 130 and err.startswith("interrupted\n"))


def test_ctrl_c_waits_for_the_end_of_an_import():
    """On the main thread, and in Python code that Scheme called."""
    ended: list[bool] = []
    names = {"time": time, "sys": sys, "ended": ended}
    go = threading.Event()
    text = "def importing(call):\n call(2, sys._getframe())\n time.sleep(0.05)\n ended.append(True)"
    exec(compile(text, "<frozen importlib._bootstrap>", "exec"), names)

    def work(call):
        names["importing"](call)
        for _ in range(1000):  # Python raises between calls
            time.sleep(0.01)

    def press():
        go.wait()
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            work(on_interrupt)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            ek.eval("(lambda (f x) (f x))")(work, lambda *_: go.set())
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == [True, True]


def test_ctrl_c_ends_a_call_that_does_not_hear_of_it(tmp_path):
    """LLVM may take long for a large program."""
    text = """import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
from eshkol.runtime import worker
worker.HARD_SECONDS = 0.2
def work():
    print("ready", flush=True)
    time.sleep(20)
worker.on_large_stack(work, stack_bytes=1 << 20)
"""
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)  # the main thread waits by now
    process.send_signal(signal.SIGINT)
    assert wait_for(process, 10) == (-signal.SIGINT, "")


def test_a_closed_pipe_ends_quietly(tmp_path):
    (tmp_path / "p.esk").write_text("(let loop ((i 0)) (write i) (newline) (loop (+ i 1)))")
    (tmp_path / "q.esk").write_text('(write-string "a\\n")(read-char)(write-string (make-string 9 #\\b))')
    (tmp_path / "python.esk").write_text('(py-call (py-import "builtins") \'print 1)')
    (tmp_path / "rich.esk").write_text("(py-call (py-call (py-import \"rich.console\") 'Console) 'print 1)")
    for name in ("p.esk", "q.esk", "python.esk", "rich.esk"):
        process = start(["run", name], tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        if name == "p.esk":
            assert process.stdout.readline() == "0\n"
        process.stdout.close()
        code, err = wait_for(process)
        assert (code, err) == (141, "")


def test_another_pipe_that_breaks_is_an_error(tmp_path):
    (tmp_path / "p.esk").write_text(
        '(define os (py-import "os")) (define ends (py-call os \'pipe))'
        "(py-call os 'close (vector-ref ends 0)) (py-call os 'write (vector-ref ends 1) #u8(1))"
    )
    process = start(["run", "p.esk"], tmp_path, stdout=subprocess.PIPE)
    code, err = wait_for(process)
    assert code == 1
    assert err.startswith("error: py-call: BrokenPipeError: [Errno 32] Broken pipe\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error(tmp_path):
    with open("/dev/full", "w") as full:
        process = start(["-e", "(display 1)"], tmp_path, stdout=full)
        assert wait_for(process) == (1, "error: No space left on device: 'standard output'\n")
