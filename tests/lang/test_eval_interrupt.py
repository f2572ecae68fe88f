"""Ctrl-C at any moment of `ek.eval`: it ends what is evaluated, once, and the session goes on.

A process evaluates texts one after the other, and a thread of it sends it SIGINT at many moments: while the text is
read, expanded, compiled by LLVM, while it runs, and when it is about to end. Each must become one KeyboardInterrupt.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import eshkol as ek
from eshkol.errors import EshkolError

PRESSED = """
import gc, os, signal, sys, threading, time
import eshkol as ek

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
PATIENCE = 5.0
text, moments, longest = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
ek.eval(text.replace("NUMBER", "0").replace("(loop)", "0"))  # the compiler is there
begun = time.perf_counter()
ek.eval(text.replace("NUMBER", "1").replace("(loop)", "0"))
longest = min(longest, 1.2 * (time.perf_counter() - begun))

for number in range(2, moments + 2):
    pressed = threading.Event()

    def press(delay=longest * (number - 2) / moments):
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)
        pressed.set()

    thread = threading.Thread(target=press)
    watch = threading.Timer(PATIENCE, lambda: (print("lost", number, flush=True), os._exit(1)))
    watch.start()
    try:
        thread.start()  # from here on it may come
        ek.eval(text.replace("NUMBER", str(number)))
        while True:  # the text was faster: it comes here
            time.sleep(0.01)
    except KeyboardInterrupt:
        pass
    thread.join()
    watch.cancel()
    gc.collect()  # what the frames of the interrupted compiler held
    assert ek.eval(f"(+ {number} 1)") == number + 1, number
print("heard", moments)
"""
FORM = """(define (f{0} x y)
  (let again ((i 0) (s '()))
    (cond ((= i NUMBER) (vector s x y {0}))
          ((odd? i) (again (+ i 1) (cons (* x i) s)))
          (else (again (+ i 2) (list s y (string-append "a" (number->string i))))))))
"""
LONG = "".join(FORM.format(k) for k in range(6)) + "(let loop () (loop))"
SHORT = "(define-syntax m (syntax-rules () ((_ x) (list x NUMBER)))) (m 1)"


@pytest.mark.parametrize(
    ("text", "moments"), [(LONG, 12), pytest.param(SHORT, 40, marks=pytest.mark.slow)], ids=["long", "short"]
)
def test_ctrl_c_is_heard_at_every_moment(text: str, moments: int) -> None:
    command = [sys.executable, "-c", PRESSED, text, str(moments), "0.4"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout, found.stderr) == (0, f"heard {moments}\n", "")


@pytest.mark.parametrize("presses", [24, pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_is_lost_by_ctrl_c_at_random_moments(presses: int, tmp_path: Path) -> None:
    """Of reading, expanding, compiling, importing, running and ending; what is defined before stays (pressing.py)."""
    script = Path(__file__).with_name("pressing.py")
    command = [sys.executable, str(script), str(presses), str(presses), str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert (found.returncode, found.stderr) == (0, ""), found.stdout
    assert sum(map(len, json.loads(found.stdout).values())) == presses


@pytest.mark.parametrize(
    "text",
    [
        "(define (car x) (if))",
        '(define car (error "no value"))',
        "(begin (define-syntax when (syntax-rules ())) (define car (if)))",
        "(define-record-type car (when a) #f (b c))",
        "(eval '(define (car x) (if)) (interaction-environment))",
    ],
)
def test_a_definition_that_fails_leaves_its_names_as_they_were(text: str) -> None:
    with pytest.raises(EshkolError):
        ek.eval(text)
    assert ek.eval("(when #t (car '(1 2)))") == 1


HANDLED = """
import os, signal, sys, threading, time
import eshkol as ek

def press(): time.sleep(0.2); os.kill(os.getpid(), signal.SIGINT)
loop = ek.eval("(lambda (n) (let loop ((i 0)) (if (< i n) (loop (+ i 1)) i)))")
heard = []
def pressed(handler, work):
    signal.signal(signal.SIGINT, handler)
    thread = threading.Thread(target=press)
    thread.start()
    try: print(work())
    except BaseException as error: print(repr(error))
    thread.join()
def slowly():
    until, result = time.monotonic() + 0.5, 0
    while time.monotonic() < until: result = loop(10**6)
    return result
pressed(lambda *_: heard.append(1), slowly)
pressed(signal.SIG_IGN, slowly)
print(heard)
pressed(lambda *_: sys.exit(3), lambda: loop(10**10))
os._exit(0)
"""


def test_a_handler_of_the_users_own_is_called() -> None:
    found = subprocess.run([sys.executable, "-c", HANDLED], capture_output=True, text=True, timeout=120)
    assert (found.stdout, found.stderr) == ("1000000\n1000000\n[1]\nSystemExit(3)\n", "")
