"""Modules that hold others: lists, dicts and sequences, their indexing, and that their parameters are found."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.errors import EshkolError, IndexOutOfRange, TensorError


def parts(*sizes: int) -> list[nn.Linear]:
    return [nn.Linear(n, n, bias=False) for n in sizes]


def test_a_sequence_is_indexed_as_a_list() -> None:
    layers = [nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.GELU()]
    model = nn.Sequential(*layers)
    assert len(model) == 4
    assert list(model) == layers
    assert model[-1] is layers[3]
    for cut in (slice(None), slice(1, 3), slice(None, None, -1), slice(-2, None), slice(5, 9)):
        assert list(model[cut]) == layers[cut]
    model.append(nn.SiLU())
    model.insert(0, nn.Mish())
    assert model.pop(1) is layers[0]
    assert [type(m).__name__ for m in model] == ["Mish", "Tanh", "Sigmoid", "GELU", "SiLU"]
    assert list(dict(model.named_children())) == ["0", "1", "2", "3", "4"]
    del model[1:3]
    assert [type(m).__name__ for m in model] == ["Mish", "GELU", "SiLU"]
    with pytest.raises(IndexOutOfRange, match="has 3 modules, and no 3"):
        model[3]


def test_a_sequence_computes_one_behind_the_other() -> None:
    x = np.array([[1.0, -2.0]], np.float32)
    model = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Lambda(lambda v: v * 3)))
    np.testing.assert_array_equal(model(ek.tensor(x)).numpy(), [[3.0, 0.0]])
    assert model.first is model[0]
    assert list(dict(model[1:].named_children())) == ["second"]
    np.testing.assert_array_equal(nn.Sequential()(ek.tensor(x)).numpy(), x)


def test_parameters_of_parts_are_found_once() -> None:
    one, two, three = parts(2, 3, 2)
    model = nn.ModuleDict({"list": nn.ModuleList([one, two]), "again": one, "other": three})
    assert [name for name, _ in model.named_parameters()] == ["list.0.weight", "list.1.weight", "other.weight"]
    assert "again" in model
    assert model["list"][1] is two
    assert model.pop("other") is three
    assert list(model.keys()) == ["list", "again"]
    with pytest.raises(KeyError):
        model["other"]


def test_parameters_in_lists_and_dicts() -> None:
    listed = nn.ParameterList([ek.ones((2,)), nn.Parameter(ek.zeros((3,)))])
    assert [name for name, p in listed.named_parameters() if p.requires_grad] == ["0", "1"]
    listed.append(ek.ones(()))
    listed[0] = ek.zeros((5,))
    assert [p.shape for p in listed] == [(5,), (3,), ()]
    assert listed[-1].shape == ()
    named = nn.ParameterDict({"a": ek.ones((2,))})
    named["b"] = ek.ones((1,))
    assert sorted(dict(named.named_parameters())) == ["a", "b"]
    del named["a"]
    assert list(named) == ["b"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: nn.Sequential(nn.ReLU), "holds modules, not the class ReLU"),
        (lambda: nn.ModuleList([lambda x: x]), "holds modules, not a function"),
        (lambda: nn.ModuleDict({"a.b": nn.ReLU()}), "without dots"),
        (lambda: nn.Lambda(3), "takes a function"),
        (lambda: nn.ModuleList()["a"], "indexed by integers"),
    ],
)
def test_what_is_refused(made: Callable[[], object], said: str) -> None:
    with pytest.raises(EshkolError, match=said):
        made()


def test_a_plain_list_is_refused() -> None:
    model = nn.Module()
    with pytest.raises(TensorError, match=r"use nn\.ModuleList"):
        model.layers = parts(2)
