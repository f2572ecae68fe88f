"""A session: the expander, the code generator and the runtime put together, so that programs run.

    with Session() as session:
        session.run_file(Path("hello.esk"))
        print(session.evaluate("(+ 1 2)").text)

This is where the parts of the language meet; the command line, the tests and Python programs come through here. All of
it runs on one thread with a large stack: `SessionThread`, `on_session`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from eshkol.codegen.compiled import CompiledUnit
from eshkol.codegen.identity import library_key, source_key
from eshkol.codegen.units import Engine
from eshkol.errors import EshkolError, Interrupted, SchemeError
from eshkol.lang.deep import mark_deep
from eshkol.lang.features import features
from eshkol.lang.files import FileSource, file_name, read_source
from eshkol.lang.hashing import digest
from eshkol.lang.source import Place, Source
from eshkol.llvm.identity import machine_key
from eshkol.runtime.scheme import Machine, Root, SchemeExit, SchemeRaised, Value
from eshkol.runtime.scheme_table import rows
from eshkol.runtime.turns import Turns, bring_back, carried
from eshkol.runtime.worker import Waiting, Worker
from eshkol.session import plans
from eshkol.session.plans import code_key
from eshkol.support import flags
from eshkol.support.defaults import computes_for, of_scheme
from eshkol.support.store import ProgramCache
from eshkol.support.warning import show_at_scheme

if TYPE_CHECKING:  # the expander and the compiler are imported when something is not in the cache, or asks for them
    from eshkol.calculus.fast import FastPrograms
    from eshkol.codegen.native import MachineNative
    from eshkol.lang.core import Cell, Unit
    from eshkol.lang.imports import Name
    from eshkol.lang.libraries import Module, SourceModule
    from eshkol.lang.meanings import Transformer
    from eshkol.lang.program import Interaction
    from eshkol.lang.transcripts import Outcome
    from eshkol.lang.transformers import Host
    from eshkol.lang.world import World
    from eshkol.runtime.python import Bridge

T = TypeVar("T")

FAST_PROGRAM = "%fast-program"  # what compiled derivatives are asked for by (native/scheme/hostcalls.h)
MAKE_READY = "%make-ready"  # and procedures that are called for the first time
NOTE_CALL = "%note-call"  # and the prompt, of calls that it watches (lib/eshkol/tracing.esk)
PROMPT_EFFORT = 1  # how much LLVM optimizes what is typed at a prompt (codegen/compiling.py)


def _open_python(machine: Machine) -> Bridge:
    """Python for a machine; asked for when a program first crosses the border."""
    from eshkol.runtime.python import Bridge

    return Bridge(machine)


class Session:
    """A machine with the libraries that were loaded into it."""

    def __init__(self, heap_limit: int = 0, cache: ProgramCache | None = None, effort: int = PROMPT_EFFORT) -> None:
        self.effort = effort  # at the prompt
        self.cache = ProgramCache(durable=False) if cache is None else cache
        self.machine = Machine(heap_limit)
        self.engine = Engine(self.machine, self.cache)
        self.engine.wrap = lambda content: self.native.make(content).get()
        self.machine.set_host(self._answer, _open_python)
        self.machine.report = lambda raised: _scheme_error(self, raised)
        self.machine.sites = self.engine.sites
        self._sources: dict[str, Source] = {}  # of programs
        self._typed: WeakValueDictionary[str, Source] = (
            WeakValueDictionary()
        )  # at prompts: they live as their code does
        self._world: World | None = None
        self._planned: list[Source] = []  # programs that ran without the world
        self.ran: list[Name] = []  # and libraries, for an expression
        self._recorder: plans.Recorder | None = None
        self._program: tuple[Source, Module] | None = None  # the one that runs now
        self.watcher: Callable[[list[Value]], None] | None = None  # what is told of calls that a prompt watches
        self.watched: dict[Cell, Root] = {}  # what their variables held before
        self._begun: dict[Module, Callable[[], Root]] = {}  # modules that are compiled before it is their turn

    @property
    def world(self) -> World:
        if self._world is None:
            from eshkol.lang.world import World

            world = World(rows, self, version=source_key(), store=self.cache)
            world.settle = self._settle
            for source in self._planned:
                world.has_run(source)
            world.have_run(self.ran)
            self._world = world
        return self._world

    def _settle(self, unit: Unit) -> None:
        """Look at the types of a unit, if it has any."""
        if unit.typed:
            from eshkol.session.typing import settle

            settle(self, unit)

    @cached_property
    def native(self) -> MachineNative:
        from eshkol.codegen.native import MachineNative

        return MachineNative(self.machine, self.engine, self.effort)

    @cached_property
    def host(self) -> Host:
        from eshkol.lang.transformers import Host

        return Host(self.native, self.world)

    @cached_property
    def fast(self) -> FastPrograms:
        from eshkol.calculus.fast import FastPrograms

        made = FastPrograms(self.machine, self.engine, self.cache)
        self.engine.freed = made.forget
        return made

    def _answer(self, operation: str, args: list[Value]) -> Root:
        if operation == FAST_PROGRAM:
            said = self.fast.answer(args)
            if isinstance(said, str):
                return self.native.make(said)
            return Root(self.machine, Value(self.machine.tags["BOOLEAN"], said))
        if operation == MAKE_READY:
            self.engine.make_ready(args[0].bits)
            return Root(self.machine, self.machine.special("UNSPECIFIED"))
        if operation == NOTE_CALL:
            if self.watcher is not None:
                self.watcher(args)
            return Root(self.machine, self.machine.special("UNSPECIFIED"))
        if operation == "%place-of":  # what the expander does not know
            from eshkol.session.report import place_of

            return self.native.make(place_of(self.engine, self.machine.bytes(args[0])) or False)
        found: Root = self.host.answer(operation, args)
        return found

    def line(self) -> tuple[str, int] | None:
        """File and line of the program where Python code was called that runs now; on Scheme's thread."""
        from eshkol.session.report import line_of

        return line_of(self.engine, self.machine.left_trace()) if self.machine.context else None

    def close(self) -> None:
        self.engine.leave()
        self.machine.close()
        self.engine.close()
        if "fast" in self.__dict__:
            self.fast.close()

    # ---- what the world of modules asks for (lang/world.py, Compiler) -------------------------------------------

    def prepare(self, modules: Sequence[Module]) -> None:
        """Have modules compiled side by side that will run one after the other."""
        if _only_quick():
            return
        waiting = [m for m in modules if m.keep and self.cache.get(code_key(m)) is None]
        if len(waiting) > 1:
            from eshkol.codegen.compiling import begin_unit

            with _told(next((m.label for m in waiting if m.standard), None)):
                for module in waiting:
                    assert module.unit is not None
                    if module.standard:
                        self._begun[module] = partial(self._ready, module, begin_unit(module.unit, self.cache))
                if not module.standard:  # the program itself, which is the last; it is not waited for, either
                    begun = self._begin(module)
                    self._begun[module] = lambda: begun

    def _ready(self, module: Module, finish: Callable[[], CompiledUnit]) -> Root:
        """The procedure of a module that was compiled meanwhile."""
        with _told(module.label):
            compiled = finish()
        if not compiled.foreign:
            self.cache.put(code_key(module), compiled.payload())
        return Root(self.machine, self.engine.load(compiled))

    def _begin(self, module: Module) -> Root:
        """The procedure of a module that is not in the cache."""
        assert module.unit is not None
        keep = partial(self.cache.put, code_key(module)) if module.keep else None
        with _told(module.label if module.standard else None):
            return Root(self.machine, self.engine.begin(module.unit, keep, at_once=module.standard))

    def run(self, module: Module) -> None:
        """Run a module whose imports have run."""
        if self._recorder is not None:
            self._recorder.ran(module)
        begun = self._begun.pop(module, None)
        if begun is not None:
            procedure = begun()
        else:
            kept = module.keep and (module.standard or not _only_quick())
            payload = self.cache.get(code_key(module)) if kept else None
            if payload is None:
                procedure = self._begin(module)
            else:
                procedure = Root(self.machine, self.engine.load(CompiledUnit.read(payload)))
        if self._program is not None and self._program[1] is module:
            self._keep_plan(*self._program)
        self.machine.enter(procedure.get())

    def is_at_hand(self, cell: Cell) -> bool:
        """Whether the value of a variable can be had without compiling anything."""
        return all(self.cache.get(code_key(module)) is not None for module in self.world.waiting(cell))

    def try_module(self, module: SourceModule) -> None:
        """Run a module, which can be looked into also where it fails."""
        try:
            self.world.try_module(module)
        except BaseException:
            for cell in module.expanded.namespace.cells.values():
                cell.sealed = cell.sealed and self._has_value(cell)  # whoever reads another one is told so
            raise

    def execute(self, unit: Unit) -> None:
        """Run a unit now, while a program is being expanded."""
        if self._recorder is not None:
            self._recorder.unusual = True
        with self._taking_back(unit, self._has_value):
            self.native.evaluate(unit)

    def evaluate_unit(self, unit: Unit) -> None:
        """Run a unit now, while a program is being built; errors are the program's own."""
        self.machine.enter(self.engine.load(self.engine.compile(unit, self.effort)))

    def know(self, source: Source) -> None:
        """Errors will have places in this text."""
        self._sources[file_name(source)] = source

    def transformer(self, unit: Unit, name: str, place: Place | None) -> Transformer:
        if self._recorder is not None:
            self._recorder.unusual = True
        return self.host.transformer(unit, name, place)

    # ---- running ------------------------------------------------------------------------------------------------

    def run_file(self, path: Path) -> None:
        """Run a program."""
        self.run_source(read_source(path))

    def run_text(self, text: str, name: str = "<text>") -> None:
        """Run a text as a program."""
        self.run_source(Source(name, text))

    def run_source(self, source: Source) -> None:
        self._sources[file_name(source)] = source
        if self._world is None and not _only_quick() and self._run_plan(source):
            return
        module = self.world.program(source)
        self._program = (source, module)
        self.world.ensure(module)

    def load(self, source: FileSource) -> SourceModule:
        """Run a file as a module of its own, which can be looked into."""
        module = self.opened(source)
        self.world.ensure(module)
        return module

    def opened(self, source: FileSource, label: str | None = None) -> SourceModule:
        """The same before it runs."""
        self._sources[file_name(source)] = source
        return self.world.loaded(source, label)

    def inside(self, module: SourceModule, label: str) -> Interaction:
        """A prompt that sees what stands in a module."""
        prompt, namespace = self.world.interaction(label, default=False), module.expanded.namespace
        for name in namespace.names():
            binding = namespace.lookup(name)
            if binding is not None:
                prompt.namespace.bind(name, binding)
        return prompt

    # ---- plans: which code runs for a program that depends on its text and the standard library alone ----------------

    def _run_plan(self, source: Source) -> bool:
        """Run a program by its plan, if there is one, without the expander."""
        plan = self.cache.get(_plan_key(source))
        codes = [] if plan is None else [self.cache.get(key) for key in plan.decode().split()]
        if not codes or None in codes:
            return False
        self._planned.append(source)
        for code in codes:
            assert code is not None
            self.machine.enter(self.engine.load(CompiledUnit.read(code)))
        return True

    def _keep_plan(self, source: Source, module: Module) -> None:
        order = self.world.code_of(source, module)
        if order is not None:
            self.cache.put(_plan_key(source), "\n".join(map(code_key, order)).encode())

    def forms(
        self, text: str | FileSource, name: str = "<repl>", inside: Interaction | None = None
    ) -> Iterator[Callable[[], Value]]:
        """For each form of a text what evaluates it, at the prompt or another; to be called at once."""
        source = self._typed[name] = Source(name, text) if isinstance(text, str) else text
        for unit in (inside or self.world.prompt).units(source):
            with self._taking_back(unit):
                compiled = self.engine.compile(unit, self.effort)
                if self._recorder is not None:
                    self._recorder.compiled(unit, compiled)
                procedure = self.engine.load(compiled, source=source, collected=True)
            yield partial(self._enter, unit, procedure)

    def _enter(self, unit: Unit, procedure: Value) -> Value:
        with self._taking_back(unit, self._has_value):
            return self.machine.enter_form(procedure)

    def _has_value(self, cell: Cell) -> bool:
        value = self.engine.cell(cell.library, cell.name).get()
        nothing = self.machine.special("UNDEFINED")
        return (value.tag, value.bits) != (nothing.tag, nothing.bits)

    @contextmanager
    def _taking_back(self, unit: Unit, has_value: Callable[[Cell], bool] | None = None) -> Iterator[None]:
        """Where a unit does not come to its end, its names mean what they meant before."""
        try:
            yield
        except BaseException:
            from eshkol.lang.bodies import take_back

            take_back(unit.changes, has_value)
            raise

    def evaluate(self, text: str, name: str = "<repl>", inside: Interaction | None = None) -> Value:
        """The value of the last form of a text, evaluated at the prompt or another one."""
        result = Root(self.machine, self.machine.special("UNSPECIFIED"))  # the forms after one may only declare
        for form in self.forms(text, name, inside):
            result.set(form())
        return result.get()

    def written(self, value: Value) -> list[str]:
        """A value as text, or several; none where there is none of interest."""
        machine = self.machine
        if value.tag == machine.tags["VALUES"]:
            keeper = Root(machine, value)
            return [machine.written(item) for item in machine.several(keeper.get())]
        return [] if machine.is_unspecified(value) else [machine.written(value)]

    def shown(self, value: Value) -> str:
        """A value as transcripts show it: several with spaces between them, nothing for none of interest."""
        return " ".join(self.written(value))

    def print_value(self, text: str, name: str = "<-e>") -> None:
        """Print the value of a text."""
        value = None
        if self._world is None and not self._planned and plans.are_used():  # so nothing has been defined, either
            self._typed[name] = source = Source(name, text)
            value = plans.evaluate(self, source)
            if value is None and not self.ran:
                value = self._recorded(source)
        self.say(*self.written(self.evaluate(text, name) if value is None else value))

    def _recorded(self, source: Source) -> Value:
        """The value of an expression, which the cache is to know the next time."""
        recorder = self._recorder = plans.Recorder(self, source)
        try:
            value = Root(self.machine, self.evaluate(source.text, source.name))
        finally:
            self._recorder = None
        recorder.keep()
        return value.get()

    def say(self, *lines: str) -> None:
        """Print lines after what the program has written so far, the first of them on a line of its own."""
        if lines:
            self.machine.call("fresh-line")
        self.flush()
        for line in lines:
            print(line)
        sys.stdout.flush()

    def flush(self) -> None:
        """Write out what the program has written so far."""
        error = self.machine.flush()
        if error:
            raise OSError(error, os.strerror(error), "standard output")

    def end_line(self) -> None:
        """Before a message: what the program wrote comes first, and on a terminal the message begins a line."""
        with suppress(SchemeRaised):
            if sys.stdout is not None and sys.stdout.isatty():
                self.machine.call("fresh-line")
        self.machine.flush()

    # ---- for errors ---------------------------------------------------------------------------------------------

    def source(self, name: str) -> Source | None:
        """A text that was read, by the name that compiled code has for it."""
        found = self._typed.get(name) or self._sources.get(name) or self.world.source(name)
        if found is None and Path(name).is_file():  # one that was included when the program was compiled
            with suppress(EshkolError):
                found = read_source(Path(name))
        return found

    def visible_names(self) -> set[str]:
        """What can be written at the prompt."""
        return self.world.prompt.namespace.names()

    def who_brings(self, name: str) -> str | None:
        """A hint: which import brings a name that is not known."""
        return self.world.who_brings(name)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


@contextmanager
def _told(library: str | None) -> Iterator[None]:
    """Whoever sits at a terminal is told what takes so long: a library is compiled, once."""
    terminal = library is not None and sys.stderr is not None and sys.stderr.isatty()
    if terminal:
        print(f"\rcompiling the library {library}, once …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _only_quick() -> bool:
    """Whether programs are to run as code that was compiled quickly, whatever is kept of them: for tests."""
    return flags.text("ESHKOL_TIER").lower() == "quick"


def _plan_key(source: Source) -> str:
    return digest("plan", source_key(), library_key(), machine_key(), *features(), file_name(source), source.text)


def _scheme_error(session: Session, raised: SchemeRaised) -> SchemeError:
    from eshkol.session.report import scheme_error

    return scheme_error(session, raised)


class TranscriptSession:
    """A session for transcripts (lang/transcripts.py): forms are evaluated one by one, and what they write is kept."""

    def __init__(self, session: Session, path: Path) -> None:
        self.session = session
        session.world.prompt.contents.source = FileSource(str(path), "", path.absolute())

    def evaluate(self, text: str) -> Outcome:
        from eshkol.lang.transcripts import Outcome

        session, machine = self.session, self.session.machine
        port = Root(machine, machine.call("open-output-string"))
        one = machine.fixnum(1)
        before = Root(machine, machine.call("%current-port", one))
        machine.call("%set-current-port!", one, port.get())
        value, error = "", None
        try:
            value = session.shown(session.evaluate(text))
        except SchemeRaised as raised:
            found = _scheme_error(session, raised)
            if isinstance(found, Interrupted):  # by who runs the transcript
                raise found from None
            error = str(found)
        except SchemeExit as leaving:
            error = f"exit {leaving.code}"
        except Interrupted:
            raise
        except EshkolError as failed:
            error = str(failed)
        finally:
            machine.call("%set-current-port!", one, before.get())
        return Outcome(value, machine.text(machine.call("get-output-string", port.get())), error)


class SessionThread:
    """A session on a thread of its own, with a large stack, and what to do about Ctrl-C meanwhile."""

    def __init__(self, heap_limit: int = 0, *, guest: bool = False) -> None:
        """As a guest in Python, what it writes is written out after each call, and a condition that stands for an
        exception of Python's comes out as that exception."""
        self._begin()
        self._defaults = of_scheme()
        self._guest = guest
        self._heap_limit = heap_limit
        self.session: Session | None = None
        if not guest:
            show_at_scheme()

    def _begin(self) -> None:
        self.worker = Worker()
        self._turns = Turns(self.worker.thread)
        self._process = os.getpid()

    def _go_on(self) -> None:
        """In a forked process, which has none of the threads: another goes on with the session, if none was at work."""
        if threading.get_ident() == self.worker.thread:  # Scheme called the code that forked
            self._process = os.getpid()
            return
        if self.worker.is_busy:
            raise EshkolError(
                "this process was forked while another thread was at work in Scheme, which cannot go on here",
                hint="fork when nothing runs in Scheme, or begin processes anew (multiprocessing: spawn)",
            )
        self._begin()
        if self.session is not None:
            self.session.machine.home = self.worker.thread
            self.session.machine.left_thread()

    def open(self) -> Session:
        """The session; to be called on its thread."""
        mark_deep()
        computes_for(self._defaults)
        if self.session is None:
            self.session = Session(self._heap_limit)
            self._defaults.line = self.session.line
            self.session.machine.home = self.worker.thread
            self.session.machine.elsewhere = lambda work: self.call(lambda _: work(), hard=False)
        return self.session

    def call(self, work: Callable[[Session], T], *, hard: bool = True) -> T:
        """What `work` returns; from any thread, one after the other, also from Scheme's own.

        An uncaught condition comes out as a SchemeError, or as the exception that it stands for.
        """

        def run() -> T:
            session = self.open()
            try:
                return work(session)
            except SchemeRaised as raised:
                if self._guest:
                    raise session.machine.python.exception(raised) from None
                session.end_line()
                raise _scheme_error(session, raised) from None

        def whole() -> T:
            try:
                return run()
            finally:
                if self.session is not None:
                    self.session.flush()

        if self._process != os.getpid():
            self._go_on()
        if threading.get_ident() == self.worker.thread:
            with self.open().machine.hosted():
                return run()
        with Waiting(hard=hard) as waiting, self._turns.taken():
            job = carried(whole if self._guest else run)
            try:
                return self.worker.call(job, waiting)
            finally:
                bring_back(job)

    def outside(self, work: Callable[[], T]) -> T:
        """On the session's thread: what `work` returns on the thread that waits for it; it may call here."""
        return self.worker.outside(work)

    def close(self) -> None:
        if self.session is not None and not self.worker.is_busy:  # else the process is being left, in the middle of it
            self.worker.call(self.session.close)
        self.worker.close()


def on_session(work: Callable[[Session], int | None], command_line: list[str], heap_limit: int = 0) -> int:
    """Do some work in a session on a large stack; the exit code, after the message of an uncaught condition."""

    def run(session: Session) -> int:
        session.machine.set_command_line(command_line)
        try:
            return work(session) or 0
        except SchemeExit as leaving:
            return leaving.code
        finally:
            session.flush()

    thread = SessionThread(heap_limit)
    try:
        return thread.call(run)
    finally:
        thread.close()
