"""What plans are made of, for many functions on several kinds of machines: kept in `plan_sizes.txt`.

    PYTHONPATH=src:tests .venv/bin/python tests/schedule/plan_sizes.py               # writes it anew: if that is meant
    PYTHONPATH=src:tests .venv/bin/python tests/schedule/plan_sizes.py --show norm   # plans of a function in full

What is fused with what, which way a kernel goes and where values lie change no answer, but how fast it comes. Comes in:
functions of tensors (`planned_functions.py`). Goes out: a line for each with, for each machine, and again for the
derivative, launches, those that are done together, steps of the host, copies, bytes of the arena, instructions of all
kernels, how many of them load and store, and a digest of all that the plan consists of (`plan_texts.py`). Nothing is
run, and the machine at hand makes no difference.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import eshkol as ek
from eshkol.atlas.machines import BLOCKS, CORES, MATRICES, Precision
from eshkol.backends.blocks import DESCRIPTION
from eshkol.backends.xla.backend import DESCRIPTION as GRAPHS
from eshkol.errors import BackendUnavailable
from eshkol.graph.function import trace
from eshkol.graph.node import Node
from eshkol.ops.row import Aval
from eshkol.schedule.cache import nothing_kept
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.arena import arranged
from eshkol.schedule.plan.steps import Copy, Launch, OnHost, Plan, Together, planned, walk
from eshkol.schedule.run.whole import WholePlan
from eshkol.tensors.value import Tensor

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from plan_texts import conditions_text, digest, said, text
from planned_functions import AS_GRAPHS, FUNCTIONS, SINGLE, Case, Function, total

KEPT = Path(__file__).parent / "plan_sizes.txt"
WRITE = "PYTHONPATH=src:tests .venv/bin/python tests/schedule/plan_sizes.py"
MACHINES = {
    "cpu": replace(CORES, name="cpu", native=True),
    "small blocks": DESCRIPTION,
    "blocks": replace(BLOCKS, shared_memory=227 << 10, processors=132, matrices=MATRICES),
    # Sizes so small that small programs go all the ways that large ones do, and without code for some ops.
    "small cores": replace(
        CORES,
        busy=4,
        lane_work=32,
        long=48,
        part_work=16,
        stretch=8,
        piece=16,
        strip=4,
        tile=2,
        small=1 << 10,
        held=1 << 9,
    ),
    "single lanes": replace(DESCRIPTION, subgroup=1, shared_memory=1 << 10),
    "high": replace(DESCRIPTION, float32_products=Precision.HIGH),
    # With groups of warps, which do products, attention and convolutions as whole array instructions.
    "whole": replace(BLOCKS, shared_memory=227 << 10, processors=132, matrices=replace(MATRICES, whole=True)),
    "small whole": replace(DESCRIPTION, processors=2, matrices=replace(MATRICES, whole=True)),
    "whole high": replace(DESCRIPTION, matrices=replace(MATRICES, whole=True), float32_products=Precision.HIGH),
}
LARGEST = 1 << 24  # elements of inputs that are made
ALONE = "each alone"  # every node by itself, as who looks for NaN has it


def sizes(plan: Plan) -> str:
    """What a plan is made of."""
    steps = [*walk(plan.steps)]
    launches = [s for s in steps if isinstance(s, Launch)]
    codes = [i.op.name for s in launches for i in s.kernel.program.instructions]
    counts = [
        len(launches), *(sum(isinstance(s, t) for s in steps) for t in (Together, OnHost, Copy)), arranged(plan).size,
        len(codes), *(sum(code.startswith(name) for code in codes) for name in ("LD", "ST")),
    ]  # fmt: skip
    return " ".join(map(str, counts))


def _aval(spec: Any) -> Aval:
    """What an input is like: a shape of float32, or a dtype and a shape."""
    dtype, shape = spec if isinstance(spec[0] if spec else None, str) else (SINGLE, spec)
    return Aval(shape, getattr(ek, dtype))


def array(spec: Any) -> Any:
    """An input."""
    shape, dtype = _aval(spec)
    return ek.tensor(np.zeros(shape)).astype(dtype)


class Graph(NamedTuple):
    """A function that was traced."""

    results: Sequence[Node]
    params: Sequence[Node]


def graph_of(function: Function, specs: Sequence[Any]) -> Graph:
    """The results of a function and its parameters, as `jit` has them compiled."""
    avals = [_aval(spec) for spec in specs]
    if max(math.prod(aval.shape) for aval in avals) > LARGEST:
        found, _ = trace(lambda *xs: [y._node for y in function(*map(Tensor, xs))], avals, "inputs that nobody has")
        return Graph(found.results, found.params)
    compiled = ek.jit(function, dynamic=False).traced(*map(array, specs)).compiled
    return Graph(compiled.results, compiled.params)


class Planned(NamedTuple):
    """One of the plans of a function."""

    way: str  # the machine, and whether it is the function itself or its derivative
    plan: Plan
    right_for: str = ""  # sizes, where it is a plan for many

    @property
    def text(self) -> str:
        return text(self.plan) + self.right_for

    @property
    def kept(self) -> str:
        return f"{sizes(self.plan)} {digest(self.text)}"


class Written(NamedTuple):
    """The text that a machine for whole graphs is given for a function."""

    way: str
    text: str

    @property
    def kept(self) -> str:
        return f"{self.text.count(chr(10))} {digest(self.text)}"


class Writer:
    """A machine for whole graphs that keeps what it is given."""

    description = GRAPHS

    def __init__(self) -> None:
        self.text = ""

    def graph_program(self, written: str, outs: Any) -> Writer:
        self.text = f"{written}{said(outs)}"
        return self


def written(graph: Graph) -> str:
    """What a machine for whole graphs is given: the first parameter is donated; and with every node looked at."""
    given = {"donated": range(1)}, {"looked_at": True}
    return "\n".join(_given(graph, **options) for options in given)


def _given(graph: Graph, **options: Any) -> str:
    machine = Writer()
    try:
        WholePlan(graph.results, graph.params, machine, **options)
    except BackendUnavailable as refused:  # such as what only the host computes
        return refused.message
    return machine.text


def _functions(case: Case) -> dict[str, Function]:
    """A function, and its derivative, by what they are called."""
    smooth = tuple(k for k, spec in enumerate(case.inputs) if _aval(spec).dtype.is_float)
    made = {"": case.function}
    if smooth and case.derivative:
        made["'s derivative"] = ek.grad(total(case.function), argnums=smooth)
    return made


def graphs(name: str) -> Iterator[tuple[str, Graph]]:
    """A function and its derivative, traced, and which of the two it is."""
    case = FUNCTIONS[name]
    for which, one in _functions(case).items():
        yield which, graph_of(one, case.inputs)


def _for_all_lengths(name: str) -> Iterator[Planned]:
    """The plans of a function for all lengths of axes."""
    case = FUNCTIONS[name]
    for which, one in _functions(case).items():
        for machine in case.machines:
            target = SimpleNamespace(description=MACHINES[machine])  # all that planning asks of a machine
            make, _, length = ek.jit(one, dynamic=case.told).for_all_sizes(tuple(map(array, case.inputs)), target)
            made = make(length)
            found = conditions_text(made.conditions)  # before anyone asks for numbers
            yield Planned(f"{name}{which} on {machine}, told lengths", made.plan, found)


def plans(name: str) -> Iterator[Planned | Written]:
    """The plans of a function: for each machine, and those of its derivative."""
    if FUNCTIONS[name].told:
        yield from _for_all_lengths(name)
        return
    for which, graph in graphs(name):
        results, params = graph
        for machine in FUNCTIONS[name].machines:
            if machine == ALONE:
                plan = planned(results, params, MACHINES["cpu"], fused=False)
            else:
                plan = compiled(results, params, MACHINES[machine])
            yield Planned(f"{name}{which} on {machine}", plan)
        if name in AS_GRAPHS:
            yield Written(f"{name}{which} as a text", written(graph))


def line(name: str) -> str:
    """What is kept of a function."""
    return f"{name}: {' | '.join(each.kept for each in plans(name))}"


def lines() -> Iterator[str]:
    """What is kept, each function by itself: what others leave in the compiler's caches must make no difference."""
    for name in FUNCTIONS:
        with nothing_kept():
            yield line(name)


def shown(name: str) -> str:
    """The plans of a function in full."""
    if name not in FUNCTIONS:
        raise SystemExit(f"no function {name!r}; there are {', '.join(FUNCTIONS)}")
    with nothing_kept():
        return "\n\n".join(f"=== {each.way}: {each.kept}\n{each.text}" for each in plans(name))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--show"]:
        print(shown(" ".join(sys.argv[2:])))
    else:
        KEPT.write_text("".join(f"{each}\n" for each in lines()))
