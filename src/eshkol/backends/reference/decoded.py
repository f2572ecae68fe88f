"""Instructions as the lockstep machine executes them: all that does not change from step to step, worked out once.

Comes in: the instructions of a program. Goes out: a `Decoded` for each, which the program keeps, and for each that was
met the types of its registers a `Typed`.
"""

from __future__ import annotations

from typing import Any

from eshkol.atlas.expand import is_collective
from eshkol.atlas.isa import Control, Effect, Instruction, Kind, Values
from eshkol.atlas.numerics import evaluation
from eshkol.atlas.operands import SPECIAL_TYPES
from eshkol.atlas.program import Program
from eshkol.atlas.types import Type
from eshkol.atlas.typing_rule import resolve_types


class Typed:
    """An instruction whose registers hold known types: what it reads, what it does to that, and what it writes."""

    __slots__ = ("evaluate", "inputs", "outputs", "registers")

    def __init__(self, decoded: Decoded, types: tuple[Type, ...]) -> None:
        written = resolve_types(decoded.instruction, types)  # operands of the wrong type are an IsaError
        self.outputs = [*zip(decoded.writes, written, strict=True)]
        if isinstance(decoded.meaning, Values):
            given = iter(types)
            self.inputs = [(operand, next(given) if is_value else None) for is_value, operand in decoded.values]
            found = [(operand.index, ty) for operand, ty in self.inputs if ty is not None]
            self.registers = found if len(found) == len(self.inputs) else None  # where none is a predicate
            ty = next((ty for _, ty in self.inputs if ty is not None), None) or written[0]
            self.evaluate = evaluation(decoded.instruction, ty, written[0] if written else None)


class Decoded:
    """What does not change about an instruction from step to step, nor from launch to launch."""

    __slots__ = (
        "collective", "computes", "effect", "instruction", "meaning", "next", "predicates", "reads", "typed", "where",
        "writes",
    )  # fmt: skip

    def __init__(self, i: Instruction) -> None:
        op = i.op
        meaning, touched = op.meaning, i.touched
        self.instruction, self.meaning, self.next = i, meaning, op.control is Control.NEXT
        self.collective = bool(op.memory) and is_collective(i)
        self.computes = isinstance(meaning, Values)
        self.effect = meaning.fn if isinstance(meaning, Effect) else None
        self.reads, self.writes = touched.reads, touched.writes
        self.predicates = i.of_kind(Kind.PDEF) if op.places[Kind.PDEF] else []
        self.where = [r.index for r in self.reads]
        self.typed: dict[tuple[Type, ...], Typed] = {}  # by the types of the registers read

    @property
    def values(self) -> list[tuple[bool, Any]]:
        """What goes in, in order, and whether each is a register: else it is a predicate."""
        pairs = zip(self.instruction.op.fields, self.instruction.operands, strict=True)
        return [(f.kind is Kind.USE, v) for f, v in pairs if f.kind in (Kind.USE, Kind.PUSE)]

    @staticmethod
    def of(program: Program) -> list[Decoded]:
        """All instructions of a program, which keeps them: it never changes."""
        found: list[Decoded] | None = program.__dict__.get("_decoded")
        if found is None:
            found = program.__dict__["_decoded"] = [Decoded(i) for i in program.instructions]
        return found

    @staticmethod
    def specials(program: Program) -> list[int]:
        """The special registers that a program reads."""
        found: list[int] | None = program.__dict__.get("_specials")
        if found is None:
            read = {k for decoded in Decoded.of(program) for k in decoded.where}
            found = program.__dict__["_specials"] = sorted(SPECIAL_TYPES.keys() & read)
        return found

    def of_types(self, types: tuple[Type, ...]) -> Typed:
        """The instruction for these types; operands of the wrong type are an IsaError."""
        found = self.typed.get(types)
        if found is None:
            found = self.typed[types] = Typed(self, types)
        return found
