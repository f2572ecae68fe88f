"""Simplified core forms to LLVM functions.

Comes in: the forms of a unit and their `Analysis`. Goes out: functions in a `UnitModule`. Every lambda that is a
function of its own becomes one LLVM function for each clause, which takes the context, its closure if it has one, the
two words of each argument, and the words of free variables that are passed; where its value is needed it also gets an
entry, which takes arguments as closures are called and checks their number.
"""

from __future__ import annotations

from eshkol.codegen import passing
from eshkol.codegen.blocks import FunctionWriter, Val
from eshkol.codegen.body import Body
from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.scopes import ENTRY
from eshkol.codegen.shared import Shared, argument, given
from eshkol.lang.core import Node
from eshkol.lang.libraries import nodes
from eshkol.support.interrupts import check

PIECE = 200  # core forms from which on the next top-level form belongs to another function


def emit_unit(shared: Shared, forms: list[Node], name: str, tail: bool) -> None:
    """All functions, and `main`: an entry that evaluates the forms in order and gives the last value.

    Unless the last form must be evaluated in tail position, main waits for it, and is there when an error is traced.
    """
    for function in shared.analysis.functions.values():
        check()
        if not function.inside:
            for clause in function.code.clauses:
                Body(shared, function).clause(clause)
            if function.escapes:
                _entry(shared, function)
    pieces = _pieces(shared.analysis, forms)
    for number, (piece, loops) in enumerate(pieces):
        check()
        body = Body(shared, shared.analysis.top, name)
        body.writer.symbol, body.writer.once = f"main.{number}" if number else "main", not loops
        body.writer.receive(passing.ENTRY)
        if number + 1 < len(pieces):
            for form in piece:
                body.effect(form, {})
            body.writer.jump_to(f'@"main.{number + 1}"', passing.ENTRY, None)
        else:
            body.emit_all(piece, tail)
        body.writer.finish("" if body.writer.once else "noinline", "internal" if number else "")


def _pieces(analysis: Analysis, forms: list[Node]) -> list[tuple[list[Node], bool]]:
    """The forms in parts, and whether each has loops: functions that go on to the next.

    LLVM's time grows faster than a function does, and what runs once is not worth it: only loops are.
    """
    pieces: list[tuple[list[Node], bool]] = []
    size = 0
    for form in forms:
        inner = [*nodes([form])]
        loops = any(f.inside and f.loops for x in inner if (f := analysis.functions.get(x)) is not None)
        if not pieces or size > PIECE or pieces[-1][1] != loops:
            pieces.append(([], loops))
            size = 0
        pieces[-1][0].append(form)
        size += len(inner)
    return pieces or [([], False)]


def _entry(shared: Shared, function: LambdaFunction) -> None:
    """The entry of a closure: finds the clause for the number of arguments and goes to its function."""
    symbol = shared.entry_symbol(function)
    # it has no place of its own: a wrong call is an error of the caller's
    writer = FunctionWriter(shared.module, function.code.name or "lambda", None)
    writer.symbol = symbol[2:-1]
    writer.receive(passing.ENTRY)
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
        writer.jump_to(shared.symbols[clause], given(args, "%self" if function.free else None, []), None)
        writer.begin(other)
    writer.run("esk_wrong_arity", "ptr %ctx, ptr %self, i64 %count", ENTRY)
    writer.close("unreachable")
    writer.finish()
