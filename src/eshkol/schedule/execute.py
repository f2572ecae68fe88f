"""Graphs computed on a machine: `realize` gives nodes their data.

Comes in: nodes and a backend. All nodes they need and whose data is not there are computed in topological order, each
by what `lower.py` says; values are freed behind their last user. Goes out: one contiguous host array per node, also
stored as `node.data`. What fails becomes an error that names the op, its operands and the user's line.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from eshkol.errors import (
    AllocationFailed,
    EshkolError,
    ExecutionFailed,
    IndexOutOfRange,
    NotANumberError,
    TensorError,
    TraceError,
)
from eshkol.graph.node import Node, settle, span_of
from eshkol.ops.row import Aval, Nested
from eshkol.ops.structural import CONST, PICK, PLACEHOLDER
from eshkol.schedule.emit import INDEX_TRAP
from eshkol.schedule.fuse import Group, steps
from eshkol.schedule.fused import lowered_group
from eshkol.schedule.lower import ALIAS, Kernel, Lowered, described, lowered
from eshkol.schedule.memory import Array, Computed, Machine
from eshkol.schedule.verify import verify

PLANS_KEPT = 256  # of functions of control flow

_check_nan: ContextVar[bool] = ContextVar("check_nan", default=False)


@contextmanager
def check_nan(on: bool = True) -> Iterator[None]:
    """Within it, an op that gives NaN or infinity from numbers that are neither is an error."""
    token = _check_nan.set(on)
    try:
        yield
    finally:
        _check_nan.reset(token)


def set_check_nan(on: bool) -> None:
    """Turn the check on or off from here on."""
    _check_nan.set(on)


def realize(nodes: Sequence[Node], machine: Machine) -> list[Array]:
    """The arrays of nodes, computed where they are not there; they are the nodes' data from now on.

    What is computed on the way and is used elsewhere, by a tensor or by a graph that is not computed yet, keeps its
    data too: it would be computed again otherwise, and a loop that looks at a value now and then would do all its
    earlier steps again each time.
    """
    missing = [node for node in nodes if node.data is None]
    if missing:
        order, leaves = _needed(missing, ())
        plan = Plan.made(order, leaves, [*missing, *used_elsewhere(order)], ())
        for node, array in zip(plan.results, plan.run((), machine), strict=True):
            node.data = array
            settle(node)
    return [node.data for node in nodes]


Task = Node | Group
Step = tuple[Task, Any, Sequence[Node]]  # what to compute, by what, and whose values nobody needs behind it


@dataclass(frozen=True, slots=True)
class Plan:
    """The order in which nodes are computed from parameters and from what is there."""

    params: Sequence[Node]
    results: Sequence[Node]
    leaves: Sequence[Node]  # nodes with data
    steps: Sequence[Step]

    @staticmethod
    def of(wanted: Sequence[Node], params: Sequence[Node]) -> Plan:
        return Plan.made(*_needed(wanted, params), wanted, params)

    @staticmethod
    def made(order: list[Node], leaves: list[Node], wanted: Sequence[Node], params: Sequence[Node]) -> Plan:
        """The plan of nodes in an order, of which some are wanted."""
        if os.environ.get("ESHKOL_CHECK") == "1":
            for node in order:
                with _explaining(node):
                    verify(node)
        results = list(dict.fromkeys(wanted))
        kept = {*results, *params}
        # With check_nan every op is looked at by itself.
        tasks = order if _check_nan.get() else steps(order, kept)
        return Plan(params, results, leaves, _with_last_uses(tasks, kept))

    def run(self, arrays: Sequence[Any], machine: Machine) -> list[Array]:
        """The results, where the parameters have these values."""
        values = _Values(machine)
        for param, array in zip(self.params, arrays, strict=True):
            values[param] = Computed.of(array, param.dtype, machine)
        for leaf in self.leaves:
            values[leaf] = Computed.of(leaf.data, leaf.dtype, machine)
        checks = _check_nan.get()
        for task, how, done in self.steps:
            if type(task) is Group:
                _together(task, how, values, machine)
            else:
                assert isinstance(task, Node)
                values[task] = _compute(task, how, values, machine)
                if checks:
                    _check(task, values)
            for used in done:
                values.pop(used, None)
        return [values[node].host() for node in self.results]


REFERENCES = 3  # to a node in a list, while a loop asks for their number: the list's, the loop's, the question's


def used_elsewhere(order: list[Node]) -> list[Node]:
    """The nodes that something besides their users in this order refers to.

    References say it at no cost to those who make nodes. Were one missed or counted twice, a value would be computed
    again or kept in vain; nothing would be wrong.
    """
    inner: dict[int, int] = {}
    for node in order:
        for x in node.inputs:
            inner[id(x)] = inner.get(id(x), 0) + 1
    return [
        node for node in order if node.outs is None and sys.getrefcount(node) - REFERENCES > inner.get(id(node), 0)
    ]  # fmt: skip


class _Values(dict[Node, Any]):
    """What is computed by now. Constants are made when they are asked for: kernels take them as numbers."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine

    def __missing__(self, node: Node) -> Computed:
        assert node.op is CONST
        found = self[node] = Computed.of(node.attrs.array, node.dtype, self.machine)
        return found


def _needed(results: Sequence[Node], params: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The nodes to be computed, inputs first, and the leaves; what is behind a node that has data is not looked at."""
    order: list[Node] = []
    leaves: list[Node] = []
    seen = set(params)
    stack = [(node, False) for node in reversed(results)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            if node.data is not None:
                leaves.append(node)
                continue
            if node.op is CONST:
                continue
            if node.op is PLACEHOLDER:
                raise TraceError(
                    "a value was asked for that is not known yet: it is an input of a function being transformed",
                    hint="keep printing, float(x) and branches on values outside grad, vmap and loop bodies",
                )
            stack.append((node, True))
            stack.extend((x, False) for x in reversed(node.inputs) if x not in seen)
    return order, leaves


def _with_last_uses(tasks: Sequence[Task], kept: set[Node]) -> list[Step]:
    found: list[Step] = []
    seen = set(kept)
    for task in reversed(tasks):
        done = [x for x in dict.fromkeys(task.inputs) if x not in seen]
        seen.update(done)
        found.append((task, _how(task), done))
    found.reverse()
    return found


def _how(task: Task) -> Lowered | tuple[Kernel, ...]:
    if type(task) is Group:
        return lowered_group(task)
    assert isinstance(task, Node)
    try:
        return ALIAS if task.op is PICK else lowered(task)
    except EshkolError as error:
        raise failure(task, error) from error


# --- one node -------------------------------------------------------------------------------------


def _compute(node: Node, how: Lowered, values: Mapping[Node, Any], machine: Machine) -> Any:
    if type(how) is Kernel:
        try:
            return _launch(node, how, values, machine)
        except EshkolError as error:
            raise failure(node, error) from error
    if how is ALIAS:
        value = values[node.inputs[0]]
        return value[node.attrs.place] if node.op is PICK else value.reshaped(node.shape)
    with _explaining(node):
        return _on_host(node, how, [values[x].host() for x in node.inputs], machine)


def _together(group: Group, kernels: Sequence[Kernel], values: _Values, machine: Machine) -> None:
    """Compute a group, whose results several nodes share."""
    try:
        outs = _run_kernels(kernels, group.outs, group.inputs, values, machine)
    except EshkolError as error:
        raise failure(group.nodes[-1], error) from error
    values.update(zip(group.outs, outs, strict=True))


def _launch(node: Node, kernel: Kernel, values: Mapping[Node, Any], machine: Machine) -> Any:
    outs = _run_kernels((kernel,), (node,) if node.outs is None else node.outs, node.inputs, values, machine)
    return outs[0] if node.outs is None else tuple(outs)


def _run_kernels(
    kernels: Sequence[Kernel],
    results: Sequence[Any],
    inputs: Sequence[Node],
    values: Mapping[Node, Any],
    machine: Machine,
) -> list[Computed]:
    outs = [Computed.fresh(out.shape, out.dtype, machine) for out in results]
    scratch: dict[str, Any] = {}
    for kernel in kernels:
        if kernel.launch is None:
            continue
        params: dict[str, Any] = {} if kernel.lanes is None else {"n": kernel.lanes}
        for name, out in zip(kernel.outs, outs, strict=True):
            if len(kernels) == 1 or name in kernel.program.param:
                params[name] = out.buffer()
        for name, dtype, count in kernel.scratch:
            if name not in scratch:
                scratch[name] = Computed.fresh((count,), dtype, machine)
            params[name] = scratch[name].buffer()
        for name, k in kernel.buffers:
            params[name] = values[inputs[k]].buffer()
        for name, k in kernel.numbers:
            number = inputs[k].attrs.array.item()
            params[name] = int(number) if type(number) is bool else number
        machine.execute(kernel.program, kernel.launch, params)
    return outs


def _on_host(node: Node, how: Lowered, arrays: Sequence[Array], machine: Machine) -> Any:
    with np.errstate(all="ignore"):
        if isinstance(how, Nested):
            result = how.code(lambda function, inner: run(function, inner, machine), node.attrs, *arrays)
        else:
            result = node.op.reference(node.attrs, *arrays)
    if node.outs is None:
        return _fitting(node, result, Aval(node.shape, node.dtype), machine)
    return tuple(_fitting(node, r, out, machine) for r, out in zip(result, node.outs, strict=True))


def _fitting(node: Node, given: Any, out: Aval, machine: Machine) -> Computed:
    """A host's result as the op promises it."""
    array = np.asarray(given)
    if array.shape != out.shape:
        raise TensorError(f"the host gave shape {list(array.shape)}, the rule says {list(out.shape)}")
    return Computed.of(np.ascontiguousarray(array, out.dtype.numpy).reshape(out.shape), out.dtype, machine)


_plans: OrderedDict[int, tuple[Any, Plan]] = OrderedDict()


def run(function: Any, arrays: Sequence[Any], machine: Machine) -> list[Array]:
    """The results of a function of the graph; its plan is made once."""
    found = _plans.get(id(function))
    if found is None:
        found = function, Plan.of(function.results, function.params)
        _plans[id(function)] = found  # which keeps the function, so that its id stays its own
        if len(_plans) > PLANS_KEPT:
            _plans.popitem(last=False)
    else:
        _plans.move_to_end(id(function))
    given = [np.asarray(a, p.dtype.numpy) for a, p in zip(arrays, function.params, strict=True)]
    plan = found[1]
    computed = dict(zip(plan.results, plan.run(given, machine), strict=True))
    return [computed[node] for node in function.results]


# --- errors ---------------------------------------------------------------------------------------


@contextmanager
def _explaining(node: Node) -> Iterator[None]:
    try:
        yield
    except EshkolError as error:
        raise failure(node, error) from error
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError) as error:
        raise failure(node, TensorError(str(error))) from error


def failure(node: Node, error: EshkolError) -> EshkolError:
    """An error as the user is told it: with the op, its operands and the line that made the node."""
    if isinstance(error, TensorError) and error.span is not None:
        return error
    where = span_of(node.site)
    if isinstance(error, ExecutionFailed):
        return _stopped(node, error)
    if isinstance(error, AllocationFailed):
        return AllocationFailed(f"{described(node)}: {error.message}", span=where, hint=error.hint)
    kind = type(error) if isinstance(error, TensorError) else TensorError
    return kind(f"{described(node)}: {error.message}", span=where, hint=error.hint)


def _stopped(node: Node, error: ExecutionFailed) -> TensorError:
    where = span_of(node.site)
    if error.span is not None and error.span.file == INDEX_TRAP:
        extent = int(error.span.text)
        allowed = f"indices are {-extent} to {extent - 1}" if extent else "there is nothing to index"
        message = f"{described(node)}: an index is out of range for an axis of extent {extent}"
        return IndexOutOfRange(message, span=where, hint=allowed)
    if "division by zero" in error.message:
        return TensorError(
            f"{described(node)}: an integer is divided by zero", span=where,
            hint="integers have no infinity: cast to a float, or replace zeros with where()",
        )  # fmt: skip
    return TensorError(f"{described(node)}: {error.message}", span=where, hint=error.hint)


def _check(node: Node, values: Mapping[Node, Any]) -> None:
    """Refuse results with NaN or infinity where no input has any."""
    results = values[node] if node.outs is not None else (values[node],)
    if node.op is PICK or all(_finite(r) for r in results):
        return
    if all(_finite(values[x]) for x in node.inputs):
        what = "NaN" if any(np.isnan(r.host()).any() for r in results if r.dtype.differentiable) else "infinity"
        raise NotANumberError(
            f"{described(node)} gave {what}, though its inputs are finite", span=span_of(node.site),
            hint="look at the inputs: a logarithm or division of 0, a root of a negative number, or an overflow",
        )  # fmt: skip


def _finite(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_finite, value))
    return not value.dtype.differentiable or bool(np.isfinite(value.host()).all())
