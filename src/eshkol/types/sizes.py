"""Sizes in types: numbers, names, and what sums and products make of both, in one normal form.

Comes in: data as annotations hold it (`n`, `784`, `(* 2 n)`, `(+ n 1)`). Goes out: an `int`, or the text of a
polynomial with its terms in order (`2*n + 1`), so that equal sizes are equal texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eshkol.lang.datum import List, Symbol

Size = int | str
Polynomial = dict[tuple[str, ...], int]  # names, in order, of each product, and its factor

UNKNOWN = "_"  # a size of which nothing is known


def size_of(datum: Any) -> Size:
    """A size as an annotation has it; ValueError where it is none."""
    return normal(_polynomial(datum))


def _polynomial(datum: Any) -> Polynomial:
    if isinstance(datum, bool):
        raise ValueError
    if isinstance(datum, int):
        return constant(datum)
    if isinstance(datum, Symbol):
        return {(datum.name,): 1}
    if isinstance(datum, List) and len(datum.items) > 2 and datum.tail is None and isinstance(datum.items[0], Symbol):
        first, *others = map(_polynomial, datum.items[1:])
        for other in others:
            match datum.items[0].name:
                case "+":
                    first = plus(first, other)
                case "-":
                    first = plus(first, times(constant(-1), other))
                case "*":
                    first = times(first, other)
                case _:
                    raise ValueError
        return first
    raise ValueError


def constant(number: int) -> Polynomial:
    return {(): number} if number else {}


def plus(a: Polynomial, b: Polynomial) -> Polynomial:
    found = dict(a)
    for names, factor in b.items():
        found[names] = found.get(names, 0) + factor
    return {names: factor for names, factor in found.items() if factor}


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for names, factor in a.items():
        for others, by in b.items():
            key = tuple(sorted((*names, *others)))
            found[key] = found.get(key, 0) + factor * by
    return {names: factor for names, factor in found.items() if factor}


def normal(polynomial: Polynomial) -> Size:
    """The number, or the text, of a polynomial."""
    if not polynomial:
        return 0
    if set(polynomial) == {()}:
        return polynomial[()]
    text = ""
    for names, factor in sorted(polynomial.items(), key=lambda term: (-len(term[0]), term[0])):
        size = abs(factor)
        term = "*".join([*([str(size)] if size != 1 or not names else []), *names])
        text += (" - " if text else "-") + term if factor < 0 else (" + " if text else "") + term
    return text


def read_size(text: Size) -> Polynomial:
    """The polynomial of a size in its normal form."""
    if isinstance(text, int):
        return constant(text)
    found: Polynomial = {}
    sign = 1
    for word in text.replace("-", " - ").replace("+", " + ").split():
        if word in ("+", "-"):
            sign = -1 if word == "-" else 1
            continue
        names, factor = [], sign
        for atom in word.split("*"):
            if atom.isdigit():
                factor *= int(atom)
            else:
                names.append(atom)
        found = plus(found, {tuple(sorted(names)): factor})
        sign = 1
    return found


def value_of(size: Size, values: Mapping[str, int]) -> int:
    """The number that a size is for values of its names."""
    total = 0
    for names, factor in read_size(size).items():
        product = factor
        for name in names:
            product *= values[name]
        total += product
    return total


def put(size: Size, sizes: Mapping[str, Size]) -> Size:
    """A size with other sizes for its names; unknown where one of them is."""
    total: Polynomial = {}
    for names, factor in read_size(size).items():
        product = constant(factor)
        for name in names:
            other = sizes.get(name, name)
            if other == UNKNOWN:
                return UNKNOWN
            product = times(product, read_size(other))
        total = plus(total, product)
    return normal(total)


def names_in(size: Size) -> set[str]:
    return {name for names in read_size(size) for name in names}
