"""What a CPU must have to run code that was compiled for another: the bits by which a program finds out.

Comes in: a compilation target. Goes out: `Need`s, each the name of a feature and where the machine itself tells of it:
a bit of CPUID on x86, of the kernel's auxiliary vector on ARM. Features that no kernel is compiled to (those of the
system, of cryptography) are left out.
"""

from __future__ import annotations

import ctypes
import sys
from typing import NamedTuple

from eshkol.llvm.targets import Target

EAX, EBX, ECX, EDX, XCR0 = range(5)  # the same order stands in runtime/native/model.h
HWCAP, HWCAP2 = 16, 26


class Need(NamedTuple):
    """A feature and its bit: of a register of a CPUID leaf, or of an auxiliary value."""

    name: str
    leaf: int
    subleaf: int
    word: int
    bit: int


_X86 = [
    *(Need(name, 1, 0, ECX, bit) for name, bit in (
        ("sse3", 0), ("ssse3", 9), ("fma", 12), ("cx16", 13), ("sse4.1", 19), ("sse4.2", 20), ("movbe", 22),
        ("popcnt", 23), ("avx", 28), ("f16c", 29))),
    *(Need(name, 7, 0, EBX, bit) for name, bit in (
        ("bmi", 3), ("avx2", 5), ("bmi2", 8), ("avx512f", 16), ("avx512dq", 17), ("avx512ifma", 21), ("avx512cd", 28),
        ("avx512bw", 30), ("avx512vl", 31))),
    *(Need(name, 7, 0, ECX, bit) for name, bit in (
        ("avx512vbmi", 1), ("avx512vbmi2", 6), ("gfni", 8), ("avx512vnni", 11), ("avx512bitalg", 12),
        ("avx512vpopcntdq", 14))),
    *(Need(name, 7, 0, EDX, bit) for name, bit in (
        ("avx512vp2intersect", 8), ("amx-bf16", 22), ("avx512fp16", 23), ("amx-tile", 24), ("amx-int8", 25))),
    *(Need(name, 7, 1, EAX, bit) for name, bit in (("avxvnni", 4), ("avx512bf16", 5), ("amx-fp16", 21),
                                                   ("avxifma", 23))),
    *(Need(name, 7, 1, EDX, bit) for name, bit in (("avxvnniint8", 4), ("avxneconvert", 5), ("avxvnniint16", 10))),
    *(Need(name, 0x80000001, 0, ECX, bit) for name, bit in (
        ("sahf", 0), ("lzcnt", 5), ("sse4a", 6), ("xop", 11), ("fma4", 16), ("tbm", 21))),
]  # fmt: skip
_X86_LEVELS = {"x86-64": "", "x86-64-v2": "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 sahf"}
_X86_LEVELS["x86-64-v3"] = _X86_LEVELS["x86-64-v2"] + " avx avx2 bmi bmi2 f16c fma lzcnt movbe"
_X86_LEVELS["x86-64-v4"] = _X86_LEVELS["x86-64-v3"] + " avx512f avx512bw avx512cd avx512dq avx512vl"
# Feature → bits of the registers that the system must save for it.
_SAVED = {"avx": (1, 2), "avx512f": (5, 6, 7), "amx-tile": (17, 18)}

_ARM = [
    *(Need(name, HWCAP, 0, 0, bit) for name, bit in (
        ("asimd", 1), ("atomics", 8), ("fphp", 9), ("asimdhp", 10), ("asimdrdm", 12), ("jscvt", 13), ("fcma", 14),
        ("lrcpc", 15), ("sha3", 17), ("asimddp", 20), ("sve", 22), ("asimdfhm", 23), ("uscat", 25), ("ilrcpc", 26),
        ("flagm", 27))),
    *(Need(name, HWCAP2, 0, 0, bit) for name, bit in (
        ("sve2", 1), ("svebitperm", 4), ("flagm2", 7), ("frint", 8), ("svei8mm", 9), ("svef32mm", 10),
        ("svef64mm", 11), ("svebf16", 12), ("i8mm", 13), ("bf16", 14))),
]  # fmt: skip


def needs(target: Target) -> list[Need]:
    """What code for a target needs.

    On ARM, code for this very machine, whose features are given, may use more than them: whatever a CPU of its name
    has. So everything is needed that this machine has.
    """
    if target.is_arm:
        return [n for n in _ARM if n.name == "asimd" or (target.features and _auxiliary(n.leaf) >> n.bit & 1)]
    plain = _X86_LEVELS.get(target.cpu)
    names = {n.name for n in _X86 if target.has(n.name)} if plain is None else set(plain.split())
    saved = [Need(f"{name} state", 0, 0, XCR0, bit) for name, bits in _SAVED.items() if name in names for bit in bits]
    return [*(n for n in _X86 if n.name in names), *saved]


def _auxiliary(kind: int) -> int:
    """A value of this process's auxiliary vector; where the system has none, nothing is known to be needed."""
    if not sys.platform.startswith("linux"):
        return 0
    function = ctypes.CDLL(None).getauxval
    function.restype, function.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    return int(function(kind))
