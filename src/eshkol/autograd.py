"""`ek.autograd`: gradients asked for by hand, and functions with a derivative of one's own, as PyTorch has them.

Comes in: tensors that require grad, or a subclass of `Function`. Goes out: gradients as tensors. It stands on the tape
of `tensors/autograd.py` and on `ek.custom_vjp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from eshkol.errors import DerivativeError, ShapeError
from eshkol.tensors import NAMES
from eshkol.tensors import api as ek
from eshkol.tensors.autograd import enable_grad as enable_grad
from eshkol.tensors.autograd import gradients_of
from eshkol.tensors.autograd import no_grad as no_grad
from eshkol.tensors.autograd import set_grad_enabled as set_grad_enabled
from eshkol.tensors.custom import custom_vjp
from eshkol.tensors.sizes import no_attribute
from eshkol.tensors.value import Tensor


def _several(given: Any) -> list[Any]:
    return [given] if isinstance(given, Tensor) or given is None else list(given)


def _seeds(outputs: Sequence[Tensor], given: Sequence[Any]) -> list[Any]:
    """What gradients begin with: ones for scalars, else what was given."""
    found = []
    for value, seed in zip(outputs, [*given, *[None] * (len(outputs) - len(given))], strict=True):
        if seed is None and value.shape != ():
            raise ShapeError(
                f"the gradient of a value of shape {list(value.shape)} needs a cotangent", span=ek.here(),
                hint="sum it, or give grad_outputs",
            )  # fmt: skip
        found.append((ek.ones_like(value.detach()) if seed is None else seed)._node)
    return found


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of outputs by inputs, which keep their `grad`; create_graph: they can be differentiated again."""
    values, wanted = _several(outputs), _several(inputs)
    for place, x in enumerate(wanted):
        if not x.requires_grad:
            raise DerivativeError(f"input {place} of autograd.grad requires no grad", span=ek.here())
    if not any(value.requires_grad for value in values):
        raise DerivativeError("no output of autograd.grad depends on a tensor with requires_grad", span=ek.here())
    found = gradients_of(
        [value._node for value in values],
        _seeds(values, _several(grad_outputs)),
        [x._node for x in wanted],
        create_graph,
    )
    if not allow_unused and None in found:
        raise DerivativeError(
            f"no output depends on input {found.index(None)} of autograd.grad", span=ek.here(),
            hint="leave it out, or say allow_unused=True to get None for it",
        )  # fmt: skip
    return tuple(None if slope is None else Tensor(slope) for slope in found)


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None) -> None:
    """Add the gradients of values to `grad` of every leaf they were computed from."""
    values = _several(tensors)
    seeds = _several(grad_tensors) if grad_tensors is not None else [None] * len(values)
    for value, seed in zip(values, seeds, strict=True):
        value.backward(seed)


class Context:
    """What `forward` keeps for `backward`: tensors by `save_for_backward`, anything else as attributes."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the derivative."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Nothing to do: what `backward` gives is all the derivative there is."""

    def set_materialize_grads(self, value: bool) -> None:
        """Nothing to do: cotangents are always tensors."""


class Function:
    """A function with a derivative of its own: write static `forward(ctx, ...)` and `backward(ctx, ...)`, call `apply`.

    >>> class Cube(ek.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, slope):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x ** 2 * slope
    >>> Cube.apply(x)
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    setup_context: Callable[..., Any] | None = None

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """What `forward` gives, with the derivative of `backward`."""
        places = [k for k, x in enumerate(args) if isinstance(x, Tensor) and x.dtype.differentiable]
        needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        last: list[Context] = []

        def run(*values: Any) -> Any:
            context, given = Context(needs), list(args)
            for place, value in zip(places, values, strict=True):
                given[place] = value
            if cls.setup_context is None:
                result = cls.forward(context, *given)
            else:
                result = cls.forward(*given)
                cls.setup_context(context, tuple(given), result)
            last[:] = [context]
            return result

        def forth(*values: Any) -> Any:
            result = run(*values)
            kept = [x for x in last[0].saved_tensors if isinstance(x, Tensor)]
            return result, tuple(kept)

        def back(kept: tuple[Any, ...], slopes: Any) -> tuple[Any, ...]:
            context, values = last[0], iter(kept)
            context.saved_tensors = tuple(next(values) if isinstance(x, Tensor) else x for x in context.saved_tensors)
            found = cls.backward(context, *(slopes if isinstance(slopes, tuple) else (slopes,)))
            return cls._cotangents(found, args, places)

        if not places:
            return run()
        passed = custom_vjp(run)
        passed.defvjp(forth, back)
        return passed(*(args[place] for place in places))

    @classmethod
    def _cotangents(cls, found: Any, args: tuple[Any, ...], places: list[int]) -> tuple[Any, ...]:
        given = found if isinstance(found, tuple) else (found,)
        if len(given) != len(args):
            raise DerivativeError(
                f"{cls.__name__}.backward gives {len(given)} gradients for the {len(args)} arguments of forward",
                span=ek.here(), hint="give None for arguments that have none",
            )  # fmt: skip
        return tuple(
            ek.zeros(args[place].shape, dtype=args[place].dtype) if given[place] is None else given[place]
            for place in places
        )


def gradcheck(
    func: Callable[..., Any], inputs: Any, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:  # fmt: skip
    """Whether derivatives agree with differences of values, which wants float64."""
    given = [x.detach() for x in _several(inputs)]
    for place, x in enumerate(given):

        def total(value: Any, place: int = place) -> Any:
            return func(*given[:place], value, *given[place + 1 :]).sum()

        slope = NAMES["grad"](total)(x).numpy()
        base = np.array(x.numpy())
        for index in np.ndindex(base.shape):
            step = np.zeros_like(base)
            step[index] = eps
            change = (total(ek.tensor(base + step)).item() - total(ek.tensor(base - step)).item()) / (2 * eps)
            if not np.isclose(slope[index], change, rtol, atol):
                if raise_exception:
                    raise DerivativeError(
                        f"the derivative by input {place} at {list(index)} is {slope[index]}, and differences "
                        f"of values say {change}", span=ek.here(), hint="differences need dtype=ek.float64",
                    )  # fmt: skip
                return False
    return True


class detect_anomaly:
    """Within it the first operation that makes NaN is an error, as within `ek.check_nan()`."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check = NAMES["check_nan"]()

    def __enter__(self) -> None:
        self._check.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._check.__exit__(*error)


class set_detect_anomaly:
    """Let the first operation that makes NaN be an error, or no more; as `ek.set_check_nan`."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        NAMES["set_check_nan"](mode)

    def __enter__(self) -> None:
        """It is set already."""

    def __exit__(self, *error: object) -> None:
        NAMES["set_check_nan"](False)


def _jacobian(func: Callable[..., Any], inputs: Any, **ignored: Any) -> Any:
    """The Jacobian of a function at a point."""
    return NAMES["jacobian"](func)(inputs)


def _hessian(func: Callable[..., Any], inputs: Any, **ignored: Any) -> Any:
    """The second derivatives of a scalar function at a point."""
    return NAMES["hessian"](func)(inputs)


def _vjp(func: Callable[..., Any], inputs: Any, v: Any = None, **ignored: Any) -> Any:
    """(value, cotangent of the input)."""
    value, pull = NAMES["vjp"](func, inputs)
    found = pull(ek.ones_like(value) if v is None else v)
    return value, found[0] if isinstance(found, tuple) and len(found) == 1 else found


def _jvp(func: Callable[..., Any], inputs: Any, v: Any, **ignored: Any) -> Any:
    """(value, tangent of the value)."""
    return NAMES["jvp"](func, (inputs,), (v,))


functional = SimpleNamespace(jacobian=_jacobian, hessian=_hessian, vjp=_vjp, jvp=_jvp)


def Variable(data: Any, requires_grad: bool = False) -> Any:
    """A tensor; PyTorch has had no other variables since 0.4."""
    return data.requires_grad_() if requires_grad else data


def __getattr__(name: str) -> Any:
    raise no_attribute(name, globals(), "eshkol.autograd")
