"""Calls in a program that can only fail in its executable, since they need Python or the compiler: told by the build.

Comes in: the core forms of a program and of the libraries that it reaches. Goes out: a `Missing` for each such call of
the program's own. A call counts where the procedure that it names surely comes to what is not there, whatever its
arguments are: what stands behind a test is not followed. It may still be that the program never makes the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from eshkol.lang import core
from eshkol.lang.core import Call, Cell, DefineGlobal, Global, Lambda, Node
from eshkol.lang.datum import symbol_text
from eshkol.lang.libraries import nodes
from eshkol.lang.source import Place

PYTHON, COMPILER = "Python", "the compiler"
# Primitives that answer with an error there (runtime/native/executable/program.c, python.c).
FAILING = {
    "%python-apply": PYTHON,
    **dict.fromkeys(("%compile", "%expand", "%environment", "interaction-environment", "%load-open"), COMPILER),
}
MAKERS = {"%tensor-procedure", "%python-function", "python-procedure"}  # of procedures that call Python


@dataclass(frozen=True)
class Missing:
    """A call that needs what is not there."""

    name: str
    what: str
    place: Place

    def __str__(self) -> str:
        text = f"warning: {self.name} needs {self.what}, which the executable is built without: this call will fail"
        return f"{text}\n{self.place.span.render()}"


def missing_calls(own: Iterable[Node], forms: Iterable[Node]) -> list[Missing]:
    """The calls of a program's own forms; `forms` are all that are reached, libraries first."""
    needs = _Needs({form.cell: form.value for form in forms if isinstance(form, DefineGlobal)})
    found: dict[tuple[str, int], Missing] = {}
    for node in nodes(own):
        if type(node) is Call and type(node.procedure) is Global and node.place is not None:
            what = needs.of(node.procedure.cell)
            if what is not None:
                name = symbol_text(node.procedure.cell.name)
                place = node.place
                while place.via is not None:  # a macro's call, shown where that was used
                    place = place.via
                found.setdefault((place.source.name, place.start), Missing(name, what, place))
    return sorted(found.values(), key=lambda one: (one.place.source.name, one.place.start))


class _Needs:
    """What procedures surely need, by their variables."""

    def __init__(self, values: Mapping[Cell, Node]) -> None:
        self._values = values
        self._known: dict[Cell, str | None] = {}

    def of(self, cell: Cell) -> str | None:
        if cell.primitive:
            return FAILING.get(cell.name)
        if cell not in self._known:
            self._known[cell] = None  # meanwhile: what calls itself needs no more for that
            self._known[cell] = None if cell.assigned else self._called(self._values.get(cell))
        return self._known[cell]

    def _called(self, value: Node | None) -> str | None:
        """What a call of this value needs."""
        if isinstance(value, Lambda):
            clauses = [self._first(clause.body) for clause in value.clauses]
            return clauses[0] if all(clauses) else None
        if isinstance(value, Call) and isinstance(value.procedure, Global):
            maker = value.procedure.cell
            return PYTHON if maker.name in MAKERS and maker.library.startswith("(eshkol ") else None
        return self.of(value.cell) if isinstance(value, Global) else None

    def _first(self, body: Node) -> str | None:
        for node in _surely(body):
            if isinstance(node, Call) and isinstance(node.procedure, Global):
                what = self.of(node.procedure.cell)
                if what is not None:
                    return what
        return None


def _surely(node: Node) -> Iterator[Node]:
    """What is evaluated whenever the node is."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        match one:
            case core.If(test=test):
                waiting.append(test)
            case core.Seq(items=items):
                waiting += items
            case core.Let(values=values, body=body) | core.Letrec(values=values, body=body):
                waiting += [*values, body]
            case core.SetLocal(value=value) | core.SetGlobal(value=value) | DefineGlobal(value=value):
                waiting.append(value)
            case Call(procedure=procedure, args=args):
                waiting += [procedure, *args]
