"""Integers of 128 to 4096 bits as structures of 64-bit words, for languages that have none: functions in C.

Comes in: names of functions that a kernel calls. Goes out: their text, with what they call themselves. A value is
`wN`, N bits with or without a sign: the function knows. All results wrap, conversions from floats saturate.
"""

from __future__ import annotations

import re

from eshkol.atlas.types import Type

OPERATIONS = frozenset({
    "ADD", "SUB", "MUL", "DIV", "REM", "FMA", "MIN", "MAX", "ABS", "NEG", "AND", "OR", "XOR", "NOT", "SHL", "SHR",
})  # fmt: skip
_NAME = re.compile(r"\b(?:add|sub|mul|div|rem|divided|min|max|abs|neg|and|or|xor|not|shl|shr|compare|zero)_[iu]\d+\b")


def function(operation: str, ty: Type) -> str:
    """The name of an operation's function."""
    return f"{operation.lower()}_{ty.name.lower()}"


def from_word(source: Type, target: Type) -> str:
    """The function that makes an integer of 64 bits or fewer, extended to an unsigned word, a wide one."""
    return f"from_{'i64' if source.is_signed else 'u64'}_{target.name.lower()}"


def conversion(source: Type, target: Type) -> str:
    """The function between a wide integer and another, or a float."""
    return f"from_{source.name.lower()}_{target.name.lower()}"


def constant(ty: Type, value: int | float) -> str:
    """A wide integer as it is written."""
    rest = int(value) & ((1 << ty.bits) - 1)
    words = [f"{hex(rest >> 64 * k & (1 << 64) - 1)}UL" for k in range(ty.bits // 64)]
    while len(words) > 1 and words[-1] == "0x0UL":
        words.pop()
    return f"(w{ty.bits}){{{{{', '.join(words)}}}}}"


def texts(names: list[str]) -> list[str]:
    """The types and functions of these names, each after what it calls."""
    found: dict[str, str] = {}
    widths: set[int] = set()

    def add(name: str) -> None:
        if name in found:
            return
        text = _text(name)
        for inner in dict.fromkeys(_NAME.findall(text)):
            if inner != name:
                add(inner)
        found[name] = text
        widths.update(int(bits) for bits in re.findall(r"\bw(\d+)\b", text))

    for name in names:
        add(name)
    return [*(structure(bits) for bits in sorted(widths)), *found.values()]


def structure(bits: int) -> str:
    """The type of so many bits."""
    return f"typedef struct {{ ulong w[{bits // 64}]; }} w{bits};"


def _text(name: str) -> str:
    operation, *types = name.split("_")
    source = Type[types[0].upper()]
    target = Type[types[1].upper()] if len(types) > 1 else source
    if operation == "from":
        return _conversion(name, source, target)
    words = source.bits // 64
    sign = "i" if source.is_signed else "u"
    negative = f"a.w[{words - 1}] >> 63" if source.is_signed else "0"
    template = _FUNCTIONS[operation] if operation not in _SIGNED or source.is_unsigned else _SIGNED[operation]
    bits = source.bits
    for key, value in (("$negative", negative), ("$name", name), ("$t", f"w{bits}"), ("$n", str(words)),
                       ("$s", f"{sign}{bits}"), ("$u", f"u{bits}"), ("$bits", str(bits))):  # fmt: skip
        template = template.replace(key, value)
    return template


def _conversion(name: str, source: Type, target: Type) -> str:
    if source.is_float:
        return _from_float(name, target)
    words = source.bits // 64
    if target.is_float:
        return _to_float(name, source, target)
    count = target.bits // 64
    given = "ulong a" if words == 1 else f"w{source.bits} a"
    lowest = [f"z.w[{k}] = {'a' if words == 1 else f'a.w[{k}]'};" for k in range(min(words, count))]
    top = "a" if words == 1 else f"a.w[{words - 1}]"
    fill = f"0 - ({top} >> 63)" if source.is_signed else "0"
    rest = f" for (int k = {words}; k < {count}; ++k) z.w[k] = {fill};" if count > words else ""
    return f"w{target.bits} {name}({given}) {{ w{target.bits} z; {' '.join(lowest)}{rest} return z; }}"


def _from_float(name: str, target: Type) -> str:
    """A double, truncated: its mantissa shifted into place, saturated by its exponent."""
    words, bits = target.bits // 64, target.bits
    limit = min(bits - target.is_signed, 1024)  # the exponent of infinity
    if target.is_signed:
        beyond = (f"for (int k = 0; k < {words}; ++k) z.w[k] = negative ? 0 : ~0UL;"
                  f" z.w[{words - 1}] ^= 1UL << 63;")  # fmt: skip
        end = f"return negative ? neg_i{bits}(z) : z;"
    else:
        beyond = f"for (int k = 0; k < {words}; ++k) z.w[k] = ~0UL;"
        end = "return z;"
    none = "e < 0" if target.is_signed else "e < 0 || negative"
    return (
        f"w{bits} {name}(double x) {{\n"
        f"  w{bits} z = {{{{0}}}};\n"
        f"  const ulong b = as_ulong(x), m = (b & 0xfffffffffffffUL) | 0x10000000000000UL;\n"
        f"  const int e = (int)(b >> 52 & 2047) - 1023;\n"
        f"  const bool negative = b >> 63;\n"
        f"  if (x != x || {none}) return z;\n"
        f"  if (e >= {limit}) {{ {beyond} return z; }}\n"
        f"  if (e <= 52) {{ z.w[0] = m >> (52 - e); }}\n"
        f"  else {{\n"
        f"    const int k = (e - 52) >> 6, s = (e - 52) & 63;\n"
        f"    z.w[k] = m << s;\n"
        f"    if (s > 11 && k + 1 < {words}) z.w[k + 1] = m >> (64 - s);\n"
        f"  }}\n"
        f"  {end}\n}}"
    )


def _to_float(name: str, source: Type, target: Type) -> str:
    """The top 64 bits, the rest folded into the last one, converted and scaled by a power of two."""
    words, bits = source.bits // 64, source.bits
    real = "double" if target is Type.F64 else "float"
    start = (
        f"const bool negative = a.w[{words - 1}] >> 63; if (negative) a = neg_i{bits}(a);" if source.is_signed else ""
    )
    end = "negative ? -found : found" if source.is_signed else "found"
    return (
        f"{real} {name}(w{bits} a) {{\n"
        f"  {start}\n"
        f"  int k = {words - 1};\n"
        f"  while (k > 0 && a.w[k] == 0) --k;\n"
        f"  if (a.w[k] == 0) return 0;\n"
        f"  const int s = (int)clz(a.w[k]);\n"
        f"  ulong top = a.w[k] << s;\n"
        f"  bool rest = 0;\n"
        f"  if (k > 0) {{\n"
        f"    if (s > 0) top |= a.w[k - 1] >> (64 - s);\n"
        f"    rest = (a.w[k - 1] << s) != 0;\n"
        f"    for (int j = 0; j < k - 1; ++j) rest = rest || a.w[j] != 0;\n"
        f"  }}\n"
        f"  const {real} found = ldexp(({real})(top | (ulong)rest), 64 * k - s);\n"
        f"  return {end};\n}}"
    )


def _each(expression: str, given: str = "$t a, $t b") -> str:
    return f"$t $name({given}) {{ $t z; for (int k = 0; k < $n; ++k) z.w[k] = {expression}; return z; }}"


_FUNCTIONS = {
    "and": _each("a.w[k] & b.w[k]"),
    "or": _each("a.w[k] | b.w[k]"),
    "xor": _each("a.w[k] ^ b.w[k]"),
    "not": _each("~a.w[k]", "$t a"),
    "add": """\
$t $name($t a, $t b) {
  $t z;
  ulong carry = 0;
  for (int k = 0; k < $n; ++k) {
    const ulong s = a.w[k] + b.w[k];
    z.w[k] = s + carry;
    carry = (ulong)(s < a.w[k]) | (ulong)(z.w[k] < s);
  }
  return z;
}""",
    "sub": """\
$t $name($t a, $t b) {
  $t z;
  ulong borrow = 0;
  for (int k = 0; k < $n; ++k) {
    const ulong s = a.w[k] - b.w[k];
    z.w[k] = s - borrow;
    borrow = (ulong)(a.w[k] < b.w[k]) | (ulong)(s < borrow);
  }
  return z;
}""",
    "neg": "$t $name($t a) { const $t z = {{0}}; return sub_$u(z, a); }",
    "abs": "$t $name($t a) { return $negative ? neg_$s(a) : a; }",
    "zero": "bool $name($t a) { ulong any = 0; for (int k = 0; k < $n; ++k) any |= a.w[k]; return any == 0; }",
    "compare": """\
int $name($t a, $t b) {
  for (int k = $n - 1; k >= 0; --k)
    if (a.w[k] != b.w[k]) return a.w[k] < b.w[k] ? -1 : 1;
  return 0;
}""",
    "min": "$t $name($t a, $t b) { return compare_$s(b, a) < 0 ? b : a; }",
    "max": "$t $name($t a, $t b) { return compare_$s(b, a) > 0 ? b : a; }",
    "mul": """\
$t $name($t a, $t b) {
  $t z = {{0}};
  for (int i = 0; i < $n; ++i) {
    ulong carry = 0;
    for (int j = 0; i + j < $n; ++j) {
      const ulong low = a.w[i] * b.w[j], s = z.w[i + j] + low, t = s + carry;
      carry = mul_hi(a.w[i], b.w[j]) + (ulong)(s < low) + (ulong)(t < s);
      z.w[i + j] = t;
    }
  }
  return z;
}""",
    "shl": """\
$t $name($t a, $t b) {
  $t z;
  const int by = (int)(b.w[0] & ($bits - 1)), far = by >> 6, s = by & 63;
  for (int k = $n - 1; k >= 0; --k) {
    ulong x = k >= far ? a.w[k - far] << s : 0;
    if (s > 0 && k > far) x |= a.w[k - far - 1] >> (64 - s);
    z.w[k] = x;
  }
  return z;
}""",
    "shr": """\
$t $name($t a, $t b) {
  $t z;
  const ulong fill = 0 - (ulong)($negative);
  const int by = (int)(b.w[0] & ($bits - 1)), far = by >> 6, s = by & 63;
  for (int k = 0; k < $n; ++k) {
    const ulong low = k + far < $n ? a.w[k + far] : fill, high = k + far + 1 < $n ? a.w[k + far + 1] : fill;
    z.w[k] = s > 0 ? low >> s | high << (64 - s) : low;
  }
  return z;
}""",
    "divided": """\
$t $name($t a, $t b, bool remainder) {
  $t q = {{0}}, r = {{0}};
  for (int i = $bits - 1; i >= 0; --i) {
    const bool beyond = r.w[$n - 1] >> 63;
    for (int k = $n - 1; k > 0; --k) r.w[k] = r.w[k] << 1 | r.w[k - 1] >> 63;
    r.w[0] = r.w[0] << 1 | (a.w[i >> 6] >> (i & 63) & 1);
    if (beyond || compare_$u(r, b) >= 0) {
      r = sub_$u(r, b);
      q.w[i >> 6] |= 1UL << (i & 63);
    }
  }
  return remainder ? r : q;
}""",
    "div": "$t $name($t a, $t b) { return divided_$u(a, b, 0); }",
    "rem": "$t $name($t a, $t b) { return divided_$u(a, b, 1); }",
}
_SIGNED = {
    "compare": """\
int $name($t a, $t b) {
  const ulong top = 1UL << 63;
  a.w[$n - 1] ^= top;
  b.w[$n - 1] ^= top;
  return compare_$u(a, b);
}""",
    "div": """\
$t $name($t a, $t b) {
  const bool turned = (a.w[$n - 1] ^ b.w[$n - 1]) >> 63;
  const $t q = divided_$u(abs_$s(a), abs_$s(b), 0);
  return turned ? neg_$s(q) : q;
}""",
    "rem": """\
$t $name($t a, $t b) {
  const $t r = divided_$u(abs_$s(a), abs_$s(b), 1);
  return $negative ? neg_$s(r) : r;
}""",
}
