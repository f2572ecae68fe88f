"""Values between any two machines: all dtypes, views, tensors of no elements, and gradients on their way back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import DeviceError
from eshkol.ops import dtypes
from eshkol.tensors import devices

MACHINES = ["cpu", "discrete", "reference", "blocks"]
if devices.missing("opencl") is None:
    MACHINES.append("opencl")
PAIRS = [*itertools.permutations(MACHINES, 2)]
EDGES = {"b": [True, False], "i": [0, 1, -3], "u": [0, 1, 200], "f": [0.0, -1.5, np.inf], "c": [1 + 2j, 0, -1j]}


def values_of(dtype):
    kind = (
        "f" if dtype.is_float else "c" if dtype.is_complex else "b" if dtype.is_bool else "i" if dtype.signed else "u"
    )
    return np.asarray(EDGES[kind] * 2).reshape(2, -1).astype(dtype.numpy)


@pytest.mark.parametrize(("start", "end"), PAIRS)
def test_every_dtype_arrives_as_it_was(start, end):
    for dtype in dtypes.ALL:
        given = values_of(dtype)
        there = ek.tensor(given, device=start).to(end)
        assert (there.device, there.dtype, there.shape) == (end, dtype, given.shape)
        assert there.numpy().tobytes() == given.tobytes(), dtype
        assert there.to(start).device == start
        assert there.to(start).numpy().tobytes() == given.tobytes(), dtype


@pytest.mark.parametrize(("start", "end"), PAIRS)
def test_views_and_tensors_of_no_elements(start, end):
    given = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = ek.tensor(given, device=start)
    for view, wanted in (
        (x.T, given.T), (x[1:3, ::2], given[1:3, ::2]), (x[:, None].expand(4, 2, 6), given[:, None].repeat(2, 1)),
        (x.flip(0), given[::-1]), (x[2:2], given[2:2]), (x.sum(), given.sum()),
    ):  # fmt: skip
        moved = view.to(end)
        assert moved.device == end
        np.testing.assert_array_equal(moved.numpy(), wanted)
        np.testing.assert_array_equal((moved + 1).numpy(), wanted + 1)
    assert ek.zeros((0, 3), device=start).to(end).shape == (0, 3)


@pytest.mark.parametrize(("start", "end"), PAIRS)
def test_gradients_come_back_to_where_a_value_came_from(start, end):
    x = ek.tensor([1.0, 2.0, -1.0], device=start, requires_grad=True)
    (x.to(end).exp().to(start) * x).sum().backward()
    assert x.grad.device == start
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0, -1.0]) * np.array([2.0, 3.0, 0.0]), rtol=1e-6)


@pytest.mark.parametrize(("start", "end"), PAIRS)
def test_operands_on_two_machines_are_named_with_the_remedy(start, end):
    with pytest.raises(DeviceError) as told:
        ek.tensor([1.0], device=start) * ek.tensor([2.0], device=end)
    assert start in told.value.message
    assert end in told.value.message
    assert ".to(" in told.value.hint


def test_a_way_through_all_machines():
    x = ek.tensor([0.5, -0.25], requires_grad=True)
    y = x
    for name in [*MACHINES, *MACHINES[::-1]]:
        y = y.to(name) * 2
    y.sum().backward()
    assert x.grad.tolist() == [2.0 ** (2 * len(MACHINES))] * 2


@pytest.mark.skipif("opencl" not in MACHINES, reason="no device of OpenCL")
def test_a_device_may_be_named_with_its_number():
    x = ek.tensor([1.0], device="opencl:0")
    assert x.device == "opencl"
    assert (x + ek.tensor([1.0], device="opencl")).tolist() == [2.0]
