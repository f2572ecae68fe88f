"""Functions that code for WebAssembly needs: products with sums rounded once, and arithmetic of 128 bits.

Comes in: which there are to be. Goes out: LLVM text. The sum of a product of two F32 is taken in F64 and rounded to
odd, so that rounding it to F32 rounds once; of F64 it is taken in integers, which is exact, and slow. Where an engine's
relaxed products are known to be rounded once, they are used instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from eshkol.llvm.builtins import CONVERSIONS, DIVISION, DIVISION_FUNCTION
from eshkol.llvm.text import vector

FUSED = "eshkol.fma"
EXTREMES = {"minimumnum": "olt", "maximumnum": "ogt"}  # → the comparison by which the first operand is chosen
REGISTER = 128  # bits of a vector
_NAMES = {32: "float", 64: "double"}


def fused_products(kinds: Iterable[tuple[int, int]], *, relaxed: bool) -> list[str]:
    """The functions `eshkol.fma.v4f32` … of so many lanes and bits, with what they need."""
    wanted = sorted(set(kinds))
    if relaxed:
        widths = sorted({bits for _, bits in wanted})
        return [*map(_relaxed_declaration, widths), *(_in_registers(lanes, bits) for lanes, bits in wanted)]
    found = [
        _single(lanes) if bits == 32 else _lane_by_lane(lanes) for lanes, bits in wanted if (lanes, bits) != (1, 64)
    ]
    if any(bits == 64 for _, bits in wanted):
        found.append(DOUBLE)
    return found


def extreme(name: str, lanes: int, bits: int) -> str:
    """A function as `eshkol.minimumnum.v4f32`: the lesser or greater of two floats, of a number and NaN the number.

    LLVM 22 writes code for it that gives NaN where the first one is. Which zero is the lesser is not defined.
    """
    kind, answers = vector(_NAMES[bits], lanes), vector("i1", lanes)
    return f"""\
define internal {kind} @eshkol.{name}.{_suffix(lanes, bits)}({kind} %a, {kind} %b) nounwind alwaysinline {{
  %first = fcmp {EXTREMES[name]} {kind} %a, %b
  %none = fcmp uno {kind} %b, %b
  %chosen = or {answers} %first, %none
  %r = select {answers} %chosen, {kind} %a, {kind} %b
  ret {kind} %r
}}"""


def _suffix(lanes: int, bits: int) -> str:
    return f"v{lanes}f{bits}" if lanes > 1 else f"f{bits}"


def _head(lanes: int, bits: int, attributes: str) -> str:
    kind = vector(_NAMES[bits], lanes)
    given = ", ".join(f"{kind} %{name}" for name in "abc")
    return f"define internal {kind} @{FUSED}.{_suffix(lanes, bits)}({given}) nounwind {attributes} {{"


def _relaxed_declaration(bits: int) -> str:
    kind = vector(_NAMES[bits], REGISTER // bits)
    return f"declare {kind} @llvm.wasm.relaxed.madd.{_suffix(REGISTER // bits, bits)}({kind}, {kind}, {kind})"


def _in_registers(lanes: int, bits: int) -> str:
    """By the engine's instruction, as often as vectors are longer than its own."""
    each, name = REGISTER // bits, _NAMES[bits]
    register, whole = vector(name, each), vector(name, lanes)
    lines = [_head(lanes, bits, "alwaysinline")]
    call = f"call {register} @llvm.wasm.relaxed.madd.{_suffix(each, bits)}"
    if lanes == 1:
        for x in "abc":
            lines.append(f"  %{x}0 = insertelement {register} zeroinitializer, {name} %{x}, i32 0")
        lines.append(f"  %r0 = {call}({register} %a0, {register} %b0, {register} %c0)")
        lines.append(f"  %r = extractelement {register} %r0, i32 0")
        return "\n".join([*lines, f"  ret {name} %r", "}"])
    parts = -(-lanes // each)
    for part in range(parts):
        places = [k if k < lanes else -1 for k in range(part * each, part * each + each)]
        mask = ", ".join("i32 poison" if k < 0 else f"i32 {k}" for k in places)
        for x in "abc":
            lines.append(f"  %{x}{part} = shufflevector {whole} %{x}, {whole} poison, <{each} x i32> <{mask}>")
        given = ", ".join(f"{register} %{x}{part}" for x in "abc")
        lines.append(f"  %r{part} = {call}({given})")
    joined, width = "%r0", each
    for part in range(1, parts):  # what was joined, and one more, widened to be as long
        wide = ", ".join(f"i32 {k}" if k < each else "i32 poison" for k in range(width))
        of = vector(name, width)
        lines.append(f"  %w{part} = shufflevector {register} %r{part}, {register} poison, <{width} x i32> <{wide}>")
        both = ", ".join(f"i32 {k}" for k in range(width + each))
        lines.append(f"  %j{part} = shufflevector {of} {joined}, {of} %w{part}, <{width + each} x i32> <{both}>")
        joined, width = f"%j{part}", width + each
    if width != lanes:
        first = ", ".join(f"i32 {k}" for k in range(lanes))
        of = vector(name, width)
        lines.append(f"  %r = shufflevector {of} {joined}, {of} poison, <{lanes} x i32> <{first}>")
        joined = "%r"
    return "\n".join([*lines, f"  ret {whole} {joined}", "}"])


def _single(lanes: int) -> str:
    """Of F32: the product is exact in F64; the sum is rounded to odd there, and once more."""
    f, d, i, b = (vector(t, lanes) for t in ("float", "double", "i64", "i1"))
    one, zero = ("1", "0.0") if lanes == 1 else ("splat (i64 1)", "zeroinitializer")
    none = "0" if lanes == 1 else "zeroinitializer"
    return f"""\
{_head(lanes, 32, "alwaysinline")}
  %da = fpext {f} %a to {d}
  %db = fpext {f} %b to {d}
  %y = fpext {f} %c to {d}
  %x = fmul {d} %da, %db
  %sum = fadd {d} %x, %y
  %xs = fsub {d} %sum, %y
  %ys = fsub {d} %sum, %xs
  %dx = fsub {d} %x, %xs
  %dy = fsub {d} %y, %ys
  %rest = fadd {d} %dx, %dy
  %bits = bitcast {d} %sum to {i}
  %inexact = fcmp one {d} %rest, {zero}
  %last = and {i} %bits, {one}
  %even = icmp eq {i} %last, {none}
  %adjust = and {b} %inexact, %even
  %up = fcmp ogt {d} %rest, {zero}
  %above = fcmp ogt {d} %sum, {zero}
  %differ = xor {b} %up, %above
  %more = add {i} %bits, {one}
  %less = sub {i} %bits, {one}
  %odd = select {b} %differ, {i} %less, {i} %more
  %chosen = select {b} %adjust, {i} %odd, {i} %bits
  %exact = bitcast {i} %chosen to {d}
  %r = fptrunc {d} %exact to {f}
  ret {f} %r
}}"""


def _lane_by_lane(lanes: int) -> str:
    kind = vector("double", lanes)
    lines, found = [_head(lanes, 64, "alwaysinline")], "poison"
    for k in range(lanes):
        lines += [f"  %{x}{k} = extractelement {kind} %{x}, i32 {k}" for x in "abc"]
        lines.append(f"  %r{k} = call double @{FUSED}.f64(double %a{k}, double %b{k}, double %c{k})")
        lines.append(f"  %i{k} = insertelement {kind} {found}, double %r{k}, i32 {k}")
        found = f"%i{k}"
    return "\n".join([*lines, f"  ret {kind} {found}", "}"])


# Of F64, in integers: the significands of product (106 bits) and summand (53 bits) are put into 256 bits so that the
# lesser one loses at most what a last bit that is set stands for as well. The result is rounded to as many bits as its
# exponent allows, ties to even.
DOUBLE = f"""\
{_head(1, 64, "noinline")}
entry:
  %ba = bitcast double %a to i64
  %bb = bitcast double %b to i64
  %bc = bitcast double %c to i64
  %ma = and i64 %ba, 9223372036854775807
  %mb = and i64 %bb, 9223372036854775807
  %mc = and i64 %bc, 9223372036854775807
  %za = icmp eq i64 %ma, 0
  %zb = icmp eq i64 %mb, 0
  %ia = icmp uge i64 %ma, 9218868437227405312
  %ib = icmp uge i64 %mb, 9218868437227405312
  %ic = icmp uge i64 %mc, 9218868437227405312
  %p0 = or i1 %za, %zb
  %p1 = or i1 %ia, %ib
  %p2 = or i1 %p0, %p1
  %plain = or i1 %p2, %ic
  br i1 %plain, label %simple, label %exact
simple:
  %sp = fmul double %a, %b
  %finite = xor i1 %p1, true
  %alone = and i1 %finite, %ic
  %product.or.zero = select i1 %alone, double 0.0, double %sp
  %ss = fadd double %product.or.zero, %c
  ret double %ss
exact:
  %ha = lshr i64 %ma, 52
  %hb = lshr i64 %mb, 52
  %hc = lshr i64 %mc, 52
  %fa = and i64 %ma, 4503599627370495
  %fb = and i64 %mb, 4503599627370495
  %fc = and i64 %mc, 4503599627370495
  %na = icmp ne i64 %ha, 0
  %nb = icmp ne i64 %hb, 0
  %nc = icmp ne i64 %hc, 0
  %ga = or i64 %fa, 4503599627370496
  %gb = or i64 %fb, 4503599627370496
  %gc = or i64 %fc, 4503599627370496
  %sa = select i1 %na, i64 %ga, i64 %fa
  %sb = select i1 %nb, i64 %gb, i64 %fb
  %sc = select i1 %nc, i64 %gc, i64 %fc
  %ea = select i1 %na, i64 %ha, i64 1
  %eb = select i1 %nb, i64 %hb, i64 1
  %ec0 = select i1 %nc, i64 %hc, i64 1
  %eab = add i64 %ea, %eb
  %ep = sub i64 %eab, 1075
  %wa = zext i64 %sa to i256
  %wb = zext i64 %sb to i256
  %wc = zext i64 %sc to i256
  %product = mul i256 %wa, %wb
  %czero = icmp eq i64 %sc, 0
  %ec = select i1 %czero, i64 %ep, i64 %ec0
  %distance = sub i64 %ec, %ep
  %far = icmp sgt i64 %distance, 120
  %up0 = select i1 %far, i64 120, i64 %distance
  %left = icmp sgt i64 %up0, 0
  %up = select i1 %left, i64 %up0, i64 0
  %down0 = sub i64 0, %distance
  %right = icmp sgt i64 %down0, 0
  %down1 = select i1 %right, i64 %down0, i64 0
  %deep = icmp sgt i64 %down1, 70
  %down = select i1 %deep, i64 70, i64 %down1
  %base0 = sub i64 %ec, 120
  %base1 = select i1 %far, i64 %base0, i64 %ep
  %base = sub i64 %base1, 8
  %x0 = shl i256 %product, 8
  %x = select i1 %far, i256 1, i256 %x0
  %y0 = shl i256 %wc, 8
  %upw = zext i64 %up to i256
  %downw = zext i64 %down to i256
  %y1 = shl i256 %y0, %upw
  %y2 = lshr i256 %y1, %downw
  %back = shl i256 %y2, %downw
  %cut = icmp ne i256 %back, %y1
  %sticky = zext i1 %cut to i256
  %y = or i256 %y2, %sticky
  %sp0 = xor i64 %ba, %bb
  %negp = icmp slt i64 %sp0, 0
  %negc = icmp slt i64 %bc, 0
  %xn = sub i256 0, %x
  %yn = sub i256 0, %y
  %xs = select i1 %negp, i256 %xn, i256 %x
  %ys = select i1 %negc, i256 %yn, i256 %y
  %total = add i256 %xs, %ys
  %nothing = icmp eq i256 %total, 0
  br i1 %nothing, label %none, label %some
none:
  %bothneg = and i1 %negp, %negc
  %zero = select i1 %bothneg, double -0.0, double 0.0
  ret double %zero
some:
  %neg = icmp slt i256 %total, 0
  %minus = sub i256 0, %total
  %size = select i1 %neg, i256 %minus, i256 %total
  %zeros0 = call i256 @llvm.ctlz.i256(i256 %size, i1 false)
  %zeros = trunc i256 %zeros0 to i64
  %length = sub i64 256, %zeros
  %e0 = add i64 %base, %length
  %e = sub i64 %e0, 53
  %tiny = icmp slt i64 %e, 1
  %er = select i1 %tiny, i64 1, i64 %e
  %drop = sub i64 %er, %base
  %cuts = icmp sgt i64 %drop, 0
  %d0 = select i1 %cuts, i64 %drop, i64 0
  %huge = icmp sgt i64 %d0, 250
  %d = select i1 %huge, i64 250, i64 %d0
  %raise0 = sub i64 0, %drop
  %raise = select i1 %cuts, i64 0, i64 %raise0
  %dw = zext i64 %d to i256
  %rw = zext i64 %raise to i256
  %grown = shl i256 %size, %rw
  %kept0 = lshr i256 %grown, %dw
  %kept1 = shl i256 %kept0, %dw
  %rest = sub i256 %grown, %kept1
  %some.cut = icmp ne i64 %d, 0
  %h0 = sub i64 %d, 1
  %h1 = select i1 %some.cut, i64 %h0, i64 0
  %hw = zext i64 %h1 to i256
  %half = shl i256 1, %hw
  %over = icmp ugt i256 %rest, %half
  %tie = icmp eq i256 %rest, %half
  %kept = trunc i256 %kept0 to i64
  %odd0 = and i64 %kept, 1
  %odd = icmp ne i64 %odd0, 0
  %tieup = and i1 %tie, %odd
  %roundup0 = or i1 %over, %tieup
  %roundup = and i1 %roundup0, %some.cut
  %one = zext i1 %roundup to i64
  %rounded = add i64 %kept, %one
  %exponent0 = sub i64 %er, 1
  %exponent = shl i64 %exponent0, 52
  %joined = add i64 %exponent, %rounded
  %infinite = icmp sge i64 %er, 2047
  %full = icmp uge i64 %joined, 9218868437227405312
  %large = or i1 %infinite, %full
  %magnitude = select i1 %large, i64 9218868437227405312, i64 %joined
  %signs = select i1 %neg, i64 -9223372036854775808, i64 0
  %bits = or i64 %magnitude, %signs
  %result = bitcast i64 %bits to double
  ret double %result
}}

declare i256 @llvm.ctlz.i256(i256, i1)"""


def _shift(name: str, near: str, far: str, *, left: bool, sign: str) -> str:
    """A shift of 128 bits in halves: within each, from one to the other, and by 64 or more."""
    source, target = ("low", "high") if left else ("high", "low")
    across = "lshr" if left else "shl"
    whole = (
        "%r0 = zext i64 %target to i128\n  %r1 = shl i128 %r0, 64\n  %r2 = zext i64 %source to i128"
        if left else
        "%r0 = zext i64 %source to i128\n  %r1 = shl i128 %r0, 64\n  %r2 = zext i64 %target to i128"
    )  # fmt: skip
    return f"""\
define hidden i128 @{name}(i128 %x, i32 %n) noinline nounwind {{
  %low = trunc i128 %x to i64
  %above = lshr i128 %x, 64
  %high = trunc i128 %above to i64
  %n64 = zext i32 %n to i64
  %within = and i64 %n64, 63
  %rest0 = sub i64 64, %within
  %rest = and i64 %rest0, 63
  %isfar0 = and i64 %n64, 64
  %isfar = icmp ne i64 %isfar0, 0
  %iszero = icmp eq i64 %within, 0
  %moved = {near} i64 %{source}, %within
  %kept = {far} i64 %{target}, %within
  %crossed0 = {across} i64 %{source}, %rest
  %crossed = select i1 %iszero, i64 0, i64 %crossed0
  %joined = or i64 %kept, %crossed
  %empty = {sign}
  %target = select i1 %isfar, i64 %moved, i64 %joined
  %source = select i1 %isfar, i64 %empty, i64 %moved
  {whole}
  %r = or i128 %r1, %r2
  ret i128 %r
}}"""


_PRODUCT = """\
define hidden i128 @__multi3(i128 %x, i128 %y) noinline nounwind {
  %xl = trunc i128 %x to i64
  %yl = trunc i128 %y to i64
  %xs = lshr i128 %x, 64
  %ys = lshr i128 %y, 64
  %xh = trunc i128 %xs to i64
  %yh = trunc i128 %ys to i64
  %a = and i64 %xl, 4294967295
  %b = lshr i64 %xl, 32
  %c = and i64 %yl, 4294967295
  %d = lshr i64 %yl, 32
  %ac = mul i64 %a, %c
  %ad = mul i64 %a, %d
  %bc = mul i64 %b, %c
  %bd = mul i64 %b, %d
  %ac.high = lshr i64 %ac, 32
  %ad.low = and i64 %ad, 4294967295
  %bc.low = and i64 %bc, 4294967295
  %m0 = add i64 %ac.high, %ad.low
  %m = add i64 %m0, %bc.low
  %m.up = shl i64 %m, 32
  %ac.low = and i64 %ac, 4294967295
  %low = or i64 %m.up, %ac.low
  %m.high = lshr i64 %m, 32
  %ad.high = lshr i64 %ad, 32
  %bc.high = lshr i64 %bc, 32
  %h0 = add i64 %bd, %m.high
  %h1 = add i64 %h0, %ad.high
  %h2 = add i64 %h1, %bc.high
  %cross1 = mul i64 %xl, %yh
  %cross2 = mul i64 %xh, %yl
  %h3 = add i64 %h2, %cross1
  %high = add i64 %h3, %cross2
  %r0 = zext i64 %high to i128
  %r1 = shl i128 %r0, 64
  %r2 = zext i64 %low to i128
  %r = or i128 %r1, %r2
  ret i128 %r
}"""

CALLED: dict[str, str] = {
    **CONVERSIONS,
    DIVISION: DIVISION_FUNCTION,
    "__multi3": _PRODUCT,
    "__ashlti3": _shift("__ashlti3", "shl", "shl", left=True, sign="add i64 0, 0"),
    "__lshrti3": _shift("__lshrti3", "lshr", "lshr", left=False, sign="add i64 0, 0"),
    "__ashrti3": _shift("__ashrti3", "ashr", "lshr", left=False, sign="ashr i64 %high, 63"),
}
"""What LLVM's generator of instructions may call: name → function."""
