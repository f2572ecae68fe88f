"""Complex numbers as pairs of floats: a pass over graphs, on the way to kernels.

Comes in: the results of a function. Goes out: equivalent nodes, in which Fourier transforms are rows of one array
instruction over floats, products of matrices are products of matrices of floats, and what stands around them (moving,
adding, multiplying, dividing, summing, taking parts) are rows of floats with one more axis, which kernels are fused of.
Pairs are the memory of the complex numbers that they are (`PAIRS`, `NUMBERS`), so nothing is copied where one becomes
the other: at parameters, at results, and at ops that only the host computes.

A graph without transforms, products of matrices and sums stays as it is (to do one thing to each number, the host's way
is as fast), and so does every graph for machines without array instructions. Bodies of loops and branches are graphs by
themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.function import Function
from eshkol.graph.node import Current, Node, constant, make, remade
from eshkol.ops.contraction import matrix_product
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import (
    absolute,
    add,
    cast,
    conj,
    div,
    equal,
    imag,
    logical_or,
    maximum,
    minimum,
    mul,
    neg,
    real,
    sqrt,
    sub,
    where,
)
from eshkol.ops.fourier import dft
from eshkol.ops.joining import concatenate
from eshkol.ops.movement import expand, flip, permute, reshape
from eshkol.ops.reductions import sum_
from eshkol.ops.row import Op
from eshkol.ops.slicing import Pad, Slice, pad_constant, slice_
from eshkol.ops.structural import CONST, NUMBERS, PAIRS
from eshkol.schedule.kernels.transforms import FOURIER, JOINED, SPLIT, Fourier, Halves, is_transformed, turns
from eshkol.schedule.rewrite.walk import in_order, visible

FUNCTIONS_KEPT = 512
PAIRS_AT_A_TIME = 64  # of a long sum
SHORTEST_REAL = 16  # real numbers that are worth being transformed as half as many complex ones


def as_pairs(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of pairs where something is computed with complex numbers that can be."""
    nodes = in_order(results)
    paired = target.arrays and any(_is_worth_pairs(node) for node in nodes)
    if not paired and not any(_functions_of(node) for node in nodes):
        return [*results]
    walk = _Walk(nodes, results, target.native)
    previous = Current.site
    try:
        for node in nodes:
            Current.site = node.site
            walk.take(node, target, paired)
    finally:
        Current.site = previous
    return [walk.plain(node) for node in results]


def _is_transform(node: Node) -> bool:
    return node.op is dft and node.data is None and is_transformed(node.inputs[0], node.attrs.axis)


def _is_worth_pairs(node: Node) -> bool:
    """Whether a node is computed faster of pairs, and what stands around it with it."""
    return _is_transform(node) or (node.data is None and node.op in (matrix_product, sum_) and node.dtype.is_complex)


def _functions_of(node: Node) -> dict[str, Function]:
    fields: dict[str, Any] = getattr(node.attrs, "_asdict", dict)() if node.data is None else {}
    return {name: f for name, f in fields.items() if isinstance(f, Function)}


_functions: dict[tuple[int, MachineDescription], tuple[Function, Function]] = {}  # by id, with the function that has it


def _of_pairs(function: Function, target: MachineDescription) -> Function:
    found = _functions.get((id(function), target))
    if found is None:
        results = as_pairs(function.results, target)
        same = all(a is b for a, b in zip(results, function.results, strict=True))
        made = function if same else Function(function.params, tuple(results), function.scope)
        while len(_functions) >= FUNCTIONS_KEPT:
            _functions.pop(next(iter(_functions)))
        found = _functions[id(function), target] = function, made
    return found[1]


class _Walk:
    """Nodes with what they have become: values as they were, and pairs of those that are complex."""

    def __init__(self, nodes: Sequence[Node], results: Sequence[Node], native: bool) -> None:
        self.native = native  # whether the machine has code of its own for what is around transforms of real numbers
        self._plain: dict[Node, Node] = {}
        self._paired: dict[Node, Node] = {}
        self.uses = Counter(x for node in nodes for x in visible(node))
        self.uses.update(results)
        self.halves: dict[Node, Node] = {}  # of transforms of real numbers, the elements that the others follow from
        self.halved = Counter(x for node in nodes for x in visible(node) if _reads_half(node))

    def reads_half(self, node: Node) -> bool:
        """Whether of a transform nothing is read but its first half."""
        return self.halved[node] == self.uses[node]

    def take(self, node: Node, target: MachineDescription, paired: bool) -> None:
        """Make a node again, of what its inputs have become."""
        if node.data is not None or not node.inputs:
            self._plain[node] = node
            return
        rule = RULES.get(node.op) if paired else None
        found = rule(self, node) if rule is not None and _touches_complex(node) else None
        if found is None:
            inputs = tuple(self.plain(x) for x in node.inputs)
            functions = {name: _of_pairs(f, target) for name, f in _functions_of(node).items()}
            attrs = node.attrs._replace(**functions) if functions else node.attrs
            self._plain[node] = node if inputs == node.inputs and attrs == node.attrs else _again(node, inputs, attrs)
        elif node.dtype.is_complex:
            shape = (*node.shape, 2)
            self._paired[node] = found if found.shape == shape else expand(found, shape)  # of numbers with equal parts
        else:
            self._plain[node] = found

    def plain(self, node: Node) -> Node:
        """A node's value as it was."""
        found = self._plain.get(node)
        if found is None:
            found = self._plain[node] = make(NUMBERS, (self._paired[node],), None)
        return found

    def pairs(self, node: Node) -> Node:
        """The parts of a node's complex numbers, along a last axis; of a number whose parts are equal, that."""
        found = self._paired.get(node)
        if found is None:
            found = _parts_of(node) if node.op is CONST else make(PAIRS, (self.plain(node),), None)
            self._paired[node] = found
        return found


def _again(node: Node, inputs: tuple[Node, ...], attrs: Any) -> Node:
    return remade(node, inputs) if attrs is node.attrs else make(node.op, inputs, attrs)


def _touches_complex(node: Node) -> bool:
    return node.outs is None and (node.dtype.is_complex or any(x.dtype.is_complex for x in node.inputs))


def _parts_of(node: Node) -> Any:
    number, dtype = node.attrs.array, node.dtype.real
    parts = [constant(float(part), dtype) for part in (number.real, number.imag)]
    return parts[0] if parts[0] is parts[1] else where(equal(iota.on(node, (2,)), 0), *parts)


def _real_number(node: Node) -> Node | None:
    """A complex constant without an imaginary part, as a float."""
    if node.op is not CONST or node.attrs.array.imag != 0:
        return None
    return constant(float(node.attrs.array.real), node.dtype.real)


# --- rules: what a node's pairs are, or its value if that is real -----------------------------------


def _alike(w: _Walk, node: Node) -> Any:
    """Ops that do the same to both parts, elementwise or along leading axes that their attributes name."""
    return make(node.op, tuple(w.pairs(x) for x in node.inputs), node.attrs)


def _elementwise(w: _Walk, node: Node) -> Any:
    """Likewise of operands that broadcast, of which a number may be one: node.op of its pairs."""
    return node.op(*(w.pairs(x) for x in node.inputs))


def _sum(w: _Walk, node: Node) -> Any:
    """Of what lies side by side, sums of many pairs at a time first."""
    (x,), pairs, a = node.inputs, w.pairs(node.inputs[0]), node.attrs
    if not pairs.shape:
        return None
    rank, lead = len(x.shape), x.shape[: min(a.axes, default=0)]
    number = math.prod(x.shape[len(lead) :])
    if sorted(a.axes) != [*range(len(lead), rank)] or number < PAIRS_AT_A_TIME**2 or number % PAIRS_AT_A_TIME:
        return make(sum_, (pairs,), a)
    many = reshape(pairs, (*lead, number // PAIRS_AT_A_TIME, 2 * PAIRS_AT_A_TIME))
    some = reshape(sum_(many, len(lead)), (*lead, PAIRS_AT_A_TIME, 2))
    return reshape(sum_(some, len(lead)), (*node.shape, 2))


def _reshape(w: _Walk, node: Node) -> Any:
    return reshape(w.pairs(node.inputs[0]), (*node.shape, 2))


def _expand(w: _Walk, node: Node) -> Any:
    return expand(w.pairs(node.inputs[0]), (*node.shape, 2))


def _permute(w: _Walk, node: Node) -> Any:
    return permute(w.pairs(node.inputs[0]), (*node.attrs.axes, len(node.shape)))


def _reads_half(node: Node) -> bool:
    """Whether a node reads of its input no more than what real numbers' transforms are known by."""
    return node.op is slice_ and node.attrs.stop[-1] <= node.inputs[0].shape[-1] // 2 + 1


def _slice(w: _Walk, node: Node) -> Any:
    a, (x,) = node.attrs, node.inputs
    found = w.halves[x] if x in w.halves else w.pairs(x)
    if found.shape == (*node.shape, 2) and not any(a.start):
        return found
    return make(slice_, (found,), Slice((*a.start, 0), (*a.stop, 2), (*a.step, 1)))


def _pad(w: _Walk, node: Node) -> Any:
    x, value = node.inputs
    a, filling = node.attrs, w.pairs(value)
    return None if filling.shape else make(pad_constant, (w.pairs(x), filling), Pad(*((*widths, 0) for widths in a)))


def _where(w: _Walk, node: Node) -> Any:
    condition, yes, no = node.inputs
    chosen = w.plain(condition)
    return where(reshape(chosen, (*chosen.shape, 1)), w.pairs(yes), w.pairs(no))


def _cast(w: _Walk, node: Node) -> Any:
    (x,), dtype = node.inputs, node.dtype.real
    if not node.dtype.is_complex:
        return None
    if x.dtype.is_complex:
        return cast(w.pairs(x), dtype)
    given = w.plain(x)
    parts = reshape(given if given.dtype is dtype else cast(given, dtype), (*x.shape, 1))
    none = (0,) * (len(x.shape) + 1)
    return pad_constant(parts, constant(0, dtype), none, (*none[1:], 1))


def _part(place: int) -> Callable[[_Walk, Node], Any]:
    def rule(w: _Walk, node: Node) -> Any:
        if place == 0 and w.native and (found := _real_transform(w, node.inputs[0], 1.0)) is not None:
            return found
        pairs = w.pairs(node.inputs[0])
        return reshape(_half(pairs, place), node.shape) if pairs.shape else None

    return rule


def _half(pairs: Any, place: int) -> Any:
    """One part of pairs, with an axis of extent 1 in the place of both."""
    shape = pairs.shape[:-1]
    return make(slice_, (pairs,), Slice((*(0,) * len(shape), place), (*shape, place + 1), (1,) * (len(shape) + 1)))


def _conj(w: _Walk, node: Node) -> Any:
    pairs = w.pairs(node.inputs[0])
    return where(equal(iota.on(pairs, (2,)), 0), pairs, -pairs)


def _mul(w: _Walk, node: Node) -> Any:
    for one, other in (node.inputs, node.inputs[::-1]):
        factor = _real_number(other)
        if factor is not None and one.op is not CONST:
            pairs = w.pairs(one)
            if pairs.op in (FOURIER, SPLIT) and pairs.attrs.factor == 1 and w.uses[one] == 1:
                scale = float(other.attrs.array.real)
                return make(pairs.op, pairs.inputs, pairs.attrs._replace(factor=scale))
            return pairs * factor
    one, other = (w.pairs(x) for x in node.inputs)
    if not one.shape or not other.shape:
        return None
    # (a + bi)·(c + di): both parts times c, and those the other way round times d, of which the first with a sign.
    turned = flip(one, len(one.shape) - 1) * _half(other, 1)
    return one * _half(other, 0) + where(equal(iota.on(one, (2,)), 0), -turned, turned)


def _div(w: _Walk, node: Node) -> Any:
    divisor = _real_number(node.inputs[1])
    if divisor is not None:
        return w.pairs(node.inputs[0]) / divisor
    one, other = (w.pairs(x) for x in node.inputs)
    if not one.shape or not other.shape:
        return None
    # By the greater part of the divisor, so that nothing on the way is larger than the quotient needs; by 0 as NumPy.
    re, im = _half(other, 0), _half(other, 1)
    size_re, size_im = absolute(re), absolute(im)
    zero, by_re = equal(maximum(size_re, size_im), 0), size_re >= size_im
    ratio = where(zero, 0, where(by_re, im, re) / where(by_re, re, im))
    whole = where(zero, size_re, where(by_re, re + im * ratio, re * ratio + im))
    turned = flip(one, len(one.shape) - 1)  # what is added to the first part is taken from the second
    near, far = where(by_re, one, turned), where(by_re, turned, one)
    first = equal(iota.on(one, (2,)), 0)
    sign = where(by_re, 1, -1)
    more = where(first, far, -(far * sign)) * ratio
    return (where(first, near, near * sign) + where(zero, 0, more)) / whole


def _absolute(w: _Walk, node: Node) -> Any:
    """The modulus, without squares that are too large or too small; infinite where a part is, even beside NaN."""
    pairs = w.pairs(node.inputs[0])
    if not pairs.shape:
        return None
    parts = absolute(pairs)
    re, im = _half(parts, 0), _half(parts, 1)
    most, least = maximum(re, im), minimum(re, im)
    ratio = where(equal(most, 0), 0, least / most)
    endless = logical_or(equal(re, math.inf), equal(im, math.inf))
    return reshape(where(endless, math.inf, most * sqrt(1 + ratio * ratio)), node.shape)


def _product(w: _Walk, node: Node) -> Any:
    """Rows of numbers as rows of their parts, times matrices in which a row is followed by i times it."""
    x, y = node.inputs
    if x.op is CONST or y.op is CONST:
        return None
    one, other = w.pairs(x), w.pairs(y)
    (*lead, k, n), rank = y.shape, len(y.shape)
    turned = where(equal(iota.on(other, (2,)), 0), -flip(other, rank), flip(other, rank))
    both = concatenate([reshape(z, (*lead, k, 1, 2 * n)) for z in (other, turned)], rank - 1)
    product = matrix_product(reshape(one, (*x.shape[:-1], 2 * k)), reshape(both, (*lead, 2 * k, 2 * n)))
    return reshape(product, (*node.shape, 2))


def _is_halved(node: Node) -> bool:
    """Whether a transform is along the last axis, and of a length of which there is a half."""
    n = node.shape[-1] if node.shape else 0
    return _is_transform(node) and node.attrs.axis == len(node.shape) - 1 and n % 2 == 0 and n >= SHORTEST_REAL


def _half_spectrum(w: _Walk, node: Node) -> Any:
    """Of a transform of real numbers, the first half, by one of half the length; None for others."""
    if not _is_halved(node):
        return None
    (x,), n, dtype, factor = node.inputs, node.shape[-1], node.dtype.real, 1.0
    if x.op is mul and x.data is None and _real_number(x.inputs[1]) is not None:
        factor = float(x.inputs[1].attrs.array.real)
        x = x.inputs[0]
    if x.op is not cast or x.data is not None or x.inputs[0].dtype.is_complex:
        return None
    given = w.plain(x.inputs[0])
    pairs = reshape(given if given.dtype is dtype else cast(given, dtype), (*node.shape[:-1], n // 2, 2))
    whole = make(FOURIER, (pairs,), Fourier(node.attrs.axis, node.attrs.inverse, 1.0))
    return make(SPLIT, (whole, turns(n, dtype)), Halves(node.attrs.inverse, factor, n // 2))


def _real_transform(w: _Walk, node: Node, factor: float) -> Any:
    """factor · the real part of a transform whose input has zeros in its second half; None for what is no such one."""
    if w.uses[node] != 1 or node.data is not None:
        return None
    if node.op is mul:
        for one, other in (node.inputs, node.inputs[::-1]):
            if _real_number(other) is not None and one.op is dft and factor == 1:
                return _real_transform(w, one, float(other.attrs.array.real))
        return None
    if not _is_halved(node):
        return None
    (x,), n = node.inputs, node.shape[-1]
    if x.op is not pad_constant or x.data is not None or not _is_behind(x, n // 2 + 1):
        return None
    given, a = w.pairs(x.inputs[0]), node.attrs
    joined = make(JOINED, (given, turns(n, node.dtype.real)), Halves(a.inverse, factor, n // 2))
    return reshape(make(FOURIER, (joined,), Fourier(a.axis, a.inverse, 1.0)), node.shape)


def _is_behind(node: Node, most: int) -> bool:
    """Whether zeros stand only behind the elements of the last axis, of which there are not too many."""
    x, filling = node.inputs
    a, number = node.attrs, _real_number(filling)
    zero = number is not None and filling.attrs.array.real == 0
    only = not any((*a.low, *a.high[:-1], *a.interior)) and a.high[-1] >= 0
    return zero and only and 1 <= x.shape[-1] <= most


def _dft(w: _Walk, node: Node) -> Any:
    half = _half_spectrum(w, node) if w.native and w.reads_half(node) else None
    if half is not None:
        w.halves[node] = half
    return (
        make(FOURIER, (w.pairs(node.inputs[0]),), Fourier(node.attrs.axis, node.attrs.inverse, 1.0))
        if _is_transform(node)
        else None
    )


RULES: dict[Op, Callable[[_Walk, Node], Any]] = {
    dft: _dft, add: _elementwise, sub: _elementwise, neg: _elementwise, mul: _mul, div: _div, conj: _conj,
    real: _part(0), imag: _part(1), cast: _cast, where: _where, reshape: _reshape, expand: _expand,
    permute: _permute, flip: _alike, slice_: _slice, pad_constant: _pad, concatenate: _alike, sum_: _sum,
    absolute: _absolute, matrix_product: _product,
}  # fmt: skip
