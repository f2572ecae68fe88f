"""A mutant in place: functions that are imported already are given the changed code.

Comes in: a mutant of a module that this process has imported. Goes out: whether all that the change touches was found
and changed. Whoever has taken a function by name has the changed one too, since the function stays and only its code is
another. What is made while a module is imported (constants, defaults, classes, tables) cannot be changed so, and the
caller imports the changed module in a process of its own.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType

from mutation.mutants import Mutant, mutated


def swap(mutant: Mutant) -> bool:
    """Change a module that is imported; False where the change is none of code that runs later, and nothing is done."""
    module = sys.modules[mutant.module]
    path = str(module.__file__)
    with open(path, encoding="utf-8") as file:
        source = file.read()
    return changed(
        compile(source, path, "exec", dont_inherit=True),
        compile(mutated(source, mutant), path, "exec", dont_inherit=True),
        path,
    )


def renew(modules: Iterable[str]) -> int:
    """Give functions of modules the code that their sources make: nothing changes; how many functions got it."""
    codes = {}
    for module in modules:
        path = str(sys.modules[module].__file__)
        with open(path, encoding="utf-8") as file:
            codes |= {(path, code): code for code in inner(compile(file.read(), path, "exec", dont_inherit=True))}
    found = 0
    for function in _functions():
        code = codes.get((function.__code__.co_filename, function.__code__))
        if code is not None:
            function.__code__ = code
            found += 1
    return found


def changed(before: CodeType, after: CodeType, path: str) -> bool:
    """Give the functions of `path` that were made of `before` the code that stands at the same place of `after`."""
    pairs = dict(differing(before, after))
    if not pairs or not all(code.co_flags & inspect.CO_OPTIMIZED for code in pairs):
        return False  # a module or class does something else while it is imported, or nothing differs
    functions = [f for f in _functions() if f.__code__.co_filename == path and f.__code__ in pairs]
    found = {function.__code__ for function in functions}
    if not _all_within(before, pairs.keys(), found):
        return False
    if any(function.__code__.co_freevars != pairs[function.__code__].co_freevars for function in functions):
        return False  # a function cannot be given another number of variables from around it
    for function in functions:
        function.__code__ = pairs[function.__code__]
    return True


def differing(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The innermost codes that do something else, each with what it does now, and those around them."""
    if before == after:
        return
    inside = []
    parts, new = _parts(before), _parts(after)
    alike = [part.co_name for part in parts] == [part.co_name for part in new]
    if alike:
        for one, other in zip(parts, new, strict=True):
            inside += differing(one, other)
    yield from inside
    other_here = not alike or _own(before) != _own(after)
    if other_here or (inside and before.co_flags & inspect.CO_OPTIMIZED):
        yield before, after


def inner(code: CodeType) -> Iterator[CodeType]:
    """A code and all within it."""
    yield code
    for part in _parts(code):
        yield from inner(part)


def _all_within(code: CodeType, wanted: object, found: set[CodeType]) -> bool:
    """Whether each code that differs belongs to a function that was found, or to one that is made by such a one."""
    if code in found:
        return True
    if code.co_flags & inspect.CO_OPTIMIZED and code in wanted:  # type: ignore[operator]
        return False
    return all(_all_within(part, wanted, found) for part in _parts(code))


def _parts(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """What a code does, without those within it; constants as text, since 1, 1.0 and True are equal."""
    constants = [repr(x) for x in code.co_consts if not isinstance(x, CodeType)]
    return (
        code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_kwonlyargcount, code.co_exceptiontable,
    )  # fmt: skip


_remembered: list[FunctionType] = []


def remember() -> None:
    """Note which functions there are, before the garbage collector is told to forget them."""
    _remembered[:] = _live()


def _functions() -> list[FunctionType]:
    return _remembered or _live()


def _live() -> list[FunctionType]:
    """All functions there are, whatever wraps or keeps them."""
    return [x for x in gc.get_objects() if type(x) is FunctionType]
