"""OpenCL C, version 1.2: what kernels need of it beside what all C-like languages have.

16-bit floats are held as their bits and rounded here, so that devices without them have them too. Nothing is fused or
approximated: products and sums are rounded one by one, and division and square roots are exact where a device says so,
or else are computed in double precision, of which one rounding is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eshkol.atlas.types import Type
from eshkol.backends.text.dialect import GLOBAL, PRIVATE, SHARED, Dialect
from eshkol.backends.text.helpers import HELPERS, NEIGHBOURS, TYPES
from eshkol.errors import BackendUnavailable

KERNEL = "kernel_main"
_BUILTINS = ("fma", "fmin", "fmax", "fabs", "floor", "ceil", "trunc", "rint", "sqrt")


def _builtin(name: str, short: str) -> str:
    """A function that CPUs have an instruction for, which their drivers' libraries may not use."""
    made = f"{name}_{short}"
    own = f"__builtin_{name}{'f' * (short == 'f32')}"
    return f"#if defined(__aarch64__) || defined(__FMA__)\n#define {made} {own}\n#else\n#define {made} {name}\n#endif"


class OpenClC(Dialect):
    """OpenCL C for a device: with double precision or without, and so on."""

    name: ClassVar[str] = "opencl"
    types: ClassVar[Mapping[Type, str]] = TYPES
    spaces: ClassVar[Mapping[str, str]] = {GLOBAL: "__global", SHARED: "__local", PRIVATE: "__private"}
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
        self.doubles, self.long_atomics = doubles, long_atomics
        self.prelude = "#pragma OPENCL FP_CONTRACT OFF"
        self.any_order = "#pragma clang fp reassociate(on)" * any_order
        if long_atomics:
            self.prelude += "\n#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable"
        if not exact_division and doubles:  # of two roundings the first, to twice as many bits, changes nothing
            self.own = {
                ("DIV", Type.F32): "(float)((double){0} / (double){1})",
                ("SQRT", Type.F32): "(float)sqrt((double){0})",
            }

    def type(self, ty: Type) -> str:
        if ty is Type.F64 and not self.doubles:
            raise BackendUnavailable("the device has no F64: numbers of double precision")
        return super().type(ty)

    def cast_bits(self, ty: Type, value: str) -> str:
        return f"as_{self.types[ty]}({value})"

    def pointer(self, space: str, ty: str, *, volatile: bool = False) -> str:
        return f"{'volatile ' * volatile}{self.spaces[space]} {ty} *"

    def packed(self, space: str, ty: str, place: str) -> str:
        return f"(({self.spaces[space]} struct __attribute__((packed)) {{ {ty} v; }} *){place})->v"

    def exchange(self, bits: int, space: str, place: str, seen: str, new: str) -> str:
        if bits == 64 and not self.long_atomics:
            raise BackendUnavailable("the device has no ATOM of 64 bits")
        return f"{'atomic' if bits == 32 else 'atom'}_cmpxchg({place}, {seen}, {new})"

    def fault(self, sites: int) -> str:
        return (
            "void fault(__global uint *status, ulong lane, uint site) {\n"
            f"  atomic_min(status, (uint)(lane * {sites} + site));\n}}"
        )

    def kernel(self, parameters: list[tuple[str, str]], body: list[str]) -> str:
        given = ",\n    ".join(f"{kind} {name}" for kind, name in parameters)
        start = [
            "  const ulong gid = first + get_global_id(0);",
            "  const uint block = (uint)(gid / get_local_size(0)), lane = (uint)get_local_id(0);",
        ]
        return "\n".join([f"__kernel void {KERNEL}(", f"    {given}) {{", *start, *body, "}"])
