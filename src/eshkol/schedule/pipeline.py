"""The compiler of graphs: a flat list of passes from the results of a function to a plan that a machine runs.

    exponentials   those of matrices, as products          rewrite/exponentials.py
    matrices   linear algebra as loops, on GPUs            rewrite/matrices.py
    simplify   fewer and cheaper nodes                     rewrite/simplify.py
    centred    gradients of normalizations in fewer sums   rewrite/centred.py
    arrange    products in better order and pieces         rewrite/arrange.py
    orders     sorts as far as they are read               rewrite/orders.py
    draws      random bits by blocks                       rewrite/draws.py
    factors    factors once, vectors if they are read      rewrite/factors.py
    windows    greatest elements of windows, by value      rewrite/windows.py
    attention  attention that kernels compute at once      rewrite/attention.py
    patterns   nodes that array instructions do at once    rewrite/patterns.py
    channels   convolutions as array instructions          rewrite/channels.py
    pairs      transforms, products of pairs of floats     rewrite/pairs.py, rewrite/signals.py
    turned     reductions along short rows, side by side   rewrite/turned.py
    joins      tensors joined along rows, few at a time    rewrite/joins.py
    parts      the others as what kernels are fused of     rewrite/decompose.py
    fuse       which nodes one kernel computes             kernels/fuse.py, kernels/fused.py
    plan       steps over places of memory                 plan/steps.py
    in place   what is changed rather than copied          plan/in_place.py
    together   small launches that are one loop            plan/together.py
    memory     where the places lie                        plan/arena.py

`ESHKOL_DUMP=simplify` (or another of these names, or `all`) prints what a pass gives. With checks on
(`check/switch.py`) every node is verified after each pass, and all of it is compared with the interpreter
(`check/validation.py`). Kernels are made on the way, by `kernels/lower.py`; a machine compiles them when it first runs
the plan.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from eshkol.atlas.machines import MachineDescription
from eshkol.errors import AllocationFailed
from eshkol.graph.node import Node, on_host
from eshkol.schedule.cache import COMPILER
from eshkol.schedule.check.switch import CHECKS
from eshkol.schedule.check.verify import verify
from eshkol.schedule.kernels.kernel import described
from eshkol.schedule.order import needed
from eshkol.schedule.plan.arena import arranged
from eshkol.schedule.plan.in_place import in_place as in_place  # where validation finds the passes that are run
from eshkol.schedule.plan.kept import Kept
from eshkol.schedule.plan.show import shown_plan
from eshkol.schedule.plan.steps import Plan
from eshkol.schedule.plan.steps import planned as planned
from eshkol.schedule.plan.together import together as together
from eshkol.schedule.plan.verify import verify_arena, verify_plan
from eshkol.schedule.rewrite.arrange import arrange
from eshkol.schedule.rewrite.attention import attention_in_fragments
from eshkol.schedule.rewrite.centred import centred_sums
from eshkol.schedule.rewrite.channels import channels_last
from eshkol.schedule.rewrite.decompose import decompose
from eshkol.schedule.rewrite.draws import draw_by_blocks
from eshkol.schedule.rewrite.exponentials import exponentials
from eshkol.schedule.rewrite.factors import share_factors
from eshkol.schedule.rewrite.joins import join_rows
from eshkol.schedule.rewrite.matrices import eliminate
from eshkol.schedule.rewrite.orders import cut_sorts
from eshkol.schedule.rewrite.pairs import as_pairs
from eshkol.schedule.rewrite.patterns import recognize
from eshkol.schedule.rewrite.simplify import simplify
from eshkol.schedule.rewrite.turned import turn_reductions
from eshkol.schedule.rewrite.walk import Pass, everywhere
from eshkol.schedule.rewrite.windows import greatest_of_windows
from eshkol.schedule.run.failures import explaining
from eshkol.schedule.run.native import DevicePlan, NativePlan
from eshkol.schedule.run.resident import Machine
from eshkol.schedule.run.stepwise import StepwisePlan, refuse_missing
from eshkol.schedule.run.whole import WholePlan
from eshkol.support import flags, observing
from eshkol.support.collector import without_collector
from eshkol.support.store import ProgramCache

ReadyPlan = NativePlan | DevicePlan | StepwisePlan | WholePlan
Stage = tuple[str, list[Node]]  # a pass, and what it gives
PASSES: list[tuple[str, Pass]] = [
    ("exponentials", everywhere(exponentials)),
    ("matrices", everywhere(eliminate)),
    ("simplify", lambda results, target: simplify(results)),  # which trims loops with their bodies
    ("centred", everywhere(centred_sums)),
    ("arrange", everywhere(arrange)),
    ("orders", everywhere(cut_sorts)),
    ("draws", everywhere(draw_by_blocks)),
    ("factors", everywhere(share_factors)),
    ("windows", everywhere(greatest_of_windows)),
    ("attention", everywhere(attention_in_fragments)),
    ("patterns", everywhere(recognize)),
    ("channels", everywhere(channels_last)),
    ("pairs", everywhere(as_pairs)),
    ("turned", everywhere(turn_reductions)),
    ("joins", everywhere(join_rows)),
    ("parts", everywhere(decompose)),
]


class Compiled:
    """A function as plans for machines: fused ones, and those that take every node by itself, for who looks at each."""

    def __init__(self, results: Sequence[Node], params: Sequence[Node]) -> None:
        self.results, self.params = list(results), list(params)
        self._fused: dict[MachineDescription, Plan] = {}
        self._plain: dict[MachineDescription, Plan] = {}
        self._ready: WeakKeyDictionary[Machine, dict[tuple[Any, ...], ReadyPlan]] = WeakKeyDictionary()
        self._recent: tuple[Any, Any, tuple[int, ...], ReadyPlan | None] = None, None, (), None  # what was run last
        self._looked_at: WeakKeyDictionary[Machine, StepwisePlan | WholePlan] = WeakKeyDictionary()
        # Where checks are on: the ways in which it was validated, how often it was found again, and what passes gave.
        self.validated: set[Any] = set()
        self.uses = 0
        self._stages: list[Stage] | None = None

    def plan(self, target: MachineDescription, store: ProgramCache | None = None) -> Plan:
        """The plan for machines of a description, through all passes, or as a store has it."""
        found = self._fused.get(target)
        if found is None:
            with COMPILER:
                found = self._fused.get(target)
                if found is None:
                    found = self._fused[target] = self._planned(target, store)
        return found

    def _planned(self, target: MachineDescription, store: ProgramCache | None) -> Plan:
        kept = found = None
        if store is not None and not flags.text("ESHKOL_DUMP"):  # who is to see what passes give has them run
            with without_collector():
                kept = Kept.of(store, self.results, self.params, target)
                found = None if kept is None else kept.find()
        if found is not None:
            self._stages = None
            _verified_plan(found, "kept")
            return found
        self._stages = [] if CHECKS.on else None
        made = compiled(self.results, self.params, target, self._stages)
        if kept is not None and not CHECKS.on:  # what is about to be compared may be wrong, and must not outlive that
            kept.keep(made)
        return made

    def plain(self, target: MachineDescription) -> Plan:
        """The plan that takes every node by itself."""
        if target not in self._plain:
            _verified(self.results, self.params, set())
            self._plain[target] = planned(self.results, self.params, target, fused=False)
        return self._plain[target]

    def stages(self) -> list[Stage] | None:
        """What passes over graphs gave when it was compiled last, once; None where that was not taken down."""
        found, self._stages = self._stages, None
        return found

    def run(
        self, given: Sequence[Any], machine: Machine, *, checked: bool = False, donated: Sequence[int] = ()
    ) -> list[Any]:
        """The results for values of the parameters: contiguous, aligned arrays of the right shapes and dtypes.

        A machine with memory of its own also takes values that are there, and its results stay there. Results may take
        the memory of parameters that are donated, by their places.
        """
        if checked:
            return self._run_checked(given, machine)
        key, target = tuple(donated), machine.description
        where, what, how, found = self._recent
        if found is None or where is not machine or what is not target or how != key:
            found = self.ready(machine, key)
            self._recent = machine, target, key, found
        if machine.shares_host_memory:
            return found.run(given)
        with COMPILER:  # one thread at a time asks anything of such a machine
            return found.run(given)

    def ready(self, machine: Machine, donated: tuple[int, ...] = ()) -> ReadyPlan:
        """The plan for a machine, where these parameters are donated."""
        target = machine.description  # which depends on how precise products are wanted
        plans, key = self._ready.get(machine), (target, *donated)
        found = None if plans is None else plans.get(key)
        if found is None:
            with COMPILER:
                plans = self._ready.setdefault(machine, {})
                found = plans.get(key)
                if found is None:
                    found = plans[key] = self._made_ready(machine, donated)
        return found

    def _made_ready(self, machine: Machine, donated: tuple[int, ...]) -> ReadyPlan:
        if not machine.whole_graphs:
            return ready_plan(self.plan(machine.description, machine.store), machine, donated)
        _verified(self.results, self.params, set())
        _fits(self.results, machine.description)
        with without_collector():
            return WholePlan(self.results, self.params, machine, donated)

    def quick(self, machine: Machine) -> Any:
        """The plan in C that computes it on a machine, where it is all in C."""
        found = self.ready(machine)
        return found.quick if isinstance(found, NativePlan) else None

    def _run_checked(self, given: Sequence[Any], machine: Machine) -> list[Any]:
        """Step by step, each node by itself, and none may give NaN or infinity of numbers that are neither."""
        with COMPILER:
            plan = self._looked_at.get(machine)
            if machine.whole_graphs:
                if plan is None:
                    plan = self._looked_at[machine] = WholePlan(self.results, self.params, machine, looked_at=True)
                return [*plan.run(given)]
            if plan is None:
                refuse_missing(self.plain(machine.description), machine)
                plan = self._looked_at[machine] = StepwisePlan(self.plain(machine.description), machine)
            assert isinstance(plan, StepwisePlan)
            results = plan.run(given, checked=True)
            return [*map(on_host, results)] if machine.shares_host_memory else [*results]


def ready_plan(plan: Plan, machine: Machine, donated: tuple[int, ...]) -> ReadyPlan:
    """A plan for a machine: in one go where its memory has addresses, else step by step."""
    with observing.timed(observing.COMPILE, "kernels"):
        return _ready_plan(plan, machine, donated)


def _ready_plan(plan: Plan, machine: Machine, donated: tuple[int, ...]) -> ReadyPlan:
    refuse_missing(plan, machine)
    if machine.shares_host_memory:
        return NativePlan(plan, machine, donated)
    if machine.has_addresses:
        made = DevicePlan(plan, machine, donated)
        return DevicePlan(plan, machine) if made.overwrites_too_soon else made  # an error must leave what was given
    return StepwisePlan(plan, machine)


def compiled(
    results: Sequence[Node], params: Sequence[Node], target: MachineDescription, stages: list[Stage] | None = None
) -> Plan:
    """The plan of a function's results, through all passes; `stages` takes down what those over graphs give."""
    with without_collector():
        return _compiled(results, params, target, stages)


def _compiled(
    results: Sequence[Node], params: Sequence[Node], target: MachineDescription, stages: list[Stage] | None
) -> Plan:
    looked_at: set[Node] = set()
    _verified(results, params, looked_at)
    _fits(results, target)
    for name, graph_pass in PASSES:
        with observing.timed(observing.COMPILE, name):
            results = graph_pass(results, target)
        if stages is not None:
            stages.append((name, results))
        _verified(results, params, looked_at)
        if flags.dumps(name):
            print(f"--- {name}", *map(described, needed(results, params)), sep="\n", file=sys.stderr)
    with observing.timed(observing.COMPILE, "plan"):
        plan = planned(results, params, target)
    _verified_plan(plan, "plan")
    with observing.timed(observing.COMPILE, "in place"):
        plan = in_place(plan)
    _verified_plan(plan, "in place")
    with observing.timed(observing.COMPILE, "together"):
        plan = together(plan)
    _verified_plan(plan, "together")
    if CHECKS.on:
        verify_arena(plan, arranged(plan))
    if flags.dumps("plan"):
        print(shown_plan(plan), file=sys.stderr)
    return plan


def _fits(results: Sequence[Node], target: MachineDescription) -> None:
    """Refuse results that are larger than anything the machine holds."""
    for node in results:
        if (size := node.size * node.dtype.size) > target.largest:
            with explaining(node):
                raise AllocationFailed(
                    f"a result of {size} bytes is over the limit of {target.largest} bytes",
                    hint="compute in smaller pieces",
                )


def _verified_plan(plan: Plan, name: str) -> None:
    if CHECKS.on:
        verify_plan(plan, name)


def _verified(results: Sequence[Node], params: Sequence[Node], looked_at: set[Node]) -> None:
    """Refuse nodes that are not as their rows say, where checks are asked for: those that were not looked at yet."""
    if CHECKS.on and not looked_at.issuperset(results):
        looked_at.update(params)  # of which there are more when a length has become a number
        found = needed(results, looked_at)
        verify_all(found)
        looked_at.update(found)


def verify_all(nodes: Sequence[Node]) -> None:
    """Refuse a node that is not as its row says, where checks are asked for."""
    if CHECKS.on:
        for node in nodes:
            with explaining(node):
                verify(node)
