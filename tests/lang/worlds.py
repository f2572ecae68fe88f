"""Worlds of modules whose code runs in the interpreter of core forms: for tests of libraries and transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluate import Machine, Pair, items_of, make_list, to_list

from eshkol.lang.core import Cell, Unit
from eshkol.lang.datum import List, Special, Symbol, Vector, text
from eshkol.lang.deep import run_deep
from eshkol.lang.files import read_source
from eshkol.lang.libraries import Module
from eshkol.lang.program import Interaction
from eshkol.lang.source import Place, Source
from eshkol.lang.syntax import Syntax
from eshkol.lang.transformers import Host, Native, Opaque, ProceduralTransformer
from eshkol.lang.world import World

SYNTAX_CORE = "(import (eshkol syntax-core) (eshkol primitives))"


class ByName(dict[Any, Any]):
    """Values of cells, which compiled code knows by library and name."""

    def __getitem__(self, cell: Cell) -> Any:
        return super().__getitem__((cell.library, cell.name))

    def __setitem__(self, cell: Cell, value: Any) -> None:
        super().__setitem__((cell.library, cell.name), value)

    def __contains__(self, cell: object) -> bool:
        assert isinstance(cell, Cell)
        return super().__contains__((cell.library, cell.name))


class MemoryStore:
    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.found = 0

    def get(self, key: str) -> bytes | None:
        found = self.entries.get(key)
        self.found += found is not None
        return found

    def put(self, key: str, payload: bytes) -> None:
        self.entries[key] = payload


class Interpreter(Native):
    """Runs modules by interpreting them; `ran` says which, in order."""

    def __init__(self, folder: Path | None = None, store: MemoryStore | None = None, **options: Any) -> None:
        self.output: list[str] = []
        self.machine = Machine()
        self.machine.values = ByName()
        self.ran: list[str] = []
        primitives = {**self.machine.primitives(), **self.own()}
        for name, value in primitives.items():
            self.machine.values[self.machine.cell(name)] = value
        options.setdefault("standard", folder or Path("/nowhere"))
        self.world = World(lambda: primitives, self, store=store, folders=[], **options)
        self.host = Host(self, self.world)

    def own(self) -> dict[str, Any]:
        ask = lambda name: lambda *args: self.host.answer(name, args)
        names = (
            "%syntax-match", "%syntax-template", "%syntax-name", "%syntax-no-match", "syntax->datum", "datum->syntax",
            "identifier?", "free-identifier=?", "bound-identifier=?", "generate-temporaries", "syntax-violation",
            "raise-syntax-error", "%compile", "%expand", "%environment", "interaction-environment", "%load-open",
            "%load-next",
        )  # fmt: skip
        symbol_name = lambda s: s.name if type(s) is Symbol else self.take(ask("syntax->datum")(s)).name
        return {
            **{name: ask(name) for name in names},
            "display": lambda x: self.output.append(x if isinstance(x, str) else text(to_list(x))),
            "symbol->string": symbol_name,
            "string->symbol": Symbol,
            "string-append": lambda *parts: "".join(parts),
            "length": lambda items: len(items_of(items)),
            "make-variable-transformer": lambda f: [Symbol("%variable-transformer"), f],
        }

    # ---- Native ------------------------------------------------------------------------------------------------------

    def prepare(self, modules: Sequence[Module]) -> None:
        pass

    def run(self, module: Module) -> None:
        self.ran.append(module.label)
        assert module.unit is not None
        self.evaluate(module.unit)

    def evaluate(self, unit: Unit) -> Any:
        result = None
        for form in unit.forms:
            result = run_deep(self.machine.evaluate, form, {})
        return result

    def thunk(self, unit: Unit) -> Any:
        return lambda: self.evaluate(unit)

    def call(self, procedure: Any, argument: Any) -> Any:
        return procedure(argument)

    def make(self, tree: Any) -> Any:
        if type(tree) is List:
            return make_list(map(self.make, tree.items), () if tree.tail is None else self.make(tree.tail))
        if type(tree) is Vector:
            return [self.make(item) for item in tree.items]
        return tree

    def take(self, value: Any) -> Any:
        if type(value) is Pair or value == ():
            items = []
            while type(value) is Pair:
                items.append(self.take(value.car))
                value = value.cdr
            return List(items, None if value == () else self.take(value))
        if type(value) is list:
            return Vector(map(self.take, value))
        return Opaque("procedure", value) if callable(value) and not isinstance(value, (Syntax, Special)) else value

    # ---- the world's compiler ----------------------------------------------------------------------------------------

    def execute(self, unit: Unit) -> None:
        self.evaluate(unit)

    def transformer(self, unit: Unit, name: str, place: Place | None) -> ProceduralTransformer:
        return self.host.transformer(unit, name, place)

    # ---- for tests ---------------------------------------------------------------------------------------------------

    def program(self, text: str, name: str = "<test>") -> str:
        """Run a program; what it displays."""
        return self._run(Source(name, text))

    def file(self, path: Path) -> str:
        return self._run(read_source(path))

    def _run(self, source: Source) -> str:
        self.output.clear()
        self.world.ensure(self.world.program(source))
        return " ".join(self.output)

    def type_in(self, prompt: Interaction, form: str) -> str:
        """The value of a form typed at a prompt."""
        result = None
        for unit in prompt.units(Source("<prompt>", form)):
            result = self.evaluate(unit)
        return "" if result is None else text(to_list(result))
