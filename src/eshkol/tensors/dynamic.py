"""One trace for all lengths of an axis: how `jit` meets a batch of another size.

A function is traced for a length of an axis as for any shapes. Once it was seen with other lengths of the same axes (of
all its inputs at once: the batch), it is traced on an extent instead (`support/extents.py`), an integer that notes what
is asked of it, and the whole compiler runs on that: graphs, kernels, places of memory and the records of native calls
hold expressions in the size n. What was decided on the way are conditions of n; for a size that meets them a plan is
made in microseconds, without a trace and without a compiler (`schedule/run/sized.py`). A size that does not is a class
of its own, with a trace of its own.

The function sees lengths that are no integers (`support/watched.py`), so that every use is noted. What of the compiler
looks at a plain value is found by doing all of it a second time, at another size: the two must agree in every word of
the plan for that size, and only sizes between those that were compared are served; one beyond is compared first. Where
they do not agree, or where the function asks for the number itself, it is traced for each length as before;
`ESHKOL_EXPLAIN=1` says so, and why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from eshkol.errors import BackendUnavailable, EshkolError, MiscompiledError
from eshkol.graph.function import Function
from eshkol.graph.node import Node, Scope, on_host, placeholder
from eshkol.ops.dtypes import DType, float64
from eshkol.ops.row import Aval
from eshkol.schedule.cache import COMPILER, nothing_kept
from eshkol.schedule.pipeline import Compiled, compiled
from eshkol.schedule.plan.steps import Plan
from eshkol.schedule.run import execute
from eshkol.schedule.run.sized import Instance, SizedPlan
from eshkol.support import flags
from eshkol.support.collector import without_collector
from eshkol.support.extents import LEAST, PACKAGE, Conditions, Extent, found_in
from eshkol.support.watched import Watching
from eshkol.tensors import pytree
from eshkol.tensors.scalars import Scalar

SEEN = 2  # lengths for which a function is traced before it is compiled for all of them
CLASSES = 32  # of sizes, each with conditions of its own
NEAR = 100  # sizes below and above one that are tried for another like it
FAMILIES = 8  # of calls that differ in lengths alone, for one function
MOST_MADE = 256  # classes, in all
FAILURES = 3  # after which, and with no success, a function is traced for each length

Axes = frozenset[tuple[int, int]]  # places of inputs in a key, and axes


class Refused(Exception):
    """Why a function is not compiled for all lengths."""


@dataclass(frozen=True)
class Traced:
    """What a trace on an extent gave; what is simple of it is computed."""

    function: Function
    captured: Sequence[Node]
    tree: pytree.Tree
    simplified: Callable[[Function, Sequence[Node]], tuple[Function, Sequence[Node]]]


Tracer = Callable[[Sequence[Aval]], Traced]  # given what the inputs are like


EXPECTED = (Refused, BackendUnavailable)  # anything else that goes wrong is a defect of the compiler, and is told


class Template:
    """A function, traced and planned for all sizes that meet conditions."""

    def __init__(self, tracer: Tracer, avals: Sequence[Aval], axes: Axes, hint: int, machine: Any) -> None:
        self.conditions = conditions = Conditions(hint)
        self.machine, self.target = machine, machine.description
        self.numbers: list[tuple[Any, DType]] = []
        self._params: list[Node] = []
        self._known: dict[tuple[int, DType], Node] = {}
        conditions.numbers = self._number
        sized = [
            Aval(tuple([conditions.size if (k, d) in axes else n for d, n in enumerate(a.shape)]), a.dtype)
            for k, a in enumerate(avals)
        ]
        self._scope: Any = None
        with Watching.watched(conditions):
            try:
                found = tracer(sized)
            except Exception as error:
                if not _of_the_function(error):
                    raise
                raise Refused(f"for size {hint} it raises {type(error).__name__}: {error}") from error
        self.tree, self.function = found.tree, found.function
        self._scope = self.function.scope
        with COMPILER, without_collector(), nothing_kept():
            self.needs = self._planned(found, len(avals))
        self.compiled = Compiled(self.function.results, self.function.params)  # of extents: it is never run
        self._plans: dict[tuple[int, ...], SizedPlan] = {}
        self._refuse_fixed()

    def _number(self, size: Extent, dtype: DType | None) -> Any:
        """A size as an input of what is computed."""
        key = size.place, dtype or float64
        node = self._known.get(key)
        if node is None:
            scope = self._scope or next(s for s in Scope.at_work if s.kind == "trace")
            node = self._known[key] = placeholder(Aval((), key[1]), scope)
            self.numbers.append((size, key[1]))
            self._params.append(node)
        return Scalar(node) if dtype is None else node

    def _planned(self, found: Traced, given: int) -> Sequence[Node]:
        """Plan it; the values that it takes beside its arguments."""
        function, captured = found.function, found.captured
        inputs, before = function.params[:given], [*self._params]
        own = Function((*inputs, *before, *function.params[given:]), function.results, function.scope)
        simple, needs = found.simplified(own, captured)
        if any(True for node in needs for _ in found_in(node.shape)):
            raise Refused("a tensor that it captures depends on the size")
        params = [*simple.params[:given], *simple.params[given + len(before) :]]
        self._params[:0] = params  # what becomes a number while it is compiled comes behind
        self.plan: Plan = compiled(simple.results, self._params, self.target)
        return needs

    def _refuse_fixed(self) -> None:
        if self.conditions.fixed is not None:
            raise Refused(self.conditions.fixed)

    def sized(self, donated: tuple[int, ...]) -> SizedPlan:
        """The plan, where the memory of these inputs may be taken."""
        found = self._plans.get(donated)
        if found is None:
            with COMPILER, without_collector(), nothing_kept():
                found = SizedPlan(self.plan, self.machine, donated, self.conditions, self.numbers)
            self._refuse_fixed()
            self._plans[donated] = found
        return found


class Class:
    """Sizes that one plan serves: traced at one of them, and again at another, with the same outcome."""

    def __init__(
        self, make: Callable[[int], Template], size: int, seen: Sequence[int], donated: tuple[int, ...],
        watched: Sequence[Node],
    ) -> None:  # fmt: skip
        self.watched = watched  # of the tensors that it captured by name, when it was traced
        self._make, self._donated, self.template = make, donated, make(size)
        self.holds = self.template.sized(donated).holds
        self.ends = [size, size]  # of the sizes between which all were computed alike, as far as was looked
        self._others: list[tuple[int, Template]] = []
        self._ready: dict[tuple[int, ...], SizedPlan] = {}
        self._compare(max(_alike(size, seen, self.holds), key=lambda n: abs(n - size)))
        self.plan(donated)
        self._at_least = self.plan(()).holds  # a call may find that it must not take memory

    def serves(self, size: int) -> bool:
        """Whether it is right for a size; one beyond all that were compared is compared first, or one farther away."""
        if not self.holds(size) or not self._at_least(size):
            return False
        least, most = self.ends
        if least <= size <= most:
            return True
        around = [n for n in (size, *_alike(size, (), self.holds)) if (n <= size if size < least else n >= size)]
        try:
            self._compare(max(around, key=lambda n: abs(n - size)))
        except EXPECTED:
            self.holds = lambda n: False  # something was not seen: it serves nothing from now on
            return False
        return True

    def _compare(self, size: int) -> None:
        """Have all of it made at another size too, and refuse what is not the same."""
        other = self._make(size)
        self._same(size, other, self._donated)
        if not self._others:
            self._others.append((size, other))
        self.ends = [min(self.ends[0], size), max(self.ends[1], size)]

    def _same(self, size: int, other: Template, donated: tuple[int, ...]) -> None:
        mine = self.template
        if mine.tree != other.tree or mine.sized(donated).shown(size) != other.sized(donated).shown(size):
            raise Refused(f"traces at sizes {mine.conditions.hint} and {size} differ in more than the size")
        if not _same_values(mine.needs, other.needs):
            raise Refused("it captures other tensors for another size")

    def plan(self, donated: tuple[int, ...]) -> SizedPlan:
        """The plan where these inputs are donated, compared with that of another trace."""
        found = self._ready.get(donated)
        if found is None:
            if donated != self._donated:
                self._same(*self._others[0], donated)
            found = self._ready[donated] = self.template.sized(donated)
        return found


def _of_the_function(error: Exception) -> bool:
    """Whether an error of a trace is one of the function's: raised by its own code, or by an operation that refuses."""
    if isinstance(error, MiscompiledError):
        return False
    if isinstance(error, EshkolError):
        return True
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is None or not frame.tb_frame.f_code.co_filename.startswith(PACKAGE)


def _same_values(some: Sequence[Node], others: Sequence[Node]) -> bool:
    """Whether nodes are the same, or have the same values: what is made of a tensor may be computed for each trace."""
    if len(some) != len(others):
        return False
    pairs = [(a, b) for a, b in zip(some, others, strict=True) if a is not b]
    if any(a.shape != b.shape or a.dtype is not b.dtype for a, b in pairs):
        return False
    execute.compute([x for pair in pairs for x in pair])
    return all(on_host(a.data).tobytes() == on_host(b.data).tobytes() for a, b in pairs)


def _alike(size: int, seen: Sequence[int], holds: Callable[[int], bool]) -> list[int]:
    """Other sizes that meet the conditions."""
    near = range(max(LEAST, size - NEAR), size + NEAR)
    tried = [LEAST, 3, 5, size // 4, size // 2, *near, *(k * size + m for k in (2, 3, 4, 8) for m in range(4)), *seen]
    found = [n for n in tried if n != size and n >= LEAST and holds(n)]
    if not found:
        raise Refused(f"no other size would be computed as {size} is")
    return found


class Sized:
    """What is compiled, for one size: as `pipeline.Compiled`, as far as `jit` runs it."""

    def __init__(self, of: Class, size: int) -> None:
        self._of, self.size, self.uses = of, size, 0
        self._plans: dict[tuple[int, ...], Instance] = {}
        self.beside: Any = None  # a plain trace, where results are to be compared

    @property
    def template(self) -> Template:
        return self._of.template

    @property
    def watched(self) -> Sequence[Node]:
        return self._of.watched

    @property
    def suits(self) -> bool:
        """Whether it is right for what the machine is like now: that depends on how precise products are wanted."""
        template = self._of.template
        return template.machine.description is template.target

    def comes_again(self) -> bool:
        """Whether it is compared with the interpreter now, where checks are on: at uses 1, 2, 4, 8 …"""
        self.uses += 1
        return self.uses & (self.uses - 1) == 0

    def ready(self, machine: Any, donated: tuple[int, ...] = ()) -> Instance:
        """The plan for its size, where these parameters are donated."""
        found = self._plans.get(donated)
        if found is None:
            found = self._plans[donated] = self._instance(donated)
        return found

    def _instance(self, donated: tuple[int, ...]) -> Instance:
        try:
            plan = self._of.plan(donated)
            if plan.holds(self.size):
                return plan.at(self.size)
        except EXPECTED:
            pass
        return self._of.plan(()).at(self.size)  # to take no memory is right, too

    def run(self, given: Sequence[Any], machine: Any, *, donated: Sequence[int] = ()) -> list[Any]:
        """The results for values of the parameters."""
        return self.ready(machine, tuple(donated)).run(given)


@dataclass
class Family:
    """Calls that differ in the length of some axes alone, which is one for all of them."""

    axes: Axes  # by places in the signature
    masked: Any
    donated: tuple[int, ...]  # places of inputs whose memory may be taken
    seen: list[int] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)  # lengths that are traced by themselves, and why
    made: int = 0  # classes that were tried
    refused: bool = False

    def __post_init__(self) -> None:
        inputs = [k for k, _ in shapes_in(self.masked[0])]
        self._varying: dict[int, list[int]] = {}  # axes by places of the signature
        for number, axis in sorted(self.axes):
            self._varying.setdefault(inputs[number], []).append(axis)

    def size_of(self, key: Any) -> int | None:
        """The length of its axes in a call that belongs to it."""
        signature, (masked, *others) = [*key[0]], self.masked
        if len(signature) != len(masked) or others != [*key[1:]]:
            return None
        found: set[Any] = set()
        for place, axes in self._varying.items():
            shape = signature[place]
            if not isinstance(shape, tuple) or len(shape) != len(masked[place]):
                return None
            found.update([shape[axis] for axis in axes])
            signature[place] = tuple([None if axis in axes else n for axis, n in enumerate(shape)])
        size = found.pop() if len(found) == 1 else None
        return size if type(size) is int and tuple(signature) == masked else None


class Families:
    """What a function under `jit` was called with, as far as lengths vary."""

    def __init__(self, dynamic: Any, name: str) -> None:
        self.name = name
        self._allowed = dynamic  # None: after two lengths; True: after one; a mapping: of these axes
        self._families: list[Family] = []

    def found(self, key: Any) -> tuple[Family, int] | None:
        """The family that a call belongs to, and its size."""
        for family in self._families:
            size = family.size_of(key)
            if size is not None:
                return family, size
        return None

    def noticed(
        self, key: Any, others: Sequence[Any], allowed: Callable[[int, int], bool], donated: tuple[int, ...]
    ) -> tuple[Family, int] | None:
        """The same, of calls that now are seen to belong together."""
        by_axes: dict[Axes, set[int]] = {}
        for other in others:
            axes = _varying(key, other)
            if axes and all(allowed(*a) for a in axes):
                size = _size_of(other[0], axes)
                if size is not None:
                    by_axes.setdefault(axes, set()).add(size)
        wanted = SEEN if self._allowed is None else 1
        for axes, sizes in by_axes.items():
            size = _size_of(key[0], axes)
            if size is not None and len(sizes) >= wanted:
                family = Family(axes, _masked(key, axes), donated, sorted(sizes))
                self._families = [*self._families[1 - FAMILIES :], family]
                return family, size
        return None

    def compiled(
        self,
        family: Family,
        size: int,
        maker: Callable[[], Callable[[int], Template]],
        watched: Sequence[Node],
    ) -> Sized | None:
        """The function for a size: of a class that is there, or of a new one; None where it is to be traced.

        `maker` is asked for what traces it for a size, where that is needed.
        """
        if size < LEAST or family.refused or size in family.failed:
            return None
        for one in family.classes:
            if one.serves(size):
                return Sized(one, size)
        try:  # threads that come here at once each make one
            if family.made >= MOST_MADE:
                raise Refused(f"{MOST_MADE} classes of lengths did not suffice")
            family.made += 1
            made = Class(maker(), size, family.seen, family.donated, watched)
        except EXPECTED as error:
            family.failed[size] = f"{type(error).__name__}: {error}"
            family.refused = family.made >= MOST_MADE or (len(family.failed) >= FAILURES and not family.classes)
            each = "each length" if family.refused else f"length {size}"
            self._explain(f"is traced for {each} of {_told(family.axes)}: {error}")
            return None
        family.classes = [*family.classes[1 - CLASSES :], made]
        told = made.template.conditions.told()
        self._explain(f"is compiled for all lengths n of {_told(family.axes)} where {told}")
        return Sized(made, size)

    def _explain(self, text: str) -> None:
        if flags.is_on("ESHKOL_EXPLAIN"):
            print(f"{self.name} {text}", file=sys.stderr)


def _told(axes: Axes) -> str:
    return " and ".join(f"axis {axis} of tensor {k}" for k, axis in sorted(axes))


def shapes_in(signature: Sequence[Any]) -> list[tuple[int, Any]]:
    """The places of inputs in a signature, with their shapes (or kinds, of numbers)."""
    return [(k, signature[k]) for k in range(1, len(signature) - 1, 2) if isinstance(signature[k + 1], DType)]


def _varying(key: Any, other: Any) -> Axes | None:
    """The axes, by the numbers of inputs, in which alone two keys differ."""
    mine, theirs = key[0], other[0]
    if len(mine) != len(theirs) or key[1:] != other[1:]:
        return None
    found: set[tuple[int, int]] = set()
    number = 0
    inputs = {k for k, _ in shapes_in(mine)}
    for k in range(len(mine)):
        a, b = mine[k], theirs[k]
        if k in inputs:
            number += 1
        if a == b:
            continue
        if k not in inputs or not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
            return None
        found |= {(number - 1, axis) for axis, (n, m) in enumerate(zip(a, b, strict=True)) if n != m}
    return frozenset(found)


def _size_of(signature: Sequence[Any], axes: Axes) -> int | None:
    """The one length of these axes, if they have one."""
    shapes = shapes_in(signature)
    found: set[int] = set()
    for number, axis in axes:
        shape = shapes[number][1] if number < len(shapes) else None
        if not isinstance(shape, tuple) or axis >= len(shape) or type(shape[axis]) is not int:
            return None
        found.add(shape[axis])
    return found.pop() if len(found) == 1 else None


def _masked(key: Any, axes: Axes) -> Any:
    """A key without the lengths of some axes."""
    signature = [*key[0]]
    for number, (k, shape) in enumerate(shapes_in(key[0])):
        if isinstance(shape, tuple):
            signature[k] = tuple([None if (number, d) in axes else n for d, n in enumerate(shape)])
    return (tuple(signature), *key[1:])
