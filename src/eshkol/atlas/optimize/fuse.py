"""Instruction fusion: a producer and its only consumer become one extension instruction.

All fusions but one keep every bit, because the extension means exactly the two steps. The one is FMA and FMS
from a float product and sum, which rounds once instead of twice; `fuse_exactly` leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable

from eshkol.atlas.flow import Flow, slots_read, slots_written
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Immediate, Register
from eshkol.atlas.optimize.constants import Known, known_before
from eshkol.atlas.program import Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.atlas.validate import Analysis, validate

# (producer, consumer) → the fused instruction, or None where the operands do not fit
Rule = Callable[[Instruction, Instruction], Instruction | None]


def _other(consumer: Instruction, value: Register) -> Register | None:
    """The operand of a commutative consumer that is not `value`, if just one is."""
    operands: tuple[Register, Register] = (consumer.lhs, consumer.rhs)
    if operands.count(value) != 1:
        return None
    return operands[1 - operands.index(value)]


def _fma(product: Instruction, total: Instruction) -> Instruction | None:
    addend = _other(total, product.dst)
    if addend is None:
        return None
    return ROWS["FMA"](total.dst, product.lhs, product.rhs, addend, span=total.span)


def _fms(product: Instruction, difference: Instruction) -> Instruction | None:
    if difference.lhs != product.dst or difference.rhs == product.dst:
        return None
    return ROWS["FMS"](difference.dst, product.lhs, product.rhs, difference.rhs, span=difference.span)


def _fms_from_neg(negation: Instruction, fma: Instruction) -> Instruction | None:
    if fma.c != negation.dst or negation.dst in (fma.a, fma.b):
        return None
    return ROWS["FMS"](fma.dst, fma.a, fma.b, negation.src, span=fma.span)


def _clamp(raised: Instruction, capped: Instruction) -> Instruction | None:
    if capped.lhs != raised.dst or capped.rhs == raised.dst:
        return None
    return ROWS["CLAMP"](capped.dst, raised.lhs, raised.rhs, capped.rhs, span=capped.span)


def _rsqrt(root: Instruction, reciprocal: Instruction) -> Instruction | None:
    return ROWS["RSQRT"](reciprocal.dst, root.src, span=reciprocal.span)


def _swish(gate: Instruction, product: Instruction) -> Instruction | None:
    if (product.lhs, product.rhs) != (gate.src, gate.dst):  # as SWISH multiplies
        return None
    return ROWS["SWISH"](product.dst, gate.src, span=product.span)


def _lerp(span: Instruction, fma: Instruction) -> Instruction | None:
    if fma.a != span.dst or span.dst in (fma.b, fma.c) or fma.c != span.rhs:
        return None
    return ROWS["LERP"](fma.dst, fma.c, span.lhs, fma.b, span=fma.span)


EXACT_RULES: dict[tuple[str, str], Rule] = {
    ("NEG", "FMA"): _fms_from_neg,
    ("MAX", "MIN"): _clamp,
    ("SQRT", "RCP"): _rsqrt,
    ("SIGMOID", "MUL"): _swish,
    ("SUB", "FMA"): _lerp,
}
CONTRACTION_RULES: dict[tuple[str, str], Rule] = {("MUL", "ADD"): _fma, ("MUL", "SUB"): _fms}


def fuse(program: Program) -> Program:
    """Every fusion, FMA of floats included."""
    return _fuse(program, contract=True)


def fuse_exactly(program: Program) -> Program:
    """Only the fusions that keep every bit (FMA of integers among them)."""
    return _fuse(program, contract=False)


def _fuse(program: Program, contract: bool) -> Program:
    program = _reciprocals(program)
    while changes := _fusions(program, contract):
        program = program.with_changes(changes)
    return program


def _reciprocals(program: Program) -> Program:
    """Float division of a constant 1 is RCP."""
    analysis = validate(program)
    changes: dict[int, list[Instruction]] = {}
    for index, known in known_before(program).items():
        if program.instructions[index].op is ROWS["DIV"] and analysis.certain(index):
            division = program.instructions[index]
            if _is_float_one(known, division.lhs):
                changes[index] = [ROWS["RCP"](division.dst, division.rhs, span=division.span)]
    return program.with_changes(changes)


def _is_float_one(known: Known, register: Register) -> bool:
    constant = known.get(register)
    return isinstance(constant, Immediate) and constant.ty.is_float and constant.value == 1


def _fusions(program: Program, contract: bool) -> dict[int, list[Instruction]]:
    """Pairs that can be fused at once: no instruction takes part in two."""
    analysis = validate(program)
    changes: dict[int, list[Instruction]] = {}
    for index, producer in enumerate(program.instructions):
        if index in changes or not analysis.reachable(index) or not analysis.certain(index):
            continue
        consumer = _only_reader(analysis.flow, index)
        if consumer is None or consumer in changes:
            continue
        fused = _apply(producer, program.instructions[consumer], _value_type(analysis, index, producer), contract)
        if fused is not None and analysis.certain(consumer):
            changes[index], changes[consumer] = [], [fused]
    return changes


def _value_type(analysis: Analysis, index: int, producer: Instruction) -> Type | None:
    reads = producer.reads()
    return analysis.type_before(index, reads[0]) if reads else None


def _apply(producer: Instruction, consumer: Instruction, ty: Type | None, contract: bool) -> Instruction | None:
    key = (producer.op.name, consumer.op.name)
    rule = EXACT_RULES.get(key)
    if rule is None and ty is not None and (contract or ty.is_integer):
        rule = CONTRACTION_RULES.get(key)
    fused = rule(producer, consumer) if rule is not None else None
    return fused if fused is not None and ty in fused.op.types else None


def _only_reader(flow: Flow, index: int) -> int | None:
    """The one instruction that reads what `index` computes, if fusing the two there changes nothing else.

    It must follow in the same basic block, with the producer's operands untouched in between, and nothing may
    read the value afterwards.
    """
    producer = flow.program.instructions[index]
    written = producer.writes()
    if len(written) != 1:
        return None
    value, inputs = written[0], set(slots_read(producer))
    if value in inputs:
        return None  # the operands would be gone by the time of the consumer
    for place in range(index + 1, len(flow.program)):
        if place in flow.block_starts:
            return None
        instruction = flow.program.instructions[place]
        changed = set(slots_written(instruction))
        if value in slots_read(instruction):
            gone = value in changed or not flow.any_live_after(place, [value])
            return place if gone else None
        if value in changed or inputs & changed:
            return None
    return None
