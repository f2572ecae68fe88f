"""A session: the expander, the code generator and the runtime put together, so that programs run.

    with Session() as session:
        session.run_file(Path("hello.esk"))
        print(session.evaluate("(+ 1 2)").text)

This is where the parts of the language meet; the command line, the tests and Python programs come through here. All of
it runs on one thread with a large stack (`on_large_stack`), which `Session.call` takes care of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eshkol.atlas.cache import ProgramCache
from eshkol.codegen.native import MachineNative
from eshkol.codegen.units import Compiled, Engine, source_hash
from eshkol.lang.core import Unit
from eshkol.lang.files import read_source
from eshkol.lang.libraries import Module
from eshkol.lang.scopes import Transformer
from eshkol.lang.source import Place, Source
from eshkol.lang.transformers import Host
from eshkol.lang.world import World, digest
from eshkol.runtime.scheme import Machine, Root, SchemeExit, SchemeRaised, Value, on_large_stack
from eshkol.runtime.scheme_table import rows

FAILED = 1
PROMPT_EFFORT = 1  # how much LLVM optimizes what is typed at a prompt


class Session:
    """A machine with the libraries that were loaded into it."""

    def __init__(self, heap_limit: int = 0, cache: ProgramCache | None = None) -> None:
        self.cache = ProgramCache() if cache is None else cache
        self.machine = Machine(heap_limit)
        self.engine = Engine(self.machine, self.cache)
        self.world = World(rows, self, version=source_hash(), store=self.cache)
        self.native = MachineNative(self.machine, self.engine, PROMPT_EFFORT)
        self.host = Host(self.native, self.world)
        self.engine.wrap = lambda content: self.native.make(content).get()
        self.machine.set_host(self._answer)

    def _answer(self, operation: str, args: list[Value]) -> Root:
        found: Root = self.host.answer(operation, args)
        return found

    def close(self) -> None:
        self.machine.close()

    # ---- what the world of modules asks for (lang/world.py, Compiler) -------------------------------------------

    def run(self, module: Module) -> None:
        """Run a module whose imports have run."""
        key = digest("code", module.key, self.engine.target_key)
        payload = self.cache.get(key)
        if payload is None:
            assert module.unit is not None
            compiled = self.engine.compile(module.unit)
            if not compiled.foreign:
                self.cache.put(key, compiled.payload())
        else:
            compiled = Compiled.read(payload)
        self.machine.enter(self.engine.load(compiled))

    def transformer(self, unit: Unit, name: str, place: Place | None) -> Transformer:
        return self.host.transformer(unit, name, place)

    # ---- running ------------------------------------------------------------------------------------------------

    def run_file(self, path: Path) -> None:
        """Run a program."""
        self.world.ensure(self.world.program(read_source(path)))

    def run_text(self, text: str, name: str = "<text>") -> None:
        """Run a text as a program."""
        self.world.ensure(self.world.program(Source(name, text)))

    def evaluate(self, text: str, name: str = "<repl>") -> Value:
        """The value of the last form of a text, evaluated at the prompt."""
        result = self.machine.special("UNSPECIFIED")
        for unit in self.world.prompt.units(Source(name, text)):
            result = self.machine.enter(self.engine.load(self.engine.compile(unit, PROMPT_EFFORT)))
        return result

    def print_value(self, text: str) -> None:
        """Print the value of a text as `write` would."""
        value = self.evaluate(text)
        if not self.machine.is_unspecified(value):
            self.machine.flush()
            print(self.machine.written(value))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def on_session(work: Callable[[Session], None], command_line: list[str]) -> int:
    """Do some work in a session on a large stack; the exit code, after the message of an uncaught condition."""
    machines: list[Machine] = []

    def run() -> int:
        with Session() as session:
            machines.append(session.machine)
            session.machine.set_command_line(command_line)
            try:
                work(session)
                return 0
            except SchemeExit as leaving:
                return leaving.code
            except SchemeRaised as error:
                print(f"error: {session.machine.written(error.value.get(), style=0)}", file=sys.stderr)
                return FAILED
            finally:
                session.machine.flush()

    return on_large_stack(run, lambda: machines[0].interrupt() if machines else None)
