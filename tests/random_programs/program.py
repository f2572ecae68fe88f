"""Programs as data: leaves and steps, one after another; a step names the entries that it takes by their places.

What a step computes is said by its kind (`KINDS`): a function of its data and of tensors. `alone` is the oracle: the
step on tensors that hold the values of its arguments and nothing else, every node by its row's NumPy reference, what is
computed at once (`by_interpreter`) too. It knows no pass of the compiler, no kernel, no cache and no other step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import eshkol as ek
from eshkol.graph import interpret
from eshkol.ops import dtypes
from eshkol.schedule.run import execute
from eshkol.schedule.run.resident import moved

Array = Any
Tensor = Any
EXACT = (np.float64, np.complex128, np.int64, np.bool_)  # dtypes on which NumPy computes as we do


@dataclass(frozen=True)
class Kind:
    """A kind of step: `choose(c, values)` gives a step or None; `apply(data, *tensors)` a tensor or several."""

    name: str
    choose: Callable[..., Step | None]
    apply: Callable[..., Any]
    numpys: Callable[..., Any] | None = None  # the same on float64 arrays, where NumPy says it in another way
    plain: Callable[..., Any] | None = None  # what the oracle applies, where `apply` would compute at once
    weight: int = 1
    folds: bool = False  # whether it adds up products in an order of its own: with infinities, any of them or NaN
    changes: bool = False  # whether it changes tensors in place (copies that it makes)


KINDS: dict[str, Kind] = {}


def kind(name: str, apply: Callable[..., Any], **more: Any) -> Callable[..., Callable[..., Step | None]]:
    """Enter a kind of step, of which the function below chooses one."""

    def entered(choose: Callable[..., Step | None]) -> Callable[..., Step | None]:
        assert name not in KINDS
        KINDS[name] = Kind(name, choose, apply, **more)
        return choose

    return entered


@dataclass(frozen=True)
class Leaf:
    """An input of a program: an array as the user has it, whatever its strides.

    One that is `fixed` is as an operation wants it, sorted for instance, and is not given other values.
    """

    array: Array
    fixed: bool = False

    def __str__(self) -> str:
        layout = "" if self.array.flags.c_contiguous else f" strides {self.array.strides}"
        values = np.array2string(self.array, separator=", ", threshold=64).replace("\n", "")
        return f"leaf {self.array.dtype}{list(self.array.shape)}{layout} {values}"


@dataclass(frozen=True)
class Step:
    """One operation on entries before it. `exact`: whether all backends give the same bits, so that it may decide."""

    kind: str
    args: tuple[int, ...]
    data: Any = None
    exact: bool = False

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'v{k}' for k in self.args)}) {self.data!r}"


Entry = Leaf | Step


@dataclass
class Known:
    """A value while a program is drawn."""

    array: Array
    exact: bool
    size_: float = 1.0  # the greatest magnitude of anything it was computed from

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        return int(self.array.ndim)

    @property
    def size(self) -> int:
        return int(self.array.size)

    @property
    def is_float(self) -> bool:
        return dtypes.of(self.array.dtype).is_float

    @property
    def is_real(self) -> bool:
        return self.array.dtype.kind != "c"


def applied(step: Step, tensors: Sequence[Tensor], plain: bool = False) -> Tensor:
    """What a step computes; the first of several results."""
    how = KINDS[step.kind]
    found = (how.plain if plain and how.plain is not None else how.apply)(step.data, *tensors)
    return found[0] if isinstance(found, tuple) else found


@contextmanager
def by_interpreter() -> Iterator[None]:
    """What is computed at once in here, because it may fail on its values, is computed as oracles are.

    Without this a step of linear algebra would be its own oracle, and would be compiled once more.
    """

    def compute(nodes: Sequence[Any]) -> None:
        missing = [node for node in nodes if node.data is None]
        for node, array in zip(missing, interpret.evaluate(missing), strict=True):
            machine = execute.Machines.named(node.device or "cpu")
            execute.give(node, moved(array, node.dtype, machine))

    before, execute.compute = execute.compute, compute
    try:
        yield
    finally:
        execute.compute = before


def interpreted(made: Callable[[], Sequence[Tensor]]) -> list[Array]:
    """What the interpreter computes for tensors that are made here."""
    with by_interpreter():
        return interpret.evaluate([t._node for t in made()])


def alone(step: Step, arrays: Sequence[Array]) -> Array:
    """What a step gives by itself: the oracle."""
    (found,) = interpreted(lambda: [applied(step, [ek.tensor(np.array(a)) for a in arrays], plain=True)])
    other = KINDS[step.kind].numpys
    if other is not None and all(a.dtype in EXACT for a in arrays):
        with np.errstate(all="ignore"):
            wanted = np.asarray(other(step.data, *arrays))
        assert found.shape == wanted.shape, f"{step}: the reference has shape {found.shape}, NumPy {wanted.shape}"
        if not np.array_equal(found, wanted):
            close = np.isclose(found, wanted, rtol=1e-9, atol=1e-9 * max(1.0, _largest(wanted)), equal_nan=True)
            if KINDS[step.kind].folds:
                close |= ~np.isfinite(found) & ~np.isfinite(wanted)
            assert close.all(), f"{step} of {arrays}: the reference gives {found}, NumPy {wanted}"
    return found


def _largest(array: Array) -> float:
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind in "fc" else np.zeros(0)
    return float(finite.max(initial=0.0))


@dataclass
class Program:
    """Entries in order; the values of all of them are its results."""

    entries: list[Entry] = field(default_factory=list)

    @property
    def leaves(self) -> list[int]:
        return [k for k, e in enumerate(self.entries) if isinstance(e, Leaf)]

    @property
    def steps(self) -> list[int]:
        return [k for k, e in enumerate(self.entries) if isinstance(e, Step)]

    def inputs(self) -> list[Array]:
        return [entry.array for entry in self.entries if isinstance(entry, Leaf)]

    def tensors(self, inputs: Sequence[Tensor], each: Callable[[Tensor], Tensor] = lambda t: t) -> list[Tensor]:
        """The values of all entries, for tensors in place of its leaves; `each` may look at a value once it is made."""
        feed = iter(inputs)
        values: list[Tensor] = []
        for entry in self.entries:
            made = (
                next(feed) if isinstance(entry, Leaf) else each(applied(entry, [values[k] for k in entry.args]))
            )  # fmt: skip
            values.append(made)
        return values

    def arrays(self, inputs: Sequence[Array]) -> list[Array]:
        """The same by the oracle."""
        feed = iter(inputs)
        values: list[Array] = []
        for entry in self.entries:
            values.append(
                np.asarray(next(feed)) if isinstance(entry, Leaf) else alone(entry, [values[k] for k in entry.args])
            )
        return values

    def __str__(self) -> str:
        return "\n".join(f"  v{k} = {entry}" for k, entry in enumerate(self.entries))
