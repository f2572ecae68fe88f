"""OpenCL C, version 1.2: what kernels need of it beside what all C-like languages have.

16-bit floats are held as their bits and rounded here, so that devices without them have them too. Nothing is fused or
approximated: products and sums are rounded one by one, and division and square roots are exact where a device says so,
or else are computed in double precision, of which one rounding is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eshkol.backends.text.helpers import HELPERS, NEIGHBOURS
from eshkol.backends.text.spaced import KERNEL, SpacedC

_BUILTINS = ("fma", "fmin", "fmax", "fabs", "floor", "ceil", "trunc", "rint", "sqrt")


def _builtin(name: str, short: str) -> str:
    """A function that CPUs have an instruction for, which their drivers' libraries may not use."""
    made = f"{name}_{short}"
    own = f"__builtin_{name}{'f' * (short == 'f32')}"
    return f"#if defined(__aarch64__) || defined(__FMA__)\n#define {made} {own}\n#else\n#define {made} {name}\n#endif"


class OpenClC(SpacedC):
    """OpenCL C for a device: with double precision or without, and so on."""

    name: ClassVar[str] = "opencl"
    barrier: ClassVar[str] = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
    fence: ClassVar[str] = "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
    helpers: ClassVar[Mapping[str, str]] = {
        **{f"{name}_{short}": _builtin(name, short) for name in _BUILTINS for short in ("f32", "f64")},
        **HELPERS,
        "neighbours": f"__constant {NEIGHBOURS}",
    }

    def __init__(
        self, *, doubles: bool = True, long_atomics: bool = True, exact_division: bool = True, any_order: bool = False
    ) -> None:
        super().__init__(doubles=doubles, long_atomics=long_atomics, exact_division=exact_division)
        self.prelude = "#pragma OPENCL FP_CONTRACT OFF"
        self.any_order = "#pragma clang fp reassociate(on)" * any_order
        if long_atomics:
            self.prelude += "\n#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable"

    def packed(self, space: str, ty: str, place: str) -> str:
        return f"(({self.spaces[space]} struct __attribute__((packed)) {{ {ty} v; }} *){place})->v"

    def exchanging(self, bits: int) -> str:
        return "atomic_cmpxchg" if bits == 32 else "atom_cmpxchg"

    def kernel(self, parameters: list[tuple[str, str]], body: list[str]) -> str:
        given = ",\n    ".join(f"{kind} {name}" for kind, name in parameters)
        start = [
            "  const ulong gid = first + get_global_id(0);",
            "  const uint block = (uint)(gid / get_local_size(0)), lane = (uint)get_local_id(0);",
        ]
        return "\n".join([f"__kernel void {KERNEL}(", f"    {given}) {{", *start, *body, "}"])
