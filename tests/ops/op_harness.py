"""What the tests of the op table share: drawing a row's samples, and calling a row on nodes or on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.conformance.samples import (
    TESTED,
    arguments,
    arrays_in,
    as_buffer,
    cases,
    close,
    computed,
    draw,
    flat,
    has_negative,
    on_nodes,
    refilled,
    rng_of,
    rows,
)
from eshkol.ops.row import NoDerivative, Op

__all__ = [
    "TESTED", "arguments", "arrays_in", "as_buffer", "cases", "close", "computed", "direction", "draw", "expected",
    "flat", "has_negative", "on_nodes", "refilled", "rng_of", "rows", "smooth",
]  # fmt: skip

REPARAMETRIZED = ("uniform", "normal", "gumbel", "laplace", "exponential", "truncated_normal", "dropout")


def expected(op: Op, args: list[Any], attrs: dict[str, Any]) -> list[np.ndarray]:
    """What the reference of a composite gives."""
    assert op.composite, "a primitive's reference is what is computed: it says nothing about itself"
    with np.errstate(all="ignore"):
        return [np.asarray(x) for x in flat(op.reference(*args, **attrs))]


def smooth(op: Op) -> bool:
    """Whether the row has a derivative."""
    if op.random:
        return op.name in REPARAMETRIZED  # smooth in where and how wide they are, for the key stays
    return op.composite or not isinstance(op.derivative, NoDerivative)


def direction(like: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Where to move an array to, at random."""
    real = np.asarray(rng.uniform(-1, 1, like.shape))
    return (real + 1j * rng.uniform(-1, 1, like.shape) if like.dtype.kind == "c" else real).astype(like.dtype)
