"""A program as PTX: one lane's code as LLVM text, a kernel around it, and what LLVM makes of that.

Comes in: a program in instructions that have a lowering. Goes out: a `CudaModule`, PTX with what the host must know to
launch it. The plain module checks every access. Where something is known of what registers can hold
(`lanes/ranges.py`), there is a fast one without the checks that then hold, and the host decides before a launch whether
they do (`lanes/promises.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from eshkol.atlas.expand import expand
from eshkol.atlas.program import LANES, VECTORS, Program
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.cuda.lane import BUFFER_ALIGNMENT, TOLD_ALIGNMENT, CudaLane
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.promises import Promises
from eshkol.backends.lanes.scalars import LOWERINGS
from eshkol.backends.lanes.threads import GLOBAL_SPACE, KERNEL, SHARED_SPACE, functions_of, module_text
from eshkol.llvm import objects
from eshkol.llvm.passes import for_kernels
from eshkol.llvm.targets import Target
from eshkol.llvm.text import FunctionText, pointer
from eshkol.support.store import ProgramCache

TRIPLE = "nvptx64-nvidia-cuda"
PLAIN = (7, 5)  # the oldest compute capability: from here on every type has atomics, and lanes wait by themselves
# Compute capability from which on → version of PTX that LLVM writes for it. A driver reads all versions up to its own.
_PTX = {(12, 0): 87, (10, 0): 86, (9, 0): 80, (8, 9): 78, (8, 6): 71, (8, 0): 70, (7, 5): 64}
_NEWEST = {9: "a"}  # major version whose own instructions have a target of their own
SHORT = frozenset({Type.BF16, Type.F16})
OWN = {  # instructions that GPUs have something for, of these types: see `lane.py`
    "EXP": frozenset({Type.F32}), "EXP2": frozenset({Type.F32}), "SIGMOID": SHORT,
}  # fmt: skip
_SPECIAL = {"lane": "tid", "size": "ntid", "block": "ctaid"}


@cache
def target(capability: tuple[int, int] = PLAIN, least: int = 0) -> Target:
    """LLVM's target for GPUs of a compute capability, in no older version of PTX than is asked for."""
    major, minor = max((c for c in _PTX if c <= capability), default=PLAIN)
    return Target(TRIPLE, f"sm_{major}{minor}{_NEWEST.get(major, '')}", f"+ptx{max(_PTX[major, minor], least)}")


@dataclass(frozen=True)
class CudaModule:
    """LLVM text of a program with what the host must know to launch it."""

    text: str
    layout: Layout


def in_base_instructions(program: Program) -> Program:
    """The program with every instruction expanded that has no lowering, on a GPU or at all."""
    analysis = validate(program)
    own = {
        id(i)
        for index, i in enumerate(program.instructions)
        if i.op.name in OWN and all(analysis.type_before(index, r) in OWN[i.op.name] for r in i.reads())
    }
    return expand(program, lambda i: i.op.name not in LOWERINGS and id(i) not in own)


def translate(program: Program, for_target: Target, relied_on: Promises | None = None) -> CudaModule:
    """The LLVM module of a program that contains only instructions with a lowering."""
    layout = Layout.of(program)
    known = None if relied_on is None else relied_on.known
    lane = CudaLane(validate(program), layout, known, shifts_bf16=for_target.shifts_bf16)
    lane.buffer_alignment = BUFFER_ALIGNMENT if VECTORS in program.metadata else TOLD_ALIGNMENT
    kernel = _kernel(layout, program.metadata.get(LANES))
    functions, declared = functions_of(lane)
    return CudaModule(module_of(functions, kernel, declared), layout)


def module_of(functions: Sequence[str], kernel: str, declared: Sequence[str]) -> str:
    """The text of a module: the functions of lanes with those that they call, a kernel, and what is declared."""
    intrinsics = [f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}.x()" for name in _SPECIAL.values()]
    return module_text(functions, kernel, [*declared, *intrinsics])


def places_of_lanes(k: FunctionText) -> dict[str, str]:
    """Which thread this is: of its block, of how many, and which block."""
    found = {}
    for what, register in _SPECIAL.items():
        short = k.op(f"call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
        found[what] = k.op(f"zext i32 {short} to i64")
    return found


def memory_of_lanes(k: FunctionText) -> tuple[str, str]:
    """Pointers to the status, and to what a block shares, as functions of lanes take them."""
    status = k.op(f"addrspacecast {pointer(GLOBAL_SPACE)} %status to ptr")
    return status, k.op(f"addrspacecast {pointer(SHARED_SPACE)} @shared to ptr")


def kernel_function(k: FunctionText, words: int, most: int | None) -> str:
    """The function of a kernel whose record has so many words; `most` is how many threads a block has at most."""
    record = f"ptr byval([{words} x i64]) align 8 %record"
    told = "" if most is None else f' "nvvm.maxntid"="{most}"'
    head = f"ptx_kernel void @{KERNEL}({pointer(GLOBAL_SPACE)} %status, {record}) nounwind{told}"
    return k.defined(head, ["  ret void"])


def _kernel(layout: Layout, most: str | None) -> str:
    """The function that a thread begins with: it finds out which lane it is. A block has so many of them at most."""
    k = FunctionText()
    found = places_of_lanes(k)
    before = k.op(f"mul nuw nsw i64 {found['block']}, {found['size']}")
    gid = k.op(f"add nuw nsw i64 {before}, {found['lane']}")
    args, shared = memory_of_lanes(k)
    given = f"ptr {args}, ptr %record, ptr {shared}, i64 {gid}, i64 {found['block']}, i64 {found['lane']}"
    k.op(f"call i32 @lane({given})")
    return kernel_function(k, layout.words, None if most is None else int(most))


def ptx(module: CudaModule, for_target: Target) -> str:
    """The module as LLVM's PTX."""
    return objects.assembly(module.text, for_target, for_kernels())


def cached_ptx(cache: ProgramCache, module: CudaModule, for_target: Target, label: str) -> bytes:
    """The same from the cache, or made now and kept there."""
    return objects.cached_assembly(cache, {"backend": "cuda"}, module.text, for_target, label, for_kernels())
