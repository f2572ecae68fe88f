"""Errors of Python's functions as Scheme is told them."""

from __future__ import annotations

import pytest

import eshkol as ek
from eshkol.bindings.wording import translated, without_rows
from eshkol.errors import EshkolError


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("cast first: x.astype(ek.float32)", "cast first: (tensor-cast x 'float32)"),
        ("give dtype=ek.float64", "give :dtype 'float64"),
        ("one-hot: target.argmax(1)", "one-hot: (argmax target 1)"),
        ("log_target=True takes logarithms", ":log-target #t takes logarithms"),
        ("scores go to binary_cross_entropy_with_logits", "scores go to tensor-binary-cross-entropy-with-logits"),
        ("branch with ek.where or ek.cond", "branch with tensor-where or cond"),
        ("replace zeros with where()", "replace zeros with tensor-where"),
        ("ek.tensor(x, dtype=ek.float64)", "(tensor x :dtype 'float64)"),
        ("call model.eval() first", "call (model-eval! model) first"),
        ("cannot read /a/my_file.csv", "cannot read /a/my_file.csv"),  # what is the user's stays
        ("shapes (2, 3) and [2, 3]", "shapes (2, 3) and [2, 3]"),
    ],
)
def test_names_calls_and_keywords_are_scheme_s(text: str, scheme: str) -> None:
    assert translated(text) == scheme


def test_rows_are_not_named() -> None:
    assert without_rows("take(float32[2], int64[1]): out of range") == "out of range"
    assert without_rows("mine(x): out of range") == "mine(x): out of range"


@pytest.mark.parametrize(
    "program",
    [
        "(tensor-solve (tensor (1.0 1.0) (1.0 1.0)) (tensor 1.0 2.0))",
        "(binary-cross-entropy (tensor 2.0) (tensor 1.0))",
        "(expt (tensor 1 2) (tensor -1 2))",
        "(tensor-cholesky (tensor (1 0) (0 1) :dtype 'bfloat16))",
        "(cross-entropy (tensor (1.0 2.0)) (tensor (1 0)))",
    ],
)
def test_hints_have_no_python_in_them(program: str) -> None:
    with pytest.raises(EshkolError) as caught:
        ek.eval(program)
    told = f"{caught.value.message} {caught.value.hint}"
    assert "ek." not in told
    assert "_" not in told
    assert ".astype" not in told
