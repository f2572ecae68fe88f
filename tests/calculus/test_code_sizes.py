"""Compiled derivatives are the code that they were; their programs are told and judged by all that is in them."""

from __future__ import annotations

import difflib
import platform
import re
from collections.abc import Callable, Iterator

import pytest
from code_sizes import GROUPS, KEPT, accounts
from compiled_procedures import ASKED, COMPILED, DEFINITIONS, GRADIENT, JACOBIAN, PROCEDURES
from programs_fast import PROGRAMS
from random_fast import program as random_program
from scheme_programs import Checker, close, parsed
from typed_programs import parse

from eshkol.calculus import ir
from eshkol.calculus.abstract import NIL, UNSPECIFIED, AbstractShape, NotFast, widened
from eshkol.calculus.ir import F64, I1, I64, NULL, Branch, Jump, Malformed, Return, TypedProgram


@pytest.mark.parametrize("group", GROUPS)
def test_code_is_what_it_was(group: str) -> None:
    """A line says what changed: counts where there is more or less of it, else the digest alone.

    Digests are those of AArch64: numbers that were folded come from the machine's library, and other machines may have
    them with another last bit; there counts alone are compared.
    """
    kept = [line for line in KEPT.read_text().splitlines() if line.startswith(f"{group} ")]
    found = [one.line for one in accounts(group)]
    if kept != found and platform.machine() not in ("aarch64", "arm64"):
        kept, found = ([line.rpartition(" ")[0] for line in lines] for lines in (kept, found))
    changed = [line for line in difflib.ndiff(kept, found) if line[0] in "+-"]
    assert not changed, (
        f"{len(changed)} lines; `tests/calculus/code_sizes.py --show NAME` prints what a digest is of. "
        "If the change is meant, run `make generate`:\n" + "\n".join(changed[:20])
    )


def test_compiled_procedures_are_what_numbers_say() -> None:
    """Each at all its points, one after another: what was compiled for one length meets the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESHKOL_CHECK", "1")
        checker = Checker()
        try:
            checker.evaluate(DEFINITIONS)
            for name in (head.partition(" ")[0] for head in COMPILED):
                if GRADIENT not in ASKED.get(name, (GRADIENT,)) or JACOBIAN in ASKED.get(name, ()):
                    continue
                code, points = PROCEDURES[name]
                checker.evaluate(f"(define {name} {code})")
                for point in points:
                    value, _, found, forward, reverse = parsed(checker.evaluate(f"(outcome {name} (list {point}))"))
                    assert isinstance(found, list), (name, point, found)
                    assert close(found[:1], [value], 1e-15, 1e-300), (name, point)
                    assert close(found, forward, 1e-13, 1e-300), (name, point, found, forward)
                    assert close(found, reverse, 1e-13, 1e-300), (name, point, found, reverse)
        finally:
            checker.close()


def test_edges_of_domains_are_where_numbers_say() -> None:
    """Beyond them results are complex: compiled code must notice, and leave them to the numbers."""
    checker = Checker()
    try:
        for name in ("sqrt", "log", "asin", "acos"):
            loop = f"(let loop ((i 0) (s 0)) (if (= i 2) s (loop (+ i 1) (+ s (* x ({name} x))))))"
            checker.evaluate(f"(define (at-{name} x) {loop})")
            for point in ("0.5", "1.5", "-0.5", "-1.5"):
                *_, found, forward, reverse = parsed(checker.evaluate(f"(outcome at-{name} (list {point}))"))
                for other in (forward, reverse):
                    assert numbers(found) == pytest.approx(numbers(other), rel=1e-13), (name, point)
    finally:
        checker.close()


def numbers(found: object) -> list[complex] | str:
    """Real and complex numbers, as the machine writes them; anything else as it is."""
    if not isinstance(found, list):
        return str(found)
    return [complex(x.replace("i", "j")) if isinstance(x, str) else complex(x) for x in found]


def programs() -> Iterator[TypedProgram]:
    yield from (parse(text) for text, _ in PROGRAMS.values())
    yield from (random_program(seed)[0] for seed in range(8))


def told(program: TypedProgram) -> str:
    """Its text without the names that people read."""
    return re.sub(r"(%\d+)[.\w]*", r"\1", ir.text(program))


def test_the_text_says_all() -> None:
    """Compiled code is found by it."""
    for program in programs():
        assert told(parse(ir.text(program))) == told(program)


# ---- programs that break the rules -----------------------------------------------------------------------------------


def broken(program: TypedProgram) -> Iterator[tuple[str, Callable[[], None]]]:
    """Ways to break a program, each to be tried on a copy."""
    blocks = [block for function in program.functions for block in function.blocks]
    for block in blocks:
        used = {v for b in blocks for i in b.body for v in i.operands}
        for place, item in enumerate(block.body):
            if any(result in used for result in item.results):
                yield f"no {item.operation}", lambda b=block, k=place: b.body.pop(k)
            if item.operands and "..." not in ir.OPERATIONS[item.operation] and item.operation != "is_null":
                yield f"{item.operation} of less", lambda i=item: i.operands.pop()
                yield f"{item.operation} of more", lambda i=item: i.operands.append(i.operands[0])
            yield "no such operation", lambda i=item: setattr(i, "operation", "nothing")
        for jump in block.jumps():
            if jump.args:
                yield "a jump with less", lambda j=jump: j.args.pop()
            yield (
                "a jump elsewhere",
                lambda j=jump: setattr(j, "target", ir.Block("elsewhere", list(j.target.params), [])),
            )
        if isinstance(block.end, Branch):
            other = next((i.result for i in block.body if len(i.results) == 1 and i.result.type != I1), None)
            if other is not None:
                yield "a branch on a number", lambda b=block, v=other: setattr(b.end, "condition", v)
        if isinstance(block.end, Return) and block.end.values:
            yield "a return of less", lambda b=block: b.end.values.pop()
        if isinstance(block.end, Jump) and block.end.args:
            kinds = {p.type for p in block.end.target.params}
            other = next((i.result for i in block.body if len(i.results) == 1 and i.result.type not in kinds), None)
            if other is not None and kinds == {F64} and other.type == I64:
                yield "a jump with another type", lambda b=block, v=other: b.end.args.__setitem__(0, v)
    yield "too few marks", lambda: program.active.append(True)
    first = program.main.blocks[0]
    yield "a jump to the beginning", lambda: setattr(first, "end", Jump(first, list(first.params)))


def retyped(program: TypedProgram) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each operand, argument of a jump and returned value in turn, with a value of another type in its place."""
    others = [F64, I64, I1, NULL, ir.array(F64), ir.cell(F64), ir.cell(I64), ir.vector(F64), ir.pairs(F64)]
    for function in program.functions:
        made = [ir.TypedValue(kind) for kind in others]
        function.blocks[0].params += made
        program.active += [False] * (len(made) if function is program.main else 0)
        for block in function.blocks:
            places = [
                (item.operands, k, item.operation, operand.type)
                for item in block.body for k, operand in enumerate(item.operands) if _is_typed(item, k)
            ]  # fmt: skip
            places += [
                (jump.args, k, "jump", p.type) for jump in block.jumps() for k, p in enumerate(jump.target.params)
            ]
            if isinstance(block.end, Return):
                places += [(block.end.values, k, "return", kind) for k, kind in enumerate(function.results)]
            for values, k, what, wanted in places:
                for other in made:
                    null = (
                        other.type == NULL and (what == "jump" or wanted.kind in ("cell", "pairs")) and what != "return"
                    )
                    same = other.type.kind == wanted.kind if what not in ("jump", "return") else other.type == wanted
                    if not null and not same:
                        yield f"{what} of {other.type}", lambda v=values, k=k, o=other: v.__setitem__(k, o)


def _is_typed(item: ir.Instruction, place: int) -> bool:
    """Whether an operation says of what kind an operand is."""
    kinds = ir.OPERATIONS[item.operation].split()
    return "..." not in kinds and item.operation != "is_null" and kinds[place] != "="


def test_values_of_other_types_are_refused() -> None:
    tried = 0
    for text, _ in PROGRAMS.values():
        program = parse(text)
        for name, way in retyped(program):
            ir.verify(program)
            kept = [(values, list(values)) for values in all_values(program)]
            way()
            assert refused(program), name
            for values, before in kept:
                values[:] = before
            tried += 1
    assert tried > 1000


def all_values(program: TypedProgram) -> Iterator[list[ir.TypedValue]]:
    for block in (block for function in program.functions for block in function.blocks):
        yield from (item.operands for item in block.body)
        yield from (jump.args for jump in block.jumps())
        if isinstance(block.end, Return):
            yield block.end.values


def refused(program: TypedProgram) -> bool:
    try:
        ir.verify(program)
    except Malformed:
        return True
    return False


def test_what_breaks_a_rule_is_refused() -> None:
    tried = 0
    for text in [text for text, _ in PROGRAMS.values()]:
        ir.verify(parse(text))
        for number, (name, _) in enumerate(broken(parse(text))):
            program = parse(text)
            next(way for k, (_, way) in enumerate(broken(program)) if k == number)()
            assert refused(program), name
            tried += 1
    assert tried > 200


# ---- values that meet ------------------------------------------------------------------------------------------------


def known(datum: object) -> AbstractShape:
    return AbstractShape("known", (type(datum), datum))


def leaf(kind: ir.Type) -> AbstractShape:
    return AbstractShape("leaf", kind)


def listed(*items: AbstractShape, end: AbstractShape | None = None) -> AbstractShape:
    found = known(NIL) if end is None else end
    for item in reversed(items):
        found = AbstractShape("fields", ("pair", None), (item, found))
    return found


def vector(*items: AbstractShape) -> AbstractShape:
    return AbstractShape("fields", ("vector", None), items)


def dotted(end: AbstractShape) -> AbstractShape:
    return AbstractShape("fields", ("pair", None), (leaf(F64), end))


def record(kind: str, *items: AbstractShape) -> AbstractShape:
    return AbstractShape("fields", ("record", kind), items)


REAL, WHOLE, TRUTH = leaf(F64), leaf(I64), leaf(I1)
REALS, ROW = leaf(ir.cell(F64)), leaf(ir.array(F64))
MEETINGS = [  # two, and the least that both fit; None where there is nothing
    (known(1), known(1), known(1)), (known(1), known(2), WHOLE), (known(1), known(1.5), REAL), (known(1), REAL, REAL),
    (WHOLE, REAL, REAL), (WHOLE, known(2), WHOLE), (known(True), known(True), known(True)),
    (known(True), known(False), TRUTH), (known(True), TRUTH, TRUTH), (known(True), known(1), None),
    (known(True), known(1.5), None), (TRUTH, WHOLE, None), (TRUTH, REAL, None), (known(True), known(NIL), None),
    (known(UNSPECIFIED), REAL, known(UNSPECIFIED)), (known(UNSPECIFIED), known(3), known(UNSPECIFIED)),
    (listed(REAL), listed(REAL), listed(REAL)), (listed(REAL), listed(known(1.5)), listed(REAL)),
    (listed(REAL, REAL), listed(REAL), REALS), (listed(REAL), known(NIL), REALS),
    (listed(WHOLE), known(NIL), leaf(ir.cell(I64))),
    (listed(WHOLE), listed(REAL, REAL), REALS), (REALS, known(NIL), REALS), (REALS, listed(REAL, REAL), REALS),
    (REALS, listed(WHOLE), REALS), (listed(REAL, end=REALS), listed(REAL), REALS),
    (leaf(ir.pairs(F64, 3)), known(NIL), leaf(ir.pairs(F64))),
    (leaf(ir.pairs(F64, 3)), leaf(ir.pairs(F64, 2)), leaf(ir.pairs(F64))),
    (leaf(ir.pairs(F64, 3)), leaf(ir.pairs(F64, 3)), leaf(ir.pairs(F64, 3))), (leaf(NULL), REALS, REALS),
    (leaf(NULL), leaf(ir.pairs(F64, 2)), leaf(ir.pairs(F64))), (leaf(NULL), leaf(NULL), leaf(NULL)),
    (vector(REAL), vector(REAL), vector(REAL)), (vector(REAL), vector(REAL, REAL), ROW), (vector(WHOLE), ROW, ROW),
    (vector(REAL, WHOLE), vector(WHOLE, WHOLE), vector(REAL, WHOLE)), (ROW, vector(REAL), ROW), (ROW, REALS, None),
    (ROW, REAL, None), (REALS, REAL, None), (listed(REAL), REAL, None), (vector(REAL), REAL, None),
    (vector(REAL), listed(REAL), None), (vector(REAL), REALS, None), (ROW, known(NIL), None), (listed(REAL), ROW, None),
    (listed(TRUTH), known(NIL), None), (listed(listed(REAL)), known(NIL), leaf(ir.cell(ir.cell(F64)))),
    (listed(vector(REAL, REAL)), known(NIL), leaf(ir.cell(ir.array(F64)))),
    (vector(vector(REAL)), vector(), leaf(ir.array(ir.array(F64)))),
    (AbstractShape("primitive", "sin"), AbstractShape("primitive", "cos"), None),
    (AbstractShape("primitive", "sin"), AbstractShape("primitive", "sin"), AbstractShape("primitive", "sin")),
    (AbstractShape("box", F64), REAL, None),
    (dotted(REAL), dotted(WHOLE), dotted(REAL)), (dotted(REAL), listed(REAL, REAL), None), (dotted(REAL), REALS, None),
    (dotted(REAL), known(NIL), None), (dotted(REAL), vector(REAL, REAL), None), (dotted(REAL), dotted(TRUTH), None),
    (record("a", REAL), record("a", known(1)), record("a", REAL)), (record("a", REAL), record("b", REAL), None),
    (record("a", REAL), record("a", REAL, REAL), None), (record("a", REAL), vector(REAL), None),
    (vector(TRUTH), vector(TRUTH, TRUTH), None), (vector(), vector(REAL), ROW),
    (listed(REAL, end=leaf(ir.pairs(F64))), listed(REAL), listed(REAL, end=leaf(ir.pairs(F64)))),
    (leaf(ir.pairs(F64)), listed(REAL), None),
]  # fmt: skip


def met(a: AbstractShape, b: AbstractShape) -> AbstractShape | None:
    try:
        return widened(a, b)
    except NotFast:
        return None


def test_what_meets_is_the_least_that_both_fit() -> None:
    for a, b, wanted in MEETINGS:
        assert met(a, b) == wanted, (a, b)
        assert met(b, a) == wanted, (b, a)


def test_meeting_again_changes_nothing() -> None:
    every = list({shape for a, b, _ in MEETINGS for shape in (a, b)})
    for a in every:
        assert met(a, a) == a
        for b in every:
            found = met(a, b)
            assert found == met(b, a)
            if found is not None:
                assert met(found, a) == met(found, b) == met(b, found) == found, (a, b)
