"""Fewer blocks and parameters: what nothing reaches, and what is the same value whoever comes."""

from __future__ import annotations

from eshkol.calculus import ir
from eshkol.calculus.ir import Block, Branch, Return, TypedValue


def trim(function: ir.TypedFunction) -> None:
    """Leave out blocks that nothing reaches, and parameters of blocks that are the same value whoever comes."""
    reached: dict[Block, None] = {}
    stack = [function.blocks[0]]
    while stack:
        block = stack.pop()
        if block not in reached:
            reached[block] = None
            stack.extend(jump.target for jump in block.jumps())
    function.blocks = [block for block in function.blocks if block in reached]
    same: dict[TypedValue, TypedValue] = {}

    def found(value: TypedValue) -> TypedValue:
        while value in same:
            value = same[value]
        return value

    changed = True
    while changed:
        changed = False
        into = ir.predecessors(function)
        for block in function.blocks[1:]:
            for index in reversed(range(len(block.params))):
                param = block.params[index]
                given = {found(jump.args[index]) for _, jump in into[block]} - {param}
                if len(given) == 1:
                    same[param] = given.pop()
                    del block.params[index]
                    for _, jump in into[block]:
                        del jump.args[index]
                    changed = True
    for block in function.blocks:
        for item in block.body:
            item.operands = [found(value) for value in item.operands]
        for jump in block.jumps():
            jump.args = [found(value) for value in jump.args]
        if isinstance(block.end, Branch):
            block.end.condition = found(block.end.condition)
        elif isinstance(block.end, Return):
            block.end.values = [found(value) for value in block.end.values]
