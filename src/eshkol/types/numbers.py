"""What arithmetic gives for the kinds of numbers that it takes.

Comes in: the name of a primitive, and the bits of its arguments. Goes out: the bits of the result; None where an
argument may be no number, so that nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eshkol.types.kinds import BIT, EXACTS, INTEGERS, NATURALS, NUMBERS, REALS, TENSOR

FLOAT, RATIO = BIT["float"], BIT["ratio"]
_Rule = Callable[[Sequence[int]], int]


def _mixed(masks: Sequence[int], closed: Callable[[int], int]) -> int:
    """An operation on several numbers: floats are contagious; `closed` says what exact ones give."""
    every = 0
    for mask in masks:
        every |= mask
    if every & BIT["complex"]:
        return NUMBERS
    if any(not mask & EXACTS for mask in masks):
        return FLOAT  # one of them is a float for certain
    return closed(every & EXACTS) | (every & FLOAT)


def _among(*sets: int) -> Callable[[int], int]:
    """The first of these sets that has all the bits."""
    return lambda mask: next((s for s in sets if not mask & ~s), sets[-1])


_CLOSED = _among(NATURALS, INTEGERS, EXACTS)  # sums, products: of naturals naturals, and so on
_SIGNED = _among(INTEGERS, EXACTS)


def _sum(masks: Sequence[int]) -> int:
    return _mixed(masks, _CLOSED) if masks else NATURALS


def _difference(masks: Sequence[int]) -> int:
    return _mixed(masks, _SIGNED)


def _quotient(masks: Sequence[int]) -> int:
    return _mixed(masks, lambda mask: EXACTS)


def _whole(masks: Sequence[int]) -> int:
    """Division of integers: exact ones give exact ones."""
    return _mixed(masks, _among(NATURALS, INTEGERS, INTEGERS))


def _extreme(masks: Sequence[int]) -> int:
    """max, min: one of the arguments, inexact if any of them is."""
    found = _mixed(masks, lambda mask: mask)
    return found & REALS


def _transcendental(masks: Sequence[int]) -> int:
    """sin and its kin: of floats a float; of exact numbers one or, where the result is exact, that."""
    mask = masks[0]
    if mask & BIT["complex"]:
        return NUMBERS
    return FLOAT if not mask & ~FLOAT else FLOAT | INTEGERS


def _rooted(masks: Sequence[int]) -> int:
    """sqrt, log, asin: reals may give complex numbers."""
    return FLOAT | BIT["complex"] if not masks[0] & ~FLOAT else NUMBERS


def _power(masks: Sequence[int]) -> int:
    base, exponent = masks
    if base & ~REALS or exponent & ~INTEGERS:
        return NUMBERS
    inexact = FLOAT | BIT["natural"] if base & FLOAT else 0  # to the power 0 it is an exact 1
    if not base & EXACTS:
        return inexact
    return inexact | (EXACTS if exponent & ~NATURALS else _CLOSED(base & EXACTS))


def _rounded(masks: Sequence[int]) -> int:
    mask = masks[0]
    return _among(NATURALS, INTEGERS, INTEGERS)(mask & EXACTS) | mask & FLOAT if mask & EXACTS else FLOAT


def _absolute(masks: Sequence[int]) -> int:
    exact = masks[0] & EXACTS
    return (NATURALS if exact and not exact & RATIO else EXACTS if exact else 0) | masks[0] & FLOAT


def _inexact(masks: Sequence[int]) -> int:
    return NUMBERS if masks[0] & BIT["complex"] else FLOAT


def _exact(masks: Sequence[int]) -> int:
    return NUMBERS if masks[0] & BIT["complex"] else masks[0] & EXACTS | (EXACTS if masks[0] & FLOAT else 0)


RULES: dict[str, _Rule] = {
    "+": _sum, "*": _sum, "-": _difference, "/": _quotient, "1+": _sum, "-1+": _difference,
    "max": _extreme, "min": _extreme, "quotient": _whole, "remainder": _whole, "modulo": _whole,
    "floor-quotient": _whole, "floor-remainder": _whole, "truncate-quotient": _whole, "truncate-remainder": _whole,
    "square": _sum, "abs": _absolute, "floor": _rounded, "ceiling": _rounded,
    "truncate": _rounded, "round": _rounded, "sqrt": _rooted, "log": _rooted, "asin": _rooted, "acos": _rooted,
    "acosh": _rooted, "atanh": _rooted, "exp": _transcendental, "sin": _transcendental, "cos": _transcendental,
    "tan": _transcendental, "sinh": _transcendental, "cosh": _transcendental, "tanh": _transcendental,
    "asinh": _transcendental, "expt": _power, "inexact": _inexact, "exact->inexact": _inexact, "exact": _exact,
    "inexact->exact": _exact,
}  # fmt: skip
COMPARISONS = {"=", "<", ">", "<=", ">=", "zero?", "positive?", "negative?"}
OF_REALS = {
    "<",
    ">",
    "<=",
    ">=",
    "positive?",
    "negative?",
    "max",
    "min",
    "floor",
    "ceiling",
    "truncate",
    "round",
    "abs",
}
QUANTITIES = NUMBERS | TENSOR


def result_of(name: str, masks: Sequence[int]) -> int | None:
    """The bits of the result, if all arguments are numbers."""
    if any(mask & ~NUMBERS or not mask for mask in masks):
        return None
    if name == "-" and len(masks) == 1:
        masks = [NATURALS, *masks]
        return _difference(masks) if not masks[1] & FLOAT or masks[1] & EXACTS else FLOAT
    if name == "/" and len(masks) == 1:
        return _quotient(masks)
    if name == "square":
        return _squared(masks[0])
    return RULES[name](masks)


def _squared(mask: int) -> int:
    if mask & BIT["complex"]:
        return NUMBERS
    exact = mask & EXACTS
    return (0 if not exact else NATURALS if not exact & RATIO else EXACTS) | mask & FLOAT
