"""The imperative style: `requires_grad`, `backward`, `no_grad`.

A tensor that requires grad is a mark in the graph; `backward` differentiates with respect to all marks that a value
depends on and adds the results to their owners' `grad`. `Differentiable` stands under `Tensor` (value.py), which is not
known here.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Self

from eshkol.errors import DerivativeError, DTypeError, ShapeError
from eshkol.graph import derive
from eshkol.graph.node import Node, buffer, constant, here, mark, topological
from eshkol.ops.elementwise import conj
from eshkol.ops.structural import MARK
from eshkol.runtime import front
from eshkol.schedule.run.gradients import gradients
from eshkol.tensors.computing import realize
from eshkol.tensors.handle import Handle
from eshkol.tensors.tape import OWNERS, TAPE, GradMode, Waiting, detached
from eshkol.tensors.windows import warn_of_no_leaf

_ADDING = threading.RLock()  # threads that add to one leaf's gradient do so one after another


class Differentiable:
    """What a tensor knows of the imperative style."""

    __slots__ = ()

    _is_spent = False  # of a gradient that an optimizer's step has used: `backward` does not add to it
    _node: Node
    _grad: Any  # a tensor, or None

    def _become(self, node: Node) -> None:
        """Hold another node; `Tensor` says how."""
        raise NotImplementedError

    @property
    def requires_grad(self) -> bool:
        return TAPE in self._node.scopes and self._node.dtype.differentiable

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed from tensors that require grad."""
        return not self.requires_grad or all(TAPE not in x.scopes for x in self._node.inputs)

    def requires_grad_(self, wanted: bool = True) -> Self:
        """Ask that `backward` leaves this tensor's gradient in `grad`; gives itself."""
        if wanted and not self._node.dtype.differentiable:
            raise DTypeError(
                f"only floats and complex numbers have gradients, not {self._node.dtype}", span=here(),
                hint="cast it: x.astype(ek.float32)",
            )  # fmt: skip
        if wanted and not self.requires_grad:
            self._mark()
        elif not wanted and self.requires_grad:
            if not self.is_leaf:
                raise DerivativeError("only a leaf can stop requiring grad", hint="use x.detach()")
            self._become(self._node.inputs[0])
        return self

    def _mark(self) -> None:
        marked = mark(self._node, TAPE)
        marked.data = self._node.data  # nothing is to be computed for it
        self._become(marked)
        OWNERS[marked] = weakref.ref(self)

    @property
    def grad(self) -> Self | None:
        """What `backward` has summed for this leaf."""
        if self._grad is None and TAPE in self._node.scopes and not self.is_leaf:
            warn_of_no_leaf()
        found: Self | None = self._grad
        return found

    @grad.setter
    def grad(self, value: Self | None) -> None:
        if value is not None and (value._node.shape, value._node.dtype) != (self._node.shape, self._node.dtype):
            made, own = value._node, self._node
            raise ShapeError(f"a gradient of {made.dtype}{list(made.shape)} for {own.dtype}{list(own.shape)}")
        self._grad = value


def leaves_of(node: Node) -> list[Node]:
    """The marks of the tape that a node depends on and that depend on none themselves."""
    return front.marks_of(node, TAPE)


def backward(value: Handle, cotangent: Node | None) -> None:
    """Add the gradient of a value to the leaves it depends on; without a cotangent it is a scalar."""
    node = value._node
    if not value.requires_grad:
        raise DerivativeError(
            "backward() of a value that depends on no tensor with requires_grad", span=here(),
            hint="make the parameters with requires_grad=True, and compute outside no_grad()",
        )  # fmt: skip
    if cotangent is None:
        if node.shape != ():
            raise ShapeError(
                f"backward() needs a scalar, and this value has shape {list(node.shape)}", span=here(),
                hint="sum it, or give backward(gradient) the cotangent",
            )  # fmt: skip
        seed = constant(1, node.dtype)
    else:
        seed = cotangent
        if seed.shape != node.shape:
            raise ShapeError(f"the cotangent has shape {list(seed.shape)}, the value {list(node.shape)}", span=here())
    retained = [(owner, _retained_gradient(node, seed, owner)) for owner in _retained(node)]
    marks = leaves_of(node)
    owners = [None if (owner := OWNERS.get(leaf)) is None else owner() for leaf in marks]
    for tensor in owners:
        if tensor is not None and (held := tensor._grad) is not None and held._is_spent:
            raise _spent(tensor)
    waiting = Waiting.taken()
    if cotangent is None and all(tensor is None or tensor.grad is None for tensor in owners):
        living = [(leaf, tensor) for leaf, tensor in zip(marks, owners, strict=True) if tensor is not None]
        known = gradients(node, [leaf for leaf, _ in living], TAPE, [t._node for t in waiting])
        if known is not None:
            sums = [_add(t, buffer(array, leaf.dtype)) for (leaf, t), array in zip(living, known, strict=True)]
            sums += [_add(owner, slope) for owner, slope in retained]
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
    changed = [_add(owner, slope) for owner, slope in retained]
    for leaf, tensor, gradient_node in zip(marks, owners, found, strict=True):
        if tensor is None:
            continue
        given = derive.zeros(leaf) if gradient_node is None else gradient_node
        changed.append(_add(tensor, detached(conj(given) if leaf.dtype.is_complex else given)))
    realize(value, *changed, *waiting)  # together, while everything they share is at hand


def _spent(tensor: Handle) -> DerivativeError:
    return DerivativeError(
        f"the gradient of a {tensor.dtype}{list(tensor.shape)} was already used by optimizer.step(); "
        "backward() would add to it", span=here(),
        hint="call optimizer.zero_grad() first",
    )  # fmt: skip


def _add(tensor: Any, given: Node) -> Any:
    """Add to the gradient of a tensor; gives the sum."""
    for hook in _HOOKS.of(tensor):
        changed = hook(tensor._wrap(given))
        given = given if changed is None else changed._node
    with _ADDING:
        earlier = tensor._grad
        if earlier is not None and earlier._is_spent:
            raise _spent(tensor)
        total = tensor._grad = tensor._wrap(given if earlier is None else earlier._node + given)
    return total


# --- gradients of others than leaves, and what is done with gradients ---------------------------------


class _Retaining:
    begun = False  # whether any tensor of the program has asked: most never do, and `backward` need not look


def retain(tensor: Any) -> None:
    """Let `backward` leave the gradient of a tensor that is no leaf in its `grad`, too."""
    if not tensor.requires_grad:
        raise DerivativeError("retain_grad() of a tensor that requires no grad", span=here())
    if not tensor.is_leaf:
        _Retaining.begun = True
        tensor._mark()


def _retained(node: Node) -> list[Any]:
    """The tensors that a value depends on, are no leaves, and are to be given their gradients."""
    if not _Retaining.begun:
        return []
    inner = [n for n in topological([node], TAPE) if n.op is MARK and n.attrs.scope is TAPE]
    owners = [owner() for n in inner if TAPE in n.inputs[0].scopes and (owner := OWNERS.get(n)) is not None]
    return [owner for owner in owners if owner is not None]


def _retained_gradient(node: Node, seed: Node, owner: Any) -> Node:
    (found,) = derive.vjp([node], [owner._node], TAPE)([seed])
    return detached(derive.zeros(owner._node) if found is None else found)


def gradients_of(
    outputs: Sequence[Node], seeds: Sequence[Node | None], inputs: Sequence[Node], remember: bool
) -> list[Node | None]:
    """The gradients of values by tensors, one by one unless these are all leaves; None where nothing depends on one."""
    leaves = all(TAPE not in x.scopes or all(TAPE not in y.scopes for y in x.inputs) for x in inputs)
    wanted = [inputs] if leaves else [[x] for x in inputs]
    found = [slope for some in wanted for slope in derive.vjp(outputs, some, TAPE)(seeds)]
    return [slope if slope is None or remember else detached(slope) for slope in found]


class _Hooks:
    """Functions that gradients of leaves go through, by the tensor's identity: == of tensors gives a tensor."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[weakref.ref[Any], dict[int, Callable[[Any], Any]]]] = {}

    def of(self, tensor: Any) -> list[Callable[[Any], Any]]:
        found = self._of.get(id(tensor)) if self._of else None
        return [*found[1].values()] if found is not None and found[0]() is tensor else []

    def add(self, tensor: Any, hook: Callable[[Any], Any]) -> HookOfTensor:
        place = id(tensor)
        found = self._of.get(place)
        if found is None or found[0]() is not tensor:
            found = self._of[place] = (weakref.ref(tensor, lambda _: self._of.pop(place, None)), {})
        return HookOfTensor(found[1], hook)


class HookOfTensor:
    """A hook of a leaf; `remove()` takes it away."""

    def __init__(self, hooks: dict[int, Callable[[Any], Any]], hook: Callable[[Any], Any]) -> None:
        self._hooks = hooks
        hooks[id(self)] = hook

    def remove(self) -> None:
        """Take the hook away."""
        self._hooks.pop(id(self), None)


_HOOKS = _Hooks()


def register_hook(tensor: Any, hook: Callable[[Any], Any]) -> HookOfTensor:
    """Let the gradients of a leaf go through a function before they are added to `grad`."""
    if not tensor.requires_grad:
        raise DerivativeError("a hook for the gradient of a tensor that requires no grad", span=here())
    return _HOOKS.add(tensor, hook)


def hooks_of(tensor: Any) -> list[Callable[[Any], Any]]:
    """The functions that the gradient of a tensor goes through."""
    return _HOOKS.of(tensor)


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


class set_grad_enabled(no_grad):
    """Remember operations for `backward` from here on, or do not; within `with`, only there."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._wanted = bool(mode)
        self._before = GradMode.enabled
        GradMode.enabled = self._wanted

    def __enter__(self) -> None:
        self._earlier.append(self._before)
        GradMode.enabled = self._wanted

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        GradMode.enabled = self._before  # as a decorator it is for the function alone
        return (enable_grad if self._wanted else no_grad)()(function)


def is_grad_enabled() -> bool:
    """Whether operations are remembered for `backward` here."""
    return GradMode.enabled
