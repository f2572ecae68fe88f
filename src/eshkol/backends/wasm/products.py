"""Products with sums of F32 that are rounded by way of F64, which WebAssembly has, instead of exactly once.

Comes in: LLVM text before it is optimized. Goes out: text in which `llvm.fma` of F32 is a product and a sum of F64.
The product is exact there, so that what rounding has cut off is found as with the operation itself; the sum is
rounded to 53 bits and then to 24, which gives another F32 than rounding once only where the first result lies within
2^-29 of the middle between two. That costs four operations instead of forty, and LLVM makes vectors of it.
"""

from __future__ import annotations

import re

from eshkol.llvm.text import vector

_EXACT = re.compile(r"@llvm\.fma\.((?:v(\d+))?f32)\(")
_DECLARED = re.compile(r"^declare [^\n]*@llvm\.fma\.(?:v\d+)?f32\([^\n]*$", re.MULTILINE)
NAME = "eshkol.near"


def by_doubles(text: str) -> str:
    """The module with these functions, which are put into their callers."""
    kinds = {kind: int(lanes or 1) for kind, lanes in _EXACT.findall(text)}
    if not kinds:
        return text
    found = _EXACT.sub(rf"@{NAME}.\1(", _DECLARED.sub("", text))
    return "\n\n".join([found, *(_function(kind, lanes) for kind, lanes in sorted(kinds.items()))]) + "\n"


def _function(kind: str, lanes: int) -> str:
    f, d = vector("float", lanes), vector("double", lanes)
    return f"""\
define internal {f} @{NAME}.{kind}({f} %a, {f} %b, {f} %c) nounwind alwaysinline {{
  %da = fpext {f} %a to {d}
  %db = fpext {f} %b to {d}
  %dc = fpext {f} %c to {d}
  %product = fmul {d} %da, %db
  %sum = fadd {d} %product, %dc
  %r = fptrunc {d} %sum to {f}
  ret {f} %r
}}"""
