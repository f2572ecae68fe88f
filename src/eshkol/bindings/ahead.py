"""compile-ahead: a procedure of tensors, compiled for arguments like some examples, as a procedure of plain numbers.

In: the procedure, or a model, and the examples. Out: what lib/eshkol/ahead.esk makes a procedure of: its name, what its
arguments and results are, and what computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eshkol.bindings.rows import shown
from eshkol.bindings.values import Symbol, Vector
from eshkol.errors import DTypeError
from eshkol.tensors import pytree
from eshkol.tensors.ahead import Ahead, Operand, noted
from eshkol.tensors.export import plain
from eshkol.tensors.make import tensor
from eshkol.tensors.scalars import Scalar, scalar_node
from eshkol.tensors.value import Tensor

NAMELESS = "lambda"  # what procedures are called that have no name


def compile_ahead(procedure: Callable[..., Any], examples: list[Any]) -> Vector:
    """The name, lists of arguments and results (a dtype, and extents), and a procedure of vectors of vectors."""
    inner = plain(procedure)

    def program(*args: Tensor) -> tuple[Tensor, ...]:
        leaves, _ = pytree.flatten(inner(*args))
        return tuple(_result(leaf) for leaf in leaves)

    name = str(getattr(inner, "__name__", NAMELESS))
    name = "compile-ahead" if name == NAMELESS else name
    program.__name__ = name
    made = noted(Ahead(program, [_example(x, k) for k, x in enumerate(examples, 2)], name))

    def run(arrays: Vector) -> Vector:
        return Vector(Vector(numbers) for numbers in made(list(map(list, arrays))))

    return Vector([Symbol(name), list(map(_told, made.inputs)), list(map(_told, made.outputs)), run])


def _example(given: Any, place: int) -> Tensor:
    if isinstance(given, Tensor):
        return given.detach()
    if isinstance(given, bool | int | float):
        return tensor(given)
    raise DTypeError(f"a tensor or a number is wanted as argument {place}, an example, not {shown(given)}")


def _result(leaf: Any) -> Tensor:
    if isinstance(leaf, Scalar):
        return Tensor(scalar_node(leaf))
    if isinstance(leaf, bool | int | float):
        return tensor(leaf)
    if isinstance(leaf, Tensor):
        return leaf
    raise DTypeError(f"a procedure that is compiled ahead gives tensors and numbers, not {shown(leaf)}")


def _told(operand: Operand) -> list[Any]:
    return [Symbol(operand.dtype), *operand.shape]
