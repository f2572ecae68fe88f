"""A call of a compiled function that is like the one before: only what may have changed is looked at.

Comes in: what `jit` ran last, where all arguments were tensors with values on one machine, or tuples, lists and dicts
of such. Goes out: what carries out
another such call, or says that it is none, and then `jit` looks at everything. A small function spends most of its time
on the way to the machine, and nearly all calls are like the one before: where the plan is one in C, so is all of such a
call, from the moment that Python makes it (`runtime/native/front/calls.c`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from eshkol.graph.node import HOST, Node, buffers
from eshkol.ops.dtypes import DType
from eshkol.runtime import front
from eshkol.schedule.cache import COMPILER
from eshkol.schedule.pipeline import Compiled
from eshkol.schedule.run import execute
from eshkol.schedule.run.resident import Machine
from eshkol.schedule.run.sized import Instance
from eshkol.support.defaults import floats
from eshkol.tensors import pytree
from eshkol.tensors.dynamic import Sized
from eshkol.tensors.value import Tensor

OTHER: Final = NotImplemented  # than the call before


def suits(leaves: Sequence[Any], inputs: Sequence[Node]) -> bool:
    """Whether a call with these leaves can be told from others by what is looked at here."""
    if not inputs or len(leaves) != len(inputs):
        return False
    return all(type(x) is Tensor for x in leaves) and not any(x.scopes for x in inputs)


def calling_again(
    compiled: Compiled | Sized, inputs: Sequence[Node], device: str, tree: pytree.Tree, dtypes: Sequence[DType],
    watched: tuple[Sequence[Any], ...], needs: Sequence[Node], outline: Any = None,
) -> Any:  # fmt: skip
    """What carries out calls like the one that was given these inputs, in this order, and nothing else; on a device.

    `watched` says by which places it is told whether what the function captures is as it was (`captures.py`); `needs`
    are the values that its plan takes of that. The outline says how arguments are put together; None: each is a tensor.
    """
    machine = execute.Machines.named(device)
    plan = compiled.ready(machine)
    placed = all(x.device == device for x in (*inputs, *needs))
    if not placed and (device != HOST or any(x.device not in (device, None) for x in (*inputs, *needs))):
        return None  # values that belong to no machine are taken as they are on the host alone
    quick, numbers = (plan.plan, plan.numbers) if isinstance(plan, Instance) else (getattr(plan, "quick", None), [])
    if quick is None or not dtypes:
        plain = outline is None and placed and not (needs or any(watched))
        return Again(plan, inputs, machine, tree, dtypes) if plain else None
    wanted = [w for x in inputs for w in (x.shape, x.dtype)]
    build = None if tree is pytree.LEAF else pytree.plain_outline(tree) or tree.build
    return front.call_again(
        wanted, device, machine, execute.varying_description(machine), quick, list(dtypes), floats(),
        outline, build,
        tuple(numbers), *map(list, watched), tuple(needs),
    )  # fmt: skip


class Again:
    """The call before, where its plan is not all in C."""

    __slots__ = ("device", "dtypes", "floats", "machine", "plan", "target", "tree", "wanted")

    def __init__(
        self, plan: Any, inputs: Sequence[Node], machine: Machine, tree: pytree.Tree, dtypes: Sequence[DType]
    ) -> None:
        self.wanted = [(x.shape, x.dtype) for x in inputs]
        self.device, self.machine, self.floats = inputs[0].device, machine, floats()
        self.target = machine.description  # which depends on how precise products are wanted
        self.plan, self.tree, self.dtypes = plan, tree, list(dtypes)

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
