"""The compiler of graphs: a flat list of passes from the results of a function to a plan that a machine runs.

    simplify   fewer and cheaper nodes                     simplify.py
    patterns   nodes that array instructions do at once    patterns.py
    parts      the others as what kernels are fused of     decompose.py
    fuse       which nodes one kernel computes             fuse.py, fused.py
    plan       steps over places of memory                 plan.py
    in place   what is changed rather than copied          in_place.py
    together   small launches that are one loop            together.py
    memory     where the places lie                        arena.py

`ESHKOL_DUMP=simplify` (or another of these names, or `all`) prints what a pass gives; with `ESHKOL_CHECK=1` every node
is verified behind each pass. Kernels are made on the way, by `lower.py`; a machine compiles them when it first runs the
plan.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from eshkol.collector import without_collector
from eshkol.graph.node import Node
from eshkol.schedule import stepwise
from eshkol.schedule.decompose import decompose
from eshkol.schedule.failures import explaining
from eshkol.schedule.in_place import in_place
from eshkol.schedule.lower import described
from eshkol.schedule.memory import Array, Machine
from eshkol.schedule.native import NativePlan
from eshkol.schedule.order import needed
from eshkol.schedule.patterns import recognize
from eshkol.schedule.plan import Plan, planned
from eshkol.schedule.show import shown_plan
from eshkol.schedule.simplify import simplify
from eshkol.schedule.together import together
from eshkol.schedule.verify import verify

GraphPass = Callable[[Sequence[Node]], list[Node]]
PASSES: list[tuple[str, GraphPass]] = [("simplify", simplify), ("patterns", recognize), ("parts", decompose)]


class Compiled:
    """A function as plans: one that is fused, and one that takes every node by itself, for those who look at each."""

    def __init__(self, results: Sequence[Node], params: Sequence[Node]) -> None:
        self._results, self._params = list(results), list(params)
        self._fused: Plan | None = None
        self._plain: Plan | None = None
        self._native: WeakKeyDictionary[Machine, dict[tuple[int, ...], NativePlan]] = WeakKeyDictionary()

    @property
    def plan(self) -> Plan:
        if self._fused is None:
            self._fused = compiled(self._results, self._params)
        return self._fused

    def run(
        self, arrays: Sequence[Array], machine: Machine, *, checked: bool = False, donated: Sequence[int] = ()
    ) -> list[Array]:
        """The results for values of the parameters: contiguous, aligned arrays of the right shapes and dtypes.

        Results may take the memory of parameters that are donated, by their places.
        """
        if checked:
            if self._plain is None:
                _verified(self._results, self._params)
                self._plain = planned(self._results, self._params, fused=False)
            return stepwise.run(self._plain, arrays, machine, checked=True)
        if not machine.shares_host_memory:
            return stepwise.run(self.plan, arrays, machine)
        plans = self._native.get(machine)
        if plans is None:
            plans = self._native[machine] = {}
        key = tuple(donated)
        found = plans.get(key)
        if found is None:
            found = plans[key] = NativePlan(self.plan, machine, key)
        return found.run(arrays)


def compiled(results: Sequence[Node], params: Sequence[Node]) -> Plan:
    """The plan of a function's results, through all passes."""
    with without_collector():
        return _compiled(results, params)


def _compiled(results: Sequence[Node], params: Sequence[Node]) -> Plan:
    _verified(results, params)
    for name, graph_pass in PASSES:
        results = graph_pass(results)
        _verified(results, params)
        if dumps(name):
            print(f"--- {name}", *map(described, needed(results, params)), sep="\n", file=sys.stderr)
    plan = together(in_place(planned(results, params)))
    if dumps("plan") or dumps("memory"):
        print(shown_plan(plan), file=sys.stderr)
    return plan


def dumps(name: str) -> bool:
    """Whether what a pass gives is asked for."""
    return os.environ.get("ESHKOL_DUMP") in (name, "all")


def _verified(results: Sequence[Node], params: Sequence[Node]) -> None:
    if os.environ.get("ESHKOL_CHECK") == "1":
        verify_all(needed(results, params))


def verify_all(nodes: Sequence[Node]) -> None:
    """Refuse a node that is not as its row says, where checks are asked for."""
    if os.environ.get("ESHKOL_CHECK") == "1":
        for node in nodes:
            with explaining(node):
                verify(node)
