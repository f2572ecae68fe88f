"""Random numbers as PyTorch draws them: `ek.manual_seed`, `ek.randint(0, 10, (3,))`, `ek.randn_like(x)`, `x.normal_()`.

Comes in: shapes and parameters, in PyTorch's order. Goes out: draws of the rows of the op table, with the next key of
everybody's generator or of `generator=`. A call whose first argument is a key, or that names one, is the row's own:
`ek.normal(key, (2, 3))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from eshkol.errors import TensorError
from eshkol.graph.node import here
from eshkol.ops import dtypes, shapes
from eshkol.support.whole import is_whole
from eshkol.tensors import keys, random
from eshkol.tensors.functions import FUNCTIONS
from eshkol.tensors.keys import Generator
from eshkol.tensors.make import asarray
from eshkol.tensors.value import Tensor


def _draw(name: str, *args: Any, **given: Any) -> Any:
    return getattr(random, name)(*args, **given)


def _made(x: Any, device: Any, requires_grad: bool) -> Any:
    there = x if device is None else x.to(device)
    return there.requires_grad_() if requires_grad else there


def _shape(size: Sequence[Any]) -> tuple[int, ...]:
    return shapes.extents(size[0] if len(size) == 1 else size)


def manual_seed(seed: int) -> Generator:
    """Let everybody's generator begin again from a seed; gives that generator."""
    return keys.default.manual_seed(seed)


def initial_seed() -> int:
    """The seed of everybody's generator."""
    return keys.default.initial_seed()


def get_rng_state() -> Any:
    """Where everybody's generator stands, for `set_rng_state`."""
    return keys.default.state


def set_rng_state(state: Any) -> None:
    """Let everybody's generator go on from where it stood."""
    keys.default.state = state


def rand(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Uniform numbers from 0 to below 1; the shape as integers, or as one tuple."""
    made: Tensor = _made(_draw("uniform", _shape(size), dtype=dtype, generator=generator), device, requires_grad)
    return made


def randn(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Normal numbers of mean 0 and variance 1; the shape as integers, or as one tuple."""
    made: Tensor = _made(_draw("normal", _shape(size), dtype=dtype, generator=generator), device, requires_grad)
    return made


def rand_like(x: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform numbers from 0 to below 1, of the shape of x."""
    return rand(*x.shape, dtype=dtype or x.dtype, device=device, requires_grad=requires_grad)


def randn_like(x: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Normal numbers of mean 0 and variance 1, of the shape of x."""
    return randn(*x.shape, dtype=dtype or x.dtype, device=device, requires_grad=requires_grad)


def randint_like(x: Any, low: int, high: int | None = None, *, dtype: Any = None) -> Tensor:
    """Integers from low (or 0) to before high, of the shape of x."""
    bounds = (0, low) if high is None else (low, high)
    return _integers(*bounds, x.shape, None, dtypes.of(dtype or x.dtype))


def _integers(low: int, high: int, shape: Any, generator: Any, dtype: Any) -> Tensor:
    whole = dtype.is_integer
    drawn: Tensor = _draw("randint", low, high, shape, dtype=dtype if whole else dtypes.int64, generator=generator)
    return drawn if whole else drawn.to(dtype)


# --- names that rows have, too ----------------------------------------------------------------------


def _also(name: str, torch: Callable[..., Any]) -> Callable[..., Any]:
    """The row where a key is given, PyTorch's function of the same name elsewhere."""
    row = FUNCTIONS[name]

    @wraps(row)
    def either(*args: Any, **given: Any) -> Any:
        keyed = "key" in given or (args and random.is_key(args[0]))
        return row(*args, **given) if keyed else torch(*args, **given)

    either.__doc__ = f"{row.__doc__}\n\nWithout a key, as in PyTorch: {torch.__doc__}"
    return either


def _randint(
    low: int = 0, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """randint(low=0, high, size)."""
    if size is None and not is_whole(high):
        low, high, size = 0, low, high
    if size is None or high is None:
        raise TensorError("randint(low, high, size) needs a shape", span=here(), hint="write ek.randint(0, 10, (3,))")
    found = dtypes.int64 if dtype is None else dtypes.of(dtype)
    return _made(_integers(int(low), int(high), shapes.extents(size), generator, found), device, requires_grad)  # type: ignore[no-any-return]


def _randperm(n: int, *, generator: Any = None, dtype: Any = "int64", device: Any = None) -> Tensor:
    """randperm(n)."""
    made: Tensor = _made(_draw("randperm", n, dtype=dtype, generator=generator), device, False)
    return made


def _normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None) -> Tensor:
    """normal(mean, std, size), or of the shape of the tensors mean and std."""
    if size is None and not (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        raise TensorError(
            "normal of two numbers needs a shape",
            span=here(),
            hint="write ek.normal(0.0, 1.0, (2, 3)), or ek.randn(2, 3)",
        )
    shape = shapes.broadcast(asarray(mean).shape, asarray(std).shape) if size is None else shapes.extents(size)
    drawn: Tensor = _draw("normal", shape, dtype=dtype, generator=generator)
    return mean + std * drawn  # type: ignore[no-any-return]


def _bernoulli(x: Any, p: float | None = None, *, generator: Any = None) -> Tensor:
    """bernoulli(x): 1 with the probability that each element of x says, else 0."""
    given = asarray(x)
    drawn: Tensor = _draw("bernoulli", given if p is None else p, shape=given.shape, generator=generator)
    return drawn.to(given.dtype)


def _poisson(rate: Any, generator: Any = None) -> Tensor:
    """poisson(rate): counts in the dtype of the rate, a float."""
    given = asarray(rate)
    kind = given.dtype if given.dtype.is_float else dtypes.float32
    drawn: Tensor = _draw("poisson", given, dtype=kind, generator=generator)
    return drawn


def _multinomial(x: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """multinomial(probabilities, num_samples, replacement=False)."""
    drawn: Tensor = _draw("multinomial", x, num_samples, replacement, generator=generator)
    return drawn


DRAWS: dict[str, Callable[..., Any]] = {
    "bernoulli": _also("bernoulli", _bernoulli), "multinomial": _also("multinomial", _multinomial),
    "normal": _also("normal", _normal), "poisson": _also("poisson", _poisson), "randint": _also("randint", _randint),
    "randperm": _also("randperm", _randperm),
}  # fmt: skip


# --- in place ---------------------------------------------------------------------------------------


def uniform_(x: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with uniform numbers; gives itself."""
    return x._replace(_draw("uniform", x.shape, from_, to, dtype=x.dtype, generator=generator), "uniform_")


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with normal numbers; gives itself."""
    return x._replace(_draw("normal", x.shape, mean, std, dtype=x.dtype, generator=generator), "normal_")


def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill with ones, with a probability, and zeros; gives itself."""
    return x._replace(_draw("bernoulli", p, shape=x.shape, generator=generator).to(x.dtype), "bernoulli_")


def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with draws of the exponential distribution of a rate; gives itself."""
    return x._replace(_draw("exponential", x.shape, 1 / lambd, dtype=x.dtype, generator=generator), "exponential_")


def random_(x: Tensor, from_: int = 0, to: int | None = None, *, generator: Any = None) -> Tensor:
    """Fill with integers, from `from_` to before `to`; gives itself."""
    if to is None:
        from_, to = 0, from_ or (1 << 24 if x.dtype.is_float else 1 << (x.dtype.bits - 1))
    return x._replace(_integers(from_, to, x.shape, generator, x.dtype), "random_")


IN_PLACE: tuple[Callable[..., Tensor], ...] = (uniform_, normal_, bernoulli_, exponential_, random_)
