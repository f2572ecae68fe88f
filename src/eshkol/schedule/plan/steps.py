"""Plans: what is done one after another to compute a function, over numbered places of memory.

Comes in: the results of a function, as nodes over its parameters, after the passes over graphs. Goes out: a `Plan`,
whose steps are launches, copies, loops, branches and what the host computes. A plan holds no data; it is made for
machines of one description, and belongs to none of them: `arena.py` says where its places lie, `native.py` and
`stepwise.py` run it. Bodies of loops and branches are steps of the same plan, over the same places.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.errors import EshkolError
from eshkol.graph.control import COND, SCAN, WHILE
from eshkol.graph.custom import BARRIER, CHECKPOINT, CUSTOM
from eshkol.graph.node import Node, host_array
from eshkol.graph.work import operations
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Aval, Parts, Shape, Update
from eshkol.ops.structural import CONST, PICK
from eshkol.schedule.kernels.code import OutOfRegisters
from eshkol.schedule.kernels.followed_products import with_products
from eshkol.schedule.kernels.fuse import Group, smaller, steps
from eshkol.schedule.kernels.fused import lowered_group
from eshkol.schedule.kernels.kernel import ALIASES, Kernel, composed
from eshkol.schedule.kernels.lower import copy_kernel, lowered
from eshkol.schedule.kernels.reads import IMAGINARY
from eshkol.schedule.order import GIVEN, needed
from eshkol.schedule.run.failures import failure

THROUGH = frozenset({CUSTOM, CHECKPOINT})  # their results are their first inputs


@dataclass(frozen=True, slots=True)
class Place:
    """Memory for one value."""

    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * self.dtype.size


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel over places; `node` is what it computes, or the last of several, for errors."""

    kernel: Kernel
    buffers: tuple[tuple[str, int], ...]  # parameter and place
    numbers: tuple[tuple[str, Any], ...]
    writes: tuple[int, ...]
    reads: tuple[int, ...]
    same: tuple[int, ...]  # reads of which each lane needs only what lies where it writes
    node: Node
    operations: int | None = None  # of floating-point numbers, where it is one of a group's; for profiles


@dataclass(frozen=True, slots=True)
class Together:
    """Launches that need nothing of each other: in any order, or at the same time; see `together.py`."""

    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True)
class OnHost:
    """A node that the host computes."""

    node: Node
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    target: int
    source: int


@dataclass(frozen=True, slots=True)
class Loop:
    """The body once for each element; `carries` are swapped with what the body computed for the next round."""

    body: tuple[Step, ...]
    length: int
    reverse: bool
    carries: tuple[tuple[int, int], ...]  # place, and that of its next value
    views: tuple[tuple[int, int], ...]  # place that is an element, and the place that it is an element of


@dataclass(frozen=True, slots=True)
class While:
    """The body for as long as the test leaves a truth in its place."""

    test: tuple[Step, ...]
    truth: int
    body: tuple[Step, ...]
    carries: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One of two lists of steps, which write the same places."""

    truth: int
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


Step = Launch | Together | OnHost | Copy | Loop | While | Branch


@dataclass(frozen=True)
class Plan:
    """Steps over places. Parameters, constants and results have memory of their own; the rest is nothing else's."""

    places: tuple[Place, ...]
    params: tuple[int, ...]
    constants: tuple[tuple[int, Any], ...]  # place and array
    results: tuple[tuple[int, Aval], ...]
    steps: tuple[Step, ...]
    target: MachineDescription
    tasks: tuple[Node | Group, ...] = ()  # what was made into steps, in bodies too

    @property
    def given(self) -> frozenset[int]:
        """The places of results that are neither parameters nor constants: memory that a run gives away."""
        held = {*self.params, *(place for place, _ in self.constants)}
        return frozenset(place for place, _ in self.results if place not in held)


def planned(results: Sequence[Node], params: Sequence[Node], target: MachineDescription, *, fused: bool = True) -> Plan:
    """The plan of a function's results for machines of a description."""
    builder = _Builder(fused, target)
    inputs = {p: builder.place(p) for p in params}
    targets: dict[Node, int] = {}
    for node in results:
        root = _root(node)
        if root not in inputs and root.op is not CONST and root not in targets:
            targets[root] = builder.place(root)
    body, at = builder.body([_root(r) for r in results], inputs, targets)
    given = tuple((at[_root(r)], Aval(r.shape, r.dtype)) for r in results)
    constants = tuple(builder.constants.values())
    tasks = tuple(builder.tasks)
    return Plan(tuple(builder.places), tuple(inputs.values()), constants, given, tuple(body), target, tasks)


def planned_alone(task: Node | Group, target: MachineDescription) -> tuple[Plan, list[Node]]:
    """The plan of one task, as it is in larger ones, and the nodes that it is a function of."""
    builder = _Builder(True, target)
    roots = dict.fromkeys(_root(x) for x in task.inputs)
    inputs = {x: builder.place(x) for x in roots if x.op is not CONST}
    at = _Where(builder, inputs, {})
    steps = builder._steps(task, at)
    outs = (task,) if isinstance(task, Node) else task.outs
    places = [(at[n], Aval(n.shape, n.dtype)) for n in outs if n.outs is None]
    places += [(at.multiple[n][k], out) for n in outs if n.outs is not None for k, out in enumerate(n.outs)]
    constants = tuple(builder.constants.values())
    plan = Plan(tuple(builder.places), tuple(inputs.values()), constants, tuple(places), tuple(steps), target, (task,))
    return plan, list(inputs)


def _root(node: Node) -> Node:
    """The node in whose memory a node lies: reshapes, marks and barriers are the same elements."""
    while True:
        if node.op is PICK and node.inputs[0].op in THROUGH:
            node = node.inputs[0].inputs[node.attrs.place]
        elif node.op is BARRIER or node.op in ALIASES:
            node = node.inputs[0]
        else:
            return node


def _operations(group: Group) -> int | None:
    """What a group computes, where its sizes are known; the first of its launches counts as all of it."""
    if any(type(n) is not int for node in (*group.nodes, *group.inputs) for n in node.shape):
        return None
    return sum(map(operations, group.nodes))


def _changes_late(tasks: list[Node | Group]) -> list[Node | Group]:
    """The tasks, those that change a value behind others that read it as it was, so that no copy is needed."""
    for task in [t for t in tasks if isinstance(t, Node) and type(t.op.lower) is Update]:
        before, mine = _root(task.inputs[0]), tasks.index(task)
        last = mine
        for k in range(mine + 1, len(tasks)):
            read = {_root(x) for x in tasks[k].inputs}
            if task in read:
                break
            if before in read:
                last = k
        tasks.insert(last, tasks.pop(mine))
    return tasks


@dataclass
class _Builder:
    """A plan under construction."""

    fused: bool
    target: MachineDescription
    places: list[Place] = field(default_factory=list)
    constants: dict[Node, tuple[int, Any]] = field(default_factory=dict)
    tasks: list[Node | Group] = field(default_factory=list)

    def place(self, aval: Any) -> int:
        self.places.append(Place(aval.shape, aval.dtype))
        return len(self.places) - 1

    def body(
        self, results: Sequence[Node], inputs: Mapping[Node, int], targets: Mapping[Node, int]
    ) -> tuple[list[Step], _Where]:
        """The steps that compute results from inputs, and where values lie; targets have places given."""
        order = needed(results, inputs)
        kept = {_root(r) for r in results}
        tasks: Sequence[Node | Group] = order
        if self.fused:
            tasks = _changes_late(with_products(steps(order, kept, self.target), kept, self.target))
        at = _Where(self, inputs, targets)
        self.tasks += tasks
        made: list[Step] = []
        waiting = list(reversed(tasks))
        while waiting:
            task = waiting.pop()
            try:
                made += self._steps(task, at)
            except OutOfRegisters as error:
                if isinstance(task, Node) or len(task.nodes) == 1:
                    raise failure(task if isinstance(task, Node) else task.nodes[0], error) from error
                waiting += reversed(smaller(task))
            except EshkolError as error:
                raise failure(task if isinstance(task, Node) else task.nodes[-1], error) from error
        for node, place in targets.items():  # what is not computed straight into its place
            if at[node] != place:
                made.append(Copy(place, at[node]))
                at.known[node] = place
        return made, at

    def _steps(self, task: Node | Group, at: _Where) -> list[Step]:
        if isinstance(task, Group):
            return self._group(task, at)
        if task.op is PICK or task.op in THROUGH:
            return []
        if task.op is SCAN:
            return self._loop(task, at)
        if task.op is WHILE:
            return self._while(task, at)
        if task.op is COND:
            return self._branch(task, at)
        if task.op is BARRIER or task.op in ALIASES:
            return []
        if type(task.op.lower) is Parts:
            return self._composed(task, at)
        how = lowered(task, self.target)
        outs = at.several(task) if task.outs is not None else [at.new(task)]
        if isinstance(how, Kernel):
            if how.onto:
                return self._onto(how, outs[0], task, at)
            same = [x for x in task.inputs if x.shape == task.shape] if task.op.elementwise else []
            return [] if how.launch is None else [self._launch(how, outs, task.inputs, same, task, at, ())]
        if isinstance(how, tuple):
            meanwhile = self._scratch(how)
            return [self._launch(kernel, outs, task.inputs, (), task, at, meanwhile) for kernel in how]
        return [OnHost(task, tuple(at[x] for x in task.inputs), tuple(outs))]

    def _composed(self, task: Node, at: _Where) -> list[Step]:
        """An op that is to be computed by itself, as what it is composed of: the kernels of that are its."""
        whole = _root(composed(task))
        inputs = {root: at[root] for root in map(_root, task.inputs) if root.op is not CONST}
        inner = _Where(self, inputs, {whole: at.new(task)})
        made = [s for t in steps(needed([whole], inputs), {whole}, self.target) for s in self._steps(t, inner)]
        return [replace(step, node=task) if isinstance(step, Launch) else step for step in made]

    def _group(self, group: Group, at: _Where) -> list[Step]:
        kernels = lowered_group(group)  # first: a group that is too large is cut, and leaves nothing behind
        outs = [at.new(n) for n in group.outs]
        # Single numbers that are computed along (a learning rate in another dtype) read nothing of the group's shape.
        plain = all(n.op.elementwise and (n.shape == group.shape or n.size == 1) for n in group.nodes)
        same = [x for x in group.inputs if x.shape == group.shape] if plain else []
        meanwhile = self._scratch(kernels)
        made = [self._launch(k, outs, group.inputs, same, group.nodes[-1], at, meanwhile) for k in kernels]
        launched = [launch for launch in made if launch.kernel.launch is not None]
        counts = _operations(group)
        if counts is None:
            return list[Step](launched)
        return [replace(launch, operations=0 if k else counts) for k, launch in enumerate(launched)]

    def _scratch(self, kernels: Sequence[Kernel]) -> tuple[tuple[str, int], ...]:
        """Places for the memory that kernels of one task need meanwhile, by name."""
        found: dict[str, int] = {}
        for kernel in kernels:
            for name, dtype, count in kernel.scratch:
                if name not in found:
                    found[name] = self.place(Aval((count,), dtype))
        return tuple(found.items())

    def _onto(self, kernel: Kernel, out: int, node: Node, at: _Where) -> list[Step]:
        """A kernel that changes a copy of its first input; `in_place.py` sees where no copy is needed."""
        source = node.inputs[0]
        copied = copy_kernel(source)
        if copied.launch is None:
            return []
        copy = self._launch(copied, [out], [source], [source], node, at, ())
        if kernel.launch is None:  # nothing changes
            return [copy]
        change = self._launch(kernel, [out], node.inputs, (), node, at, ())
        return [copy, replace(change, reads=(*change.reads, out))]

    def _launch(
        self, kernel: Kernel, outs: Sequence[int], inputs: Sequence[Node], same: Iterable[Node], node: Node,
        at: _Where, scratch: Sequence[tuple[str, int]],
    ) -> Launch:  # fmt: skip
        params = kernel.program.param
        written = [(name, place) for name, place in zip(kernel.outs, outs, strict=True) if name in params]
        own = {name for name, _, _ in kernel.scratch}
        meanwhile = [(name, place) for name, place in scratch if name in own]
        read = [(name, at[inputs[k]]) for name, k in kernel.buffers]
        numbers = [(name, _number(inputs[k], name)) for name, k in kernel.numbers]
        if kernel.lanes is not None:
            numbers.append(("n", kernel.lanes))
        numbers += kernel.extents
        reads = dict.fromkeys(place for _, place in (*read, *meanwhile))
        writes = dict.fromkeys(place for _, place in (*written, *meanwhile))
        alike = tuple(at[x] for x in same if x.op is not CONST)
        return Launch(kernel, (*written, *meanwhile, *read), tuple(numbers), tuple(writes), tuple(reads), alike, node)

    # --- control flow -------------------------------------------------------------------------------

    def _loop(self, node: Node, at: _Where) -> list[Step]:
        a = node.attrs
        split = a.carries + a.elements
        outs = at.several(node)
        if a.length == 0:
            return [Copy(out, at[x]) for out, x in zip(outs, node.inputs[: a.carries], strict=False)]
        before, carried, inputs = self._carried(node, a.body, at)
        views: list[tuple[int, int]] = []
        for p, x in zip(a.body.params[a.carries : split], node.inputs[a.carries : split], strict=True):
            inputs[p] = self.place(p)
            views.append((inputs[p], at[x]))
        inputs.update(zip(a.body.params[split:], (at[x] for x in node.inputs[split:]), strict=True))
        stacked: list[tuple[Node, int]] = []
        for r, out in zip(a.body.results[a.carries :], outs[a.carries :], strict=True):
            element = self.place(r)
            views.append((element, out))
            stacked.append((_root(r), element))
        body, carries = self._round(a.body.results[: a.carries], carried, stacked, inputs)
        before.append(Loop(tuple(body), a.length, a.reverse, carries, tuple(views)))
        return [*before, *(Copy(out, place) for out, place in zip(outs, carried, strict=False))]

    def _carried(self, node: Node, body: Any, at: _Where) -> tuple[list[Step], list[int], dict[Node, int]]:
        """Places for what a loop carries, which begin as copies of what it is given."""
        count = node.attrs.carries
        places = [self.place(p) for p in body.params[:count]]
        before: list[Step] = [Copy(p, at[x]) for p, x in zip(places, node.inputs[:count], strict=True)]
        return before, places, dict(zip(body.params[:count], places, strict=True))

    def _round(
        self, results: Sequence[Node], carried: Sequence[int], stacked: Sequence[tuple[Node, int]],
        inputs: Mapping[Node, int],
    ) -> tuple[list[Step], tuple[tuple[int, int], ...]]:  # fmt: skip
        """The steps of one round, and for each place that is carried the one of its next value."""
        roots = [_root(r) for r in results]
        targets: dict[Node, int] = {}
        carries: list[tuple[int, int]] = []
        late: list[tuple[int, Node]] = []  # copies at the end, of what lies elsewhere
        for root, place in zip(roots, carried, strict=True):
            if inputs.get(root) == place:
                continue  # it stays what it is
            following = self.place(self.places[place])
            carries.append((place, following))
            _aim(root, following, inputs, targets, late)
        for root, place in stacked:
            _aim(root, place, inputs, targets, late)
        body, at = self.body([*roots, *(root for root, _ in stacked)], inputs, targets)
        body += [Copy(place, at[root]) for place, root in late]
        return body, tuple(carries)

    def _while(self, node: Node, at: _Where) -> list[Step]:
        a = node.attrs
        outs = at.several(node)
        before, carried, inputs = self._carried(node, a.body, at)
        tested, used = node.inputs[a.carries :][: a.tested], node.inputs[a.carries + a.tested :]
        shown = dict(zip(a.test.params, [*carried, *(at[x] for x in tested)], strict=True))
        (result,) = a.test.results
        test, where = self.body([_root(result)], shown, {})
        truth = where[_root(result)]
        inputs.update(zip(a.body.params[a.carries :], (at[x] for x in used), strict=True))
        body, carries = self._round(a.body.results, carried, (), inputs)
        before.append(While(tuple(test), truth, tuple(body), carries))
        return [*before, *(Copy(out, place) for out, place in zip(outs, carried, strict=True))]

    def _branch(self, node: Node, at: _Where) -> list[Step]:
        outs = at.several(node)
        sides: list[tuple[Step, ...]] = []
        for function in node.attrs:
            inputs = dict(zip(function.params, (at[x] for x in node.inputs[1:]), strict=True))
            roots = [_root(r) for r in function.results]
            targets: dict[Node, int] = {}
            late: list[tuple[int, Node]] = []
            for root, out in zip(roots, outs, strict=True):
                _aim(root, out, inputs, targets, late)
            body, where = self.body(roots, inputs, targets)
            sides.append((*body, *(Copy(out, where[root]) for out, root in late)))
        return [Branch(at[node.inputs[0]], sides[0], sides[1])]


def _aim(
    root: Node, place: int, inputs: Mapping[Node, int], targets: dict[Node, int], late: list[tuple[int, Node]]
) -> None:
    """Have a value computed straight into a place; where that cannot be, copied there in the end."""
    if root in inputs or root.op is CONST or root in targets:
        late.append((place, root))
    else:
        targets[root] = place


class _Where:
    """Where the values of one body lie."""

    def __init__(self, builder: _Builder, inputs: Mapping[Node, int], targets: Mapping[Node, int]) -> None:
        self.builder, self.known, self.targets = builder, dict(inputs), targets
        self.multiple: dict[Node, list[int]] = {}

    def __getitem__(self, node: Node) -> int:
        """The place of a value."""
        node = _root(node)
        if node in self.known:
            return self.known[node]
        if node.op is PICK:
            place: int = self.multiple[node.inputs[0]][node.attrs.place]
            return place
        assert node.op in GIVEN, node
        constants = self.builder.constants
        if node not in constants:
            constants[node] = self.builder.place(node), node.attrs.array if node.op is CONST else host_array(node)
        return constants[node][0]

    def new(self, node: Node) -> int:
        """A place for a node that is computed."""
        place = self.targets.get(node)
        self.known[node] = self.builder.place(node) if place is None else place
        return self.known[node]

    def several(self, node: Node) -> list[int]:
        """Places for the results of a node that has several."""
        assert node.outs is not None
        aimed = {t.attrs.place: p for t, p in self.targets.items() if t.op is PICK and t.inputs[0] is node}
        self.multiple[node] = [
            aimed[k] if k in aimed else self.builder.place(out) for k, out in enumerate(node.outs)
        ]  # fmt: skip
        return self.multiple[node]


def _number(node: Node, name: str) -> Any:
    """What a parameter is told of a constant: of a complex one, the part that it is for."""
    number = node.attrs.array.item()
    if node.dtype.is_complex:
        return number.imag if name.endswith(IMAGINARY) else number.real
    return int(number) if type(number) is bool else number


def walk(steps: Iterable[Step]) -> Iterator[Step]:
    """All steps, those of bodies too."""
    for step in steps:
        yield step
        match step:
            case Together():
                yield from step.launches
            case Loop():
                yield from walk(step.body)
            case While():
                yield from walk(step.test)
                yield from walk(step.body)
            case Branch():
                yield from walk(step.then)
                yield from walk(step.otherwise)


def touched(step: Step) -> set[int]:
    """The places that a step reads or writes, those of its bodies too."""
    match step:
        case Launch() | OnHost():
            return {*step.reads, *step.writes}
        case Together():
            return set().union(*map(touched, step.launches))
        case Copy():
            return {step.target, step.source}
        case Loop():
            pairs = (*step.carries, *step.views)
            return set().union(*map(touched, step.body), *pairs)
        case While():
            return set().union({step.truth}, *map(touched, (*step.test, *step.body)), *step.carries)
        case Branch():
            return set().union({step.truth}, *map(touched, (*step.then, *step.otherwise)))
