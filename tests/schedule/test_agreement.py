"""What is told of a difference, of memory that is kept and lent, and what kernels share: facts that no answer shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import NotANumberError
from eshkol.graph.node import Node
from eshkol.schedule.cache import nothing_kept
from eshkol.schedule.check.agreement import _apart, _in_order, _shaken, difference
from eshkol.schedule.kernels.kernel import described
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.run import memory


def told(found: list[Any]) -> tuple[int, tuple[int, ...]] | None:
    """Where results of two graphs seem to differ, for what was found of them."""
    x = ek.tensor([1.0, 2.0, 4.0], dtype=ek.float64)
    outputs = [(x * 2)._node, (x + 1)._node]
    expected = [np.array([2.0, 4.0, 8.0]), np.array([2.0, 3.0, 5.0])]
    got = difference(outputs, {}, expected, [np.array(f) for f in found])
    return None if got is None else (got.result, got.index)


@pytest.mark.unchecked  # it looks for differences itself
def test_the_largest_difference_of_the_first_result_is_told() -> None:
    assert told([[2.0, 4.0, 8.0], [2.0, 3.0, 5.0]]) is None
    assert told([[2.0, 4.0, 8.0], [2.0, 3.0, 5.0 + 1e-15]]) is None
    assert told([[2.5, 4.0, 9.0], [2.0, 3.0, 7.0]]) == (0, (2,))
    assert told([[2.0, 4.0, 8.0], [2.0, 3.5, 5.0]]) == (1, (1,))
    assert told([[2.5, np.inf, 9.0], [2.0, 3.0, 5.0]]) == (0, (1,))
    assert told([[2.0, 4.0, np.nan], [9.0, 3.0, 5.0]]) == (0, (2,))


@pytest.mark.parametrize(
    ("dtype", "least", "most"), [("float16", 0.5, 1.5), ("float32", 2.5, 4.5), ("float64", 2.5, 4.5)]
)
def test_values_are_shaken_by_as_much_as_rounding_does(dtype: str, least: float, most: float) -> None:
    """Of halves a unit in the last place, of others four; what is exact stays."""
    ones = np.ones(2000, dtype)
    apart = np.abs(_shaken(ones, np.random.default_rng(0)) - 1).max() / np.finfo(dtype).eps
    assert least <= apart <= most
    assert _shaken(ones, np.random.default_rng(0)).dtype == ones.dtype
    whole = np.arange(5)
    assert _shaken(whole, np.random.default_rng(0)) is whole


@pytest.mark.parametrize(
    ("dtype", "lost"),
    [("float16", 1e-8), ("float32", 1e-37), ("complex64", 1e-37), ("float64", 1e-301), ("complex128", 1e-301)],
)
def test_what_is_too_small_for_a_dtype_may_be_lost(dtype: str, lost: float) -> None:
    small = np.array([lost, 0.0]).astype(dtype)
    assert not _apart(small, np.zeros(2, dtype)).any()
    large = np.array([min(1e30 * lost, 1e-3), 0.0]).astype(dtype)
    assert _apart(large, np.zeros(2, dtype)).tolist() == [True, False]
    assert _apart(np.zeros((0, 2), dtype), np.zeros((0, 2), dtype)).shape == (0, 2)


def test_rows_in_order() -> None:
    assert _in_order(np.array([[1.0, 1.0, 2.0], [0.0, 3.0, np.nan]]))
    assert not _in_order(np.array([[1.0, 1.0, 2.0], [3.0, 0.0, np.nan]]))
    assert not _in_order(np.array([2, 1]))
    assert _in_order(np.array([2]))


def test_blocks_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEPT_BYTES", 100)
    keeper = memory._Keeper()
    small, large = np.zeros(30, np.uint8), np.zeros(60, np.uint8)
    keeper.give(small)
    keeper.give(large)
    assert keeper.total == 90
    assert keeper.take(40) is None
    assert keeper.take(60) is large
    assert keeper.total == 30
    assert keeper.take(60) is None
    keeper.give(large)
    keeper.give(np.zeros(20, np.uint8))  # too much: what was there goes
    assert keeper.total == 20
    assert keeper.take(30) is keeper.take(60) is None
    keeper.give(np.zeros(101, np.uint8))
    assert keeper.total == 0
    keeper.give(np.zeros(100, np.uint8))
    assert keeper.total == 100


class Holder:
    """A node, as far as its memory goes."""

    op: Any = None
    data: Any = None


def test_whose_memory_it_is() -> None:
    holder = Holder()
    assert not memory.exclusive(holder)
    holder.data = np.zeros(8)
    assert memory.exclusive(holder)
    another = holder.data
    assert not memory.exclusive(holder)
    del another
    holder.data = np.zeros(16)[:8]  # of someone's array
    assert not memory.exclusive(holder)
    holder.data = np.zeros((4, 4)).T
    assert not memory.exclusive(holder)
    holder.data = np.zeros(8)
    holder.data.flags.writeable = False
    assert not memory.exclusive(holder)


def node_of(size: int, dtype: str = "float32") -> Node:
    x = ek.tensor(np.ones(size, dtype))
    y = ek.tensor(np.full(size, 2, dtype))
    return ek.maximum(x, y)._node


def test_groups_of_all_sizes_have_one_program() -> None:
    from eshkol.backends.reference.backend import DESCRIPTION

    def programs(size: int, other: int) -> list[Any]:
        given = [ek.tensor(np.ones(n, np.float32)) for n in (size, other)]
        compiled = ek.jit(lambda x, y: ek.maximum(x, y) * 2, dynamic=False).traced(*given).compiled
        steps = compiled.plan(DESCRIPTION).steps
        return [step.kernel.program for step in steps]

    with nothing_kept():
        (one,), (same,), (wider,) = programs(5, 5), programs(9, 9), programs(5, 1)
    assert one is same
    assert wider is not one


def test_errors_name_operands() -> None:
    values = ek.sort(ek.tensor([[2.0, 1.0]]), 1)[0]._node
    assert described(values.inputs[0]) == "sort(float32[1, 2])"
    assert described(values) == "pick(several)"


def test_one_program_serves_all_sizes() -> None:
    from eshkol.backends.reference.backend import DESCRIPTION

    with nothing_kept():
        kernels = [lowered(node_of(n), DESCRIPTION) for n in (5, 9)]
        other = lowered(node_of(5, "float64"), DESCRIPTION)
    programs = [kernel.program for kernel in kernels]
    assert programs[0] is programs[1]
    assert other.program is not programs[0]
    pairs = ((5,), (1,)), ((2, 3), (1, 1)), ((2, 3), (3,))
    with nothing_kept():
        one, same, row = (
            lowered(ek.maximum(*(ek.tensor(np.ones(shape, np.float32)) for shape in pair))._node, DESCRIPTION).program
            for pair in pairs
        )
    assert one is same
    assert row is not same


@pytest.mark.unchecked  # values are looked at instead
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_values_that_are_no_numbers_already_are_no_news(backend: str) -> None:
    with ek.use_backend(backend), ek.check_nan():
        x = ek.tensor([1.0, float("nan"), 2.0])
        assert np.isnan((x * 2).numpy()).tolist() == [False, True, False]
        y = ek.tensor([1.0, 0.0, 2.0])
        with pytest.raises(NotANumberError):
            (x[::2] / y[1:2]).numpy()
