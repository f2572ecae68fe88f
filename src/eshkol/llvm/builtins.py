"""Functions that LLVM calls without being told to: conversions of F16, and division of 128 bits.

A compiled program carries its own, because a process need not have the compiler's library that holds them. Comes in:
the text of a module. Goes out: the text with those functions that it may need.

Conversions are called where the machine has none (WebAssembly; x86 below F16C; F64 to F16 below AVX-512). Each rounds
once, ties to even. Below 2^-14 the sum with a number whose last place is 2^-24, the least F16, does the rounding.
"""

from __future__ import annotations

from eshkol.llvm.targets import Target
from eshkol.llvm.text import double

_CONVERSIONS = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")


def with_conversions(text: str, target: Target) -> str:
    """A module with conversions of F16, where it has such numbers and LLVM may call functions for them."""
    return f"{text}\n{HALVES}\n" if "half" in text and target.is_x86 else text


# LLVM divides 64 bits by the machine and more than 128 bits inline, but calls a library function for 128 bits that
# not every process has. This is long division, a bit at a time. It has that function's name, so that it serves the
# divisions too that LLVM itself writes to count the rounds of loops.
DIVISION = "__udivti3"
DIVISION_FUNCTION = """\
define hidden i128 @__udivti3(i128 %a, i128 %b) noinline nounwind {
entry:
  br label %loop
loop:
  %bit = phi i128 [ 127, %entry ], [ %next, %loop ]
  %rest = phi i128 [ 0, %entry ], [ %rest2, %loop ]
  %quotient = phi i128 [ 0, %entry ], [ %quotient2, %loop ]
  %shifted = lshr i128 %a, %bit
  %digit = and i128 %shifted, 1
  %doubled = shl i128 %rest, 1
  %rest1 = or i128 %doubled, %digit
  %carry = icmp slt i128 %rest, 0
  %above = icmp uge i128 %rest1, %b
  %take = or i1 %carry, %above
  %less = sub i128 %rest1, %b
  %rest2 = select i1 %take, i128 %less, i128 %rest1
  %one = shl i128 1, %bit
  %part = select i1 %take, i128 %one, i128 0
  %quotient2 = or i128 %quotient, %part
  %next = sub i128 %bit, 1
  %last = icmp eq i128 %bit, 0
  br i1 %last, label %end, label %loop
end:
  ret i128 %quotient2
}"""


def lacks_division(text: str, code: bytes) -> bool:
    """Whether LLVM has written a division of its own into the object of a module, which has no function for it."""
    return DIVISION.encode() in code and DIVISION_FUNCTION not in text


def _truncation(name: str, llvm: str, bits: int, fraction: int, bias: int) -> str:
    """Rounding to F16 from a float of `bits` bits with `fraction` stored fraction bits."""
    shift, i = fraction - 10, f"i{bits}"
    infinity = (2 * bias + 1) << fraction
    too_large = ((bias + 15) << fraction) + (0x7FF << (fraction - 11))  # 65520, where rounding reaches infinity
    normal = (bias - 14) << fraction
    magic = (bias - 24 + fraction) << fraction  # its last place is 2^-24
    return f"""\
define hidden half @{name}({llvm} %x) nounwind {{
  %bits = bitcast {llvm} %x to {i}
  %sign = and {i} %bits, {1 << (bits - 1)}
  %mag = and {i} %bits, {(1 << (bits - 1)) - 1}
  %odd0 = lshr {i} %mag, {shift}
  %odd = and {i} %odd0, 1
  %rebiased = sub {i} %mag, {(bias - 15) << fraction}
  %up0 = add {i} %rebiased, {(1 << (shift - 1)) - 1}
  %up = add {i} %up0, %odd
  %usual = lshr {i} %up, {shift}
  %value = bitcast {i} %mag to {llvm}
  %added = fadd {llvm} %value, {_power(llvm, magic)}
  %addedbits = bitcast {llvm} %added to {i}
  %small = sub {i} %addedbits, {magic}
  %issmall = icmp ult {i} %mag, {normal}
  %finite = select i1 %issmall, {i} %small, {i} %usual
  %islarge = icmp uge {i} %mag, {too_large}
  %bounded = select i1 %islarge, {i} 31744, {i} %finite
  %isnan = icmp ugt {i} %mag, {infinity}
  %payload0 = lshr {i} %mag, {shift}
  %payload1 = or {i} %payload0, 32256
  %payload = and {i} %payload1, 32767
  %unsigned = select i1 %isnan, {i} %payload, {i} %bounded
  %high = lshr {i} %sign, {bits - 16}
  %all = or {i} %unsigned, %high
  %short = trunc {i} %all to i16
  %half = bitcast i16 %short to half
  ret half %half
}}"""


def _power(llvm: str, pattern: int) -> str:
    """A power of two, given by its bits, as LLVM writes constants (those of float are written as double)."""
    return double(2.0 ** ((pattern >> 23) - 127 if llvm == "float" else (pattern >> 52) - 1023))


_EXTENSION = """\
define hidden float @__extendhfsf2(half %x) nounwind {
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %mag = and i32 %bits, 32767
  %sign0 = and i32 %bits, 32768
  %sign = shl i32 %sign0, 16
  %shifted = shl i32 %mag, 13
  %usual = add i32 %shifted, 939524096
  %special = add i32 %shifted, 1879048192
  %raised = add i32 %shifted, 947912704
  %raisedfloat = bitcast i32 %raised to float
  %smallfloat = fsub float %raisedfloat, 0x3F10000000000000
  %small = bitcast float %smallfloat to i32
  %issmall = icmp ult i32 %mag, 1024
  %finite = select i1 %issmall, i32 %small, i32 %usual
  %isspecial = icmp uge i32 %mag, 31744
  %unsigned = select i1 %isspecial, i32 %special, i32 %finite
  %all = or i32 %unsigned, %sign
  %float = bitcast i32 %all to float
  ret float %float
}"""
_KEPT = ", ".join(f"ptr @{name}" for name in _CONVERSIONS)  # LLVM does not see that it will call them
_USED = f'@llvm.compiler.used = appending global [{len(_CONVERSIONS)} x ptr] [{_KEPT}], section "llvm.metadata"'
CONVERSIONS = dict(
    zip(
        _CONVERSIONS,
        (
            _EXTENSION,
            _truncation("__truncsfhf2", "float", 32, 23, 127),
            _truncation("__truncdfhf2", "double", 64, 52, 1023),
        ),
        strict=True,
    )
)
"""Conversions of F16: name → function."""
HALVES = "\n\n".join([*CONVERSIONS.values(), _USED])
