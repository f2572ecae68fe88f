"""What compiled derivatives are made of: counted for many programs, with a digest of all of it, in `code_sizes.txt`.

    PYTHONPATH=src:tests .venv/bin/python tests/calculus/code_sizes.py      # writes it anew, if a change is meant
    PYTHONPATH=src:tests .venv/bin/python tests/calculus/code_sizes.py --show "typed lists"

What varies, what is kept on the tape, which blocks are merged and which calls inlined changes no derivative, but how
fast it is. Comes in: typed programs written by hand, random ones, what Scheme procedures become
(`compiled_procedures.py`), expressions of `test_every_primitive.py`. Goes out: a line for each: functions, blocks,
instructions and parameters of the program; blocks, instructions, loads, stores and calls of its tangents, of its
gradient and of that with checkpoints, or why there is none; and the digest of the whole text: what the program takes
from the machine that runs, how its result is put together, its instructions, and the LLVM text of all these. Nothing is
compiled by LLVM, and no address, hash or machine has a part in it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import io
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from compiled_procedures import ASKED, DEFINITIONS, MADE, PROCEDURES, USED
from differentiable_programs import program as scheme_program
from programs_fast import PROGRAMS
from random_fast import program as random_program
from scheme_programs import PRELUDE
from test_every_primitive import CASES
from test_every_primitive import PRELUDE as RECORDS
from typed_programs import parse

from eshkol.calculus import fast, forward, ir, native
from eshkol.calculus.abstract import NotFast
from eshkol.calculus.reverse import gradient
from eshkol.calculus.rules import rules
from eshkol.codegen import compiling
from eshkol.runtime.scheme import Value
from eshkol.session import SessionThread
from eshkol.session.session import Session

KEPT = Path(__file__).parent / "code_sizes.txt"
RANDOM = range(12)
SCHEME = (1, 5, 16)  # seeds whose programs are compiled, and differ
LANES = 3
MOST_CASES = 5  # of a primitive
ADDRESSES = 1 << 12  # numbers from here on
PROCEDURE = re.compile(r"^(define internal tailcc .*\{\n)(?:[^}].*\n)*\}", re.MULTILINE)  # in the LLVM text of a unit


@dataclass(frozen=True)
class Account:
    """What is kept of a program, and the text that its digest is of."""

    name: str
    counts: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.name}: {self.counts} # {hashlib.sha256(self.text.encode()).hexdigest()[:10]}"


def counted(text: str) -> str:
    """Blocks, instructions, loads, stores and calls of LLVM text."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    blocks = len(re.findall(r"^[\w.]+:", text, re.MULTILINE))
    words = [len(re.findall(rf"\b{word}\b", "\n".join(lines))) for word in ("load", "store", "call")]
    return " ".join(map(str, [blocks, len(lines), *words]))


def account(name: str, program: ir.TypedProgram, about: str = "") -> Account:
    """What is written for a program."""
    blocks = [block for function in program.functions for block in function.blocks]
    counts = [len(program.functions), len(blocks), sum(len(b.body) for b in blocks), sum(len(b.params) for b in blocks)]
    found, texts = [" ".join(map(str, counts))], [about, ir.text(program)]
    modules = {
        "tangents": lambda: forward.tangents(program, LANES),
        "gradient": lambda: gradient(program),
        "with checkpoints": lambda: gradient(program, True),
    }
    for what, made in modules.items():
        try:
            module = made()
            text = module.text()
            found.append(counted(text))
            texts += [f"; {what}, calls {module.outside}", text]
        except NotFast as reason:
            found.append("-")
            texts.append(f"; {what}: {reason}")
    return Account(name, " | ".join(found), "\n\n".join(texts) + "\n")


# ---- procedures of a machine -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What came of asking for one compiled derivative: a program and what else is made for it, or why there is none."""

    text: str  # of the program, or the reason
    program: ir.TypedProgram | None = None
    about: str = ""


class Asking:
    """A session whose derivatives are made as always, up to what LLVM would be given."""

    def __init__(self) -> None:
        self.thread = SessionThread()
        self.define(PRELUDE + RECORDS)
        self.seen: list[tuple[str, ir.TypedProgram, Callable[[], Any]]] = []
        self.said: list[str] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        def load(what: str, program: ir.TypedProgram, write: Callable[[], Any], *_: Any) -> int:
            ir.verify(program)
            self.seen.append((what, program, write))
            return 0

        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(printed):
            patch.setenv("ESHKOL_CHECK", "1")
            patch.setattr(native, "_load", load)
            patch.setattr(fast.FastPrograms, "_say", lambda _self, _procedure, what: self.said.append(what))
            patch.setattr(forward, "WIDTH", 4)
            yield
        assert not printed.getvalue(), printed.getvalue()

    def define(self, text: str) -> None:
        """Definitions; nothing calls the procedures, so that LLVM need not see what is in them."""
        whole = compiling._object

        def hollow(text: str, effort: int, cache: Any) -> bytes:
            if effort == compiling.FULL:  # a library that is needed for the first time, and kept for everyone
                return whole(text, effort, cache)
            return whole(PROCEDURE.sub(r"\1  unreachable\n}", text), effort, cache)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiling, "_object", hollow)
            self.evaluate(text)

    def evaluate(self, text: str) -> None:
        self.thread.call(lambda session: session.evaluate(text))

    def asked(self, questions: list[tuple[int, str]]) -> list[Asked]:
        """What comes of kinds of derivatives, each with a procedure and points as Scheme has them."""
        return self.answers(f"(list {' '.join(f'(list {kind} {words})' for kind, words in questions)})")

    def answers(self, questions: str) -> list[Asked]:
        """The same for a list that Scheme makes."""
        return self.thread.call(lambda session: self._answers(session, questions))

    def _answers(self, session: Session, questions: str) -> list[Asked]:
        session.evaluate(f"(define questions {questions})")
        found = []
        for question in listed(session, session.evaluate("questions")):
            self.seen.clear()
            self.said.clear()
            kind, *values = listed(session, question)
            if kind.bits == fast.KERNEL:
                found.append(Asked(f"as a kernel: {session.fast.answer([kind, *values])}"))
            elif session.fast.make([kind, *values]):
                ((what, program, write),) = self.seen
                code, description, roots = session.fast._kept[-1]
                assert code.entry == 0
                about = f"; {what}, {len(roots)} roots\n{described(description)}"
                if not what.startswith("gradient"):  # which are written for every program
                    try:
                        module = write()
                    except NotFast as refused:
                        found.append(Asked(f"no compiled derivative: {refused}"))
                        continue
                    about += f"\n; calls {module.outside}\n{module.text()}"
                found.append(Asked(ir.text(program), program, about))
            else:
                (reason,) = self.said
                found.append(Asked(reason))
        return found

    def close(self) -> None:
        self.thread.close()


def listed(session: Session, value: Value) -> list[Value]:
    found, tags = [], session.machine.tags
    while value.tag == tags["PAIR"]:
        head, car, cdr = (ctypes.c_uint64 * 3).from_address(value.bits)
        found.append(Value(head >> 8 & 255, car))
        value = Value(head >> 16 & 255, cdr)
    return found


def described(code: native.FastCode) -> str:
    """What C is told of a program, with numbers for addresses in the order in which they come."""
    addresses: dict[int, str] = {}

    def shown(number: int | None) -> str:
        if number is None or number < ADDRESSES:
            return str(number or 0)
        return addresses.setdefault(number, f"address {len(addresses)}")

    lines = [f"; {name} {getattr(code, name)}" for name in ("lanes", "forward", "limit", "out_words", "arguments")]
    for k in range(code.input_count):
        item = code.inputs[k]
        steps = " ".join(f"{item.steps[j].kind}.{item.steps[j].index}" for j in range(item.step_count))
        wanted = f"{shown(item.expected)} tag {item.tag}{' varies' if item.active else ''}"
        lines.append(f"; input {shown(getattr(item, 'global'))}: {steps}: {item.descriptor.decode()} {wanted}")
    return "\n".join([*lines, f"; result {code.result.decode()}"])


def of_procedures(asking: Asking) -> Iterator[Account]:
    """The procedures of `compiled_procedures.py`: at one point after another, by the lengths there and by any."""
    asking.evaluate(DEFINITIONS)
    asking.define(f"(define procedures (vector {' '.join(code for code, _ in PROCEDURES.values())}))")
    yield from told(asking, [
        (name, kind, f"(vector-ref procedures {number}) {point}")
        for number, (name, (_, points)) in enumerate(PROCEDURES.items())
        for kind in ASKED.get(name, (fast.GRADIENT,))
        for point in (points[0], *points)
    ])  # fmt: skip


def of_random_procedures(asking: Asking) -> Iterator[Account]:
    made = [scheme_program(seed) for seed in SCHEME]
    asking.define("\n".join(one.text for one in made))
    kinds = (fast.GRADIENT, fast.GRADIENT | fast.CHECKPOINT)
    yield from told(asking, [
        (f"scheme {seed}", kind, f"f{seed} {one.points[0]}") for seed, one in zip(SCHEME, made, strict=True)
        for kind in kinds
    ])  # fmt: skip


def told(asking: Asking, questions: list[tuple[str, int, str]]) -> Iterator[Account]:
    """Each program that is found, by a name and a number, with all that was asked which gave this program."""
    found: dict[tuple[str, str], list[Asked]] = {}
    answers = asking.asked([(kind, words) for _, kind, words in questions])
    for (name, _, _), answer in zip(questions, answers, strict=True):
        found.setdefault((name, answer.text), []).append(answer)
    numbers: dict[str, int] = {}
    for (name, text), alike in found.items():
        number = numbers[name] = numbers.get(name, -1) + 1
        about = "\n\n".join(dict.fromkeys(answer.about for answer in alike))
        program = alike[0].program
        whole = f"{name}.{number}"
        yield Account(whole, text, text) if program is None else account(whole, program, about)


def of_primitives(asking: Asking) -> Iterator[Account]:
    """Expressions of `test_every_primitive.py`, where `i` is an exact integer that is known only later."""
    expressions = [(name, expression) for name, found in CASES.items() for expression in found[:MOST_CASES]]
    lambdas = "\n".join(f"(lambda (x) (let ((i steps)) {expression}))" for _, expression in expressions)
    asking.define(f"(define cases (vector {lambdas}))")
    answers = asking.asked([(fast.GRADIENT, f"(vector-ref cases {k}) 0.75") for k in range(len(expressions))])
    for name in CASES:
        yield summary(name, [(text, a) for (of, text), a in zip(expressions, answers, strict=True) if of == name])


def of_kinds(asking: Asking) -> Iterator[Account]:
    """Every kind of value in every place: a line for each place."""
    asking.evaluate(DEFINITIONS + "(define (together use make) (lambda (x) (use x (make x))))")
    asking.define(f"(define made (list {' '.join(f'(lambda (x) {text})' for text in MADE)}))")
    asking.define(f"(define used (list {' '.join(f'(lambda (x d) {text})' for text in USED)}))")
    each = f"(map (lambda (use) (map (lambda (make) (list {fast.GRADIENT} (together use make) 0.75)) made)) used)"
    answers = iter(asking.answers(f"(apply append {each})"))
    for use in USED:
        yield summary(use, [(made, next(answers)) for made in MADE])


def summary(name: str, found: list[tuple[str, Asked]]) -> Account:
    """How many of some expressions are compiled, and to how many instructions."""
    programs = [answer.program for _, answer in found if answer.program is not None]
    size = sum(len(block.body) for program in programs for f in program.functions for block in f.blocks)
    text = "\n".join(f"; {expression}\n{answer.text}\n{answer.about}" for expression, answer in found)
    return Account(name, f"{len(programs)} of {len(found)}, {size}", text)


def written_by_hand() -> Iterator[Account]:
    for name, (text, _) in PROGRAMS.items():
        yield account(name, parse(text))
    for one in rules():
        for procedure in one.procedures[:1]:
            yield account(f"{procedure} {one.arity}", of_rule(procedure, one.arity))
    for seed in RANDOM:
        yield account(f"random {seed}", random_program(seed)[0])


def of_rule(procedure: str, arity: int) -> ir.TypedProgram:
    """A procedure of variables, and of what is known where there are two."""
    x, y = ir.TypedValue(ir.F64), ir.TypedValue(ir.F64)
    start = ir.Block("start", [x, y])
    found: list[ir.TypedValue] = []

    def write(operation: str, operands: list[ir.TypedValue], name: str = "", literal: float | None = None) -> None:
        found.append(ir.TypedValue(ir.F64))
        start.body.append(ir.Instruction(operation, operands, [found[-1]], name, literal))

    for number in (2.0, 10.0, 0.0, -1.5):
        write("constant", [], literal=number)
    known = list(found)
    given = [[x]] if arity == 1 else [[x, y], *([x, one] for one in known), *([one, x] for one in known), known[:2]]
    for operands in given:
        write("math", operands, procedure)
    total = found[len(known)]
    for term in found[len(known) + 1 :]:
        write("math", [total, term], "+")
        total = found[-1]
    start.end = ir.Return([total])
    return ir.TypedProgram([ir.TypedFunction("main", [start], [ir.F64])], [True, True])


GROUPS: dict[str, Callable[[Asking], Iterator[Account]]] = {
    "typed": lambda _: written_by_hand(), "primitives": of_primitives, "procedures": of_procedures, "kinds": of_kinds,
    "random": of_random_procedures,
}  # fmt: skip


def accounts(group: str) -> Iterator[Account]:
    """What is kept, of one of the groups."""
    with contextlib.closing(Asking()) as asking, asking.watched():
        for one in GROUPS[group](asking):
            yield Account(f"{group} {one.name}", one.counts, one.text)


def main() -> None:
    parser = argparse.ArgumentParser(description="What compiled derivatives are made of.")
    parser.add_argument("--show", metavar="NAME", help="print what the digest of this line is of, instead")
    wanted = parser.parse_args().show
    if wanted is None:
        KEPT.write_text("".join(f"{one.line}\n" for group in GROUPS for one in accounts(group)))
        return
    found = [one for group in GROUPS if wanted.startswith(group) for one in accounts(group) if one.name == wanted]
    if not found:
        sys.exit(f"no line begins with '{wanted}:' (see {KEPT.name})")
    print(*(one.text for one in found))


if __name__ == "__main__":
    main()
