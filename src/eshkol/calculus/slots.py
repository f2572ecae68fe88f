"""Variables of a function that is being written become registers.

Comes in: a typed function with the instructions `slot_get` and `slot_set`, which read and write variables by their
names. Goes out: the same function without them: where a variable is read later, blocks have a parameter for it. A
variable that nothing was stored in is nothing: -0.0, zero, false or null.
"""

from __future__ import annotations

from collections.abc import Mapping

from eshkol.calculus.cfg import replace
from eshkol.calculus.ir import F64, I1, I64, NULL, Block, Instruction, Type, TypedFunction, TypedValue, predecessors


def settle(function: TypedFunction, kinds: Mapping[str, Type]) -> None:
    """Make registers of all variables, whose types these are."""
    live = _live(function)
    order = {block: sorted(found) for block, found in live.items()}
    first = function.blocks[0]
    meanings: dict[TypedValue, TypedValue] = {}
    for block in function.blocks:
        given = {name: TypedValue(kinds[name]) for name in order[block]}
        if block is first:
            constants = [_nothing(kinds[name]) for name in given]
            given = {name: item.result for name, item in zip(given, constants, strict=True)}
        else:
            constants = []
            block.params = [*block.params, *given.values()]
        now: dict[str, TypedValue] = given
        body: list[Instruction] = list(constants)
        for item in block.body:
            if item.operation == "slot_get":
                meanings[item.result] = now[item.name]
            elif item.operation == "slot_set":
                now[item.name] = item.operands[0]
            else:
                body.append(item)
        block.body = body
        for jump in block.jumps():
            jump.args = [*jump.args, *(now[name] for name in order[jump.target])]
    replace(function, meanings)


def _nothing(kind: Type) -> Instruction:
    if kind == F64:
        return Instruction("constant", [], [TypedValue(F64)], literal=-0.0)
    if kind == I64:
        return Instruction("constant", [], [TypedValue(I64)], literal=0)
    if kind == I1:
        return Instruction("constant", [], [TypedValue(I1)], literal=False)
    return Instruction("constant", [], [TypedValue(NULL)], literal=None)


def _live(function: TypedFunction) -> dict[Block, set[str]]:
    """Which variables are read, in a block or after it, before they are stored again."""
    reads: dict[Block, set[str]] = {}
    writes: dict[Block, set[str]] = {}
    for block in function.blocks:
        reads[block], writes[block] = set(), set()
        for item in block.body:
            if item.operation == "slot_get" and item.name not in writes[block]:
                reads[block].add(item.name)
            elif item.operation == "slot_set":
                writes[block].add(item.name)
    into = predecessors(function)
    live = {block: set(found) for block, found in reads.items()}
    pending = list(function.blocks)
    while pending:
        block = pending.pop()
        for before, _ in into[block]:
            more = live[block] - writes[before] - live[before]
            if more:
                live[before] |= more
                pending.append(before)
    return live
