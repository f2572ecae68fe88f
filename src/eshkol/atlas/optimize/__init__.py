"""The optimizer: small passes from program to program, run in turn until nothing changes.

A program that runs without error gives the same bits afterwards, except where a product and a sum of floats
become an FMA (`contract`, on by default): that value is then rounded once instead of twice. No pass removes
an instruction that could fail, so errors stay errors.

`ESHKOL_DUMP=NAME` prints the program after the pass of that name; `ESHKOL_CHECK=1` validates after each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from eshkol.atlas.optimize.constants import propagate_constants
from eshkol.atlas.optimize.dead_code import eliminate_dead_code
from eshkol.atlas.optimize.fuse import fuse, fuse_exactly
from eshkol.atlas.optimize.peephole import peephole
from eshkol.atlas.program import Program
from eshkol.atlas.validate import validate
from eshkol.errors import IsaError
from eshkol.support import flags

PASSES: dict[str, Callable[[Program], Program]] = {
    "constants": propagate_constants,
    "peephole": peephole,
    "fuse": fuse,
    "dead_code": eliminate_dead_code,
}
_ROUNDS = 16  # each round shrinks the program or replaces costly instructions; few programs need three


def optimize(program: Program, passes: Iterable[str] | None = None, *, contract: bool = True) -> Program:
    """The program after the named passes (by default all), repeated until nothing changes."""
    names = list(PASSES if passes is None else passes)
    for name in names:
        if name not in PASSES:
            raise IsaError(f"there is no pass '{name}'", hint=f"passes: {', '.join(PASSES)}")
    validate(program)
    for _ in range(_ROUNDS):
        before = program
        for name in names:
            run = PASSES[name] if contract or name != "fuse" else fuse_exactly
            program = run(program)
            _inspect(name, program)
        if program is before:
            break
    return program


def _inspect(name: str, program: Program) -> None:
    if flags.is_on("ESHKOL_CHECK"):
        validate(program)
    if flags.dumps(name):
        print(f"; after {name}\n{program}", file=sys.stderr)


__all__ = ["PASSES", "optimize"]
