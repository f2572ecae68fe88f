"""`backward` of graphs that come again: what was derived for one serves all of its structure, and no other."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.errors import IndexOutOfRange
from eshkol.graph import derive
from eshkol.schedule.run import gradients


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes had been derived from, each time that something was."""
    seen: list[int] = []
    own = derive.vjp

    def counted(outputs: Any, inputs: Any, scope: Any) -> Any:
        seen.append(len(inputs))
        return own(outputs, inputs, scope)

    monkeypatch.setattr(derive, "vjp", counted)
    gradients._ways.clear()
    gc.collect()  # garbage of other tests may hold nodes that these tests share, and go in the middle of one
    return seen


def kept(derived: list[int]) -> bool:
    """Whether what was derived served again. It may be derived twice: what is made of numbers alone, such as a counter,
    is one node for the whole process, and has data from the first time on where some other program holds it as well."""
    return 1 <= len(derived) <= 2


def leaf(*values: float) -> ek.Tensor:
    return ek.tensor(values).requires_grad_()


def slopes(value: Any, *leaves: ek.Tensor) -> list[list[float]]:
    for x in leaves:
        x.grad = None
    value.backward()
    return [x.grad.tolist() for x in leaves if x.grad is not None]


@pytest.mark.unchecked  # which derives again now and then
def test_the_same_graph_of_other_values_is_not_derived_each_time(derived: list[int]) -> None:
    for k in range(5):
        w, x = leaf(1.0 + k, 2.0), ek.tensor([3.0, 4.0 + k])
        assert slopes((w * w * x).sum(), w) == [[2 * (1.0 + k) * 3.0, 4.0 * (4.0 + k)]]
    assert kept(derived)


@pytest.mark.unchecked
def test_a_number_that_was_looked_at_is_still_a_number(derived: list[int]) -> None:
    assert ek.full((), 1.0).numpy() == 1.0  # as the derivative of a value by itself is
    for k in range(5):
        w = leaf(1.0 + k)
        assert slopes((w * w).sum(), w) == [[2 * (1.0 + k)]]
    assert kept(derived)


def test_numbers_that_change_are_seen(derived: list[int]) -> None:
    w = leaf(1.0, 2.0)
    for k in range(4):
        assert slopes((w * float(k)).sum(), w) == [[float(k)] * 2]
    for power in (2, 3, 4):
        assert slopes((w**power).sum(), w) == [[float(power), float(power) * 2.0 ** (power - 1)]]


def test_which_leaves_are_asked_for_is_part_of_it(derived: list[int]) -> None:
    a, b = leaf(2.0), leaf(3.0)
    assert slopes((a * b).sum(), a, b) == [[3.0], [2.0]]
    plain = ek.tensor([5.0])
    assert slopes((a * plain).sum(), a) == [[5.0]]
    b.requires_grad_(False)
    assert slopes((a * b).sum(), a) == [[3.0]]
    assert b.grad is None or b.grad.tolist() == [2.0]


def test_values_that_are_known_or_held_are_so_afterwards(derived: list[int]) -> None:
    for looked in (False, True, False, True):
        w = leaf(1.0, 2.0)
        middle = w * 3.0
        loss = (middle * middle).sum()
        if looked:
            assert loss.item() == 45.0
            assert middle.tolist() == [3.0, 6.0]
        assert slopes(loss, w) == [[18.0, 36.0]]
        assert loss._node.data is not None
        assert middle._node.data is not None
        assert loss.item() == 45.0


def test_gradients_are_summed_and_a_history_may_be_used_twice() -> None:
    w = leaf(1.0, 2.0)
    for _ in range(2):
        w.grad = None
        loss = (w * w).sum()
        loss.backward()
        loss.backward()
        assert w.grad is not None
        assert w.grad.tolist() == [4.0, 8.0]


def test_rules_of_users_are_their_own() -> None:
    def scaled(factor: float) -> Any:
        function = ek.custom_vjp(lambda x: x * 1.0)
        function.defvjp(lambda x: (x * 1.0, ()), lambda kept, ct: (ct * factor,))
        return function

    w = leaf(1.0, 2.0)
    for factor in (1.0, 5.0, 7.0):
        assert slopes(scaled(factor)(w).sum(), w) == [[factor] * 2]
    seen = []
    layer = nn.Linear(2, 1)
    for k in range(2):
        layer.register_backward_hook(lambda module, gradient: seen.append(gradient.tolist()))
        layer(ek.ones((1, 2))).sum().backward()
        layer.zero_grad()
        assert len(seen) == (1, 3)[k]


@pytest.mark.unchecked  # which derives again now and then
def test_loops_are_derived_by_structure_and_rules_within_them_each_time(derived: list[int]) -> None:
    def power(w: ek.Tensor, count: int) -> Any:
        return ek.fori_loop(0, count, lambda i, x: x * w, ek.tensor([1.0])).sum()

    for k in (2.0, 3.0, 5.0, 6.0, 4.0):
        w = leaf(k)
        assert slopes(power(w, 3), w) == [[3 * k * k]]
    assert kept(derived)
    assert slopes(power(w, 4), w) == [[4 * 4.0**3]]

    def scaled(factor: float, w: ek.Tensor) -> Any:
        function = ek.custom_vjp(lambda x: x * 1.0)
        function.defvjp(lambda x: (x * 1.0, ()), lambda kept, ct: (ct * factor,))
        return ek.fori_loop(0, 2, lambda i, x: function(x) + w, ek.tensor([0.0])).sum()

    for factor in (1.0, 5.0):
        assert slopes(scaled(factor, w), w) == [[1.0 + factor]]


def test_a_gradient_within_another_transformation_is_derived_itself() -> None:
    def inner(x: ek.Tensor) -> ek.Tensor:
        return (x * x * x).sum()

    for _ in range(2):
        w = leaf(2.0)
        assert slopes(ek.grad(inner)(w).sum(), w) == [[12.0]]


def test_complex_numbers_loops_and_running_statistics() -> None:
    for k in (1.0, 2.0):
        z = ek.tensor([k + 1j]).requires_grad_()
        ek.abs(z * z).sum().backward()
        assert z.grad is not None
        np.testing.assert_allclose(z.grad.numpy(), [2 * (k + 1j)], rtol=1e-6)
        w = leaf(k)
        assert slopes(ek.fori_loop(0, 3, lambda i, x, w=w: x * w, ek.tensor([1.0])).sum(), w) == [[3 * k * k]]
    norm, data = nn.BatchNorm1d(2), ek.tensor([[1.0, 2.0], [3.0, 6.0]])
    for k in range(3):
        norm(data).sum().backward()
        norm.zero_grad()
        np.testing.assert_allclose(norm.running_mean.numpy(), (1 - 0.9 ** (k + 1)) * np.array([2.0, 4.0]), rtol=1e-6)


def test_an_error_names_the_line_of_the_graph_that_is_computed_now() -> None:
    table = ek.ones((3, 2)).requires_grad_()

    def lookup(ids: list[int]) -> ek.Tensor:
        return ek.embedding(table, ek.tensor(ids)).sum()

    lookup([0, 2]).backward()
    table.grad = None
    with pytest.raises(IndexOutOfRange) as caught:
        lookup([0, 3]).backward()
    assert caught.value.span is not None
    assert "ek.embedding" in caught.value.span.text
