"""Which instructions of a program are translated as they are, which are native functions, and which are expanded.

Comes in: a program, and how instructions become macros on the machine. Goes out: the program in instructions that are
translated, and those among them that are macros, by their place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from eshkol.atlas.expand import expand
from eshkol.atlas.isa import Control, Instruction
from eshkol.atlas.program import Program
from eshkol.backends.cpu import macros
from eshkol.backends.cpu.kernels.called import is_called
from eshkol.backends.cpu.kernels.macro import Macro
from eshkol.backends.lanes.scalars import LOWERINGS
from eshkol.llvm.passes import is_plain
from eshkol.llvm.targets import Target


def expansion(
    program: Program, target: Target, lowered: Callable[[Program, int], Macro | None], *, all_of_it: bool = False
) -> tuple[Program, dict[int, Macro]]:
    """The program to be translated, and its macros; with `all_of_it` there are none."""
    plain = is_plain()

    def wanted(i: Instruction) -> bool:
        if i.op.name in LOWERINGS or (plain and is_called(i) and not all_of_it):
            return False
        return all_of_it or macros.lower(i, target) is None

    base = expand(program, wanted)
    left = [index for index, i in enumerate(base.instructions) if i.op.is_extension and i.op.name not in LOWERINGS]
    found = {index: lowered(base, index) for index in left}
    return base, {index: macro for index, macro in found.items() if macro is not None}


def only_together(program: Program, together: Collection[int]) -> bool:
    """Whether lanes have nothing to do but, one after another, what all lanes do together."""
    last = len(program) - 1
    return bool(together) and program.start == 0 and all(
        index in together or (index == last and i.op.control is Control.EXIT)
        for index, i in enumerate(program.instructions)
    )  # fmt: skip
