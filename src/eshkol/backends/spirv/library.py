"""Functions that kernels call by OpenCL's names: those that are instructions, and those that are C here."""

from __future__ import annotations

from collections.abc import Mapping

EXTENDED: Mapping[str, int] = {
    "rint": 2, "trunc": 3, "fabs": 4, "floor": 8, "ceil": 9, "sqrt": 31, "fma": 50, "fmin": 79, "fmax": 80,
}  # fmt: skip
"""Functions of floats → instructions of GLSL.std.450."""

TOP_BIT = 75
"""The instruction of `top_bit`: the number of the highest bit that is 1."""

WRITTEN: Mapping[str, str] = {
    "clz": """\
ulong clz(ulong x) {
  const uint high = (uint)(x >> 32), low = (uint)x;
  return (ulong)(high != 0 ? 31 - top_bit(high) : low != 0 ? 63 - top_bit(low) : 64);
}""",
    "mul_hi": """\
ulong mul_hi(ulong a, ulong b) {
  const ulong al = a & 0xffffffffUL, ah = a >> 32, bl = b & 0xffffffffUL, bh = b >> 32;
  const ulong middle = ah * bl + (al * bl >> 32);
  return ah * bh + (middle >> 32) + ((middle & 0xffffffffUL) + al * bh >> 32);
}""",
    "ldexp float": """\
float ldexp(float x, int n) {
  const int m = n > 252 ? 252 : n, half = m / 2;
  return x * as_float((uint)(half + 127) << 23) * as_float((uint)(m - half + 127) << 23);
}""",
    "ldexp double": """\
double ldexp(double x, int n) {
  const int m = n > 2044 ? 2044 : n, half = m / 2;
  return x * as_double((ulong)(half + 1023) << 52) * as_double((ulong)(m - half + 1023) << 52);
}""",
}
"""Other functions; of those that there are for several types one for each. Powers of two are those of `wide.py`."""
