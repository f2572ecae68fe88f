"""A function as kernels of WebGPU: one file that `eshkol.js` runs in pages whose browser has a GPU for them.

Comes in: a function with example arguments, as `export_webgpu` takes them. Goes out: bytes: a line of JSON, padded with
blanks to a multiple of four, and behind it the constants. The line says which buffers there are, what each launch is
made of and given, all of which is known beforehand, and what a fault of a lane means. Values whose lives do not
overlap share a buffer. Loops and branches, whose course only a run knows, and what the host computes are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eshkol.atlas.types import Array
from eshkol.backends.webgpu.alone import BROWSER, AloneLaunch, alone
from eshkol.backends.webgpu.writer import STATUS
from eshkol.errors import BackendUnavailable
from eshkol.graph.node import Node
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, Plan, Step, Together, While
from eshkol.schedule.run.failures import where_asked
from eshkol.schedule.run.stepwise import last_uses
from eshkol.tensors.export import explained, operand_of, plain, planned_for

FORMAT = 1
WORD = 4


def described(data: bytes) -> dict[str, Any]:
    """What a file of kernels says of itself."""
    found: dict[str, Any] = json.loads(data[: data.index(b"\n")])
    return found


def webgpu_kernels(function: Callable[..., Any], example_inputs: Any, name: str) -> bytes:
    """The function as a file for `eshkol.js`; what pages cannot do on a GPU is a `BackendUnavailable`."""
    args = tuple(example_inputs) if isinstance(example_inputs, tuple | list) else (example_inputs,)
    plan, arrays, names = planned_for(plain(function), args, name, BROWSER, "page")
    return _Writer(plan, arrays, names).written(name)


@dataclass
class _Slots:
    """Buffers handed out to places for as long as these are needed."""

    sizes: list[int] = field(default_factory=list)
    of: dict[int, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)

    def give(self, place: int, size: int, *, alone: bool = False) -> int:
        """The buffer of a place: a free one that is as large, or a new one."""
        if place not in self.of:
            self.of[place] = self.spare(size, alone=alone)
        return self.of[place]

    def spare(self, size: int, *, alone: bool = False) -> int:
        """A buffer that nothing has; the caller puts it among those that are free."""
        size = max(WORD, -(-size // WORD) * WORD)
        fitting = [] if alone else [slot for slot in self.free if self.sizes[slot] >= size]
        if fitting:
            slot = min(fitting, key=lambda k: self.sizes[k])
            self.free.remove(slot)
        else:
            slot = len(self.sizes)
            self.sizes.append(size)
        return slot

    def take_back(self, place: int) -> None:
        if place in self.of:
            self.free.append(self.of.pop(place))


class _Writer:
    """The file of a plan."""

    def __init__(self, plan: Plan, arrays: Sequence[Any], names: Sequence[str]) -> None:
        self.plan, self.names = plan, names
        self.slots = _Slots()
        self.kernels: dict[str, int] = {}
        self.pipelines: dict[tuple[int, int, int | None], int] = {}
        self.messages: dict[str, int] = {}
        self.faults: list[list[int]] = []  # messages of each step that can fail, by the place in its program
        self.steps: list[dict[str, Any]] = []
        count = len(plan.params) - len(arrays)
        self.inputs = plan.params[:count]
        held = [*zip(plan.params[count:], arrays, strict=True), *plan.constants]
        self.constants = [(self._own(place), np.ascontiguousarray(array)) for place, array in held]
        for place in (*self.inputs, *(place for place, _ in plan.results)):
            self._own(place)

    def _own(self, place: int) -> int:
        """The buffer of a place that nothing else has."""
        return self.slots.give(place, self.plan.places[place].size, alone=True)

    def _slot(self, place: int) -> int:
        return self.slots.give(place, self.plan.places[place].size)

    def written(self, name: str) -> bytes:
        plan = self.plan
        for step, done in zip(plan.steps, last_uses(plan), strict=True):
            self._step(step)
            for place in done:
                self.slots.take_back(place)
        inputs = [
            operand_of(given, plan.places[place]) | {"buffer": self.slots.of[place]}
            for given, place in zip(self.names, self.inputs, strict=False)
        ]
        outputs = [
            operand_of(given, aval) | {"buffer": self.slots.of[place]}
            for given, (place, aval) in zip(self.names[len(self.inputs) :], plan.results, strict=True)
        ]
        constants, raw, at = [], [], 0
        for slot, array in self.constants:
            whole = _in_words(array)
            constants.append({"buffer": slot, "at": at, "bytes": len(whole)})
            raw.append(whole)
            at += len(whole)
        head = {
            "format": FORMAT, "name": name, "inputs": inputs, "outputs": outputs, "buffers": self.slots.sizes,
            "constants": constants, "kernels": [*self.kernels], "steps": self.steps,
            "pipelines": [{"kernel": k, "lanes": lanes, "shared": shared} for k, lanes, shared in self.pipelines],
            "faults": self.faults, "messages": [*self.messages],
            "needs": max((len(step["buffers"]) for step in self.steps if "buffers" in step), default=0),
        }  # fmt: skip
        line = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
        return b"".join([line, b" " * (-(len(line) + 1) % WORD), b"\n", *raw])

    def _step(self, step: Step) -> None:
        match step:
            case Launch():
                self._launch(step)
            case Together():
                for launch in step.launches:
                    self._launch(launch)
            case Copy():
                size = self.plan.places[step.source].size
                if size:
                    source, target = self._slot(step.source), self._slot(step.target)
                    self.steps.append({"copy": [target, source, -(-size // WORD) * WORD]})
            case Loop() | While() | Branch():
                what = {Loop: "a loop", While: "a loop", Branch: "a branch"}[type(step)]
                raise BackendUnavailable(f"{what} is not run on the GPU of a page", span=_first_of(step))
            case _:
                raise AssertionError(f"no step of an exported plan: {type(step).__name__}")

    def _launch(self, step: Launch) -> None:
        kernel, places = step.kernel, self.plan.places
        assert kernel.launch is not None
        lies = dict(step.buffers)
        for place in step.writes:
            self._slot(place)
        sizes = {name: places[place].size for name, place in lies.items()}
        if not all(sizes[name] for name, place in lies.items() if place in step.writes):
            return  # there is nothing to compute
        made = alone(kernel.program, kernel.launch, sizes, dict(step.numbers))
        twins = self._twins(step, lies)
        key = (self.kernels.setdefault(made.wgsl, len(self.kernels)), made.lanes, made.shared)
        self.steps.append({
            "pipeline": self.pipelines.setdefault(key, len(self.pipelines)), "words": made.words,
            "buffers": [-1 if name == STATUS else twins.get(name, self._slot(lies[name])) for name in made.buffers],
            "groups": made.groups, **self._checked(made, step.node),
        })  # fmt: skip
        self.slots.free += twins.values()

    def _twins(self, step: Launch, lies: Mapping[str, int]) -> dict[str, int]:
        """Buffers with copies of what a launch is given twice: browsers take no buffer for two parameters."""
        twins: dict[str, int] = {}
        met: set[int] = set()
        for name, place in lies.items():
            if place in met:
                if place in step.writes:
                    raise BackendUnavailable(f"'{step.kernel.program.name}' writes what it is given twice")
                size = self.plan.places[place].size
                twins[name] = self.slots.spare(size)
                self.steps.append({"copy": [twins[name], self._slot(place), -(-size // WORD) * WORD]})
            met.add(place)
        return twins

    def _checked(self, made: AloneLaunch, node: Node) -> Mapping[str, int]:
        """Which of the faults a launch can have, if it can."""
        if not made.checks:
            return {}
        told = [explained(node, error) for error in made.errors]
        self.faults.append([self.messages.setdefault(text, len(self.messages)) for text in told])
        return {"check": len(self.faults) - 1}


def _launches(steps: Sequence[Step]) -> Iterator[Launch]:
    for step in steps:
        if isinstance(step, Launch):
            yield step
        elif isinstance(step, Together):
            yield from step.launches


def _first_of(step: Loop | While | Branch) -> Any:
    """Where the first launch of a loop or branch was asked for."""
    inner = step.then if isinstance(step, Branch) else step.body
    return next((where_asked(launch.node) for launch in _launches(inner)), None)


def _in_words(array: Array) -> bytes:
    raw = array.tobytes()
    return raw + bytes(-len(raw) % WORD or (WORD if not raw else 0))
