"""The C of kernels for Vulkan, which `backends/spirv` compiles: OpenCL's names, with pointers that are addresses.

16-bit floats are held as their bits and rounded here. Nothing is fused or approximated: where a device does not round
division and square roots of F32 correctly they are computed in double precision, and where it has no fused
product and sum, that is made of doubles or whole numbers. Of a driver that ends loops after so many rounds, whether
they are done or not, kernels find out: behind everything else they count the rounds of a loop of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eshkol.atlas.types import Type
from eshkol.backends.text.helpers import HELPERS, NEIGHBOURS
from eshkol.backends.text.spaced import KERNEL, SpacedC

_FUSED = """\
float fused_f32(float x, float y, float z) {
  const double p = (double)x * (double)y, c = (double)z, s = p + c;
  const double t = s - p, e = (p - (s - t)) + (c - t);
  const ulong b = as_ulong(s), odd = (s > 0.0) == (e > 0.0) ? b + 1UL : b - 1UL;
  return (float)as_double(e != e || e == 0.0 || (b & 1UL) != 0UL ? b : odd);
}"""

# In whole numbers, and without jumps, which drivers for CPUs take long to compile: the lesser of product and addend is
# moved to the other's place, the last bit saying whether anything was lost, and the sum is rounded once.
_FUSED_DOUBLE = """\
double fused_f64(double x, double y, double z) {
  const ulong bx = as_ulong(x), by = as_ulong(y), bz = as_ulong(z), low = 0xfffffffffffffUL, top = 1UL << 63;
  const int fx = (int)(bx >> 52 & 2047), fy = (int)(by >> 52 & 2047), fz = (int)(bz >> 52 & 2047);
  const bool odd = fx == 2047 || fy == 2047 || bx << 1 == 0 || by << 1 == 0;
  const int sx = fx == 0 ? (int)clz(bx & low) - 11 : 0, sy = fy == 0 ? (int)clz(by & low) - 11 : 0;
  const int sz = fz == 0 ? (int)clz(bz & low) - 11 : 0;
  const ulong mx = fx == 0 ? (bx & low) << sx : (bx & low) | low + 1;
  const ulong my = fy == 0 ? (by & low) << sy : (by & low) | low + 1;
  const ulong mz = fz == 0 ? (bz & low) << sz : (bz & low) | low + 1;
  const ulong ph = mul_hi(mx, my), pl = mx * my, zh = mz << 9, product = (bx ^ by) >> 63, addend = bz >> 63;
  const int e0 = (fx == 0 ? 1 - sx : fx) + (fy == 0 ? 1 - sy : fy) - 2171, d0 = e0 - (fz == 0 ? 1 - sz : fz) + 1148;
  const bool turned = d0 < 0;
  const ulong ah = turned ? zh : ph << 21 | pl >> 43, al = turned ? 0UL : pl << 21;
  const ulong bh = turned ? ph << 21 | pl >> 43 : zh, bl = turned ? pl << 21 : 0UL;
  const int d = turned ? 0 - d0 : d0, e1 = turned ? e0 - d0 : e0, s = d & 63, t = 64 - s & 63;
  const ulong vh = d >= 64 ? 0UL : bh, vl = d >= 64 ? bh : bl, lost = d >= 64 ? bl : 0UL;
  const ulong rest = (ulong)((lost | (s == 0 ? 0UL : vl << t)) != 0);
  const ulong ch = d >= 128 ? 0UL : vh >> s, cl = d >= 128 ? 1UL : vl >> s | (s == 0 ? 0UL : vh << t) | rest;
  const bool minus = product != addend, less = minus && (ah < ch || (ah == ch && al < cl));
  const ulong sign = turned != less ? addend : product;
  const ulong nh = less ? ah : ch, nl = less ? al : cl, gh = less ? ch : ah, gl = less ? cl : al;
  const ulong rl = gl + (minus ? 0 - nl : nl), rh = gh + (minus ? 0 - nh - (ulong)(nl != 0) : nh) + (ulong)(rl < gl);
  const ulong h = rh == 0 ? rl : rh, l = rh == 0 ? 0UL : rl;
  const int n = (int)clz(h | 1), e = e1 + 1150 - n - (rh == 0 ? 64 : 0);
  const ulong th = h << n | (n == 0 ? 0UL : l >> (64 - n & 63)), tl = l << n;
  const ulong m0 = th >> 11, f0 = th << 53 | tl >> 11 | (ulong)((tl & 2047) != 0);
  const int k = e < 1 ? 1 - e : 0, j = k & 63, i = 64 - j & 63;
  const ulong f1 = k == 0 ? f0 : m0 << i | f0 >> j | (ulong)(f0 << i != 0), f = k > 54 ? 1UL : f1;
  const ulong m1 = k > 54 ? 0UL : m0 >> j, m = m1 + (ulong)(f > top || (f == top && (m1 & 1) != 0));
  const ulong found = e >= 2047 ? 0x7ff0000000000000UL : e < 1 ? m : ((ulong)(e - 1) << 52) + m;
  const double fused = (rh | rl) == 0 ? 0.0 : as_double(found | sign << 63);
  return odd ? x * y + z : fz == 2047 ? z : bz << 1 == 0 ? x * y : fused;
}"""
_WATCHED = """\
void watched(__global uint *watch, uint number) {
  uint rounds = 0;
  for (uint k = 0; k < watch[0]; ++k) ++rounds;
  if (rounds != watch[0]) atomic_min(watch + 1, number);
}"""
PROBE = f"""\
__kernel void {KERNEL}(__global uint *out, float x, float y, float least) {{
  out[0] = as_uint(fma(x, x, y));
  out[1] = as_uint(least * 0.5f);
}}"""


class SpirvC(SpacedC):
    """The C of a device: with double precision or without, and so on."""

    name: ClassVar[str] = "vulkan"
    barrier: ClassVar[str] = "barrier();"
    fence: ClassVar[str] = "mem_fence();"
    helpers: ClassVar[Mapping[str, str]] = {
        **HELPERS, "neighbours": f"__constant {NEIGHBOURS}", "fused_f32": _FUSED,
        "fused_f64": _FUSED_DOUBLE,
    }  # fmt: skip

    def __init__(
        self, *, doubles: bool = True, long_atomics: bool = True, exact_division: bool = True, fuses: bool = True,
        watches: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(doubles=doubles, long_atomics=long_atomics, exact_division=exact_division)
        self.watches = watches
        self.prelude = _WATCHED * watches
        if not fuses and doubles:
            fused = "{f[fused]}({0}, {1}, {2})"
            self.own = {**self.own, ("FMA", Type.F32): fused, ("FMA", Type.F64): fused}

    def packed(self, space: str, ty: str, place: str) -> str:
        return f"*({self.spaces[space]} packed {ty} *){place}"

    def kernel(self, parameters: list[tuple[str, str]], body: list[str]) -> str:
        given = ",\n    ".join(f"{kind} {name}" for kind, name in parameters)
        start = [
            "  const uint lane = get_local_id(0);",
            "  const ulong gid = first + (ulong)get_group_id(0) * get_local_size(0) + lane;",
            "  const uint block = (uint)(gid / get_local_size(0));",
        ]
        if not self.watches:
            return "\n".join([f"__kernel void {KERNEL}(", f"    {given}) {{", *start, *body, "}"])
        names = ", ".join(name for _, name in parameters)
        return "\n".join([
            "void body(", f"    {given}) {{", *start, *body, "}", "", f"__kernel void {KERNEL}(",
            f"    {given},\n    __global uint *watch,\n    uint number) {{", f"  body({names});",
            "  watched(watch, number);", "}",
        ])  # fmt: skip
