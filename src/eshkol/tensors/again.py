"""A call of a compiled function that is like the one before: only what may have changed is looked at.

Comes in: what `jit` ran last, where all arguments were tensors with values on one machine. Goes out: the result of
another such call, or `OTHER`, and then `jit` looks at everything. A small function spends most of its time on the way
to the machine, and nearly all calls are like the one before. Those whose plan is one sequence over arrays of the host
are compared and run in C (`front/calls.c`), which looks at the same as `Again` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from eshkol.graph.node import HOST, Node, buffers
from eshkol.ops.dtypes import DType
from eshkol.runtime import front
from eshkol.schedule.cache import COMPILER
from eshkol.schedule.pipeline import Compiled, ReadyPlan
from eshkol.schedule.run import execute
from eshkol.schedule.run.resident import Machine
from eshkol.schedule.run.sized import Instance
from eshkol.support.defaults import floats
from eshkol.tensors import pytree
from eshkol.tensors.dynamic import Sized
from eshkol.tensors.value import Tensor

OTHER: Final = NotImplemented  # than the call before


class Like(Protocol):
    """A call, with which those that follow are compared."""

    def call(self, args: tuple[Any, ...], /) -> Any:
        """The result for other arguments, or `OTHER`."""


def like(
    compiled: Compiled | Sized, inputs: Sequence[Node], machine: Machine, tree: pytree.Tree, dtypes: Sequence[DType]
) -> Like:
    """Calls like one that was made with these inputs."""
    plan = compiled.ready(machine)
    quick, numbers = (plan.plan, plan.numbers) if isinstance(plan, Instance) else (getattr(plan, "quick", None), [])
    device = inputs[0].device
    if quick is None or device != HOST:
        return Again(plan, inputs, machine, tree, dtypes)
    wanted = tuple(fact for x in inputs for fact in (x.shape, x.dtype))
    build = None if tree is pytree.LEAF else tree.build
    made: Like = front.call(
        quick, wanted, device, machine, machine.description, floats(), tuple(numbers), tuple(dtypes), build
    )
    return made


class Again:
    """The call before. It was given these inputs, in this order, and nothing else."""

    __slots__ = ("device", "dtypes", "floats", "machine", "plan", "target", "tree", "wanted")

    def __init__(
        self,
        plan: ReadyPlan | Instance,
        inputs: Sequence[Node],
        machine: Machine,
        tree: pytree.Tree,
        dtypes: Sequence[DType],
    ) -> None:
        self.wanted = [(x.shape, x.dtype) for x in inputs]
        self.device, self.machine, self.floats = inputs[0].device, machine, floats()
        self.target = machine.description  # which depends on how precise products are wanted
        self.plan, self.tree, self.dtypes = plan, tree, list(dtypes)

    @staticmethod
    def suits(args: Sequence[Any], inputs: Sequence[Node]) -> bool:
        """Whether a call can be told from others by what is looked at here."""
        if not inputs or len(args) != len(inputs) or inputs[0].device is None:
            return False
        device = inputs[0].device
        return all(type(x) is Tensor for x in args) and all(x.device == device and not x.scopes for x in inputs)

    def call(self, args: Sequence[Any]) -> Any:
        """The result for other arguments, or `OTHER`."""
        wanted, device = self.wanted, self.device
        if len(args) != len(wanted):
            return OTHER
        values = []
        for place, (shape, dtype) in enumerate(wanted):
            x = args[place]
            if type(x) is not Tensor:
                return OTHER
            node = x._node
            value = node.data
            if value is None or node.dtype is not dtype or node.shape != shape or node.device != device or node.scopes:
                return OTHER
            if type(value) is np.ndarray and not value.flags.carray:
                return OTHER
            values.append(value)
        machine = self.machine
        if execute.Machines.named(device) is not machine or machine.description is not self.target:
            return OTHER
        if floats() != self.floats or execute.looks():
            return OTHER
        if machine.shares_host_memory:
            results = self.plan.run(values)
        else:
            with COMPILER:  # one thread at a time asks anything of such a machine
                results = self.plan.run(values)
        made = buffers(results, self.dtypes)
        return Tensor(made[0]) if self.tree is pytree.LEAF else self.tree.build(map(Tensor, made))
