"""Inputs of a program reach the functions that use them: as further parameters.

Comes in: functions as the specializer writes them, where any may use main's parameters (global variables and constants
that it comes upon). Goes out: the same functions, each of which uses what it has.
"""

from __future__ import annotations

from eshkol.calculus.ir import Branch, Return, TypedFunction, TypedValue


def lift(functions: list[TypedFunction]) -> None:
    """Pass main's parameters on; the first function is main."""
    main, *others = functions
    inputs = set(main.params)
    needs = {function: [v for v in _used(function) if v in inputs] for function in others}
    size = -1
    while size != sum(map(len, needs.values())):
        size = sum(map(len, needs.values()))
        for function in others:
            for item in function.instructions():
                if item.function is not None:
                    needs[function].extend(v for v in needs[item.function] if v not in needs[function])
    own = {function: {v: TypedValue(v.type, v.name) for v in needs[function]} for function in others}
    for function in functions:
        names = own.get(function, {})
        for item in function.instructions():
            if item.function is not None:
                item.operands.extend(needs[item.function])
        if names:
            _rename(function, names)
            function.params.extend(names.values())


def _used(function: TypedFunction) -> dict[TypedValue, None]:
    """Every value that is mentioned, once."""
    found: dict[TypedValue, None] = {}
    for block in function.blocks:
        for item in block.body:
            found.update(dict.fromkeys(item.operands))
        for jump in block.jumps():
            found.update(dict.fromkeys(jump.args))
        match block.end:
            case Branch(condition=condition):
                found[condition] = None
            case Return(values=values):
                found.update(dict.fromkeys(values))
    return found


def _rename(function: TypedFunction, names: dict[TypedValue, TypedValue]) -> None:
    for block in function.blocks:
        for item in block.body:
            item.operands = [names.get(v, v) for v in item.operands]
        for jump in block.jumps():
            jump.args = [names.get(v, v) for v in jump.args]
        match block.end:
            case Branch() as branch:
                branch.condition = names.get(branch.condition, branch.condition)
            case Return() as leave:
                leave.values = [names.get(v, v) for v in leave.values]
