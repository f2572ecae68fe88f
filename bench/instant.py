"""Small things without `jit`, and calls of small compiled functions: what the way through the library takes.

Ours beside PyTorch, NumPy and JAX, in turns. A call of a row does the thing several times, so that a clock can tell;
rates are things a second. Those in which we are furthest behind come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.harness import Result, race
from eshkol import nn, optim

TITLE = "Instant: small operations, first to last"
CHAIN = 60  # operations one after another
MANY = 50  # tensors of an optimizer
OFTEN = 20  # times that a row does its thing in a call
NUMBERS = [k / 4 for k in range(10)]
Contestants = dict[str, Callable[[], object]]


def run() -> list[Result]:
    rows = (_chain(), _add_and_read(), _elements(), _backward(), _network_step(), *_optimizers(), *_compiled_calls())
    found = [
        race(name, contestants, work=work, unit=unit, budget=0.6)
        for name, work, unit, contestants in (*rows, *_everyday())
    ]
    return sorted(found, key=_against_the_next)


def _against_the_next(result: Result) -> float:
    """The time of PyTorch, or of JAX, for one of ours."""
    ours, *others = result.seconds.values()
    return others[0] / ours if others else 0.0


Row = tuple[str, float, str, Contestants]


def _normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _often(thing: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        for _ in range(OFTEN):
            thing()

    return call


def _of_each(make: Callable[[Any, Any], Callable[[], object]], *arrays: Any, numpy: bool = True) -> Contestants:
    """`make(library, tensors)` for ours, PyTorch and NumPy."""
    found: Contestants = {"eshkol": _often(make(ek, [ek.tensor(a).realize() for a in arrays]))}
    if torch := peers.torch():
        found["PyTorch"] = _often(make(torch, [torch.from_numpy(a.copy()) for a in arrays]))
    if numpy:
        found["NumPy"] = _often(make(np, list(arrays)))
    return found


def _chain() -> Row:
    def make(library: Any, tensors: Any) -> Callable[[], object]:
        def chain() -> object:
            x, y = tensors
            for _ in range(CHAIN // 3):
                x = x * y
                x = x + y
                x = x - 1.0
            return np.asarray(x)

        return chain

    return f"{CHAIN} operations and a read, 100 floats", OFTEN * CHAIN, "op", _of_each(make, _normal(100), _normal(100))


def _add_and_read() -> Row:
    def make(library: Any, tensors: Any) -> Callable[[], object]:
        x, y = tensors
        return lambda: np.asarray(x + y)

    return "an addition and a read, 100 floats", OFTEN, "op", _of_each(make, _normal(100), _normal(100))


def _elements() -> Row:
    def make(library: Any, tensors: Any) -> Callable[[], object]:
        (x,) = tensors
        return lambda: [float(x[k]) for k in range(10)]

    return "an element as a number", OFTEN * 10, "element", _of_each(make, _normal(100))


def _everyday() -> Iterator[Row]:
    """What programs do in loops, each with a look at the result."""
    things: dict[str, Callable[[Any, Any, Any, Any], object]] = {
        "rows 1 to 5 of 10×20": lambda library, x, m, k: np.asarray(m[1:5]),
        "an element of 10×20": lambda library, x, m, k: m[1, 2].item(),
        "rows by a list": lambda library, x, m, k: np.asarray(m[[1, 2]]),
        "what is positive": lambda library, x, m, k: np.asarray(x[x > 0]),
        "a loop over 10 rows": lambda library, x, m, k: list(m),
        "a mean": lambda library, x, m, k: x.mean().item(),
        "the largest": lambda library, x, m, k: x.max().item(),
        "sums of rows": lambda library, x, m, k: np.asarray(m.sum(1)),
        "whether any is positive": lambda library, x, m, k: bool((x > 0).any()),
        "10×20 by 20×5": lambda library, x, m, k: np.asarray(m @ k),
        "a transpose": lambda library, x, m, k: np.asarray(m.T),
        "another shape": lambda library, x, m, k: np.asarray(m.reshape(20, 10)),
        "softmax": lambda library, x, m, k: np.asarray(library.softmax(m, -1)),
        "two one after another": lambda library, x, m, k: np.asarray(library.cat([x, x])),
        "a tensor of a list of 10": lambda library, x, m, k: np.asarray(library.tensor(NUMBERS)),
    }
    given = _normal(100), _normal(10, 20), _normal(20, 5)
    for name, thing in things.items():

        def make(library: Any, tensors: Any, thing: Any = thing) -> Callable[[], object]:
            return lambda: thing(library, *tensors)

        yield name, OFTEN, "time", _of_each(make, *given, numpy=False)


def _loss(library: Any, x: Any, w: Any, v: Any) -> Any:
    return (((x @ w).tanh() @ v) ** 2).mean()


def _backward() -> Row:
    def make(library: Any, tensors: Any) -> Callable[[], object]:
        x, w, v = tensors
        w.requires_grad_()
        v.requires_grad_()

        def step() -> None:
            w.grad = v.grad = None
            _loss(library, x, w, v).backward()

        return step

    given = _normal(64, 20), _normal(20, 32), _normal(32, 1)
    return "a loss of two layers and backward", OFTEN, "step", _of_each(make, *given, numpy=False)


def _network_step() -> Row:
    x, y = _normal(64, 20), np.arange(64) % 10

    def make(library: Any, adam: Any, data: Any) -> Callable[[], object]:
        net = library.Sequential(library.Linear(20, 32), library.ReLU(), library.Linear(32, 10))
        loss, chosen = library.CrossEntropyLoss(), adam(net.parameters(), lr=1e-3)

        def step() -> None:
            chosen.zero_grad()
            loss(net(data[0]), data[1]).backward()
            chosen.step()

        return step

    found: Contestants = {"eshkol": _often(make(nn, optim.SGD, [ek.tensor(x), ek.tensor(y)]))}
    if torch := peers.torch():
        found["PyTorch"] = _often(make(torch.nn, torch.optim.SGD, [torch.from_numpy(x), torch.from_numpy(y)]))
    return "a training step of a small MLP, without jit", OFTEN, "step", found


def _optimizers() -> Iterator[Row]:
    for name in ("SGD", "Adam"):
        found: Contestants = {}
        for who, library, chosen in _with_optimizers(name):
            tensors = [library.tensor(_normal(30, 10)).requires_grad_() for _ in range(MANY)]
            for tensor in tensors:
                tensor.grad = library.tensor(_normal(30, 10))
            step = chosen(tensors, lr=1e-3).step
            found[who] = _often(_again(tensors, library, step))
        yield f"{name} over {MANY} tensors of 300", OFTEN, "step", found


def _with_optimizers(name: str) -> Iterator[tuple[str, Any, Any]]:
    yield "eshkol", ek, getattr(optim, name)
    if torch := peers.torch():
        yield "PyTorch", torch, getattr(torch.optim, name)


def _again(tensors: list[Any], library: Any, step: Callable[[], object]) -> Callable[[], object]:
    """A step with gradients that were not used before, as a loop has them."""
    gradients = [library.tensor(_normal(30, 10)) for _ in tensors]

    def call() -> None:
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = gradient.detach()
        step()

    return call


def _compiled_calls() -> Iterator[Row]:
    def add_one(*given: Any) -> Any:
        return [x + 1.0 for x in given]

    for count in (1, 10, 100):
        arrays = [_normal(10) for _ in range(count)]
        ours, tensors = ek.jit(add_one), [ek.tensor(a).realize() for a in arrays]
        found: Contestants = {"eshkol": _often(lambda f=ours, t=tensors: f(*t))}
        if jax := peers.jax():
            theirs, given = jax.jit(add_one), [jax.numpy.asarray(a) for a in arrays]
            found["JAX"] = _often(lambda f=theirs, t=given: jax.block_until_ready(f(*t)))
        yield f"a call of a compiled function of {count} tensors", OFTEN, "call", found
