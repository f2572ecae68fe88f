"""Functions that are compiled before a program runs: for arguments of given shapes, taking and giving plain numbers.

Comes in: a function of tensors and examples of its arguments. Goes out: an `Ahead`, which can be run here, as `jit`
runs it, and which `eshkol build` writes into executables (executable/models.py): there it meets numbers alone, for
tensors are not there. Builds learn of it through `noted`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from eshkol.errors import DTypeError
from eshkol.graph.node import Node
from eshkol.tensors.autograd import no_grad
from eshkol.tensors.jit import jit
from eshkol.tensors.make import tensor
from eshkol.tensors.value import Tensor, as_node

# What numbers of a language without tensors can be, by the name of the dtype (runtime/native/executable/models.c).
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64")


@dataclass(frozen=True)
class Operand:
    """An argument or a result."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.shape)

    @classmethod
    def of(cls, node: Node, what: str) -> Operand:
        dtype = node.dtype.name.rstrip("_")
        if dtype not in DTYPES:
            raise DTypeError(f"{what} is {dtype}, which plain numbers are not", hint="make it float32 in the procedure")
        return cls(dtype, tuple(node.shape))


class Ahead:
    """A function for arguments like some examples; it gives a tuple of tensors."""

    def __init__(self, function: Callable[..., tuple[Tensor, ...]], examples: Sequence[Tensor], name: str) -> None:
        self.function, self.examples, self.name = function, tuple(examples), name
        self.inputs = [Operand.of(as_node(x), f"argument {k}") for k, x in enumerate(examples, 1)]
        self._jit = jit(function)
        with no_grad():
            results = self._jit.traced(*examples).function.results
        self.outputs = [Operand.of(x, f"result {k}") for k, x in enumerate(results, 1)]

    def __call__(self, arrays: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The numbers of all results, those of each behind one another, from the numbers of all arguments."""
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, as in C
            given = [
                tensor(np.array(numbers, dtype=one.dtype).reshape(one.shape), one.dtype)
                for numbers, one in zip(arrays, self.inputs, strict=True)
            ]
        with no_grad():
            return [result.numpy().reshape(-1).tolist() for result in self._jit(*given)]


_noted: list[list[Ahead]] = []  # of builds under way


@contextmanager
def noting() -> Iterator[list[Ahead]]:
    """All that is compiled ahead meanwhile."""
    found: list[Ahead] = []
    _noted.append(found)
    try:
        yield found
    finally:
        _noted.remove(found)


def noted(made: Ahead) -> Ahead:
    """Tell builds under way of it."""
    for found in _noted:
        found.append(made)
    return made
