"""How an instruction is written down, as text and as JSON values.

Comes in: instructions and their operands. Goes out: a line of the text form, or a JSON object. How an operand looks
follows from its `Kind`; no instruction is named here. `program.py` writes whole programs with it, `text.py` and
`jsonform.py` read them back.
"""

from __future__ import annotations

import json
import math
from typing import Any

from eshkol.atlas.isa import SUFFIX_KINDS, Field, Instruction, Kind
from eshkol.atlas.operands import Register

NATIVE_KINDS = frozenset({Kind.COUNT, Kind.FLAG, Kind.COUNTS, Kind.PAIRS})  # JSON has such values itself


def format_operand(f: Field, value: Any) -> str:
    """An operand as text."""
    if f.kind is Kind.FLAG:
        return "true" if value else "false"
    if f.kind is Kind.REAL:
        return repr(value)
    if f.kind is Kind.COUNTS:
        return f"({', '.join(map(str, value))})"
    if f.kind is Kind.PAIRS:
        return "(" + ", ".join(f"({a}, {b})" for a, b in value) + ")"
    return str(value)


def format_instruction(instruction: Instruction) -> str:
    """An instruction as one line of text."""
    suffixes, positional, named = [instruction.op.name], [], []
    for f, value in zip(instruction.op.fields, instruction.operands, strict=True):
        if value is None:
            continue
        if f.kind in SUFFIX_KINDS:
            suffixes.append(str(value))
        elif f.is_named:
            named.append(f"{f.name}={format_operand(f, value)}")
        else:
            if f.kind is Kind.IMMEDIATE:
                suffixes.append(value.ty.name)
            positional.append(format_operand(f, value))
    return f"{'.'.join(suffixes)} {', '.join(positional + named)}".rstrip()


def instruction_to_json(instruction: Instruction) -> dict[str, Any]:
    """An instruction as JSON values: its mnemonic and its operands by name."""
    result: dict[str, Any] = {"op": instruction.op.name}
    for f, value in zip(instruction.op.fields, instruction.operands, strict=True):
        if value is not None:
            result[f.name] = _operand_to_json(f, value)
    return result


def _number(value: int | float) -> int | float | str:
    return value if isinstance(value, int) or math.isfinite(value) else str(value)


def _operand_to_json(f: Field, value: Any) -> Any:
    if type(value) is Register:  # as most are
        return str(value)
    if f.kind is Kind.IMMEDIATE:
        return {"type": value.ty.name, "value": _number(value.value)}
    if f.kind is Kind.REAL:
        return _number(value)
    if f.kind is Kind.TRIPS and isinstance(value, int):
        return value
    if f.kind in (Kind.COUNTS, Kind.PAIRS):
        return json.loads(json.dumps(value))
    return value if f.kind in NATIVE_KINDS else format_operand(f, value)
