"""The calculus of the language: its page is true, checkpoints save memory, gradients in a loop leave nothing behind,
and random expressions have the derivatives that complex steps find in Python."""

from __future__ import annotations

import cmath
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.cli.main import main
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


# ---- random expressions ----------------------------------------------------------------------------------------------

UNARY = {
    "(sin {})": cmath.sin,
    "(cos {})": cmath.cos,
    "(atan {})": cmath.atan,
    "(- {})": lambda a: -a,
    "(square (sin {}))": lambda a: cmath.sin(a) ** 2,
    "(exp (sin {}))": lambda a: cmath.exp(cmath.sin(a)),
    "(log (+ 2 (cos {})))": lambda a: cmath.log(2 + cmath.cos(a)),
    "(sqrt (+ 2 (sin {})))": lambda a: cmath.sqrt(2 + cmath.sin(a)),
    "(expt (+ 2 (cos {})) 3/2)": lambda a: (2 + cmath.cos(a)) ** 1.5,
    "(apply + (map (lambda (c) (* c {})) '(1 2 3)))": lambda a: 6 * a,
}
BINARY = {
    "(+ {} {})": lambda a, b: a + b,
    "(- {} {})": lambda a, b: a - b,
    "(* {} {})": lambda a, b: a * b,
    "(/ {} (+ 2 (sin {})))": lambda a, b: a / (2 + cmath.sin(b)),
    "(let ((v (vector {} {}))) (* (vector-ref v 0) (cos (vector-ref v 1))))": lambda a, b: a * cmath.cos(b),
    "(let loop ((i 0) (s {})) (if (= i 3) s (loop (+ i 1) (sin (+ s {})))))": lambda a, b: _three_sines(a, b),
}
VARIABLES = ("x", "y", "z")


def _three_sines(start, more):
    for _ in range(3):
        start = cmath.sin(start + more)
    return start


def _unary(operand, form):
    (text, value), function = operand, UNARY[form]
    return form.format(text), lambda point: function(value(point))


def _binary(first, second, form):
    (text, value), (other_text, other), function = first, second, BINARY[form]
    return form.format(text, other_text), lambda point: function(value(point), other(point))


LEAVES = st.sampled_from([(name, lambda point, place=place: point[place]) for place, name in enumerate(VARIABLES)]) | (
    st.floats(-2, 2).map(lambda number: (repr(number), lambda point: complex(number)))
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(_unary, inner, st.sampled_from(sorted(UNARY)))
        | st.builds(_binary, inner, inner, st.sampled_from(sorted(BINARY)))
    ),
    max_leaves=6,
)


@examples(400, 25)
@given(EXPRESSIONS, st.tuples(*[st.floats(-1.5, 1.5)] * 3))
def test_random_expressions(expression, point):
    text, value = expression
    forward, backward, series, nested = ek.eval(
        f"""(let ((f (lambda (x y z) {text})) (p '({" ".join(map(repr, point))})))
              (list (apply gradient f (append p '(:mode forward)))
                    (apply gradient f (append p '(:mode reverse)))
                    (derivative-n (lambda (x) (f x (cadr p) (caddr p))) 2 (car p))
                    (caar (apply hessian f p))))"""
    )
    step = 1e-30
    wanted = [
        value([complex(x, step if place == moved else 0) for place, x in enumerate(point)]).imag / step
        for moved in range(3)
    ]
    assert forward == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert backward == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert series == pytest.approx(nested, rel=1e-8, abs=1e-8)
