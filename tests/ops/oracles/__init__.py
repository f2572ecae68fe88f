"""Independent definitions of every op of the table, against which its rows are tested (see `registry`)."""

from oracles import (
    activations,
    contraction,
    elementwise,
    float8,
    fourier,
    indexing,
    linalg,
    losses,
    movement,
    networks,
    random,
    reductions,
)
from oracles.registry import ORACLES, Call, Oracle, met

__all__ = [
    "ORACLES", "Call", "Oracle", "activations", "contraction", "elementwise", "float8", "fourier", "indexing", "linalg",
    "losses", "met", "movement", "networks", "random", "reductions",
]  # fmt: skip
