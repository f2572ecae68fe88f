"""A program is drawn step by step, on values that are at hand: the oracle has computed them.

So every step fits the shapes and the domain of what it meets, and nothing grows without bound. Extents are mostly 1 and
2: where axes have one element, shapes of different numbers of axes have the same elements, and compilers go wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from random_programs import bodies, complex_steps, length_steps, matrix_steps, steps, table_steps  # noqa: F401  (they enter their kinds)
from random_programs.choosing import Chooser, chance, generator
from random_programs.program import KINDS, Kind, Known, Leaf, Program, Step, alone


@dataclass(frozen=True)
class Sizes:
    """How long axes are, and how many elements a value has at most."""

    extents: tuple[int, ...]
    largest: int
    besides: tuple[str, ...] = ()  # kinds of steps that are drawn besides the others


SMALL = Sizes((1, 1, 1, 2, 2, 3, 4, 5), 400)
# For machines that do with fewer elements otherwise than with more; a few multiples of four among them.
WIDE = Sizes((1, 2, 3, 5, 6, 7, 8, 20, 33, 64), 4000, ("sum beside a row",) * 12)
MOST_AXES = 5
GREATEST = 1e4  # magnitude; what is larger is not gone on with
DTYPES = ("float64",) * 12 + (
    "float32",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int64",
    "int32",
    "uint8",
    "int16",
    "bool",
    "complex128",
    "complex128",
    "complex64",
)
WEIGHTED = [k for k in KINDS.values() for _ in range(k.weight)]


def magnitude(array: Any) -> float:
    """The greatest finite magnitude; infinity where something is not finite."""
    if array.dtype.kind in "biu" or not array.size:
        return 1.0
    wide = np.abs(array.astype(np.complex128))
    return max(1.0, float(wide.max())) if np.isfinite(wide).all() else float("inf")


def leaf(c: Chooser, shape: tuple[int, ...], name: str) -> Leaf:
    """An array of a shape, lying in memory in one of many ways."""
    rng = generator(c)
    if name == "bool":
        array = rng.random(shape) < 0.5
    elif "int" in name:
        array = rng.integers(0, 4, shape).astype(name)
    elif "complex" in name:
        array = np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(name)
    else:
        array = np.asarray(rng.normal(size=shape)).astype(name if name != "bfloat16" else _bfloat16())
    array = np.asarray(array)
    way = c.pick(["plain"] * 6 + ["back", "turned", "every second", "broadcast"])
    if way == "back" and array.ndim:
        return Leaf(np.ascontiguousarray(array[::-1])[::-1])
    if way == "turned" and array.ndim > 1:
        return Leaf(np.ascontiguousarray(array.T).T)
    if way == "every second" and array.ndim:
        return Leaf(np.repeat(array, 2, axis=-1)[..., ::2])
    if way == "broadcast" and array.ndim and array.shape[0]:
        return Leaf(np.broadcast_to(array[:1], array.shape))
    return Leaf(array)


def _bfloat16() -> Any:
    from eshkol.ops import dtypes

    return dtypes.bfloat16.numpy


class Draft:
    """A program while it is drawn."""

    def __init__(self, largest: int) -> None:
        self.largest, self.program, self.values = largest, Program(), []

    def add_leaf(self, made: Leaf) -> int:
        self.program.entries.append(made)
        self.values.append(Known(np.array(made.array), True, magnitude(made.array)))
        return len(self.values) - 1

    def add_step(self, step: Step) -> bool:
        """Take a step in, unless what it gives is too large in some way."""
        found = alone(step, [self.values[k].array for k in step.args])
        if found.size > self.largest or found.ndim > MOST_AXES or magnitude(found) > GREATEST:
            return False
        size = max([magnitude(found), *(self.values[k].size_ for k in step.args)])
        self.program.entries.append(step)
        self.values.append(Known(found, step.exact, size))
        return True


def draw_program(
    c: Chooser, most: int = 10, kinds: Sequence[Kind] = WEIGHTED, dtypes: Sequence[str] = DTYPES, sizes: Sizes = SMALL
) -> tuple[Program, list[Known]]:
    """A program of steps of some kinds, and its values by the oracle."""
    draft = Draft(sizes.largest)
    whole = tuple(c.pick(sizes.extents) for _ in range(c.integer(0, 3)))
    while int(np.prod(whole)) > sizes.largest:
        whole = whole[1:]
    if whole and chance(c, 6):
        whole = (*whole[:-1], 0) if chance(c, 50) else (0, *whole[1:])
    for k in range(c.integer(1, 4)):
        shape = whole[c.integer(0, len(whole)) if chance(c, 40) else 0 :]
        shape = tuple(1 if n and chance(c, 20) else n for n in shape)
        draft.add_leaf(leaf(c, shape, c.pick(dtypes) if k else "float64"))
    kinds = [*kinds, *(KINDS[name] for name in sizes.besides)]
    for _ in range(c.integer(2, most)):
        chosen = c.pick(kinds).choose(c, draft.values)
        if chosen is None:
            continue
        if isinstance(chosen, Step):
            draft.add_step(chosen)
            continue
        args, made = chosen  # a row that brings leaves of its own
        before = len(draft.values)
        places = tuple(draft.add_leaf(a) if isinstance(a, Leaf) else a for a in args)
        if not draft.add_step(made(places)):
            del draft.program.entries[before:], draft.values[before:]
    return draft.program, draft.values
