"""Names of Scheme as Python writes them."""

from __future__ import annotations

import re

import pytest

from eshkol.bindings import spelling
from eshkol.bindings.spelling import Spelling, python_name


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("loss", "loss"),
        ("square-error", "square_error"),
        ("net/size", "net_size"),
        ("list->tensor", "list_to_tensor"),
        ("->exact", "to_exact"),
        ("empty?", "is_empty"),
        ("tensor-add!", "tensor_add_"),
        ("*rate*", "rate"),
        ("*", None),
        ("%hidden", "_hidden"),
        ("lambda", "lambda_"),
        ("λ", "λ"),
        ("string=?", None),
        ("<point>", None),
        ("1+", None),
        ("__init__", None),
    ],
)
def test_spelling(name: str, spelled: str | None) -> None:
    assert python_name(name) == spelled


def test_the_table_in_the_documentation_is_true() -> None:
    rows = re.findall(r"^\| (`.*?`) \| (`.*?`) \|", spelling.__doc__ or "", re.MULTILINE)
    assert len(rows) == 7
    for names, words in rows:
        for name, word in zip(re.findall("`(.*?)`", names), re.findall("`(.*?)`", words), strict=True):
            assert python_name(name) == word


def test_an_exact_name_comes_first_and_two_of_one_spelling_are_told() -> None:
    names = Spelling(["a_b", "a-b", "c->d", "c-to-d", "e-f"])
    assert names.find("a_b", "x") == "a_b"
    assert names.find("e_f", "x") == "e-f"
    with pytest.raises(AttributeError, match=r'x has c->d and c-to-d.*\["c->d"\] or \["c-to-d"\]'):
        names.find("c_to_d", "x")
    with pytest.raises(AttributeError, match="did you mean 'e_f'"):
        names.find("e_g", "x")
    assert names.attributes() == ["a_b", "e_f"]
