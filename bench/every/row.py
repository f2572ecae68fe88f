"""What a row of the bench is: a thing to compute, its inputs, and how each library says it.

A way is a function of a library's own tensors, given by the library's name. A row whose ways agree on names is written
once over the module that has them (`everywhere`). A row with a gradient is the result and the cotangents of the floats
among its inputs, for a cotangent that is given; NumPy has no such thing and is left out there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Code = Callable[..., Any]
Make = Callable[[np.random.Generator], np.ndarray]

OURS, NUMPY, TORCH, JAX = "eshkol", "NumPy", "PyTorch", "JAX"
LIBRARIES = (OURS, NUMPY, TORCH, JAX)
DTYPES = ("f32", "f64", "bf16", "c64", "i64")
# The largest difference between two libraries, as a fraction of the largest element of a result.
TOLERANCES = {"f32": 2e-4, "f64": 1e-9, "bf16": 4e-2, "c64": 2e-4, "i64": 0.0}

FAMILIES = (
    "elementwise", "broadcasting", "reductions", "cumulative", "softmax and norms", "products", "einsum",
    "convolution", "pooling", "attention", "losses", "lookup", "masks", "order", "Fourier", "linear algebra", "complex",
    "random", "movement", "distances", "optimizers", "recurrent", "small networks",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    family: str
    dtype: str  # of the floats among the inputs, unless these are complex or integers
    size: int  # elements of the largest input or, where there is none, of the result
    inputs: tuple[Make, ...]
    ways: Mapping[str, Code]
    gradient: bool = False
    static: tuple[int, ...] = ()  # inputs that a gradient is not taken of, though they are floats
    compiles: bool = True  # False: the shape of the result hangs on values, and no library compiles it
    agrees: Callable[[list[np.ndarray]], Any] | None = None  # what of the results is the same in every library

    @property
    def tolerance(self) -> float:
        return TOLERANCES[self.dtype]

    def arrays(self) -> list[np.ndarray]:
        """The inputs, the same for the same row; floats are in double precision until a library is given them."""
        rng = np.random.default_rng(sum(map(ord, self.name.removesuffix(GRADIENT))))
        return [make(rng) for make in self.inputs]


GRADIENT = ", gradient"


def ways(ours: Code, torch: Code | None = None, jax: Code | None = None, numpy: Code | None = None) -> dict[str, Code]:
    """How each library says it, of those that do."""
    found = {OURS: ours, TORCH: torch, JAX: jax, NUMPY: numpy}
    return {who: way for who, way in found.items() if way is not None}


class OverModule:
    """A way that is written over the module of a library; `contest.way` gives it the module, once and not in calls."""

    def __init__(self, function: Code) -> None:
        self.function = function

    def __call__(self, *given: Any) -> Any:
        raise TypeError("this way has no module yet: contest.way(row, who) gives it one")


def everywhere(function: Code, without: tuple[str, ...] = ()) -> dict[str, Code]:
    """A function of a module and tensors, in each library that has the module's names."""
    return {who: OverModule(function) for who in LIBRARIES if who not in without}


def both(row: Row) -> Iterator[Row]:
    """The row, and the row with its gradient."""
    yield row
    yield gradient(row)


def gradient(row: Row) -> Row:
    """The row's result with the cotangents of its inputs."""
    ways = {who: way for who, way in row.ways.items() if who != NUMPY}
    return replace(row, name=row.name + GRADIENT, gradient=True, ways=ways)


# --- inputs ---------------------------------------------------------------------------------------


def normal(*shape: int) -> Make:
    return lambda rng: rng.standard_normal(shape)


def positive(*shape: int) -> Make:
    """Between 0.1 and 1.1."""
    return lambda rng: rng.random(shape) + 0.1


def within(*shape: int) -> Make:
    """Between -0.9 and 0.9."""
    return lambda rng: rng.random(shape) * 1.8 - 0.9


def integers(high: int, *shape: int) -> Make:
    """From 0 on, below `high`."""
    return lambda rng: rng.integers(0, high, shape)


def truths(*shape: int) -> Make:
    return lambda rng: rng.random(shape) < 0.5


def ascending(*shape: int) -> Make:
    return lambda rng: np.sort(rng.standard_normal(shape), -1)


def definite(*shape: int) -> Make:
    """Symmetric positive definite matrices, well conditioned."""

    def make(rng: np.random.Generator) -> np.ndarray:
        a = rng.standard_normal(shape)
        return a @ np.swapaxes(a, -1, -2) / shape[-1] + np.eye(shape[-1])

    return make


def invertible(*shape: int) -> Make:
    return lambda rng: rng.standard_normal(shape) + 2 * np.sqrt(shape[-1]) * np.eye(shape[-1])


def imaginary(*shape: int) -> Make:
    """Complex numbers."""
    return lambda rng: rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
