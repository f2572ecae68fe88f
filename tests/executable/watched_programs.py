"""Programs whose compiled Scheme code tells ThreadSanitizer what it reads and writes.

Comes in: a program. Goes out: an executable of it, with the C runtime compiled by `-fsanitize=thread` and the program's
LLVM text with a call of the sanitizer before each load and each store. LLVM has a pass for that, which its binding does
not offer. What is on the frame of a function is not told, and what is loaded or stored atomically is not either: a race
between such an access and a plain one is seen at the plain one only if that is told, so both must be atomic.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from eshkol.executable import build
from eshkol.executable.build import Builder, Options
from eshkol.executable.text import ProgramText, program_text
from eshkol.lang.core import Unit
from eshkol.lang.files import FileSource
from eshkol.session import Session, on_session

FLAGS = ("-O1", "-g", "-fsanitize=thread", "-Wno-tsan")
SETTINGS = {"ESHKOL_HEAP": "1G"}
_ACCESS = re.compile(
    r"^  (?:%\S+ = (?P<load>load) (?P<type>[^,]+)|(?P<store>store) (?P<stored>\S+) .+), ptr (?P<place>%[\w.\"-]+|@\S+?)"
    r"(?:, (?:align|!).*)?$"
)
_ON_FRAME = re.compile(r"^  (%\S+) = alloca ")
_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "double": 8, "ptr": 8, "%value": 16}
_HEADER = "\n".join(
    f"declare void @__tsan_{what}{size}(ptr)" for what in ("read", "write") for size in (1, 2, 4, 8, 16)
)


def told(text: str) -> str:
    """LLVM text in which each load and store is told before it happens."""
    lines, on_frame = [], set[str]()
    for line in text.splitlines():
        if line.startswith("define"):
            on_frame.clear()
        if frame := _ON_FRAME.match(line):
            on_frame.add(frame[1])
        access = _ACCESS.match(line)
        if access and access["place"] not in on_frame:
            size = _BYTES.get(access["type"] or access["stored"])
            what = "read" if access["load"] else "write"
            if size:
                lines.append(f"  call void @__tsan_{what}{size}(ptr {access['place']})")
        lines.append(line)
    return "\n".join([*lines, _HEADER, ""])


def build_watched(path: Path, text: str, monkeypatch: Any) -> Path:
    """The executable of a program."""
    path.write_text(text, encoding="utf-8")
    made = path.with_suffix("")

    def watched(unit: Unit) -> ProgramText:
        program = program_text(unit)
        return replace(program, text=told(program.text))

    def work(session: Session) -> None:
        source = FileSource(path.name, text, path)
        find = lambda name: source if name == str(path) else session.source(name)
        options = Options(flags=FLAGS)
        Builder(session.world, session.cache, find, session.evaluate_unit, options).executable(
            session.world.program(source), made
        )

    with monkeypatch.context() as patched:
        patched.setattr(build, "program_text", watched)
        on_session(work, [])
    return made
