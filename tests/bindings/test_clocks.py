"""Clocks of Scheme have what waits computed first, and nothing that is gone or not known."""

from __future__ import annotations

import pytest

import eshkol as ek
from eshkol.bindings import pending


@pytest.mark.parametrize("clock", ["current-jiffy", "current-milliseconds", "current-second"])
def test_a_clock_has_what_waits_computed(clock: str) -> None:
    product = "(tensor-matmul (ones 8 8) (random-uniform 0.0 1.0 :shape '(8 8)))"
    assert ek.eval(f"(let ((p {product})) p)")._node.data is None
    assert ek.eval(f"(let ((p {product})) ({clock}) p)")._node.data is not None


def test_what_is_traced_or_gone_is_left_alone() -> None:
    assert ek.eval("((jit-compile (lambda (x) (let ((y (* x x))) (current-jiffy) y))) (tensor 3.0))").tolist() == [9.0]
    assert ek.eval(
        "(gradient (lambda (x) (let ((y (* x x))) (current-jiffy) (tensor-sum y))) (tensor 3.0))"
    ).tolist() == [6.0]
    ek.eval("(begin (tensor-exp (ones 3)) #t)")
    pending.settle()
    assert not pending._last
