"""Ways out of Scheme that are not returns: forks, Ctrl-C in a call that sleeps, and the end of the process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal, threading, time
import eshkol as ek

square = ek.eval("(lambda (x) (* x x))")
child = os.fork()
if child == 0:
    signal.alarm(30)
    ek.eval("(define y 3)")
    found = [square(4), ek.eval("(tensor->number (tensor-sum (tensor 1.0 2.0)))"), ek.eval("(+ y 1)")]
    os._exit(0 if found == [16, 3.0, 4] else 1)
assert os.waitpid(child, 0)[1] == 0, "the child"
assert square(5) == 25

def asleep():
    time.sleep(1.0)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            square(2)
        except ek.EshkolError as error:
            os._exit(0 if "forked while another thread was at work" in str(error) else 1)
        os._exit(2)
    print(os.waitpid(child, 0)[1])

call = ek.eval("(lambda (f n) (f n))")
forking = threading.Thread(target=asleep)
forking.start()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    call(time.sleep, 2.5)
except KeyboardInterrupt:
    assert time.monotonic() - start < 2.0, "it waited"
else:
    raise SystemExit("not interrupted")
forking.join()
assert ek.eval("(+ 1 2)") == 3  # when the call has ended

from eshkol.runtime.scheduler import default_scheduler
begun = threading.Event()
def body(begin, end):
    begun.set()
    time.sleep(3600)
threading.Thread(target=lambda: default_scheduler().parallel_for(body, 1), daemon=True).start()
begun.wait()
kept = ek.zeros((1 << 20,)) + 1.0  # memory that is lent out when the process ends
kept.tolist()
"""


def test_leaving_is_quick_and_silent() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
