"""Translation validation: what was compiled against the interpreter of the graph (`ek.check`, `ESHKOL_CHECK=1`).

Comes in: a function's plans, when they are first run, with the values at hand. Compared with `graph/interpret.py`, on
these values and on random ones like them, are

- the graph after each pass over graphs, by itself;
- each kernel, with each structure of nodes that it is found for: by itself, on the machine at hand;
- the results of the plan as the machine runs it; then, if they differ, what each pass over plans gives;
- what was found again by the structure of a graph (plans of `execute.py`, gradients of `gradients.py`), with the graph
  at hand.

Goes out: the plan's results, or a `MiscompiledError` that names the pass and shows the smallest graph. What takes the
interpreter too long is left out, and counted (`checking.Counts`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.errors import EshkolError, MiscompiledError
from eshkol.graph.control import SCAN, WHILE
from eshkol.graph.custom import BARRIER
from eshkol.graph.function import Function
from eshkol.graph.node import Node, on_host, picks, topological
from eshkol.ops.row import Nested
from eshkol.ops.structural import CONST, PICK
from eshkol.schedule import pipeline
from eshkol.schedule.cache import Cache, nothing_kept
from eshkol.schedule.check.agreement import REFUSED, Array, Difference, Interpretation, difference, drawn, finite
from eshkol.schedule.check.smallest import Case, over, own, shown, smallest
from eshkol.schedule.check.switch import CHECKS
from eshkol.schedule.kernels.fuse import Group
from eshkol.schedule.kernels.kernel import ALIASES, described
from eshkol.schedule.pipeline import Compiled
from eshkol.schedule.plan.steps import Launch, Plan, Step, Together, While, planned, planned_alone, walk
from eshkol.schedule.run import stepwise
from eshkol.schedule.run.failures import where_asked
from eshkol.schedule.run.native import NativePlan
from eshkol.schedule.run.resident import Machine
from eshkol.schedule.run.whole import WholePlan

MOST_WORK = 1 << 22  # elements that the interpreter computes for one graph
MOST_ROUNDS = 1 << 12  # rounds of loops
SMALL = 1 << 12  # elements up to which a kernel that differs is run on the reference backend too

Run = Callable[[Sequence[Node], Sequence[Node], Sequence[Array]], Sequence[Array]]


NOWHERE = Difference(0, (), None, None)


class Trial(NamedTuple):
    """Values of the parameters, and what the interpreter gives for them."""

    arrays: list[Array]
    expected: list[Array]


def run(
    compiled: Compiled, at_hand: Sequence[Any], machine: Machine, checked: bool, donated: Sequence[int]
) -> list[Any]:
    """The results of a plan; when it is run in this way for the first time, validated."""
    way = type(machine), checked, tuple(donated)
    if way in compiled.validated:
        return compiled.run(at_hand, machine, checked=checked, donated=donated)
    results, params = compiled.results, compiled.params
    trials = _trials(results, params, [*map(on_host, at_hand)])
    if not trials:
        CHECKS.counts.left_out += 1
        compiled.validated.add(way)
        return compiled.run(at_hand, machine, checked=checked, donated=donated)
    final: Sequence[Node] = results
    try:
        if not machine.whole_graphs:  # which has no plan of kernels: what it gives is compared, and that alone
            final = _plan(compiled, trials, checked, machine)
    except MiscompiledError as error:
        error.donated_kept = True  # nothing was run on the values at hand
        raise
    variants = _variants(machine, checked)
    found: list[Any] | None = None
    for trial in trials:
        first = found is None
        if not first and _may_not_end(compiled, machine):
            continue  # which might go on for ever if a rounding were another
        given = at_hand if first else [own(a) for a in trial.arrays]
        try:
            got = compiled.run(given, machine, checked=checked, donated=donated)
        except EshkolError:
            if first:
                raise
            continue  # values that the plan refuses: an index, a division by zero
        seen = [*map(on_host, got)]
        wrong = difference(results, dict(zip(params, trial.arrays, strict=True)), trial.expected, seen)
        if wrong is not None:
            _localised(Case([*final], [*params], trial.arrays, wrong), variants)
        _unchanged(Case([*final], [*params], trial.arrays, NOWHERE), [*map(_as_it_is, given)], donated)
        if first:
            found = got
    CHECKS.counts.plans += 1
    compiled.validated.add(way)
    assert found is not None
    return found


def _plan(compiled: Compiled, trials: Sequence[Trial], checked: bool, machine: Machine) -> Sequence[Node]:
    """What the last pass gives, after passes and kernels were compared."""
    if not checked:
        compiled.plan(machine.description, machine.store)  # as it is when nothing is checked: found, where it is kept
    final, tasks = _passes(compiled, trials, checked, machine.description)
    _kernels(final, compiled.params, tasks, trials[0], machine)
    if not checked:
        case = Case([*final], [*compiled.params], trials[0].arrays, NOWHERE)
        _independent(compiled.plan(machine.description), case)
    return final


def _may_not_end(compiled: Compiled, machine: Machine) -> bool:
    """Whether a function has a loop of which no one knows how often it is gone through."""
    if machine.whole_graphs:
        return any(node.op is WHILE for node in topological(compiled.results))
    return any(isinstance(s, While) for s in walk(compiled.plan(machine.description).steps))


def _trials(results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Array]) -> list[Trial]:
    """The values at hand, and random ones that the graph takes; nothing if the interpreter would take too long."""
    if _work(results) > MOST_WORK:
        return []
    copies = [own(a) for a in arrays]
    first = Interpretation(most=MOST_ROUNDS)
    try:
        trials = [Trial(copies, first(results, dict(zip(params, copies, strict=True))))]
    except REFUSED:
        return []
    for seed in range(CHECKS.draws if params else 0):
        rng = np.random.default_rng(seed)
        values = [own(drawn(a, rng)) for a in copies]
        try:
            expected = Interpretation(most=4 * first.rounds + 64)(results, dict(zip(params, values, strict=True)))
        except REFUSED:
            continue
        if finite(expected):
            trials.append(Trial(values, expected))
    CHECKS.counts.draws += len(trials) - 1
    return trials


def _work(results: Sequence[Node]) -> int:
    """Elements that the interpreter computes."""
    total = 0
    for node in topological(results, through=lambda x: () if x.data is not None else x.inputs):
        avals: Sequence[Any] = (node,) if node.outs is None else node.outs
        total += sum(math.prod(a.shape) for a in avals)
        if isinstance(node.op.lower, Nested):
            length = node.attrs.length if node.op is SCAN else 1
            total += length * sum(_work(a.results) for a in node.attrs if isinstance(a, Function))
    return total


# --- passes over graphs -----------------------------------------------------------------------------


def _passes(
    compiled: Compiled, trials: Sequence[Trial], checked: bool, target: MachineDescription
) -> tuple[Sequence[Node], Sequence[Node | Group]]:
    """What the last pass gives, and what its plan is made of; each pass compared with what came before it."""
    results, params = compiled.results, compiled.params
    if checked:  # every node by itself, as it is
        return results, compiled.plain(target).tasks
    tasks = compiled.plan(target).tasks
    stages = compiled.stages()
    if stages is None:  # it was compiled before checks were asked for
        stages, after = [], results
        for name, graph_pass in pipeline.PASSES:
            stages.append((name, after := graph_pass(after, target)))
        tasks = planned(after, params, target).tasks
    before = results
    for name, after in stages:
        if any(one is not other for one, other in zip(before, after, strict=True)):
            for trial in trials:
                _pass(compiled, name, before, after, trial, target)
            CHECKS.counts.passes += 1
        before = after
    return before, tasks


def _pass(
    compiled: Compiled, name: str, before: Sequence[Node], after: Sequence[Node], trial: Trial,
    target: MachineDescription,
) -> None:  # fmt: skip
    given = dict(zip(compiled.params, trial.arrays, strict=True))
    try:
        found = Interpretation(most=MOST_ROUNDS)(after, given)
        wrong = difference(compiled.results, given, trial.expected, found)
    except REFUSED as error:
        wrong = Difference(0, (), "a value", f"an error: {error}")
    if wrong is None:
        return
    graph_pass = dict(pipeline.PASSES)[name]

    def differs(results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Array]) -> Difference | None:
        given = dict(zip(params, arrays, strict=True))
        expected = Interpretation(most=MOST_ROUNDS)(results, given)
        try:
            got = Interpretation(most=MOST_ROUNDS)(graph_pass(results, target), given)
        except REFUSED as error:
            return Difference(0, (), "a value", f"an error: {error}")
        return difference(results, given, expected, got)

    whole = Case([*before], [*compiled.params], trial.arrays, wrong)
    _refuse(name, f"the pass '{name}' changed the results of a graph", smallest(whole, differs))


# --- kernels ----------------------------------------------------------------------------------------

_validated = Cache()  # kernels, by the structures that they were validated for


def _kernels(
    results: Sequence[Node], params: Sequence[Node], tasks: Sequence[Node | Group], trial: Trial, machine: Machine
) -> None:
    """Compare each kernel that computes some of the tasks, and that was not yet seen to do so."""
    values: dict[Node, Any] | None = None
    for task in tasks:
        if not _has_kernel(task):
            continue
        plan, inputs = planned_alone(task, machine.description)
        kernels = [step.kernel for step in plan.steps if isinstance(step, Launch)]
        if not kernels or len(kernels) != len(plan.steps):
            continue  # nothing to compute, or the host computes it
        key = type(machine), _structure(task)
        seen = _validated.get(key)
        if seen is not None and len(seen) == len(kernels) and all(a is b for a, b in zip(seen, kernels, strict=True)):
            continue
        if values is None:
            whole = Interpretation(most=MOST_ROUNDS)
            whole(results, dict(zip(params, trial.arrays, strict=True)))
            values = whole.values
        at_hand = [values[x] if x in values else None if x.data is None else on_host(x.data) for x in inputs]
        if any(a is None for a in at_hand):
            continue  # in a body that these values do not reach
        _kernel(task, inputs, [own(a) for a in at_hand], machine)
        _validated.keep(key, kernels)


def _has_kernel(task: Node | Group) -> bool:
    if isinstance(task, Group):
        return True
    op = task.op
    return not (op is PICK or op is BARRIER or op in ALIASES or isinstance(op.lower, Nested))


def _structure(task: Node | Group) -> Any:
    """All that a kernel's results can depend on besides the values of its inputs."""
    nodes, outs = ((task,), (task,)) if isinstance(task, Node) else (task.nodes, task.outs)
    inputs = list(dict.fromkeys(task.inputs))
    names = {x: k for k, x in enumerate((*inputs, *nodes))}
    parts = [
        (n.op, n.attrs, n.shape, n.dtype, n.outs, *(names[x] for x in n.inputs)) for n in nodes
    ]  # fmt: skip
    given = [(x.shape, x.dtype, x.attrs if x.op is CONST else None) for x in inputs]
    kind = None if isinstance(task, Node) else (task.kind, task.runs, task.shape)
    return tuple(parts), tuple(given), tuple(names[n] for n in outs), kind


def _kernel(task: Node | Group, inputs: Sequence[Node], at_hand: list[Array], machine: Machine) -> None:
    outs: Sequence[Node] = (task,) if isinstance(task, Node) else task.outs
    CHECKS.counts.kernels += 1
    for seed in range(1 + CHECKS.draws):
        rng = np.random.default_rng(seed)
        arrays = at_hand if seed == 0 else [own(drawn(a, rng)) for a in at_hand]
        given = dict(zip(inputs, arrays, strict=True))
        try:
            expected = _several(Interpretation()(outs, given))
        except REFUSED:
            continue
        if seed and not finite(expected):
            continue
        try:
            got = stepwise.run(planned_alone(task, machine.description)[0], arrays, machine)
        except EshkolError:
            if seed == 0:
                return  # the plan is going to say so
            continue
        wrong = _difference_of_kernel(outs, given, expected, got)
        if wrong is not None:
            _refuse_kernel(task, inputs, arrays, expected, wrong, machine)


def _several(arrays: Sequence[Any]) -> list[Any]:
    return [b for a in arrays for b in (a if isinstance(a, tuple) else (a,))]


def _difference_of_kernel(
    outs: Sequence[Node], given: dict[Node, Any], expected: Sequence[Array], got: Sequence[Array]
) -> Difference | None:
    if any(n.outs is not None for n in outs):
        (node,) = outs
        return difference(picks(node), given, expected, got)
    return difference(outs, given, expected, got)


def _refuse_kernel(
    task: Node | Group, inputs: Sequence[Node], arrays: list[Array], expected: Sequence[Array], wrong: Difference,
    machine: Machine,
) -> NoReturn:  # fmt: skip
    """Tell whether the kernel is wrong, or was kept for something else, or is compiled wrongly by the machine."""
    outs: Sequence[Node] = (task,) if isinstance(task, Node) else task.outs
    given = dict(zip(inputs, arrays, strict=True))
    target = machine.description
    program = next(s.kernel.program.name for s in planned_alone(task, target)[0].steps if isinstance(s, Launch))
    stage, what = "lower", f"the kernel {program}"
    with nothing_kept():
        anew = stepwise.run(planned_alone(task, target)[0], arrays, machine)
        if _difference_of_kernel(outs, given, expected, anew) is None:
            stage = "kernel cache"
            what = (
                f"a kernel kept for another structure was taken for {program}: what it is kept by says too little. It"
            )
    if stage == "lower" and sum(math.prod(n.shape) for n in (*inputs, *outs)) <= SMALL:
        there = stepwise.run(planned_alone(task, target)[0], arrays, CHECKS.reference())
        if _difference_of_kernel(outs, given, expected, there) is None:
            stage = f"code of the backend {getattr(machine, 'name', type(machine).__name__)}"
            what += f", which the reference backend runs as it should, on the backend {stage.rsplit(' ', 1)[1]},"
    if any(n.outs is not None for n in outs):
        outs = picks(outs[0])
    results, params = over(outs, inputs)
    whole = Case(results, params, arrays, wrong)

    def differs(results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Array]) -> Difference | None:
        return _compared(lambda r, p, a: stepwise.run(planned(r, p, target), a, machine), results, params, arrays)

    _refuse(stage, f"{what} gave a wrong result", smallest(whole, differs) if stage != "kernel cache" else whole)


# --- plans ------------------------------------------------------------------------------------------


def _compared(run: Run, results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Array]) -> Difference | None:
    given = dict(zip(params, arrays, strict=True))
    expected = Interpretation(most=MOST_ROUNDS)(results, given)
    return difference(results, given, expected, run(results, params, [own(a) for a in arrays]))


def _variants(machine: Machine, checked: bool) -> list[tuple[str, Run]]:
    """A function computed with ever more of the passes, each with the pass that is at fault if it is wrong."""
    if machine.whole_graphs:
        return [("whole", lambda r, p, a: [x.host() for x in WholePlan(r, p, machine, looked_at=checked).run(a)])]
    in_place, together = pipeline.in_place, pipeline.together

    def planned(r: Sequence[Node], p: Sequence[Node], fused: bool = True) -> Plan:
        return pipeline.planned(r, p, machine.description, fused=fused)

    found: list[tuple[str, Run]] = [("plan", lambda r, p, a: stepwise.run(planned(r, p, fused=False), a, machine))]
    if not checked:
        found += [
            ("fuse", lambda r, p, a: stepwise.run(planned(r, p), a, machine)),
            ("in place", lambda r, p, a: stepwise.run(in_place(planned(r, p)), a, machine)),
            ("together", lambda r, p, a: stepwise.run(_backwards(together(in_place(planned(r, p)))), a, machine)),
            ("together", lambda r, p, a: stepwise.run(together(in_place(planned(r, p))), a, machine)),
        ]  # fmt: skip
        if machine.shares_host_memory:
            found.append(("memory", lambda r, p, a: NativePlan(together(in_place(planned(r, p))), machine).run(a)))
    return found


def _backwards(plan: Plan) -> Plan:
    """The plan, in which what is done together is done in the other order: it should not matter."""

    def turned(step: Step) -> Step:
        return replace(step, launches=step.launches[::-1]) if isinstance(step, Together) else step

    return replace(plan, steps=tuple(map(turned, plan.steps)))


def _independent(plan: Plan, case: Case) -> None:
    """Refuse launches that are done together though one of them needs another: a run may well not show it."""
    for step in walk(plan.steps):
        if not isinstance(step, Together):
            continue
        for k, one in enumerate(step.launches):
            written = set(one.writes)
            for other in step.launches[k + 1 :]:
                if not written.isdisjoint((*other.reads, *other.writes)) or not set(other.writes).isdisjoint(one.reads):
                    pair = f"{described(one.node)} and {described(other.node)}"
                    _refuse(
                        "together", f"the pass 'together' has {pair} done at the same time; one needs the other", case
                    )


def _localised(case: Case, variants: Sequence[tuple[str, Run]]) -> NoReturn:
    """Name the first pass with which a function is computed wrongly."""
    for name, variant in variants:

        def differs(
            results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Array], variant: Run = variant
        ) -> Difference | None:
            return _compared(variant, results, params, arrays)

        try:
            found = differs(case.results, case.params, case.arrays)
        except REFUSED as error:
            found = Difference(0, (), "a value", f"an error: {error}")
        if found is not None:
            least = smallest(case._replace(difference=found), differs)
            _refuse(name, f"a plan is wrong from the pass '{name}' on: its results differ", least)
    _refuse("memory", "a plan gave a wrong result; made again, in memory of its own, it is right", case)


def _as_it_is(value: Any) -> Array:
    """A value as the machine has it now, whatever the host may have seen of it before."""
    if type(value) is not np.ndarray:
        value.forget_host()
    found: Array = on_host(value)
    return found


def _unchanged(case: Case, arrays: Sequence[Array], donated: Sequence[int]) -> None:
    """Refuse a plan that wrote into the memory of a parameter that was not donated."""
    for k, (before, now) in enumerate(zip(case.arrays, arrays, strict=True)):
        if k not in donated and before.tobytes() != now.tobytes():
            flat = (np.frombuffer(before.tobytes(), np.uint8) != np.frombuffer(now.tobytes(), np.uint8)).argmax()
            index = tuple(int(i) for i in np.unravel_index(int(flat) // before.itemsize, before.shape))
            told = case._replace(difference=Difference(k, index, before[index], now[index]))
            _refuse("in place", f"a plan wrote into the memory of its parameter {k}, which is not its own", told)


# --- what was found again by structure ----------------------------------------------------------------


def comes_again(compiled: Compiled) -> bool:
    """Whether what was kept is to be compared with the graph at hand: at uses 1, 2, 4, 8 …"""
    compiled.uses += 1
    return compiled.uses & (compiled.uses - 1) == 0 and _work(compiled.results) <= MOST_WORK


def comparison(compiled: Compiled, nodes: Sequence[Node]) -> Callable[[Sequence[Array]], None] | None:
    """What compares results of a plan that was kept with nodes at hand; None where it is not their turn."""
    if not comes_again(compiled):
        return None
    try:
        expected = [own(a) for a in Interpretation(most=MOST_ROUNDS)(nodes, {})]
    except REFUSED:
        return None
    return lambda found: kept("plans kept by structure", nodes, [*map(on_host, found)], expected=expected)


def kept(
    what: str, results: Sequence[Node], found: Sequence[Array], params: Sequence[Node] = (),
    arrays: Sequence[Array] = (), expected: Sequence[Array] | None = None,
) -> None:  # fmt: skip
    """Refuse results of what was kept for the structure of a graph that are not those of the graph at hand."""
    CHECKS.counts.kept += 1
    given = dict(zip(params, arrays, strict=True))
    try:
        if expected is None:
            expected = Interpretation(most=MOST_ROUNDS)(results, given)
        wrong = difference(results, given, expected, found)
    except REFUSED:
        return
    if wrong is not None:
        told = f"{what}: what was compiled for another graph was taken for this one"
        _refuse(what, told, Case([*results], [*params], [*arrays], wrong))


# --- the error --------------------------------------------------------------------------------------


def _refuse(stage: str, message: str, case: Case) -> NoReturn:
    node = case.results[min(case.difference.result, len(case.results) - 1)]
    raise MiscompiledError(
        message if case.difference is NOWHERE else f"{message}: {case.difference}", stage=stage, graph=shown(case),
        span=where_asked(node),
        hint="this is a defect of Eshkol: please report it with the graph above. To go on, compute this part within "
        "ek.check_nan(), which takes every operation by itself, or on the reference backend; ek.check(False) only "
        "stops looking",
    )  # fmt: skip
