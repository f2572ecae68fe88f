"""Ctrl-C at any moment of `ek.eval`: it ends what is evaluated, once, and the session goes on.

A process evaluates texts one after the other, and a thread of it sends it SIGINT at many moments: while the text is
read, expanded, compiled by LLVM, while it runs, and when it is about to end. Each must become one KeyboardInterrupt.
"""

import subprocess
import sys

import pytest

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
    try:
        thread.start()
        watch = threading.Timer(PATIENCE, lambda: (print("lost", number, flush=True), os._exit(1)))
        watch.start()
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
