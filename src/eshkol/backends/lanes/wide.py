"""Products of integers of thousands of bits: a function per width, which goes over 64 bits at a time in two loops.

LLVM writes such a product out, a multiplication for every pair of 64-bit digits that matters and again for every copy
of a loop's body: for 4096 bits that takes it half a minute.
"""

from __future__ import annotations

import re

INLINE_BITS = 512  # up to here LLVM's own products are short
_NAME = "eshkol.multiply"
_CALL = re.compile(rf"@{re.escape(_NAME)}\.i(\d+)\(")
_FUNCTION = """\
define internal i{bits} @{name}.i{bits}(i{bits} %a, i{bits} %b) noinline nounwind {{
entry:
  %x = alloca i{bits}
  %y = alloca i{bits}
  %z = alloca i{bits}
  store i{bits} %a, ptr %x
  store i{bits} %b, ptr %y
  store i{bits} 0, ptr %z
  br label %digit
digit:
  %i = phi i64 [ 0, %entry ], [ %next.i, %added ]
  %at.x = getelementptr i64, ptr %x, i64 %i
  %short.x = load i64, ptr %at.x
  %digit.x = zext i64 %short.x to i128
  br label %add
add:
  %j = phi i64 [ 0, %digit ], [ %next.j, %add ]
  %k = phi i64 [ %i, %digit ], [ %next.k, %add ]
  %carry = phi i128 [ 0, %digit ], [ %next.carry, %add ]
  %at.y = getelementptr i64, ptr %y, i64 %j
  %short.y = load i64, ptr %at.y
  %digit.y = zext i64 %short.y to i128
  %at.z = getelementptr i64, ptr %z, i64 %k
  %short.z = load i64, ptr %at.z
  %digit.z = zext i64 %short.z to i128
  %product = mul i128 %digit.x, %digit.y
  %more = add i128 %product, %digit.z
  %sum = add i128 %more, %carry
  %low = trunc i128 %sum to i64
  store i64 %low, ptr %at.z
  %next.carry = lshr i128 %sum, 64
  %next.j = add i64 %j, 1
  %next.k = add i64 %k, 1
  %top = icmp eq i64 %next.k, {digits}
  br i1 %top, label %added, label %add
added:
  %next.i = add i64 %i, 1
  %last = icmp eq i64 %next.i, {digits}
  br i1 %last, label %end, label %digit
end:
  %result = load i{bits}, ptr %z
  ret i{bits} %result
}}"""


def product(bits: int, a: str, b: str) -> str:
    """The LLVM instruction for a product of two integers, which wraps."""
    if bits <= INLINE_BITS:
        return f"mul i{bits} {a}, {b}"
    return f"call i{bits} @{_NAME}.i{bits}(i{bits} {a}, i{bits} {b})"


def functions(body: str) -> list[str]:
    """The functions that LLVM text calls for its products."""
    widths = sorted({int(width) for width in _CALL.findall(body)})
    return [_FUNCTION.format(name=_NAME, bits=bits, digits=bits // 64) for bits in widths]
