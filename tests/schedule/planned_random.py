"""Random programs that are planned for `plan_sizes.txt`: what nobody would have thought of.

Comes in: the generator of `tests/random_programs`, with a seed for each. Goes out: functions of the programs' inputs,
with what these are like, which `planned_functions.py` enters beside the others. Values decide nothing that machines
compute differently, so the programs are the same everywhere; a generator that draws others changes their lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "ops"))  # whose samples the generator draws from

from random_programs.choosing import Seeded
from random_programs.drawing import SMALL, WIDE, draw_program
from random_programs.program import Program, Step

COUNT = 150
DTYPES = ("float32",) * 12 + (
    "float64", "float64", "float16", "bfloat16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64",
)  # fmt: skip


class Drawn(NamedTuple):
    """A function of a program's inputs, and their dtypes and shapes."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]


def drawn() -> Iterator[tuple[str, Drawn]]:
    """The programs that have a step, by their names."""
    for seed in range(COUNT):
        program, _ = draw_program(Seeded(seed), dtypes=DTYPES, sizes=WIDE if seed % 2 else SMALL)
        if program.steps:
            inputs = tuple((f"{a.dtype}".replace("bool", "bool_"), a.shape) for a in program.inputs())
            yield f"random {seed}", Drawn(_ends(program), inputs)


def _ends(program: Program) -> Callable[..., Any]:
    """What no other step of a program takes."""
    taken = {k for entry in program.entries if isinstance(entry, Step) for k in entry.args}
    ends = [k for k in program.steps if k not in taken]

    def function(*inputs: Any) -> Any:
        values = program.tensors(inputs)
        return tuple(values[k] for k in ends)

    return function
