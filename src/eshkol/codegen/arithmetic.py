"""The inline functions of arithmetic, written from a table: one row for each operator.

Two fixnums are computed at once unless the result overflows, two flonums always; the rest is the runtime's. Where one
operand is a small integer constant, as in (* 2 x), the function's "mixed" form takes flonums for the other one too;
where both are known to be exact integers (inference.py), its "exact" form asks for nothing else.

Comparisons have two functions: one for tests, which is always true or false, and one whose value is wanted, since of
tensors that may be a tensor of truth values.
"""

from __future__ import annotations

from dataclasses import dataclass

MIXED_FORM, EXACT_FORM = ":mixed", ":exact"
OPERANDS = "ptr %ctx, i64 %ta, i64 %pa, i64 %tb, i64 %pb"


@dataclass(frozen=True)
class Operator:
    """A binary operator."""

    name: str
    fixnums: str  # instructions that leave %n, or go to %slow
    flonums: str | None  # the instruction for two doubles
    runtime: str  # the C function that does all the rest
    compared: str | None = None  # of a comparison: the C function where its value is wanted


def _overflowing(name: str, operation: str, flonums: str, runtime: str) -> Operator:
    lines = f"""\
  %both = call {{ i64, i1 }} @llvm.{operation}.with.overflow.i64(i64 %pa, i64 %pb)
  %over = extractvalue {{ i64, i1 }} %both, 1
  %n = extractvalue {{ i64, i1 }} %both, 0
  br i1 %over, label %slow, label %small, !prof !1
small:"""
    return Operator(name, lines, flonums, runtime)


def _dividing(name: str, instructions: str, runtime: str) -> Operator:
    lines = f"""\
  %positive = icmp sgt i64 %pb, 0
  br i1 %positive, label %small, label %slow, !prof !0
small:
{instructions}"""
    return Operator(name, lines, None, runtime)


def _comparing(name: str, fixnums: str, flonums: str, row: str, runtime: str) -> Operator:
    compared = f"esk_compared_{row}"
    return Operator(name, f"  %n = icmp {fixnums} i64 %pa, %pb", f"fcmp {flonums}", runtime, compared)


OPERATORS = (
    _overflowing("+", "sadd", "fadd", "esk_add"),
    _overflowing("-", "ssub", "fsub", "esk_subtract"),
    _overflowing("*", "smul", "fmul", "esk_multiply"),
    Operator("/", "  br label %slow\nnever:\n  %n = add i64 0, 0", "fdiv", "esk_divide"),
    _dividing("quotient", "  %n = sdiv i64 %pa, %pb", "esk_quotient"),
    _dividing("remainder", "  %n = srem i64 %pa, %pb", "esk_remainder"),
    _dividing(
        "modulo",
        "  %r = srem i64 %pa, %pb\n  %up = add i64 %r, %pb\n  %below = icmp slt i64 %r, 0\n"
        "  %n = select i1 %below, i64 %up, i64 %r",
        "esk_modulo",
    ),
    _comparing("=", "eq", "oeq", "equal", "esk_number_equal"),
    _comparing("<", "slt", "olt", "less", "esk_less"),
    _comparing("<=", "sle", "ole", "less_equal", "esk_less_equal"),
    _comparing(">", "sgt", "ogt", "greater", "esk_greater"),
    _comparing(">=", "sge", "oge", "greater_equal", "esk_greater_equal"),
)


def _function(row: Operator, form: str, test: bool) -> str:
    mixed = form == MIXED_FORM
    result = "i1" if test else "%value"
    kind = "test" if test else "compared" if row.compared else "inline"
    name = f"{kind}.{row.name}{form}"
    fixnum, flonum = ("boolean(i1", "boolean(i1") if row.compared else ("fixnum(i64", "flonum(double")
    small = "  ret i1 %n" if test else f"  %v = call %value @{fixnum} %n)\n  ret %value %v"
    if row.flonums is None or form == EXACT_FORM:
        flonums = "  br label %slow"
    else:
        suitable = "  %suits = call i1 @both_machine(i64 %ta, i64 %tb)" if mixed else (
            "  %fa = icmp eq i64 %ta, $TAG_FLONUM\n  %fb = icmp eq i64 %tb, $TAG_FLONUM\n  %suits = and i1 %fa, %fb"
        )  # fmt: skip
        convert = "call double @machine_double(i64 %t{0}, i64 %p{0})" if mixed else "bitcast i64 %p{0} to double"
        last = "  ret i1 %x" if test else f"  %w = call %value @{flonum} %x)\n  ret %value %w"
        flonums = f"""\
{suitable}
  br i1 %suits, label %flo, label %slow, !prof !0
flo:
  %a = {convert.format("a")}
  %b = {convert.format("b")}
  %x = {row.flonums} double %a, %b
{last}"""
    slowly = (
        f"  %answer = call i64 @{row.runtime}({OPERANDS})\n  %z = icmp ne i64 %answer, 0\n  ret i1 %z"
        if test
        else f"  %z = call %value @{row.compared or row.runtime}({OPERANDS})\n  ret %value %z"
    )
    return f"""\
define internal {result} @"{name}"({OPERANDS}) alwaysinline {{
  %whole = call i1 @both_fixnums(i64 %ta, i64 %tb)
  br i1 %whole, label %fix, label %other
fix:
{row.fixnums}
{small}
other:
{flonums}
slow:
{slowly}
}}"""


def functions() -> str:
    """All of them, as text."""
    return "\n\n".join(
        _function(row, form, test)
        for row in OPERATORS
        for form in (("", MIXED_FORM, EXACT_FORM) if row.flonums else ("",))
        for test in ((False, True) if row.compared else (False,))
    )


MIXED = frozenset(row.name for row in OPERATORS if row.flonums)
COMPARISONS = frozenset(row.name for row in OPERATORS if row.compared)
