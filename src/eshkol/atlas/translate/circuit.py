"""Circuits to Atlas programs: `translate_circuit`.

Comes in: a phrase of generators over the 96 resonance classes. Goes out: a `Program` that works on class
memory, without parameters, and gives the same result under any launch.

    phrase := [transforms "@"] par                transforms := transform {transform}
    par    := seq {"||" seq}                      seq := term {"." term}
    term   := gen [":" variant] "@" target | "(" par ")"
    target := place | place "->" place | place "<->" place | place "[" place "," place "]"
    place  := ("c" N | "c[" N ".." N "]") ["^" ±k] ["~"] ["@" page]

A place is one page of 256 bytes (page 0 unless said, of 48) of a class, holding elements of the type that is
asked for (F32 unless said, 64 of them). White space, line ends included, may stand between any two tokens.

    mark@P                    every byte of P is XORed with 0x80
    copy@A->B                 B = A
    swap@A<->B                A and B change places
    merge@P[Ctx,Dst]          Dst = P + Ctx; variants mul, min, max: merge:mul@c00[c01,c02]
    merge:f@P[Ctx,Dst]        Dst = f(P) for a unary f: neg abs relu sqrt exp log sin cos tan tanh sigmoid. Such
                              a merge has nothing to take from Ctx and does not read it; merge:f@P is P = f(P)
    split@P[Ctx,Dst]          Dst = P - Ctx; variant div: split:div@c00[c01,c02]
    reduce@P                  element 0 of P = the sum of P; variants min, max: reduce:max@c00
    softmax@P                 P = exp(P) / sum(exp(P)), stable
    quote@P                   from here on, terms that would write P are suspended
    evaluate@P                P is no longer quoted: suspended terms that were waiting for it run now, in order,
                              on what memory holds now; with nothing suspended this does nothing

`quote@P . t . evaluate@P` is thus `t`. A term that writes two quoted places waits for both. A circuit that
ends with terms still suspended is an error, since they would silently never run.

A class is 24·h2 + 8·d + ℓ (h2 of 4, d of 3, ℓ of 8). The transforms R±q (h2 + q mod 4), T±k (ℓ + k mod 8) and
~ (d 1 ↔ 2) in front of a phrase move every class in it; `^±k` and `~` do as T and ~ do, on one place. They
act on different digits, so their order does not matter.

`.` runs its terms from left to right. `||` says that its sides do not depend on one another: a place that one
side writes may not be touched by the other, and since that is checked, any order is right. A range `c[a..b]`,
ends included, stands for its classes in turn, as terms joined by `.`; where a term has several ranges
they advance together and must be equally long, and a single place that is only read serves all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.classes import PAGE_BYTES
from eshkol.atlas.operands import (
    GLOBAL,
    BinaryMapOperation,
    ClassOffset,
    Condition,
    Label,
    MapOperation,
    ReduceOperation,
    Register,
)
from eshkol.atlas.program import Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.translate.circuit_parser import CircuitPlace, InOrder, TargetForm, Term, Tree, parse_circuit
from eshkol.atlas.types import Type
from eshkol.errors import IsaError, Span

WORD = Type.U32  # what pages are moved by: every machine has it
MARK = 0x80808080  # the mark, 0x80, on every byte of a word
Spot = tuple[int, int]  # a class and a page


def translate_circuit(source: str, element: Type = Type.F32) -> Program:
    """The Atlas program of a circuit over pages of elements of one type.

    >>> program = translate_circuit("merge@c00[c01,c02] . mark@c02")
    >>> [i.op.name for i in program.instructions][0]
    'ParallelMapBinary'
    """
    if element.size_bytes > PAGE_BYTES:
        raise IsaError(f"{element} does not fit a page of {PAGE_BYTES} bytes")
    elaboration = _Elaboration(element)
    elaboration.run(parse_circuit(source))
    elaboration.finish()
    return _emit(elaboration.steps)


# --- generators -----------------------------------------------------------------------------------


def _address(spot: Spot) -> ClassOffset:
    return ClassOffset(spot[0], spot[1] * PAGE_BYTES)


def _mark(b: ProgramBuilder, ty: Type, spot: Spot) -> None:
    mark, word = b.constant(WORD, MARK), b.reg(WORD)
    with b.loop(PAGE_BYTES // WORD.size_bytes) as k:
        at = _address(spot).at(k, WORD.size_bytes)
        b.ldg(WORD, word, at)
        b.xor(word, word, mark)
        b.stg(WORD, at, word)


def _copy(b: ProgramBuilder, ty: Type, source: Spot, target: Spot) -> None:
    word = b.reg(WORD)
    with b.loop(PAGE_BYTES // WORD.size_bytes) as k:
        b.ldg(WORD, word, _address(source).at(k, WORD.size_bytes))
        b.stg(WORD, _address(target).at(k, WORD.size_bytes), word)


def _swap(b: ProgramBuilder, ty: Type, left: Spot, right: Spot) -> None:
    words = b.reg(WORD), b.reg(WORD)
    with b.loop(PAGE_BYTES // WORD.size_bytes) as k:
        places = [_address(spot).at(k, WORD.size_bytes) for spot in (left, right)]
        for word, place in zip(words, places, strict=True):
            b.ldg(WORD, word, place)
        for word, place in zip(words, reversed(places), strict=True):
            b.stg(WORD, place, word)


def _elements(ty: Type) -> int:
    return PAGE_BYTES // ty.size_bytes


def _binary(operation: BinaryMapOperation) -> EmitFunction:
    def emit(b: ProgramBuilder, ty: Type, left: Spot, context: Spot, target: Spot) -> None:
        places = (_address(spot) for spot in (target, left, context))
        b.parallel_map_binary(ty, operation, *places, _elements(ty))

    return emit


def _unary(operation: MapOperation) -> EmitFunction:
    def emit(b: ProgramBuilder, ty: Type, *spots: Spot) -> None:
        b.parallel_map(ty, operation, _address(spots[-1]), _address(spots[0]), _elements(ty))

    return emit


def _reduce(operation: ReduceOperation) -> EmitFunction:
    def emit(b: ProgramBuilder, ty: Type, spot: Spot) -> None:
        total = b.reg(ty)
        b.parallel_reduce(ty, operation, total, _address(spot), _elements(ty))
        b.stg(ty, _address(spot), total)

    return emit


def _softmax(b: ProgramBuilder, ty: Type, spot: Spot) -> None:
    b.softmax(ty, _address(spot), _address(spot), _elements(ty))


EmitFunction = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Variant:
    """What a generator does, and how it uses each place of its target.

    A use is "r", "w", "rw", or "-" for a place that is not touched. Collective code is reached by all lanes
    and done once; any other code is for one lane.
    """

    uses: Mapping[TargetForm, tuple[str, ...]]
    emit: EmitFunction | None  # None: quote and evaluate, which emit nothing themselves
    types: frozenset[Type] = frozenset(Type)
    collective: bool = False


ONE, CONTEXT = TargetForm.ONE, TargetForm.CONTEXT
IN_PLACE = {ONE: ("rw",)}
DEFAULT = ""  # the name of the variant that is meant where none is written


def _merges() -> dict[str, Variant]:
    binary = (BinaryMapOperation.Add, BinaryMapOperation.Mul, BinaryMapOperation.Min, BinaryMapOperation.Max)
    return _combinations(*binary) | {
        op.name.lower(): Variant(
            {CONTEXT: ("r", "-", "w"), **IN_PLACE}, _unary(op), ROWS[op.value].types, collective=True
        )
        for op in MapOperation
    }


def _combinations(*operations: BinaryMapOperation) -> dict[str, Variant]:
    """Variants that combine two places, the first of them the default."""
    named = {
        op.name.lower(): Variant({CONTEXT: ("r", "r", "w")}, _binary(op), ROWS[op.value].types, collective=True)
        for op in operations
    }
    return {DEFAULT: named[operations[0].name.lower()], **named}


def _reductions(*operations: ReduceOperation) -> dict[str, Variant]:
    named = {op.name.lower(): Variant(IN_PLACE, _reduce(op), ROWS[op.value].types) for op in operations}
    return {DEFAULT: named[operations[0].name.lower()], **named}


GENERATORS: dict[str, dict[str, Variant]] = {
    "mark": {DEFAULT: Variant(IN_PLACE, _mark)},
    "copy": {DEFAULT: Variant({TargetForm.ARROW: ("r", "w")}, _copy)},
    "swap": {DEFAULT: Variant({TargetForm.EXCHANGE: ("rw", "rw")}, _swap)},
    "merge": _merges(),
    "split": _combinations(BinaryMapOperation.Sub, BinaryMapOperation.Div),
    "quote": {DEFAULT: Variant(IN_PLACE, None)},
    "evaluate": {DEFAULT: Variant(IN_PLACE, None)},
    "reduce": _reductions(ReduceOperation.Sum, ReduceOperation.Min, ReduceOperation.Max),
    "softmax": {DEFAULT: Variant(IN_PLACE, _softmax, ROWS["Softmax"].types, collective=True)},
}


# --- from terms to steps --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CircuitStep:
    """One generator on single pages, ready to be emitted."""

    emit: Callable[[ProgramBuilder], None]
    reads: tuple[Spot, ...]
    writes: tuple[Spot, ...]
    collective: bool
    span: Span
    number: int  # in the order of the text


@dataclass(slots=True)
class Footprint:
    """The spots that a part of the circuit reads and writes, each with the first term that does."""

    reads: dict[Spot, Span] = field(default_factory=dict)
    writes: dict[Spot, Span] = field(default_factory=dict)

    def touch(self, reads: Iterable[Spot], writes: Iterable[Spot], span: Span) -> None:
        for spot in reads:
            self.reads.setdefault(spot, span)
        for spot in writes:
            self.writes.setdefault(spot, span)

    def include(self, other: Footprint) -> None:
        for own, more in ((self.reads, other.reads), (self.writes, other.writes)):
            for spot, span in more.items():
                own.setdefault(spot, span)

    def require_apart(self, other: Footprint) -> None:
        """Neither part may write what the other touches."""
        for mine, theirs in ((self.writes, other.writes), (self.reads, other.writes), (self.writes, other.reads)):
            for spot, span in theirs.items():
                if spot in mine:
                    raise IsaError(
                        f"{_show(spot)} is written on one side of || and used on the other",
                        span=span, hint="use . where the order matters",
                    )  # fmt: skip


def _show(spot: Spot) -> str:
    return f"c{spot[0]:02}" + (f"@{spot[1]}" if spot[1] else "")


class _Elaboration:
    """Walks the tree and lists the steps in the order in which they run."""

    def __init__(self, element: Type) -> None:
        self.element = element
        self.steps: list[CircuitStep] = []
        # The quoted spots, each with the steps that wait for it (a step waits in one place at a time).
        self.quoted: dict[Spot, list[CircuitStep]] = {}
        self.count = 0

    def run(self, tree: Tree) -> Footprint:
        """Elaborate a part of the circuit; what it touches."""
        footprint = Footprint()
        if isinstance(tree, Term):
            self._term(tree, footprint)
        elif isinstance(tree, InOrder):
            for part in tree.parts:
                footprint.include(self.run(part))
        else:
            for side in tree.sides:
                other = self.run(side)
                footprint.require_apart(other)
                footprint.include(other)
        return footprint

    def finish(self) -> None:
        left = [(step.number, spot, step) for spot, steps in self.quoted.items() for step in steps]
        if left:
            _, spot, step = min(left)
            message = f"{_show(spot)} is quoted and never evaluated: this never runs"
            raise IsaError(message, span=step.span, hint=f"add . evaluate@{_show(spot)}")

    def _term(self, term: Term, footprint: Footprint) -> None:
        variant = self._variant(term)
        uses = variant.uses[term.form]
        for spots in _rounds(term.places, uses):
            reads = tuple(spot for spot, use in zip(spots, uses, strict=True) if "r" in use)
            writes = tuple(spot for spot, use in zip(spots, uses, strict=True) if "w" in use)
            footprint.touch(reads, writes, term.span)
            if variant.emit is not None:
                emit = partial(self._emit_on, variant.emit, spots)
                self.count += 1
                self._schedule(CircuitStep(emit, reads, writes, variant.collective, term.span, self.count))
            elif term.generator.text == "quote":
                self.quoted.setdefault(spots[0], [])
            else:
                for step in sorted(self.quoted.pop(spots[0], []), key=lambda step: step.number):
                    if self._schedule(step):
                        footprint.touch(step.reads, step.writes, term.span)

    def _emit_on(self, emit: EmitFunction, spots: tuple[Spot, ...], b: ProgramBuilder) -> None:
        emit(b, self.element, *spots)

    def _schedule(self, step: CircuitStep) -> bool:
        """Run a step, or leave it waiting for a quoted spot; whether it runs."""
        waiting = next((self.quoted[spot] for spot in step.writes if spot in self.quoted), self.steps)
        waiting.append(step)
        return waiting is self.steps

    def _variant(self, term: Term) -> Variant:
        """The row of the table that a term means, its target and the element type checked."""
        name = term.generator.text
        variants = GENERATORS.get(name)
        if variants is None:
            raise IsaError(f"there is no generator '{name[:40]}'", span=term.generator.span, hint=_names(GENERATORS))
        word = term.variant
        variant = variants.get(word.text if word is not None else DEFAULT)
        if variant is None:
            assert word is not None  # every generator has a default
            known = _names(variants) if len(variants) > 1 else f"{name} has no variants"
            raise IsaError(f"{name} has no variant '{word.text[:40]}'", span=word.span, hint=known)
        if term.form not in variant.uses:
            examples = " or ".join(f"{name}@{form.value}" for form in variant.uses)
            raise IsaError(f"{name} does not take a target of this form", span=term.span, hint=f"write {examples}")
        if self.element not in variant.types:
            span = term.generator.span if word is None else word.span
            raise IsaError(f"{word.text if word else name} is not defined on {self.element}", span=span)
        return variant


def _names(known: Iterable[str]) -> str:
    return "known: " + " ".join(name for name in known if name)


def _rounds(places: Sequence[CircuitPlace], uses: Sequence[str]) -> Iterator[tuple[Spot, ...]]:
    """The single pages of each round of a term: ranges advance together, a place that is only read stays."""
    rounds = max(len(place.classes) for place in places)
    for place, use in zip(places, uses, strict=True):
        if len(place.classes) != rounds and (len(place.classes) > 1 or "w" in use):
            count = len(place.classes)
            raise IsaError(
                f"{count} class{'es' * (count > 1)} cannot go with a range of {rounds}", span=place.span,
                hint="ranges in one term must be equally long",
            )  # fmt: skip
    for k in range(rounds):
        yield tuple((place.classes[k % len(place.classes)], place.page) for place in places)


# --- from steps to instructions -------------------------------------------------------------------


def _emit(steps: Sequence[CircuitStep]) -> Program:
    """The program of these steps.

    Collective steps stand between barriers of their own. The others, which move words, run in one lane; a
    barrier where one kind follows the other makes their writes visible in time.
    """
    b = ProgramBuilder("circuit")
    for number, (collective, group) in enumerate(groupby(steps, key=lambda step: step.collective)):
        if number:
            b.grid_sync()
        others = Label(f"others{number}")
        if not collective:
            with b.scratch({}):
                elsewhere = b.pred()
                b.setcc(Condition.NE, elsewhere, Register(GLOBAL), b.constant(Type.U64, 0))
                b.bra(others, elsewhere)
        for step in group:
            b.span = step.span
            with b.scratch({}):
                step.emit(b)
        b.span = None
        if not collective:
            b.place(others)
    return b.build()
