"""A graph as one program of StableHLO: its text, and what the checks in it say.

Comes in: results and parameters of a function of the graph, and which parameters are donated. Goes out: a `Program`.
Parameters and results are flat, of the elements that values lie in memory as (`STORED`): bools are bytes, complex
numbers pairs. One more result is the number of the first check that failed, where there are checks: an index out of
range, an integer divided by zero, and, where each node is looked at, a number that is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eshkol.errors import BackendUnavailable, TensorError
from eshkol.graph.control import COND, SCAN, WHILE
from eshkol.graph.custom import CHECKPOINT
from eshkol.graph.node import Node, host_array
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Aval, Host, Macro, Parts, Pull, Push, Shape, Update
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST, PICK
from eshkol.schedule.kernels.kernel import composed, described, lowering
from eshkol.schedule.order import needed
from eshkol.schedule.run.failures import where_asked
from eshkol.schedule.whole import control
from eshkol.schedule.whole.arrays import Arrays
from eshkol.schedule.whole.instructions import COMPLEX
from eshkol.schedule.whole.reads import Read, Write, number_of
from eshkol.schedule.whole.replay import Replay
from eshkol.schedule.whole.rows import ROWS, arrays_of
from eshkol.schedule.whole.text import Value, type_of

LOOPS: dict[Any, Callable[..., list[Value]]] = {
    SCAN: control.scan, WHILE: control.while_loop, COND: control.branch,
}  # fmt: skip
NAN, INFINITY = "NaN", "infinity"
Check = tuple[Node, Any]
"""What a check is about: a node, and the extent of an axis, a message, `NAN` or `INFINITY`."""


class Program(NamedTuple):
    """A graph as text."""

    text: str
    checks: tuple[Check, ...]  # none: there is no further result


def program(
    results: Sequence[Node], params: Sequence[Node], *, donated: Sequence[int] = (), looked_at: bool = False
) -> Program:
    """The program of a function's results; looked at, every node that gives what is no number is an error."""
    graph = _Graph(looked_at)
    given = [Value(f"%arg{k}", *_lies(x)) for k, x in enumerate(params)]
    values = {x: _as_value(graph.t, value, x) for x, value in zip(params, given, strict=True)}
    found = graph.write(results, values)
    outs = [_as_stored(graph.t, value) for value in found]
    if graph.t.checks:
        outs.append(graph.t.reshape(graph.t.fault.value, (1,)))
    arguments = ", ".join(
        f"{x.name}: {x.type}{' {jax.buffer_donor = true}' if k in donated else ''}" for k, x in enumerate(given)
    )
    types = ", ".join(x.type for x in outs)
    lines = [
        f"module @eshkol {{\n  func.func public @main({arguments}) -> ({types}) {{",
        *("    " + line for line in graph.t.buffers[0]),
        f"    return {', '.join(x.name for x in outs)} : {types}" if outs else "    return",
        "  }\n}\n",
    ]
    return Program("\n".join(lines), tuple(graph.t.checks))


def _lies(x: Node) -> tuple[Shape, DType]:
    """As what a value is handed over."""
    dtype = dtypes.uint8 if x.dtype.is_bool else x.dtype.real
    return (count(x.shape) * (2 if x.dtype.is_complex else 1),), dtype


def _as_value(t: Arrays, x: Value, node: Node) -> Value:
    if node.dtype.is_complex:
        pairs = t.reshape(x, (count(node.shape), 2))
        parts = [t.slice(pairs, (0, k), (pairs.shape[0], k + 1), (1, 1)) for k in range(2)]
        flat = t.op("complex", [t.reshape(p, (pairs.shape[0],)) for p in parts], (pairs.shape[0],), node.dtype)
        return t.reshape(flat, node.shape)
    return t.reshape(t.converted(x, node.dtype), node.shape)


def _as_stored(t: Arrays, x: Value) -> Value:
    size = count(x.shape)
    if x.dtype.is_complex:
        parts = [t.reshape(t.op(name, (x,), x.shape, x.dtype.real), (size, 1)) for name in ("real", "imag")]
        return t.reshape(t.joined(parts, 1), (2 * size,))
    return t.reshape(t.converted(x, dtypes.uint8) if x.dtype.is_bool else x, (size,))


class _Graph:
    """Writes the nodes of a graph, and of the functions in it."""

    def __init__(self, looked_at: bool) -> None:
        self.t = Arrays()
        self.looked_at = looked_at

    def write(self, results: Sequence[Node], values: dict[Node, Value]) -> list[Value]:
        """The values of results, of those that are given."""
        several: dict[Node, list[Value]] = {}

        def value_of(x: Node) -> Value:
            if x not in values:  # a number, or data that is there
                values[x] = self.t.table(host_array(x) if x.op is not CONST else x.attrs.array, x.dtype)
            return values[x]

        for node in needed(results, values.keys()):
            if node.op is PICK and node.inputs[0] in several:
                values[node] = several[node.inputs[0]][node.attrs.place]
                continue
            found = self._node(node, [value_of(x) for x in node.inputs])
            for value, aval in zip(found, node.outs or (Aval(node.shape, node.dtype),), strict=True):
                if value.shape != aval.shape or value.dtype is not aval.dtype:
                    raise TensorError(f"{described(node)} was written as {value.type}, not {type_of(*aval)}")
            if self.looked_at:
                self._look(node, found, [value_of(x) for x in node.inputs])
            if node.outs is None:
                values[node] = found[0]
            else:
                several[node] = found
        return [value_of(node) for node in results]

    def _node(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        alive = len(self.t.cells)
        if node.op in LOOPS:
            found = LOOPS[node.op](self.t, node.attrs, inputs, self._function)
        elif node.op is CHECKPOINT:  # as it is where nodes are looked at: its first inputs are its results
            found = [*inputs[: node.attrs.results]]
        elif type(node.op.lower) is Parts:
            found = self._composed(node, inputs)
        elif node.op.name in ROWS:
            found = list(arrays_of(ROWS[node.op.name](self.t, node, *inputs)))
        elif node.dtype.is_complex and node.op.name in COMPLEX:
            found = [self.t.same(COMPLEX[node.op.name], *inputs)]
        else:
            found = self._replayed(node, inputs)
        del self.t.cells[alive:]
        return found

    def _composed(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        """What a node is composed of, which is not looked at: the node is."""
        looked_at, self.looked_at = self.looked_at, False
        found = self.write([composed(node)], dict(zip(node.inputs, inputs, strict=True)))
        self.looked_at = looked_at
        return found

    def _function(self, function: Any, inputs: Sequence[Value]) -> list[Value]:
        return self.write(function.results, dict(zip(function.params, inputs, strict=True)))

    def _replayed(self, node: Node, inputs: Sequence[Value]) -> list[Value]:
        how = lowering(node, arrays=False)
        if isinstance(how, Host | Macro) or not isinstance(how, Pull | Push):
            raise BackendUnavailable(
                f"{described(node)} cannot be said in StableHLO", span=where_asked(node),
                hint='compute it on the host: x.to("cpu"), and what follows with .to() back',
            )  # fmt: skip
        outs = list(node.outs or (Aval(node.shape, node.dtype),))
        if all(count(out.shape) == 0 for out in outs):
            return [self.t.constant(0, out.shape, out.dtype) for out in outs]
        if isinstance(how, Push) and how.side_by_side is not None:
            how = how.side_by_side
        shape = outs[0].shape if isinstance(how, Pull) else tuple(how.rows(node.attrs, *node.inputs))
        e = Replay(self.t, shape, node)
        reads = [Read(e, value) for value in inputs]
        if isinstance(how, Pull):
            found = how.code(e, node.attrs, e.here, *reads)
            each = (found,) if node.outs is None else found
            return [number_of(e, x, out.shape, out.dtype) for x, out in zip(each, outs, strict=True)]
        first = inputs[0] if isinstance(how, Update) else None
        writes = [Write(e, out.shape, out.dtype, first) for out in outs]
        if count(shape):
            how.code(e, node.attrs, e.here, writes[0] if node.outs is None else tuple(writes), *reads)
        return [write.result() for write in writes]

    def _look(self, node: Node, results: Sequence[Value], inputs: Sequence[Value]) -> None:
        """Note what is no number, where all inputs are."""
        t = self.t
        fine = [t.op("is_finite", (x,), x.shape, dtypes.bool_) for x in inputs if x.dtype.is_float]
        for x in results:
            if not x.dtype.is_float or node.op in LOOPS:
                continue
            nan = t.any(t.compare("NE", x, x))
            infinite = t.any(t.same("not", t.op("is_finite", (x,), x.shape, dtypes.bool_)))
            for wrong, said in ((nan, NAN), (infinite, INFINITY)):
                for truths in fine:
                    wrong = t.same("and", wrong, t.same("not", t.any(t.same("not", truths))))
                t.refuse(wrong, (node, said))
