"""Numbers that are known when a kernel starts: sums of products of scalar parameters.

Bounds of what registers can hold (`ranges.py`) are plain integers as long as they follow from the program alone. Where
a program is told an extent by a scalar parameter they are an `Amount`, which the kernel computes before it runs its
lanes. Parameters are U32, so they are not negative, and how large an amount can be is known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

PARAMETER_BITS = 32
MOST_BITS = 120  # of an amount: it is computed in 128


@dataclass(frozen=True, slots=True)
class Amount:
    """Σ factor · parameter · parameter · …; no factor is 0, and one term at least has a parameter."""

    terms: tuple[tuple[tuple[str, ...], int], ...]

    def __add__(self, other: Number) -> Number:
        found = dict(self.terms)
        for names, factor in _terms(other).items():
            found[names] = found.get(names, 0) + factor
        return _made(found)

    __radd__ = __add__

    def __mul__(self, other: Number) -> Number:
        found: dict[tuple[str, ...], int] = {}
        for names, factor in self.terms:
            for more, times in _terms(other).items():
                key = tuple(sorted((*names, *more)))
                found[key] = found.get(key, 0) + factor * times
        return _made(found)

    __rmul__ = __mul__

    @property
    def bits(self) -> int:
        """In how many bits, besides a sign, it fits whatever the parameters are."""
        each = (abs(factor).bit_length() + PARAMETER_BITS * len(names) for names, factor in self.terms)
        return max(each) + len(self.terms).bit_length()


Number: TypeAlias = int | Amount


def parameter(name: str) -> Amount:
    """The value of a scalar parameter of type U32."""
    return Amount((((name,), 1),))


def _terms(number: Number) -> Mapping[tuple[str, ...], int]:
    return dict(number.terms) if isinstance(number, Amount) else {(): number}


def _made(terms: Mapping[tuple[str, ...], int]) -> Number:
    kept = tuple(sorted((names, factor) for names, factor in terms.items() if factor))
    if not any(names for names, _ in kept):
        return kept[0][1] if kept else 0
    return Amount(kept)


def least_above(one: Number, other: Number) -> Number:
    """A number that is no less than either."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    mine, others = _terms(one), _terms(other)
    return _made({names: max(mine.get(names, 0), others.get(names, 0)) for names in {**mine, **others}})


def shared_out(number: Number, divisor: int) -> Number:
    """A number that is no less than the quotient by a positive divisor; of plain numbers the quotient, rounded down."""
    if isinstance(number, int):
        return number // divisor
    return _made({names: -(-factor // divisor) for names, factor in number.terms})


def is_small(number: Number, bits: int) -> bool:
    """Whether a plain number is below that many bits, and anything else can be computed at all."""
    return number.bits <= MOST_BITS if isinstance(number, Amount) else number < 1 << bits


def computed(number: Number, op: Callable[[str], str], value: Callable[[str], str]) -> str:
    """LLVM's name of a number in i128, whose code is written with `op`; `value` gives that of a parameter."""
    total = ""
    for names, factor in _terms(number).items():
        term = str(factor)
        for name in names:
            term = op(f"mul nsw i128 {term}, {value(name)}")
        total = op(f"add nsw i128 {total}, {term}") if total else term
    return total
