"""Loops and branches of the graph as regions of StableHLO.

Comes in: a node of control flow, the values of its inputs, and what writes a function of the graph. Goes out: its
results. What a loop carries stands in cells (`text.py`), and so do the stacks that a scan writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.graph.control import Cond, Scan, While
from eshkol.ops import dtypes
from eshkol.schedule.whole.arrays import PLACE, Arrays
from eshkol.schedule.whole.text import Value

Body = Callable[[Any, Sequence[Value]], list[Value]]  # (function, values of its parameters) → its results


def scan(t: Arrays, a: Scan, inputs: Sequence[Value], body: Body) -> list[Value]:
    split = a.carries + a.elements
    walked, fixed = inputs[a.carries : split], inputs[split:]
    carries = [t.cell(x) for x in inputs[: a.carries]]
    avals = a.body.avals[a.carries :]
    stacks = [t.cell(t.constant(0, (a.length, *v.shape), v.dtype)) for v in avals]
    counter = t.cell(t.constant(0, (), PLACE))
    length, one = t.constant(a.length, (), PLACE), t.constant(1, (), PLACE)
    if not a.length:  # a region is written all the same, and there is no element to write it for
        return [c.value for c in (*carries, *stacks)]
    with t.while_(lambda: t.compare("LT", counter.value, length)):
        k = counter.value
        place = t.same("subtract", t.same("subtract", length, one), k) if a.reverse else k
        elements = [t.reshape(t.at_place(x, place), x.shape[1:]) for x in walked]
        results = body(a.body, [*(c.value for c in carries), *elements, *fixed])
        for c, value in zip(carries, results[: a.carries], strict=True):
            c.value = value
        for c, value in zip(stacks, results[a.carries :], strict=True):
            c.value = t.put_at(c.value, t.reshape(value, (1, *value.shape)), place)
        counter.value = t.same("add", k, one)
    return [c.value for c in (*carries, *stacks)]


def while_loop(t: Arrays, a: While, inputs: Sequence[Value], body: Body) -> list[Value]:
    """The test is computed before the loop and at the end of each round, so that its checks are noted, too."""
    tested, used = inputs[a.carries :][: a.tested], inputs[a.carries + a.tested :]
    carries = [t.cell(x) for x in inputs[: a.carries]]

    def holds() -> Value:
        (truth,) = body(a.test, [*(c.value for c in carries), *tested])
        found = t.converted(t.reshape(truth, ()), dtypes.bool_)
        fine = t.compare("EQ", t.fault.value, t.constant(0, (), dtypes.int32))
        return t.same("and", found, fine)  # what went wrong may be what would have ended it

    truth = t.cell(holds())
    with t.while_(lambda: truth.value):
        results = body(a.body, [*(c.value for c in carries), *used])
        for c, value in zip(carries, results, strict=True):
            c.value = value
        truth.value = holds()
    return [c.value for c in carries]


def branch(t: Arrays, a: Cond, inputs: Sequence[Value], body: Body) -> list[Value]:
    truth = t.converted(t.reshape(inputs[0], ()), dtypes.bool_)
    return t.if_(truth, [lambda f=f: body(f, inputs[1:]) for f in a])  # type: ignore[misc]
