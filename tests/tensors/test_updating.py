"""Tensors that are changed in their own memory: nobody who holds an old value sees it change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import ShapeError
from eshkol.schedule.run.memory import address_of
from eshkol.tensors.updating import Update


@pytest.fixture(params=["reference", "cpu"], autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """The one makes new arrays for results, the other takes the memory that it is given."""
    with ek.use_backend(request.param):
        yield request.param


def descent(values: list[Any], given: list[Any], rate: Any) -> list[Any]:
    return [x - rate * g for x, g in zip(values, given, strict=True)]


def made(count: int = 2) -> tuple[list[ek.Tensor], list[ek.Tensor]]:
    """Parameters of ones, and gradients of 1, 2, … ."""
    tensors = [ek.ones((40, 40)).realize().requires_grad_() for _ in range(count)]
    return tensors, [ek.full((40, 40), float(k + 1)).realize() for k in range(count)]


def test_values_are_those_of_the_function_and_numbers_do_not_trace_again() -> None:
    calls = []

    def counted(*args: Any) -> Any:
        calls.append(1)
        return descent(*args)

    tensors, given = made()
    update = Update(counted)
    for rate in (0.5, 0.25, 0.125):
        update(tensors, given, rate)
    assert len(calls) == 1
    for k, tensor in enumerate(tensors):
        np.testing.assert_array_equal(tensor.detach().numpy(), np.full((40, 40), 1 - 0.875 * (k + 1), np.float32))
        assert tensor.requires_grad
        assert tensor.is_leaf


def test_memory_that_nobody_else_sees_is_kept(backend: str) -> None:
    tensors, given = made()
    update = Update(descent)
    update(tensors, given, 0.5)
    places = {address_of(t._array()) for t in tensors}
    marks = [id(t._node) for t in tensors]
    update(tensors, given, 0.5)
    assert backend == "reference" or {address_of(t._array()) for t in tensors} == places
    assert [id(t._node) for t in tensors] == marks


@pytest.mark.parametrize(
    "hold",
    [
        lambda t: t.detach(),
        lambda t: t.detach().numpy(),
        lambda t: t.detach().numpy()[1:, ::2],
        lambda t: t * 1.0,  # not computed yet: it needs the value that was there
        lambda t: ek.asarray(t).reshape(1600),
        lambda t: np.from_dlpack(t.detach()),
    ],
)  # fmt: skip
def test_whoever_holds_an_old_value_keeps_it(hold: Any) -> None:
    tensors, given = made()
    update = Update(descent)
    for expected in (1.0, 0.5, 0.0):
        held = hold(tensors[0])
        update(tensors, given, 0.5)
        found = held.detach().numpy() if isinstance(held, ek.Tensor) else held
        assert np.all(found == expected)
    assert np.all(tensors[0].detach().numpy() == -0.5)
    assert np.all(tensors[1].detach().numpy() == -2.0)


def test_derivatives_after_an_update_are_of_the_new_value() -> None:
    tensors, given = made(1)
    update = Update(descent)
    for expected in (2.0, 1.0, 0.0):
        (tensors[0] * tensors[0]).sum().backward()
        assert tensors[0].grad is not None
        assert np.all(tensors[0].grad.numpy() == expected)
        tensors[0].grad = None
        update(tensors, given, 0.5)


def test_one_memory_in_two_tensors_and_lazy_values() -> None:
    shared = ek.ones((40, 40)).realize()
    tensors = [ek.Tensor(shared._node), ek.Tensor(shared._node), ek.full((40, 40), 2.0) * 3.0]
    update = Update(descent)
    for _ in range(2):
        update(tensors, [ek.ones((40, 40)), ek.full((40, 40), 2.0), ek.ones((40, 40))], 1.0)
    assert [float(t.mean()) for t in tensors] == [-1.0, -3.0, 4.0]
    assert float(shared.mean()) == 1.0


def test_another_shape_or_dtype_is_another_trace_and_an_error_changes_nothing() -> None:
    tensors, given = made(1)
    update = Update(descent)
    update(tensors, given, 0.5)
    wide = [ek.ones((3,), dtype="float64").realize()]
    update(wide, [ek.ones((3,), dtype="float64").realize()], 0.25)
    assert wide[0].tolist() == [0.75] * 3
    with pytest.raises(ShapeError):
        update(tensors, [ek.ones((7,))], 0.5)
    assert np.all(tensors[0].detach().numpy() == 0.5)


def test_which_numbers_are_floats_belongs_to_the_key():
    update = Update(lambda values, given, a, b: [v * a + b for v in values])

    def updated(a, b):
        t = ek.tensor([1.0, 2.0])
        update([t], [], a, b)
        return t.numpy().tolist()

    assert updated(2, 0.5) == [2.5, 4.5]
    assert updated(0.5, 2) == [2.5, 3.0]
    assert updated(2, 0.25) == [2.25, 4.25]
