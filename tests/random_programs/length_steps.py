"""Kinds of steps that say what they do in terms of the lengths they meet, as programs for any batch do.

The same lines compute with tensors and with NumPy's arrays. `ways.lengths` computes programs again with other lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import eshkol as ek
from random_programs.choosing import Chooser
from random_programs.program import Known, Step, kind
from random_programs.steps import place

MOVED: dict[str, Callable[[Any, Any], Any]] = {  # given the functions of ours or of NumPy
    "flat": lambda m, x: x.reshape((-1,)),
    "rows": lambda m, x: x.reshape((x.shape[0], -1)),
    "columns": lambda m, x: x.reshape((-1, x.shape[-1])),
    "split": lambda m, x: x.reshape((x.shape[0], 1, *x.shape[1:])),
    "turned": lambda m, x: x.reshape((x.shape[-1], *x.shape[:-1])),
    "but the first": lambda m, x: x[1:],
    "but the last": lambda m, x: x[..., :-1],
    "every second": lambda m, x: x[::2],
    "back": lambda m, x: x[..., ::-1],
    "last": lambda m, x: x[-1:],
    "first half": lambda m, x: x[: x.shape[0] // 2],
    "second half": lambda m, x: x[..., x.shape[-1] // 2 :],
    "twice": lambda m, x: m.concatenate((x, x[:1], x)),
    "beside": lambda m, x: m.stack((x, x), -1).reshape((*x.shape[:-1], 2 * x.shape[-1])),
    "spread": lambda m, x: m.broadcast_to(x[:1], x.shape),
    "padded": lambda m, x: m.pad(x, ((1, 1),) + ((0, 0),) * (x.ndim - 1)),
    "turn": lambda m, x: m.roll(x, 1, 0),
    "again": lambda m, x: m.tile(x, (2,) + (1,) * (x.ndim - 1)),
}  # fmt: skip


def _triangle(m: Any, n: Any) -> Any:
    return m.arange(n)[:, None] >= m.arange(n)


COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "share": lambda m, x: x / x.shape[0],
    "times length": lambda m, x: x * (0.25 * x.shape[-1]),
    "mean": lambda m, x: x - x.sum(0) / x.shape[0],
    "differences": lambda m, x: x[1:] - x[:-1],
    "positions": lambda m, x: x + m.arange(x.shape[-1]) * 0.125,
    "masked": lambda m, x: m.where(m.arange(x.shape[-1]) < 2, x, 0.5),
    "triangle": lambda m, x: m.where(_triangle(m, x.shape[-1]), x[..., None, :], 0.0).sum(-1),
    "ones": lambda m, x: x + m.ones(x.shape, dtype="float64").sum(-1, keepdims=True) * 0.1,
    "number": lambda m, x: x + float(x.ndim) + x.shape[0] * 0.01,
    "greatest": lambda m, x: x * 0.5 - m.tanh(x).max(axis=0),
    "small": lambda m, x: x if x.shape[0] > 3 else x * 2.0,
    "products": lambda m, x: m.sin(x.reshape((x.shape[0], -1))) @ x.reshape((x.shape[0], -1)).T,
}  # fmt: skip


@kind("by length", lambda a, x: MOVED[a](ek, x), numpys=lambda a, x: MOVED[a](np, x), weight=6)
def _moved(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4 and v.size > 0)
    return None if k is None else Step("by length", (k,), c.pick(list(MOVED)), exact=values[k].exact)


@kind("of length", lambda a, x: COMPUTED[a](ek, x), numpys=lambda a, x: COMPUTED[a](np, x), weight=6)
def _computed(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4 and v.size > 0 and v.array.dtype == np.float64)
    return None if k is None else Step("of length", (k,), c.pick(list(COMPUTED)))
