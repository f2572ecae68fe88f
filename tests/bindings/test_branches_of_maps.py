"""tensor-map with branches: an element's derivative is that of the branch it takes; keywords that are said twice."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import EshkolError

# a procedure of one element, elements, and the derivatives there
MAPS = [
    ("(if (> u 0) (sqrt u) 0)", [4.0, -1.0, 0.0], [0.25, 0.0, 0.0]),
    ("(if (> u 0) (log u) (* 2 u))", [4.0, -1.0, 0.0], [0.25, 2.0, 2.0]),
    ("(if (= u 0) 1 (/ (sin u) u))", [2.0, 0.0], [(np.cos(2.0) * 2 - np.sin(2.0)) / 4, 0.0]),
    ("(cond ((< u 0) (* 2 u)) ((= u 0) (* 3 u)) ((< u 1) (log u)) (else (/ 1 (- u 0.5))))",
     [4.0, 0.0, -1.0, 0.5], [-1 / 12.25, 3.0, 2.0, 2.0]),
    ("(if (> u 0) (if (> u 1) (sqrt (- u 1)) (* 5 u)) (expt (- u) 1/2))",
     [5.0, 0.25, -4.0, 1.0], [0.25, 5.0, -0.25, 5.0]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "elements", "slopes"), MAPS, ids=[case[0] for case in MAPS])
def test_a_branch_that_is_not_taken_has_no_part_in_the_derivative(
    body: str, elements: list[float], slopes: list[float]
) -> None:
    point = f"(tensor {' '.join(map(repr, elements))} :dtype 'float64)"
    mapped = f"(lambda (t) (tensor-map (lambda (u) {body}) t))"
    backward, along, twice = ek.eval(
        f"(let* ((f {mapped}) (g (lambda (t) (tensor-sum (f t)))) (t {point}))"
        f" (list (gradient g t) (receive (value slope) (jvp f t (tensor-ones-like t)) slope)"
        f" (gradient (lambda (t) (tensor-sum (gradient g t))) t)))"
    )
    np.testing.assert_allclose(backward.numpy(), slopes, rtol=1e-12)
    np.testing.assert_allclose(along.numpy(), slopes, rtol=1e-12)
    assert np.isfinite(twice.numpy()).all()


def test_a_keyword_that_is_given_twice_is_an_error() -> None:
    with pytest.raises(EshkolError, match="given twice"):
        ek.eval("(tensor-sum (tensor '(1 2) '(3 4)) :axis 0 :axis 1)")
    with pytest.raises(EshkolError, match="given twice"):
        ek.eval("(derivative (lambda (x) (tensor-sum (* x (tensor '(1.0 2.0))) :axis 0 :axis 0)) 2.0)")
    assert ek.eval("(tensor-sum (tensor '(1 2) '(3 4)) :axis 0 :keepdims #t)").shape == (1, 2)
