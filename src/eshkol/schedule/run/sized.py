"""Plans for all sizes of an axis: a plan over extents, of which one for a size is made in microseconds.

Comes in: a plan whose integers are extents (`support/extents.py`), for a machine that shares the host's memory and has
sized sequences. Where all of it is one sequence, goes out: `SizedPlan`, which gives for a size that meets the
conditions what `NativePlan` gives for one: a plan in C that takes arrays and gives arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eshkol.errors import BackendUnavailable
from eshkol.ops.dtypes import DType
from eshkol.runtime import front
from eshkol.schedule.plan.arena import Arena, placed, tenancies
from eshkol.schedule.plan.steps import Plan
from eshkol.schedule.run.memory import Array, fresh_array, reads_heads
from eshkol.schedule.run.native import BYTE, Joined, NativePlan, told
from eshkol.support.extents import Conditions, Extent, found_in, plain


class _Sequencer:
    """The machine, where it is asked for sequences of all sizes; native code for ops is made for one."""

    def __init__(self, machine: Any) -> None:
        self.sequence = machine.sized_sequence

    def native(self, *about: Any) -> None:
        return None


class SizedPlan(NativePlan):
    """A plan ready for sizes. `numbers` are inputs, after all others, that depend on the size alone."""

    def __init__(
        self, plan: Plan, machine: Any, donated: Sequence[int], conditions: Conditions,
        numbers: Sequence[tuple[Any, DType]],
    ) -> None:  # fmt: skip
        self.conditions, self.tenancies = conditions, tenancies(plan)
        super().__init__(plan, _Sequencer(machine), donated)
        if self.whole is None or self.views or not reads_heads():
            raise BackendUnavailable("the host computes a part of it")
        if any(True for a in self.constants for _ in found_in(a.shape)):
            raise BackendUnavailable("a constant depends on the size")
        self.numbers = [(x, dtype.numpy) for x, dtype in numbers]
        self._sequence = self.whole.runner.maker(conditions)  # type: ignore[attr-defined]
        self._homes = [n for p, offset in self.homes.items() for n in (self.where[p][0], offset)]
        self._shapes = [p.shape for p in self.given]
        self._values = _Filled([self.arena.size, self._homes, self._shapes, self.results, [x for x, _ in self.numbers]])
        self._evaluate = conditions.values(self._values.wanted)
        self._sizes = _Filled([p.size for p in plan.places])
        self._evaluate_sizes = conditions.values(self._sizes.wanted)
        self.holds = conditions.holds()

    def _in_c(self) -> Any:
        return None  # there is one for each size

    def _arranged(self, plan: Plan) -> Arena:
        """Places lie where it is best for each size; until then nothing is known of where."""
        self.before = [0] * self.conditions.late_count  # what plans that were made before of the same conditions know
        self.starts: list[int] = []
        offsets: dict[int, Any] = {}
        for place, heir, ends in self.tenancies:
            if ends:
                continue
            if heir is None:
                self.starts.append(place)
            offsets[place] = self.conditions.late() if heir is None else offsets[heir]
        return Arena(offsets, self.conditions.late())

    def _late(self, size: int) -> list[int]:
        """Where places lie for a size, and how much memory that takes."""
        arena = placed(self.tenancies, self._sizes.at(self._evaluate_sizes(size)))
        return [*self.before, *[arena.offsets[p] for p in self.starts], arena.size]

    def at(self, size: int) -> Instance:
        """The plan for a size that meets the conditions."""
        part = self.whole
        assert isinstance(part, Joined)
        late = self._late(size)
        runner: Any = self._sequence(size, late)

        def failed(ready: Any, status: int) -> None:
            stopped = runner.failure(ready, status)
            raise told(part, stopped) from stopped.error

        arena, homes, shapes, results, numbers = self._values.at(self._evaluate(size, late))
        fresh = tuple([fresh_array(s, p.dtype.numpy) for s, p in zip(shapes, self.given, strict=True)])
        quick = front.plan(
            runner.made, failed, runner.scratch, self.count, len(self.plan.params), tuple(self.constants), fresh,
            fresh_array((arena,), BYTE), arena, tuple(homes), tuple(results), False,
        )  # fmt: skip
        given = [np.array(x, dtype) for x, (_, dtype) in zip(numbers, self.numbers, strict=True)]
        return Instance(quick, given)

    def shown(self, size: int) -> Any:
        """All that a plan for a size consists of, to be compared with another."""
        late = self._late(size)
        runner: Any = self._sequence(size, late)
        own = self._values.at(self._evaluate(size, late))
        constants = [(a.shape, a.dtype.str, a.tobytes()) for a in self.constants]
        return runner.shown(), own, constants, [p.dtype for p in self.given], self.count


class Instance:
    """A plan for one size."""

    __slots__ = ("numbers", "plan")

    def __init__(self, plan: Any, numbers: list[Array]) -> None:
        self.plan, self.numbers = plan, numbers  # in C; what it is given behind the parameters

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The results, where the parameters have these values: contiguous arrays."""
        found: list[Array] = self.plan.run([*arrays, *self.numbers])
        return found


class _Filled:
    """Nested lists and tuples in which extents are evaluated."""

    def __init__(self, given: Any) -> None:
        self.wanted = list[Any]()
        self.at: Callable[[Sequence[Any]], Any] = self._filler(given)

    def _filler(self, given: Any) -> Callable[[Sequence[Any]], Any]:
        if type(given) is Extent:
            place = len(self.wanted)
            self.wanted.append(given)
            return lambda values: values[place]
        if isinstance(given, tuple | list) and any(True for _ in found_in(given)):
            kind, inner = type(given), [self._filler(x) for x in given]
            return lambda values: kind([f(values) for f in inner])
        fixed = plain(given)
        return lambda values: fixed
