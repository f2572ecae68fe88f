"""A plan in full, as text that is the same in every process and on every machine.

Comes in: a plan. Goes out: its places and where they lie, its parameters, constants and results, which results may take
the memory of parameters, what each step holds of memory, and all steps with what they read and write, how many lanes
they have and the instructions of their kernels; and, for machines that run whole sequences, what these are asked for.
What depends on a length that programs are told is an expression. Nothing in it depends on addresses, hashes or what
ran before. Floats have six digits: what a library computes of them (sines in a transform's table) has another last bit
elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

import numpy as np

from eshkol.atlas.program import Program
from eshkol.atlas.sequence import NativeCode
from eshkol.graph.function import Function
from eshkol.ops.dtypes import DType
from eshkol.schedule.plan.arena import arranged, inherited
from eshkol.schedule.plan.report import reported
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Plan, Step, Together, While
from eshkol.schedule.run.native import Joined, NativePlan
from eshkol.support.extents import Conditions, Extent

_DIGITS = re.compile(r"-?\d+\.\d{6,}(?:e[+-]?\d+)?|-?\d\.\d+e[+-]?\d+")
_written: dict[int, tuple[Program, str]] = {}  # programs, which plans share, by identity


def text(plan: Plan) -> str:
    """All that a plan consists of."""
    return "\n".join(_lines(plan))


def digest(written: str) -> str:
    """A few letters that are others when the text is."""
    return blake2b(written.encode(), digest_size=4).hexdigest()


def conditions_text(conditions: Conditions) -> str:
    """For which sizes a plan is right."""
    others = sorted(f"{conditions.text(a)} {op} {conditions.text(b)}" for op, a, b in conditions.others)
    bounds = f"{conditions.least} to {conditions.most} without {sorted(conditions.not_these)}"
    return "\n".join([bounds, *others])


def _lines(plan: Plan) -> Iterator[str]:
    arena = arranged(plan)
    yield f"arena {arena.size}"
    for k, place in enumerate(plan.places):
        where = f" @{arena.offsets[k]}" if k in arena.offsets else ""
        yield f"%{k} {place.dtype}{said(place.shape)}{where}"
    yield f"params {said(plan.params)}"
    yield from (f"constant %{place} {said(np.asarray(array))}" for place, array in plan.constants)
    yield from (f"result %{place} {aval.dtype}{said(aval.shape)}" for place, aval in plan.results)
    # Which of the parameters are donated decides which results take their memory: all of them, and each by itself.
    donations = [plan.params, *((p,) for p in plan.params)] if len(plan.params) > 1 else [plan.params]
    yield f"donated {said([sorted(inherited(plan, donated).items()) for donated in donations])}"
    memory = reported(plan)
    yield f"memory {memory.inputs} {memory.results} {memory.arena} {memory.peak} {said(memory.by_op)}"
    yield from (f"  {step.name} writes {step.written} holds {step.live}" for step in memory.steps)
    yield from _steps(plan.steps, "")
    if plan.target.native and not any(type(n) is Extent for place in plan.places for n in place.shape):
        for donated in ((), range(len(plan.params))):
            yield from _sequences(plan, donated)


def _steps(steps: Iterable[Step], indent: str) -> Iterator[str]:
    within = indent + "  "
    for step in steps:
        match step:
            case Launch():
                yield from _launch(step, indent)
            case Together():
                yield f"{indent}together"
                yield from _steps(step.launches, within)
            case OnHost():
                node, inputs = step.node, said([(x.shape, x.dtype) for x in step.node.inputs])
                yield f"{indent}{_places(step.writes)} = host {node.op.name} {_places(step.reads)} {inputs}"
                yield f"{within}{said(node.attrs)}"
            case Copy():
                yield f"{indent}%{step.target} = %{step.source}"
            case Loop():
                yield f"{indent}loop {step.length} {step.reverse}"
                yield f"{within}{said(step.carries)} {said(step.views)}"
                yield from _steps(step.body, within)
            case While():
                yield f"{indent}while %{step.truth} {said(step.carries)}"
                yield from _steps(step.test, within)
                yield f"{indent}do"
                yield from _steps(step.body, within)
            case Branch():
                yield f"{indent}if %{step.truth}"
                yield from _steps(step.then, within)
                yield f"{indent}else"
                yield from _steps(step.otherwise, within)


class _Machine:
    """What takes down which sequences it is asked for, and has code of its own for all but a few steps of the host."""

    def sequence(self, steps: Sequence[Any], places: int) -> Any:
        return SimpleNamespace(steps=steps, places=places)

    def native(self, op: str, attrs: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        return None if any(name in op for name in ("eig", "svd", "solve")) else NativeCode(op, 1, 1, b"", (), (), str)


def _sequences(plan: Plan, donated: Sequence[int]) -> Iterator[str]:
    """What a machine that runs whole sequences is asked for, where these parameters are donated."""
    found = NativePlan(plan, _Machine(), donated)
    yield f"native {list(donated)} {found.count} {said(found.where)} {said(found.homes)} {said(found.results)}"
    yield f"  {said(found.views)} {said([(p.shape, p.dtype) for p in found.given])} {len(found.empty)}"
    yield from _parts(found.parts, "  ")


def _parts(parts: Iterable[Any], indent: str) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Joined):
            yield f"{indent}sequence {part.runner.places} {part.before}"
            for step, node in zip(part.runner.steps, part.nodes, strict=True):
                yield f"{indent}  {said(step)} {'' if node is None else node.op.name}"
        elif isinstance(part, OnHost):
            yield f"{indent}host {part.node.op.name}"
        else:
            yield f"{indent}{type(part).__name__}"
            for field in fields(part):
                if field.name != "step":
                    yield from _parts(getattr(part, field.name), indent + "  ")


def _launch(step: Launch, indent: str) -> Iterator[str]:
    kernel = step.kernel
    same = f" same {_places(step.same)}" if step.same else ""
    yield f"{indent}{_places(step.writes)} = {step.node.op.name} {_places(step.reads)}{same}"
    yield f"{indent}  given {said(step.buffers)} {said(step.numbers)} {said(kernel.outs)}"
    about = (kernel.lanes, kernel.buffers, kernel.numbers, kernel.scratch, kernel.extents, kernel.onto, kernel.copies)
    yield f"{indent}  kernel {said(about)}"
    if kernel.launch is not None:
        launch = kernel.launch
        yield f"{indent}  lanes {said((launch.grid, launch.block, launch.shared_memory))}"
    yield _program(kernel.program)


def _program(program: Program) -> str:
    found = _written.get(id(program))
    if found is None:
        found = _written[id(program)] = program, _DIGITS.sub(lambda m: f"{float(m[0]):.6g}", str(program))
    return found[1]


def _places(places: Sequence[int]) -> str:
    return " ".join(f"%{place}" for place in places)


def said(value: Any) -> str:
    """Attributes, numbers and what is made of them, without what differs between processes."""
    if isinstance(value, bool | np.bool_ | str) or value is None:
        return repr(value) if isinstance(value, str) else str(value)
    if type(value) is Extent:
        return value.conditions.text(value.place)
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if isinstance(value, complex | np.complexfloating):
        return f"({value.real:.6g}, {value.imag:.6g})"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, DType | np.dtype):
        return str(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{said(value.shape)} {_contents(value)}"
    if isinstance(value, Function | Program):
        return "function" if isinstance(value, Function) else value.name
    if isinstance(value, dict):
        return "{" + ", ".join(f"{said(k)}: {said(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(said, value)) + ")"
    if is_dataclass(value):
        return type(value).__name__ + said([getattr(value, f.name) for f in fields(value)])
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    raise TypeError(f"no text that is always the same for {type(value).__name__}: say how in {__name__}.said")


def _contents(array: np.ndarray[Any, Any]) -> str:
    """The numbers of an array, or their digest if they are many; those next to nothing are rounding errors of zero."""
    numbers = array.reshape(-1)
    if numbers.dtype.kind not in "biu":
        numbers = numbers.astype(np.complex128)
        numbers = np.stack((numbers.real, numbers.imag))
        size = np.abs(numbers)
        numbers = np.where(size < 1e-12 * size.max(where=np.isfinite(size), initial=0.0), 0.0, numbers) + 0.0
    written = ",".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in numbers.reshape(-1).tolist())
    return written if len(written) < 200 else blake2b(written.encode(), digest_size=8).hexdigest()
