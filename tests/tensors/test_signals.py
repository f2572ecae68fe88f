"""Short-time Fourier transforms against transforms of windows cut by hand, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import ShapeError

SIGNAL = np.random.default_rng(5).standard_normal((2, 70))
HANN = np.hanning(12)
WAYS: list[dict[str, Any]] = [
    {}, {"hop_length": 5}, {"win_length": 12, "window": HANN}, {"center": False}, {"normalized": True},
    {"onesided": False}, {"pad_mode": "constant"},
]  # fmt: skip


def by_hand(x: np.ndarray, n: int, hop: int, window: np.ndarray, **how: Any) -> np.ndarray:
    if how.get("center", True):
        x = np.pad(x, (n // 2, n // 2), how.get("pad_mode", "reflect"))
    frames = np.stack([x[k : k + n] * window for k in range(0, len(x) - n + 1, hop)], 1)
    found = np.fft.fft(frames, axis=0)
    if how.get("onesided", True):
        found = found[: n // 2 + 1]
    return found / np.sqrt(n) if how.get("normalized") else found


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_there_and_back(way: dict[str, Any]) -> None:
    n = 16
    window = np.ones(n) if "window" not in way else np.pad(HANN, 2)
    plain = {k: v for k, v in way.items() if k not in ("hop_length", "win_length", "window")}
    found = ek.stft(ek.tensor(SIGNAL), n, **way)
    wanted = np.stack([by_hand(x, n, way.get("hop_length", 4), window, **plain) for x in SIGNAL])
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-12)
    way = {k: v for k, v in way.items() if k != "pad_mode"}
    back = ek.istft(found, n, length=60, **way).numpy()
    np.testing.assert_allclose(back, SIGNAL[:, :60], atol=1e-12)


def test_derivatives_and_compiled() -> None:
    power = lambda x: (ek.abs(ek.stft(x, 16)) ** 2).sum()
    x = ek.tensor(SIGNAL[0])
    slope = ek.grad(power)(x)
    ahead = np.random.default_rng(1).standard_normal(70)
    step = 1e-6
    ends = [power(ek.tensor(SIGNAL[0] + sign * step * ahead)).item() for sign in (1, -1)]
    assert (slope.numpy() @ ahead) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)
    assert ek.jit(power)(x).item() == pytest.approx(power(x).item(), rel=1e-12)


def test_what_cannot_be_cut_is_refused() -> None:
    x = ek.tensor(SIGNAL)
    for wrong in ({"win_length": 17}, {"hop_length": 0}, {"window": np.ones(3)}):
        with pytest.raises(ShapeError):
            ek.stft(x, 16, **wrong)
    with pytest.raises(ShapeError):
        ek.stft(x[:, :10], 16, center=False)
    with pytest.raises(ShapeError):
        ek.istft(ek.stft(x, 16), 32)
