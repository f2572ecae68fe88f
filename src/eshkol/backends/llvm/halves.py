"""Conversions of F16 that LLVM calls by name where the machine has none (x86 below F16C; F64 to F16 below AVX-512).

A compiled program carries its own, because a process need not have the compiler's library that holds them. Every
conversion rounds once, ties to even. Below 2^-14 the sum with a number whose last place is 2^-24, the least F16,
does the rounding.
"""

NAMES = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")


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
  %added = fadd {llvm} %value, {_hex(llvm, magic)}
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


def _hex(llvm: str, pattern: int) -> str:
    """A power of two, given by its bits, as LLVM writes constants (those of float are written as double)."""
    exponent = (pattern >> 23) - 127 if llvm == "float" else (pattern >> 52) - 1023
    return f"0x{(exponent + 1023) << 52:016X}"


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
_KEPT = ", ".join(f"ptr @{name}" for name in NAMES)  # LLVM does not see that it will call them
_USED = f'@llvm.compiler.used = appending global [{len(NAMES)} x ptr] [{_KEPT}], section "llvm.metadata"'
FUNCTIONS = "\n\n".join(
    [
        _EXTENSION,
        _truncation("__truncsfhf2", "float", 32, 23, 127),
        _truncation("__truncdfhf2", "double", 64, 52, 1023),
        _USED,
    ]
)
