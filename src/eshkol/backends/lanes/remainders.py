"""Remainders of floats, for machines on which LLVM has none that is exact: a function per type.

LLVM computes x - y · trunc(x / y) there, which is far off where the quotient has more digits than the type. The
functions here are long division of the significands, a bit at a time. They give what `frem` means: the sign of the
dividend, NaN where the divisor is 0 or the dividend infinite, and exactly the remainder otherwise.
"""

from __future__ import annotations

import re

_NAME = "eshkol.remainder"
_INSTRUCTION = re.compile(r"frem (float|double) ([^\s,]+), ([^\s,]+)")
_KINDS = {"float": (32, 23, 0xFF), "double": (64, 52, 0x7FF)}  # bits, stored digits, exponent of infinity
_FUNCTION = """\
define internal {t} @{name}.{t}({t} %x, {t} %y) noinline nounwind {{
entry:
  %bits.x = bitcast {t} %x to {i}
  %bits.y = bitcast {t} %y to {i}
  %sign = and {i} %bits.x, {sign}
  %ax = and {i} %bits.x, {magnitude}
  %ay = and {i} %bits.y, {magnitude}
  %zero = icmp eq {i} %ay, 0
  %infinite = icmp uge {i} %ax, {infinity}
  %nan = icmp ugt {i} %ay, {infinity}
  %bad0 = or i1 %zero, %infinite
  %bad = or i1 %bad0, %nan
  br i1 %bad, label %undefined, label %defined
undefined:
  %product = fmul {t} %x, %y
  %none = fdiv {t} %product, %product
  ret {t} %none
defined:
  %less = icmp ult {i} %ax, %ay
  br i1 %less, label %itself, label %divide
itself:
  ret {t} %x
divide:
  %high.x = lshr {i} %ax, {digits}
  %high.y = lshr {i} %ay, {digits}
  %small.x = icmp eq {i} %high.x, 0
  %small.y = icmp eq {i} %high.y, 0
  %zeros.x = call {i} @llvm.ctlz.{i}({i} %ax, i1 false)
  %zeros.y = call {i} @llvm.ctlz.{i}({i} %ay, i1 false)
  %up.x = sub {i} %zeros.x, {lead}
  %up.y = sub {i} %zeros.y, {lead}
  %raised.x = shl {i} %ax, %up.x
  %raised.y = shl {i} %ay, %up.y
  %low.x = and {i} %ax, {fraction}
  %low.y = and {i} %ay, {fraction}
  %full.x = or {i} %low.x, {one}
  %full.y = or {i} %low.y, {one}
  %m.x = select i1 %small.x, {i} %raised.x, {i} %full.x
  %m.y = select i1 %small.y, {i} %raised.y, {i} %full.y
  %below.x = sub {i} 1, %up.x
  %below.y = sub {i} 1, %up.y
  %e.x = select i1 %small.x, {i} %below.x, {i} %high.x
  %e.y = select i1 %small.y, {i} %below.y, {i} %high.y
  br label %digit
digit:
  %m = phi {i} [ %m.x, %divide ], [ %next.m, %more ]
  %e = phi {i} [ %e.x, %divide ], [ %next.e, %more ]
  %rest = sub {i} %m, %m.y
  %negative = icmp slt {i} %rest, 0
  %kept = select i1 %negative, {i} %m, {i} %rest
  %last = icmp sle {i} %e, %e.y
  br i1 %last, label %end, label %more
more:
  %next.m = shl {i} %kept, 1
  %next.e = sub {i} %e, 1
  br label %digit
end:
  %nothing = icmp eq {i} %kept, 0
  br i1 %nothing, label %whole, label %normal
whole:
  %signed.zero = bitcast {i} %sign to {t}
  ret {t} %signed.zero
normal:
  %zeros = call {i} @llvm.ctlz.{i}({i} %kept, i1 false)
  %up = sub {i} %zeros, {lead}
  %m.r = shl {i} %kept, %up
  %e.r = sub {i} %e.y, %up
  %is.normal = icmp sgt {i} %e.r, 0
  %exponent = shl {i} %e.r, {digits}
  %significand = xor {i} %m.r, {one}
  %usual = or {i} %exponent, %significand
  %down0 = sub {i} 1, %e.r
  %down = select i1 %is.normal, {i} 0, {i} %down0
  %tiny = lshr {i} %m.r, %down
  %unsigned = select i1 %is.normal, {i} %usual, {i} %tiny
  %bits = or {i} %unsigned, %sign
  %result = bitcast {i} %bits to {t}
  ret {t} %result
}}"""


def with_functions(body: str) -> tuple[str, list[str], list[str]]:
    """LLVM text whose remainders of floats are calls, the functions that it then calls, and what these declare."""
    called = sorted({kind for kind, _, _ in _INSTRUCTION.findall(body)})
    body = _INSTRUCTION.sub(rf"call \1 @{_NAME}.\1(\1 \2, \1 \3)", body)
    widths = [_KINDS[kind][0] for kind in called]
    return body, [_function(kind) for kind in called], [f"declare i{n} @llvm.ctlz.i{n}(i{n}, i1)" for n in widths]


def _function(kind: str) -> str:
    bits, digits, top = _KINDS[kind]
    return _FUNCTION.format(
        t=kind, name=_NAME, i=f"i{bits}", digits=digits, sign=1 << (bits - 1), magnitude=(1 << (bits - 1)) - 1,
        infinity=top << digits, lead=bits - 1 - digits, fraction=(1 << digits) - 1, one=1 << digits,
    )  # fmt: skip
