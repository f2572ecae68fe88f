"""Procedures that are watched: `,trace` tells of their calls, `,break` stops before them.

Comes in: names, and what compiled code says of calls (`%note-call`, lib/eshkol/tracing.esk). Goes out: lines that show
calls and results; and a stop, for which someone else opens a prompt. A procedure is watched by putting another one into
its variable, which tells and then calls it. So calls through that variable are seen, those of the procedure itself
among them; calls that were compiled into others are not: of a name that a library gives, only forms that are typed from
then on call the watched one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eshkol.errors import LanguageError
from eshkol.lang.core import Cell
from eshkol.lang.datum import Symbol, symbol_text
from eshkol.lang.imports import ImportSet
from eshkol.lang.meanings import CellBinding
from eshkol.lang.scopes import Binding, add_binding, remove_binding
from eshkol.lang.syntax import Syntax
from eshkol.runtime.scheme import Root, Value
from eshkol.session import Session
from eshkol.session.describing import value_of

LIBRARY = ("eshkol", "tracing")
TRACED, STOPPING = "%traced", "%stopping"
BAR = "| "


@dataclass(slots=True)
class _Watched:
    """A variable whose procedure is watched: what it held, what it holds now, and the import that was in its place."""

    kind: str
    cell: Cell
    before: Root
    now: Root
    imported: Binding | None


class Watching:
    """The watched procedures of a session; everything here is done on its thread."""

    def __init__(self, stop: Callable[[Session, str, list[Value]], None], text_of: Callable[[Session, Value], str]):
        """`stop` is called before a call goes on; `text_of` is how values are shown."""
        self._stop = stop
        self._text_of = text_of
        self._watched: dict[str, _Watched] = {}
        self._made = 0  # variables for arguments

    def names(self, kind: str) -> list[str]:
        """What is watched in this way."""
        return sorted(name for name, watched in self._watched.items() if watched.kind == kind)

    def watch(self, session: Session, name: str, kind: str) -> None:
        """Watch the procedure of a name at the prompt; in another way than before, where it is watched."""
        self.leave(session, name)
        namespace = session.world.prompt.namespace
        binding = namespace.lookup(name)
        if not isinstance(binding, CellBinding):
            raise LanguageError(
                f"{name} is a form, and is not called" if binding else f"{name} has no definition here",
                hint="a procedure can be watched: ,trace NAME, ,break NAME",
            )
        machine, cell = session.machine, binding.cell
        before = Root(machine, value_of(session, cell))
        if before.get().tag != machine.tags["PROCEDURE"]:
            raise LanguageError(f"{name} is no procedure", hint="a procedure can be watched: ,trace NAME, ,break NAME")
        maker = Root(machine, self._maker(session, kind))
        now = Root(machine, machine.enter(maker.get(), [machine.symbol(name), before.get()]))
        imported = None
        if namespace.cells.get(cell.name) is not cell:  # a library's, whose code knows what it holds
            imported = binding
            session.evaluate(f"(define {symbol_text(name)} #f)", "<watch>")
            own = namespace.lookup(name)
            assert isinstance(own, CellBinding)
            cell = own.cell
        session.engine.cell(cell.library, cell.name).set(now.get())
        session.watcher = lambda args: self._noted(session, args)
        self._watched[name] = _Watched(kind, cell, before, now, imported)
        session.watched[cell] = before

    def leave(self, session: Session, name: str) -> bool:
        """Watch it no longer; whether it was."""
        watched = self._watched.pop(name, None)
        if watched is None:
            return False
        del session.watched[watched.cell]
        root = session.engine.cell(watched.cell.library, watched.cell.name)
        held, ours = root.get(), watched.now.get()
        if (held.tag, held.bits) == (ours.tag, ours.bits):  # else it has been defined anew
            root.set(watched.before.get())
            if watched.imported is not None:
                session.world.prompt.namespace.bind(name, watched.imported)
        return True

    def original(self, name: str) -> Root | None:
        """What a watched name held before."""
        watched = self._watched.get(name)
        return None if watched is None else watched.before

    def _maker(self, session: Session, kind: str) -> Value:
        world = session.world
        (module,) = [link.module for link in world.links([ImportSet(LIBRARY, (), Syntax(None))], None)]
        binding = module.exports[kind]
        assert isinstance(binding, CellBinding)
        return value_of(session, binding.cell)

    # ---- what watched procedures tell --------------------------------------------------------------------------------

    def _noted(self, session: Session, args: list[Value]) -> None:
        machine = session.machine
        what, name = machine.symbol_name(args[0]), machine.symbol_name(args[1])
        values = Root(machine, args[2])
        if what == "stop":
            self._stop(session, name, _items(session, values))
            return
        bars = BAR * machine.number(args[3])
        texts = [self._text_of(session, value) for value in _items(session, values)]
        if what == "call":
            session.say(f"{bars}({' '.join([symbol_text(name), *texts])})")
        else:
            session.say(f"{bars}{' '.join(texts) or 'no values'}")

    # ---- arguments by their names ------------------------------------------------------------------------------------

    @contextmanager
    def named(self, session: Session, values: dict[str, Root]) -> Iterator[None]:
        """Within it the names mean these values at the prompt; a definition there takes its place for good."""
        namespace = session.world.prompt.namespace
        mine: dict[str, tuple[CellBinding, Binding | None]] = {}
        for name, value in values.items():
            self._made += 1
            cell = Cell(f"<argument {self._made}>", name, None, assigned=True, sealed=False)
            session.engine.cell(cell.library, cell.name).set(value.get())
            binding = CellBinding(cell)
            mine[name] = binding, add_binding(Symbol(name), namespace.scopes, binding)
        try:
            yield
        finally:
            for name, (ours, before) in mine.items():
                if namespace.lookup(name) is not ours:
                    continue
                if before is None:
                    remove_binding(Symbol(name), namespace.scopes)
                else:
                    add_binding(Symbol(name), namespace.scopes, before)


def _items(session: Session, values: Root) -> list[Value]:
    """The elements of a list that is kept alive."""
    machine, found = session.machine, []
    rest = values.get()
    while rest.tag == machine.tags["PAIR"]:
        first, rest = machine.pair(rest)
        found.append(first)
    return found
