"""The imperative style: `requires_grad`, `backward`, `no_grad`.

A tensor that requires grad is a mark in the graph; `backward` differentiates with respect to all marks that a value
depends on and adds the results to their owners' `grad`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from eshkol.errors import DerivativeError, ShapeError
from eshkol.graph import derive
from eshkol.graph.node import Node, buffer, constant, here, topological
from eshkol.ops.elementwise import conj
from eshkol.ops.structural import MARK
from eshkol.schedule.run.gradients import gradients
from eshkol.tensors.tape import OWNERS, TAPE, GradMode, Waiting
from eshkol.tensors.value import Tensor, as_node, detached, realize

_ADDING = threading.RLock()  # threads that add to one leaf's gradient do so one after another


class Spent(Tensor):
    """A gradient that an optimizer's step has used: `backward` does not add to it (a forgotten `zero_grad`)."""

    __slots__ = ()


def leaves_of(node: Node) -> list[Node]:
    """The marks of the tape that a node depends on and that depend on none themselves."""
    return [
        n
        for n in topological([node], TAPE)
        if n.op is MARK and n.attrs.scope is TAPE and TAPE not in n.inputs[0].scopes
    ]


def backward(value: Tensor, gradient: Any = None) -> None:
    """Add the gradient of a value to the leaves it depends on."""
    node = value._node
    if not value.requires_grad:
        raise DerivativeError(
            "backward() of a value that depends on no tensor with requires_grad", span=here(),
            hint="make the parameters with requires_grad=True, and compute outside no_grad()",
        )  # fmt: skip
    if gradient is None:
        if node.shape != ():
            raise ShapeError(
                f"backward() needs a scalar, and this value has shape {list(node.shape)}", span=here(),
                hint="sum it, or give backward(gradient) the cotangent",
            )  # fmt: skip
        seed = constant(1, node.dtype)
    else:
        seed = as_node(gradient)
        if seed.shape != node.shape:
            raise ShapeError(f"the cotangent has shape {list(seed.shape)}, the value {list(node.shape)}", span=here())
    marks = leaves_of(node)
    owners = [None if (owner := OWNERS.get(leaf)) is None else owner() for leaf in marks]
    for tensor in owners:
        if tensor is not None and type(tensor._grad) is Spent:
            raise _spent(tensor)
    waiting = Waiting.taken()
    if gradient is None and all(tensor is None or tensor.grad is None for tensor in owners):
        living = [(leaf, tensor) for leaf, tensor in zip(marks, owners, strict=True) if tensor is not None]
        known = gradients(node, [leaf for leaf, _ in living], TAPE, [t._node for t in waiting])
        if known is not None:
            sums = [_add(t, buffer(array, leaf.dtype)) for (leaf, t), array in zip(living, known, strict=True)]
            if any(total._node.data is None for total in sums):  # another thread was quicker
                realize(*sums)
            return
    found = derive.vjp([node], marks, TAPE)([seed])
    if all(slope is None for slope in found):
        raise DerivativeError(
            "backward() of a value that depends on tensors with requires_grad through comparisons, argmax, rounding or "
            "the like alone: all its gradients are zero", span=here(),
            hint="train on a smooth function, a loss, instead",
        )  # fmt: skip
    changed = []
    for leaf, tensor, gradient_node in zip(marks, owners, found, strict=True):
        if tensor is None:
            continue
        given = derive.zeros(leaf) if gradient_node is None else gradient_node
        changed.append(_add(tensor, detached(conj(given) if leaf.dtype.is_complex else given)))
    realize(value, *changed, *waiting)  # together, while everything they share is at hand


def _spent(tensor: Tensor) -> DerivativeError:
    return DerivativeError(
        f"the gradient of a {tensor.dtype}{list(tensor.shape)} was already used by optimizer.step(); "
        "backward() would add to it", span=here(),
        hint="call optimizer.zero_grad() first",
    )  # fmt: skip


def _add(tensor: Tensor, given: Node) -> Tensor:
    """Add to the gradient of a tensor; gives the sum."""
    with _ADDING:
        earlier = tensor._grad
        if type(earlier) is Spent:
            raise _spent(tensor)
        total = tensor._grad = Tensor(given if earlier is None else earlier._node + given)
    return total


class no_grad:
    """Within it (or within a function it decorates) operations are not remembered for `backward`."""

    _wanted = False

    def __init__(self) -> None:
        self._earlier: list[bool] = []  # one may be entered again within itself

    def __enter__(self) -> None:
        self._earlier.append(GradMode.enabled)
        GradMode.enabled = self._wanted

    def __exit__(self, *error: object) -> None:
        GradMode.enabled = self._earlier.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def within(*args: Any, **given: Any) -> Any:
            with type(self)():
                return function(*args, **given)

        return within


class enable_grad(no_grad):
    """Within it operations are remembered again."""

    _wanted = True
