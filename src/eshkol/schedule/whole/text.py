"""StableHLO as text, while it is written: names, types, regions, and the values that loops carry.

Comes in: operations, one after another. Goes out: lines. Every operation is written in MLIR's generic form. What may
change in a loop or a branch stands in a *cell*; a region that changes a cell gets it as an argument and gives it back,
one that does not sees the value outside. One cell holds the number of the first check that failed, 0 for none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape

ELEMENTS: dict[DType, str] = {
    **{d: f"{'' if d.signed else 'u'}i{d.bits}" for d in dtypes.INTEGERS},
    dtypes.bool_: "i1", dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.float32: "f32", dtypes.float64: "f64",
    dtypes.complex64: "complex<f32>", dtypes.complex128: "complex<f64>",
}  # fmt: skip


class Value(NamedTuple):
    """An array in the text: its name, shape and dtype."""

    name: str
    shape: Shape
    dtype: DType

    @property
    def type(self) -> str:
        return type_of(self.shape, self.dtype)


class Cell:
    """A place for a value that regions may change."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


def type_of(shape: Shape, dtype: DType) -> str:
    """The type of an array, as the text has it."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{ELEMENTS[dtype]}>"


def numbers(given: Sequence[int]) -> str:
    """An attribute that is a list of numbers."""
    return f"array<i64: {', '.join(map(str, given))}>" if given else "array<i64>"


def literal(number: Any, dtype: DType) -> str:
    """A number as the text has it: floats by their bits, so that it is exactly that one."""
    if dtype.is_bool:
        return "true" if number else "false"
    if dtype.is_integer:
        return str(int(number))
    if dtype.is_complex:
        return f"({literal(number.real, dtype.real)}, {literal(number.imag, dtype.real)})"
    with np.errstate(over="ignore"):
        raw = np.asarray(number).astype(dtype.numpy).tobytes()
    return f"0x{raw[::-1].hex().upper()}"


class Writer:
    """Lines of a function under construction."""

    def __init__(self) -> None:
        self._count = 0
        self.buffers: list[list[str]] = [[]]  # of the regions that are open, the innermost last
        self.cells: list[Cell] = []

    # --- lines ---------------------------------------------------------------------------------------

    def fresh(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def line(self, text: str) -> None:
        self.buffers[-1].append(text)

    def op(self, name: str, operands: Sequence[Value], shape: Shape, dtype: DType, attributes: str = "") -> Value:
        """An operation with one result."""
        return self.several(name, operands, [(shape, dtype)], attributes)[0]

    def several(
        self, name: str, operands: Sequence[Value], results: Sequence[tuple[Shape, DType]], attributes: str = "",
        regions: Sequence[Sequence[str]] = (),
    ) -> list[Value]:  # fmt: skip
        """An operation with several results, and maybe regions."""
        target = self.fresh()
        dialect = "" if "." in name else "stablehlo."
        types = [type_of(*result) for result in results]
        head = f"{target}{f':{len(results)}' if len(results) != 1 else ''} = " if results else ""
        head += f'"{dialect}{name}"({", ".join(x.name for x in operands)})'
        tail = f"{f' {{{attributes}}}' if attributes else ''} : ({', '.join(x.type for x in operands)}) -> "
        tail += types[0] if len(types) == 1 else f"({', '.join(types)})"
        if regions:
            self.line(f"{head} ({{")
            for number, region in enumerate(regions):
                self.buffers[-1] += ["  " + line for line in region]
                self.line("})" + tail if number == len(regions) - 1 else "}, {")
        else:
            self.line(head + tail)
        if len(results) == 1:
            return [Value(target, *results[0])]
        return [Value(f"{target}#{k}", *result) for k, result in enumerate(results)]

    @contextmanager
    def region(self) -> Iterator[list[str]]:
        """Lines written within it are a region's."""
        lines: list[str] = []
        self.buffers.append(lines)
        yield lines
        found = self.buffers.pop()
        assert found is lines

    def give(self, values: Sequence[Value]) -> None:
        """The end of a region."""
        types = ", ".join(x.type for x in values)
        self.line(f'"stablehlo.return"({", ".join(x.name for x in values)}) : ({types}) -> ()')

    @contextmanager
    def at_depth(self, depth: int) -> Iterator[None]:
        """Lines written within it stand in an outer region, before what is open in it."""
        inner, self.buffers = self.buffers, self.buffers[:depth]
        try:
            yield
        finally:
            self.buffers = inner

    # --- loops and branches --------------------------------------------------------------------------

    def cell(self, value: Value) -> Cell:
        """A new cell; it lives until the region ends that it is made in."""
        made = Cell(value)
        self.cells.append(made)
        return made

    @contextmanager
    def while_(self, going: Callable[[], Value]) -> Iterator[None]:
        """A loop around what is written within, for as long as `going()`, written at its head, holds."""
        cells = list(self.cells)
        before = [c.value for c in cells]
        for c in cells:
            c.value = c.value._replace(name=self.fresh())
        inside = [c.value for c in cells]
        with self.region() as body:
            yield
        after = [c.value for c in cells]
        changed = [k for k in range(len(cells)) if after[k] != inside[k]]
        for c, value in zip(cells, inside, strict=True):
            c.value = value
        del self.cells[len(cells) :]
        with self.region() as test:
            self.give([going()])
        with self.region() as end:
            self.give([after[k] for k in changed])
        renamed = {inside[k].name: before[k].name for k in range(len(cells)) if k not in changed}
        arguments = ", ".join(f"{inside[k].name}: {inside[k].type}" for k in changed)
        regions = [[f"^bb0({arguments}):", *renaming(lines, renamed)] for lines in (test, body + end)]
        results = [(before[k].shape, before[k].dtype) for k in changed]
        found = self.several("while", [before[k] for k in changed], results, "", regions)
        for k, c in enumerate(cells):
            c.value = found[changed.index(k)] if k in changed else before[k]

    def if_(self, truth: Value, branches: Sequence[Callable[[], Sequence[Value]]]) -> list[Value]:
        """What one of two branches gives."""
        cells = list(self.cells)
        before = [c.value for c in cells]
        bodies, given, after = [], [], []
        for branch in branches:
            with self.region() as body:
                given.append(list(branch()))
            after.append([c.value for c in cells])
            del self.cells[len(cells) :]
            for c, value in zip(cells, before, strict=True):
                c.value = value
            bodies.append(body)
        changed = [k for k in range(len(cells)) if any(values[k] != before[k] for values in after)]
        for body, results, values in zip(bodies, given, after, strict=True):
            with self.region() as end:
                self.give([*results, *(values[k] for k in changed)])
            body += end
        kinds = [(x.shape, x.dtype) for x in [*given[0], *(before[k] for k in changed)]]
        if not kinds:
            return []
        found = self.several("if", [truth], kinds, "", bodies)
        for value, k in zip(found[len(given[0]) :], changed, strict=True):
            cells[k].value = value
        return found[: len(given[0])]


_NAME = re.compile(r"%\d+(?!\d|#)")


def renaming(lines: Sequence[str], renamed: dict[str, str]) -> list[str]:
    """Lines in which some values have other names."""
    if not renamed:
        return list(lines)
    return [_NAME.sub(lambda found: renamed.get(found.group(), found.group()), line) for line in lines]
