"""Derivatives across the border: Scheme's operators over Python's functions, Python's over Scheme's, and both at once.

Oracles are closed forms, `ek.grad` of the same function in Python, and differences in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.bindings import derivatives
from eshkol.bindings.values import Symbol
from eshkol.errors import EshkolError
from eshkol.tensors.scalars import Scalar, number_node


def wide(*numbers: float) -> Any:
    return ek.tensor(list(numbers), dtype=ek.float64)


def scheme(text: str) -> Any:
    return ek.eval(text)


# --- numbers that take the dtype of tensors ---------------------------------------------------------


def test_a_scalar_is_a_number_among_tensors() -> None:
    s, t = Scalar(number_node(0.1)), ek.tensor([1.0, 2.0])
    assert (s * t).dtype is (t * s).dtype is (t - s * 2).dtype is ek.float32
    assert isinstance(s * s, Scalar)
    assert (s * s).dtype is ek.float64
    assert (s * 2).item() == 0.2
    assert isinstance(2 * s, Scalar)
    assert ek.stack([s, s]).dtype is ek.float32  # a tensor made of numbers alone
    assert (s * ek.tensor([1, 2])).dtype is ek.float32
    assert (s * wide(1.0)).dtype is ek.float64
    assert (s > 0).dtype is ek.bool_


def test_numbers_go_back_as_numbers() -> None:
    made, inputs = derivatives.open_pass("gradient", [2.0, ek.tensor([1.0, 3.0])])
    value, grads = derivatives.gradient_of(made, (inputs[0] * inputs[1] * inputs[0]).sum())
    assert value.item() == 16.0
    assert grads[0] == 16.0
    assert type(grads[0]) is float
    assert grads[1].dtype is ek.float32
    assert grads[1].tolist() == [4.0, 4.0]


def test_floats_of_a_jitted_function_are_inputs() -> None:
    runs = []

    def step(w: Any, rate: Any) -> Any:
        runs.append(rate)
        return w - rate * w

    compiled = ek.jit(step, floats=True)
    assert compiled(ek.tensor([1.0]), 0.5).tolist() == [0.5]
    assert compiled(ek.tensor([1.0]), 0.25).tolist() == [0.75]
    assert compiled(ek.tensor([1.0]), 0.25).dtype is ek.float32
    assert len(runs) == 1


# --- either language's operators over the other's functions -----------------------------------------


def test_gradient_of_a_python_function() -> None:
    def f(x: Any) -> Any:
        return ek.sum(ek.sin(x) * x)

    gradient = scheme("gradient")
    x = wide(0.3, 0.7)
    np.testing.assert_allclose(gradient(f, x).numpy(), ek.grad(f)(x).numpy())
    at = 0.3
    assert gradient(lambda x: ek.sin(x) * x, at) == pytest.approx(np.cos(at) * at + np.sin(at), rel=1e-14)
    assert scheme("derivative")(lambda x: ek.sin(x) * x, at) == pytest.approx(np.cos(at) * at + np.sin(at), rel=1e-14)
    second = scheme("(lambda (f x) (derivative (derivative f) x))")(lambda x: ek.sin(x) * x, at)
    assert second == pytest.approx(2 * np.cos(at) - at * np.sin(at), rel=1e-14)


def test_a_python_function_that_leaves_the_derivative_behind_is_refused() -> None:
    import math

    with pytest.raises(EshkolError, match="lose the derivative"):
        scheme("derivative")(lambda x: math.sin(x), 0.5)


def test_grad_of_a_scheme_function() -> None:
    f = scheme("(lambda (w b) (tensor-sum (square (+ (* w 2) b))))")
    w = ek.tensor([1.0, 2.0])
    both = ek.grad(f, argnums=(0, 1))(w, ek.tensor(3.0))
    assert both[0].tolist() == [20.0, 28.0]
    assert both[1].item() == 24.0
    assert ek.grad(scheme("(lambda (x) (* x x x))"))(2.0).item() == 12.0
    assert ek.hessian(scheme("(lambda (v) (tensor-sum (* v v v)))"))(wide(1.0, 2.0)).tolist() == [[6, 0], [0, 12]]
    assert ek.jit(f)(w, ek.tensor(3.0)).item() == 74.0
    assert ek.vmap(scheme("(lambda (v) (tensor-sum (* v v)))"))(ek.ones((3, 2))).tolist() == [2.0, 2.0, 2.0]


def test_grad_around_scheme_derivatives() -> None:
    f = scheme("(lambda (v) (derivative (lambda (s) (tensor-sum (* s s v v))) 3.0))")
    assert ek.grad(f)(wide(1.0, 2.0)).tolist() == [12.0, 24.0]
    g = scheme("(lambda (v) (tensor-sum (gradient (lambda (u) (tensor-sum (* u u u))) v)))")
    assert ek.grad(g)(wide(1.0, 2.0)).tolist() == [6.0, 12.0]


def test_errors_inside_come_out_with_their_line() -> None:
    with pytest.raises(EshkolError) as caught:
        scheme("(gradient (lambda (v)\n  (tensor-sum (matmul v (tensor (1.0 2.0)))))\n  (tensor 1.0 2.0 3.0))")
    assert "do not fit" in str(caught.value)
    assert ":2:" in "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    with pytest.raises(EshkolError, match="jacobian"):
        scheme("(gradient (lambda (v) (* v v)) (tensor 1.0 2.0))")
    assert scheme("(tensor->list (gradient tensor-sum (tensor 1.0 2.0)))") == [1.0, 1.0]


def test_an_exception_of_python_passes_through() -> None:
    class Odd(Exception):
        pass

    def f(x: Any) -> Any:
        raise Odd("no")

    with pytest.raises(Odd):
        scheme("gradient")(f, ek.tensor([1.0]))


def test_the_fused_program_is_one_kernel() -> None:
    fused = scheme("(fuse-ops (list sin square (lambda (v) (+ v 1))))")
    x = ek.tensor([0.5, 1.0])
    np.testing.assert_allclose(fused(x).numpy(), np.sin(x.numpy()) ** 2 + 1, rtol=1e-6)
    assert len(fused.plan(x).steps) == 1


# --- mixed programs at random: the graph, differentiated numbers, differences ------------------------

BINARY = ("+", "*", "-")
UNARY = ("sin", "tanh", "square", "exp", "half", "bump", "total", "second")
PROGRAM = """
(define procedures
  (list (cons '+ +) (cons '* *) (cons '- -) (cons 'sin sin) (cons 'tanh tanh) (cons 'square square) (cons 'exp exp)
        (cons 'half (lambda (z) (* 0.5 z))) (cons 'bump (lambda (z) (/ z (+ 2 (square z)))))
        (cons 'total (lambda (z) (* 0.25 (tensor-sum (* z three)))))
        (cons 'second (lambda (z) (tensor-ref (* z three) 1)))))
(define three (tensor-ones '(3) :dtype 'float64))
(define (evaluate e s v w)
  (cond ((eq? e 's) s) ((eq? e 'v) v) ((eq? e 'w) w) ((number? e) e)
        (else (apply (cdr (assq (car e) procedures)) (map (lambda (e) (evaluate e s v w)) (cdr e))))))
(define (program e w)
  (lambda (s v) (tensor-mean (+ (* 0 v) (* 0 s) (tanh (evaluate e s v w))))))
;; inside another derivative, which changes nothing, tensors are differentiated on tapes
(define (on-tapes f s v)
  (let ((found #f))
    (derivative (lambda (z) (set! found (gradient f s v)) z) 1.0)
    found))
"""


def expressions() -> st.SearchStrategy[Any]:
    """Expressions of a number s, tensors v and w of three elements, and constants, as data of Scheme."""
    leaves = st.sampled_from([*map(Symbol, "svvw"), 0.5, 2])

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.tuples(st.sampled_from(BINARY).map(Symbol), inner, inner).map(list),
            st.tuples(st.sampled_from(UNARY).map(Symbol), inner).map(list),
        )

    return st.recursive(leaves, larger, max_leaves=8)


@pytest.fixture(scope="module")
def programs() -> Iterator[Any]:
    scheme(PROGRAM)
    with ek.use_backend("reference"):  # which compiles nothing: each program is run a few times only
        yield scheme("(list program gradient on-tapes)")


@examples(25, 12)
@given(body=expressions(), seed=st.integers(0, 3))
def test_random_programs(programs: Any, body: Any, seed: int) -> None:
    program, gradient, on_tapes = programs
    rng = np.random.default_rng(seed)
    s, v, w = float(rng.uniform(-1, 1)), ek.tensor(rng.uniform(-1, 1, 3)), ek.tensor(rng.uniform(-1, 1, 3))
    f = program(body, w)
    by_graph, by_tapes = gradient(f, s, v), on_tapes(f, s, v)
    assert by_graph[0] == pytest.approx(by_tapes[0], rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(by_graph[1].numpy(), by_tapes[1].numpy(), rtol=1e-9, atol=1e-12)
    at = v.numpy()

    def along(ds: float, dv: Any) -> float | None:
        """The slope in a direction, by differences; None where the function bends too much for them to tell."""

        def difference(h: float) -> float:
            above, below = (float(f(s + k * ds, ek.tensor(at + k * dv)).item()) for k in (h, -h))
            return (above - below) / (2 * h)

        far, near = difference(2e-5), difference(1e-5)
        return near if near == pytest.approx(far, rel=1e-6, abs=1e-8) else None

    slopes = [(by_graph[0], along(1.0, np.zeros(3)))]
    slopes += [(by_graph[1].numpy()[k], along(0.0, np.eye(3)[k])) for k in range(3)]
    for found, expected in slopes:
        if expected is not None:
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-8)
