"""What became of each procedure of a program, and why: `eshkol run --why`.

Comes in: the simplified forms of a unit and their `Analysis`, which the emitter writes code from. Goes out: lines for
people. Everything said here is what the code generator decides; what LLVM then puts in place of calls is not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from eshkol.codegen.arithmetic import COMPARISONS
from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.inference import Inference
from eshkol.codegen.kinds import FAR
from eshkol.codegen.nodes import Escape, Fix, LetValues, Prim, children
from eshkol.codegen.primitives import PrimitiveTable
from eshkol.codegen.scopes import written_at
from eshkol.lang.core import Call, Global, Lambda, Let, Local, Node, Variable
from eshkol.lang.source import Place

ARITHMETIC = frozenset({"+", "-", "*", "/", "quotient", "remainder", "modulo"}) | COMPARISONS
ACCESSES = frozenset({"vector-ref", "vector-set!"})
PAIRS = frozenset({"cons", "list", "cons*"})  # primitives that make pairs in place
MOST = 6  # places that are named of each kind
WORD = 8  # bytes


@dataclass
class _Found:
    """What the code of one function does, labels in it included."""

    loops: list[LambdaFunction] = field(default_factory=list)
    joins: list[LambdaFunction] = field(default_factory=list)
    escapes: list[Escape] = field(default_factory=list)
    closures: list[tuple[LambdaFunction, Place | None]] = field(default_factory=list)
    direct: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    libraries: Counter[str] = field(default_factory=Counter)
    runtime: Counter[str] = field(default_factory=Counter)
    arithmetic: int = 0
    instructions: int = 0  # of arithmetic, those that look at no tags
    within: list[str] = field(default_factory=list)  # accesses to vectors whose index is known to be within
    bounded: list[str] = field(default_factory=list)  # and those that look
    pairs: int = 0
    boxes: list[Variable] = field(default_factory=list)


def report(forms: list[Node], analysis: Analysis, table: PrimitiveTable, inferred: Inference) -> list[str]:
    """Lines about every procedure, in the order of the program, and about the top level."""
    calls = _Calls(analysis, table, inferred)
    calls.look(analysis.top, forms)
    lines: list[str] = []
    for function in [*analysis.functions.values(), analysis.top]:
        if not function.inside and (function in calls.found or function is not analysis.top):
            lines += calls.lines(function)
    return lines


class _Calls:
    """What is found, function by function."""

    def __init__(self, analysis: Analysis, table: PrimitiveTable, inferred: Inference) -> None:
        self.analysis, self.table, self.inferred = analysis, table, inferred
        self.found: dict[LambdaFunction, _Found] = {}
        self.callers: Counter[LambdaFunction] = Counter()

    def look(self, owner: LambdaFunction, bodies: list[Node]) -> None:
        """Look at the code of a function, and at that of the functions that are made in it."""
        found = self.found.setdefault(owner, _Found())
        for clause in owner.code.clauses:
            found.boxes += [v for v in (*clause.params, *([clause.rest] if clause.rest else [])) if v.assigned]
        stack = list(reversed(bodies))
        while stack:
            node = stack.pop()
            match node:
                case Call():
                    stack += reversed(node.args)
                    if self._call(found, node):
                        stack.append(node.procedure)
                    continue
                case Prim():
                    self._primitive(found, node)
                case Escape():
                    found.escapes.append(node)
                case Let(variables=variables) | LetValues(variables=variables):
                    found.boxes += [v for v in variables if v.assigned]
                case Fix(lambdas=lambdas):
                    for code in lambdas:
                        self._made(found, code, stack)
                    stack.append(node.body)
                    continue
                case Lambda():
                    self._made(found, node, stack)
                    continue
            stack += reversed(list(children(node)))

    def _made(self, found: _Found, code: Lambda, stack: list[Node]) -> None:
        function = self.analysis.functions[code]
        if function.inside:
            (found.loops if function.loops else found.joins).append(function)
            clause = code.clauses[0]
            found.boxes += [v for v in clause.params if v.assigned]
            stack.append(clause.body)
            return
        if function.escapes and function.free:
            found.closures.append((function, code.place))
        self.look(function, [clause.body for clause in code.clauses])

    def _call(self, found: _Found, node: Call) -> bool:
        """Count a call; whether its procedure is an expression of its own."""
        function = self.analysis.known(node.procedure)
        if function is not None and function.clause(len(node.args)) is not None:
            if not function.inside:
                found.direct[_name(function)] += 1
                self.callers[function] += 1
            return False
        match node.procedure:
            case Local(variable=variable) if any(variable is escape.variable for escape in found.escapes):
                pass
            case Global(cell=cell) if cell.primitive or (cell.sealed and not cell.assigned):
                found.libraries[cell.name] += 1
            case Global(cell=cell):
                found.unknown.append(f"{cell.name} at {_at(node.place)}, a variable that may change")
            case Local(variable=variable):
                found.unknown.append(f"{variable.name} at {_at(node.place)}")
            case _:
                found.unknown.append(f"what an expression gives at {_at(node.place)}")
                return True
        return False

    def _primitive(self, found: _Found, node: Prim) -> None:
        name, count = node.name, len(node.args)
        if name.removeprefix("%") in ACCESSES and node.place is not None:
            (found.within if name[0] == "%" else found.bounded).append(f"{name.removeprefix('%')} at {_at(node.place)}")
        if name in ARITHMETIC and self.inferred.is_instruction(node):
            found.instructions += count - 1
        elif name in ARITHMETIC and count > 1:
            found.arithmetic += count - 1 if name not in COMPARISONS else 1
        elif name in PAIRS:
            found.pairs += count if name == "list" else 1 if name == "cons" else count - 1
        elif not (self.table.test(name, count) or self.table.inline(name, count) or name in ("values", "%results")):
            found.runtime[name.removeprefix("%")] += 1

    def lines(self, function: LambdaFunction) -> Iterator[str]:
        """What is said of one function."""
        found = self.found.get(function, _Found())
        if function is self.analysis.top:
            yield "the top level: a chain of functions, which are optimized where they have loops"
        else:
            yield f"{_name(function)} at {_at(function.code.place)}: {self._kind(function)}"
        for loop in found.loops:
            yield f"  {_name(loop)} at {_at(loop.code.place)} is a loop: its variables are registers, a call a jump"
        if found.joins:
            names = _several(_name(join) for join in found.joins)
            yield f"  {names}: code that several places go on to, no procedure"
        for escape in found.escapes:
            where = f"{escape.variable.name} at {_at(escape.place)}"
            yield f"  the continuation {where} is only left to: a call of it is a jump"
        if found.direct:
            yield f"  calls by name: {_counted(found.direct)}"
        if found.libraries:
            yield f"  calls into other libraries, through their closures: {_counted(found.libraries)}"
        if found.unknown:
            yield f"  calls of what is known at run time only: {_several(found.unknown)}"
        yield from self._known(function)
        for loop in found.loops:
            told = [text for v in loop.code.clauses[0].params if (text := self._told(v))]
            if told:
                yield f"  in {_name(loop)}, {'; '.join(told)}"
        if found.instructions:
            yield f"  {found.instructions} operations on numbers without a look at their tags"
        if found.arithmetic:
            yield f"  {found.arithmetic} operations on numbers in place, which look at the tags of their operands first"
        if found.within:
            yield f"  looks at no bounds, since they are proven: {_several(list(dict.fromkeys(found.within)))}"
            if found.bounded:
                yield f"  looks at the bounds of {_several(list(dict.fromkeys(found.bounded)))}"
        if found.runtime:
            yield f"  calls of the runtime: {_counted(found.runtime)}"
        yield from self._allocated(found)

    def _known(self, function: LambdaFunction) -> Iterator[str]:
        """What is known of the parameters of a function, or why nothing is."""
        params = [v for clause in function.code.clauses for v in clause.params]
        if not params or function is self.analysis.top:
            return
        if not self.inferred.is_closed(function):
            if function.valued:
                how = f"{_name(function)} may be called by anyone: its value is used at {_at(function.valued_at)}"
            else:
                how = f"{_name(function)} may be called by anyone who imports it"
            yield f"  {how}, so its parameters may be anything"
            return
        for variable in params:
            told = self._told(variable)
            if told is not None:
                how = "as a double" if self.inferred.tag(variable) == self.table.tags["FLONUM"] else "without its tag"
                yield f"  {told}, passed {how}" if self.inferred.tag(variable) else f"  {told}"
            elif variable.assigned:
                yield f"  {variable.name} may be anything: set! changes it"
            elif (giver := self.inferred.givers.get(variable)) is not None:
                yield f"  {variable.name} may be anything: it is given {_what(giver)} at {_at(giver.place)}"

    def _told(self, variable: Variable) -> str | None:
        """What is known of a variable, in words."""
        kinds, kind = self.inferred.kinds, self.inferred.kind(variable)
        tag = kinds.single(kind)
        if tag == self.table.tags["FIXNUM"]:
            low = "" if kind.low <= -FAR else f" from {kind.low}"
            high = "" if kind.high >= FAR else f" to {kind.high}"
            return f"{variable.name} is a fixnum{low}{high}"
        if tag is not None:
            name = next(name for name, number in self.table.tags.items() if number == tag)
            word = name.lower().replace("_", " ")
            return f"{variable.name} is {'an' if word[0] in 'aeiou' else 'a'} {word}"
        return f"{variable.name} is an exact integer" if kind.tags == kinds.exact else None

    def _kind(self, function: LambdaFunction) -> str:
        called = self.callers[function]
        places = f"called by name in {called} {'place' if called == 1 else 'places'}"
        if not function.escapes:
            passed = f"; {_variables(function.free)} passed as arguments" if function.free else ""
            return f"a function without a closure, for its value is never needed; {places}{passed}"
        if not function.free:
            return f"a function with one closure, made in advance; {places}"
        return f"a closure, for its value is needed; {places}"

    def _allocated(self, found: _Found) -> Iterator[str]:
        parts = []
        for made, place in found.closures[:MOST]:
            size = WORD * (3 + 2 * len(made.free))
            parts.append(f"{size} bytes for the closure at {_at(place)}, which has {_variables(made.free)}")
        if len(found.closures) > MOST:
            parts.append(f"{len(found.closures) - MOST} more closures")
        if found.pairs:
            parts.append(f"24 bytes for each of {found.pairs} {'pair' if found.pairs == 1 else 'pairs'}")
        if found.boxes:
            names = _several(v.name for v in found.boxes)
            parts.append(f"24 bytes each for {names}, because set! changes {'it' if len(found.boxes) == 1 else 'them'}")
        for part in parts:
            yield f"  allocates {part}"
        if not parts and not found.runtime:
            yield "  allocates nothing itself"


def _what(node: Node) -> str:
    """An argument, in words."""
    match node:
        case Local(variable=variable):
            return variable.name
        case Global(cell=cell):
            return cell.name
        case Prim(name=name):
            return f"what {name} gives"
        case Call(procedure=Global(cell=cell)):
            return f"what {cell.name} gives"
        case Call(procedure=Local(variable=variable)):
            return f"what {variable.name} gives"
    return "a value"


def _name(function: LambdaFunction) -> str:
    if function.cell is not None and function.cell.name.endswith(")"):  # one of those that a typed procedure is
        return function.cell.name
    return function.code.name or "lambda"


def _at(place: Place | None) -> str:
    if place is None:
        return "a place that no one wrote"
    place = written_at(place)
    line, column = place.source.position(place.start)
    return f"{line}:{column}"


def _variables(variables: list[Variable]) -> str:
    return _several(v.name for v in variables)


def _several(items: Iterator[str] | list[str]) -> str:
    shown = list(items)
    more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
    return ", ".join(shown[:MOST]) + more


def _counted(names: Counter[str]) -> str:
    return _several(name if count == 1 else f"{name} ({count}×)" for name, count in names.most_common())
