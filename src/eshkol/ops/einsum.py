"""Einstein summation: reads the subscripts, then multiplies operands pair by pair with `contract`.

Subscripts are a string in front, or (`interleaved`) a list of numbers behind each operand, which becomes such a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import GROUP, Labels, arranged, contract, wide
from eshkol.ops.creation import full, iota
from eshkol.ops.elementwise import cast, equal, where
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import sum_
from eshkol.ops.row import Shape, Value, composite, sample

ELLIPSIS = "..."
LETTERS = ascii_uppercase + ascii_lowercase  # of the labels 0, 1, …; in the order in which letters are sorted


@dataclass(frozen=True)
class Term:
    """A tensor with a label for each axis: a letter, or a negative number for an axis under an ellipsis."""

    value: Any
    labels: Labels


@dataclass(frozen=True)
class Subscripts:
    """What a subscripts string says about operands of given shapes."""

    operands: tuple[Labels, ...]
    output: Labels


def parse(subscripts: str, operands: Sequence[Shape]) -> Subscripts:
    """Labels for the axes of the operands and of the result."""
    if not isinstance(subscripts, str):
        raise TensorError("einsum begins with a string of subscripts", hint='for instance einsum("ij,jk->ik", x, y)')
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        raise ShapeError(f"'{subscripts}' speaks of {len(parts)} operands, but {len(operands)} are given")
    found = tuple(_labels(part, len(shape), subscripts) for part, shape in zip(parts, operands, strict=True))
    covered = max((-min((n for n in labels if isinstance(n, int)), default=0) for labels in found), default=0)
    hidden = tuple(range(-covered, 0))
    if not arrow:
        letters = [n for labels in found for n in labels if isinstance(n, str)]
        return Subscripts(found, (*hidden, *sorted(n for n in set(letters) if letters.count(n) == 1)))
    if hidden and ELLIPSIS not in right:
        raise ShapeError(
            f"'{subscripts}': the result lacks the axes under the ellipsis", hint="write ... in the result too"
        )
    output = _labels(right, len(right.replace(ELLIPSIS, "")) + covered, subscripts)
    for n in output:
        if output.count(n) > 1 or not any(n in labels for labels in found):
            why = "stands twice in the result" if output.count(n) > 1 else "is not an axis of any operand"
            raise ShapeError(f"'{subscripts}': '{n}' {why}")
    return Subscripts(found, output)


def _labels(part: str, rank: int, subscripts: str) -> Labels:
    """The labels of one operand; axes under the ellipsis count from the last: …, -2, -1."""
    before, ellipsis, after = part.partition(ELLIPSIS)
    for letter in before + after:
        if not (letter.isascii() and letter.isalpha()):
            raise ShapeError(
                f"'{subscripts}': '{letter}' is not a letter", hint="axes are letters, operands are parted by commas"
            )
    covered = rank - len(before) - len(after)
    if covered < 0 or (covered and not ellipsis):
        raise ShapeError(f"'{subscripts}': '{part}' does not name the {rank} axes of its operand")
    return (*before, *range(-covered, 0), *after)


def _extents(terms: Iterable[Term]) -> dict[Any, int]:
    """How long the axes of each label are; those of extent 1 broadcast."""
    found: dict[Any, int] = {}
    for term in terms:
        for label, extent in zip(term.labels, term.value.shape, strict=True):
            if found.setdefault(label, extent) == 1:
                found[label] = extent
            elif extent not in (1, found[label]):
                what = f"'{label}'" if isinstance(label, str) else "the ellipsis"
                raise ShapeError(
                    f"axes of {what} are {found[label]} and {extent} long", hint="equal labels, equal axes"
                )
    return found


def interleaved(given: Sequence[Any]) -> tuple[Any, ...]:
    """The subscripts and operands that `x, [0, 1], y, [1, 2]` says, the labels of the result at the end if any."""
    operands, labels = given[0 : len(given) // 2 * 2 : 2], given[1::2]
    text = ",".join(map(_lettered, labels))
    return (f"{text}->{_lettered(given[-1])}" if len(given) % 2 else text, *operands)


def _lettered(labels: Any) -> str:
    if not isinstance(labels, list | tuple):
        kind = type(labels).__name__
        raise TensorError(
            f"a list of labels stands behind each operand, not a {kind}", hint="einsum(x, [0, 1], y, [1, 2])"
        )
    for label in labels:
        if label is not Ellipsis and (type(label) is not int or not 0 <= label < len(LETTERS)):
            raise TensorError(
                f"{label!r} is no label of an axis", hint=f"labels are integers from 0 to {len(LETTERS) - 1}"
            )
    return "".join(ELLIPSIS if label is Ellipsis else LETTERS[label] for label in labels)


# --- one operand ----------------------------------------------------------------------------------


def _diagonal(term: Term) -> Term:
    """Each label once: of two axes with one label, the diagonal."""
    value, labels = term.value, term.labels
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if value.shape[first] != value.shape[second]:
                raise ShapeError(
                    f"the axes '{label}' of one operand are {value.shape[first]} and {value.shape[second]}"
                )
            on = equal(iota.on(value, value.shape, first), iota.on(value, value.shape, second))
            value = _summed(where(on, value, 0), (second,))
            labels = labels[:second] + labels[second + 1 :]
    return Term(value, labels)


def _summed(x: Any, axes: Sequence[int]) -> Any:
    """A sum that keeps the dtype of integers, as a product does."""
    return cast(sum_(x, axes), x.dtype) if x.dtype.is_integer else sum_(x, axes)


def _squeezed(term: Term, extents: dict[Any, int]) -> Term:
    """Without the axes that broadcast."""
    single = [k for k, n in enumerate(term.labels) if term.value.shape[k] == 1 and extents[n] != 1]
    if not single:
        return term
    value = reshape(term.value, shapes.without(term.value.shape, single))
    return Term(value, tuple(n for k, n in enumerate(term.labels) if k not in single))


def _totalled(terms: list[Term], output: Labels) -> list[Term]:
    """Summed over the labels that nothing else speaks of."""
    found = []
    for place, term in enumerate(terms):
        kept = {*output, *(n for k, other in enumerate(terms) if k != place for n in other.labels)}
        alone = [k for k, n in enumerate(term.labels) if n not in kept]
        labels = tuple(n for n in term.labels if n in kept)
        found.append(Term(_summed(term.value, alone), labels) if alone else term)
    return found


# --- many operands --------------------------------------------------------------------------------


def _multiplied(terms: list[Term], chosen: Sequence[int], output: Labels) -> list[Term]:
    """The terms with some of them multiplied into one, which comes last."""
    rest = [t for k, t in enumerate(terms) if k not in chosen]
    picked = [terms[k] for k in chosen]
    product = picked[0]
    for place, term in enumerate(picked[1:], start=1):
        kept = {*output, *(n for t in (*rest, *picked[place + 1 :]) for n in t.labels)}
        product = Term(*contract(product.value, product.labels, term.value, term.labels, kept))
    return [*rest, product]


def _greedy(terms: list[Term], output: Labels) -> tuple[int, int]:
    """The pair whose product saves most elements, pairs with a label in common first."""

    def cost(pair: tuple[int, int]) -> tuple[bool, int]:
        one, other = (terms[k] for k in pair)
        rest = {*output, *(n for k, t in enumerate(terms) if k not in pair for n in t.labels)}
        extents = dict(zip((*one.labels, *other.labels), (*one.value.shape, *other.value.shape), strict=True))
        made = shapes.count(tuple(extent for n, extent in extents.items() if n in rest))
        return not {*one.labels} & {*other.labels}, made - one.value.size - other.value.size

    return min(combinations(range(len(terms)), 2), key=cost)


def _path(optimize: Any) -> list[tuple[int, ...]] | None:
    """The order of products the user gives, as numpy.einsum_path writes it; None: to be found."""
    if optimize in (True, "greedy", "optimal"):
        return None
    if isinstance(optimize, list | tuple) and (not optimize or optimize[0] == "einsum_path"):
        optimize = optimize[1:]
    if isinstance(optimize, list | tuple) and all(isinstance(step, list | tuple) for step in optimize):
        return [tuple(step) for step in optimize]
    raise TensorError(f"optimize={optimize!r} is no order of products", hint="use True, False or a list of pairs")


def _reference(subscripts: str, *operands: Any, optimize: Any = True) -> Any:
    return np.einsum(subscripts, *map(wide, operands))


@composite(
    group=GROUP, reference=_reference, method=False, scheme=("einsum",), tolerance=2.0,
    dtypes=("int", "float", "complex"),
    samples=(
        sample("ij,jk->ik", (2, 3), (3, 4)), sample("ij,jk", (2, 3), (3, 2)), sample("ba", (2, 3)),
        sample("ii->i", (3, 3)), sample("ii", (3, 3)), sample("iji->j", (2, 3, 2)), sample("ij->", (2, 3)),
        sample("...ij,...jk->...ik", (2, 2, 3), (3, 2)), sample("i...->...", (2, 3)), sample("i,j->ji", (2,), (3,)),
        sample("bij,bjk,kl->bil", (2, 2, 3), (2, 3, 2), (2, 3)), sample("i,i,i->", (3,), (3,), (3,)),
        sample("ij,jk,kl->il", (2, 3), (3, 2), (2, 3), optimize=["einsum_path", (1, 2), (0, 1)]),
        sample("ij,jk,kl->il", (2, 3), (3, 2), (2, 3), optimize=False), sample("ij,ij->i", (1, 3), (2, 1)),
        sample(",i->i", (), (2,)), sample("ij,j->i", (2, 0), (0,)), sample("...,...", (2, 1), (3,)),
    ),
)  # fmt: skip
def einsum(subscripts: str, *operands: Value, optimize: Any = True) -> Any:
    """The sum of products that the subscripts say, in NumPy's notation, with ellipsis and diagonals.

    Instead of a string, labels may stand behind each operand: einsum(x, [0, 1], y, [1, 2], [0, 2]).
    `optimize` orders the products: True or "greedy" finds a cheap order, False goes from left to right, and a list of
    pairs as of numpy.einsum_path is followed.
    """
    told = parse(subscripts, [tuple(x.shape) for x in operands])
    dtype = reduce(dtypes.promote, (x.dtype for x in operands))
    terms = [
        _diagonal(Term(cast(x, dtype) if x.dtype is not dtype else x, n))
        for x, n in zip(operands, told.operands, strict=True)
    ]
    extents = _extents(terms)
    if any(extent == 0 and label not in told.output for label, extent in extents.items()):
        return full(terms[0].value, tuple(extents[n] for n in told.output), 0, dtype)  # whatever the others hold
    terms = _totalled([_squeezed(term, extents) for term in terms], told.output)
    path = [tuple(range(len(terms)))] if optimize is False else _path(optimize)
    for step in path or ():
        if not step or not all(0 <= k < len(terms) for k in step) or len(set(step)) < len(step):
            raise TensorError(f"optimize: {step} does not choose among {len(terms)} operands")
        terms = _multiplied(terms, step, told.output)
    while len(terms) > 1:
        terms = _multiplied(terms, _greedy(terms, told.output), told.output)
    return arranged(terms[0].value, terms[0].labels, told.output)
