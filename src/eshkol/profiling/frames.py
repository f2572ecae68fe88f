"""Frames of stacks as people read them: return addresses of Scheme and frames of Python, as names and lines.

Comes in: addresses that C took down, with the machines of Scheme that know them; frames of Python. Goes out: `Frame`s,
outermost first.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from eshkol.profiling.native import Kind
from eshkol.runtime.scheme import Machine

PACKAGE = str(Path(__file__).parents[1]) + os.sep
LIBRARY = PACKAGE + "lib" + os.sep
PYTHON = sysconfig.get_path("stdlib") + os.sep
DEEP = 128  # frames of Python, the innermost


class Frame(NamedTuple):
    """A procedure or function at work, and the line that it is at. `path` has the procedures around it, too."""

    name: str
    file: str = ""
    line: int = 0
    path: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """File and line, the file in short."""
        return f"{shown(self.file)}:{self.line}" if self.file else ""

    @property
    def is_own(self) -> bool:
        """Whether it is the user's, and not one of the library's."""
        return bool(self.file) and not self.file.startswith(PACKAGE)


Stack = tuple[Frame, ...]  # outermost first
LEAVES = {
    Kind.PYTHON: Frame("(Python)"), Kind.HOST: Frame("(Eshkol: compiling, conversions)"),
    Kind.COLLECTOR: Frame("(collector)"),
}  # fmt: skip


def shown(file: str) -> str:
    """A file as it is shortest: from here, from the library, or from Python's own."""
    folder = next((f for f in (LIBRARY, PYTHON, os.getcwd() + os.sep) if file.startswith(f)), "")
    return file.removeprefix(folder)


class SchemeFrames:
    """The frames of return addresses, each looked up once."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._machines = [m for m in machines if m.context]
        self._known: dict[int, Frame | None] = {}

    def frame(self, address: int) -> Frame | None:
        """What returns to an address; None where that is no code of a program.

        Nor is what has neither a line nor a procedure: what a slow path goes through on its way to the runtime.
        """
        if address not in self._known:
            found = next((s for m in self._machines for s in m.sites([address])), None)
            told = found is not None and (found.line > 0 or bool(found.procedures))
            self._known[address] = _named(found) if told else None
        return self._known[address]

    def stack(self, addresses: Sequence[int], kind: int = Kind.SCHEME) -> Stack:
        """The stack of addresses, innermost first; the same place again and again is one frame."""
        found: list[Frame] = []
        for address in reversed(addresses):
            frame = self.frame(address)
            if frame is not None and (not found or found[-1] != frame):
                found.append(frame)
        leaf = LEAVES.get(kind)
        return tuple(found) if leaf is None else (*found, leaf)


def _named(site: Any) -> Frame:
    path = tuple(site.procedures)
    if site.file.startswith(LIBRARY):
        path = path[:1]
    name = "/".join(path) or ("(program)" if site.unit == "program" else f"({site.unit or 'top level'})")
    return Frame(name, site.file, site.line, path or (name,))


def python_stack(frame: FrameType | None) -> tuple[tuple[CodeType, int], ...]:
    """The frames of users' code around a frame of Python, innermost first, as they are taken down."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < DEEP:
        code = frame.f_code
        if not code.co_filename.startswith((PACKAGE, "<frozen")):
            found.append((code, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(found)


def python_frames(taken: Iterable[tuple[CodeType, int]]) -> Stack:
    """The same as frames, outermost first."""
    return tuple(Frame(code.co_qualname, code.co_filename, line, (code.co_qualname,)) for code, line in taken)[::-1]
