"""Which values of a program have a derivative: those that depend on its variables and that its result depends on.

Comes in: a program. Goes out: sets of F64 values and of kinds of memory. Memory is told apart by type alone: what a
list of numbers holds has a derivative if what any list of numbers holds has one. Functions are looked at once for all
their calls.
"""

from __future__ import annotations

from eshkol.calculus.abstract import NotFast
from eshkol.calculus.factors import factors
from eshkol.calculus.ir import F64, Branch, Instruction, Jump, Return, Type, TypedFunction, TypedProgram, TypedValue

WRITES = {"array_new": 1, "array_set": 2, "cell_new": 0}  # the operand that is stored
READS = ("array_get", "cell_value")


def memory_of(item: Instruction) -> Type | None:
    """The memory of numbers that an instruction reads or writes, if it does."""
    if item.operation in READS or item.operation == "array_set":
        kind = item.operands[0].type
    elif item.operation in WRITES:
        kind = item.result.type
    else:
        return None
    return kind if kind.element == F64 else None


class Activity:
    """`values` and `memory` that have derivatives; `functions` whose calls have something to reverse."""

    def __init__(self, program: TypedProgram) -> None:
        self.program = program
        self.varied, self.varied_memory = self._forward()
        self.useful, self.useful_memory = self._backward()
        self.values = self.varied & self.useful
        self.memory = self.varied_memory & self.useful_memory
        self.functions = self._functions()

    def is_active(self, item: Instruction) -> bool:
        """Whether the reverse of an instruction does anything."""
        memory = memory_of(item)
        match item.operation:
            case "array_set":
                return memory in self.memory
            case "array_new" | "cell_new":
                return memory in self.memory and item.operands[WRITES[item.operation]] in self.values
            case "call":
                return item.function in self.functions
        return any(result in self.values for result in item.results)

    def _forward(self) -> tuple[set[TypedValue], set[Type]]:
        varied: set[TypedValue] = set()
        memory: set[Type] = set()
        for param, mark in zip(self.program.main.params, self.program.active, strict=True):
            if mark:
                kind = param.type
                while kind.element is not None and kind.element != F64:
                    kind = kind.element
                if kind == F64:
                    varied.add(param)
                else:
                    memory.add(kind)
        size = -1
        while size != len(varied) + len(memory):
            size = len(varied) + len(memory)
            for function in self.program.functions:
                for block in function.blocks:
                    for item in block.body:
                        self._vary(item, varied, memory)
                    for jump in block.jumps():
                        varied.update(p for p, a in zip(jump.target.params, jump.args, strict=True) if a in varied)
        return varied, memory

    def _vary(self, item: Instruction, varied: set[TypedValue], memory: set[Type]) -> None:
        where = memory_of(item)
        if item.operation == "math":
            found = factors(item.name, len(item.operands))
            if found is None:
                raise NotFast(f"no rule for {item.name}")
            if any(v in varied and f != 0.0 for v, f in zip(item.operands, found, strict=True)):
                varied.add(item.result)
        elif item.operation == "ftoi" and item.operands[0] in varied:  # with the derivative of its number
            raise NotFast("exact of a variable")
        elif item.operation in READS and where in memory:
            varied.add(item.result)
        elif item.operation in WRITES and where is not None and item.operands[WRITES[item.operation]] in varied:
            memory.add(where)
        elif item.function is not None:
            varied.update(p for p, a in zip(item.function.params, item.operands, strict=True) if a in varied)
            for leave in returns(item.function):
                varied.update(r for r, v in zip(item.results, leave, strict=True) if v in varied)

    def _backward(self) -> tuple[set[TypedValue], set[Type]]:
        useful: set[TypedValue] = set()
        memory: set[Type] = set()
        for leave in returns(self.program.main):
            for value in leave:
                kind = value.type
                while kind.element is not None and kind.element != F64:
                    kind = kind.element
                if kind == F64:
                    useful.add(value)
                else:
                    memory.add(kind)
        size = -1
        while size != len(useful) + len(memory):
            size = len(useful) + len(memory)
            for function in self.program.functions:
                for block in reversed(function.blocks):
                    for jump in block.jumps():
                        useful.update(a for p, a in zip(jump.target.params, jump.args, strict=True) if p in useful)
                    for item in reversed(block.body):
                        self._use(item, useful, memory)
        return useful, memory

    def _use(self, item: Instruction, useful: set[TypedValue], memory: set[Type]) -> None:
        where = memory_of(item)
        if item.operation == "math" and item.result in useful:
            found = factors(item.name, len(item.operands))
            assert found is not None
            useful.update(v for v, f in zip(item.operands, found, strict=True) if f != 0.0)
        elif item.operation in READS and where is not None and item.result in useful:
            memory.add(where)
        elif item.operation in WRITES and where in memory:
            useful.add(item.operands[WRITES[item.operation]])
        elif item.function is not None:
            for leave in returns(item.function):
                useful.update(v for r, v in zip(item.results, leave, strict=True) if r in useful)
            useful.update(a for p, a in zip(item.function.params, item.operands, strict=True) if p in useful)

    def _functions(self) -> set[TypedFunction]:
        found: set[TypedFunction] = set()
        size = -1
        while size != len(found):
            size = len(found)
            for function in self.program.functions:
                active = any(p in self.values for block in function.blocks for p in block.params)
                for item in function.instructions():
                    if item.function is not None:
                        active |= item.function in found
                    elif item.operation in WRITES:
                        active |= memory_of(item) in self.memory
                    else:
                        active |= any(result in self.values for result in item.results)
                if active:
                    found.add(function)
        return found


def returns(function: TypedFunction) -> list[list[TypedValue]]:
    """What a function returns, at each place where it does."""
    return [block.end.values for block in function.blocks if isinstance(block.end, Return)]


__all__ = ["Activity", "Branch", "Jump", "memory_of", "returns"]
