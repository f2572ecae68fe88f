"""Plans run step by step on any machine, each value in memory of its own.

This is the plain way: every launch is asked of the machine by itself. It serves machines that cannot take whole
sequences, and it is what `native.py` is tested against. Values can be looked at on the way, which `check_nan` does.
Values stay on the machine, also around the rounds of loops; the host sees what it computes itself, and what decides
how loops and branches go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.atlas.types import Type
from eshkol.errors import BackendUnavailable, EshkolError, NotANumberError, TensorError
from eshkol.graph.node import Node
from eshkol.ops.row import Aval
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.kernel import described
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Plan, Step, Together, While, touched, walk
from eshkol.schedule.run.failures import explaining, failure, where_asked
from eshkol.schedule.run.memory import Array
from eshkol.schedule.run.resident import Machine, Resident, on_machine, unfilled

BITS = (Type.U16, Type.U32)  # as which a kernel may see what is of another type, to move it


class StepwisePlan:
    """A plan ready to be run on a machine; what it holds of constants is copied there once."""

    def __init__(self, plan: Plan, machine: Machine) -> None:
        self.plan, self.machine, self._last_uses = plan, machine, last_uses(plan)
        self._constants = {p: Resident.of(array, plan.places[p].dtype, machine) for p, array in plan.constants}

    def run(self, given: Sequence[Any], *, checked: bool = False) -> list[Any]:
        """The results for values of the parameters: arrays of the host, or values on the machine.

        Checked, a step that gives NaN or infinity of numbers that are neither is an error.
        """
        plan, machine = self.plan, self.machine
        values = dict(self._constants)
        for place, value in zip(plan.params, given, strict=True):
            values[place] = on_machine(value, plan.places[place].dtype, machine)
        try:
            _Run(plan, values, machine, checked).steps(plan.steps, self._last_uses)
        except EshkolError as error:
            error.donated_kept = True  # it writes into memory of its own alone
            raise
        results = []
        for place, aval in plan.results:
            found = values[place] if place in values else unfilled(aval.shape, aval.dtype, machine)
            results.append(found.reshaped(aval.shape, aval.dtype))
        return results


def run(plan: Plan, given: Sequence[Any], machine: Machine, *, checked: bool = False) -> list[Array]:
    """The results of a plan as arrays of the host."""
    return [value.host() for value in StepwisePlan(plan, machine).run(given, checked=checked)]


def refuse_missing(plan: Plan, machine: Machine) -> None:
    """Refuse by name what a machine has no kernel for, where the host is not to step in."""
    if machine.description.host_helps:
        return
    for step in walk(plan.steps):
        if isinstance(step, OnHost):
            raise BackendUnavailable(
                f"{described(step.node)} has no kernel for {machine.name}", span=where_asked(step.node),
                hint='compute it on the host: x.to("cpu"), and what follows with .to() back',
            )  # fmt: skip


def last_uses(plan: Plan) -> list[list[int]]:
    """For each of the outermost steps, the places that nothing needs after it."""
    kept = {*plan.params, *(p for p, _ in plan.constants), *(p for p, _ in plan.results)}
    found: list[list[int]] = []
    for step in reversed(plan.steps):
        done = touched(step) - kept
        kept |= done
        found.append(sorted(done))
    found.reverse()
    return found


class _Run:
    """One run of a plan."""

    def __init__(self, plan: Plan, values: dict[int, Resident], machine: Machine, checked: bool) -> None:
        self.plan, self.values, self.machine, self.checked = plan, values, machine, checked
        # Places whose memory is written to more than once, so that it must be nothing else's.
        self.changed = {p for s in walk(plan.steps) if isinstance(s, Launch) for p in s.writes if p in s.reads}

    def steps(self, steps: Sequence[Step], done: Sequence[Sequence[int]] | None = None) -> None:
        for number, step in enumerate(steps):
            self._step(step)
            for place in () if done is None else done[number]:
                self.values.pop(place, None)

    def _step(self, step: Step) -> None:
        values = self.values
        match step:
            case Launch():
                self._launch(step)
            case Together():
                self.steps(step.launches)
            case OnHost():
                outs = step.node.outs or (Aval(step.node.shape, step.node.dtype),)
                arrays = host_results(step.node, [self._host(x, p) for x, p in self._operands(step)])
                for place, array, out in zip(step.writes, arrays, outs, strict=True):
                    own = array.copy() if place in self.changed else array
                    values[place] = Resident.of(own, out.dtype, self.machine)
            case Copy():
                self._put(step.target, step.source)
            case Loop():
                self._loop(step)
            case While():
                while True:
                    self.steps(step.test)
                    if not bool(self._array(step.truth).reshape(())):
                        break
                    self.steps(step.body)
                    self._exchange(step.carries)
            case Branch():
                self.steps(step.then if bool(self._array(step.truth).reshape(())) else step.otherwise)
        if self.checked and isinstance(step, Launch | OnHost):
            self._check(step)

    def _operands(self, step: OnHost) -> list[tuple[Node, int]]:
        return list(zip(step.node.inputs, step.reads, strict=True))

    def _host(self, node: Node, place: int) -> Array:
        return self._value(place).reshaped(node.shape, node.dtype).host()

    def _value(self, place: int) -> Resident:
        if place not in self.values:  # of no elements: there was nothing to compute
            given = self.plan.places[place]
            self.values[place] = unfilled(given.shape, given.dtype, self.machine)
        return self.values[place]

    def _put(self, place: int, source: int) -> None:
        """Give a place the value of another: without a copy, where neither is written to twice."""
        given, value = self.plan.places[place], self._value(source)
        if place in self.changed or source in self.changed:
            value = value.copy()
        self.values[place] = value.reshaped(given.shape, given.dtype)

    def _array(self, place: int) -> Array:
        return self._value(place).host()

    def _launch(self, step: Launch) -> None:
        kernel, machine = step.kernel, self.machine
        assert kernel.launch is not None
        for place in step.writes:
            given = self.plan.places[place]
            if place not in self.values or place not in step.reads:  # scratch is written first and read later
                self.values[place] = Resident.fresh(given.shape, given.dtype, machine)
        params: dict[str, Any] = dict(step.numbers)
        for name, place in step.buffers:
            buffer, seen = self._value(place).buffer(), kernel.program.param[name].ty
            params[name] = buffer.handle if seen in BITS else buffer
        try:
            machine.execute(kernel.program, kernel.launch, params)
        except EshkolError as error:
            raise failure(step.node, error) from error
        for place in step.writes:
            self.values[place].forget_host()  # the machine has changed it

    def _loop(self, step: Loop) -> None:
        read = {p for s in step.body for p in touched(s)}
        written = {p for s in step.body for p in _written_by(s)}
        places = self.plan.places
        stacks: dict[int, Resident] = {}
        walked: dict[int, Resident] = {}
        for inner, outer in step.views:
            if inner in written:
                stacks[inner] = unfilled(places[outer].shape, places[outer].dtype, self.machine)
            elif inner in read:
                walked[inner] = self._value(outer)
        for k in range(step.length - 1, -1, -1) if step.reverse else range(step.length):
            for inner, value in walked.items():
                self.values[inner] = value.element(k, places[inner].shape, places[inner].dtype)
            self.steps(step.body)
            for inner, stack in stacks.items():
                stack.put(k, self._value(inner).reshaped(places[inner].shape, places[inner].dtype))
            self._exchange(step.carries)
        for inner, outer in step.views:
            if inner in stacks:
                self.values[outer] = stacks[inner]

    def _exchange(self, carries: Sequence[tuple[int, int]]) -> None:
        for place, following in carries:
            self._put(place, following)

    # --- check_nan ----------------------------------------------------------------------------------

    def _check(self, step: Launch | OnHost) -> None:
        """Refuse results with NaN or infinity where no input has any."""
        node = step.node
        results = [self._array(p) for p in step.writes if self.plan.places[p].dtype.differentiable]
        if all(np.isfinite(r).all() for r in results):
            return
        inputs = [self._array(p) for p in step.reads if self.plan.places[p].dtype.differentiable]
        numbers = [x.attrs.array for x in node.inputs if x.op is CONST and x.dtype.differentiable]
        if all(np.isfinite(x).all() for x in (*inputs, *numbers)):
            what = "NaN" if any(np.isnan(r).any() for r in results) else "infinity"
            raise NotANumberError(
                f"{described(node)} gave {what}, though its inputs are finite", span=where_asked(node),
                hint="look at the inputs: a logarithm or division of 0, a root of a negative number, or an overflow",
            )  # fmt: skip


def _written_by(step: Step) -> set[int]:
    match step:
        case Launch() | OnHost():
            return set(step.writes)
        case Together():
            return {p for launch in step.launches for p in launch.writes}
        case Copy():
            return {step.target}
        case Loop():
            inside = {p for s in step.body for p in _written_by(s)}
            return inside | {outer for inner, outer in step.views if inner in inside}
        case While():
            return {p for s in (*step.test, *step.body) for p in _written_by(s)}
        case Branch():
            return {p for s in (*step.then, *step.otherwise) for p in _written_by(s)}


def host_results(node: Node, arrays: Sequence[Array]) -> list[Array]:
    """What the host computes for a node, as the op promises it."""
    with explaining(node), np.errstate(all="ignore"):
        result = node.op.reference(node.attrs, *arrays)
        if node.outs is None:
            return [_fitting(result, Aval(node.shape, node.dtype))]
        return [_fitting(r, out) for r, out in zip(result, node.outs, strict=True)]


def _fitting(given: Any, out: Aval) -> Array:
    array = np.asarray(given)
    if array.shape != out.shape:
        raise TensorError(f"the host gave shape {list(array.shape)}, the rule says {list(out.shape)}")
    return np.ascontiguousarray(array, out.dtype.numpy).reshape(out.shape)
