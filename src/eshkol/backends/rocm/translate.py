"""A program as a code object of AMD's GPUs: a lane's code as LLVM text, a kernel around it, and what LLVM makes of it.

Comes in: a program in instructions that have a lowering. Goes out: an `AmdModule`, and of that an object, which lld
makes into the shared object that HIP loads (`linked`). As on NVIDIA's GPUs the plain module checks every access, and
the fast one relies on what the host finds to hold before a launch. What is the same on both stands in
`lanes/threads.py`.

A thread's own memory has an address space of its own here (5): slots lie there, and are pointed to as by anyone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from eshkol.atlas.expand import expand
from eshkol.atlas.program import LANES, Program
from eshkol.atlas.validate import validate
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.promises import Promises
from eshkol.backends.lanes.scalars import LOWERINGS
from eshkol.backends.lanes.threads import GLOBAL_SPACE, KERNEL, SHARED_SPACE, ThreadLane, functions_of, module_text
from eshkol.errors import BackendError, BackendUnavailable
from eshkol.llvm import objects
from eshkol.llvm.passes import for_kernels
from eshkol.llvm.targets import Target
from eshkol.llvm.text import FunctionText, pointer
from eshkol.support.store import ProgramCache

TRIPLE = "amdgcn-amd-amdhsa"
CONSTANT_SPACE, PRIVATE_SPACE = 4, 5
ARCHITECTURES = ("gfx90a", "gfx942", "gfx1100")  # that code is tested for; others are LLVM's to know
MOST_LANES = 1024  # of a block
LEAST_WAVE = 32  # threads that exchange registers: 64 on gfx9, of which each half is by itself here
LINKERS = ("/opt/rocm/llvm/bin/ld.lld", "ld.lld", "ld.lld-19", "ld.lld-18", "ld.lld-17", "ld.lld-16", "ld.lld-14")
LINKER_HINT = "install ROCm's LLVM, or lld (apt install lld)"
# Version 4 of the code object: all drivers and linkers of recent years read it.
FLAGS = '!llvm.module.flags = !{!50}\n!50 = !{i32 1, !"amdhsa_code_object_version", i32 400}'
_SLOT = re.compile(r"^  (%\S+) = alloca ([^\n]+)$", re.MULTILINE)
_INDICES = {"lane": "workitem", "block": "workgroup"}
_DECLARED = [f"declare i32 @llvm.amdgcn.{name}.id.x()" for name in _INDICES.values()]


class AmdLane(ThreadLane):
    """Writes the function of one lane."""

    exchanging: ClassVar[int] = LEAST_WAVE

    def meet(self) -> None:
        self.e.do('fence syncscope("workgroup") release')
        self.e.call("void", "llvm.amdgcn.s.barrier")
        self.e.do('fence syncscope("workgroup") acquire')

    def exchanged(self, value: str, mask: int) -> str:
        low = self.e.call("i32", "llvm.amdgcn.mbcnt.lo", ("i32", "-1"), ("i32", "0"))
        own = self.e.call("i32", "llvm.amdgcn.mbcnt.hi", ("i32", "-1"), ("i32", low))
        place = self.e.op(f"shl i32 {self.e.op(f'xor i32 {own}, {mask}')}, 2")
        return self.e.call("i32", "llvm.amdgcn.ds.bpermute", ("i32", place), ("i32", value))


@cache
def target(architecture: str) -> Target:
    """LLVM's target for an architecture, as HIP names it: "gfx90a", "gfx90a:sramecc+:xnack-"."""
    name, *modes = architecture.split(":")
    features = ",".join(f"{mode[-1]}{mode[:-1]}" for mode in modes)
    return Target(TRIPLE, name, features)


@dataclass(frozen=True)
class AmdModule:
    """LLVM text of a program with what the host must know to launch it."""

    text: str
    layout: Layout


def in_base_instructions(program: Program) -> Program:
    """The program with every instruction expanded that has no lowering."""
    return expand(program, lambda i: i.op.name not in LOWERINGS)


def translate(program: Program, for_target: Target, relied_on: Promises | None = None) -> AmdModule:
    """The LLVM module of a program that contains only instructions with a lowering."""
    layout = Layout.of(program)
    known = None if relied_on is None else relied_on.known
    lane = AmdLane(validate(program), layout, known, shifts_bf16=for_target.shifts_bf16)
    most = int(program.metadata.get(LANES) or MOST_LANES)
    functions, declared = functions_of(lane)
    text = module_text(functions, _kernel(layout, most), [*declared, *_DECLARED])
    # A call would need memory of the thread's own: what notes a fault is put where it is called.
    text = text.replace("cold noinline nounwind {", "alwaysinline nounwind {")
    return AmdModule(f"{_SLOT.sub(_own_slot, text)}\n{FLAGS}\n", layout)


def _own_slot(found: re.Match[str]) -> str:
    """A slot in the thread's own memory, and the pointer to it that all code uses."""
    name, kind = found[1], found[2]
    pointed = f"addrspacecast {pointer(PRIVATE_SPACE)} {name}.own to ptr"
    return f"  {name}.own = alloca {kind}, addrspace({PRIVATE_SPACE})\n  {name} = {pointed}"


def _kernel(layout: Layout, most: int) -> str:
    """The function that a thread begins with: it finds out which lane it is. A block has so many of them at most."""
    k = FunctionText()
    found = {}
    for what, name in _INDICES.items():
        found[what] = k.op(f"zext i32 {k.op(f'call i32 @llvm.amdgcn.{name}.id.x()')} to i64")
    args = k.op(f"addrspacecast {pointer(GLOBAL_SPACE)} %status to ptr")
    record = k.op(f"addrspacecast {pointer(CONSTANT_SPACE)} %given to ptr")
    shared = k.op(f"addrspacecast {pointer(SHARED_SPACE)} @shared to ptr")
    size = "1"
    for axis in range(3):
        place = k.offset("%given", words.BLOCK + axis, "i64", CONSTANT_SPACE)
        size = k.op(f"mul nuw nsw i64 {size}, {k.load('i64', place, ', align 8, !invariant.load !0', CONSTANT_SPACE)}")
    before = k.op(f"mul nuw nsw i64 {found['block']}, {size}")
    gid = k.op(f"add nuw nsw i64 {before}, {found['lane']}")
    given = f"ptr {args}, ptr {record}, ptr {shared}, i64 {gid}, i64 {found['block']}, i64 {found['lane']}"
    k.op(f"call i32 @lane({given})")
    parameter = f"{pointer(CONSTANT_SPACE)} byref([{layout.words} x i64]) align 8 %given"
    told = f'"amdgpu-flat-work-group-size"="1,{most}"'
    return k.defined(
        f"amdgpu_kernel void @{KERNEL}({pointer(GLOBAL_SPACE)} %status, {parameter}) nounwind {told}", ["  ret void"]
    )


def assembly(module: AmdModule, for_target: Target) -> str:
    """The module as LLVM's assembler text, with the kernel's descriptor."""
    return objects.assembly(module.text, for_target, for_kernels())


def compiled(module: AmdModule, for_target: Target) -> bytes:
    """The module as an object."""
    return objects.compile_object(module.text, for_target, for_kernels())


def linker() -> str | None:
    """The lld that is installed; None where none is."""
    return next((found for name in LINKERS if (found := shutil.which(name))), None)


def linked(code: bytes) -> bytes:
    """An object as the shared object that HIP loads."""
    found = linker()
    if found is None:
        raise BackendUnavailable("no lld is installed, which makes code objects", hint=LINKER_HINT)
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "kernel.o", Path(folder) / "kernel.co"
        source.write_bytes(code)
        ran = subprocess.run(
            [found, "-shared", "--no-undefined", "-o", str(result), str(source)], capture_output=True, check=False
        )
        if ran.returncode:
            raise BackendError(f"lld refuses a code object: {ran.stderr.decode(errors='replace').strip()[:2000]}")
        return result.read_bytes()


def code_object(cache: ProgramCache, module: AmdModule, for_target: Target, label: str) -> bytes:
    """What HIP loads, from the cache or made now and kept there."""
    parts = {"backend": "rocm", "form": "code object", **for_target.key, "pipeline": repr(for_kernels()),
             "module": module.text}  # fmt: skip
    return cache.get_or_build(parts, lambda: linked(compiled(module, for_target)), label)
