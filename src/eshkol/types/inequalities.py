"""Linear arithmetic over the integers: whether inequalities, equalities and congruences can hold together.

Comes in: a conjunction of constraints over named integers. Goes out: whether some integers satisfy it, exactly, or
None where finding out takes too long; and what follows from facts. Nothing here knows of types: `sizes.py` writes
what is said about sizes as constraints, and `proving.py` asks.

The method is Pugh's Omega test. Equalities are solved first, by substitution; a congruence is an equality with one
more unknown. Then variables are eliminated one by one from the inequalities, as Fourier and Motzkin do: what bounds a
variable from below is set against what bounds it from above. For rationals that is exact. For integers it is where
one of the two factors is 1; elsewhere the stricter condition that certainly leaves an integer between them (the dark
shadow) is tried, and if that fails, the few integers close to a lower bound, one by one (splinters).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

MOST_CONSTRAINTS = 200  # at any time, and
MOST_STEPS = 2000  # eliminations in all, before the answer is that it is not known


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of integers by factors, and a constant."""

    factors: tuple[tuple[str, int], ...]  # names in order, none of them by 0
    constant: int = 0

    @staticmethod
    def of(factors: Mapping[str, int], constant: int = 0) -> Linear:
        return Linear(tuple(sorted((name, by) for name, by in factors.items() if by)), constant)

    def plus(self, other: Linear, by: int = 1) -> Linear:
        found = dict(self.factors)
        for name, factor in other.factors:
            found[name] = found.get(name, 0) + by * factor
        return Linear.of(found, self.constant + by * other.constant)

    def times(self, by: int) -> Linear:
        return Linear(tuple((name, factor * by) for name, factor in self.factors) if by else (), self.constant * by)

    def factor(self, name: str) -> int:
        return next((by for other, by in self.factors if other == name), 0)

    def with_(self, name: str, value: Linear) -> Linear:
        """The same with a sum in place of a variable."""
        by = self.factor(name)
        rest = Linear(tuple(f for f in self.factors if f[0] != name), self.constant)
        return rest.plus(value, by) if by else self

    def value(self, at: Mapping[str, int]) -> int:
        return self.constant + sum(by * at[name] for name, by in self.factors)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A sum is at most 0 (modulus None), is 0 (modulus 0), or is a multiple of the modulus."""

    sum: Linear
    modulus: int | None = None

    def holds(self, at: Mapping[str, int]) -> bool:
        value = self.sum.value(at)
        return value <= 0 if self.modulus is None else value == 0 if not self.modulus else value % self.modulus == 0


def at_most(a: Linear, b: Linear) -> Constraint:
    return Constraint(a.plus(b, -1))


def less(a: Linear, b: Linear) -> Constraint:
    return Constraint(a.plus(b, -1).plus(Linear((), 1)))


def equal(a: Linear, b: Linear) -> Constraint:
    return Constraint(a.plus(b, -1), 0)


def congruent(a: Linear, b: Linear, modulus: int) -> Constraint:
    return Constraint(a.plus(b, -1), abs(modulus))


def negations(constraint: Constraint) -> list[list[Constraint]]:
    """The ways in which a constraint may fail; each is a conjunction."""
    total, one = constraint.sum, Linear((), 1)
    if constraint.modulus is None:
        return [[Constraint(total.times(-1).plus(one))]]
    if constraint.modulus == 0:
        return [[Constraint(total.plus(one))], [Constraint(total.times(-1).plus(one))]]
    rest = range(1, constraint.modulus)
    return [[Constraint(total.plus(Linear((), -r)), constraint.modulus)] for r in rest]


# ---- questions -------------------------------------------------------------------------------------------------------


def satisfiable(constraints: Iterable[Constraint]) -> bool | None:
    """Whether some integers satisfy all constraints; None where that takes too long to find out."""
    try:
        return _Problem().solve(list(constraints))
    except _TooHardError:
        return None


def entails(facts: Sequence[Constraint], goal: Constraint) -> bool:
    """Whether the goal holds wherever the facts do, for certain."""
    if goal.modulus is not None and goal.modulus > MOST_CONSTRAINTS:
        return False
    return all(satisfiable([*facts, *way]) is False for way in negations(goal))


def excludes(facts: Sequence[Constraint], goal: Constraint) -> bool:
    """Whether the goal holds nowhere where the facts do, for certain."""
    return satisfiable([*facts, goal]) is False


# ---- the Omega test --------------------------------------------------------------------------------------------------


class _TooHardError(Exception):
    """It would take too long."""


class _Problem:
    def __init__(self) -> None:
        self.steps = 0
        self.fresh = 0

    def new(self) -> str:
        self.fresh += 1
        return f" {self.fresh}"  # no name of a program begins with a space

    def solve(self, constraints: list[Constraint]) -> bool:
        equalities, inequalities = [], []
        for constraint in constraints:
            if constraint.modulus is None:
                inequalities.append(constraint.sum)
            elif constraint.modulus == 0:
                equalities.append(constraint.sum)
            else:
                equalities.append(constraint.sum.plus(Linear(((self.new(), constraint.modulus),))))
        return self._equalities(equalities, inequalities)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise _TooHardError

    def _equalities(self, equalities: list[Linear], inequalities: list[Linear]) -> bool:
        while equalities:
            self._step()
            equality = equalities.pop()
            if not equality.factors:
                if equality.constant:
                    return False
                continue
            common = gcd(*(by for _, by in equality.factors))
            if equality.constant % common:
                return False
            if common > 1:
                factors = tuple((name, by // common) for name, by in equality.factors)
                equality = Linear(factors, equality.constant // common)
            name, by = min(equality.factors, key=lambda factor: abs(factor[1]))
            if abs(by) == 1:  # it says what the variable is
                rest = Linear(tuple(f for f in equality.factors if f[0] != name), equality.constant)
                value = rest.times(-by)
            else:  # one more unknown makes the factors smaller
                equalities.append(equality)
                value = self._shrunk(equality, name, by)
            equalities = [other.with_(name, value) for other in equalities]
            inequalities = [other.with_(name, value) for other in inequalities]
        return self._inequalities(inequalities)

    def _shrunk(self, equality: Linear, name: str, by: int) -> Linear:
        """What a variable is, by a new one, so that the equality's factors become smaller."""
        modulus = abs(by) + 1
        sign = 1 if by > 0 else -1
        found = {other: sign * _near(factor, modulus) for other, factor in equality.factors if other != name}
        found[self.new()] = -sign * modulus
        return Linear.of(found, sign * _near(equality.constant, modulus))

    def _inequalities(self, inequalities: list[Linear]) -> bool:
        while True:
            self._step()
            tight = _tightened(inequalities)
            if tight is None:
                return False
            if not tight:
                return True
            if len(tight) > MOST_CONSTRAINTS:
                raise _TooHardError
            name, lower, upper = _cheapest(tight)
            rest = [one for one in tight if not one.factor(name)]
            if not lower or not upper:
                inequalities = rest
                continue
            if all(-one.factor(name) == 1 for one in lower) or all(one.factor(name) == 1 for one in upper):
                inequalities = rest + [_between(low, high, name) for low in lower for high in upper]
                continue
            return self._inexact(tight, name, lower, upper, rest)

    def _inexact(
        self, tight: list[Linear], name: str, lower: list[Linear], upper: list[Linear], rest: list[Linear]
    ) -> bool:
        """A variable whose factors are all greater than 1."""
        pairs = [(low, high) for low in lower for high in upper]
        if not self._inequalities(rest + [_between(low, high, name) for low, high in pairs]):
            return False
        dark = []
        for low, high in pairs:
            a, b = -low.factor(name), high.factor(name)
            dark.append(_between(low, high, name).plus(Linear((), (a - 1) * (b - 1))))
        if self._inequalities(rest + dark):
            return True
        greatest = max(high.factor(name) for high in upper)
        for low in lower:  # a solution that the dark shadow misses is close to some lower bound
            factor = -low.factor(name)
            for away in range((greatest * factor - greatest - factor) // greatest + 1):
                if self._equalities([low.plus(Linear((), away))], tight):
                    return True
        return False


def _near(number: int, modulus: int) -> int:
    """The remainder of least size."""
    rest = number % modulus
    return rest - modulus if 2 * rest >= modulus else rest


def _tightened(inequalities: Iterable[Linear]) -> list[Linear] | None:
    """Each with factors that have no common divisor, the strictest alone; None where one can never hold."""
    strictest: dict[tuple[tuple[str, int], ...], int] = {}
    for one in inequalities:
        if not one.factors:
            if one.constant > 0:
                return None
            continue
        common = gcd(*(by for _, by in one.factors))
        factors = one.factors if common == 1 else tuple((name, by // common) for name, by in one.factors)
        constant = -(-one.constant // common)
        if strictest.get(factors, constant) <= constant:
            strictest[factors] = constant
    for factors, constant in strictest.items():
        opposite = strictest.get(tuple((name, -by) for name, by in factors))
        if opposite is not None and constant + opposite > 0:
            return None
    return [Linear(factors, constant) for factors, constant in strictest.items()]


def _between(low: Linear, high: Linear, name: str) -> Linear:
    """That a lower bound is at most an upper one, without the variable."""
    return low.times(high.factor(name)).plus(high, -low.factor(name))


def _cheapest(inequalities: list[Linear]) -> tuple[str, list[Linear], list[Linear]]:
    """The variable that is eliminated with the fewest new inequalities, an exact elimination first; what bounds it."""
    best: tuple[tuple[bool, int], str, list[Linear], list[Linear]] | None = None
    for name in dict.fromkeys(name for one in inequalities for name, _ in one.factors):
        lower = [one for one in inequalities if one.factor(name) < 0]
        upper = [one for one in inequalities if one.factor(name) > 0]
        exact = all(one.factor(name) == -1 for one in lower) or all(one.factor(name) == 1 for one in upper)
        cost = (not exact, len(lower) * len(upper))
        if best is None or cost < best[0]:
            best = cost, name, lower, upper
    assert best is not None
    return best[1:]
