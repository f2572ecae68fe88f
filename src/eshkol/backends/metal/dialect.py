"""Metal's shading language: what kernels need of it beside what all C-like languages have.

16-bit floats are held as their bits and rounded here. Nothing is fused: kernels are compiled without fast math, and say
so themselves. There are no numbers of double precision and no atomics of 64 bits: F64 is refused by name, and so are
integers of more than 64 bits that are made of floats, for which other languages go through doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eshkol.atlas.types import Type
from eshkol.backends.spirv.library import WRITTEN
from eshkol.backends.text.dialect import GLOBAL, PRIVATE, SHARED, Dialect
from eshkol.backends.text.helpers import HELPERS, NEIGHBOURS, TYPES
from eshkol.errors import BackendUnavailable

KERNEL = "kernel_main"
BUFFERS = 30  # that a kernel can be given beside its arguments
_MEMORY = "mem_flags::mem_device | mem_flags::mem_threadgroup"
_EXCHANGED = """\
uint exchanged_{space}(volatile {space} atomic_uint *cell, uint seen, uint now) {{
  uint found = seen;
  while (!atomic_compare_exchange_weak_explicit(cell, &found, now, memory_order_relaxed, memory_order_relaxed))
    if (found != seen) return found;
  return seen;
}}"""
_PRELUDE = "\n".join([
    "#include <metal_stdlib>",
    "using namespace metal;",
    "#pragma METAL fp math_mode(safe)",
    "#pragma METAL fp contract(off)",
    "float as_float(uint x) { return as_type<float>(x); }",
    "uint as_uint(float x) { return as_type<uint>(x); }",
    "int top_bit(uint x) { return 31 - (int)clz(x); }",
])  # fmt: skip
_PACKED = """\
template <typename T> struct Packed {
  device uchar *place;
  operator T() const {
    T found;
    for (uint k = 0; k < sizeof(T); ++k) ((thread uchar *)&found)[k] = place[k];
    return found;
  }
  void operator=(T value) const {
    for (uint k = 0; k < sizeof(T); ++k) place[k] = ((thread uchar *)&value)[k];
  }
};"""
# Words' functions that wide integers call; under names of their own, since Metal has others of these.
_WORDS = [f"#define {name} {name}_of_words\n{WRITTEN[name]}" for name in ("clz", "mul_hi")]


class MetalC(Dialect):
    """Metal's shading language, version 2.3 or later."""

    name: ClassVar[str] = "metal"
    types: ClassVar[Mapping[Type, str]] = TYPES
    spaces: ClassVar[Mapping[str, str]] = {GLOBAL: "device", SHARED: "threadgroup", PRIVATE: "thread"}
    barrier: ClassVar[str] = f"threadgroup_barrier({_MEMORY});"
    fence: ClassVar[str] = f"atomic_thread_fence({_MEMORY}, memory_order_seq_cst, thread_scope_device);"
    helpers: ClassVar[Mapping[str, str]] = {
        **{name: text for name, text in HELPERS.items() if "double" not in text},
        "neighbours": f"constant {NEIGHBOURS}",
    }
    prelude = "\n\n".join(
        [_PRELUDE, *(_EXCHANGED.format(space=space) for space in ("device", "threadgroup")), _PACKED, *_WORDS]
    )

    def type(self, ty: Type) -> str:
        if ty is Type.F64:
            raise BackendUnavailable("Metal has no F64: numbers of double precision")
        return super().type(ty)

    def cast_bits(self, ty: Type, value: str) -> str:
        return f"as_type<{self.type(ty)}>({value})"

    def pointer(self, space: str, ty: str, *, volatile: bool = False) -> str:
        return f"{'volatile ' * volatile}{self.spaces[space]} {ty} *"

    def packed(self, space: str, ty: str, place: str) -> str:
        assert space == GLOBAL
        return f"Packed<{ty}>{{{place}}}"

    def exchange(self, bits: int, space: str, place: str, seen: str, new: str) -> str:
        if bits == 64:
            raise BackendUnavailable("Metal has no ATOM of 64 bits")
        return f"exchanged_{self.spaces[space]}((volatile {self.spaces[space]} atomic_uint *){place}, {seen}, {new})"

    def fault(self, sites: int) -> str:
        return (
            "void fault(device uint *status, ulong lane, uint site) {\n"
            f"  atomic_fetch_min_explicit((device atomic_uint *)status, (uint)(lane * {sites} + site), "
            "memory_order_relaxed);\n}"
        )

    def kernel(self, parameters: list[tuple[str, str]], body: list[str]) -> str:
        """Buffers are given one by one, all else as words of 64 bits, in the order of parameters."""
        given, start, words = [], [], 0
        device = [(kind, name) for kind, name in parameters if kind.startswith("device ")]
        if len(device) > BUFFERS:
            raise BackendUnavailable(f"Metal has kernels of {BUFFERS} buffers at most, not of {len(device)}")
        for number, (kind, name) in enumerate(device):
            given.append(f"{kind}{name} [[buffer({number})]]")
        given.append(f"constant ulong *given [[buffer({len(device)})]]")
        for kind, name in parameters:
            if kind.startswith("threadgroup "):
                given.append(f"{kind}{name} [[threadgroup(0)]]")
            elif not kind.startswith("device "):
                word = f"given[{words}]"
                value = f"as_type<float>((uint){word})" if kind == "float" else f"({kind}){word}"
                start.append(f"  const {kind} {name} = {value};")
                words += 1
        given += ["uint lane [[thread_index_in_threadgroup]]", "uint group [[threadgroup_position_in_grid]]",
                  "uint lanes [[threads_per_threadgroup]]"]  # fmt: skip
        start += [
            "  const ulong gid = first + (ulong)group * lanes + lane;", "  const uint block = (uint)(gid / lanes);",
        ]  # fmt: skip
        return "\n".join([f"kernel void {KERNEL}(", "    " + ",\n    ".join(given) + ") {", *start, *body, "}"])
