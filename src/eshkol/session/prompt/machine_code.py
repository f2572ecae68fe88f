"""The machine code of a procedure, for people: what `,disassemble` shows.

Comes in: a procedure. Goes out: its name and size, and the instructions that the processor runs for it, with the names
of what they call. The object that was loaded is read by `objdump`, which comes with the system's compiler; LLVM's own
reader of instructions is not part of llvmlite.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from eshkol.errors import LanguageError
from eshkol.runtime.scheme import Root, Value
from eshkol.runtime.scheme_table import layout
from eshkol.session import Session

READERS = ("objdump", "llvm-objdump")
LONGEST = 400  # lines
_LINE = re.compile(r"\s+[0-9a-f]+:\t(?:[0-9a-f]{2} )*\s*(.*)")
_RELOCATED = re.compile(r"\s+[0-9a-f]+:\s+R_\S+\s+(\S+)")


def machine_code(session: Session, value: Value) -> list[str]:
    """The instructions of a procedure."""
    machine = session.machine
    if value.tag != machine.tags["PROCEDURE"]:
        raise LanguageError(
            f"{machine.written(value)[:80]} is no procedure", hint=",disassemble PROCEDURE shows its code"
        )
    root = Root(machine, value)
    entry = ctypes.c_uint64.from_address(root.get().bits + layout()["Closure.entry"]).value
    found = session.engine.code_at(entry)
    if found is None:
        said = machine.written(root.get())
        raise LanguageError(
            f"{said} is no compiled code of Eshkol's",
            hint="it is a primitive of the runtime, written in C; or it has not been called yet",
        )
    reader = next(filter(None, map(shutil.which, READERS)), None)
    if reader is None:
        raise LanguageError(
            "objdump is not installed, which reads machine code", hint="it is part of binutils, and of LLVM"
        )
    lines: list[str] = []
    todo, seen = [found.name], {found.name}
    while todo:  # what begins a procedure may only look at the arguments, and jump to the rest
        name = todo.pop()
        offset, size = found.places[name]
        lines += [f"; {name}: {size} bytes", *(code := _instructions(reader, found.object, offset, size))]
        family = re.escape(name.partition("~")[0])
        for other in re.findall(rf"<({family}~\d+)>", "\n".join(code)):
            if other not in seen and other in found.places:
                seen.add(other)
                todo.append(other)
    rest = len(lines) - LONGEST
    return lines if rest <= 0 else [*lines[:LONGEST], f"; and {rest} more lines"]


def _instructions(reader: str, code: bytes, offset: int, size: int) -> list[str]:
    among = f"--start-address={offset}", f"--stop-address={offset + size}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "unit.o"
        file.write_bytes(code)
        said = subprocess.run(
            [reader, "-d", "-r", "--no-show-raw-insn", *among, str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
    if said.returncode:
        raise LanguageError(f"objdump does not understand the code: {said.stderr.strip()}")
    lines: list[str] = []
    for line in said.stdout.splitlines():
        relocated = _RELOCATED.match(line)
        if relocated and lines:
            lines[-1] += f"    ; {relocated[1]}"
        elif instruction := _LINE.match(line):
            lines.append(f"  {line.strip().partition(':')[0]:>6}  {instruction[1].expandtabs(8)}")
    return lines
