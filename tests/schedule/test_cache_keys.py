"""What the compiler keeps is found by all that it depends on: each part of a key, changed by itself, is another entry.

Graphs that differ in one thing are planned one after another with what the others left in the caches, in both orders:
each plan must be what it is when nothing is kept. Where a key had a part less, one of them would be given the code of
another. That what is the same is found again is asserted, too: a key with a part too many would find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from plan_sizes import MACHINES, array
from plan_texts import text

import eshkol as ek
from eshkol.graph.function import Function, trace
from eshkol.graph.node import Node, constant
from eshkol.ops import dtypes
from eshkol.ops import elementwise as ew
from eshkol.ops.movement import permute
from eshkol.ops.reductions import sum_
from eshkol.ops.row import Aval
from eshkol.schedule.cache import Cache, nothing_kept
from eshkol.schedule.kernels import fused, lower
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.run.execute import _function_structure

pytestmark = pytest.mark.unchecked  # nothing is run that could be compared

Spec = tuple[Any, ...]
HALF, WHOLE = "bfloat16", "int64"
XY: Spec = ((3, 4), (3, 4))


def _scanned(step: Callable[..., Any], **how: Any) -> Callable[..., Any]:
    return lambda x, y: ek.scan(step, x[0], y, **how)


# Each differs from others of its list in one thing: an op, an attribute, which operand, a dtype, a shape, a number in
# the place of a tensor, which values are results and in which order.
ALIKE: dict[str, list[tuple[Callable[..., Any], Spec]]] = {
    "elements": [
        (lambda x, y: ek.sin(x) * y + 2, XY), (lambda x, y: ek.cos(x) * y + 2, XY),
        (lambda x, y: ek.sin(x) / y + 2, XY),
        (lambda x, y: ek.sin(y) * x + 2, XY), (lambda x, y: ek.sin(x) * x + 2, XY),
        (lambda x, y: ek.sin(x) * 3 + 2, XY),
        (lambda x, y: ek.sin(x) * y + x, XY), (lambda x, y: ek.sin(x) * y + 2, ((4, 3), (4, 3))),
        (lambda x, y: ek.sin(x) * y + 2, ((3, 4), (4,))), (lambda x, y: ek.sin(x) * y + 2, ((3, 4), ())),
        (lambda x, y: ek.sin(x) * y + 2, ((HALF, (3, 4)), (HALF, (3, 4)))),
        (lambda x, y: ek.sin(x) * y + 2, ((3, 1), (4,))),
        (lambda x, y: ek.sin(x) * y + 2, (("float64", (3, 4)), ("float64", (3, 4)))),
    ],
    "results": [
        (lambda x, y: (ek.sin(x), ek.sin(x) * y), XY), (lambda x, y: (ek.sin(x) * y, ek.sin(x)), XY),
        (lambda x, y: ek.sin(x) * y, XY), (lambda x, y: (ek.sin(x), ek.sin(x)), XY), (lambda x, y: (ek.sin(x), x), XY),
    ],
    "attributes": [
        (lambda x: x[1:] * 2, ((4, 4),)), (lambda x: x[:-1] * 2, ((4, 4),)), (lambda x: x[:, 1:] * 2, ((4, 4),)),
        (lambda x: x[::2] * 2, ((6, 4),)), (lambda x: x[1::2] * 2, ((6, 4),)), (lambda x: x.T * 2, ((4, 4),)),
        (lambda x: x * 2, ((4, 4),)), (lambda x: x[::-1] * 2, ((4, 4),)), (lambda x: x[:, ::-1] * 2, ((4, 4),)),
        (lambda x: ek.pad(x, ((1, 0), (0, 0))), ((4, 4),)), (lambda x: ek.pad(x, ((0, 1), (0, 0))), ((4, 4),)),
        (lambda x: ek.pad(x, ((0, 1), (0, 0)), value=2.0), ((4, 4),)), (lambda x: x.astype(ek.int32), ((4, 4),)),
        (lambda x: x.astype(ek.float64), ((4, 4),)), (lambda x: ek.cumsum(x, 0), ((4, 4),)),
        (lambda x: ek.cumsum(x, 1), ((4, 4),)),
        (lambda x: ek.argmax(x, 0), ((4, 4),)), (lambda x: ek.argmax(x, 1), ((4, 4),)),
        (lambda x: ek.argmin(x, 1), ((4, 4),)),
    ],
    "reductions": [
        (lambda x: (x * 2).sum(0), ((40, 40),)), (lambda x: (x * 2).sum(1), ((40, 40),)),
        (lambda x: (x * 2).sum(), ((40, 40),)),
        (lambda x: (x * 2).max(axis=1), ((40, 40),)), (lambda x: (x * 2).sum(1), ((20, 80),)),
        (lambda x: (x * 2).sum(1), ((80, 20),)),
        (lambda x: (x * 2).sum(1), ((WHOLE, (40, 40)),)), (lambda x: (x * 2).sum(1, keepdims=True) * x, ((40, 40),)),
        (lambda x: (x * 2).sum((0, 2)), ((4, 10, 40),)), (lambda x: (x * 2).sum(1), ((4, 10, 40),)),
        (lambda x: (x * 2).sum((1, 2)), ((4, 10, 40),)),
        (lambda x: ek.softmax(x, 1), ((40, 40),)), (lambda x: ek.softmax(x, 0), ((40, 40),)),
        (lambda x: ek.log_softmax(x, 1), ((40, 40),)),
    ],
    "products": [
        (lambda x, y: x @ y, ((6, 6), (6, 6))), (lambda x, y: x.T @ y, ((6, 6), (6, 6))),
        (lambda x, y: x @ y.T, ((6, 6), (6, 6))),
        (lambda x, y: y @ x, ((6, 6), (6, 6))), (lambda x, y: x @ x, ((6, 6), (6, 6))),
        (lambda x, y: x @ y, ((6, 4), (4, 6))),
        (lambda x, y: ek.relu(x @ y), ((6, 6), (6, 6))), (lambda x, y: 2 * (x @ y), ((6, 6), (6, 6))),
        (lambda x, y: x @ y + y, ((6, 6), (6, 6))),
        (lambda x, y: x @ y, ((HALF, (6, 6)), (HALF, (6, 6)))), (lambda x, y: x @ y, ((2, 6, 6), (6, 6))),
        (lambda x, y: x[1:] @ y, ((7, 6), (6, 6))),
    ],
    "indices": [
        (lambda x, i: ek.take(x, i, 0), ((5, 5), (WHOLE, (3,)))),
        (lambda x, i: ek.take(x, i, 1), ((5, 5), (WHOLE, (3,)))),
        (lambda x, i: ek.take(x, i, 0), ((5, 5), ("int32", (3,)))),
        (lambda x, i: ek.take(x, i, 0), ((7, 5), (WHOLE, (3,)))),
        (lambda x, i: x.index_add(0, i, x[:3]), ((5, 5), (WHOLE, (3,)))),
        (lambda x, i: x.index_add(1, i, x[:, :3]), ((5, 5), (WHOLE, (3,)))),
        (lambda x, i: x.at[i].set(x[:3]), ((5, 5), (WHOLE, (3,)))),
        (lambda x, i: ek.take(x, i, 0) * 2, ((5, 5), (WHOLE, (3,)))),
    ],
    "loops": [
        (_scanned(lambda s, r: (s + ek.sin(r), s)), XY), (_scanned(lambda s, r: (s + ek.cos(r), s)), XY),
        (_scanned(lambda s, r: (s + ek.sin(r), s), reverse=True), XY), (_scanned(lambda s, r: (s + ek.sin(r), r)), XY),
        (_scanned(lambda s, r: (s * ek.sin(r), s)), XY), (_scanned(lambda s, r: (s + ek.sin(r) * 2, s)), XY),
        (_scanned(lambda s, r: (s + ek.sin(r) * 3, s)), XY),
        (_scanned(lambda s, r: (s + ek.sin(r), s)), ((3, 4), (5, 4))),
        (_scanned(lambda s, r: (s + ek.sin(r), s)), (("float64", (3, 4)), ("float64", (3, 4)))),
        (lambda x, y: [ek.fori_loop(0, 3, lambda k, s, z=z: s * 2 + z, x) for z in (x, y)], XY),
        (lambda x, y: [ek.while_loop(lambda s: s.sum() < 9, lambda s: s * 2 + 1, z) for z in (x, y)], XY),
        (lambda x, y: [ek.cond(x.sum() > 0, lambda a: a * 2, lambda a: a, z) for z in (x, y)], XY),
        (lambda x, y: [ek.cond(z.sum() > 0, lambda a: a * 2, lambda a: a, x) for z in (x, y)], XY),
        (lambda x, y: [ek.scan(lambda s, r: (s + r, s), z[0], z) for z in (x, y)], XY),
        (lambda x, y: [ek.scan(lambda s, r, f=f: (s + r, f(s)), x[0], y)[1] for f in (ek.sin, ek.cos)], XY),
    ],
    "orders": [
        (lambda x: ek.sort(x, 1)[0], ((4, 20),)), (lambda x: ek.sort(x, 1)[1], ((4, 20),)),
        (lambda x: ek.sort(x, 0)[0], ((4, 20),)),
        (lambda x: ek.sort(x, 1, descending=True)[0], ((4, 20),)), (lambda x: ek.sort(x, 1)[0], ((8, 10),)),
        (lambda x: ek.sort(x, 1)[0][:, :3], ((4, 20),)),
        (lambda x: ek.fft(x), ((4, 20),)), (lambda x: ek.ifft(x), ((4, 20),)),
        (lambda x: ek.fft(x, axis=0), ((4, 20),)), (lambda x: ek.fft(x) * 2, ((4, 20),)),
    ],
}  # fmt: skip


def _graphs(name: str) -> list[Any]:
    return [ek.jit(f, dynamic=False).traced(*map(array, specs)).compiled for f, specs in ALIKE[name]]


def _texts(graphs: Sequence[Any], machines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    for k, graph in enumerate(graphs):
        for machine in machines:
            yield k, machine, text(compiled(graph.results, graph.params, MACHINES[machine]))


@pytest.mark.parametrize("name", ALIKE)
def test_what_is_kept_for_one_graph_is_not_taken_for_another(name: str) -> None:
    graphs, machines = _graphs(name), ["cpu", "small cores", "small blocks"]
    alone = {}
    for k, graph in enumerate(graphs):
        for machine in machines:
            with nothing_kept():
                alone[k, machine] = text(compiled(graph.results, graph.params, MACHINES[machine]))
    each = {tuple(alone[k, machine] for machine in machines) for k in range(len(graphs))}
    assert len(each) == len(graphs), "two of them are the same: one taken for the other would not be seen"
    with nothing_kept():
        together = {(k, machine): found for k, machine, found in _texts(graphs, machines)}
        kept = [set(cache) for cache in Cache.every]
        again = {(k, machine): found for k, machine, found in _texts(graphs, machines)}
        assert [set(cache) for cache in Cache.every] == kept, "what was kept is not found again"
    with nothing_kept():
        backwards = {
            (len(graphs) - 1 - k, machine): found for k, machine, found in _texts(graphs[::-1], machines[::-1])
        }
    for found in (together, again, backwards):
        assert [key for key in alone if found[key] != alone[key]] == []


def test_kernels_are_found_again() -> None:
    """And what computes them again after that is the same object."""
    x, y = (ek.tensor([[1.0, 2.0]])._node for _ in range(2))
    group = lower.lowered(sum_(x, 1), MACHINES["cpu"])
    with nothing_kept():
        first = lower.lowered(sum_(x, 1), MACHINES["cpu"])
        assert lower.lowered(sum_(y, 1), MACHINES["cpu"]) is first
        assert lower.lowered(sum_(x, 0), MACHINES["cpu"]) is not first
        assert lower.lowered(sum_(x, 1), MACHINES["small cores"]) is not first
        assert len(lower._kernels) == 3
        assert not fused._kernels
    assert lower.lowered(sum_(x, 1), MACHINES["cpu"]) is group


# --- functions by structure ---------------------------------------------------------------------------

FLOATS, DOUBLES = Aval((3, 4), dtypes.float32), Aval((3, 4), dtypes.float64)
BODIES: dict[str, tuple[Callable[..., list[Node]], Sequence[Aval]]] = {
    "as it is": (lambda x, y: [ew.sin(x) * y + constant(2, x.dtype), y], (FLOATS, FLOATS)),
    "an op": (lambda x, y: [ew.cos(x) * y + constant(2, x.dtype), y], (FLOATS, FLOATS)),
    "which operand": (lambda x, y: [ew.sin(y) * x + constant(2, x.dtype), y], (FLOATS, FLOATS)),
    "one operand twice": (lambda x, y: [ew.sin(x) * x + constant(2, x.dtype), y], (FLOATS, FLOATS)),
    "a number": (lambda x, y: [ew.sin(x) * y + constant(3, x.dtype), y], (FLOATS, FLOATS)),
    "a dtype": (lambda x, y: [ew.sin(x) * y + constant(2, x.dtype), y], (DOUBLES, DOUBLES)),
    "a shape": (lambda x, y: [ew.sin(x) * y + constant(2, x.dtype), y], (FLOATS, Aval((4,), dtypes.float32))),
    "the order of results": (lambda x, y: [y, ew.sin(x) * y + constant(2, x.dtype)], (FLOATS, FLOATS)),
    "which result": (lambda x, y: [ew.sin(x) * y + constant(2, x.dtype), x], (FLOATS, FLOATS)),
    "a result less": (lambda x, y: [ew.sin(x) * y + constant(2, x.dtype)], (FLOATS, FLOATS)),
    "a result that is a number": (lambda x, y: [constant(2, x.dtype), y], (FLOATS, FLOATS)),
    "another one": (lambda x, y: [constant(3, x.dtype), y], (FLOATS, FLOATS)),
    "attributes": (lambda x, y: [permute(x, (1, 0)), y], (Aval((4, 4), dtypes.float32), FLOATS)),
    "other attributes": (lambda x, y: [permute(x, (0, 1)), y], (Aval((4, 4), dtypes.float32), FLOATS)),
}  # fmt: skip


def test_bodies_that_differ_in_one_thing_differ() -> None:
    def body(name: str) -> Function:
        code, avals = BODIES[name]
        return trace(code, avals, "a body")[0]

    found = {name: _function_structure(body(name)) for name in BODIES}
    for name, structure in found.items():
        assert structure == _function_structure(body(name)), "the same, traced again"
        assert hash(structure) == hash(_function_structure(body(name)))
        assert [other for other in found if found[other] == structure] == [name]
