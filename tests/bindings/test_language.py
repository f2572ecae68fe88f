"""`ek.lang`: the names of the language in Python, in the package that is its front."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eshkol as ek
from eshkol.bindings import values
from eshkol.runtime.signatures import signature


def test_procedures_of_the_language() -> None:
    product = ek.eval("(lambda (v) (* (vector-ref v 0) (vector-ref v 0) (vector-ref v 1)))")
    assert ek.lang.gradient(product, ek.lang.Vector([2.0, 3.0])) == [12.0, 4.0]
    assert ek.lang["string-append"]("a", "b") == "ab"
    assert ek.lang.list_copy([1, 2]) == [1, 2]
    assert ek.lang.is_even(4) is True
    assert ek.lang["+"](1, 2, 3) == 6
    assert ek.lang.fold(lambda x, sum_: x + sum_, 0, [1, 2, 3]) == 6


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("car", "(pair, /)"),
        ("substring", "(string, start, end=None, /)"),
        ("string-append", "(*string)"),
        ("(lambda (x . more) x)", "(x, /, *more)"),
        ("(lambda () 1)", "()"),
        ("(lambda (a-b if) 1)", "(a_b, if_, /)"),
        ("map", "(*args, **keywords)"),
        ("(lambda (a->b a-->b) 1)", "(a__b, a___b, /)"),
        ("(lambda (a-b a_b) 1)", "(*args, **keywords)"),
    ],
)
def test_signatures(text: str, shown: str) -> None:
    assert str(inspect.signature(ek.eval(text))) == shown


def test_keywords_in_signatures() -> None:
    assert str(signature("(tensor-sum x [:axis] [:keep-dims])")) == "(x, /, *, axis=None, keep_dims=None)"
    assert str(signature("")) == "(*args, **keywords)"


def test_a_definition_at_the_prompt_changes_nothing_there() -> None:
    ek.eval("(define (list-tail-of-mine x) x) (define reverse-of-mine reverse)")
    with pytest.raises(AttributeError, match="the language has no 'list_tail_of_mine'"):
        _ = ek.lang.list_tail_of_mine


@pytest.mark.parametrize("name", values.__all__)
def test_the_classes_of_values(name: str) -> None:
    assert getattr(ek.lang, name) is getattr(values, name)


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="the language has no 'gradien'; did you mean 'gradient'"):
        _ = ek.lang.gradien
    with pytest.raises(KeyError, match="did you mean string-append"):
        ek.lang["string-appendd"]
    with pytest.raises(AttributeError, match="if is a form"):
        ek.lang["if"]


def test_dir_completes() -> None:
    assert {"gradient", "string_append", "Symbol", "hash_table_ref"} <= set(dir(ek.lang))
    assert "lang" in dir(ek)


def test_modules_of_the_package_are_still_there() -> None:
    """Whichever comes first: the package's modules, or the names of the language."""
    script = """
import eshkol as ek
assert ek.lang.is_odd(3)
from eshkol.lang import features, pretty
assert features.features()
assert "r7rs" in ek.lang["features"]()
import eshkol.lang.unexpand
assert eshkol.lang.unexpand.unit_data
"""
    env = {**os.environ, "PYTHONPATH": str(Path(ek.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], env=env, check=True)
