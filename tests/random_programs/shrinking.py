"""The smallest program that still fails: entries that it does not need are left out, one after another."""

from __future__ import annotations

from dataclasses import replace

from random_programs.drawing import magnitude
from random_programs.program import Entry, Known, Leaf, Program, Step, alone
from random_programs.trying import Failure, complaint

MOST = 300  # tries


def valued(program: Program) -> list[Known]:
    """The values of a program by the oracle."""
    values: list[Known] = []
    for entry in program.entries:
        if isinstance(entry, Leaf):
            values.append(Known(entry.array, True, magnitude(entry.array)))
        else:
            found = alone(entry, [values[k].array for k in entry.args])
            size = max([magnitude(found), *(values[k].size_ for k in entry.args)])
            values.append(Known(found, entry.exact, size))
    return values


def without(program: Program, gone: int, instead: int | None) -> Program | None:
    """The program without an entry; what took it takes another. None if something needs it."""
    entries: list[Entry] = []
    for k, entry in enumerate(program.entries):
        if k == gone:
            continue
        if isinstance(entry, Step):
            if gone in entry.args and instead is None:
                return None
            args = [instead if a == gone and instead is not None else a for a in entry.args]
            entry = replace(entry, args=tuple(a - (a > gone) for a in args))
        entries.append(entry)
    return Program(entries)


def smallest(failure: Failure) -> Failure:
    """The failure with as small a program as is easily found."""
    tries = 0

    def fails(program: Program) -> str:
        nonlocal tries
        tries += 1
        try:
            values = valued(program)
        except Exception:  # a step does not fit any more
            return ""
        return complaint(program, values, failure.way, failure.way_seed, failure.backend)[0]

    program, said, changed = failure.program, failure.error, True
    while changed and tries < MOST:
        changed = False
        for k in reversed(range(len(program.entries))):
            entry = program.entries[k]
            options = [None, *(entry.args if isinstance(entry, Step) else ())]
            for instead in options:
                less = without(program, k, instead)
                if less is not None and less.steps and (found := fails(less)):
                    program, said, changed = less, found, True
                    break
            if changed:
                break
    return replace(failure, program=program, error=said)
