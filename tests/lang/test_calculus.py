"""The calculus of the language: its page is true, checkpoints save memory, gradients in a loop leave nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from eshkol.cli import main
from eshkol.errors import EshkolError
from eshkol.session import SessionThread

PAGE = Path(__file__).parents[2] / "docs" / "calculus.md"
STEPS = """
(define (step y i rate) (- y (* 1e-6 rate y)))
(define (kept rate) (let loop ((i 0) (y 1.0)) (if (= i 600000) y (loop (+ i 1) (step y i rate)))))
(define (again rate) (checkpoint-iterate step 1.0 600000 rate))
"""


def test_the_page_is_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "calculus.esk"
    path.write_text("\n".join(re.findall(r"```scheme\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)))
    assert main(["test", str(path)]) == 0, capsys.readouterr().out


def test_the_python_of_the_page_runs() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == text.rpartition("# ")[2].strip()


def test_checkpoints_save_memory() -> None:
    """A tape of a loop does not fit into a small heap; that of its square root does."""
    thread = SessionThread(heap_limit=48 << 20)
    try:
        thread.call(lambda session: session.evaluate(STEPS))
        with pytest.raises(EshkolError, match="memory"):
            thread.call(lambda session: session.evaluate("(derivative kept 1.0 :mode 'reverse)"))
        text = thread.call(lambda session: session.shown(session.evaluate("(derivative again 1.0 :mode 'reverse)")))
        # the derivative of (1 - h r)^n by r
        assert float(text) == pytest.approx(-600000 * 1e-6 * (1 - 1e-6) ** 599999, rel=1e-9)
    finally:
        thread.close()


def test_gradients_in_a_loop_leave_nothing_behind() -> None:
    text = """
    (define (f v) (let loop ((i 0) (s 0.0)) (if (= i 20) s (loop (+ i 1) (+ s (* (vector-ref v i) (vector-ref v i)))))))
    (define v (make-vector 20 0.5))
    (do ((i 0 (+ i 1))) ((= i 20000)) (gradient f v) (derivative sin 1.0) (taylor sin 1.0 5))
    """
    thread = SessionThread(heap_limit=24 << 20)
    try:
        thread.call(lambda session: session.evaluate(text))
    finally:
        thread.close()
