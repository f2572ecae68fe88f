"""Plans run natively: as few calls of the machine as possible, each a whole sequence of launches, loops and branches.

Comes in: a plan and a machine that has sequences. The plan's places lie in one arena, in the memory of its parameters
and constants, and in fresh memory for its results: arrays of the host (`NativePlan`), or memory of a machine that has
its own (`DevicePlan`). What the host must compute itself, because the
machine has no code for it, stands between sequences; a loop with such a step in it is
gone through here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from eshkol.atlas import sequence as atlas
from eshkol.atlas.sequence import NativeCode, Runner, SequenceFailed, SequenceStep
from eshkol.errors import EshkolError
from eshkol.graph.node import Node
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Aval, Shape
from eshkol.runtime import front
from eshkol.schedule.plan.arena import Arena, arranged, inherited
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Plan, Step, Together, While, touched, walk
from eshkol.schedule.run.failures import failure
from eshkol.schedule.run.memory import (
    Array,
    address_of,
    addresses_of,
    at_address,
    empty,
    fresh_array,
    reads_heads,
)
from eshkol.schedule.run.resident import Machine, Resident, Stored, on_machine, read_at, stored_as, write_at
from eshkol.schedule.run.stepwise import host_results

ARENA = 0  # the first place of every sequence


class Sequencer(Protocol):
    """What is asked of a machine here."""

    def sequence(self, steps: Sequence[SequenceStep], places: int) -> Runner: ...

    def native(self, op: str, attrs: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        """Code of its own for an op that programs do not say, where it has any."""
        ...


@runtime_checkable
class QueuedRunner(Protocol):
    """A runner whose steps are launches that native code asks a device for."""

    lock: threading.RLock  # whoever has it, has the device alone
    fallible: bool  # whether a launch may fail, which is seen when all have run

    @property
    def launches(self) -> int:
        """The address of what `eshkol_launches_run` runs."""
        ...

    def failure(self, status: int) -> SequenceFailed: ...

    def ordered(self, inputs: int, inherits: bool, values: Sequence[Any], after: bool | None) -> None:
        """See to what must be waited for where a device has several queues: before a run with values, and after it.

        So many of them are inputs, and the others results; these may lie in inputs, if they inherit memory.
        """
        ...


@dataclass(frozen=True)
class Joined:
    """Steps that are one sequence, and the node of each of its steps."""

    runner: Runner
    nodes: Sequence[Node | None]
    before: int  # steps before the first that writes into donated memory


class NativePlan:
    """A plan ready to be run on a machine."""

    def __init__(self, plan: Plan, machine: Sequencer, donated: Sequence[int] = ()) -> None:
        """Results may take the memory of donated parameters, which are named by their places."""
        self.plan, self.machine, self.arena = plan, machine, self._arranged(plan)
        heirs = inherited(plan, [plan.params[k] for k in donated]) if donated else {}
        self.where: dict[int, tuple[int, int]] = {p: (ARENA, offset) for p, offset in self.arena.offsets.items()}
        given = sorted(plan.given - heirs.keys())
        own = [*plan.params, *(p for p, _ in plan.constants), *given]
        moving = [p for s in walk(plan.steps) for p in _moving(s)]
        for number, place in enumerate([*own, *dict.fromkeys(moving)]):
            self.where[place] = number + 1, 0
        self.where.update({heir: self.where[param] for heir, param in heirs.items()})
        for nothing in (k for k, place in enumerate(plan.places) if not place.size):  # which lies anywhere
            self.where.setdefault(nothing, (ARENA, 0))
        self.count = 1 + len(own) + len(set(moving))
        # Where the memory of what is exchanged by a loop begins.
        self.homes = {p: offset for p, offset in self.arena.offsets.items() if self.where[p][0] != ARENA}
        self.constants = [np.asarray(a, order="C") for _, a in plan.constants]
        # Results are made as they are seen: under their shapes, and complex numbers though they are computed as pairs.
        made = dict(reversed(plan.results))
        self.given = [made.get(p, plan.places[p]) for p in given]
        like = {**dict(enumerate(plan.places)), **dict(zip(given, self.given, strict=True))}
        slots = {p: k for k, p in enumerate(own)}
        # Where results are, and under which shape (and dtype), if it is another than that of the array there.
        lying = [(like[heirs.get(p, p)], slots[heirs.get(p, p)], aval) for p, aval in plan.results]
        self.results = [
            (slot, aval.shape if aval.shape != place.shape and aval.dtype is place.dtype else None)
            for place, slot, aval in lying
        ]
        self.views = [(k, aval) for k, (place, _, aval) in enumerate(lying) if aval.dtype is not place.dtype]
        self.empty = [0] * len(set(moving))
        self.heirs = heirs.keys()
        self.codes = {id(s): self._code(s) for s in walk(plan.steps) if isinstance(s, OnHost)}
        self.parts = self._parts(plan.steps)
        parts = self.parts or self._nothing()
        first = parts[0] if len(parts) == 1 else None
        self.whole = first if isinstance(first, Joined) else None  # all of it, where that is one sequence
        self.quick = self._in_c()

    # --- making it ----------------------------------------------------------------------------------

    def _code(self, step: OnHost) -> NativeCode | None:
        """What the machine itself has for a step of the host's."""
        node = step.node
        if not set(step.writes).isdisjoint(step.reads):
            return None
        return self.machine.native(node.op.name, node.attrs, node.inputs, node.outs or (node,))

    def _arranged(self, plan: Plan) -> Arena:
        return arranged(plan)

    def _parts(self, steps: Sequence[Step]) -> list[_Part]:
        """The steps, those that can be one sequence joined."""
        parts: list[_Part] = []
        together: list[Step] = []
        for step in steps:
            if all(not isinstance(s, OnHost) or self.codes[id(s)] is not None for s in walk([step])):
                together.append(step)
                continue
            parts += self._joined(together)
            together = []
            parts.append(self._taken_apart(step))
        return [*parts, *self._joined(together)]

    def _nothing(self) -> list[_Part]:
        """A plan without a step: results are parameters, or constants, under other shapes."""
        return [Joined(self.machine.sequence([], self.count), [], 0)]

    def _taken_apart(self, step: Step) -> _Part:
        """A step that the host goes through; its bodies are parts again."""
        match step:
            case Loop():
                return _HostLoop(step, self._parts(step.body))
            case While():
                return _HostWhile(step, self._parts(step.test), self._parts(step.body))
            case Branch():
                return _HostBranch(step, self._parts(step.then), self._parts(step.otherwise))
        assert isinstance(step, OnHost)
        return step

    def _joined(self, steps: Sequence[Step]) -> list[_Part]:
        if not steps:
            return []
        made: list[SequenceStep] = []
        origins: list[Launch | OnHost | None] = []
        counters = [0]
        before: int | None = None
        for step in steps:
            if before is None and self._takes(step):
                before = len(made)
            self._write([step], made, origins, counters)
        runner: Any = self.machine.sequence(made, self.count)
        if hasattr(runner, "about"):
            runner.about = self.plan, origins
        nodes = [None if step is None else step.node for step in origins]
        return [Joined(runner, nodes, len(made) if before is None else before)]

    def _takes(self, step: Step) -> bool:
        """Whether a step writes into donated memory."""
        return bool(self.heirs) and not self.heirs.isdisjoint(touched(step))

    def _untaken(self, part: _Part) -> bool:
        """Whether no donated memory has been written to once a part has run."""
        if isinstance(part, Joined):
            return part.before == len(part.nodes)
        return not self._takes(part if isinstance(part, OnHost) else part.step)

    def _write(
        self,
        steps: Sequence[Step],
        made: list[SequenceStep],
        origins: list[Launch | OnHost | None],
        counters: list[int],
    ) -> None:
        def add(step: SequenceStep, origin: Launch | OnHost | None = None) -> int:
            made.append(step)
            origins.append(origin)
            return len(made) - 1

        for step in steps:
            match step:
                case Launch():
                    kernel, places = step.kernel, self.plan.places
                    assert kernel.launch is not None
                    if kernel.copies and self.where[step.writes[0]] == self.where[step.reads[0]]:
                        continue
                    buffers = {name: (*self.where[p], places[p].size) for name, p in step.buffers}
                    add(atlas.Call(kernel.program, kernel.launch, buffers, dict(step.numbers)), step)
                case OnHost():
                    code = self.codes[id(step)]
                    assert code is not None
                    if any(self.plan.places[p].size for p in step.writes):
                        add(atlas.Native(code, tuple(self.where[p] for p in (*step.writes, *step.reads))), step)
                case Together():
                    start = add(atlas.Together(0))
                    self._write(step.launches, made, origins, counters)
                    made[start] = atlas.Together(len(made) - start - 1)
                case Copy():
                    size = self.plan.places[step.target].size
                    if size:
                        add(atlas.Copy(self.where[step.target], self.where[step.source], size))
                case Loop():
                    counter = counters[0]
                    counters[0] += 1
                    first, by, end = (step.length - 1, -1, -1) if step.reverse else (0, 1, step.length)
                    add(atlas.Set(counter, first))
                    start = len(made)
                    for inner, outer in step.views:
                        base, offset = self.where[outer]
                        stride = self.plan.places[inner].size
                        add(atlas.BufferView(self.where[inner][0], base, offset, counter, stride))
                    self._write(step.body, made, origins, counters)
                    self._exchange(step.carries, add)
                    add(atlas.Next(counter, by, end, start))
                case While():
                    start = len(made)
                    self._write(step.test, made, origins, counters)
                    leave = add(atlas.Jump(0))
                    self._write(step.body, made, origins, counters)
                    self._exchange(step.carries, add)
                    add(atlas.Jump(start))
                    made[leave] = atlas.Unless(*self.where[step.truth], len(made))
                case Branch():
                    skip = add(atlas.Jump(0))
                    self._write(step.then, made, origins, counters)
                    leave = add(atlas.Jump(0))
                    made[skip] = atlas.Unless(*self.where[step.truth], len(made))
                    self._write(step.otherwise, made, origins, counters)
                    made[leave] = atlas.Jump(len(made))

    def _exchange(self, carries: Sequence[tuple[int, int]], add: Callable[..., int]) -> None:
        for place, following in carries:
            if self.plan.places[place].size:
                add(atlas.Swap(self.where[place][0], self.where[following][0]))

    # --- running it ---------------------------------------------------------------------------------

    def _in_c(self) -> Any:
        """The way from arrays to arrays in C, where all of it is one sequence of this process; else None."""
        part = self.whole
        if part is None or self.views or not reads_heads() or not hasattr(part.runner, "made"):
            return None
        runner: Any = part.runner

        def failed(ready: Any, status: int) -> None:
            stopped = runner.failure(ready, status)
            raise told(part, stopped) from stopped.error

        fresh = tuple([fresh_array(p.shape, p.dtype.numpy) for p in self.given])
        arena = fresh_array((self.arena.size,), BYTE)
        homes = tuple([n for p, offset in self.homes.items() for n in (self.where[p][0], offset)])
        return front.plan(
            runner.made, failed, runner.scratch, self.count, len(self.plan.params), tuple(self.constants), fresh, arena,
            self.arena.size, homes, tuple(self.results), is_brief(self.plan, [p.size for p in self.plan.places]),
        )  # fmt: skip

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The results, where the parameters have these values: contiguous arrays."""
        if self.quick is not None:
            found: list[Array] = self.quick.run(arrays if type(arrays) is list else [*arrays])
            return found
        own: list[Array] = [*arrays, *self.constants, *[empty(p.shape, p.dtype.numpy) for p in self.given]]
        arena = empty((self.arena.size,), BYTE) if self.arena.size else None
        self._run_all(0 if arena is None else address_of(arena), addresses_of(own))
        results = [own[k] if shape is None else own[k].reshape(shape) for k, shape in self.results]
        for k, aval in self.views:  # complex numbers that were computed as pairs
            results[k] = results[k].reshape(-1).view(aval.dtype.numpy).reshape(aval.shape)
        return results

    def _run_all(self, base: int, own: list[int]) -> None:
        """Run all parts, where the arena and what lies outside of it begin at these addresses."""
        addresses = [base, *own, *self.empty]
        if self.homes:
            for place, offset in self.homes.items():
                addresses[self.where[place][0]] = base + offset
        if self.whole is not None:  # nearly always
            try:
                self.whole.runner.run(addresses)
            except SequenceFailed as failed:
                raise told(self.whole, failed) from failed.error
            return
        for k, part in enumerate(self.parts):
            try:
                self._run(part, addresses)
            except EshkolError as error:
                kept = error.donated_kept if isinstance(part, Joined) else self._untaken(part)
                error.donated_kept = kept and all(map(self._untaken, self.parts[:k]))
                raise

    def _run(self, part: Any, addresses: list[int]) -> None:
        if isinstance(part, Joined):
            try:
                part.runner.run(addresses)
            except SequenceFailed as failed:
                raise told(part, failed) from failed.error
        elif isinstance(part, OnHost):
            self._on_host(part, addresses)
        else:
            part.run(self, addresses)

    def _on_host(self, step: OnHost, addresses: list[int]) -> None:
        arrays = [
            self._seen(p, x.shape, x.dtype.numpy, addresses) for p, x in zip(step.reads, step.node.inputs, strict=True)
        ]
        for place, array in zip(step.writes, host_results(step.node, arrays), strict=True):
            if array.size:
                self._put(place, array, addresses)

    def _seen(self, place: int, shape: Shape, dtype: np.dtype[Any], addresses: list[int]) -> Array:
        """The memory of a place as an array; it must not outlive the step."""
        base, offset = self.where[place]
        return at_address(addresses[base] + offset, shape, dtype)

    def _put(self, place: int, array: Array, addresses: list[int]) -> None:
        """Give a place what the host has computed for it."""
        self._seen(place, array.shape, array.dtype, addresses)[...] = array

    def _truth(self, place: int, addresses: list[int]) -> bool:
        return bool(self._seen(place, (), self.plan.places[place].dtype.numpy, addresses))


def told(part: Joined, failed: SequenceFailed) -> Exception:
    """What went wrong in a sequence, as the user is told it."""
    node = part.nodes[failed.step]
    if node is None or not isinstance(failed.error, EshkolError):
        raise failed.error from None
    told = failure(node, failed.error)
    told.donated_kept = failed.step < part.before
    return told


class DevicePlan(NativePlan):
    """A plan ready to be run in a machine's own memory, where parameters and results are."""

    machine: Machine

    def __init__(self, plan: Plan, machine: Machine, donated: Sequence[int] = ()) -> None:
        super().__init__(plan, machine, donated)
        self.held = [Resident.of(a, plan.places[p].dtype, machine) for p, a in plan.constants]
        self.dtypes = [plan.places[p].dtype for p in plan.params]
        lying = [(p.shape, p.dtype, *stored_as(p.shape, p.dtype)) for p in self.given]
        self.fresh = [(shape, dtype, ty, count, count * ty.size_bytes) for shape, dtype, ty, count in lying]
        known = len(plan.params) + len(self.held)  # what comes after these is fresh, under the shape of its place
        self.shown: list[tuple[int, Aval | None]] = []  # where results are, and as what they are seen, if it is another
        for (slot, _), (_, aval) in zip(self.results, plan.results, strict=True):
            same = slot >= known and self.fresh[slot - known][:2] == (aval.shape, aval.dtype)
            self.shown.append((slot, None if same else aval))
        self.quick = self._on_device()

    @property
    def overwrites_too_soon(self) -> bool:
        """Whether donated memory is written to by launches that run whatever those before them find wrong."""
        runners = [part.runner for part in self.parts if isinstance(part, Joined)]
        return bool(self.heirs) and any(isinstance(r, QueuedRunner) and r.fallible for r in runners)

    def _nothing(self) -> list[_Part]:
        return []  # the machine is not asked for it

    def _in_c(self) -> Any:
        return None  # not yet: see `_on_device`

    def _on_device(self) -> Any:
        """The way from values to values in C, where all of it is one sequence of launches; else None."""
        part, machine = self.whole, self.machine
        if part is None or not isinstance(part.runner, QueuedRunner):
            return None
        runner, dtypes = part.runner, tuple(self.dtypes)

        def bring(value: Any, dtype: DType) -> Resident:
            brought = on_machine(value, dtype, machine)
            brought.address()
            return brought

        def failed(status: int) -> None:
            stopped = runner.failure(status)
            raise told(part, stopped) from stopped.error

        for value in self.held:
            value.address()
        homes = tuple((self.where[p][0], offset) for p, offset in self.homes.items())
        shown = tuple((slot, None if a is None else a.shape, None if a is None else a.dtype) for slot, a in self.shown)
        return front.device_plan(
            machine, machine.take, machine.give, runner.lock.acquire, runner.lock.release, bring, failed,
            runner.launches, runner, dtypes, tuple(self.held), tuple(self.fresh), self.arena.size or None, homes, shown,
            bool(self.heirs), partial(runner.ordered, len(dtypes) + len(self.held), bool(self.heirs)),
        )  # fmt: skip

    def run(self, given: Sequence[Any]) -> list[Any]:
        """The results, on the machine, where the parameters have these values: there, or arrays of the host."""
        if self.quick is not None:
            found: list[Any] = self.quick.run(given if type(given) is list else [*given])
            return found
        machine, size = self.machine, self.arena.size
        own = [*map(on_machine, given, self.dtypes, repeat(machine)), *self.held]
        for shape, dtype, ty, count, taken in self.fresh:
            own.append(Resident(Stored(machine, ty, count, None, None, machine.take(taken)), shape, dtype))
        arena = machine.take(size) if size else 0
        try:
            self._run_all(arena, [v.stored.address or v.address() for v in own])
        finally:
            if size:
                machine.give(arena)
        results = [own[k] if a is None else own[k].reshaped(a.shape, a.dtype) for k, a in self.shown]
        if self.heirs:
            for result in results:
                result.forget_host()  # where it has taken a parameter's memory, the host has the parameter's value
        return results

    def _seen(self, place: int, shape: Shape, dtype: np.dtype[Any], addresses: list[int]) -> Array:
        base, offset = self.where[place]
        return read_at(self.machine, addresses[base] + offset, shape, dtype)

    def _put(self, place: int, array: Array, addresses: list[int]) -> None:
        base, offset = self.where[place]
        exact = np.ascontiguousarray(array, self.plan.places[place].dtype.numpy)
        write_at(self.machine, addresses[base] + offset, exact)


@dataclass(frozen=True)
class _HostLoop:
    """A loop with a step in it that the host computes."""

    step: Loop
    body: Sequence[_Part]

    def run(self, plan: NativePlan, addresses: list[int]) -> None:
        step, where = self.step, plan.where
        for k in range(step.length - 1, -1, -1) if step.reverse else range(step.length):
            for inner, outer in step.views:
                base, offset = where[outer]
                addresses[where[inner][0]] = addresses[base] + offset + k * plan.plan.places[inner].size
            for part in self.body:
                plan._run(part, addresses)
            _swap(step.carries, plan, addresses)


@dataclass(frozen=True)
class _HostWhile:
    step: While
    test: Sequence[_Part]
    body: Sequence[_Part]

    def run(self, plan: NativePlan, addresses: list[int]) -> None:
        while True:
            for part in self.test:
                plan._run(part, addresses)
            if not plan._truth(self.step.truth, addresses):
                return
            for part in self.body:
                plan._run(part, addresses)
            _swap(self.step.carries, plan, addresses)


@dataclass(frozen=True)
class _HostBranch:
    step: Branch
    then: Sequence[_Part]
    otherwise: Sequence[_Part]

    def run(self, plan: NativePlan, addresses: list[int]) -> None:
        for part in self.then if plan._truth(self.step.truth, addresses) else self.otherwise:
            plan._run(part, addresses)


def _swap(carries: Sequence[tuple[int, int]], plan: NativePlan, addresses: list[int]) -> None:
    for place, following in carries:
        one, other = plan.where[place][0], plan.where[following][0]
        addresses[one], addresses[other] = addresses[other], addresses[one]


BYTE = np.dtype(np.uint8)
BRIEF = 1 << 14  # bytes of all places: what is done with fewer takes less time than Python's lock is worth


def is_brief(plan: Plan, sizes: Sequence[int]) -> bool:
    """Whether a plan whose places have these sizes is done at once: a few programs over a few bytes."""
    simple = all(isinstance(step, Launch | Copy) for step in plan.steps)
    return simple and len(plan.steps) <= 4 and sum(sizes) <= BRIEF


_Part: TypeAlias = Joined | OnHost | _HostLoop | _HostWhile | _HostBranch


def _moving(step: Step) -> list[int]:
    """Places whose address changes while the plan runs."""
    match step:
        case Loop():
            return [*(inner for inner, _ in step.views), *(p for pair in step.carries for p in pair)]
        case While():
            return [p for pair in step.carries for p in pair]
    return []
