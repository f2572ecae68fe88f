"""Short-time Fourier transforms, as PyTorch has them: `stft` and `istft`.

Comes in: signals along the last axis, or their spectra. Goes out: the other. Windows are cut, transformed and added up
by rows of the table, so derivatives, vmap and devices follow.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.graph.node import here
from eshkol.tensors.functions import FUNCTIONS
from eshkol.tensors.make import asarray

_ek = SimpleNamespace(**FUNCTIONS)


def _frame(n_fft: int, hop_length: int | None, win_length: int | None, window: Any, like: Any) -> tuple[int, Any]:
    """How far windows are apart, and what each is multiplied by: the window, with zeros around it."""
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if n_fft < 1 or hop < 1 or not 1 <= length <= n_fft:
        raise ShapeError(
            f"windows of {length} in transforms of {n_fft}, {hop} apart, cannot be cut", span=here(),
            hint="n_fft and hop_length are at least 1, win_length is from 1 to n_fft",
        )  # fmt: skip
    dtype = _real(like)
    shape = asarray(np.ones(length)).to(dtype) if window is None else asarray(window).to(dtype)
    if shape.shape != (length,):
        raise ShapeError(f"a window of shape {list(shape.shape)} is not one of {length} numbers", span=here())
    left = (n_fft - length) // 2
    return hop, _ek.pad(shape, ((left, n_fft - length - left),))


def _real(x: Any) -> Any:
    return x.real.dtype if x.dtype.is_complex else x.dtype


def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool = True,
) -> Any:  # fmt: skip
    """The Fourier transforms of windows along the last axis: (…, frequencies, windows).

    With `center` the signal is continued by half a window at both ends, so that window t is about element t · hop.
    Of real signals there are the frequencies up to the half, unless `onesided` is False.
    """
    x = asarray(input)
    hop, shape = _frame(n_fft, hop_length, win_length, window, x)
    if center:
        around = ((0, 0),) * (x.ndim - 1) + ((n_fft // 2, n_fft // 2),)
        mode = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
        x = _ek.pad(x, around, mode=mode)
    if x.shape[-1] < n_fft:
        raise ShapeError(f"a signal of {x.shape[-1]} elements has no window of {n_fft}", span=here())
    frames = _ek.sliding_window(x, n_fft, -1, hop) * shape
    half = not x.dtype.is_complex if onesided is None else onesided
    if half and x.dtype.is_complex:
        raise ShapeError("a complex signal has frequencies on both sides: onesided=False", span=here())
    found = _ek.rfft(frames) if half else _ek.fft(frames)
    found = _ek.swapaxes(found / n_fft**0.5 if normalized else found, -1, -2)
    return found if return_complex else _ek.stack([_ek.real(found), _ek.imag(found)], -1)


def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """The signal whose `stft` is given, as near as can be: windows are added up, and divided by what there is of them.

    An element that no window reaches is NaN.
    """
    spectra = _ek.swapaxes(asarray(input), -1, -2)
    half = not return_complex if onesided is None else onesided
    bins = n_fft // 2 + 1 if half else n_fft
    if spectra.ndim < 2 or spectra.shape[-1] != bins:
        raise ShapeError(f"shape {list(asarray(input).shape)} has not the {bins} frequencies of n_fft={n_fft}",
                         span=here(), hint="frequencies are the axis before the last")  # fmt: skip
    hop, shape = _frame(n_fft, hop_length, win_length, window, spectra)
    if normalized:
        spectra = spectra * n_fft**0.5
    frames = _ek.irfft(spectra, n_fft) if half else _ek.ifft(spectra)
    frames = (frames if return_complex else _ek.real(frames)) * shape
    lead, number = frames.shape[:-2], frames.shape[-2]
    places = asarray((np.arange(number)[:, None] * hop + np.arange(n_fft)).reshape(-1))
    total = n_fft + hop * (number - 1)

    def added(windows: Any) -> Any:
        flat = _ek.reshape(windows, (*windows.shape[:-2], number * n_fft))
        nothing = _ek.broadcast_to(_ek.zeros_like(flat[..., :1]), (*flat.shape[:-1], total))
        return _ek.index_add(nothing, flat.ndim - 1, places, flat)

    found = added(frames) / added(_ek.broadcast_to(shape * shape, (number, n_fft)))
    first = n_fft // 2 if center else 0
    last = total - first if length is None else first + length
    found = found[..., first : min(last, total)]
    missing = last - min(last, total)
    return _ek.pad(found, ((0, 0),) * len(lead) + ((0, missing),)) if missing else found
