"""How much is done to the code of a program before it runs, and how much while it does.

A unit that is small is compiled as a whole, with all optimizations, before it runs. In a large one that takes many
seconds, most of them for code that runs once or never. There the top level is compiled as it is written, on all cores,
and runs; a procedure is compiled, likewise, when it is first called. Meanwhile another process compiles all of it with
all optimizations, some procedures at a time, those that were called before others: each takes the place of what stood
in for it, from its next call on. When all are there, the unit is kept, and a program that is run again finds it.

ESHKOL_TIER=full compiles everything first; ESHKOL_TIER=quick everything as it is written, and nothing better. All give
the same answers. Code whose place was taken stays in memory as long as its engine: continuations may return to it.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Set
from typing import Any, Protocol

from eshkol.codegen.compiled import CompiledUnit, Part, UnitData
from eshkol.codegen.compiling import (
    FULL,
    cell_names,
    compile_simplified,
    constant_texts,
    functions_of,
    simplify_unit,
    table,
)
from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.keeping import encode
from eshkol.codegen.parts import LATER, PartPlan, UnitParts, batches
from eshkol.lang.core import Unit
from eshkol.lang.libraries import nodes
from eshkol.llvm import cores
from eshkol.llvm.linking import LOADING
from eshkol.llvm.objects import cached_object, compile_object
from eshkol.llvm.passes import SINGLE_UNIT, UNIT, Pipeline
from eshkol.llvm.targets import Target, host
from eshkol.runtime.scheme import Value
from eshkol.runtime.scheme_table import layout
from eshkol.support import flags
from eshkol.support.collector import without_collector
from eshkol.support.interrupts import check
from eshkol.support.store import ProgramCache

QUICK_TIER, FULL_TIER = "quick", "full"
LARGE = 600  # core forms from which on a unit has parts
EAGER_PART = 1500  # core forms of the top level that are compiled at once
LAZY_PART = 300  # of a procedure, and those that it calls
FULL_PART = 2500  # of procedures that are optimized together
PATIENCE = 0.2  # seconds that a program runs before anything is optimized


class Engine(Protocol):
    """What loads code: `codegen/units.py` has it."""

    cache: ProgramCache

    def cell(self, library: str, name: str) -> Any: ...
    def load_data(self, compiled: CompiledUnit) -> UnitData: ...
    def load_part(self, compiled: CompiledUnit, part: Part, data: UnitData, spared: Set[int] = ...) -> None: ...
    def main(self, compiled: CompiledUnit, data: UnitData) -> Value: ...


def tier() -> str:
    """What ESHKOL_TIER says: one of these, or nothing."""
    return flags.word("ESHKOL_TIER", (QUICK_TIER, FULL_TIER))


class SplitUnit:
    """A unit that is simplified and in parts."""

    def __init__(self, unit: Unit, scopes: str) -> None:
        self.name, self.forms, self.scopes = unit.name, unit.forms, scopes
        self.analysis = Analysis.of(unit.forms)
        self.parts = UnitParts(unit, unit.forms, self.analysis, table())

    def compiled(self, data: bytes) -> CompiledUnit:
        """Everything but the parts."""
        constants, foreign = constant_texts(self.parts.constants)
        kept = encode(self.forms, self.analysis, self.parts.constants)
        return CompiledUnit(self.name, data, [LATER], [], constants, foreign, self.scopes, kept)

    def optimized(self) -> list[PartPlan]:
        """All parts that are optimized, the top level last: it has run when they are wanted."""
        return [*batches(self.parts.procedures.values(), FULL_PART), *self.parts.others(FULL_PART)]


class Writing:
    """A part that was written, while LLVM compiles it."""

    def __init__(self, split: SplitUnit, plan: PartPlan, *, quick: bool) -> None:
        check()
        self.plan = plan
        self.text, module, self._count, self._anchor = split.parts.text(plan, quick=quick)
        self._functions, self._cells = functions_of(module), cell_names(module)
        self._pipeline = SINGLE_UNIT if quick else UNIT
        self._job: cores.Job | None = None

    def begin(self) -> Writing:
        """Have it compiled on another core."""
        self._job = cores.begin(self.text, self._pipeline)
        return self

    def part(self, code: bytes | None = None) -> Part:
        """The part, when its code is there."""
        assert self._job is not None or code is not None
        made = self._job.code() if code is None and self._job is not None else code
        return Part(made or b"", self._functions, self._cells, self._count, self._anchor)


@without_collector()
def compiled_whole(unit: Unit, cache: ProgramCache, at_once: bool) -> CompiledUnit | SplitUnit:
    """A unit as native code, where all of it is compiled before it runs; else what its parts are made from."""
    wish = tier()
    scopes = simplify_unit(unit)
    if wish != QUICK_TIER and (at_once or len(nodes(unit.forms)) < LARGE):
        return compile_simplified(unit, scopes, FULL, False, cache)
    split = SplitUnit(unit, scopes)
    if wish != FULL_TIER and sys.executable:  # what optimizes is another process
        return split
    data = cores.begin(split.parts.data(), SINGLE_UNIT)
    writing = [Writing(split, plan, quick=True).begin() for plan in split.parts.once(EAGER_PART)]
    writing += [Writing(split, plan, quick=False).begin() for plan in split.optimized()]
    return split.compiled(data.code())._replace(parts=tuple(one.part() for one in writing))


class TieredUnit:
    """A unit that runs while it is compiled."""

    def __init__(self, engine: Engine, split: SplitUnit, keep: Callable[[bytes], None] | None) -> None:
        self.name = split.name
        self._engine, self._split, self._keep = engine, split, keep
        self._functions = list(split.parts.slots)
        self._compiled: CompiledUnit
        self._data: UnitData
        self._ready: set[LambdaFunction] = set()  # those that have code
        self._optimized: set[LambdaFunction] = set()  # those that have the best
        self._waiting: list[PartPlan] = []  # what is to be optimized

    def names(self, *, best: bool = False) -> set[str]:
        """The procedures that have code, or the best."""
        with LOADING:
            return {f.code.name for f in (self._optimized if best else self._ready) if f.code.name}

    # ---- quick --------------------------------------------------------------------------------------------------

    @without_collector()
    def begin(self) -> Value:
        """The procedure that evaluates the unit: its top level is compiled."""
        split, engine = self._split, self._engine
        data = cores.begin(split.parts.data(), SINGLE_UNIT)
        once = [Writing(split, plan, quick=True).begin() for plan in split.parts.once(EAGER_PART)]
        others = [Writing(split, plan, quick=True).begin() for plan in split.parts.others(EAGER_PART)]
        for cell in split.parts.cells:  # they are made by this thread alone
            engine.cell(cell.library, cell.name)
        self._compiled = split.compiled(data.code())
        self._data = engine.load_data(self._compiled)
        for writing in (*once, *others):
            engine.load_part(self._compiled, writing.part(), self._data)
            self._ready.update(writing.plan.functions)
        check()
        self._compiled = self._compiled._replace(parts=tuple(writing.part() for writing in once))
        self._waiting = split.optimized()
        return engine.main(self._compiled, self._data)

    def make_ready(self, closure: int) -> bool:
        """Compile the procedure of a closure, and give it its entry; whether it is one of this unit."""
        slot = (closure - self._data.closures) // layout()["Closure"]
        if not 0 <= slot < len(self._functions):
            return False
        with LOADING:
            done = set(self._ready)
        plan = self._split.parts.called_by(self._functions[slot], done, LAZY_PART)
        if plan.functions:  # else better code has come just now
            part = Writing(self._split, plan, quick=True).begin().part()
            self._load(part, plan.functions)
        return True

    def _load(self, part: Part, functions: Iterable[LambdaFunction], *, best: bool = False) -> None:
        """Let functions be those of a part, but for those that have better code."""
        with LOADING:
            slots = self._split.parts.slots
            spared = {slots[f] for f in self._optimized if f in slots} if not best else set()
            self._engine.load_part(self._compiled, part, self._data, spared)
            self._ready.update(functions)
            if best:
                self._optimized.update(functions)

    # ---- full ---------------------------------------------------------------------------------------------------

    @property
    def cache(self) -> ProgramCache:
        return self._engine.cache

    @property
    def is_kept(self) -> bool:
        """Whether it will be found again when all is optimized."""
        return self._keep is not None and not self._compiled.foreign

    @property
    def wish(self) -> int:
        """How much is to be gained from `improve`: -1 for nothing, else the procedures that were called."""
        return max((self._gain(plan) for plan in self._waiting), default=-1)

    def _gain(self, plan: PartPlan) -> int:
        return sum(function in self._ready for function in plan.functions)

    def improve(self, compiler: Callable[[str, Target, Pipeline], bytes]) -> None:
        """Optimize one more part; after the last, the unit is kept."""
        plan = max(self._waiting, key=self._gain)
        writing = Writing(self._split, plan, quick=False)
        code = cached_object(
            self._engine.cache, {"what": "unit"}, writing.text, host(), "unit", UNIT, compiler
        )  # fmt: skip
        part = writing.part(code)
        with LOADING:
            self._load(part, plan.functions, best=True)
            self._compiled = self._compiled._replace(parts=(*self._compiled.parts, part))
            self._waiting.remove(plan)
        if not self._waiting and self._keep is not None and self.is_kept:
            self._keep(self._compiled.payload())

    def give_up(self) -> None:
        """Leave it as it is."""
        self._waiting.clear()


class Improver:
    """Optimizes the units of an engine while they run: in another process, which a thread of this one looks after."""

    def __init__(self) -> None:
        self._units: list[TieredUnit] = []
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._apart: cores.Apart | None = None

    def add(self, unit: TieredUnit) -> None:
        """Optimize this one, too."""
        with LOADING:
            self._units.append(unit)
            if self._thread is None:
                before = threading.stack_size(cores.STACK_BYTES)
                try:
                    self._thread = threading.Thread(target=self._work, name="tiers", daemon=True)
                    self._thread.start()
                finally:
                    threading.stack_size(before)

    def finish(self) -> None:
        """Wait until everything is optimized, or cannot be."""
        with LOADING:
            thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Nothing more is optimized, and nothing waited for; `finish_behind` may go on with it."""
        self._closed.set()
        _left.extend(unit for unit in self._units if unit.wish >= 0)
        if self._apart is not None:
            self._apart.close()

    def _work(self) -> None:
        if self._closed.wait(PATIENCE):
            return
        apart = self._apart = cores.Apart()
        try:
            while (unit := self._next()) is not None:
                try:
                    unit.improve(lambda text, _, pipeline: apart.compile(text, pipeline))
                except Exception as failure:  # the program goes on with the code that it has
                    if self._closed.is_set():
                        return
                    unit.give_up()
                    if flags.is_on("ESHKOL_DEBUG"):
                        print(f"eshkol: {unit.name} is not optimized: {failure!r}", file=sys.stderr)
        finally:
            apart.close()

    def _next(self) -> TieredUnit | None:
        """The unit from which most is to be gained; at the end, none, and no thread any more."""
        with LOADING:
            unit = max(self._units, key=lambda unit: unit.wish)
            if unit.wish < 0 or self._closed.is_set():
                self._thread = None
                return None
            return unit


# ---- after the program -----------------------------------------------------------------------------------------------

_left: list[TieredUnit] = []  # units of sessions that ended before all was optimized
BEHIND_SECONDS = 120  # of the processor that may be used for them
BEHIND_NICENESS = 10


def finish_behind() -> None:
    """When a program has ended well: optimize what is left of it in a process that stays behind, in no one's way.

    So a program that is run again finds optimized code, however soon it ended. There is one such process at a time.
    """
    units = [unit for unit in _left if unit.is_kept and unit.cache.directory is not None]
    if not units or tier() == QUICK_TIER:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python says about threads and forks: none of them is needed
        if os.fork():
            return
    try:
        _leave_everyone()
        if _is_alone(units[0]):
            for unit in units:
                while unit.wish >= 0:
                    unit.improve(compile_object)
    finally:
        os._exit(0)


def _leave_everyone() -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(BEHIND_NICENESS)
    resource.setrlimit(resource.RLIMIT_CPU, (BEHIND_SECONDS, BEHIND_SECONDS))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # whoever reads what the program wrote must not wait for this process
        os.dup2(nothing, stream)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _is_alone(unit: TieredUnit) -> bool:
    """Whether no other such process works for this cache; as long as this one lives, there will be none."""
    folder = unit.cache.directory
    if folder is None:
        return False
    lock = os.open(folder / "optimizing.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
