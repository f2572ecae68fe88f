"""The bridge between Python and the Scheme runtime in C: contexts, values, calls into Scheme, questions from it.

A `Machine` is one context: a heap, its global cells, and the stack of the thread that enters it. Scheme code runs on a
thread with a large stack (worker.py), which the system gives memory only as it is used. Values that Python keeps
lie in roots, so that the collector finds them.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar
from weakref import WeakSet

from eshkol.errors import EshkolError
from eshkol.runtime.library import native
from eshkol.runtime.scheme_table import layout, row_places
from eshkol.support import observing
from eshkol.support.defaults import BARE, PYTHON, computes_for, is_scheme
from eshkol.support.interrupts import ends, runs_on

T = TypeVar("T")

FREED_AT_ONCE = 256
OPEN_PYTHON = "%python-open"  # what is asked when a program first uses Python (native/scheme/hostcalls.h)


class Value(ctypes.Structure):
    """A tagged value, as C has it."""

    _fields_ = (("tag", ctypes.c_uint64), ("bits", ctypes.c_uint64))
    tag: int
    bits: int


class SchemeRaised(Exception):
    """Scheme code raised a condition that nothing handled; the condition is `value`."""

    def __init__(self, value: Root) -> None:
        super().__init__("an uncaught Scheme condition")
        self.value = value

    def condition(self) -> Any:
        """The condition as Python has it."""
        return self.value._machine.python.taken(self.value)

    def told(self, what: str) -> Any:
        """What `error-object-WHAT` gives for it; None where it is no error object."""
        return self.value._machine.python.told(self.value, what)


class SchemeExit(SystemExit):
    """Scheme code called `exit` with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code: int = code


class Root:
    """A value that Python holds on to: a place where the collector looks, as long as this object lives."""

    __slots__ = ("_machine", "address")

    def __init__(self, machine: Machine, value: Value | None = None) -> None:
        self._machine = machine
        self.address: int = machine.library.esk_root(machine.context)
        if value is not None:
            self.set(value)

    @classmethod
    def adopt(cls, machine: Machine, address: int) -> Root:
        """The root at an address, which belongs to this object from now on."""
        root = cls.__new__(cls)
        root._machine, root.address = machine, address
        return root

    @property
    def machine(self) -> Machine:
        return self._machine

    def get(self) -> Value:
        return Value.from_buffer_copy(Value.from_address(self.address))

    def set(self, value: Value) -> None:
        place = Value.from_address(self.address)
        place.tag, place.bits = value.tag, value.bits

    def __del__(self) -> None:
        address = getattr(self, "address", None)  # none where Ctrl-C came before it was made
        if address and self._machine.context:
            self._machine.library.esk_unroot_later(self._machine.context, address)  # this may be any thread


class Border(Protocol):
    """Python's way into a machine, and Scheme's way out; `Bridge` is one, which `python.py` opens."""

    passing: BaseException | None  # the last exception of a condition that went back to Scheme

    def interrupt(self, thread: int) -> bool: ...
    def on_thread(self, work: Callable[[], T]) -> T: ...
    def call(self, procedure: Root, args: tuple[Any, ...]) -> Any: ...
    def take(self, root: Root) -> Any: ...
    def taken(self, root: Root) -> Any: ...
    def told(self, condition: Root, what: str) -> Any: ...
    def make(self, value: Any) -> Root: ...
    def written(self, root: Root) -> str: ...
    def signature(self, procedure: Root) -> str: ...
    def fields(self, record: Root) -> list[str]: ...
    def field(self, record: Root, name: str) -> Any: ...
    def hint(self, given: Root) -> str | None: ...
    def exception(self, raised: SchemeRaised) -> BaseException: ...


HOST = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Value), ctypes.c_int64, ctypes.POINTER(Value),
    ctypes.POINTER(ctypes.c_uint64),
)  # fmt: skip


def _declare(library: ctypes.CDLL) -> None:
    pointer, word, long = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int64
    values = ctypes.POINTER(Value)
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "esk_new_context": (pointer, (word,)),
        "esk_free_context": (None, (pointer,)),
        "esk_use_this_thread": (None, (pointer,)),
        "esk_heap_statistic": (long, (pointer, long)),
        "esk_enter": (word, (pointer, Value, values, long, values)),
        "esk_enter_form": (word, (pointer, Value, values)),
        "esk_interrupt": (None, (pointer,)),
        "esk_is_idle": (ctypes.c_int, (pointer,)),
        "esk_is_busy": (None, (pointer,)),
        "esk_has_requests": (ctypes.c_int, (pointer,)),
        "esk_attend_idle": (word, (pointer, values)),
        "esk_left_trace": (long, (pointer, ctypes.POINTER(word), long)),
        "esk_uncaught_trace": (long, (ctypes.POINTER(word), long)),
        "esk_root": (pointer, (pointer,)),
        "esk_unroot_later": (None, (pointer, pointer)),
        "esk_primitive_procedure": (Value, (pointer, pointer)),
        "esk_load_constants": (word, (pointer, ctypes.c_char_p, long, long, values)),
        "esk_load_unit_constants": (word, (pointer, ctypes.c_char_p, long, long, values)),
        "esk_unit_ready": (word, (pointer, pointer, pointer, Value, ctypes.c_char_p)),
        "esk_freed_units": (long, (pointer, ctypes.POINTER(word), long)),
        "esk_unit_procedure": (Value, (pointer, ctypes.c_char_p)),
        "esk_flush_standard_ports": (ctypes.c_int, (pointer,)),
        "esk_set_command_line": (long, (ctypes.POINTER(ctypes.c_char_p), long)),
        "esk_make_vector": (Value, (pointer, long, Value)),
        "esk_handle": (Value, (pointer, ctypes.c_int, word)),
        "esk_handle_number": (word, (Value,)),
        "esk_released": (long, (ctypes.POINTER(word), long)),
        "esk_set_primitive_entry": (None, (pointer, pointer)),
        "esk_string_utf8": (Value, (pointer, ctypes.c_char_p, long)),
        "esk_symbol": (Value, (pointer, ctypes.c_char_p, long)),
        "esk_cons": (Value, (pointer, Value, Value)),
    }
    for name, (result, parameters) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters


class Machine:
    """A context of the runtime."""

    living: ClassVar[WeakSet[Machine]] = WeakSet()

    def __init__(self, heap_limit: int = 0) -> None:
        self.library = native()
        _declare(self.library)
        self.context: int | None = self.library.esk_new_context(heap_limit)
        if not self.context:
            raise MemoryError("no memory for the heap of Scheme")
        self.living.add(self)
        self.tags = {name.removeprefix("TAG_"): number for name, number in layout().items() if name.startswith("TAG_")}
        self.cells: dict[tuple[str, str], Root] = {}
        self._host: Any = None
        self._thread: int | None = None
        self.home: int | None = None  # the thread on which alone it is entered, and how others come there
        self.elsewhere: Callable[[Callable[[], Any]], Any] | None = None
        self.report: Callable[[SchemeRaised], BaseException] = lambda raised: raised
        self.sites: Callable[[Sequence[int]], Sequence[Any]] = lambda addresses: ()  # the places of return addresses
        self.native_thread = 0  # the system's number of the thread that it runs on
        self._open_python: Callable[[Machine], Border] | None = None  # when a program crosses the border
        numbers = layout()
        self._host_code, self._scheme_code = numbers["INSIDE_HOST"], numbers["INSIDE_SCHEME"]
        self._python_code = numbers["INSIDE_PYTHON"]
        self._inside = ctypes.c_uint64.from_address(self.context + numbers["Context.inside"])  # one of these
        self._interrupted = ctypes.c_uint64.from_address(self.context + layout()["Context.interrupted"])

    @cached_property
    def python(self) -> Border:
        """Python's way in, and Scheme's way out, as the host opens it."""
        assert self._open_python is not None, "a machine without a host has no Python"
        return self._open_python(self)

    def close(self) -> None:
        """Give back the heap. Nothing of this machine may be used afterwards."""
        if self.context:
            if observing.watcher is not None:
                observing.watcher.closes(self)
            ends(self)
            self.cells.clear()
            self.library.esk_free_context(self.context)
            self.context = None

    # ---- interrupts (support/interrupts.py) ----------------------------------------------------------------------

    def interrupt(self) -> None:
        """Let the Scheme code that runs, or that will run next, raise a condition."""
        if self.context:
            self.library.esk_interrupt(self.context)

    def is_interrupted(self) -> bool:
        """Whether that is still to come."""
        return bool(self.context and self._interrupted.value)

    def heed_interrupt(self) -> bool:
        """Whether it was still to come; Scheme code will not hear of it."""
        if not self.is_interrupted():
            return False
        self._interrupted.value = 0
        return True

    @property
    def is_host(self) -> bool:
        """Whether neither Scheme code runs nor Python code that it called, but the expander or a compiler."""
        return bool(self.context) and self._inside.value == self._host_code

    @property
    def is_python(self) -> bool:
        """Whether Python code runs that Scheme called."""
        return bool(self.context) and self._inside.value == self._python_code

    def raise_in_python(self, thread: int) -> bool:
        """Where it is still to come and such code runs: KeyboardInterrupt is raised in it, and Scheme does not hear."""
        return self.is_python and self.python.interrupt(thread)

    @contextmanager
    def hosted(self) -> Iterator[None]:
        """Python code that Scheme called has come back to code of ours, which looks for interrupts by itself."""
        before = self._inside.value
        self._inside.value = self._host_code
        try:
            yield
        finally:
            self._inside.value = before

    def set_host(self, answer: Callable[[str, list[Value]], Root], open_python: Callable[[Machine], Border]) -> None:
        """Who answers the questions that Scheme code puts to its host, by the names in hostcalls.h; who opens Python.

        What `answer` raises becomes a condition there: that of a SchemeRaised, or a new one with the error's message.
        """
        self._open_python = open_python
        names = []
        for name in (ctypes.c_char_p * 256).in_dll(self.library, "esk_host_operations"):
            if name is None:
                break
            names.append(name.decode())
        numbers = layout()

        def ask(operation: int, args: list[Value]) -> tuple[Value, int]:
            try:
                if names[operation] == OPEN_PYTHON:
                    assert self.python
                    return self.special("UNSPECIFIED"), 0
                return answer(names[operation], args).get(), 0
            except SchemeRaised as error:
                return error.value.get(), numbers["HOST_RAISES"]
            except SchemeExit as leaving:
                return self.fixnum(leaving.code), numbers["HOST_EXITS"]
            except EshkolError as error:
                return self.string(error.message), 1 + numbers["ERROR_SYNTAX"]
            except Exception as error:  # a fault of ours must not be lost between two languages
                return self.string(f"{type(error).__name__}: {error}"), 1 + numbers["ERROR_SYSTEM"]

        def host(_: int, operation: int, args: Any, count: int, result: Any, failed: Any) -> None:
            with self.hosted():
                try:
                    found, failed[0] = ask(operation, [Value.from_buffer_copy(args[i]) for i in range(count)])
                except KeyboardInterrupt:
                    found, failed[0] = self.string("interrupted"), 1 + numbers["ERROR_INTERRUPT"]
            result[0].tag, result[0].bits = found.tag, found.bits

        self._host = HOST(host)
        assert self.context is not None
        address = ctypes.cast(self._host, ctypes.c_void_p).value or 0
        ctypes.c_void_p.from_address(self.context + numbers["Context.host"]).value = address

    def prepare(self) -> None:
        """Scheme runs on the stack of the thread that enters it."""
        if self._thread != threading.get_ident():
            self._thread, self.native_thread = threading.get_ident(), threading.get_native_id()
            runs_on(self._thread, self)
            self.library.esk_use_this_thread(self.context)
            if observing.watcher is not None:
                observing.watcher.runs(self)

    # ---- other threads of the program (native/scheme/requests.c) -------------------------------------------------

    def rest(self) -> bool:
        """Its thread has nothing to do from now on, and others of the program need not wait for it; whether there are
        such. If so, `wake` comes before anything else is done with the machine."""
        return bool(self.context and self.library.esk_is_idle(self.context))

    def wake(self) -> None:
        """Its thread has something to do."""
        if self.context:
            self.library.esk_is_busy(self.context)

    @property
    def is_asked(self) -> bool:
        """Whether other threads want something done on its thread."""
        return bool(self.library.esk_has_requests(self.context))

    def attend(self) -> None:
        """That is done, on its thread."""
        result = Value()
        self._outcome(self.library.esk_attend_idle(self.context, ctypes.byref(result)), result)

    def left_thread(self) -> None:
        """The thread that it ran on is no more, as in a forked process; none of its frames are needed."""
        if self._thread is not None:
            ends(self)
        self._thread = None

    def enter(self, procedure: Value, args: Sequence[Value] = ()) -> Value:
        """Call a procedure."""
        self.prepare()
        array = (Value * max(1, len(args)))(*args)
        result = Value()
        before, outside = self._inside.value, not is_scheme()
        self._inside.value = self._scheme_code
        if outside:
            computes_for(BARE)
        try:
            how = self.library.esk_enter(self.context, procedure, array, len(args), ctypes.byref(result))
        finally:
            self._inside.value = before
            if outside:
                computes_for(PYTHON)
        return self._outcome(how, result)

    def enter_form(self, procedure: Value) -> Value:
        """Call the procedure of a form at a prompt: the forms after it may enter the continuations captured in it."""
        self.prepare()
        result = Value()
        before, outside = self._inside.value, not is_scheme()
        self._inside.value = self._scheme_code
        if outside:
            computes_for(BARE)
        try:
            how = self.library.esk_enter_form(self.context, procedure, ctypes.byref(result))
        finally:
            self._inside.value = before
            if outside:
                computes_for(PYTHON)
        return self._outcome(how, result)

    def _outcome(self, how: int, result: Value) -> Value:
        if how == 0:
            return result
        if how == 1:
            raise SchemeRaised(Root(self, result))
        raise SchemeExit(result.bits & 0xFF)

    def uncaught_trace(self) -> list[int]:
        """The return addresses where the last condition was raised that no one handled and that is no error object."""
        addresses = (ctypes.c_uint64 * 256)()
        return addresses[: self.library.esk_uncaught_trace(addresses, len(addresses))]

    def left_trace(self) -> list[int]:
        """The return addresses of the calls that wait for Python code that Scheme called; on Scheme's thread."""
        addresses = (ctypes.c_uint64 * 256)()
        return addresses[: self.library.esk_left_trace(self.context, addresses, len(addresses))]

    def cell(self, library: str, name: str) -> Root:
        """The place of a global variable."""
        found = self.cells.get((library, name))
        if found is None:
            found = self.cells[library, name] = Root(self, self.special("UNDEFINED"))
        return found

    def special(self, name: str) -> Value:
        return Value(self.tags["SPECIAL"], layout()[f"SPECIAL_{name}"])

    def fixnum(self, number: int) -> Value:
        return Value(self.tags["FIXNUM"], number & (1 << 64) - 1)

    def string(self, text: str) -> Value:
        data = text.encode("utf-8", "surrogatepass")
        found: Value = self.library.esk_string_utf8(self.context, data, len(data))
        return found

    def symbol(self, text: str) -> Value:
        data = text.encode("utf-8", "surrogatepass")
        found: Value = self.library.esk_symbol(self.context, data, len(data))
        return found

    def primitive(self, name: str) -> Value:
        """The procedure of a primitive."""
        found: Value = self.library.esk_primitive_procedure(self.context, row_places()[name].address)
        return found

    def set_entry(self, name: str, address: int) -> None:
        """The compiled code of a primitive that is no C function."""
        self.library.esk_set_primitive_entry(row_places()[name].address, address)

    def constants(self, text: str, count: int, *, collected: bool = False) -> Root:
        """A vector of so many data, read from text; for a unit that is collected, with its procedure after them."""
        data = text.encode("utf-8", "surrogatepass")
        result = Value()
        self.prepare()
        load = self.library.esk_load_unit_constants if collected else self.library.esk_load_constants
        how = load(self.context, data, len(data), count, ctypes.byref(result))
        root = Root(self, result)
        if how != 0:
            raise SchemeRaised(root)
        return root

    def unit_procedure(self, entry: int, name: str) -> Value:
        """The procedure without parameters that compiled code at `entry` is."""
        found: Value = self.library.esk_unit_procedure(entry, name.encode())
        return found

    def unit_ready(self, entry: int, constants: int, made: Root, name: str) -> int:
        """A unit that is collected was loaded, and `made` is what `constants` gave; its number, or 0: it is not."""
        number: int = self.library.esk_unit_ready(self.context, entry, constants, made.get(), name.encode())
        return number

    def freed_units(self) -> list[int]:
        """The numbers of units that were freed since this was last asked."""
        numbers = (ctypes.c_uint64 * FREED_AT_ONCE)()
        found: list[int] = []
        while count := self.library.esk_freed_units(self.context, numbers, FREED_AT_ONCE):
            found += numbers[:count]
        return found

    def text(self, string: Value) -> str:
        """A Scheme string in Python."""
        length = ctypes.c_int64.from_address(string.bits + layout()["String.length"]).value
        chars = (ctypes.c_uint32 * length).from_address(string.bits + layout()["String.chars"])
        return "".join(map(chr, chars))

    def symbol_name(self, symbol: Value) -> str:
        """The name of a symbol or keyword."""
        size = ctypes.c_uint32.from_address(symbol.bits + 4).value
        return ctypes.string_at(symbol.bits + layout()["Symbol.name"], size).decode("utf-8", "surrogatepass")

    def bytes(self, bytevector: Value) -> bytes:
        length = ctypes.c_int64.from_address(bytevector.bits + layout()["Bytevector.length"]).value
        return ctypes.string_at(bytevector.bits + layout()["Bytevector.bytes"], length)

    def vector(self, length: int) -> Value:
        found: Value = self.library.esk_make_vector(self.context, length, self.special("UNSPECIFIED"))
        return found

    def several(self, values: Value) -> list[Value]:
        """The values in an object of multiple values."""
        count = ctypes.c_uint32.from_address(values.bits + layout()["Object.count"]).value
        items = (Value * count).from_address(values.bits + layout()["Values.items"])
        return [Value.from_buffer_copy(item) for item in items]

    def number(self, fixnum: Value) -> int:
        """A small exact integer in Python."""
        return int(fixnum.bits) - (1 << 64 if fixnum.bits >> 63 else 0)

    def pair(self, value: Value) -> tuple[Value, Value]:
        """The halves of a pair."""

        def half(tag: str, bits: str) -> Value:
            kind = ctypes.c_uint8.from_address(value.bits + layout()[tag]).value
            return Value(kind, ctypes.c_uint64.from_address(value.bits + layout()[bits]).value)

        return half("Object.a", "Pair.car"), half("Object.b", "Pair.cdr")

    def elements(self, vector: Value, most: int) -> tuple[list[Value], int]:
        """The first elements of a vector, so many of them at most; and how many it has."""
        length = ctypes.c_int64.from_address(vector.bits + layout()["Vector.length"]).value
        items = (Value * min(length, most)).from_address(vector.bits + layout()["Vector.items"])
        return [Value.from_buffer_copy(item) for item in items], length

    def is_error(self, value: Value) -> bool:
        """Whether it is an error object."""
        answer = self.call("error-object?", value)
        return (answer.tag, answer.bits) != (self.tags["BOOLEAN"], 0)

    def call(self, primitive: str, *args: Value) -> Value:
        """Call a primitive by its name."""
        return self.enter(self.primitive(primitive), args)

    def written(self, value: Value, style: int = 1) -> str:
        """A value as `write` prints it (1), or `display` (0)."""
        return self.text(self.call("%text", value, self.fixnum(style)))

    def flush(self) -> int:
        """Write out what the standard ports still hold; the number of the error, or 0."""
        error: int = self.library.esk_flush_standard_ports(self.context)
        return error

    def is_unspecified(self, value: Value) -> bool:
        special = self.special("UNSPECIFIED")
        return value.tag == special.tag and value.bits == special.bits

    def set_command_line(self, words: Sequence[str]) -> None:
        """What `(command-line)` gives."""
        encoded = [word.encode("utf-8", "surrogateescape") for word in words]
        array = (ctypes.c_char_p * len(encoded))(*encoded)
        self.library.esk_set_command_line(array, len(encoded))
