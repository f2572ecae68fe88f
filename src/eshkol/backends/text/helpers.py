"""Functions that kernels call, as C with OpenCL's names: floats of 16 bits, conversions, remainders and classes.

Comes in: nothing. Goes out: `TYPES`, the names of types that the texts use, and `HELPERS`, from the name of a function
to its text. A language whose names differ says them anew in its prelude.
"""

from __future__ import annotations

from collections.abc import Mapping

from eshkol.atlas.types import Type
from eshkol.backends.text.memory import neighbour_table

_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long"}
TYPES: Mapping[Type, str] = {
    Type.F16: "ushort", Type.BF16: "ushort", Type.F32: "float", Type.F64: "double",
    **{Type[f"I{bits}"]: name for bits, name in _INTEGERS.items()},
    **{Type[f"U{bits}"]: f"u{name}" for bits, name in _INTEGERS.items()},
}  # fmt: skip
_HALVES = {
    "f16_to_f32": """\
float f16_to_f32(ushort h) {
  const uint s = (uint)(h & 0x8000) << 16, m = h & 0x7fff;
  const float small = as_float((m << 13) + 0x38800000u) - 0x1p-14f;
  const uint bits = m >= 0x7c00 ? m << 13 | 0x7f800000u : m < 0x400 ? as_uint(small) : (m << 13) + 0x38000000u;
  return as_float(bits | s);
}""",
    "f32_to_f16": """\
ushort f32_to_f16(float x) {
  const uint b = as_uint(x), s = b >> 16 & 0x8000, m = b & 0x7fffffffu;
  const uint small = as_uint(as_float(m) + 0.5f) - 0x3f000000u;
  const uint usual = (m + 0xfff + (m >> 13 & 1) - 0x38000000u) >> 13;
  const uint found = m > 0x7f800000u ? 0x7e00 : m >= 0x477ff000u ? 0x7c00 : m < 0x38800000u ? small : usual;
  return (ushort)(s | found);
}""",
    "bf16_to_f32": "float bf16_to_f32(ushort h) { return as_float((uint)h << 16); }",
    "f32_to_bf16": """\
ushort f32_to_bf16(float x) {
  const uint b = as_uint(x);
  return (ushort)(x != x ? (b >> 16 | 0x40) : (b + 0x7fff + (b >> 16 & 1)) >> 16);
}""",
    "f64_to_odd": """\
float f64_to_odd(double x) {
  const float f = (float)x;
  const uint b = as_uint(f);
  if ((double)f == x || x != x || (b & 0x7f800000u) == 0x7f800000u || (b & 1)) return f;
  return as_float((fabs((double)f) > fabs(x) ? b - 1 : b) | 1);
}""",
}
_CLASS = """\
uchar resonance_class(uint x) {
  const uint b = x & 255;
  const uint low = (b & 1) * 48 + (b >> 1 & 1) * 24 + (b >> 2 & 1) * 12 + (b >> 3 & 1) * 6 + (b >> 4 & 1) * 3;
  return (uchar)((b >> 5 & 3) % 3 + low);
}"""


def _to_integer(source: Type, target: Type) -> str:
    """Truncated and saturated; NaN is 0."""
    real, name = TYPES[source], TYPES[target]
    suffix = "f" * (source is Type.F32)
    top = f"0x1p{target.bits - target.is_signed}{suffix}"
    least, most = f"({name}){hex(target.min_value % (1 << 64))}UL", f"({name}){hex(target.max_value)}UL"
    bottom = f"-{top}" if target.is_signed else f"0.0{suffix}"
    function = f"{source.name.lower()}_to_{target.name.lower()}"
    return (
        f"{name} {function}({real} x) {{ return x != x ? 0 : x >= {top} ? {most} : x <= {bottom} ? {least} : "
        f"({name})x; }}"
    )


def _remainder(real: str, word: str, ty: Type) -> str:
    """An exact remainder: drivers' own ones lose their last bits where the quotient is large."""
    bits, mantissa, one = ty.bits, ty.mantissa_bits, f"({word})1"
    return f"""\
{real} fmod_{ty.name.lower()}({real} x, {real} y) {{
  const {word} sign = as_{word}(x) & {one} << {bits - 1}, top = {one} << {mantissa};
  {word} a = as_{word}(x) ^ sign, b = as_{word}(y) & ~({one} << {bits - 1});
  const {word} infinity = as_{word}(({real})INFINITY);
  if (a >= infinity || b > infinity || b == 0) return as_{real}(infinity | top >> 1 | top >> 2);
  if (a < b) return x;
  int p = (int)(a >> {mantissa}), q = (int)(b >> {mantissa});
  a = p ? (a & (top - 1)) | top : a;
  b = q ? (b & (top - 1)) | top : b;
  p = p ? p : 1;
  q = q ? q : 1;
  while (a < top) {{ a <<= 1; --p; }}
  while (b < top) {{ b <<= 1; --q; }}
  for (; p > q; --p) a = (a >= b ? a - b : a) << 1;
  a = a >= b ? a - b : a;
  if (a == 0) return as_{real}(sign);
  while (a < top) {{ a <<= 1; --q; }}
  return as_{real}(sign | (q < 1 ? a >> (1 - q) : (a - top) | ({word})q << {mantissa}));
}}"""


NEIGHBOURS = f"long neighbours[] = {{{', '.join(map(str, neighbour_table()))}}};"
HELPERS: Mapping[str, str] = {
    **_HALVES,
    "fmod_f32": _remainder("float", "uint", Type.F32),
    "fmod_f64": _remainder("double", "ulong", Type.F64),
    "resonance_class": _CLASS,
    **{
        f"{source.name.lower()}_to_{target.name.lower()}": _to_integer(source, target)
        for source in (Type.F32, Type.F64)
        for target in Type
        if target.is_integer and not target.is_wide
    },
}
