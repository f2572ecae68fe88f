"""Simplified core forms to LLVM functions.

Comes in: the forms of a unit and their `Analysis`. Goes out: functions in a `UnitModule`. Every lambda that is a
function of its own becomes one LLVM function for each clause, which takes the context, its closure if it has one, the
two words of each argument, and the words of free variables that are passed; where its value is needed it also gets an
entry, which takes arguments as closures are called and checks their number.
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.codegen import passing
from eshkol.codegen.blocks import FunctionWriter, Val
from eshkol.codegen.body import Body
from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.scopes import ENTRY
from eshkol.codegen.shared import Shared, argument, given
from eshkol.lang.core import DefineGlobal, Lambda, Node
from eshkol.lang.libraries import nodes
from eshkol.support.interrupts import check

PIECE = 200  # core forms from which on the next top-level form belongs to another function


@dataclass(frozen=True)
class TopForm:
    """A form of the top level, and all functions in it."""

    node: Node
    functions: list[LambdaFunction]
    size: int  # in core forms

    @property
    def loops(self) -> bool:
        """Whether its own code has loops; that of a procedure is elsewhere."""
        if isinstance(self.node, DefineGlobal) and isinstance(self.node.value, Lambda):
            return False
        return any(f.inside and f.loops for f in self.functions)


@dataclass(frozen=True)
class Piece:
    """Some top-level forms, which are one function, and whether that has loops."""

    forms: list[TopForm]
    loops: bool


def emit_unit(shared: Shared, forms: list[Node], name: str, tail: bool) -> None:
    """All functions, and `main`: an entry that evaluates the forms in order and gives the last value.

    Unless the last form must be evaluated in tail position, main waits for it, and is there when an error is traced.
    """
    emit_functions(shared)
    pieces = pieces_of(shared.analysis, forms)
    for number, piece in enumerate(pieces):
        following = f'@"{piece_symbol(number + 1)}"' if number + 1 < len(pieces) else None
        emit_piece(shared, number, piece, name, tail, following)


def emit_functions(shared: Shared) -> None:
    """The functions of a unit, or of a part of it, but for its top level."""
    for function in shared.functions:
        check()
        for clause in function.code.clauses:
            Body(shared, function).clause(clause)
        if function.escapes:
            _entry(shared, function)


def piece_symbol(number: int) -> str:
    return f"main.{number}" if number else "main"


def emit_piece(shared: Shared, number: int, piece: Piece, name: str, tail: bool, following: str | None) -> None:
    """One piece, which goes on to the following; in a part of a unit, to the place where that one's entry will lie."""
    check()
    body = Body(shared, shared.analysis.top, name)
    writer = body.writer
    writer.symbol = piece_symbol(number)
    writer.once = writer.once or not piece.loops
    writer.receive(
        passing.entry()[: passing.registers().number]
    )  # the arguments, of which there are none, are not looked at
    if following is None:
        body.emit_all([form.node for form in piece.forms], tail)
    else:
        for form in piece.forms:
            body.effect(form.node, {})
        if shared.split is not None:
            following = writer.load("ptr", following)
        writer.jump_to(
            following, [passing.registers().context, "ptr %self", "i64 0", *["i64 undef"] * len(passing.DIRECT)], None
        )
    writer.finish("" if writer.once else "noinline", "internal" if number and shared.split is None else "")


def pieces_of(analysis: Analysis, forms: list[Node]) -> list[Piece]:
    """The forms in parts: functions that go on to the next.

    LLVM's time grows faster than a function does, and what runs once is not worth it: only loops are.
    """
    pieces: list[Piece] = []
    size = 0
    for node in forms:
        inner = nodes([node])
        form = TopForm(node, [f for x in inner if (f := analysis.functions.get(x)) is not None], len(inner))
        if not pieces or size > PIECE or pieces[-1].loops != form.loops:
            pieces.append(Piece([], form.loops))
            size = 0
        pieces[-1].forms.append(form)
        size += form.size
    return pieces or [Piece([], False)]


def _check_tags(writer: FunctionWriter, args: list[Val], tags: list[str | None]) -> None:
    """That arguments are what the calls that are known give: nobody else has the procedure, and so it was compiled."""
    tests = [writer.op(f"icmp eq i64 {value.tag}, {tag}") for value, tag in zip(args, tags, strict=True) if tag]
    if tests:
        all_fit = tests[0]
        for test in tests[1:]:
            all_fit = writer.op(f"and i1 {all_fit}, {test}")
        good, bad = writer.block(), writer.block()
        writer.branch(all_fit, good, bad, 0)
        writer.begin(bad)
        writer.run("esk_unforeseen", "ptr %ctx, ptr %self", ENTRY)
        writer.close("unreachable")
        writer.begin(good)


def _entry(shared: Shared, function: LambdaFunction) -> None:
    """The entry of a closure: finds the clause for the number of arguments and goes to its function."""
    symbol = shared.entry_symbol(function)
    # it has no place of its own: a wrong call is an error of the caller's
    writer = FunctionWriter(shared.module, function.code.name or "lambda", None)
    writer.symbol = symbol[2:-1]
    looked_at = max((4 if clause.rest else min(4, len(clause.params)) for clause in function.code.clauses), default=0)
    writer.receive(passing.entry()[: max(passing.registers().number, 3 + 2 * looked_at)])
    for clause in function.code.clauses:
        fits, other = writer.block(), writer.block()
        wanted = len(clause.params)
        writer.branch(writer.op(f"icmp {'uge' if clause.rest else 'eq'} i64 %count, {wanted}"), fits, other, 0)
        writer.begin(fits)
        args = [argument(writer, shared.module, i) for i in range(wanted)]
        if clause.rest is not None:
            direct = writer.room([Val(f"%t{i}", f"%p{i}") for i in range(4)])
            args.append(writer.words(
                writer.call("esk_rest", "%value", f"ptr %ctx, i64 %count, i64 {wanted}, ptr {direct}", None)
            ))  # fmt: skip
        tags = shared.tags_of(function, clause)
        _check_tags(writer, args, tags)
        writer.jump_to(shared.symbols[clause], given(writer, args, tags, "%self" if function.free else None), None)
        writer.begin(other)
    writer.run("esk_wrong_arity", "ptr %ctx, ptr %self, i64 %count", ENTRY)
    writer.close("unreachable")
    writer.finish(linkage="" if shared.split is not None and function in shared.split.slots else "internal")
