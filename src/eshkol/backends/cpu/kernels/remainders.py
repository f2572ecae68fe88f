"""Remainders of floats in vectors: a quotient, and a product that is taken off at once.

Comes in: the text of a lane's function, where LLVM's `frem` is a call of the C library for each number. Goes out: the
same text with calls of functions that the vectorizer takes apart, and these functions.

With q = ⌊|x/y|⌋, rounded and cut to an integer, |x| - q·|y| is exact where q has no more digits than the type. The
rounded quotient is never below an integer that the exact one reaches, so q is right or one too large; where it is too
large, what is left is negative, and y is added back. Where the quotient is longer, or y is 0, or something is infinite
or NaN, the C library is asked, for those vectors in which a lane needs it (`rare.py`).
"""

from __future__ import annotations

import re

from eshkol.backends.cpu.kernels.rare import Seldom, call, vector_functions
from eshkol.backends.lanes.emitter import Emitter
from eshkol.llvm.targets import Target

_NAME = "remainder"
_INSTRUCTION = re.compile(r"frem (float|double) ([^\s,]+), ([^\s,]+)")
_DIGITS = {"float": 24, "double": 53}
_BITS = {"float": 32, "double": 64}


def in_vectors(body: str, target: Target) -> tuple[str, list[str], dict[str, str]]:
    """The text of a lane with calls in place of remainders, the functions that are called, and what they declare."""
    kinds = sorted({kind for kind, _, _ in _INSTRUCTION.findall(body)})
    body = _INSTRUCTION.sub(rf"call \1 @{_NAME}.\1(\1 \2, \1 \3)", body)
    functions: list[str] = []
    declared: dict[str, str] = {}
    for kind in kinds:
        whole = target.vector_bits // _BITS[kind]
        seldom = Seldom(f"rare.{_NAME}.{kind}", (kind,) * 3, tuple(n for n in (whole, whole // 2) if n > 1))
        e = Emitter()
        functions += [_of_a_lane(e, kind, seldom), _by_the_library(seldom, kind)]
        declared |= e.declared
        found, more = vector_functions(seldom)
        functions += found
        declared |= more
    return body, functions, declared


def _of_a_lane(e: Emitter, kind: str, seldom: Seldom) -> str:
    i = f"i{_BITS[kind]}"
    quotient = e.call(kind, f"llvm.trunc.{_suffix(kind)}", (kind, e.op(f"fdiv {kind} %x, %y")))
    less = e.op(f"fneg {kind} {quotient}")
    left = e.call(kind, f"llvm.fma.{_suffix(kind)}", (kind, less), (kind, "%y"), (kind, "%x"))
    fits = e.op(f"fcmp olt {kind} {_magnitude(e, kind, quotient)}, {2.0 ** _DIGITS[kind]:e}")
    fine = e.op(f"fcmp ole {kind} {_magnitude(e, kind, left)}, {_magnitude(e, kind, '%y')}")
    differ = e.op(f"xor {i} {e.op(f'bitcast {kind} {left} to {i}')}, {e.op(f'bitcast {kind} %x to {i}')}")
    negative = e.op(f"and i1 {e.op(f'icmp slt {i} {differ}, 0')}, {e.op(f'fcmp une {kind} {left}, 0.0')}")
    divisor = e.call(kind, f"llvm.copysign.{_suffix(kind)}", (kind, "%y"), (kind, "%x"))
    left = e.op(f"select i1 {negative}, {kind} {e.op(f'fadd {kind} {left}, {divisor}')}, {kind} {left}")
    left = e.call(kind, f"llvm.copysign.{_suffix(kind)}", (kind, left), (kind, "%x"))  # of zeros
    wanted = e.op(f"xor i1 {e.op(f'and i1 {fits}, {fine}')}, true")
    found = call(e, seldom, wanted, [left, "%x", "%y"])
    head = f"define internal {kind} @{_NAME}.{kind}({kind} %x, {kind} %y) alwaysinline memory(none) nounwind {{"
    return "\n".join([head, *e.lines, f"  ret {kind} {found}", "}"])


def _by_the_library(seldom: Seldom, kind: str) -> str:
    e = Emitter()
    found = e.op(f"frem {kind} %x0, %x1")
    return seldom.of_a_lane(e.lines, found)


def _magnitude(e: Emitter, kind: str, value: str) -> str:
    return e.call(kind, f"llvm.fabs.{_suffix(kind)}", (kind, value))


def _suffix(kind: str) -> str:
    return f"f{_BITS[kind]}"
