"""WGSL: what kernels are written in for WebGPU, and what of it a device has beyond what every browser takes.

Values of at most 32 bits are `i32`, `u32` and `f32`: small integers wrap within them, floats of 16 bits are their bits.
Integers of 64 bits are pairs of words (`longs.py`), wider ones structures of words (`wides.py`). F64 is there where a
device has both `shader-f64` and `shader-int64`, which browsers do not know, or else refused by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.types import Type
from eshkol.backends.text.dialect import Dialect
from eshkol.backends.webgpu import floats, longs, wides
from eshkol.errors import BackendUnavailable

KERNEL = "kernel_main"
LANES, SHARED_WORDS = "block_lanes", "shared_words"  # what a pipeline is made with
_TYPES = {
    Type.F16: "u32", Type.BF16: "u32", Type.F32: "f32", Type.F64: "f64", Type.I64: longs.LONG, Type.U64: longs.LONG,
    **{Type[f"I{bits}"]: "i32" for bits in (8, 16, 32)},
    **{Type[f"U{bits}"]: "u32" for bits in (8, 16, 32)},
}  # fmt: skip
_CALLED = re.compile(r"\b([a-z]\w*_\w+)\(")


def is_long(ty: Type) -> bool:
    """Whether it is an integer of 64 bits."""
    return ty.is_integer and ty.bits == 64


class Wgsl(Dialect):
    """WGSL for a device: without anything said, what every browser takes."""

    name: ClassVar[str] = "webgpu"
    types: ClassVar[Mapping[Type, str]] = _TYPES
    spaces: ClassVar[Mapping[str, str]] = {}
    barrier: ClassVar[str] = "storageBarrier(); workgroupBarrier();"
    fence: ClassVar[str] = ""
    helpers: ClassVar[Mapping[str, str]] = {**longs.FUNCTIONS, **floats.FUNCTIONS}
    true: ClassVar[str] = "true"
    default: ClassVar[str] = "default: { return; }"

    def __init__(
        self, *, doubles: bool = False, exact: bool = True, fused: bool = True, exact_division: bool = True
    ) -> None:
        self.doubles = doubles
        self.exact = exact  # whether each sum and product is rounded as it is written, NaNs are, and so on
        self.fused = fused  # whether the device's `fma` rounds once
        self.exact_division = exact_division
        self.prelude = ""

    # --- types and constants ------------------------------------------------------------------------

    def type(self, ty: Type) -> str:
        if ty is Type.F64 and not self.doubles:
            raise BackendUnavailable("the device has no F64: numbers of double precision")
        if ty.bits > wides.WIDEST:
            raise BackendUnavailable(f"the {self.name} backend has integers of up to {wides.WIDEST} bits, not {ty}")
        return super().type(ty)

    def constant(self, ty: Type, value: int | float) -> str:
        if ty.is_half:
            return f"{int(Immediate(ty, value).array().view(np.uint16)[0])}u"
        if ty.is_float:
            return self.floating(ty, float(value))
        if ty.is_wide:
            return wides.constant(ty, int(value))
        if ty.bits == 64:
            return f"vec2<u32>({int(value) & 0xFFFFFFFF}u, {int(value) >> 32 & 0xFFFFFFFF}u)"
        if ty.is_unsigned:
            return f"{int(value)}u"
        return f"i32({int(value)})" if value < 0 else f"{int(value)}i"

    def floating(self, ty: Type, value: float) -> str:
        if ty is Type.F64:
            self.type(ty)
            bits = int(np.float64(value).view(np.uint64))
            return f"f64_of_bits(vec2<u32>({bits & 0xFFFFFFFF}u, {bits >> 32}u))"
        rounded = np.float32(value)
        plain = math.isfinite(value) and abs(value) >= float(np.finfo(np.float32).tiny)
        if plain and float(rounded) == value:
            return f"{value.hex()}f"
        return f"bits_f32({hex(int(rounded.view(np.uint32)))}u)"  # what a driver may leave out, or WGSL refuses

    def bits_of(self, ty: Type, value: str) -> str:
        """The bits of a value: a word, or a pair of them; above them there is nothing."""
        if ty is Type.F64:
            self.type(ty)
            return f"bits_of_f64({value})"
        if ty is Type.F32:
            return f"bitcast<u32>({value})"
        if ty.is_integer and ty.is_signed and ty.bits <= 32:
            found = f"bitcast<u32>({value})"
            return found if ty.bits == 32 else f"({found} & {(1 << ty.bits) - 1}u)"
        return value

    def of_bits(self, ty: Type, bits: str) -> str:
        """The value of bits, above which there is nothing."""
        if ty is Type.F64:
            self.type(ty)
            return f"f64_of_bits({bits})"
        if ty is Type.F32:
            return f"bitcast<f32>({bits})"
        if ty.is_integer and ty.is_signed and ty.bits <= 32:
            return self.wrapped(ty, f"bitcast<i32>({bits})")
        return bits

    def wrapped(self, ty: Type, value: str) -> str:
        """A number in 32 bits, of which only those of the type count."""
        if ty.bits == 32:
            return value
        if ty.is_unsigned:
            return f"({value}) & {(1 << ty.bits) - 1}u"
        return f"({value} << {32 - ty.bits}u) >> {32 - ty.bits}u"

    def word_of(self, ty: Type, value: str) -> str:
        """The low word of an integer."""
        if ty.bits > 32:
            return f"{value}.x" if ty.bits == 64 else f"{value}.w[0]"
        return f"bitcast<u32>({value})" if ty.is_signed else value

    def cast_bits(self, ty: Type, value: str) -> str:
        return self.of_bits(ty, value)

    # --- statements ---------------------------------------------------------------------------------

    def variable(self, kind: str, name: str, start: str) -> str:
        return f"var {name}: {kind}" + (";" if start in ("0", "{{0}}") else f" = {start};")

    def array(self, kind: str, name: str, count: int) -> str:
        return f"var {name}: array<{kind}, {count}>;"

    def failing(self, lane: str, site: int) -> str:
        return f"fault({lane}, {site}u);"

    def zero(self, ty: Type) -> str:
        return "vec2<u32>()" if is_long(ty) else f"0{'i' if ty.is_signed else 'u'}"

    def is_positive(self, ty: Type, value: str) -> str:
        return self.is_less(ty, self.zero(ty), value)

    def is_negative(self, ty: Type, value: str) -> str:
        return self.is_less(ty, value, self.zero(ty))

    def is_less(self, ty: Type, one: str, other: str) -> str:
        """Whether an integer is less than another."""
        return f"lt_{ty.name.lower()}({one}, {other})" if is_long(ty) else f"{one} < {other}"

    def constantly(self, ty: Type, name: str, value: str) -> str:
        return f"let {name} = {value};"

    def counting(self, ty: Type, name: str, count: str) -> str:
        return f"for (var {name} = {self.zero(ty)}; {self.is_less(ty, name, count)}; {name} = {self._more(ty, name)})"

    def _more(self, ty: Type, name: str) -> str:
        return f"add_64({name}, vec2<u32>(1u, 0u))" if is_long(ty) else f"{name} + 1{'i' if ty.is_signed else 'u'}"

    def next_round(self, ty: Type, done: str, wanted: str) -> tuple[list[str], str]:
        return [f"{done} = {self._more(ty, done)};"], self.is_less(ty, done, wanted)

    def pushed(self, stack: str, depth: str, value: int) -> list[str]:
        return [f"{stack}[{depth}] = {value}u;", f"{depth} += 1u;"]

    def popped(self, target: str, stack: str, depth: str) -> list[str]:
        return [f"{depth} -= 1u;", f"{target} = {stack}[{depth}];"]

    def chosen(self, condition: str, one: str, other: str) -> str:
        return f"select({other}u, {one}u, {condition})"

    # --- memory, of which there are no pointers -----------------------------------------------------

    def pointer(self, space: str, ty: str, *, volatile: bool = False) -> str:
        raise BackendUnavailable("WGSL has no pointers into buffers")

    def packed(self, space: str, ty: str, place: str) -> str:
        raise BackendUnavailable("WGSL has no pointers into buffers")

    def exchange(self, bits: int, space: str, place: str, seen: str, new: str) -> str:
        raise BackendUnavailable("WGSL has no pointers into buffers")

    def fault(self, sites: int) -> str:
        return f"fn fault(lane: u32, site: u32) {{\n  atomicMin(&status[0], lane * {sites}u + site);\n}}"

    def kernel(self, parameters: list[tuple[str, str]], body: list[str]) -> str:
        """The kernel; the parameters are what it is told by names, of which each is a value."""
        head = [
            f"@compute @workgroup_size({LANES})",
            f"fn {KERNEL}(",
            "    @builtin(workgroup_id) at_block: vec3<u32>,",
            "    @builtin(num_workgroups) launched: vec3<u32>,",
            "    @builtin(local_invocation_index) lane: u32) {",
            "  let place = at_block.y * launched.x + at_block.x;",
            "  if (place >= given.blocks) { return; }",
            f"  let gid = given.first + place * {LANES} + lane;",
            f"  let block = given.first / {LANES} + place;",  # which WGSL sees to be the same in all lanes
            *(f"  let {name} = {value};" for value, name in parameters),
        ]
        return "\n".join([*head, *body, "}"])

    # --- helper functions ---------------------------------------------------------------------------

    def functions(self, text: str) -> list[str]:
        """The helper functions that a text calls, each after those that it calls itself."""
        found: dict[str, str] = {}

        def add(names: Iterable[str]) -> None:
            for name in names:
                if name in found:
                    continue
                inner = self._function(name)
                if inner is not None:
                    add(k for k in dict.fromkeys(_CALLED.findall(inner)) if k != name)
                    found[name] = inner

        add(dict.fromkeys(_CALLED.findall(text)))
        widths = sorted({int(bits) for one in (text, *found.values()) for bits in re.findall(r"\bw(\d+)\b", one)})
        return [*(wides.structure(bits) for bits in widths), *found.values()]

    def _function(self, name: str) -> str | None:
        if name == "fma_f32" and self.doubles:
            return floats.FUSED_BY_DOUBLES
        if name in self.helpers:
            return self.helpers[name]
        return wides.function(name)
