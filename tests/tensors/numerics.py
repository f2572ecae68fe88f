"""Differences and comparisons in float64 that the tests of derivatives share."""

from __future__ import annotations

import numpy as np

import eshkol as ek

STEP = 1e-3


def t64(data):
    return ek.tensor(np.array(data, np.float64))


def values(x) -> np.ndarray:
    """The numbers of a tensor (also one that requires grad) or of anything NumPy takes."""
    return x.detach().numpy() if isinstance(x, ek.Tensor) else np.asarray(x)


def close(got, wanted, tolerance: float = 1e-9) -> None:
    got, wanted = values(got), values(wanted)
    assert got.shape == wanted.shape, f"shape {got.shape}, not {wanted.shape}"
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def gradient(f, at) -> np.ndarray:
    """The gradient of a scalar function of one array, by differences of sixth order."""
    at = np.asarray(at, np.float64)
    found = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        unit = np.zeros(at.shape)
        unit[place] = STEP
        found[place] = sum(
            weight * (float(values(f(t64(at + k * unit)))) - float(values(f(t64(at - k * unit)))))
            for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
        ) / STEP  # fmt: skip
    return found


def second(f, at) -> np.ndarray:
    """All second derivatives of a scalar function, by differences of its derivative."""
    at = np.asarray(at, np.float64)
    found = np.zeros(at.shape + at.shape)
    for place in np.ndindex(at.shape):
        unit = np.zeros(at.shape)
        unit[place] = STEP
        near = gradient(f, at + unit) - gradient(f, at - unit)
        far = gradient(f, at + 2 * unit) - gradient(f, at - 2 * unit)
        found[place] = (8 * near - far) / (12 * STEP)
    return found
