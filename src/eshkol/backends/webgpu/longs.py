"""Integers of 64 bits in WGSL, which has none: pairs of words, the low one first, with functions for them.

Comes in: nothing. Goes out: `FUNCTIONS`, by name. A pair has a sign or not: the function knows. All results wrap; what
is divided by nothing is the caller's business.
"""

from __future__ import annotations

from collections.abc import Mapping

LONG = "vec2<u32>"


def _function(name: str, given: str, body: str, result: str = LONG) -> tuple[str, str]:
    return name, f"fn {name}({given}) -> {result} {{\n{body}\n}}"


_TWO = f"a: {LONG}, b: {LONG}"
_SHIFTED = f"a: {LONG}, by: u32"


def _signed_division(name: str, part: str, turned: str) -> tuple[str, str]:
    return _function(
        name, _TWO,
        f"  let found = divided_u64(abs_i64(a), abs_i64(b)).{part};\n"
        f"  return select(found, neg_64(found), (({turned}) >> 31u) != 0u);",
    )  # fmt: skip


FUNCTIONS: Mapping[str, str] = dict([
    _function("add_64", _TWO, "  let low = a.x + b.x;\n"
              "  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));"),
    _function("sub_64", _TWO, "  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));"),
    _function("neg_64", f"a: {LONG}", "  return sub_64(vec2<u32>(), a);"),
    _function("abs_i64", f"a: {LONG}", "  return select(a, neg_64(a), (a.y >> 31u) != 0u);"),
    _function("product_u32", "a: u32, b: u32", """\
  let c = a & 0xffffu;
  let d = a >> 16u;
  let e = b & 0xffffu;
  let f = b >> 16u;
  let low = c * e;
  let middle = (low >> 16u) + ((c * f) & 0xffffu) + ((d * e) & 0xffffu);
  let high = d * f + ((c * f) >> 16u) + ((d * e) >> 16u) + (middle >> 16u);
  return vec2<u32>((low & 0xffffu) | (middle << 16u), high);"""),
    _function("mul_64", _TWO, "  let low = product_u32(a.x, b.x);\n"
              "  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);"),
    _function("lt_u64", _TWO, "  return a.y < b.y || (a.y == b.y && a.x < b.x);", "bool"),
    _function("lt_i64", _TWO, "  return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);", "bool"),
    _function("shl_64", _SHIFTED, """\
  let n = by & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));"""),
    _function("shr_u64", _SHIFTED, """\
  let n = by & 63u;
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);"""),
    _function("shr_i64", _SHIFTED, """\
  let n = by & 63u;
  let fill = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2<u32>(bitcast<u32>(bitcast<i32>(a.y) >> (n - 32u)), fill); }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), bitcast<u32>(bitcast<i32>(a.y) >> n));"""),
    _function("jammed_64", _SHIFTED, """\
  if (by == 0u) { return a; }
  if (by >= 64u) { return vec2<u32>(select(0u, 1u, any(a != vec2<u32>())), 0u); }
  let lost = any(shl_64(a, 64u - by) != vec2<u32>());
  return shr_u64(a, by) | vec2<u32>(select(0u, 1u, lost), 0u);"""),
    _function("zeros_64", f"a: {LONG}",
              "  return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);", "u32"),
    _function("divided_u64", _TWO, """\
  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  var quotient = vec2<u32>();
  var rest = vec2<u32>();
  for (var k = 64u; k > 0u; k -= 1u) {
    let beyond = (rest.y >> 31u) != 0u;
    rest = shl_64(rest, 1u) | vec2<u32>(shr_u64(a, k - 1u).x & 1u, 0u);
    if (beyond || !lt_u64(rest, b)) {
      rest = sub_64(rest, b);
      quotient |= shl_64(vec2<u32>(1u, 0u), k - 1u);
    }
  }
  return vec4<u32>(quotient, rest);""", "vec4<u32>"),
    _function("div_u64", _TWO, "  return divided_u64(a, b).xy;"),
    _function("rem_u64", _TWO, "  return divided_u64(a, b).zw;"),
    _signed_division("div_i64", "xy", "a.y ^ b.y"),
    _signed_division("rem_i64", "zw", "a.y"),
])  # fmt: skip
