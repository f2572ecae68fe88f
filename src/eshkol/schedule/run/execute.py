"""Graphs computed on the machines where their values are: `compute` gives nodes their data.

Comes in: nodes. All nodes they need and whose data is not there are compiled together (`pipeline.py`) and run. What was
compiled is found again by the structure of the graph, so that a step of a program that is repeated costs little more
than running it. Goes out: `node.data`, a contiguous host array, or memory of a machine that has its own.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.errors import TensorError
from eshkol.graph.function import Function
from eshkol.graph.node import (
    HOST,
    Current,
    Node,
    Scope,
    copied,
    here,
    on_different_machines,
    on_host,
    placeholder,
    settle,
    span_of,
    topological,
)
from eshkol.ops.row import Aval, Nested
from eshkol.ops.structural import MARK, TO
from eshkol.runtime import front
from eshkol.schedule.cache import COMPILER
from eshkol.schedule.check.switch import CHECKS
from eshkol.schedule.order import needed, unknown_value
from eshkol.schedule.pipeline import Compiled, verify_all
from eshkol.schedule.run.failures import asked_by
from eshkol.schedule.run.memory import COUNTED, Array, exclusive
from eshkol.schedule.run.resident import Machine, moved
from eshkol.support.references import ALONE

KEPT = 256  # compiled graphs

_check_nan: ContextVar[bool] = ContextVar("check_nan", default=False)


@contextmanager
def check_nan(on: bool = True) -> Iterator[None]:
    """Within it, an op that gives NaN or infinity from numbers that are neither is an error."""
    token = _set_check_nan(on)
    try:
        yield
    finally:
        _check_nan.reset(token)


def set_check_nan(on: bool) -> None:
    """Turn the check on or off from here on."""
    _set_check_nan(on)


def _set_check_nan(on: bool) -> Token[bool]:
    front.give("looks_for_nan", _check_nan.get)  # until someone wants it, C need not ask
    return _check_nan.set(on)


class Machines:
    """The machines that there are, by the names of devices; None is the one that is computed on by default."""

    named: Callable[[str | None], Machine]  # set by what opens backends


def compute(nodes: Sequence[Node]) -> None:
    """Give nodes their data, each on the machine that it belongs to; those that belong to none, on the host.

    What is computed on the way and is used elsewhere, by a tensor or by a graph that is not computed yet, keeps its
    data too: it would be computed again otherwise, and a loop that looks at a value now and then would do all its
    earlier steps again each time.
    """
    missing = [node for node in nodes if node.data is None]
    if not missing:
        return
    with COMPILER:
        if not Node.crosses and not CHECKS.on and not _check_nan.get():
            if front.computed(missing, _kept, Machines.named(missing[0].device or HOST)):
                return
        elif Node.crosses:
            for node in topological(missing, through=lambda x: x.inputs if x.data is None else ()):
                if node.op is TO and node.data is None and node.inputs[0].device is not None:
                    _cross(node)  # inputs first: what it is computed from has crossed before
        device = missing[0].device
        if all(node.device == device for node in missing):
            _compute(missing, Machines.named(device or HOST))
            return
        for device in dict.fromkeys(node.device for node in missing):
            _compute([node for node in missing if node.device == device], Machines.named(device or HOST))


def _cross(node: Node) -> None:
    """Give a value the memory of another machine."""
    (source,) = node.inputs
    if source.data is None:
        _compute([source], Machines.named(source.device))
    give(node, moved(source.data, node.dtype, Machines.named(node.device)))


def realize(nodes: Sequence[Node], machine: Machine) -> list[Array]:
    """The arrays of nodes, computed on a machine where they are not there yet."""
    with COMPILER:
        _compute([node for node in nodes if node.data is None], machine)
    return [on_host(node.data) for node in nodes]


def _compute(nodes: list[Node], machine: Machine) -> None:
    missing = [node for node in nodes if node.data is None]  # another thread may have computed some
    if not missing:
        return
    order, leaves, wanted, constants, _, key = front.structure(missing, not machine.shares_host_memory)
    compiled, numbers = _found(order, leaves, wanted, constants, key)
    compare = _comparison(compiled, wanted) if CHECKS.on else None  # before memory is given away
    large = machine.has_addresses and any(leaf.data.nbytes >= COUNTED for leaf in leaves)
    donated = _left_behind(order, leaves) if large else ()
    values = [ready(leaf.data) for leaf in leaves]
    values += numbers
    for k in donated:
        leaves[k].data = None
    with asked_by(order):
        found = run_compiled(compiled, values, machine, donated)
        if compare is not None:
            compare(found)
    for node, value in zip(wanted, found, strict=True):
        give(node, value)
    if not donated:
        _keep_quick(key, compiled, machine)


def _keep_quick(key: Any, compiled: Compiled, machine: Machine) -> None:
    """Note how a graph is computed that was computed now, so that it is done in C the next time."""
    kept, plan = _kept.get(key), compiled.quick(machine)
    if kept is not None and kept.compiled is compiled and plan is not None:
        kept.quick = machine, plan, kept.constants, varying_description(machine)


def varying_description(machine: Machine) -> MachineDescription | None:
    """The description of a machine, which says how precise products are wanted; None where it is always the same."""
    found = machine.description
    return None if found.matrices is None else found


def values_of(nodes: Sequence[Node]) -> tuple[Machine, list[Any]]:
    """The values of nodes, computed where they are not there, and the one machine that they are on."""
    device: str | None = None
    values: list[Any] = []
    plain = True
    for node in nodes:
        where = node.device
        if where is not device and where is not None:
            if device is not None and where != device:
                error = on_different_machines(nodes)
                error.span = span_of(Current.site) or here()
                raise error
            device = where
        value = node.data
        if value is None or (type(value) is np.ndarray and not value.flags.carray):
            plain = False
        values.append(value)
    if not plain:  # something is to be computed, or copied
        compute(nodes)
        values = [ready(node.data) for node in nodes]
    return Machines.named(device), values


def _comparison(compiled: Compiled, wanted: Sequence[Node]) -> Callable[[list[Any]], None] | None:
    """Of a plan that was kept for the structure of a graph, now and then: with what the graph at hand is by itself."""
    from eshkol.schedule.check import validation  # loaded where checks are on, and no sooner

    return validation.comparison(compiled, wanted) if compiled.validated else None


def give(node: Node, value: Any) -> None:
    """Let a node have its data."""
    _give(node, value)
    if node.op is MARK and node.inputs[0].data is None:  # which is the same value without the mark
        _give(node.inputs[0], value)


def _give(node: Node, value: Any) -> None:
    if node.device is None:  # what belongs to no machine is found again by others, who may be on another one
        node.data = on_host(value)
    elif type(value) is np.ndarray:
        node.data, node.device = value, HOST
    else:
        node.data, node.device = value, value.device
    settle(node)


def run_compiled(compiled: Compiled, values: Sequence[Any], machine: Machine, donated: Sequence[int] = ()) -> list[Any]:
    """The results of what was compiled, which are validated where checks are on.

    They may take the memory of values that are donated.
    """
    if CHECKS.on:
        from eshkol.schedule.check import validation

        with COMPILER:
            return validation.run(compiled, values, machine, _check_nan.get(), donated)
    return compiled.run(values, machine, checked=_check_nan.get(), donated=donated)


def looks_at_values() -> bool:
    """Whether each node's value is looked at."""
    return _check_nan.get()


def looks() -> bool:
    """Whether more is done with plans than to run them: values are validated, or looked at."""
    return CHECKS.on or _check_nan.get()


def ready(value: Any) -> Any:
    """A value as plans take it: an array of the host is contiguous and aligned."""
    if type(value) is not np.ndarray:
        return value
    flags = value.flags
    return value if flags.c_contiguous and flags.aligned else np.array(value, order="C")


def _left_behind(order: Sequence[Node], leaves: list[Node]) -> list[int]:
    """Large leaves that only these nodes refer to, whose memory results may take: what was changed in place.

    What a derivative may still ask for is not given away, nor what a further result of an op with several is made of:
    that op is computed again for it.
    """
    uses: dict[int, int] = {}
    for node in order:
        for x in node.inputs:
            uses[id(x)] = uses.get(id(x), 0) + (1 if not node.scopes else -len(order))
    asked: set[int] = set()
    for k in range(len(order) - 1, -1, -1):
        node = order[k]
        if id(node) in asked or (
            node.outs is not None and sys.getrefcount(node) - ALONE > uses.get(id(node), 0)
        ):  # fmt: skip
            asked.update(map(id, node.inputs))
    found = []
    for k in range(len(leaves)):
        leaf = leaves[k]
        alone = sys.getrefcount(leaf) - ALONE <= uses.get(id(leaf), 0)
        if alone and id(leaf) not in asked and leaf.data.nbytes >= COUNTED and exclusive(leaf):
            found.append(k)
    return found


def _unknown() -> None:
    raise unknown_value()


def _given_away() -> None:
    raise TensorError(
        "a tensor was used whose memory is another's: it had been donated to a function under jit, or changed in place "
        "by an operation that failed",
        span=span_of(Current.site), hint="use what the function returned, or do not donate that argument",
    )  # fmt: skip


# --- what was compiled, by structure --------------------------------------------------------------


@dataclass(slots=True)
class _Kept:
    """A graph that was compiled. Constants are part of it until one is seen to change; that one is an input then."""

    compiled: Compiled
    constants: tuple[Any, ...]  # their values; None for those that are inputs
    varying: tuple[int, ...]  # the places of these
    quick: tuple[Any, Any, tuple[Any, ...], Any] | None = None  # the machine, its plan in C, the constants, its target


_kept: OrderedDict[Any, _Kept] = OrderedDict()


def _found(
    order: list[Node], leaves: list[Node], wanted: list[Node], constants: list[Node], key: Any
) -> tuple[Compiled, list[Array]]:
    """The graph compiled, now or earlier, and the constants that are inputs of it."""
    verify_all(order)
    kept = _kept.get(key)
    values = [c.attrs for c in constants]
    varying: tuple[int, ...] = ()
    if kept is not None:
        _kept.move_to_end(key)
        varying = kept.varying
        fixed = values
        if varying:
            fixed = values.copy()
            for place in varying:
                fixed[place] = None
        if tuple(fixed) != kept.constants:
            varying = tuple(k for k, known in enumerate(kept.constants) if known is None or known != values[k])
            kept = None
    if kept is None:
        compiled = compile_graph(order, leaves, wanted, [constants[k] for k in varying])
        kept = _Kept(compiled, tuple([None if k in varying else v for k, v in enumerate(values)]), varying)
        _kept[key] = kept
        if len(_kept) > KEPT:
            _kept.popitem(last=False)
    return kept.compiled, [values[k].array for k in varying]


def structure(order: Sequence[Node], leaves: Sequence[Node]) -> tuple[list[Any], list[Node], dict[Node, int]]:
    """What a graph is but for its data: each op with the numbers of its inputs; its constants; and those numbers."""
    number: dict[Node, int] = {}
    parts: list[Any] = []
    for leaf in leaves:
        number[leaf] = len(number)
        parts.append((leaf.shape, leaf.dtype))
    constants: list[Node] = []
    for node in order:
        part: list[Any] = [node.op, _attributes(node)]
        for x in node.inputs:
            found = number.get(x)
            if found is None:  # a constant
                found = number[x] = len(number)
                constants.append(x)
                part.append(x.dtype)
            part.append(found)
        number[node] = len(number)
        parts.append(tuple(part))
    return parts, constants, number


def _attributes(node: Node) -> Any:
    """The attributes of a node as far as they change what is computed."""
    op = node.op
    if op.shared:
        return node.attrs
    if isinstance(op.lower, Nested):
        # The site too: bodies keep the lines of those who traced them.
        return (node.site, *(_function_structure(a) if isinstance(a, Function) else a for a in node.attrs))
    return getattr(node.attrs, "results", None)  # marks, barriers and the like are told apart by nothing else


_STRUCTURE = "_structure"  # where a function keeps its own


def _function_structure(function: Function) -> Any:
    found = function.__dict__.get(_STRUCTURE)
    if found is None:
        order = needed(function.results, function.params)
        parts, constants, number = structure(order, function.params)
        results = tuple([number.get(r, r.attrs) for r in function.results])
        found = _ByHash((tuple(parts), tuple([c.attrs for c in constants]), results))
        object.__setattr__(function, _STRUCTURE, found)
    return found


class _ByHash:
    """A large tuple that is hashed once."""

    __slots__ = ("hash", "parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts, self.hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _ByHash) and self.hash == other.hash and self.parts == other.parts)


def compile_graph(order: list[Node], leaves: list[Node], wanted: list[Node], varying: list[Node]) -> Compiled:
    """The graph as a function of its leaves and of some constants."""
    scope = Scope("trace", "compiled graph")
    scope.open = False
    changed = {x: placeholder(Aval(x.shape, x.dtype), scope) for x in (*leaves, *varying)}
    params = list(changed.values())
    # All anew: what is compiled is kept, and must not hold on to what was computed, nor to the line that asked for it
    # first. Its sites are places in the order; failures find the lines of those who ask now.
    for place, node in enumerate(order):
        changed[node] = copied(node, tuple([changed.get(x, x) for x in node.inputs]), place)
    return Compiled([changed[node] for node in wanted], params)


for _name, _given in {
    "attributes": _attributes, "unknown_value": _unknown, "given_away": _given_away, "kept": _kept,
    "looks_for_nan": None, "lock": COMPILER.acquire, "unlock": COMPILER.release, "compute": compute,
}.items():  # fmt: skip
    front.give(_name, _given)
