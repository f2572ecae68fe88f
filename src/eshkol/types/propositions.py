"""Propositions about sizes, as annotations have them in braces: `{i < n}`, `{0 <= i < n}`, `{n % 8 = 0}`.

Comes in: data that the reader made of braces, a list that begins with `{}`. Goes out: a `Proposition`, linear
constraints over the names in it. The first name is what the proposition is about: the parameter that has it for its
type, which is a `Nat` then, or the size in whose place it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eshkol.errors import BadType
from eshkol.lang.datum import List, Symbol, text
from eshkol.lang.reader import BRACES
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types.inequalities import Constraint, Linear, at_most, congruent, equal, less
from eshkol.types.sizes import read_size, size_of

ORDERS = {"<": less, "<=": at_most, "≤": at_most, "=": equal}
PROOF = "proof"  # as annotations have it, whatever the case of its letters
TURNED = {">": "<", ">=": "<=", "≥": "<="}


@dataclass(frozen=True, slots=True)
class Proposition:
    """What is said about integers; `subject` is the first name in it."""

    text: str
    subject: str
    constraints: tuple[Constraint, ...]
    equations: tuple[tuple[Linear, Linear], ...] = ()  # those of the constraints that are equations, by their sides

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for c in self.constraints for name, _ in c.sum.factors))


@dataclass(frozen=True, slots=True)
class Where:
    """A proposition about what a procedure is given: which parameters its names are; the others are sizes."""

    proposition: Proposition
    params: tuple[tuple[str, int], ...]
    subject: int | None  # the parameter that it is about, if it is not about a size
    place: Place | None
    proof: int | None = None  # the parameter that is a proof of it


def is_braces(datum: Any) -> bool:
    return (
        isinstance(datum, List) and bool(datum.items) and isinstance(datum.items[0], Symbol) and _word(datum) == BRACES
    )


def _word(datum: Any) -> str:
    first = datum.items[0]
    return first.name if isinstance(first, Symbol) else ""


def is_proof(datum: Any) -> bool:
    """Whether an annotation is (Proof {...})."""
    return (
        isinstance(datum, List)
        and len(datum.items) == 2
        and isinstance(datum.items[0], Symbol)
        and _word(datum).lower() == PROOF
        and is_braces(datum.items[1])
    )


def written(datum: List) -> str:
    return "{" + " ".join(text(item) for item in datum.items[1:]) + "}"


def subject_of(datum: List, place: Place | None) -> str:
    """The first name of what stands in braces."""
    todo: list[Any] = list(reversed(datum.items[1:]))
    while todo:
        item = todo.pop()
        if isinstance(item, Symbol) and item.name not in (*ORDERS, *TURNED, "+", "-", "*", "%"):
            return item.name
        if isinstance(item, List):
            todo += reversed(item.items)
    raise bad(f"{written(datum)} is about nothing", place, "{i < n} is about i", kind=BadType)


def read_proposition(datum: List, place: Place | None) -> Proposition:
    """What stands in braces."""
    wrong = bad(
        f"{written(datum)} is no proposition about sizes", place,
        "such are {i < n}, {0 <= i < n}, {n % 8 = 0}: sums of names by numbers, compared", kind=BadType,
    )  # fmt: skip
    sides: list[list[Any]] = [[]]
    orders: list[str] = []
    for item in datum.items[1:]:
        if isinstance(item, Symbol) and (item.name in ORDERS or item.name in TURNED):
            orders.append(item.name)
            sides.append([])
        else:
            sides[-1].append(item)
    if not orders:
        raise wrong
    constraints, equations = [], []
    try:
        for order, left, right in zip(orders, sides, sides[1:], strict=False):
            constraints.append(_compared(order, left, right))
            if constraints[-1].modulus == 0:
                equations.append((_sum(left), _sum(right)))
    except ValueError:
        raise wrong from None
    return Proposition(written(datum), subject_of(datum, place), tuple(constraints), tuple(equations))


def _compared(order: str, left: list[Any], right: list[Any]) -> Constraint:
    if len(left) >= 3 and isinstance(left[-2], Symbol) and left[-2].name == "%":
        modulus = left[-1]
        if order != "=" or not isinstance(modulus, int) or modulus < 1:
            raise ValueError
        return congruent(_sum(left[:-2]), _sum(right), modulus)
    if order in TURNED:
        return ORDERS[TURNED[order]](_sum(right), _sum(left))
    return ORDERS[order](_sum(left), _sum(right))


def _sum(items: list[Any]) -> Linear:
    """Names and numbers with +, - and * between them, or one datum as sizes have it."""
    total, by = Linear(()), 1
    products: list[Any] = []
    if not items:
        raise ValueError
    for position, item in enumerate([*items, Symbol("+")]):
        word = item.name if isinstance(item, Symbol) else ""
        if word in ("+", "-") and (products or position):
            total = total.plus(_product(products), by)
            by, products = (-1 if word == "-" else 1), []
        elif word == "-" and not products:
            by = -by
        elif word != "*":
            products.append(item)
    return total


def _product(items: list[Any]) -> Linear:
    found = Linear((), 1)
    if not items:
        raise ValueError
    for item in items:
        one = linear(size_of(item))
        if one is None or (found.factors and one.factors):
            raise ValueError
        found = one.times(found.constant) if not found.factors else found.times(one.constant)
    return found


def linear(size: int | str) -> Linear | None:
    """A size as a sum; None where names are multiplied in it."""
    factors: dict[str, int] = {}
    constant = 0
    for names, by in read_size(size).items():
        if len(names) > 1:
            return None
        if names:
            factors[names[0]] = by
        else:
            constant = by
    return Linear.of(factors, constant)


def braces_in(datum: Any) -> Iterator[List]:
    """What stands in braces within an annotation."""
    if is_braces(datum):
        yield datum
    elif isinstance(datum, List):
        for item in datum.items:
            yield from braces_in(item)
