"""Finished plans on disk: a process that runs what another has run does not plan it again.

Comes in: a graph, the description of a machine, and the store of compiled programs. Goes out: the plan that was kept
for the same structure (`outline.py`) by the same sources, which is the one that would be made; or, of one that was
made, its bytes, in the store. What is kept is JSON, compressed: places, kernels, steps, and of nodes what errors and
the host need of them. Programs are kept by their text and digest, and read when someone asks for an instruction. Lines
of the user's, and arrays that the graph holds, are those of the graph at hand. Every number is looked at before it is
used: what is no plan is a miss, like what is not there.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.atlas.jsonform import KeptProgram
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig, Param, ParamKind, Program, to_json
from eshkol.atlas.types import Type
from eshkol.errors import EshkolError, Span
from eshkol.graph.node import NO_SCOPES, Node
from eshkol.ops import dtypes
from eshkol.ops.row import TABLE, Aval
from eshkol.ops.structural import CONST, PLACEHOLDER
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.plan.outline import Outline
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Place, Plan, Step, Together, While
from eshkol.schedule.plan.values import NotKept, as_json, from_json
from eshkol.support.keys import cache_key, files_key
from eshkol.support.processor import architecture
from eshkol.support.store import ProgramCache

FEWEST = 12  # nodes of a graph whose plan takes longer to make than to look up
MOST_BYTES = 64 << 20  # of a plan's text
MOST_DEPTH = 64  # of loops and branches in each other
MOST_CONSTANTS = 1 << 16  # bytes of arrays that passes made, in one plan
FOLDERS = ("schedule", "ops", "graph", "atlas", "support")  # of the sources that make plans
_LAUNCH, _TOGETHER, _ON_HOST, _COPY, _LOOP, _WHILE, _BRANCH = range(7)
_DTYPES = {dtype.name: dtype for dtype in dtypes.ALL}
_KINDS = {kind.value: kind for kind in ParamKind}
_TYPES = {ty.name: ty for ty in Type}


@cache
def _source_key() -> str:
    """What names the sources that make plans: what others made is never taken."""
    package = Path(__file__).parents[2]
    return files_key([Path(folder) for name in FOLDERS for folder, _, _ in os.walk(package / name)], (".py",))


class Kept:
    """The place of one graph's plan in a store."""

    def __init__(self, store: ProgramCache, outline: Outline, target: MachineDescription) -> None:
        self._store, self._outline, self._target = store, outline, target
        self._key = cache_key({
            "what": "plan", "graph": outline.text, "machine": _described(target), "sources": _source_key(),
            "processor": architecture(), "numpy": np.__version__,
        })  # fmt: skip

    @classmethod
    def of(
        cls, store: ProgramCache, results: Sequence[Node], params: Sequence[Node], target: MachineDescription
    ) -> Kept | None:
        """Where the plan of a graph is kept; None of one that is quickly planned, or not described by text alone."""
        try:
            outline = Outline(results, params)
        except NotKept:
            return None
        return cls(store, outline, target) if outline.nodes >= FEWEST else None

    def find(self) -> Plan | None:
        """The plan that was kept."""
        payload = self._store.get(self._key)
        if payload is None:
            return None
        try:
            return read(payload, self._outline, self._target)
        except NotKept:
            return None

    def keep(self, plan: Plan) -> None:
        """Keep a plan that was made; one that cannot be written down is made again the next time."""
        try:
            payload = written(plan, self._outline)
        except NotKept:
            return
        self._store.put(self._key, payload)


@cache
def _described(target: MachineDescription) -> str:
    return json.dumps(as_json(target))


# --- writing ----------------------------------------------------------------------------------------


def written(plan: Plan, outline: Outline) -> bytes:
    """A plan as bytes."""
    return zlib.compress(json.dumps(_Writer(outline).plan(plan), separators=(",", ":")).encode(), 1)


class _Writer:
    """What occurs often is written once, and has a number."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.programs: list[Any] = []
        self.kernels: list[Any] = []
        self.nodes: list[Any] = []
        self._known: dict[int, int] = {}  # by their ids: all live as long as the plan

    def plan(self, plan: Plan) -> dict[str, Any]:
        room = MOST_CONSTANTS
        constants = []
        for place, array in plan.constants:
            number = self.outline.place_of(array)
            if number is None:
                room -= array.nbytes
                if room < 0:
                    raise NotKept("large arrays that no one gave")
            constants.append([place, number] if number is not None else [place, _array(array)])
        steps = [self._step(step) for step in plan.steps]
        return {
            "places": [_aval(place) for place in plan.places], "params": plan.params, "constants": constants,
            "results": [[place, _aval(aval)] for place, aval in plan.results], "programs": self.programs,
            "kernels": self.kernels, "nodes": self.nodes, "steps": steps,
        }  # fmt: skip

    def _once(self, thing: Any, into: list[Any], make: Callable[[Any], Any]) -> int:
        found = self._known.get(id(thing))
        if found is None:
            made = make(thing)
            found = self._known[id(thing)] = len(into)
            into.append(made)
        return found

    def _step(self, step: Step) -> list[Any]:
        match step:
            case Launch():
                kernel = self._once(step.kernel, self.kernels, self._kernel)
                numbers = [[name, as_json(value)] for name, value in step.numbers]
                node = self._once(step.node, self.nodes, self._node)
                places = step.writes, step.reads, step.same
                return [_LAUNCH, kernel, step.buffers, numbers, *places, node, step.operations]
            case Together():
                return [_TOGETHER, [self._step(launch) for launch in step.launches]]
            case OnHost():
                return [_ON_HOST, self._once(step.node, self.nodes, self._node), step.reads, step.writes]
            case Copy():
                return [_COPY, step.target, step.source]
            case Loop():
                return [_LOOP, self._steps(step.body), step.length, step.reverse, step.carries, step.views]
            case While():
                return [_WHILE, self._steps(step.test), step.truth, self._steps(step.body), step.carries]
            case Branch():
                return [_BRANCH, step.truth, self._steps(step.then), self._steps(step.otherwise)]

    def _steps(self, steps: Sequence[Step]) -> list[Any]:
        return [self._step(step) for step in steps]

    def _kernel(self, kernel: Kernel) -> list[Any]:
        launch = kernel.launch
        return [
            self._once(kernel.program, self.programs, _program),
            None if launch is None else [*launch.grid, *launch.block, launch.shared_memory],
            kernel.lanes, kernel.outs, kernel.buffers, kernel.numbers,
            [[name, dtype.name, count] for name, dtype, count in kernel.scratch], kernel.extents, kernel.onto,
            kernel.copies,
        ]  # fmt: skip

    def _node(self, node: Node) -> list[Any]:
        if TABLE.get(node.op.name) is not node.op:
            raise NotKept(f"a {node.op.name}")
        if any(x.outs is not None for x in node.inputs):
            raise NotKept("an input of several results")
        inputs = [[_aval(x), as_json(x.attrs)] if x.op is CONST else [_aval(x)] for x in node.inputs]
        outs = None if node.outs is None else [_aval(out) for out in node.outs]
        return [node.op.name, as_json(node.attrs), _aval(node), outs, inputs, self.outline.number_of(node.site)]


def _aval(value: Any) -> list[Any]:
    if not all(type(extent) is int for extent in value.shape):
        raise NotKept("a size that is not known yet")
    return [value.dtype.name, *value.shape]


def _array(array: Any) -> list[Any]:
    return [str(dtypes.of(array.dtype).name), list(array.shape), np.ascontiguousarray(array).tobytes().hex()]


def _program(program: Program) -> list[Any]:
    params = [[p.name, p.kind.value, p.ty and p.ty.name, p.count] for p in program.params]
    spans = [(k, as_json(i.span)) for k, i in enumerate(program.instructions) if i.span is not None]
    return [program.digest, program.name, params, json.dumps(to_json(program), separators=(",", ":")), spans]


# --- reading ----------------------------------------------------------------------------------------


def read(payload: bytes, outline: Outline, target: MachineDescription) -> Plan:
    """The plan that was written, for the graph at hand; `NotKept` where the bytes are none."""
    try:
        unpack = zlib.decompressobj()
        text = unpack.decompress(payload, MOST_BYTES)
        if not unpack.eof:
            raise NotKept("it is cut short, or too large")
        return _Reader(json.loads(text), outline).plan(target)
    except (zlib.error, ValueError, TypeError, KeyError, IndexError, RecursionError, EshkolError) as error:
        raise NotKept(f"no plan: {error}") from None


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise NotKept(what)


class _Reader:
    """What was written, with every number compared with what there is."""

    def __init__(self, data: Any, outline: Outline) -> None:
        _check(type(data) is dict, "not an object")
        self.outline, self.data = outline, data
        self._inputs: dict[Any, Node] = {}  # what stands for inputs of nodes: those that look alike are one
        self.places = [Place(aval.shape, aval.dtype) for aval in map(self._aval, data["places"])]
        self.programs = [self._program(*program) for program in data["programs"]]
        self.kernels = [self._kernel(*kernel) for kernel in data["kernels"]]
        self.nodes = [self._node(*node) for node in data["nodes"]]

    def plan(self, target: MachineDescription) -> Plan:
        data = self.data
        constants = [(self._place(place), self._array(array)) for place, array in data["constants"]]
        results = [(self._place(place), self._aval(aval)) for place, aval in data["results"]]
        return Plan(
            tuple(self.places), self._some(data["params"]), tuple(constants), tuple(results),
            self._steps(data["steps"], 0), target,
        )  # fmt: skip

    def _place(self, number: Any) -> int:
        _check(type(number) is int and 0 <= number < len(self.places), "a place that is not there")
        return int(number)

    def _some(self, numbers: Any) -> tuple[int, ...]:
        count = len(self.places)
        _check(type(numbers) is list, "no list of places")
        _check(all(type(n) is int and 0 <= n < count for n in numbers), "a place that is not there")
        return tuple(numbers)

    def _pairs(self, pairs: Any) -> tuple[tuple[int, int], ...]:
        return tuple([(self._place(a), self._place(b)) for a, b in pairs])

    def _one(self, number: Any, among: list[Any]) -> Any:
        _check(type(number) is int and 0 <= number < len(among), "what is not there")
        return among[number]

    def _aval(self, written: Any) -> Aval:
        name, *shape = written
        _check(all(type(extent) is int and extent >= 0 for extent in shape), "no shape")
        return Aval(tuple(shape), _DTYPES[name])

    def _array(self, given: Any) -> Any:
        if type(given) is not list:
            return self._one(given, self.outline.arrays)
        name, shape, raw = given
        aval = self._aval([name, *shape])
        return np.frombuffer(bytes.fromhex(raw), aval.dtype.numpy).reshape(aval.shape)

    def _program(self, digest: Any, name: Any, params: Any, text: Any, spans: Any) -> KeptProgram:
        _check(all(type(x) is str for x in (digest, name, text)), "no program")
        made = [Param(p, _KINDS[kind], None if ty is None else _TYPES[ty], count) for p, kind, ty, count in params]
        places = {_count(place): from_json(span) for place, span in spans}
        _check(all(type(span) is Span for span in places.values()), "no place in a text")
        return KeptProgram.of(text, digest, name, tuple(made), places)

    def _kernel(
        self, program: Any, launch: Any, lanes: Any, outs: Any, buffers: Any, numbers: Any, scratch: Any, extents: Any,
        onto: Any, copies: Any,
    ) -> Kernel:  # fmt: skip
        found: KeptProgram = self._one(program, self.programs)
        _check(lanes is None or type(lanes) is int, "no count of lanes")
        _check(type(onto) is bool and type(copies) is bool, "no truth value")
        config = None
        if launch is not None:
            config = LaunchConfig(tuple(launch[:3]), tuple(launch[3:6]), *launch[6:])
        needs = tuple([(_text(name), _DTYPES[dtype], _count(count)) for name, dtype, count in scratch])
        return Kernel(
            found, config, lanes, tuple(map(_text, outs)), _named(buffers), _named(numbers), needs, _named(extents),
            onto, copies,
        )  # fmt: skip

    def _node(self, op: Any, attrs: Any, aval: Any, outs: Any, inputs: Any, site: Any) -> Node:
        made, own = Node.__new__(Node), self._aval(aval)
        made.op, made.attrs, made.data, made.scopes, made.depth, made.device = (
            TABLE[op], from_json(attrs), None, NO_SCOPES, 1, None,
        )  # fmt: skip
        made.shape, made.dtype = own.shape, own.dtype
        made.outs = None if outs is None else tuple(map(self._aval, outs))
        made.inputs = tuple([self._input(*x) for x in inputs])
        made.site = None if site == -1 else self._one(site, self.outline.sites)
        return made

    def _input(self, written: Any, number: Any = None) -> Node:
        """What stands for an input: a constant, or a value of whatever origin."""
        key = repr((written, number))
        made = self._inputs.get(key)
        if made is None:
            made, aval = Node.__new__(Node), self._aval(written)
            made.op, made.attrs = (PLACEHOLDER, None) if number is None else (CONST, from_json(number))
            made.inputs, made.data, made.scopes, made.depth = (), None, NO_SCOPES, 0
            made.device = made.site = made.outs = None
            made.shape, made.dtype = aval.shape, aval.dtype
            self._inputs[key] = made
        return made

    def _steps(self, steps: Any, depth: int) -> tuple[Step, ...]:
        _check(type(steps) is list and depth < MOST_DEPTH, "no steps")
        return tuple([self._step(step, depth + 1) for step in steps])

    def _step(self, step: Any, depth: int) -> Step:
        kind, *given = step
        match kind:
            case 0:
                return self._launch(*given)
            case 1:
                (launches,) = given
                _check(all(one[0] == _LAUNCH for one in launches), "no launch")
                return Together(tuple([self._launch(*one[1:]) for one in launches]))
            case 2:
                node, reads, writes = given
                return OnHost(self._one(node, self.nodes), self._some(reads), self._some(writes))
            case 3:
                target, source = given
                return Copy(self._place(target), self._place(source))
            case 4:
                body, length, reverse, carries, views = given
                _check(type(reverse) is bool, "no direction")
                inside = self._steps(body, depth)
                return Loop(inside, _count(length), reverse, self._pairs(carries), self._pairs(views))
            case 5:
                test, truth, body, carries = given
                inside = self._steps(body, depth)
                return While(self._steps(test, depth), self._place(truth), inside, self._pairs(carries))
            case 6:
                truth, then, otherwise = given
                return Branch(self._place(truth), self._steps(then, depth), self._steps(otherwise, depth))
        raise NotKept("no step")

    def _launch(
        self, kernel: Any, buffers: Any, numbers: Any, writes: Any, reads: Any, same: Any, node: Any, operations: Any
    ) -> Launch:  # fmt: skip
        found: Kernel = self._one(kernel, self.kernels)
        known = found.program.param
        bound = tuple([(name, self._place(place)) for name, place in buffers])
        told = tuple([(name, from_json(value)) for name, value in numbers])
        names = [name for name, _ in (*bound, *told)]
        _check(found.launch is not None and len(names) == len(known), "a launch that does not fit its program")
        _check(all(name in known for name in names), "a parameter that its program does not have")
        return Launch(
            found, bound, told, self._some(writes), self._some(reads), self._some(same), self._one(node, self.nodes),
            None if operations is None else _count(operations),
        )  # fmt: skip


def _text(given: Any) -> str:
    _check(type(given) is str, "no text")
    return str(given)


def _count(given: Any) -> int:
    _check(type(given) is int and given >= 0, "no count")
    return int(given)


def _named(pairs: Any) -> tuple[tuple[str, int], ...]:
    return tuple([(_text(name), _count(number)) for name, number in pairs])
