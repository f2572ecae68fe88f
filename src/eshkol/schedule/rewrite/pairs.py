"""Complex numbers as pairs of floats, in graphs with Fourier transforms: a pass over graphs, on the way to kernels.

Comes in: the results of a function. Goes out: equivalent nodes, in which transforms are rows of one array instruction
over floats, and what stands around them (moving, adding, multiplying, taking parts) are rows of floats with one more
axis, which kernels are fused of. Pairs are the memory of the complex numbers that they are (`PAIRS`, `NUMBERS`), so
nothing is copied where one becomes the other: at parameters, at results, and at ops that only the host computes.

A graph without a transform that the machine has an instruction for stays as it is. Bodies of loops and branches are
graphs by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.function import Function
from eshkol.graph.node import Current, Node, constant, make, remade, topological
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import add, cast, conj, div, equal, imag, mul, neg, real, sub, where
from eshkol.ops.fourier import dft
from eshkol.ops.joining import concatenate
from eshkol.ops.movement import expand, flip, permute, reshape
from eshkol.ops.reductions import sum_
from eshkol.ops.row import Op
from eshkol.ops.slicing import Pad, Slice, pad_constant, slice_
from eshkol.ops.structural import CONST, NUMBERS, PAIRS
from eshkol.schedule.kernels.transforms import FOURIER, Fourier, is_transformed

FUNCTIONS_KEPT = 512


def as_pairs(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of pairs where there is a transform that the machine's array instruction takes."""
    nodes = topological(results, through=_visible)
    paired = target.arrays and any(_is_transform(node) for node in nodes)
    if not paired and not any(_functions_of(node) for node in nodes):
        return [*results]
    walk = _Walk(nodes, results)
    previous = Current.site
    try:
        for node in nodes:
            Current.site = node.site
            walk.take(node, target, paired)
    finally:
        Current.site = previous
    return [walk.plain(node) for node in results]


def _visible(node: Node) -> tuple[Node, ...]:
    return node.inputs if node.data is None else ()


def _is_transform(node: Node) -> bool:
    return node.op is dft and node.data is None and is_transformed(node.inputs[0], node.attrs.axis)


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

    def __init__(self, nodes: Sequence[Node], results: Sequence[Node]) -> None:
        self._plain: dict[Node, Node] = {}
        self._paired: dict[Node, Node] = {}
        self.uses = Counter(x for node in nodes for x in _visible(node))
        self.uses.update(results)

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


def _reshape(w: _Walk, node: Node) -> Any:
    return reshape(w.pairs(node.inputs[0]), (*node.shape, 2))


def _expand(w: _Walk, node: Node) -> Any:
    return expand(w.pairs(node.inputs[0]), (*node.shape, 2))


def _permute(w: _Walk, node: Node) -> Any:
    return permute(w.pairs(node.inputs[0]), (*node.attrs.axes, len(node.shape)))


def _slice(w: _Walk, node: Node) -> Any:
    a = node.attrs
    return make(slice_, (w.pairs(node.inputs[0]),), Slice((*a.start, 0), (*a.stop, 2), (*a.step, 1)))


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
            if pairs.op is FOURIER and pairs.attrs.factor == 1 and w.uses[one] == 1:
                scale = float(other.attrs.array.real)
                return make(FOURIER, pairs.inputs, pairs.attrs._replace(factor=scale))
            return pairs * factor
    one, other = (w.pairs(x) for x in node.inputs)
    if not one.shape or not other.shape:
        return None
    # (a + bi)·(c + di): both parts times c, and those the other way round times d, of which the first with a sign.
    turned = flip(one, len(one.shape) - 1) * _half(other, 1)
    return one * _half(other, 0) + where(equal(iota.on(one, (2,)), 0), -turned, turned)


def _div(w: _Walk, node: Node) -> Any:
    divisor = _real_number(node.inputs[1])
    return None if divisor is None else w.pairs(node.inputs[0]) / divisor


def _dft(w: _Walk, node: Node) -> Any:
    return (
        make(FOURIER, (w.pairs(node.inputs[0]),), Fourier(node.attrs.axis, node.attrs.inverse, 1.0))
        if _is_transform(node)
        else None
    )


RULES: dict[Op, Callable[[_Walk, Node], Any]] = {
    dft: _dft, add: _elementwise, sub: _elementwise, neg: _elementwise, mul: _mul, div: _div, conj: _conj,
    real: _part(0), imag: _part(1), cast: _cast, where: _where, reshape: _reshape, expand: _expand,
    permute: _permute, flip: _alike, slice_: _slice, pad_constant: _pad, concatenate: _alike, sum_: _alike,
}  # fmt: skip
