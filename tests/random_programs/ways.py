"""The ways to compute a program, each compared with the oracle.

Values: lazily and read in any order, one step at a time, under jit, under jit with donated arguments, again with other
values, with the same tensor given twice, with Python numbers that change. Derivatives: reverse and forward, compiled
and not, of second order, by `backward` in a loop; their oracle is the interpreter, and differences of its values.
vmap, and vmap of derivatives: their oracle is a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import eshkol as ek
from eshkol.errors import EshkolError
from random_programs.choosing import Chooser, chance, generator
from random_programs.comparing import Different, compare, units
from random_programs.drawing import GREATEST, magnitude
from random_programs.program import Known, Leaf, Program, Step, interpreted

Array = Any


class Skipped(Exception):
    """This way does not suit this program."""


@dataclass
class Run:
    """A program with its values, on the way to being computed again."""

    program: Program
    values: list[Known]
    c: Chooser
    losses: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.losses = _losses(self.program, [v.array for v in self.values])
        self.sizes = [v.size_ for v in self.values]
        self.arrays = [v.array for v in self.values]
        entries, first = self.program.entries, self._first_step()
        self.free = [k for k in self.program.leaves if k < first and not entries[k].fixed]  # their values may be any

    def _first_step(self) -> int:
        return min(self.program.steps, default=0)

    def smooth(self) -> list[int]:
        """Places, among the leaves, of those by which derivatives are taken."""
        found = [n for n, k in enumerate(self.program.leaves) if k in self.free and self.arrays[k].dtype == np.float64]
        if not found:
            raise Skipped
        return found

    def check(self, k: int, got: Any, what: str, wanted: Sequence[Array] | None = None) -> None:
        arrays = self.arrays if wanted is None else wanted
        scale = max(self.sizes[k], magnitude(arrays[k]))
        compare(got, arrays[k], scale, self.losses[k], f"{what}: v{k}")

    def tensors(self, arrays: Sequence[Array] | None = None) -> list[Any]:
        """The leaves as tensors, made in one of several ways."""
        given = self.program.inputs() if arrays is None else arrays
        make = ek.from_numpy if chance(self.c, 30) else ek.tensor
        return [make(a) for a in given]

    def others(self) -> tuple[list[Array], list[Array]]:
        """Other values of the leaves, and what the oracle makes of them."""
        rng = generator(self.c)
        inputs = self.program.inputs()
        for n, k in enumerate(self.program.leaves):
            if k in self.free and inputs[n].dtype.kind not in "biu":
                inputs[n] = rng.permutation(np.array(inputs[n]).reshape(-1)).reshape(inputs[n].shape)
        return inputs, self.computed(inputs)

    def computed(self, inputs: Sequence[Array]) -> list[Array]:
        with np.errstate(all="ignore"):
            try:
                found = self.program.arrays(inputs)
            # An index is out of range now, or the like; or lengths of several axes multiply.
            except (EshkolError, IndexError, MemoryError) as error:
                raise Skipped from error
        if any(magnitude(a) > GREATEST for a in found):
            raise Skipped
        return found


def _losses(program: Program, arrays: Sequence[Array]) -> list[float]:
    found: list[float] = []
    for entry, array in zip(program.entries, arrays, strict=True):
        own = units(array.dtype) if array.dtype.kind not in "biu" else 0.0
        if own and isinstance(entry, Step) and any(arrays[k].dtype.kind in "biu" for k in entry.args):
            own = max(own, units(np.float32))  # integers that are brought into a domain become floats of the default
        found.append(max([own, *(found[k] for k in entry.args)] if isinstance(entry, Step) else [own]))
    return found


# --- values ---------------------------------------------------------------------------------------


def lazily(run: Run) -> None:
    """All values as one graph; some are read before others."""
    tensors = run.program.tensors(run.tensors())
    order = list(range(len(tensors)))
    first = run.c.integer(0, len(order) - 1)
    for k in [*order[first:], *order[:first]] if chance(run.c, 50) else reversed(order):
        run.check(k, tensors[k].numpy(), "lazily")


def one_by_one(run: Run) -> None:
    """Each value is read once it is made."""

    def read(t: Any) -> Any:
        t.numpy()
        return t

    for k, t in enumerate(run.program.tensors(run.tensors(), each=read)):
        run.check(k, t.numpy(), "one by one")


def compiled(run: Run) -> None:
    """Under jit, twice: with other values, and with arguments given away."""
    wanted = sorted({run.c.integer(0, len(run.values) - 1) for _ in range(3)} | {len(run.values) - 1})
    donate = tuple(range(len(run.program.leaves))) if chance(run.c, 30) else ()

    def chosen(*xs: Any) -> Any:
        found = run.program.tensors(xs)
        return [found[k] for k in wanted]

    function = ek.jit(chosen, donate=donate)
    for k, t in zip(wanted, function(*run.tensors()), strict=True):
        run.check(k, t.numpy(), "jit")
    inputs, arrays = run.others()
    for k, t in zip(wanted, function(*run.tensors(inputs)), strict=True):
        run.check(k, t.numpy(), "jit of other values", arrays)


def again(run: Run) -> None:
    """Without jit, again with other values and other numbers, so that what was kept is found."""
    run.program.tensors(run.tensors())[-1].numpy()
    program = replace(run.program, entries=[_other_number(e) for e in run.program.entries])
    other = Run(program, run.values, run.c)
    inputs, arrays = other.others()
    for k, t in enumerate(program.tensors(run.tensors(inputs))):
        run.check(k, t.numpy(), "again with other values", arrays)


def _other_number(entry: Leaf | Step) -> Leaf | Step:
    if isinstance(entry, Step) and entry.kind == "number":
        name, number, first = entry.data
        return replace(entry, data=(name, number + 1 if isinstance(number, int) else number * 1.5 - 0.25, first))
    return entry


def given_twice(run: Run) -> None:
    """The same tensor for two leaves."""
    leaves = run.program.leaves
    pairs = [
        (i, j) for i, a in enumerate(leaves) for j, b in enumerate(leaves[:i])
        if a in run.free and b in run.free and run.arrays[a].shape == run.arrays[b].shape
        and run.arrays[a].dtype == run.arrays[b].dtype and run.arrays[a].dtype.kind not in "iub"
    ]  # fmt: skip
    if not pairs:
        raise Skipped
    i, j = run.c.pick(pairs)
    inputs = run.program.inputs()
    inputs[i] = inputs[j]
    arrays = run.computed(inputs)
    tensors = run.tensors(inputs)
    tensors[i] = tensors[j]
    last = len(arrays) - 1
    function = ek.jit(lambda *xs: run.program.tensors(xs)[-1], donate=(i,) if chance(run.c, 30) else ())
    run.check(last, function(*run.tensors(inputs)).numpy(), "jit, before one is given twice", arrays)
    run.check(last, function(*tensors).numpy(), "jit, one given twice", arrays)


def lengths(run: Run) -> None:
    """Under jit with other lengths of an axis, which one trace may serve; derivatives, too."""
    extents = sorted({n for k in run.free for n in run.arrays[k].shape if n > 1 and run.arrays[k].size})
    if not extents:
        raise Skipped
    size, rng = run.c.pick(extents), generator(run.c)
    sizes = [size, run.c.integer(2, 9), run.c.integer(10, 40), run.c.integer(2, 9)]
    places = [] if chance(run.c, 60) else [n for n in run.smooth() if run.arrays[run.program.leaves[n]].size]
    last = max(run.program.steps)

    def total(*xs: Any) -> Any:
        return ek.sin(run.program.tensors(xs)[last].astype(ek.float64)).sum()

    derived = bool(places) and run.values[last].is_float

    def chosen(*xs: Any) -> Any:
        found = run.program.tensors(xs)
        return found, list(ek.grad(total, argnums=tuple(places))(*xs)) if derived else []

    function = ek.jit(chosen, dynamic=run.c.pick([None, True]))
    for number, n in enumerate(sizes):
        inputs = run.program.inputs()
        for place, k in enumerate(run.program.leaves):
            if k in run.free and inputs[place].size:
                shape = [n if m == size else m for m in inputs[place].shape]
                inputs[place] = rng.choice(np.array(inputs[place]).reshape(-1), shape)
        try:
            arrays = run.computed(inputs)
        except Skipped:
            if not number:
                raise
            continue  # it says something of one length alone
        found, slopes = function(*run.tensors(inputs))
        for k, t in enumerate(found):
            run.check(k, t.numpy(), f"jit of {size} as {n}", arrays)
        if derived:
            fresh = [ek.tensor(np.array(a)) for a in inputs]
            wanted = interpreted(lambda fresh=fresh: ek.grad(total, argnums=tuple(places))(*fresh))
            slopes_compared(run, [g.numpy() for g in slopes], wanted, f"jit of grad, {size} as {n}")


# --- derivatives ----------------------------------------------------------------------------------


def weighed(run: Run) -> Callable[..., Any]:
    """A number that values of the program take part in."""
    rng = generator(run.c)
    real = [k for k in run.program.steps if run.values[k].is_float and run.values[k].size]
    if not real:
        raise Skipped
    chosen = [k for k in real if k == real[-1] or chance(run.c, 40)]
    weights = {k: rng.normal(size=run.values[k].shape) / max(1, run.values[k].size) for k in chosen}

    def loss(*xs: Any) -> Any:
        values = run.program.tensors(xs)
        return sum((values[k].astype(ek.float64) * ek.tensor(w)).sum() for k, w in weights.items())

    def numbers(arrays: Sequence[Array]) -> float:
        return float(sum((arrays[k].astype(np.float64) * w).sum() for k, w in weights.items()))

    loss.numbers = numbers  # type: ignore[attr-defined]
    return loss


def slopes_compared(run: Run, got: Sequence[Any], wanted: Sequence[Any], what: str) -> None:
    scale = max([1.0, *(magnitude(np.asarray(w)) for w in wanted)]) * max(run.sizes)
    if not np.isfinite(scale):
        raise Skipped
    for n, (g, w) in enumerate(zip(got, wanted, strict=True)):
        compare(np.asarray(g), np.asarray(w), scale, 10 * max(run.losses), f"{what}: slope by leaf {n}")


def slopes(run: Run) -> None:
    """Gradients: by the compiler and by the interpreter, and in one direction by differences of the oracle."""
    places, loss = run.smooth(), weighed(run)
    found = ek.grad(loss, argnums=tuple(places))(*run.tensors())
    wanted = interpreted(lambda: found)
    near = Neighbourhood(run, loss, places) if max(run.losses) <= units(np.float64) else None
    try:
        slopes_compared(run, [g.numpy() for g in found], wanted, "grad")
        if chance(run.c, 50):
            compiled = ek.jit(ek.grad(loss, argnums=tuple(places)))(*run.tensors())
            slopes_compared(run, [g.numpy() for g in compiled], wanted, "jit of grad")
    except Different:
        if near is not None and near.kinked():
            raise Skipped from None  # of sums that are equal but for rounding, each may take another as the least
        raise
    if near is not None:
        near.refuse_other(wanted)


class Neighbourhood:
    """The oracle's values around the point at which a gradient is taken, along directions that are drawn."""

    def __init__(self, run: Run, loss: Any, places: Sequence[int]) -> None:
        self.run, self.loss, self.places = run, loss, places
        self.rng = generator(run.c)
        self.base = run.program.inputs()
        self.direction = self._drawn()

    def _drawn(self) -> dict[int, Array]:
        return {n: self.rng.normal(size=self.base[n].shape) for n in self.places}

    def at(self, by: float, along: dict[int, Array]) -> float:
        moved = [a + by * along[n] if n in along else a for n, a in enumerate(self.base)]
        return float(self.loss.numbers(self.run.computed(moved)))

    def difference(self, h: float, along: dict[int, Array]) -> float:
        near, far = (self.at(by, along) - self.at(-by, along) for by in (h, 2 * h))
        return (8 * near - far) / (12 * h)

    def bend(self, h: float) -> float:
        """By how much the slopes to both sides differ: less with a smaller step, but at a kink."""
        return abs(self.at(h, self.direction) + self.at(-h, self.direction) - 2 * self.at(0, self.direction)) / h

    def kinked(self) -> bool:
        """Whether there is no gradient: of a maximum of equal numbers, most likely, or of a median of them."""
        if self.bend(5e-4) > max(0.75 * self.bend(1e-3), 1e-9):
            return True
        slope = self.difference(5e-4, self.direction)
        size = max(1.0, abs(slope), *self.run.sizes)
        for _ in range(8):  # slopes that do not add up; one pair alone may by chance
            second = self._drawn()
            both = {n: self.direction[n] + second[n] for n in self.places}
            if abs(slope + self.difference(5e-4, second) - self.difference(5e-4, both)) > 1e-6 * size:
                return True
        return False

    def refuse_other(self, slopes: Sequence[Array]) -> None:
        """Refuse slopes that differences of the oracle do not have."""
        one, other = self.difference(1e-3, self.direction), self.difference(5e-4, self.direction)
        got = sum(float((np.asarray(s) * self.direction[n]).sum()) for s, n in zip(slopes, self.places, strict=True))
        size = max(1.0, abs(one), *self.run.sizes)
        if abs(one - other) > 1e-7 * size:
            raise Skipped  # a kink lies between, or the function bends too much
        if abs(got - other) > 1e-5 * size:
            if self.kinked():
                raise Skipped
            raise Different(f"grad: {got} along a direction, differences say {other}")


def pushed(run: Run) -> None:
    """Forward derivatives."""
    places, loss = run.smooth(), weighed(run)
    rng = generator(run.c)
    tensors = run.tensors()
    chosen = [tensors[n] for n in places]
    tangents = [ek.tensor(rng.normal(size=t.shape)) for t in chosen]

    def of_chosen(*xs: Any) -> Any:
        feed = iter(xs)
        return loss(*(next(feed) if n in places else t for n, t in enumerate(tensors)))

    value, slope = ek.jvp(of_chosen, chosen, tangents)
    wanted = interpreted(lambda: [value, slope])
    slopes_compared(run, [value.numpy(), slope.numpy()], wanted, "jvp")
    back = interpreted(lambda: ek.grad(of_chosen, argnums=tuple(range(len(chosen))))(*chosen))
    total = sum(float((np.asarray(b) * t.numpy()).sum()) for b, t in zip(back, tangents, strict=True))
    slopes_compared(run, [np.asarray(total)], [np.asarray(wanted[1], np.float64)], "jvp and grad")


def twice(run: Run) -> None:
    """Second derivatives in a direction."""
    places, loss = run.smooth(), weighed(run)
    rng = generator(run.c)
    n = run.c.pick(places)
    tensors = run.tensors()
    direction = ek.tensor(rng.normal(size=tensors[n].shape))

    def slope(x: Any) -> Any:
        return (ek.grad(lambda y: loss(*(y if k == n else t for k, t in enumerate(tensors))))(x) * direction).sum()

    found = ek.jit(ek.grad(slope))(tensors[n]) if chance(run.c, 40) else ek.grad(slope)(tensors[n])
    (wanted,) = interpreted(lambda: [ek.grad(slope)(tensors[n])])
    slopes_compared(run, [found.numpy()], [wanted], "grad of grad")


def backward(run: Run) -> None:
    """`backward` in a loop whose graph comes again with other values."""
    places, loss = run.smooth(), weighed(run)
    rounds = [run.program.inputs()]
    for _ in range(2):
        rounds.append(run.others()[0])
    for number, inputs in enumerate(rounds):
        tensors = run.tensors(inputs)
        for n in places:
            tensors[n] = ek.tensor(np.array(inputs[n]), requires_grad=True)
        loss(*tensors).backward()
        fresh = [ek.tensor(np.array(a)) for a in inputs]
        wanted = interpreted(lambda fresh=fresh: ek.grad(loss, argnums=tuple(places))(*fresh))
        got = [
            np.zeros(w.shape) if (g := tensors[n].grad) is None else g.numpy()
            for n, w in zip(places, wanted, strict=True)
        ]
        slopes_compared(run, got, wanted, f"backward, round {number}")


# --- vmap -----------------------------------------------------------------------------------------


def mapped(run: Run) -> None:
    """Several examples at once."""
    if not run.free:
        raise Skipped
    examples = [run.program.inputs(), *(run.others()[0] for _ in range(2))]
    leaves = run.program.leaves
    axes = tuple(0 if k in run.free and (n == 0 or chance(run.c, 50)) else None for n, k in enumerate(leaves))
    first = examples[0]
    examples = [[e if a == 0 else f for e, f, a in zip(x, first, axes, strict=True)] for x in examples]
    wanted = [run.computed(x) for x in examples]
    stacked = [
        ek.tensor(np.stack(x) if a == 0 else x[0]) for x, a in zip(zip(*examples, strict=True), axes, strict=True)
    ]
    function = ek.vmap(lambda *xs: tuple(run.program.tensors(xs)), in_axes=axes)
    found = (ek.jit(function) if chance(run.c, 40) else function)(*stacked)
    for k, t in enumerate(found):
        for n, arrays in enumerate(wanted):
            run.check(k, t.numpy()[n], f"vmap, example {n}", arrays)


def mapped_slopes(run: Run) -> None:
    """vmap of a gradient is the gradient of each example."""
    places, loss = run.smooth(), weighed(run)
    n = run.c.pick(places)
    inputs = run.program.inputs()
    rng = generator(run.c)
    batch = [inputs[n], rng.permutation(np.array(inputs[n]).reshape(-1)).reshape(inputs[n].shape)]
    tensors = run.tensors()

    def one(x: Any) -> Any:
        return ek.grad(lambda y: loss(*(y if k == n else t for k, t in enumerate(tensors))))(x)

    found = ek.vmap(one)(ek.tensor(np.stack(batch))).numpy()
    for example, got in zip(batch, found, strict=True):
        run.computed([example if k == n else a for k, a in enumerate(inputs)])
        wanted = interpreted(lambda example=example: [one(ek.tensor(np.array(example)))])
        slopes_compared(run, [got], wanted, "vmap of grad")


WAYS: dict[str, tuple[Callable[[Run], None], int]] = {
    "lazily": (lazily, 6), "one by one": (one_by_one, 2), "jit": (compiled, 4), "again": (again, 3),
    "given twice": (given_twice, 2), "lengths": (lengths, 3), "grad": (slopes, 5), "jvp": (pushed, 2),
    "grad of grad": (twice, 2), "backward": (backward, 3), "vmap": (mapped, 2), "vmap of grad": (mapped_slopes, 1),
}  # fmt: skip
WEIGHTED = [name for name, (_, weight) in WAYS.items() for _ in range(weight)]
REFUSALS = (  # said by name, so not silent
    "has no derivative", "no derivative", "cannot be batched", "are zero", "depends on no tensor",
    "has no reverse derivative",
)  # fmt: skip


def computed_in(name: str, run: Run, backend: str) -> bool:
    """Compute a program in one way; whether it suited."""
    try:
        with ek.use_backend(backend):
            WAYS[name][0](run)
    except Skipped:
        return False
    except EshkolError as error:
        if any(text in str(error) for text in REFUSALS):
            return False
        raise
    return True
