"""Differences and comparisons in float64 that the tests of derivatives share.

Values are computed by the graph's own interpreter, op by op in NumPy: what is tested here is the graph that the
transformations build, and that is many times quicker than the backend that checks every instruction.
"""

from __future__ import annotations

import numpy as np

import eshkol as ek
from eshkol.graph import interpret

STEP = 1e-3


def t64(data):
    return ek.tensor(np.array(data, np.float64))


def values(x) -> np.ndarray:
    """The numbers of a tensor (also one that requires grad) or of anything NumPy takes."""
    return interpret.evaluate([x._node])[0] if isinstance(x, ek.Tensor) else np.asarray(x)


def close(got, wanted, tolerance: float = 1e-9) -> None:
    got, wanted = values(got), values(wanted)
    assert got.shape == wanted.shape, f"shape {got.shape}, not {wanted.shape}"
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def gradient(f, at) -> np.ndarray:
    """The gradient of a scalar function of one array, by differences of fourth order."""
    at = np.asarray(at, np.float64)
    found = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        unit = np.zeros(at.shape)
        unit[place] = STEP
        found[place] = sum(
            weight * (float(values(f(t64(at + k * unit)))) - float(values(f(t64(at - k * unit)))))
            for k, weight in ((1, 2 / 3), (2, -1 / 12))
        ) / STEP  # fmt: skip
    return found


def second(f, at) -> np.ndarray:
    """All second derivatives of a scalar function, by differences of its gradient (to be tested before)."""
    at = np.asarray(at, np.float64)
    found = np.zeros(at.shape + at.shape)
    for place in np.ndindex(at.shape):
        unit = np.zeros(at.shape)
        unit[place] = STEP
        near = values(ek.grad(f)(t64(at + unit))) - values(ek.grad(f)(t64(at - unit)))
        far = values(ek.grad(f)(t64(at + 2 * unit))) - values(ek.grad(f)(t64(at - 2 * unit)))
        found[place] = (8 * near - far) / (12 * STEP)
    return found
