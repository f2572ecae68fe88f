"""Running sums and products for machines of blocks: along all axes, in parts and whole, from both ends."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek


@pytest.mark.parametrize(
    ("shape", "axis", "kernels"),
    [
        ((7, 40), 1, 1), ((9, 13), 1, 1),  # rows of vectors, and of single elements
        ((1, 500), 1, 2), ((3, 129), 1, 2),  # in parts, the last of which is shorter
        ((400, 2), 0, 2), ((130, 3), 0, 2), ((2, 97, 5), 1, 2), ((50, 8), 0, 1), ((64, 16), 0, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool"])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums(shape: tuple[int, ...], axis: int, kernels: int, dtype: str, reverse: bool) -> None:
    given = np.random.default_rng(sum(shape)).integers(0 if dtype == "bool" else -1, 2, shape)
    turned = np.flip(given, axis) if reverse else given
    wanted = np.flip(np.cumsum(turned, axis), axis) if reverse else np.cumsum(turned, axis)
    with ek.device("blocks"):
        x = ek.tensor(given.astype(np.float32), dtype=dtype)
        sums = ek.jit(lambda x: ek.cumsum(x, axis=axis, reverse=reverse))
        np.testing.assert_array_equal(sums(x).astype("float32").numpy(), wanted)
        assert [step.name for step in ek.memory_report(sums, x).steps] == ["totals_add", "scan_add"][-kernels:]


@pytest.mark.parametrize("axis", [0, 1])
def test_products(axis: int) -> None:
    given = np.random.default_rng(axis).uniform(0.9, 1.1, (60, 70)).astype(np.float32)
    with ek.device("blocks"):
        found = ek.jit(lambda x: ek.cumprod(x, axis=axis))(ek.tensor(given)).numpy()
    np.testing.assert_allclose(found, np.cumprod(given, axis), rtol=2e-5)


def test_nothing_is_added_to_negative_zeros() -> None:
    with ek.device("blocks"):
        found = ek.jit(lambda x: ek.cumsum(x, axis=1))(ek.full((3, 50), -0.0)).numpy()
    assert np.signbit(found).all()
