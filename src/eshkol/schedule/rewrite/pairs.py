"""Complex numbers as pairs of floats, for array instructions that know floats alone: a pass over graphs.

Comes in: the results of a function. Goes out: equivalent nodes, in which Fourier transforms are rows of one array
instruction over floats with one more axis, and products of matrices are products of matrices of floats. Pairs are the
memory of the complex numbers that they are (`PAIRS`, `NUMBERS`), so nothing is copied where one becomes the other. All
else stays as it is: kernels compute complex numbers as such (`Op.of_complex`).

On machines of blocks transforms are kernels of complex numbers (`signals.py`). Bodies of loops and branches are graphs
by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.graph import interpret
from eshkol.graph.node import Current, Node, make, remade
from eshkol.ops.contraction import matrix_product
from eshkol.ops.elementwise import cast, mul, real, where
from eshkol.ops.fourier import dft
from eshkol.ops.movement import permute, reshape
from eshkol.ops.row import Aval, HasAval, KernelOp, Op, Push, Shape, row
from eshkol.ops.shapes import count
from eshkol.ops.slicing import pad_constant, slice_
from eshkol.ops.structural import CONST, NUMBERS, PAIRS, PLACEHOLDER
from eshkol.schedule.kernels.block_fourier import BLOCK_FOURIER
from eshkol.schedule.kernels.transforms import (
    FOURIER,
    PLANES,
    SIGNALS,
    SPLIT,
    SPLIT_SIGNALS,
    Halves,
    as_planes,
    is_transformed,
    pairs_of_spectrum,
    spectrum_of_pairs,
    transformed,
)
from eshkol.schedule.rewrite.signals import LONGEST, block_transformed
from eshkol.schedule.rewrite.walk import in_order, visible

LARGER = 4  # times as many numbers in the right factor of a product as in the left one
SHORTEST_REAL = 16  # real numbers that are worth being transformed as half as many complex ones


def as_pairs(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of pairs where something is computed by array instructions with complex numbers."""
    nodes = in_order(results)
    if not any(map(_is_paired, nodes)):
        return [*results]
    walk = _Walk(nodes, results, target)
    previous = Current.site
    try:
        for node in nodes:
            Current.site = node.site
            walk.take(node)
    finally:
        Current.site = previous
    return [walk.made[node] for node in results]


def _is_transform(node: Node) -> bool:
    return node.op is dft and node.data is None and is_transformed(node.inputs[0], node.attrs.axis)


def _is_paired(node: Node) -> bool:
    return (node.op is dft and node.data is None) or (
        node.data is None and node.op is matrix_product and node.dtype.is_complex
    )


class _Walk:
    """Nodes with what they have become."""

    def __init__(self, nodes: Sequence[Node], results: Sequence[Node], target: MachineDescription) -> None:
        self.target = target
        self.made: dict[Node, Node] = {}
        self.uses = Counter(x for node in nodes for x in visible(node))
        self.uses.update(results)
        self.halves: dict[Node, Node] = {}  # of transforms of real numbers, the elements that the others follow from
        self.halved = Counter(x for node in nodes for x in visible(node) if _reads_half(node))

    def reads_half(self, node: Node) -> bool:
        """Whether of a transform nothing is read but its first half."""
        return self.halved[node] == self.uses[node]

    def take(self, node: Node) -> None:
        """Make a node again, of what its inputs have become."""
        if node.data is not None or not node.inputs:
            self.made[node] = node
            return
        rule = RULES.get(node.op)
        found = rule(self, node) if rule is not None and node.inputs[0].dtype.is_complex else None
        if found is None:
            inputs = tuple(self.made[x] for x in node.inputs)
            found = node if inputs == node.inputs else remade(node, inputs)
        self.made[node] = found

    def pairs(self, node: Node) -> Any:
        """The parts of a node's complex numbers, along a last axis."""
        found = self.made[node]
        return found.inputs[0] if found.op is NUMBERS else make(PAIRS, (found,), None)


def _numbers(pairs: Node) -> Node:
    return make(NUMBERS, (pairs,), None)


def _real_number(node: Node) -> float | None:
    """A complex constant without an imaginary part, as a float."""
    return None if node.op is not CONST or node.attrs.array.imag != 0 else float(node.attrs.array.real)


# --- rows of numbers, followed by i times them ------------------------------------------------------


class Doubling(NamedTuple):
    """Whether a lane takes a row, as cores walk over memory, or a number, as blocks do."""

    rows: bool


def _infer_doubled(a: Doubling, pairs: HasAval) -> Aval:
    *lead, n, two = pairs.shape
    return Aval((*lead, 2, n, two), pairs.dtype)


def _doubled(a: Doubling, pairs: Any) -> Any:
    return np.stack([pairs, np.stack([-pairs[..., 1], pairs[..., 0]], -1)], -3)


def _doubled_lanes(a: Doubling, pairs: HasAval) -> Shape:
    return pairs.shape[: -2 if a.rows else -1]


def _doubled_code(e: Any, a: Doubling, lane: Any, write: Any, pairs: Any) -> None:
    axes = len(pairs.shape) - 2
    row = [lane[k] for k in range(axes)]

    def take(place: Any) -> None:
        re, im = (pairs([*row, place, part]) for part in (0, 1))
        for which, numbers in enumerate(((re, im), (e.op("NEG", im), re))):
            for part, number in enumerate(numbers):
                write([*row, which, place, part], number)

    if not a.rows:
        take(lane[axes])
        return
    with e.counted(pairs.shape[-2]) as place:
        take(place)


DOUBLED: Op = row(KernelOp(
    name="doubled", doc="Rows of complex numbers, each followed by i times it, as pairs.", names=("pairs",),
    infer=_infer_doubled, reference=_doubled, lower=Push(_doubled_lanes, _doubled_code),
))  # fmt: skip


def _combined(a: None, parts: Any) -> Any:
    re, im = parts[..., 0, :, :], parts[..., 1, :, :]
    return np.stack([re[..., 0] - im[..., 1], re[..., 1] + im[..., 0]], -1)


def _combined_code(e: Any, a: None, lane: Any, write: Any, parts: Any) -> None:
    *lead, place = (lane[k] for k in range(len(parts.shape) - 2))
    (real_re, real_im), (imag_re, imag_im) = ([parts([*lead, row, place, k]) for k in (0, 1)] for row in (0, 1))
    write([*lead, place, 0], e.op("SUB", real_re, imag_im))
    write([*lead, place, 1], e.op("ADD", real_im, imag_re))


COMBINED: Op = row(KernelOp(
    name="combined", doc="Rows for the real and the imaginary parts of numbers, each of pairs, as the numbers' own.",
    names=("parts",), infer=lambda a, parts: Aval((*parts.shape[:-3], *parts.shape[-2:]), parts.dtype),
    reference=_combined, lower=Push(lambda a, parts: (*parts.shape[:-3], parts.shape[-2]), _combined_code),
))  # fmt: skip


# --- rules: what a node becomes; None for what stays as it is ---------------------------------------


def _mul(w: _Walk, node: Node) -> Any:
    """A factor after a transform is the instruction's."""
    for one, other in (node.inputs, node.inputs[::-1]):
        scale, made = _real_number(other), w.made[one]
        if scale is not None and made.op is NUMBERS and w.uses[one] == 1:
            pairs = made.inputs[0]
            if pairs.op in (FOURIER, SIGNALS, SPLIT, SPLIT_SIGNALS, PLANES) and pairs.attrs.factor == 1:
                a = pairs.attrs
                scaled = a.scaled(scale) if pairs.op in (SPLIT_SIGNALS, PLANES) else a._replace(factor=scale)
                return _numbers(make(pairs.op, pairs.inputs, scaled))
        if scale is not None and one.op is dft and one.data is None and w.uses[one] == 1:
            shape, made = made.shape, made.inputs[0] if made.op is reshape else made
            if made.op is BLOCK_FOURIER and made.attrs.factor == 1:
                return reshape(make(made.op, made.inputs, made.attrs._replace(factor=scale)), shape)
    return None


def _product(w: _Walk, node: Node) -> Any:
    """Rows of numbers as rows of their parts, times matrices in which a row is followed by i times it.

    On cores, where the right factor is the larger one, the parts of the left one are rows of their own instead.
    """
    x, y = node.inputs
    one, other = w.pairs(x), w.pairs(y)
    *lead, k, n = y.shape
    if not w.target.blocks and y.size >= LARGER * x.size and x.size:
        m, axes = x.shape[-2], range(len(x.shape))
        rows = reshape(permute(one, (*axes[:-1], len(axes), len(axes) - 1)), (*x.shape[:-2], 2 * m, k))
        product = matrix_product(rows, reshape(other, (*lead, k, 2 * n)))
        return _numbers(make(COMBINED, (reshape(product, (*node.shape[:-1], 2, n, 2)),), None))
    both = reshape(make(DOUBLED, (other,), Doubling(not w.target.blocks)), (*lead, 2 * k, 2 * n))
    product = matrix_product(reshape(one, (*x.shape[:-1], 2 * k)), both)
    return _numbers(reshape(product, (*node.shape, 2)))


def _dft(w: _Walk, node: Node) -> Any:
    if w.target.blocks:
        return _on_blocks(w, node)
    if not _is_transform(node) or not w.target.arrays:
        return None
    half = _half_spectrum(w, node) if w.target.native and w.reads_half(node) else None
    if half is not None:
        w.halves[node] = _numbers(half)
    a, (x,) = node.attrs, node.inputs
    found = transformed(w.pairs(x), a.axis, a.inverse, w.target)
    alone = w.uses[x] == 1 and (x.op is not slice_ or w.uses[x.inputs[0]] == 1)
    return _numbers(as_planes(found) if alone and x.data is None else found)


def _on_blocks(w: _Walk, node: Node) -> Any:
    """A transform as kernels of blocks; real numbers are read as they are."""
    (x,), a, n = node.inputs, node.attrs, node.shape[node.attrs.axis]
    if n > LONGEST or not count(node.shape):
        return None
    given = w.made[x]
    if n == 1:
        return given
    if x.op is cast and x.data is None and w.made[x.inputs[0]].dtype is node.dtype.real:
        given = w.made[x.inputs[0]]
    return block_transformed(given, a.axis, a.inverse, node.dtype, w.target)


# --- transforms of real numbers ---------------------------------------------------------------------


def _reads_half(node: Node) -> bool:
    """Whether a node reads of its input no more than what real numbers' transforms are known by."""
    return node.op is slice_ and node.attrs.stop[-1] <= node.inputs[0].shape[-1] // 2 + 1


def _slice(w: _Walk, node: Node) -> Any:
    found = w.halves.get(node.inputs[0])
    if found is None:
        return None
    return found if found.shape == node.shape and not any(node.attrs.start) else make(slice_, (found,), node.attrs)


def _is_halved(node: Node) -> bool:
    """Whether a transform is along the last axis, and of a length of which there is a half."""
    n = node.shape[-1] if node.shape else 0
    return _is_transform(node) and node.attrs.axis == len(node.shape) - 1 and n % 2 == 0 and n >= SHORTEST_REAL


def _half_spectrum(w: _Walk, node: Node) -> Any:
    """Of a transform of real numbers, the first half, by one of half the length; None for others."""
    if not _is_halved(node):
        return None
    (x,), n, dtype, factor = node.inputs, node.shape[-1], node.dtype.real, 1.0
    if x.op is mul and x.data is None and (number := _real_number(x.inputs[1])) is not None:
        factor, x = number, x.inputs[0]
    if x.op is not cast or x.data is not None or x.inputs[0].dtype.is_complex:
        return None
    given = w.made[x.inputs[0]]
    pairs = reshape(given if given.dtype is dtype else cast(given, dtype), (*node.shape[:-1], n // 2, 2))
    return spectrum_of_pairs(pairs, Halves(node.attrs.inverse, factor, n // 2), w.target)


def _real(w: _Walk, node: Node) -> Any:
    return _real_transform(w, node.inputs[0], 1.0) if w.target.native and w.target.arrays else None


def _real_transform(w: _Walk, node: Node, factor: float) -> Any:
    """factor · the real part of a transform whose input has zeros in its second half; None for what is no such one."""
    if w.uses[node] != 1 or node.data is not None:
        return None
    if node.op is mul:
        one, other = node.inputs  # numbers come second (`algebra.py`)
        number = _real_number(other)
        return None if number is None or one.op is not dft or factor != 1 else _real_transform(w, one, number)
    if not _is_halved(node):
        return None
    (x,), n = node.inputs, node.shape[-1]
    if x.op is not pad_constant or x.data is not None or not _is_behind(x, n // 2 + 1):
        return None
    half = x.inputs[0]
    once = _counting_twice(half, n)
    given = w.pairs(half if once is None else once)
    found = pairs_of_spectrum(given, Halves(node.attrs.inverse, factor, n // 2, once is not None), w.target)
    return reshape(found, node.shape)


def _counting_twice(node: Node, n: int) -> Node | None:
    """What all elements of a half spectrum are twice, but for the first and that in the middle; None for others.

    So `irfft` says it: with a condition about places alone, which is looked at here.
    """
    if node.op is not where or node.data is not None:
        return None
    condition, once, twice = node.inputs
    if twice.op is not mul or twice.data is not None or twice.inputs[0] is not once:
        return None
    if _real_number(twice.inputs[1]) != 2:
        return None
    if any(x.data is not None or x.op is PLACEHOLDER for x in in_order([condition])):
        return None
    place = np.arange(node.shape[-1])
    known = np.asarray(interpret.evaluate([condition])[0])
    return once if np.array_equal(np.broadcast_to((place < 1) | (2 * place >= n), known.shape), known) else None


def _is_behind(node: Node, most: int) -> bool:
    """Whether zeros stand only behind the elements of the last axis, of which there are not too many."""
    x, filling = node.inputs
    a = node.attrs
    only = not any((*a.low, *a.high[:-1], *a.interior)) and a.high[-1] >= 0
    return _real_number(filling) == 0 and only and 1 <= x.shape[-1] <= most


RULES: dict[Op, Callable[[_Walk, Node], Any]] = {
    dft: _dft, mul: _mul, matrix_product: _product, slice_: _slice, real: _real,
}  # fmt: skip
