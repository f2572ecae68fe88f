"""Sequences for all sizes of an axis: the same calls, in whose records some words are expressions in the size.

Comes in: the steps of a sequence in which integers are extents (`support/extents.py`). They are written as those of any
sequence are. Goes out: `SizedSequence`, of which `maker` gives what makes a sequence for a size in microseconds: words
are evaluated, and nothing is compiled. What was decided on the way is among the conditions of the size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.sequence import Call, SequenceStep
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.cpu.launch import Compiled, Prepared
from eshkol.backends.cpu.sequence import CpuSequence, SequenceWriter
from eshkol.errors import BackendUnavailable, IsaError
from eshkol.runtime import sequence as native
from eshkol.support.extents import Conditions, Extent, found_in, plain

_WIDTHS = {Type.I32: 32, Type.U32: 32, Type.I64: 64, Type.U64: 64}


class CompilesPrograms(Protocol):
    """The backend, as far as this needs it."""

    class_memory: Any

    def compiled(self, program: Program) -> Compiled: ...

    def compiled_anew(self, program: Program) -> Compiled: ...


class SizedSequence(SequenceWriter):
    """A sequence for all sizes that meet the conditions, when it has been made."""

    _backend: CompilesPrograms

    def __init__(self, backend: CompilesPrograms, steps: Sequence[SequenceStep], places: int) -> None:
        super().__init__(backend, steps, places)  # type: ignore[arg-type]

    def _prepared(self, step: Call) -> Prepared:
        """A launch for the size at hand alone; what of it depends on the size is said again by who asks."""
        program, launch = step.program, step.launch
        validate(program, launch)
        has_sizes = any(True for i in program.instructions for _ in found_in(i.operands))
        compiled = self._backend.compiled_anew(program) if has_sizes else self._backend.compiled(program)
        if has_sizes and compiled.lanes is not None:
            raise BackendUnavailable(f"'{program.name}' is made for one size")
        grid, block = (tuple(map(plain, extent)) for extent in (launch.grid, launch.block))
        at_hand = LaunchConfig(grid, block, plain(launch.shared_memory))
        prepared = Prepared.of(program, at_hand, compiled, self._backend.class_memory)
        if compiled.lanes is not None and (prepared.makes_pools or compiled.layout.barriers):
            names = sorted({i.op.name for i in program.instructions})
            raise BackendUnavailable(f"'{program.name}' does more than to compute ({names[:3]} …)")
        return prepared

    def _scalar(self, param: Any, value: Any) -> Any:
        if type(value) is not Extent:
            return super()._scalar(param, value)
        width = _WIDTHS.get(param.ty)
        if width is None:
            raise BackendUnavailable(f"a size is no scalar of type {param.ty}")
        if not param.ty.min_value <= value <= param.ty.max_value:
            raise IsaError(f"the scalar '{param.name}' does not fit {param.ty}")
        return value if value >= 0 else value & ((1 << width) - 1)

    def _word(self, value: Any) -> Any:
        return value if type(value) is Extent and value >= 0 else super()._word(value)

    def maker(self, conditions: Conditions) -> Callable[[int, Sequence[int]], CpuSequence]:
        """What makes the sequence for a size that meets the conditions."""
        laid = native.Laid(self.steps, self.calls)
        wanted: dict[int, Extent] = {}  # by their numbers
        numbers: dict[int, int] = {}
        places: list[int] = []  # of words that are evaluated
        for place, word in enumerate(laid.words):
            if type(word) is Extent:
                numbers.setdefault(word.place, len(wanted))
                wanted[word.place] = word
                places.append(place)
        which = np.array([numbers[laid.words[place].place] for place in places], np.intp)
        where = np.array(places, np.intp)
        fixed = native.as_words([*map(plain, laid.words)])
        scratch = self.scratch
        values = conditions.values([*wanted.values(), *([scratch] if type(scratch) is Extent else ())])

        def made(size: int, late: Sequence[int]) -> CpuSequence:
            found, at = fixed.copy(), values(size, late)
            if places:
                found[where] = native.as_words(at[: len(wanted)])[which]
            return CpuSequence(self, laid, found, at[-1] if type(scratch) is Extent else scratch)

        return made
