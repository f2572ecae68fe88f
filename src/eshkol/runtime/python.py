"""Opens Python for the Scheme runtime: the functions of CPython that C calls, and what it asks Python for.

Comes in: a machine. Goes out: C's tables are filled (native/scheme/python.h names what is wanted), and a `Bridge`, by
which Python calls procedures of that machine and turns values into one another. This module is imported when the first
program crosses the border.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from eshkol import errors
from eshkol.errors import BROKEN_PIPE, ConversionError, EshkolError, Interrupted, SchemeError
from eshkol.runtime import functions
from eshkol.runtime.conditions import is_interrupt
from eshkol.runtime.library import PATH
from eshkol.runtime.scheme import Machine, Root, SchemeExit, SchemeRaised, Value
from eshkol.runtime.scheme_table import layout
from eshkol.runtime.values import (
    Char,
    KeptObject,
    Keyword,
    Opaque,
    Pair,
    Procedure,
    Record,
    RecordType,
    Symbol,
    Values,
    Vector,
)

T = TypeVar("T")

NAMES_KEPT = 4096  # of symbols
NOTE = "called by Scheme:"  # how the note of an exception begins
FAILURE_ERROR, FAILURE_RAISE, FAILURE_EXIT = range(3)  # python.c has the same
ERRORS: dict[type[BaseException], str] = {  # the kind of error object that an exception becomes; the first that fits
    errors.DTypeError: "TYPE",
    errors.ShapeError: "RANGE",
    errors.IndexOutOfRange: "RANGE",
    errors.NotANumberError: "ARITHMETIC",
    errors.AllocationFailed: "MEMORY",
    errors.ConversionError: "TYPE",
    errors.ReadError: "READ",
    errors.LanguageError: "SYNTAX",
    errors.TensorError: "USER",
    errors.EshkolError: "SYSTEM",
    MemoryError: "MEMORY",
    KeyboardInterrupt: "INTERRUPT",
}
_machines: WeakValueDictionary[int, Machine] = WeakValueDictionary()  # by their contexts


# ---- helpers: what C asks for, by the names in python.h --------------------------------------------------------------


@cache
def _kinds() -> dict[str, int]:
    return {name: number for number, name in enumerate(_names("esk_python_kinds"))}


_EXACT: dict[type, str] = {
    type(None): "NONE", bool: "BOOL", int: "INT", float: "FLOAT", complex: "COMPLEX", Fraction: "FRACTION", str: "STR",
    bytes: "BYTES", Symbol: "SYMBOL", Keyword: "KEYWORD", Char: "CHAR", list: "LIST", Vector: "VECTOR", tuple: "TUPLE",
    Values: "VALUES",
    dict: "DICT", Pair: "PAIR", KeptObject: "KEPT",
}  # fmt: skip
_BY_IDENTITY = {id(kind): name for kind, name in _EXACT.items()}
_ATOMS = (Symbol, Keyword, Char, int, float, complex, Fraction, str, bytes)


def classify(kind: type) -> int:
    """What objects of a type become; asked once for each type."""
    return _kinds()[_kind(kind)]


def _kind(kind: type) -> str:
    exact = _BY_IDENTITY.get(id(kind))  # a metaclass may say what it likes of hashes and equality
    if exact is not None:
        return exact
    found = functions.kind_of(kind)
    if found is not None:
        return found
    if issubclass(kind, Opaque):
        return "PROXY"
    if not issubclass(kind, Enum):  # subclasses of containers may be more than their items, of these they are values
        for atom in _ATOMS:
            if issubclass(kind, atom):
                return _EXACT[atom]
    return "CALLABLE" if any("__call__" in vars(base) for base in kind.__mro__) else "FOREIGN"


def adapt(value: Any) -> Any:
    return functions.adapt(value)


def integer(magnitude: bytes) -> int:
    return int.from_bytes(magnitude, "little")


def magnitude(number: int) -> bytes:
    number = int.__abs__(number)  # of a subclass, too, which may have its own notion of it
    return number.to_bytes((number.bit_length() + 63) // 64 * 8, "little")


def parts(value: Fraction | Pair) -> tuple[Any, Any]:
    return (value.car, value.cdr) if isinstance(value, Pair) else Fraction.as_integer_ratio(value)


def proxy(context: int, tag: int, address: int, name: str | None, doc: str | None) -> Opaque:
    machine = _machines[context]
    if tag == machine.tags["PROCEDURE"]:
        return Procedure(machine, address, name, doc)
    if tag == machine.tags["RECORD"]:
        return Record(machine, address)
    if tag == machine.tags["RECORD_TYPE"]:
        return RecordType(machine, address)
    return Opaque(machine, address)


def find(name: str) -> Any:
    return functions.find(name)


def failure(context: int, error: BaseException) -> tuple[int, int, str]:
    """What becomes of an exception that leaves Python for Scheme; a condition of another session is one of Python's."""
    raised = error if isinstance(error, SchemeRaised) else getattr(error, "raised", None)
    if isinstance(raised, SchemeRaised) and raised.value.machine.context == context:
        raised.value.machine.python.passing = error
        return FAILURE_RAISE, raised.value.address, ""
    if isinstance(error, SchemeExit):
        return FAILURE_EXIT, error.code, ""
    if isinstance(error, SystemExit):
        code = BROKEN_PIPE if isinstance(error.__context__, BrokenPipeError) else error.code  # rich leaves like that
        return FAILURE_EXIT, code if isinstance(code, int) else 0 if code is None else 1, ""
    kind = next((kind for known, kind in ERRORS.items() if isinstance(error, known)), "PYTHON")
    return FAILURE_ERROR, layout()[f"ERROR_{kind}"], _message(error)


def _message(error: BaseException) -> str:
    if isinstance(error, EshkolError):
        text, _ = functions.worded(error)  # the hint is told where the condition is reported
    elif isinstance(error, KeyboardInterrupt):
        text = "interrupted"
    else:
        said = str(error)
        text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text.encode("utf-8", "replace").decode()


def raised(context: int, address: int, cause: BaseException | None) -> BaseException:
    """The exception that a condition is in Python; the root at the address is its own."""
    machine = _machines[context]
    condition = Root.adopt(machine, address)
    if cause is not None and any(map(_is_our_note, getattr(cause, "__notes__", ()))):
        return cause
    return machine.python.exception(SchemeRaised(condition))


def leaving(code: int) -> SchemeExit:
    return SchemeExit(code & 0xFF)


def noticed(_: None) -> None:
    """Python looks here whether KeyboardInterrupt was raised on this thread from outside."""


def text(value: object, display: bool) -> str:
    """What is shown of an object; of one that is a procedure to Scheme, what its class says, or its name."""
    if display and callable(value):
        shown = getattr(value, "scheme_text", None)
        return shown() if shown else f"#<procedure {getattr(value, '__name__', type(value).__name__)}>"
    return str(value) if display else repr(value)


def complain(message: str) -> None:
    raise ConversionError(message)


HELPERS: dict[str, Any] = {
    "none": None, "true_": True, "false_": False, "classify": classify, "adapt": adapt, "integer": integer,
    "magnitude": magnitude, "fraction": Fraction, "parts": parts, "symbol": lru_cache(NAMES_KEPT)(Symbol),
    "keyword": lru_cache(NAMES_KEPT)(Keyword), "char_": Char, "vector": Vector, "several": Values, "pair": Pair,
    "proxy": proxy,
    "find": find, "failure": failure, "raised": raised, "leaving": leaving, "interrupt": KeyboardInterrupt,
    "noticed": noticed, "text": text, "complain": complain,
}  # fmt: skip


# ---- opening ---------------------------------------------------------------------------------------------------------


@cache
def _library() -> ctypes.PyDLL:
    """The same library; calls through it keep Python's lock."""
    library = ctypes.PyDLL(str(PATH))
    pointer, thing = ctypes.c_void_p, ctypes.py_object
    library.esk_python_open.restype, library.esk_python_open.argtypes = None, (pointer, pointer, pointer)
    library.esk_python_enter.restype, library.esk_python_enter.argtypes = thing, (pointer, pointer, thing)
    library.esk_python_interrupt.restype = ctypes.c_int
    library.esk_python_interrupt.argtypes = (pointer, ctypes.c_ulong)
    library.esk_python_take.restype, library.esk_python_take.argtypes = thing, (pointer, pointer)
    library.esk_python_make.restype, library.esk_python_make.argtypes = thing, (pointer, pointer, thing)
    return library


def _names(table: str) -> list[str]:
    found = []
    for name in (ctypes.c_char_p * 256).in_dll(_library(), table):
        if name is None:
            break
        found.append(name.decode())
    return found


@cache
def _tables() -> tuple[Any, Any]:
    wanted, helpers = _names("esk_python_functions"), [HELPERS[name] for name in _names("esk_python_helpers")]
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in wanted]
    return (ctypes.c_void_p * len(wanted))(*addresses), (ctypes.py_object * len(helpers))(*helpers)


class Bridge:
    """Python's way into a machine."""

    def __init__(self, machine: Machine) -> None:
        assert machine.context is not None
        self._machine = machine
        self._library = _library()
        self._enter = self._library.esk_python_enter
        self.passing: BaseException | None = None  # the last exception of a condition that went back to Scheme
        functions_, helpers = _tables()
        _machines[machine.context] = machine
        self._library.esk_python_open(
            machine.context, ctypes.cast(functions_, ctypes.c_void_p), ctypes.cast(helpers, ctypes.c_void_p)
        )

    def interrupt(self, thread: int) -> bool:
        """Raise KeyboardInterrupt in Python code that Scheme called on a thread, if it is to be; whether it was."""
        return bool(self._library.esk_python_interrupt(self._machine.context, thread))

    def on_thread(self, work: Callable[[], T]) -> T:
        """What `work` returns on Scheme's thread."""
        __tracebackhide__ = True  # IPython and pytest show the caller's line, not this
        machine = self._machine
        if machine.context is None:
            raise EshkolError("this session of Scheme is closed")
        if machine.elsewhere is None or machine.home == threading.get_ident():
            machine.prepare()
            return work()
        found: T = machine.elsewhere(work)
        return found

    def call(self, procedure: Root, args: tuple[Any, ...]) -> Any:
        """Call a procedure."""
        __tracebackhide__ = True
        machine = self._machine
        if machine.home == threading.get_ident():
            return self._enter(machine.context, procedure.address, args)
        return self.on_thread(lambda: self._enter(machine.context, procedure.address, args))

    def take(self, root: Root) -> Any:
        """A value as Python has it; on Scheme's thread."""
        return self._library.esk_python_take(self._machine.context, root.address)

    def taken(self, root: Root) -> Any:
        """The same, on any thread."""
        return self.on_thread(lambda: self.take(root))

    def told(self, condition: Root, what: str) -> Any:
        """What `error-object-WHAT` gives for a condition; None where it is no error object."""

        def work() -> Any:
            machine = self._machine
            if not machine.is_error(condition.get()):
                return None
            return self.take(Root(machine, machine.call(f"error-object-{what}", condition.get())))

        return self.on_thread(work)

    def make(self, value: Any) -> Root:
        """An object as Scheme has it; on Scheme's thread."""
        root = Root(self._machine)
        self._library.esk_python_make(self._machine.context, root.address, value)
        return root

    def written(self, root: Root) -> str:
        return self.on_thread(lambda: self._machine.written(root.get()))

    def signature(self, procedure: Root) -> str:
        """How a procedure is called, as text; nothing where that is not known."""
        machine = self._machine

        def work() -> str:
            found = machine.call("procedure-signature", procedure.get())
            return machine.text(found) if found.tag == machine.tags["STRING"] else ""

        return self.on_thread(work)

    def fields(self, record: Root) -> list[str]:
        """The names of a record's fields."""

        def work() -> list[str]:
            machine = self._machine
            kind = Root(machine, machine.call("record-type-descriptor", record.get()))
            names: list[str] = self.take(Root(machine, machine.call("record-type-fields", kind.get())))
            return names

        return self.on_thread(work)

    def field(self, record: Root, name: str) -> Any:
        """The value of a record's field."""

        def work() -> Any:
            machine = self._machine
            kind = Root(machine, machine.call("record-type-descriptor", record.get()))
            names = self.fields(record)
            wanted = name if name in names else name.replace("_", "-")
            if wanted not in names:
                raise AttributeError(f"a record of this type has no field '{name}'; it has {', '.join(names)}")
            index, who = machine.fixnum(names.index(wanted)), machine.symbol(wanted)
            found = machine.call("%record-ref", record.get(), kind.get(), index, who)
            return self.take(Root(machine, found))

        return self.on_thread(work)

    def _known(self, condition: Value) -> BaseException | None:
        """The exception that was last raised for a condition, if it is this one."""
        before = getattr(self.passing, "raised", None)
        if not isinstance(before, SchemeRaised):
            return None
        value = before.value.get()
        return self.passing if (value.tag, value.bits) == (condition.tag, condition.bits) else None

    def exception(self, raised: SchemeRaised) -> BaseException:
        """What Python raises for a condition: the exception that it stands for, or a SchemeError. On Scheme's thread.

        An exception gets a note that says where in Scheme it went through.
        """
        machine = self._machine
        with machine.hosted():
            try:
                return self._exception(raised)
            except SchemeRaised as other:  # Scheme code is asked for its parts, and may be interrupted
                if not is_interrupt(machine, other.value.get()):
                    raise
                return KeyboardInterrupt()

    def hint(self, given: Root) -> str | None:
        """What an exception says to do that is an error of Eshkol's own. On Scheme's thread."""
        cause = self.take(given)
        return functions.worded(cause)[1] if isinstance(cause, EshkolError) else None

    def _exception(self, raised: SchemeRaised) -> BaseException:
        machine = self._machine
        condition = raised.value
        if (known := self._known(condition.get())) is not None:
            return known
        error = machine.report(raised)
        if machine.is_error(condition.get()):
            cause = self.take(Root(machine, machine.call("%error-cause", condition.get())))
            if isinstance(cause, BaseException):
                if isinstance(error, SchemeError) and not any(map(_is_our_note, getattr(cause, "__notes__", ()))):
                    _add_note(cause, error)
                return cause
        if isinstance(error, Interrupted):
            return KeyboardInterrupt(str(error))
        if isinstance(error, SchemeError):
            error.raised = raised
        return error


def _add_note(exception: BaseException, error: SchemeError) -> None:
    """Where in Scheme it came through: the line with a caret, and who called whom."""
    lines = [] if error.span is None else [error.span.render()]
    lines += [text for text, _ in error.notes]
    exception.add_note("\n".join([NOTE, *lines]))


def _is_our_note(note: object) -> bool:
    return isinstance(note, str) and note.startswith(NOTE)
