"""Derivatives of typed programs as native code, ready to run.

Comes in: a `TypedProgram`. Goes out: a `Native`: the code in memory and, with the description of its inputs, a
`FastCode` for `esk_fast_run` (runtime/native/scheme/fast.h). Objects are kept in the cache by the program's text: what
was compiled once is not compiled again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from eshkol.calculus import ir
from eshkol.calculus.emit import SweepModule
from eshkol.codegen.identity import source_key
from eshkol.llvm.identity import machine_key
from eshkol.llvm.linking import CodeMemory
from eshkol.runtime.library import native
from eshkol.support.interrupts import check
from eshkol.support.keys import files_key
from eshkol.support.store import ProgramCache

OK, MISMATCH, FAILED, FULL = range(4)
ARGUMENT, CAPTURED, CAR, CDR, ELEMENT, FIELD, BOX = range(7)
GRADIENT, TANGENTS, DIRECTIONS = range(3)
MAX_LANES = 16


class Step(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class Input(ctypes.Structure):
    _fields_ = (
        ("global", ctypes.c_void_p), ("steps", ctypes.POINTER(Step)), ("step_count", ctypes.c_int64),
        ("descriptor", ctypes.c_char_p), ("expected", ctypes.c_uint64), ("tag", ctypes.c_uint64),
        ("active", ctypes.c_int64),
    )  # fmt: skip


class FastCode(ctypes.Structure):
    _fields_ = (
        ("entry", ctypes.c_void_p), ("inputs", ctypes.POINTER(Input)), ("input_count", ctypes.c_int64),
        ("result", ctypes.c_char_p), ("lanes", ctypes.c_int64), ("forward", ctypes.c_int64),
        ("limit", ctypes.c_int64), ("used", ctypes.c_int64), ("out_words", ctypes.c_int64),
        ("wild", ctypes.c_int64), ("arguments", ctypes.c_int64),
    )  # fmt: skip
    used: int
    arguments: int


@dataclass(frozen=True)
class Where:
    """An input of a program: the way to it, its type, and whether it is a variable; or a guard on the way."""

    steps: Sequence[tuple[int, int]]  # (ARGUMENT, 0), (CAPTURED, 2), …
    descriptor: str  # fast.h
    active: bool = False
    expected: int = 0  # of guards; of v and l: one more than the length, or 0 for any
    tag: int = 0  # of the guard =
    cell: int = 0  # the address of a global variable's cell, where the way begins there


@dataclass
class Native:
    """Compiled code of a derivative."""

    entry: int
    kind: int  # GRADIENT, TANGENTS or DIRECTIONS
    lanes: int
    out_words: int
    code: CodeMemory  # keeps the memory
    _kept: list[Any] = field(default_factory=list)

    def describe(self, inputs: Sequence[Where], result: str = "f", limit: int = 0, arguments: int = 0) -> FastCode:
        """What `esk_fast_run` takes; it lives as long as this object. `arguments`: how many it is for, 0 for any."""
        steps = [(Step * len(w.steps))(*(Step(*s) for s in w.steps)) for w in inputs]
        described = (Input * len(inputs))()
        for k, where in enumerate(inputs):
            described[k] = Input(
                where.cell or None,
                steps[k],
                len(where.steps),
                where.descriptor.encode(),
                where.expected,
                where.tag,
                where.active,
            )
        found = FastCode(
            self.entry, described, len(inputs), result.encode(), self.lanes, self.kind, limit, 0, self.out_words
        )
        found.arguments = arguments
        self._kept += [steps, described, found]
        return found


def compile_gradient(
    program: ir.TypedProgram, code: CodeMemory, cache: ProgramCache | None = None, checkpoint: bool = False
) -> Native:
    """Native code of the gradient of a program with one F64 result."""

    def write() -> SweepModule:
        from eshkol.calculus.reverse import gradient

        return gradient(program, checkpoint)

    entry = _load(f"gradient {checkpoint}", program, write, code, cache)
    return Native(entry, GRADIENT, 1, 1 + len(program.main.params), code)


def compile_forward(
    program: ir.TypedProgram,
    lanes: int,
    code: CodeMemory,
    cache: ProgramCache | None = None,
    directed: bool = False,
    seeds: Mapping[int, int] | None = None,
) -> Native:
    """Native code of the tangents of a program along so many directions at once.

    `seeds` has the first lane of each parameter that is a number, or so many numbers as its `Where` says.
    """

    def write() -> SweepModule:
        from eshkol.calculus.forward import tangents

        return tangents(program, lanes, seeds)

    if not 1 <= lanes <= MAX_LANES:
        raise ValueError(f"lanes are 1 to {MAX_LANES}, not {lanes}")
    entry = _load(f"forward {lanes} {sorted((seeds or {}).items())}", program, write, code, cache)
    return Native(entry, DIRECTIONS if directed else TANGENTS, lanes, len(program.main.results) * (1 + lanes), code)


# ---- objects ---------------------------------------------------------------------------------------------------------


def _load(
    what: str, program: ir.TypedProgram, write: Callable[[], SweepModule], code: CodeMemory, cache: ProgramCache | None
) -> int:
    text = ir.text(program)

    def build() -> bytes:
        from eshkol.llvm.objects import compile_object  # what is in the cache does without it
        from eshkol.llvm.passes import DERIVATIVE
        from eshkol.llvm.targets import host

        module = write()
        check()
        names = "\n".join(module.outside).encode()
        return len(names).to_bytes(8, "little") + names + compile_object(module.text(), host(), DERIVATIVE)

    if cache is None:
        payload = build()
    else:
        parts = {"what": f"fast {what}", "program": text, "source": _source_key(), "target": machine_key()}
        payload = cache.get_or_build(parts, build, "fast")
    size = int.from_bytes(payload[:8], "little")
    names = payload[8 : 8 + size].decode().split("\n") if size else []
    (entry,) = code.load(payload[8 + size :], {name: _address(name) for name in names}, ["main"])
    return entry


@cache
def _address(name: str) -> int:
    """Of a function that compiled code calls: of the C library that the runtime is linked with, or the runtime's."""
    found = ctypes.cast(getattr(native(), name.removeprefix("m.")), ctypes.c_void_p).value
    assert found is not None
    return found


@cache
def _source_key() -> str:
    """What names the sources of what is written here, and the rows of the op table, whose rules it is written by."""
    package = Path(__file__).parents[1]
    return "\n".join([source_key(), files_key([package / "calculus", package / "ops"], (".py",))])
