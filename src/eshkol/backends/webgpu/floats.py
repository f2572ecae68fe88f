"""What floats need beside WGSL's own operators: rounding of 16 bits, conversions, and what drivers do not promise.

WGSL lets a driver put sums and products of floats together, take them in another order, and believe that there are no
NaNs. Where numbers are to be those of other machines each result passes `exact_*`: its bits are changed by a word that
is zero, which only the launch knows. What comes out is what was rounded, and no driver knows that. Truths of
comparisons pass `truth_of` likewise, and NaNs are known by their bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from eshkol.atlas.types import Type

HALVES: Mapping[str, str] = {
    "f16_to_f32": """\
fn f16_to_f32(h: u32) -> f32 {
  let s = (h & 0x8000u) << 16u;
  let m = h & 0x7fffu;
  let small = bitcast<u32>(f32(m) * 0x1p-24f);
  let bits = select(select((m << 13u) + 0x38000000u, small, m < 0x400u), (m << 13u) | 0x7f800000u, m >= 0x7c00u);
  return bitcast<f32>(bits | s);
}""",
    "f32_to_f16": """\
fn f32_to_f16(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let s = (b >> 16u) & 0x8000u;
  let m = b & 0x7fffffffu;
  if (m > 0x7f800000u) { return s | 0x7e00u; }
  if (m >= 0x477ff000u) { return s | 0x7c00u; }
  if (m >= 0x38800000u) { return s | ((m + 0xfffu + ((m >> 13u) & 1u) - 0x38000000u) >> 13u); }
  if (m < 0x33000000u) { return s; }
  let by = 126u - (m >> 23u);
  let whole = (m & 0x7fffffu) | 0x800000u;
  let kept = whole >> by;
  let rest = whole & ((1u << by) - 1u);
  let half = 1u << (by - 1u);
  return s | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) != 0u)));
}""",
    "bf16_to_f32": "fn bf16_to_f32(h: u32) -> f32 { return bitcast<f32>(h << 16u); }",
    "f32_to_bf16": """\
fn f32_to_bf16(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  let rounded = (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
  return select(rounded, (b >> 16u) | 0x40u, (b & 0x7fffffffu) > 0x7f800000u);
}""",
    "f64_to_odd": """\
fn f64_to_odd(x: f64) -> f32 {
  let f = f32(x);
  let b = bitcast<u32>(f);
  let same = all(bits_of_f64(f64(f)) == bits_of_f64(x));
  if (same || is_nan_f64(x) || (b & 0x7f800000u) == 0x7f800000u || (b & 1u) != 0u) { return f; }
  let far = lt_u64(bits_of_f64(x) & vec2<u32>(0xffffffffu, 0x7fffffffu), bits_of_f64(abs(f64(f))));
  return bitcast<f32>(select(b, b - 1u, far) | 1u);
}""",
}
_CLASS = """\
fn resonance_class(x: u32) -> u32 {
  let low = (x & 1u) * 48u + ((x >> 1u) & 1u) * 24u + ((x >> 2u) & 1u) * 12u + ((x >> 3u) & 1u) * 6u;
  return ((x >> 5u) & 3u) % 3u + low + ((x >> 4u) & 1u) * 3u;
}"""
_FUSED = """\
fn fma_f32(x: f32, y: f32, z: f32) -> f32 {
  let a = bitcast<u32>(x);
  let b = bitcast<u32>(y);
  let c = bitcast<u32>(z);
  let sign = (a ^ b) & 0x80000000u;
  let left = parts_f32(a);
  let right = parts_f32(b);
  let added = parts_f32(c);
  if (left.y == 255 || right.y == 255 || left.x == 0 || right.x == 0) { return exact_f32(exact_f32(x * y) + z); }
  if (added.y == 255) { return z; }
  if (added.x == 0) { return exact_f32(x * y); }
  var p = shl_64(product_u32(u32(left.x), u32(right.x)), 14u);
  var q = shl_64(vec2<u32>(u32(added.x), 0u), 38u);
  var e = left.y + right.y - 314;
  let f = added.y - 188;
  if (e >= f) {
    q = jammed_64(q, u32(e - f));
  } else {
    p = jammed_64(p, u32(f - e));
    e = f;
  }
  var s = sign;
  if (sign == (c & 0x80000000u)) {
    p = add_64(p, q);
  } else if (lt_u64(p, q)) {
    p = sub_64(q, p);
    s = sign ^ 0x80000000u;
  } else {
    p = sub_64(p, q);
  }
  if (all(p == vec2<u32>())) { return bitcast<f32>(given.zero); }
  let n = zeros_64(p);
  p = shl_64(p, n);
  return packed_f32(s, p.y | select(0u, 1u, p.x != 0u), e + 32 - i32(n));
}"""
# With doubles it is short: the product is exact, and the sum is rounded to odd, of which one rounding more is right.
FUSED_BY_DOUBLES = """\
fn fma_f32(x: f32, y: f32, z: f32) -> f32 {
  let p = exact_f64(f64(x) * f64(y));
  let q = f64(z);
  let s = exact_f64(p + q);
  let b = bitcast<u64>(s);
  if ((b & 0x7ff0000000000000lu) == 0x7ff0000000000000lu) { return f32(s); }
  let r = exact_f64(s - p);
  let e = bitcast<u64>(exact_f64(exact_f64(p - exact_f64(s - r)) + exact_f64(q - r)));
  let exactly = (e & 0x7ffffffffffffffflu) == 0lu || (b & 1lu) != 0lu;
  let odd = select(b - 1lu, b + 1lu, ((e ^ b) >> 63u) == 0lu);
  return f32(bitcast<f64>(select(odd, b, exactly)));
}"""
_PARTS = """\
fn parts_f32(b: u32) -> vec2<i32> {
  let e = i32((b >> 23u) & 255u);
  let m = b & 0x7fffffu;
  if (e != 0) { return vec2<i32>(i32(m | 0x800000u), e); }
  if (m == 0u) { return vec2<i32>(); }
  let by = countLeadingZeros(m) - 8u;
  return vec2<i32>(i32(m << by), 1 - i32(by));
}"""
_PACKED = """\
fn packed_f32(sign: u32, top: u32, e: i32) -> f32 {
  let biased = e + 158;
  if (biased >= 255) { return bitcast<f32>(sign | (0x7f800000u ^ given.zero)); }
  var by = 8u;
  if (biased < 1) { by = u32(9 - max(biased, -40)); }
  if (by > 32u) { return bitcast<f32>(sign); }
  var kept = 0u;
  var rest = top;
  if (by < 32u) {
    kept = top >> by;
    rest = top & ((1u << by) - 1u);
  }
  let half = 1u << (by - 1u);
  kept += select(0u, 1u, rest > half || (rest == half && (kept & 1u) != 0u));
  return bitcast<f32>(sign | (kept + (u32(max(biased - 1, 0)) << 23u)));
}"""
_QUOTIENT = """\
fn div_f32(x: f32, y: f32) -> f32 {
  let a = bitcast<u32>(x);
  let b = bitcast<u32>(y);
  let left = parts_f32(a);
  let right = parts_f32(b);
  if (left.y == 255 || right.y == 255 || left.x == 0 || right.x == 0) { return exact_f32(x / y); }
  var rest = u32(left.x);
  var found = 0u;
  for (var k = 0; k < 27; k += 1) {
    found <<= 1u;
    if (rest >= u32(right.x)) {
      rest -= u32(right.x);
      found |= 1u;
    }
    rest <<= 1u;
  }
  let n = countLeadingZeros(found);
  return packed_f32((a ^ b) & 0x80000000u, (found << n) | select(0u, 1u, rest != 0u), left.y - right.y - 26 - i32(n));
}"""
_ROOT = """\
fn sqrt_f32(x: f32) -> f32 {
  let a = bitcast<u32>(x);
  let p = parts_f32(a);
  if (p.y == 255 || p.x == 0 || (a >> 31u) != 0u) { return exact_f32(sqrt(x)); }
  let odd = u32((p.y + 1) & 1);
  var rest = vec2<u32>();
  var found = 0u;
  let square = shl_64(vec2<u32>(u32(p.x), 0u), 27u + odd);
  for (var k = 26u; k < 27u; k -= 1u) {
    let two = shr_u64(square, 2u * k).x & 3u;
    rest = shl_64(rest, 2u) | vec2<u32>(two, 0u);
    let next = vec2<u32>((found << 2u) | 1u, found >> 30u);
    found <<= 1u;
    if (!lt_u64(rest, next)) {
      rest = sub_64(rest, next);
      found |= 1u;
    }
  }
  let n = countLeadingZeros(found);
  let e = (p.y - 177 - i32(odd)) / 2;
  return packed_f32(0u, (found << n) | select(0u, 1u, any(rest != vec2<u32>())), e - i32(n));
}"""
_REMAINDER = """\
fn fmod_$f(x: $f, y: $f) -> $f {
  let sign = $bits(x) & ($one << $last);
  let top = $one << $mantissa;
  var a = $bits(x) ^ sign;
  var b = $bits(y) & ~($one << $last);
  let infinity = $infinity;
  if (a >= infinity || b > infinity || b == $none) { return $real($nan); }
  if (a < b) { return x; }
  var p = i32(a >> $mantissa);
  var q = i32(b >> $mantissa);
  a = select(a, (a & (top - $one)) | top, p != 0);
  b = select(b, (b & (top - $one)) | top, q != 0);
  p = max(p, 1);
  q = max(q, 1);
  while (a < top) { a <<= 1u; p -= 1; }
  while (b < top) { b <<= 1u; q -= 1; }
  for (; p > q; p -= 1) { a = select(a, a - b, a >= b) << 1u; }
  a = select(a, a - b, a >= b);
  if (a == $none) { return $real(sign); }
  while (a < top) { a <<= 1u; q -= 1; }
  if (q < 1) { return $real(sign | (a >> u32(1 - q))); }
  return $real(sign | (a - top) | ($word(q) << $mantissa));
}"""


def _remainder(short: str) -> str:
    """An exact remainder, on bits."""
    if short == "f32":
        values = {"bits": "bitcast<u32>", "real": "bitcast<f32>", "one": "1u", "none": "0u", "last": "31u",
                  "mantissa": "23u", "infinity": "0x7f800000u", "nan": "(0x7fc00000u ^ given.zero)",
                  "word": "u32"}  # fmt: skip
    else:
        values = {"bits": "bitcast<u64>", "real": "bitcast<f64>", "one": "1lu", "none": "0lu", "last": "63u",
                  "mantissa": "52u", "infinity": "0x7ff0000000000000lu",
                  "nan": "(0x7ff8000000000000lu ^ u64(given.zero))", "word": "u64"}  # fmt: skip
    text = _REMAINDER
    for key, value in {**values, "f": short}.items():
        text = text.replace(f"${key}(", f"{value}(") if key in ("bits", "real", "word") else text
    for key in ("infinity", "mantissa", "none", "nan", "one", "last"):
        text = text.replace(f"${key}", values[key])
    return text.replace("$f", short)


def _least(short: str) -> dict[str, str]:
    """The lesser and the greater of two, the number where one is NaN."""
    return {
        f"{name}_{short}": (
            f"fn {name}_{short}(a: {short}, b: {short}) -> {short} {{\n"
            f"  if (is_nan_{short}(a)) {{ return b; }}\n"
            f"  if (is_nan_{short}(b)) {{ return a; }}\n"
            f"  return select(b, a, truth_of(a {sign} b));\n}}"
        )
        for name, sign in (("min", "<"), ("max", ">"))
    }


def _to_integer(source: Type, target: Type) -> str:
    """Truncated and saturated, on bits; NaN is 0."""
    f, word = source.name.lower(), "i32" if target.is_signed else "u32"
    wide = target.bits == 64
    result = "vec2<u32>" if wide else word
    name = f"{f}_to_{target.name.lower()}"
    bias, mantissa = (127, 23) if source is Type.F32 else (1023, 52)
    limit = target.bits - target.is_signed
    high = "bitcast<u32>(x)" if source is Type.F32 else "bits.y"
    exponent = f"i32(({high} >> {23 if source is Type.F32 else 20}u) & {255 if source is Type.F32 else 2047}u) - {bias}"
    if wide:
        most, least, none = (
            f"vec2<u32>({v & 0xFFFFFFFF}u, {v >> 32 & 0xFFFFFFFF}u)" for v in (target.max_value, target.min_value, 0)
        )
    else:
        most, least, none = str(target.max_value), f"{word}({target.min_value})", "0"
    if target.is_unsigned:
        lines = [f"  if (is_nan_{f}(x) || e < 0 || negative) {{ return {none}; }}",
                 f"  if (e >= {limit}) {{ return {most}; }}"]  # fmt: skip
    else:
        lines = [f"  if (is_nan_{f}(x) || e < 0) {{ return {none}; }}",
                 f"  if (e >= {limit}) {{ return select({most}, {least}, negative); }}"]  # fmt: skip
    whole = (
        "vec2<u32>((bitcast<u32>(x) & 0x7fffffu) | 0x800000u, 0u)"
        if source is Type.F32
        else "vec2<u32>(bits.x, (bits.y & 0xfffffu) | 0x100000u)"
    )
    lines.append(f"  let whole = {whole};")
    lines.append("  var found = vec2<u32>();")
    lines.append(f"  if (e > {mantissa}) {{ found = shl_64(whole, u32(e - {mantissa})); }}")
    lines.append(f"  else {{ found = shr_u64(whole, u32({mantissa} - e)); }}")
    if wide:
        lines.append(f"  return {'select(found, neg_64(found), negative)' if target.is_signed else 'found'};")
    else:
        lines.append(f"  return {'select(i32(found.x), -i32(found.x), negative)' if target.is_signed else 'found.x'};")
    start = [] if source is Type.F32 else ["  let bits = bits_of_f64(x);"]
    head = [f"fn {name}(x: {f}) -> {result} {{", *start, f"  let negative = ({high} >> 31u) != 0u;",
            f"  let e = {exponent};"]  # fmt: skip
    return "\n".join([*head, *lines, "}"])


_LONGS = {
    "u64_to_f32": """\
fn u64_to_f32(a: vec2<u32>) -> f32 {
  if (a.y == 0u) { return f32(a.x); }
  let n = zeros_64(a);
  let top = shl_64(a, n);
  return packed_f32(0u, top.y | select(0u, 1u, top.x != 0u), 32 - i32(n));
}""",
    "i64_to_f32": """\
fn i64_to_f32(a: vec2<u32>) -> f32 {
  let found = u64_to_f32(abs_i64(a));
  return select(found, -found, (a.y >> 31u) != 0u);
}""",
}
_DOUBLES = {
    "bits_of_f64": """\
fn bits_of_f64(x: f64) -> vec2<u32> {
  let b = bitcast<u64>(x);
  return vec2<u32>(u32(b & 0xfffffffflu), u32(b >> 32u));
}""",
    "f64_of_bits": "fn f64_of_bits(b: vec2<u32>) -> f64 { return bitcast<f64>(u64(b.x) | (u64(b.y) << 32u)); }",
    "is_nan_f64": """\
fn is_nan_f64(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu; }""",
    "exact_f64": "fn exact_f64(x: f64) -> f64 { return bitcast<f64>(bitcast<u64>(x) ^ u64(given.zero)); }",
    "u64_to_f64": "fn u64_to_f64(a: vec2<u32>) -> f64 { return f64(u64(a.x) | (u64(a.y) << 32u)); }",
    "i64_to_f64": "fn i64_to_f64(a: vec2<u32>) -> f64 { return f64(bitcast<i64>(u64(a.x) | (u64(a.y) << 32u))); }",
}
_FUSED_DOUBLE = """\
fn fma_f64(x: f64, y: f64, z: f64) -> f64 {
  let c = bitcast<u64>(z);
  let sign = (bitcast<u64>(x) ^ bitcast<u64>(y)) & 0x8000000000000000lu;
  let left = parts_f64(bitcast<u64>(x));
  let right = parts_f64(bitcast<u64>(y));
  let added = parts_f64(c);
  if (left.e == 2047 || right.e == 2047 || left.m == 0lu || right.m == 0lu) { return exact_f64(exact_f64(x * y) + z); }
  if (added.e == 2047) { return z; }
  if (added.m == 0lu) { return exact_f64(x * y); }
  var p = left_w128(product_u64(left.m, right.m), 20u);
  var q = left_w128(Long128(added.m, 0lu), 73u);
  var e = left.e + right.e - 2170;
  let f = added.e - 1148;
  if (e >= f) {
    q = jammed_w128(q, u32(e - f));
  } else {
    p = jammed_w128(p, u32(f - e));
    e = f;
  }
  var s = sign;
  if (sign == (c & 0x8000000000000000lu)) {
    let low = p.low + q.low;
    p = Long128(low, p.high + q.high + select(0lu, 1lu, low < p.low));
  } else {
    if (p.high < q.high || (p.high == q.high && p.low < q.low)) {
      let other = p;
      p = q;
      q = other;
      s = sign ^ 0x8000000000000000lu;
    }
    p = Long128(p.low - q.low, p.high - q.high - select(0lu, 1lu, p.low < q.low));
  }
  if (p.low == 0lu && p.high == 0lu) { return bitcast<f64>(u64(given.zero)); }
  let n = select(zeros_u64(p.high), 64u + zeros_u64(p.low), p.high == 0lu);
  p = left_w128(p, n);
  return packed_f64(s, p.high | select(0lu, 1lu, p.low != 0lu), e + 64 - i32(n));
}"""
_DOUBLE_PARTS = {
    "parts_f64": """\
struct Parts64 { m: u64, e: i32 }
fn parts_f64(b: u64) -> Parts64 {
  let e = i32((b >> 52u) & 2047lu);
  let m = b & 0xffffffffffffflu;
  if (e != 0) { return Parts64(m | 0x10000000000000lu, e); }
  if (m == 0lu) { return Parts64(0lu, 0); }
  let by = zeros_u64(m) - 11u;
  return Parts64(m << by, 1 - i32(by));
}""",
    "zeros_u64": "fn zeros_u64(a: u64) -> u32 { return zeros_64(vec2<u32>(u32(a & 0xfffffffflu), u32(a >> 32u))); }",
    "product_u64": """\
struct Long128 { low: u64, high: u64 }
fn product_u64(a: u64, b: u64) -> Long128 {
  let c = a & 0xfffffffflu;
  let d = a >> 32u;
  let e = b & 0xfffffffflu;
  let f = b >> 32u;
  let low = c * e;
  let middle = (low >> 32u) + ((c * f) & 0xfffffffflu) + ((d * e) & 0xfffffffflu);
  let high = d * f + ((c * f) >> 32u) + ((d * e) >> 32u) + (middle >> 32u);
  return Long128((low & 0xfffffffflu) | (middle << 32u), high);
}""",
    "left_w128": """\
fn left_w128(a: Long128, by: u32) -> Long128 {
  if (by == 0u) { return a; }
  if (by >= 64u) { return Long128(0lu, a.low << (by - 64u)); }
  return Long128(a.low << by, (a.high << by) | (a.low >> (64u - by)));
}""",
    "jammed_w128": """\
fn jammed_w128(a: Long128, by: u32) -> Long128 {
  if (by == 0u) { return a; }
  if (by >= 128u) { return Long128(select(0lu, 1lu, a.low != 0lu || a.high != 0lu), 0lu); }
  let rest = left_w128(a, 128u - by);
  let lost = select(0lu, 1lu, rest.low != 0lu || rest.high != 0lu);
  if (by >= 64u) { return Long128((a.high >> (by - 64u)) | lost, 0lu); }
  return Long128((a.low >> by) | (a.high << (64u - by)) | lost, a.high >> by);
}""",
    "packed_f64": """\
fn packed_f64(sign: u64, top: u64, e: i32) -> f64 {
  let biased = e + 1086;
  if (biased >= 2047) { return bitcast<f64>(sign | (0x7ff0000000000000lu ^ u64(given.zero))); }
  var by = 11u;
  if (biased < 1) { by = u32(12 - max(biased, -60)); }
  if (by > 64u) { return bitcast<f64>(sign); }
  var kept = 0lu;
  var rest = top;
  if (by < 64u) {
    kept = top >> by;
    rest = top & ((1lu << by) - 1lu);
  }
  let half = 1lu << (by - 1u);
  kept += select(0lu, 1lu, rest > half || (rest == half && (kept & 1lu) != 0lu));
  return bitcast<f64>(sign | (kept + (u64(max(biased - 1, 0)) << 52u)));
}""",
}
FUNCTIONS: Mapping[str, str] = {
    **HALVES,
    **_DOUBLE_PARTS,
    **_LONGS,
    **_DOUBLES,
    "resonance_class": _CLASS,
    "truth_of": "fn truth_of(x: bool) -> bool { return (select(0u, 1u, x) ^ given.zero) != 0u; }",
    "bits_f32": "fn bits_f32(b: u32) -> f32 { return bitcast<f32>(b ^ given.zero); }",
    "exact_f32": "fn exact_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ given.zero); }",
    "is_nan_f32": "fn is_nan_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }",
    "fma_f32": _FUSED, "fma_f64": _FUSED_DOUBLE, "parts_f32": _PARTS, "packed_f32": _PACKED,
    "div_f32": _QUOTIENT, "sqrt_f32": _ROOT,
    "fmod_f32": _remainder("f32"), "fmod_f64": _remainder("f64"),
    **_least("f32"),
    **_least("f64"),
    **{
        f"{source.name.lower()}_to_{target.name.lower()}": _to_integer(source, target)
        for source in (Type.F32, Type.F64)
        for target in Type
        if target.is_integer and not target.is_wide
    },
}  # fmt: skip
