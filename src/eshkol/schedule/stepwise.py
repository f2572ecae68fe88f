"""Plans run step by step on any machine, each value in memory of its own.

This is the plain way: every launch is asked of the machine by itself. It serves machines that cannot take whole
sequences, and it is what `native.py` is tested against. Values can be looked at on the way, which `check_nan` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.errors import EshkolError, NotANumberError, TensorError
from eshkol.graph.node import Node
from eshkol.ops.row import Aval
from eshkol.ops.structural import CONST
from eshkol.schedule.failures import explaining, failure, where_asked
from eshkol.schedule.lower import described
from eshkol.schedule.memory import Array, Computed, Machine
from eshkol.schedule.plan import Branch, Copy, Launch, Loop, OnHost, Plan, Step, Together, While, touched, walk


def run(plan: Plan, arrays: Sequence[Array], machine: Machine, *, checked: bool = False) -> list[Array]:
    """The results of a plan; checked, a step that gives NaN or infinity of numbers that are neither is an error."""
    values: dict[int, Computed] = {}
    for place, array in zip(plan.params, arrays, strict=True):
        values[place] = Computed.of(array, plan.places[place].dtype, machine)
    for place, array in plan.constants:
        values[place] = Computed.of(array, plan.places[place].dtype, machine)
    _Run(plan, values, machine, checked).steps(plan.steps, last_uses(plan))
    results = []
    for place, aval in plan.results:
        found = values[place] if place in values else Computed.fresh(aval.shape, aval.dtype, machine)
        results.append(Computed(found.stored, aval.shape, aval.dtype).host())
    return results


def last_uses(plan: Plan) -> list[list[int]]:
    """For each of the outermost steps, the places that nobody needs behind it."""
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

    def __init__(self, plan: Plan, values: dict[int, Computed], machine: Machine, checked: bool) -> None:
        self.plan, self.values, self.machine, self.checked = plan, values, machine, checked
        # Places whose memory is written to more than once, so that it must be nobody else's.
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
                    values[place] = Computed.of(own, out.dtype, self.machine)
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
        return Computed(self._value(place).stored, node.shape, node.dtype).host()

    def _value(self, place: int) -> Computed:
        if place not in self.values:  # of no elements: there was nothing to compute
            given = self.plan.places[place]
            self.values[place] = Computed.fresh(given.shape, given.dtype, self.machine)
        return self.values[place]

    def _put(self, place: int, source: int) -> None:
        """Give a place the value of another: without a copy, where neither is written to twice."""
        given, value = self.plan.places[place], self._value(source)
        if place in self.changed or source in self.changed:
            value = Computed.of(value.host().copy(), given.dtype, self.machine)
        self.values[place] = Computed(value.stored, given.shape, given.dtype)

    def _array(self, place: int) -> Array:
        return self._value(place).host()

    def _launch(self, step: Launch) -> None:
        kernel, machine = step.kernel, self.machine
        assert kernel.launch is not None
        for place in step.writes:
            given = self.plan.places[place]
            if place not in self.values or place not in step.reads:  # scratch is written first and read later
                self.values[place] = Computed.fresh(given.shape, given.dtype, machine)
        params: dict[str, Any] = dict(step.numbers)
        for name, place in step.buffers:
            params[name] = self._value(place).buffer()
        try:
            machine.execute(kernel.program, kernel.launch, params)
        except EshkolError as error:
            raise failure(step.node, error) from error

    def _loop(self, step: Loop) -> None:
        read = {p for s in step.body for p in touched(s)}
        written = {p for s in step.body for p in _written_by(s)}
        stacks: dict[int, Array] = {}
        walked: dict[int, Array] = {}
        for inner, outer in step.views:
            if inner in written:
                place = self.plan.places[outer]
                stacks[inner] = np.empty(place.shape, place.dtype.numpy)
            elif inner in read:
                shape = (step.length, *self.plan.places[inner].shape)
                walked[inner] = self._array(outer).reshape(shape)
        for k in range(step.length - 1, -1, -1) if step.reverse else range(step.length):
            for inner, array in walked.items():
                shape = self.plan.places[inner].shape
                element = np.ascontiguousarray(array[k]).reshape(shape)
                self.values[inner] = Computed.of(element, self.plan.places[inner].dtype, self.machine)
            self.steps(step.body)
            for inner, stack in stacks.items():
                stack.reshape(step.length, *self.plan.places[inner].shape)[k] = self._array(inner)
            self._exchange(step.carries)
        for inner, outer in step.views:
            if inner in stacks:
                self.values[outer] = Computed.of(stacks[inner], self.plan.places[outer].dtype, self.machine)

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
