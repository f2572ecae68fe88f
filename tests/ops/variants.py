"""Cases besides a row's own samples, derived from its signature: axes, flags, options, and shapes that broadcast."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from eshkol.ops.row import Draw, Op, Sample

ELEMENTWISE = (
    "arithmetic", "functions", "activations", "comparison", "logic", "bits", "complex numbers", "special functions",
)  # fmt: skip
SHAPES: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [((),), ((1,),), ((2, 1, 3),)],
    2: [((), ()), ((1,), (3,)), ((3, 1, 2), (2, 1)), ((1, 1), (1,)), ((2, 3), ()), ((3,), (2, 1, 1))],
    3: [((), (), ()), ((2, 1), (3,), ()), ((1,), (2, 1, 3), (2, 1))],
}  # how operands of an elementwise op may broadcast


def first_draw(sample: Sample) -> Draw | None:
    for arg in sample.args:
        found = arg[0] if isinstance(arg, list) and arg else arg
        if isinstance(found, Draw):
            return found
    return None


def rank_of(sample: Sample) -> int:
    found = first_draw(sample)
    return 0 if found is None else len(found.shape)


def values_of(name: str, annotation: str, rank: int) -> list[Any]:
    """What a parameter may be instead, by its name and annotation."""
    axes = list(range(-rank, rank))
    if name == "axis" and annotation == "Axes":
        pairs = [(a, b) for a, b in itertools.combinations(range(rank), 2)]
        return [None, (), *axes, *pairs, *([(-1, 0)] if rank > 1 else []), tuple(range(rank))]
    if name == "axis" and annotation in ("int", "int | None"):
        return axes if annotation == "int" else [None, *axes]
    if name == "axes" and annotation == "int | Sequence[int] | None":
        return [None, *axes]
    if annotation == "bool":
        return [False, True]
    if name == "reduction":
        return ["mean", "sum", "none"]
    if name in ("k", "offset") and annotation == "int":
        return [-2, -1, 0, 1, 3]
    return []


def of_signature(op: Op, fixed: frozenset[str]) -> Iterator[Sample]:
    """The row's samples with other axes and options: each alone, flags together with axes."""
    for sample in op.samples:
        rank = rank_of(sample)
        free: dict[str, list[Any]] = {}
        for place, parameter in enumerate(op.signature.parameters.values()):
            if place < len(sample.args) or parameter.name in fixed or parameter.default is parameter.empty:
                continue
            found = values_of(parameter.name, str(parameter.annotation), rank)
            if found:
                free[parameter.name] = found
        for name, values in free.items():
            for value in values:
                yield replace(sample, attrs={**sample.attrs, name: value})
                if name.startswith("ax") and "keepdims" in free:
                    yield replace(sample, attrs={**sample.attrs, name: value, "keepdims": True})


def of_shapes(op: Op) -> Iterator[Sample]:
    """The first sample of an elementwise op with other shapes."""
    if not (op.elementwise or op.group in ELEMENTWISE):
        return
    sample = op.samples[0]
    draws = [a for a in sample.args if isinstance(a, Draw)]
    if len(draws) != len(sample.args) or any(d.make for d in draws) or len(draws) not in SHAPES:
        return
    for shapes in SHAPES[len(draws)]:
        yield replace(sample, args=tuple(replace(d, shape=s) for d, s in zip(draws, shapes, strict=True)))


def is_empty(sample: Sample) -> bool:
    """Whether a tensor of it has no elements."""
    draws = [d for a in sample.args for d in (a if isinstance(a, list) else [a]) if isinstance(d, Draw)]
    return any(0 in d.shape for d in draws)


def varies(sample: Sample) -> bool:
    """Whether the dtype under test makes a difference."""
    draws = [d for a in sample.args for d in (a if isinstance(a, list) else [a]) if isinstance(d, Draw)]
    return any(d.kind in ("any", "float", "complex") for d in draws)
