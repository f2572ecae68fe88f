"""Integers of 128 and 256 bits in WGSL: structures of 32-bit words, with functions for them.

Comes in: names of functions that a kernel calls. Goes out: their text, which calls others of them. A value is `wN`, N
bits with or without a sign: the function knows. All results wrap, conversions from floats saturate.
"""

from __future__ import annotations

import re

from eshkol.atlas.types import Type

_ALIKE = frozenset({"add", "sub", "mul", "and", "or", "xor", "not", "neg", "shl"})  # with a sign and without
_SIGNED = frozenset({"div", "rem", "min", "max", "abs", "shr"})
WIDEST = 256  # bits: drivers go through words without a loop, and take minutes to compile that of more
_NAME = re.compile(r"(?:(from|to)_([iuf]\d+)|([a-z]+))_([iu]\d+)")


def name_of(operation: str, ty: Type) -> str | None:
    """The function of an operation; None where there is none."""
    name = operation.lower()
    if name in _ALIKE:
        return f"{name}_u{ty.bits}"
    return f"{name}_{ty.name.lower()}" if name in _SIGNED else None


def constant(ty: Type, value: int) -> str:
    """A wide integer as it is written."""
    words = ", ".join(f"{value >> 32 * k & 0xFFFFFFFF}u" for k in range(ty.bits // 32)) if value else ""
    return f"w{ty.bits}(array<u32, {ty.bits // 32}>({words}))" if words else f"w{ty.bits}()"


def structure(bits: int) -> str:
    """The type of so many bits."""
    return f"struct w{bits} {{ w: array<u32, {bits // 32}> }}"


def function(name: str) -> str | None:
    """The text of a function by its name; None where it is not one of these."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    target = Type[found[4].upper()]
    if found[1]:
        source = Type[found[2].upper()]
        if found[1] == "to":
            return _to_float(name, target, source)
        return _from_float(name, source, target) if source.is_float else _resized(name, source, target)
    template = _FUNCTIONS.get((found[3], target.is_signed)) or _FUNCTIONS.get((found[3], False))
    if template is None or not target.is_wide:
        return None
    return _filled(template, name, target)


def _filled(template: str, name: str, ty: Type) -> str:
    words = ty.bits // 32
    for key, value in (("$name", name), ("$bits", str(ty.bits)), ("$top", str(words - 1)), ("$s", ty.name.lower()),
                       ("$u", f"u{ty.bits}"), ("$t", f"w{ty.bits}"), ("$n", str(words))):  # fmt: skip
        template = template.replace(key, value)
    return template


def _each(expression: str, given: str = "a: $t, b: $t") -> str:
    copies = "".join(f"  var {one}v = {one};\n" for one in ("a", "b") if f"{one}: $t" in given)
    return (
        f"fn $name({given}) -> $t {{\n{copies}  var z = $t();\n"
        f"  for (var k = 0u; k < $nu; k += 1u) {{ z.w[k] = {expression}; }}\n  return z;\n}}"
    )


_NEGATIVE = "(a.w[$top] >> 31u) != 0u"
_SHIFTED = """\
fn $name(a: $t, b: $t) -> $t {
  var x = a;
  var z = $t();
  let by = b.w[0] & ($bitsu - 1u);
  let far = by >> 5u;
  let s = by & 31u;
  let fill = FILL;
  for (var k = 0u; k < $nu; k += 1u) {
    var low = fill;
    var high = fill;
    if (k + far < $nu) { low = x.w[k + far]; }
    if (k + far + 1u < $nu) { high = x.w[k + far + 1u]; }
    z.w[k] = low;
    if (s > 0u) { z.w[k] = (low >> s) | (high << (32u - s)); }
  }
  return z;
}"""
_FUNCTIONS: dict[tuple[str, bool], str] = {
    ("and", False): _each("av.w[k] & bv.w[k]"),
    ("or", False): _each("av.w[k] | bv.w[k]"),
    ("xor", False): _each("av.w[k] ^ bv.w[k]"),
    ("not", False): _each("~av.w[k]", "a: $t"),
    ("chosen", False): ("fn $name(first: bool, a: $t, b: $t) -> $t {\n  if (first) { return a; }\n  return b;\n}"),
    ("add", False): """\
fn $name(a: $t, b: $t) -> $t {
  var x = a;
  var y = b;
  var z = $t();
  var carry = 0u;
  for (var k = 0u; k < $nu; k += 1u) {
    let s = x.w[k] + y.w[k];
    z.w[k] = s + carry;
    carry = select(0u, 1u, s < x.w[k] || z.w[k] < s);
  }
  return z;
}""",
    ("sub", False): """\
fn $name(a: $t, b: $t) -> $t {
  var x = a;
  var y = b;
  var z = $t();
  var borrow = 0u;
  for (var k = 0u; k < $nu; k += 1u) {
    let s = x.w[k] - y.w[k];
    z.w[k] = s - borrow;
    borrow = select(0u, 1u, x.w[k] < y.w[k] || s < borrow);
  }
  return z;
}""",
    ("neg", False): "fn $name(a: $t) -> $t { return sub_$u($t(), a); }",
    ("abs", False): "fn $name(a: $t) -> $t { return a; }",
    ("abs", True): f"fn $name(a: $t) -> $t {{\n  if ({_NEGATIVE}) {{ return neg_$u(a); }}\n  return a;\n}}",
    ("zero", False): """\
fn $name(a: $t) -> bool {
  var x = a;
  var any_bit = 0u;
  for (var k = 0u; k < $nu; k += 1u) { any_bit |= x.w[k]; }
  return any_bit == 0u;
}""",
    ("compare", False): """\
fn $name(a: $t, b: $t) -> i32 {
  var x = a;
  var y = b;
  for (var k = $nu; k > 0u; k -= 1u) {
    if (x.w[k - 1u] != y.w[k - 1u]) { return select(1, -1, x.w[k - 1u] < y.w[k - 1u]); }
  }
  return 0;
}""",
    ("compare", True): """\
fn $name(a: $t, b: $t) -> i32 {
  var x = a;
  var y = b;
  x.w[$top] ^= 0x80000000u;
  y.w[$top] ^= 0x80000000u;
  return compare_$u(x, y);
}""",
    ("min", False): "fn $name(a: $t, b: $t) -> $t {\n  if (compare_$s(b, a) < 0) { return b; }\n  return a;\n}",
    ("max", False): "fn $name(a: $t, b: $t) -> $t {\n  if (compare_$s(b, a) > 0) { return b; }\n  return a;\n}",
    ("mul", False): """\
fn $name(a: $t, b: $t) -> $t {
  var x = a;
  var y = b;
  var z = $t();
  for (var i = 0u; i < $nu; i += 1u) {
    var carry = 0u;
    for (var j = 0u; i + j < $nu; j += 1u) {
      let product = product_u32(x.w[i], y.w[j]);
      let s = z.w[i + j] + product.x;
      let t = s + carry;
      carry = product.y + select(0u, 1u, s < product.x) + select(0u, 1u, t < s);
      z.w[i + j] = t;
    }
  }
  return z;
}""",
    ("shl", False): """\
fn $name(a: $t, b: $t) -> $t {
  var x = a;
  var z = $t();
  let by = b.w[0] & ($bitsu - 1u);
  let far = by >> 5u;
  let s = by & 31u;
  for (var k = far; k < $nu; k += 1u) {
    z.w[k] = x.w[k - far] << s;
    if (s > 0u && k > far) { z.w[k] |= x.w[k - far - 1u] >> (32u - s); }
  }
  return z;
}""",
    ("shr", False): _SHIFTED.replace("FILL", "0u"),
    ("shr", True): _SHIFTED.replace("FILL", "0u - (a.w[$top] >> 31u)"),
    ("divided", False): """\
fn $name(a: $t, b: $t, remainder: bool) -> $t {
  var x = a;
  var q = $t();
  var r = $t();
  for (var i = $bitsu; i > 0u; i -= 1u) {
    let beyond = (r.w[$top] >> 31u) != 0u;
    for (var k = $topu; k > 0u; k -= 1u) { r.w[k] = (r.w[k] << 1u) | (r.w[k - 1u] >> 31u); }
    r.w[0] = (r.w[0] << 1u) | ((x.w[(i - 1u) >> 5u] >> ((i - 1u) & 31u)) & 1u);
    if (beyond || compare_$u(r, b) >= 0) {
      r = sub_$u(r, b);
      q.w[(i - 1u) >> 5u] |= 1u << ((i - 1u) & 31u);
    }
  }
  if (remainder) { return r; }
  return q;
}""",
    ("div", False): "fn $name(a: $t, b: $t) -> $t { return divided_$u(a, b, false); }",
    ("rem", False): "fn $name(a: $t, b: $t) -> $t { return divided_$u(a, b, true); }",
    ("div", True): """\
fn $name(a: $t, b: $t) -> $t {
  let q = divided_$u(abs_$s(a), abs_$s(b), false);
  if (((a.w[$top] ^ b.w[$top]) >> 31u) != 0u) { return neg_$u(q); }
  return q;
}""",
    ("rem", True): f"""\
fn $name(a: $t, b: $t) -> $t {{
  let r = divided_$u(abs_$s(a), abs_$s(b), true);
  if ({_NEGATIVE}) {{ return neg_$u(r); }}
  return r;
}}""",
}


def _resized(name: str, source: Type, target: Type) -> str:
    """More words, or fewer."""
    count, words = target.bits // 32, source.bits // 32
    pair = source.bits == 64
    given, top = ("vec2<u32>", "a.y") if pair else (f"w{source.bits}", f"a.w[{words - 1}]")
    fill = f"0u - ({top} >> 31u)" if source.is_signed else "0u"
    lines = [f"fn {name}(a: {given}) -> w{target.bits} {{", "  var x = a;", f"  var z = w{target.bits}();"]
    if count > words:
        lines.append(f"  for (var k = {words}u; k < {count}u; k += 1u) {{ z.w[k] = {fill}; }}")
    if pair:
        lines += ["  z.w[0] = x.x;", "  z.w[1] = x.y;"]
    else:
        lines.append(f"  for (var k = 0u; k < {min(count, words)}u; k += 1u) {{ z.w[k] = x.w[k]; }}")
    return "\n".join([*lines, "  return z;", "}"])


def _from_float(name: str, source: Type, target: Type) -> str:
    """Truncated: the mantissa shifted into place, saturated by its exponent."""
    bits, words, f = target.bits, target.bits // 32, source.name.lower()
    limit = bits - target.is_signed
    if source is Type.F32:
        high, whole, mantissa = "bitcast<u32>(x)", "vec2<u32>((high & 0x7fffffu) | 0x800000u, 0u)", 23
        exponent = "i32((high >> 23u) & 255u) - 127"
        largest = 128
    else:
        high, whole, mantissa = "bits_of_f64(x).y", "vec2<u32>(bits_of_f64(x).x, (high & 0xfffffu) | 0x100000u)", 52
        exponent = "i32((high >> 20u) & 2047u) - 1023"
        largest = 1024
    none = "e < 0" if target.is_signed else "e < 0 || negative"
    beyond = f"for (var k = 0u; k < {words}u; k += 1u) {{ z.w[k] = 0xffffffffu; }}"
    if target.is_signed:
        beyond = (
            f"for (var k = 0u; k < {words}u; k += 1u) {{ z.w[k] = select(0xffffffffu, 0u, negative); }}\n"
            f"    z.w[{words - 1}] ^= 0x80000000u;"
        )
    end = f"  if (negative) {{ return neg_u{bits}(z); }}\n" * target.is_signed
    return f"""\
fn {name}(x: {f}) -> w{bits} {{
  var z = w{bits}();
  let high = {high};
  let negative = (high >> 31u) != 0u;
  let e = {exponent};
  if (is_nan_{f}(x) || {none}) {{ return z; }}
  if (e >= {min(limit, largest)}) {{
    {beyond}
    return z;
  }}
  let whole = {whole};
  if (e <= {mantissa}) {{
    let found = shr_u64(whole, u32({mantissa} - e));
    z.w[0] = found.x;
    z.w[1] = found.y;
  }} else {{
    let by = u32(e - {mantissa});
    let at = by >> 5u;
    let s = by & 31u;
    let low = shl_64(whole, s);
    z.w[at] = low.x;
    if (at + 1u < {words}u) {{ z.w[at + 1u] = low.y; }}
    if (s > 0u && at + 2u < {words}u) {{ z.w[at + 2u] = whole.y >> (32u - s); }}
  }}
{end}  return z;
}}"""


def _to_float(name: str, source: Type, target: Type) -> str:
    """The top 64 bits, the rest folded into the last one, rounded and scaled by a power of two."""
    bits, words, f = source.bits, source.bits // 32, target.name.lower()
    negative = f"(a.w[{words - 1}] >> 31u) != 0u" if source.is_signed else "false"
    absolute = f"abs_i{bits}(a)" if source.is_signed else "a"
    if target is Type.F32:
        rounded = "let found = packed_f32(0u, top.y | select(0u, 1u, top.x != 0u || lost), 32 * k - i32(s) + 32);"
    else:
        rounded = """\
let near = bits_of_f64(u64_to_f64(top | vec2<u32>(select(0u, 1u, lost), 0u)));
  let found = f64_of_bits(vec2<u32>(near.x, near.y + u32((32 * k - i32(s)) << 20u)));"""
    return f"""\
fn {name}(a: w{bits}) -> {f} {{
  let negative = {negative};
  var x = {absolute};
  var k = {words - 1};
  while (k > 0 && x.w[k] == 0u) {{ k -= 1; }}
  if (x.w[k] == 0u) {{ return {f}(0); }}
  let s = countLeadingZeros(x.w[k]);
  var top = vec2<u32>(0u, x.w[k]);
  var below = 0u;
  if (k > 0) {{ top.x = x.w[k - 1]; }}
  if (k > 1) {{ below = x.w[k - 2]; }}
  top = shl_64(top, s);
  var lost = (below << s) != 0u;
  if (s > 0u) {{ top.x |= below >> (32u - s); }}
  for (var j = 0; j < k - 2; j += 1) {{ lost = lost || x.w[j] != 0u; }}
  k -= 1;
  {rounded}
  return select(found, -found, negative);
}}"""
