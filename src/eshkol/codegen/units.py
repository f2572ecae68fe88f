"""Units as native code in memory: how what was compiled (compiled.py) is loaded into a machine.

Loading fills in the constants (the runtime's own reader makes them) and gives the procedure that evaluates the unit.
Compiling is the business of compiling.py, which is imported when something has to be compiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Set
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from blake3 import blake3

from eshkol.codegen import PRIMITIVES
from eshkol.codegen.compiled import CompiledUnit, Part, UnitData, name_of, outside
from eshkol.codegen.identity import source_key
from eshkol.llvm.identity import machine_key
from eshkol.llvm.linking import LOADING, CodeMemory
from eshkol.runtime.scheme import Machine, Root, Value
from eshkol.runtime.scheme_table import CONVENTIONS, layout, row_places
from eshkol.support.store import ProgramCache

if TYPE_CHECKING:
    from eshkol.codegen.keeping import Forms
    from eshkol.codegen.lines import LineTable, Site
    from eshkol.codegen.tiers import Improver, TieredUnit
    from eshkol.lang.core import Unit
    from eshkol.lang.source import Source

LATER = "later"  # the entry of procedures that are not compiled yet (entries.ll)
FULL = 2  # the effort for programs and libraries (compiling.py)


class _Loaded:
    """A unit in memory, or a part: where its code and its constants are, and what is needed to show errors in it."""

    __slots__ = ("_anchor", "_table", "code", "compiled", "constants", "main", "source")

    def __init__(
        self, main: int, constants: int, compiled: CompiledUnit, source: Source | None, part: Part | None = None
    ) -> None:
        """`main` is the address of the symbol of that name, or of the part's anchor."""
        self.main, self.constants, self.compiled, self.source = main, constants, compiled, source
        self.code, self._anchor = (compiled.code, "main") if part is None else (part.code, part.anchor)
        self._table: LineTable | None = None

    def table(self) -> LineTable:
        """What the object says of its functions and lines."""
        from eshkol.codegen.lines import table_of

        if self._table is None:
            self._table = table_of(self.code)
        return self._table

    def offset(self, address: int) -> int:
        """Where in its code an address is."""
        return address - self.main + self.table().symbols[self._anchor]

    def site(self, address: int) -> Site | None:
        """The call that returns to this address, if it is in this unit."""
        from eshkol.codegen.lines import Site

        table = self.table()
        found = table.find(self.offset(address))
        if found is None or not found.line or self.compiled.places is None:
            return found
        return Site(*self.compiled.places[found.line - 1])


class Code(NamedTuple):
    """A function as machine code: its symbol, the object that has it, and where all functions in there lie."""

    name: str
    object: bytes
    places: dict[str, tuple[int, int]]  # offset and size


class Engine:
    """Compiles units and loads them into one machine."""

    def __init__(self, machine: Machine, cache: ProgramCache, wrap: Callable[[Any], Value] | None = None) -> None:
        self.machine = machine
        self.cache = cache
        self.wrap = wrap  # what makes a value of something of the expander's
        self._code = CodeMemory()
        self._loading = (
            Lock()
        )  # code is loaded by the thread that runs it, and by one that makes better code (tiers.py)
        self.tiers: list[TieredUnit] = []  # units that run while they are compiled
        self._improver: Improver | None = None
        self._roots: list[Root] = []
        self._loaded: list[_Loaded] = []  # what stays
        self._collected: dict[int, _Loaded] = {}  # by their numbers, until they are freed
        self._is_closed = False
        self._names: dict[str, ctypes.Array[ctypes.c_char]] = {}  # of cells, as C reads them
        self._forms: dict[int, bytes | Forms] = {}  # by where a unit's constants are
        self.freed: Callable[[list[int]], None] | None = None  # told where the constants of units were that are gone
        _load_entries(machine, cache)

    def leave(self) -> None:
        """Load nothing more, before the machine is given back."""
        if self._improver is not None:
            self._improver.close()
        with LOADING:
            self._is_closed = True

    def close(self) -> None:
        """Give back the code, after the machine."""
        self.leave()
        self._code.close()

    def begin(self, unit: Unit, keep: Callable[[bytes], None] | None, *, at_once: bool = False) -> Value:
        """The procedure that evaluates a unit; its code is given to `keep`, now or when all of it was compiled.

        With `at_once` it is compiled as a whole, however large it is, unless nothing is to be optimized.
        """
        from eshkol.codegen.tiers import QUICK_TIER, Improver, TieredUnit, compiled_whole, tier

        compiled = compiled_whole(unit, self.cache, at_once)
        if isinstance(compiled, CompiledUnit):
            if keep is not None and not compiled.foreign:
                keep(compiled.payload())
            return self.load(compiled)
        made = TieredUnit(self, compiled, keep)
        procedure = made.begin()
        self.tiers.append(made)
        if tier() != QUICK_TIER:
            self._improver = self._improver or Improver()
            self._improver.add(made)
        return procedure

    def finish(self) -> None:
        """Wait until everything that was begun is optimized."""
        if self._improver is not None:
            self._improver.finish()

    def make_ready(self, closure: int) -> None:
        """Compile a procedure that is called for the first time."""
        for unit in self.tiers:
            if unit.make_ready(closure):
                return
        raise AssertionError("a procedure waits for code that no one knows")

    def compile(self, unit: Unit, effort: int = FULL, tail: bool = False) -> CompiledUnit:
        """A unit as native code; with `tail`, its last form is evaluated in tail position."""
        from eshkol.codegen.compiling import compile_unit

        return compile_unit(unit, effort, tail, self.cache)

    def load(self, compiled: CompiledUnit, *, source: Source | None = None, collected: bool = False) -> Value:
        """The procedure that evaluates a unit.

        One that is collected is freed when nothing refers to it any more. Its procedure is then to be called, or put
        into a root, before anything else happens. `source` is kept as long as the unit.
        """
        symbols = self._outside(compiled)
        for number, (library, name) in enumerate(compiled.cells):
            symbols[f"cell.{number}"] = self.cell(library, name).address
        if compiled.parts:
            data = self.load_data(compiled)
            for part in compiled.parts:
                self.load_part(compiled, part, data)
            return self.main(compiled, data)
        if collected:
            return self._load_collected(compiled, symbols, source)
        with LOADING:
            main, constants = self._code.load(compiled.code, symbols, ("main", "constants"))
        self._fill_constants(compiled, constants)
        self._loaded.append(_Loaded(main, constants, compiled, source))
        return self.machine.unit_procedure(main, compiled.name)

    def _outside(self, compiled: CompiledUnit) -> dict[str, int]:
        """The addresses of functions that a unit calls, and of names in one whose text is like others'."""
        if not all(name.startswith(("esk_", "prim.", "entry.")) for name in compiled.functions):
            load_inlines(self.machine, self.cache)
        if compiled.places is None:
            return {name: _function(self.machine, name) for name in compiled.functions}
        found = {outside(i): _function(self.machine, name) for i, name in enumerate(compiled.functions)}
        for number, (_, name) in enumerate(compiled.cells):
            text = self._names.get(name)
            if text is None:
                text = self._names[name] = ctypes.create_string_buffer(name.encode("utf-8", "surrogatepass"))
            found[name_of(f"cell.{number}")] = ctypes.addressof(text)
        return found

    # ---- units in parts (parts.py) ------------------------------------------------------------------------------

    def load_data(self, compiled: CompiledUnit) -> UnitData:
        """What the parts of a unit share."""
        load_inlines(self.machine, self.cache)
        symbols = {name: _function(self.machine, name) for name in compiled.functions}
        with LOADING:
            data = UnitData(*self._code.load(compiled.code, symbols, UnitData._fields))
        self._fill_constants(compiled, data.constants)
        return data

    def load_part(self, compiled: CompiledUnit, part: Part, data: UnitData, spared: Set[int] = frozenset()) -> None:
        """Load a part; from now on its procedures are those that are called, but for those that are spared.

        On any thread, if its cells are known.
        """
        with LOADING:
            if self._is_closed:
                return
            symbols = {name: _function(self.machine, name) for name in part.functions} | data._asdict()
            for number, (library, name) in enumerate(part.cells):
                symbols[f"cell.{number}"] = self.cell(library, name).address
            entries, anchor = self._code.load(part.code, symbols, ("entries", part.anchor))
            rows = (ctypes.c_int64 * (2 * part.count)).from_address(entries)
            size, at = layout()["Closure"], layout()["Closure.entry"]
            self._loaded.append(_Loaded(anchor, data.constants, compiled, None, part))
            for slot, entry in zip(rows[::2], rows[1::2], strict=True):
                if slot in spared:
                    continue
                place = data.closures + size * slot + at if slot >= 0 else data.pieces + 8 * (-1 - slot)
                ctypes.c_int64.from_address(place).value = entry

    def main(self, compiled: CompiledUnit, data: UnitData) -> Value:
        """The procedure that evaluates a unit whose pieces are loaded."""
        return self.machine.unit_procedure(ctypes.c_uint64.from_address(data.pieces).value, compiled.name)

    # ---- what belongs to units ----------------------------------------------------------------------------------

    def _fill_constants(self, compiled: CompiledUnit, constants: int) -> None:
        if compiled.constants:
            keeper = self._read_constants(compiled)
            self._roots.append(keeper)
            ctypes.memmove(constants, keeper.get().bits + layout()["Vector.items"], 16 * len(compiled.constants))
        self._forms[constants] = compiled.forms

    def _load_collected(self, compiled: CompiledUnit, symbols: dict[str, int], source: Source | None) -> Value:
        machine = self.machine
        made = self._read_constants(compiled, collected=True)
        gone = [self._collected.pop(number) for number in machine.freed_units() if number in self._collected]
        for unit in gone:
            del self._forms[unit.constants]
        if gone and self.freed is not None:  # before others come to lie where they were
            self.freed([unit.constants for unit in gone])
        main, constants = self._code.load(compiled.code, symbols, ("main", "constants"), machine.context)
        number = machine.unit_ready(main, constants, made, compiled.name)
        loaded = _Loaded(main, constants, compiled, source)
        self._forms[constants] = compiled.forms
        if number:
            self._collected[number] = loaded
        else:
            self._loaded.append(loaded)
            self._roots.append(made)
        items = made.get().bits + layout()["Vector.items"]
        return Value.from_buffer_copy(Value.from_address(items + 16 * len(compiled.constants)))

    def forms(self, constants: int) -> Forms:
        """What the unit was made from whose constants are there (`Procedure.unit`)."""
        from eshkol.codegen.keeping import decode

        found = self._forms[constants]
        if isinstance(found, bytes):
            found = self._forms[constants] = decode(found)
        return found

    def sites(self, addresses: Iterable[int]) -> list[Site]:
        """The calls that return to these addresses, as far as they are in units."""
        from dataclasses import replace

        from eshkol.codegen.scopes import ENTRY, procedures_at

        found = []
        for address in addresses:
            for loaded in (*self._loaded, *self._collected.values()):
                if abs(address - loaded.main) < len(loaded.code):
                    site = loaded.site(address)
                    if site is not None and site.file != ENTRY.source.name:
                        names = procedures_at(loaded.compiled.scopes)(site.file, site.line, site.column)
                        found.append(replace(site, procedures=tuple(names), unit=loaded.compiled.name))
        return found

    def code_at(self, address: int) -> Code | None:
        """The function that has the code at an address, if it is in a unit."""
        for loaded in (*self._loaded, *self._collected.values()):
            if abs(address - loaded.main) < len(loaded.code):
                found = loaded.table().function_at(loaded.offset(address))
                if found is not None:
                    return Code(found[2], loaded.code, loaded.table().places())
        return None

    def cell(self, library: str, name: str) -> Root:
        """The place of a global variable, with its value where that is a primitive."""
        known = (library, name) in self.machine.cells
        root = self.machine.cell(library, name)
        if not known and library == PRIMITIVES:
            root.set(self.machine.primitive(name))
        return root

    def _read_constants(self, compiled: CompiledUnit, *, collected: bool = False) -> Root:
        """A vector of the constants of a unit, which keeps them alive."""
        count = len(compiled.constants)
        text = " ".join("#f" if c is None else c for c in compiled.constants)
        keeper = self.machine.constants(text, count, collected=collected)
        items = keeper.get().bits + layout()["Vector.items"]
        foreign = iter(compiled.foreign)
        for place, constant in zip((Value * count).from_address(items), compiled.constants, strict=True):
            if constant is None:
                assert self.wrap is not None
                wrapped = self.wrap(next(foreign))
                place.tag, place.bits = wrapped.tag, wrapped.bits
        return keeper


def _function(machine: Machine, name: str) -> int:
    """The address of a function of the runtime, of a primitive, or of one that is loaded once."""
    if name in _inside:
        return _inside[name]
    if name.startswith("prim."):
        return row_places()[name.removeprefix("prim.")].function
    found = ctypes.cast(getattr(machine.library, name), ctypes.c_void_p).value
    assert found
    return found


# ---- entries ---------------------------------------------------------------------------------------------------------

_entries: list[CodeMemory] = []  # never given back: primitives are the same for all machines
_inside: dict[str, int] = {}  # functions there that units in parts refer to
_entries_lock = Lock()


def _load_entries(machine: Machine, cache: ProgramCache) -> None:
    """The module of entries, once for a process, and the addresses in it that the runtime asks for."""
    with _entries_lock:
        if _entries:
            return
        compiled = _kept("entries", cache)
        code = CodeMemory()
        primitives = [name for name, place in row_places().items() if place.is_entry]
        wanted = [*CONVENTIONS[:4], *primitives, LATER]
        outside = {name: _function(machine, name) for name in compiled.functions}
        invoke, *found = code.load(compiled.code, outside, ["invoke", *(f"entry.{name}" for name in wanted)])
        *found, _inside[f"entry.{LATER}"] = found
        for name, address in zip(primitives, found[4:], strict=True):
            machine.set_entry(name, address)
        entries = (ctypes.c_void_p * 4).in_dll(machine.library, "esk_primitive_entries")
        for index, address in enumerate(found[:4]):
            entries[index] = address
        ctypes.c_void_p.in_dll(machine.library, "esk_invoke").value = invoke
        _entries.append(code)


def load_inlines(machine: Machine, cache: ProgramCache) -> None:
    """The module of inline functions, once for a process, when a unit in parts is first loaded."""
    with _entries_lock:
        if len(_entries) > 1:
            return
        compiled = _kept("inlines", cache)
        code = CodeMemory()
        names = compiled.scopes.split()
        found = code.load(compiled.code, {name: _function(machine, name) for name in compiled.functions}, names)
        _inside.update(zip(names, found, strict=True))
        _entries.append(code)


def _kept(what: str, cache: ProgramCache) -> CompiledUnit:
    """One of the modules that are compiled once for a machine."""
    key = blake3(f"{what} {source_key()} {machine_key()}".encode()).hexdigest()
    payload = cache.get(key)
    if payload is not None:
        return CompiledUnit.read(payload)
    from eshkol.codegen import compiling

    compiled = (compiling.compile_entries if what == "entries" else compiling.compile_inlines)(cache)
    cache.put(key, compiled.payload())
    return compiled
