"""Python data to Scheme data and back, for tests that call the runtime's primitives through ctypes.

int, float, bool, str and bytes are what they are; a list is a list, a tuple a vector, a Char a character, a Symbol a
symbol, a Pair a pair whose cdr is no list. `Scheme.call("vector-ref", (1, 2), 0)` converts, calls and converts back;
`Scheme.raw` leaves values as they are. Nothing is collected meanwhile, since the collector does not see Python's data.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from eshkol.runtime.library import native
from eshkol.runtime.scheme import Value
from eshkol.runtime.scheme_table import layout


class Char(NamedTuple):
    code: int


class Symbol(NamedTuple):
    name: str


class Pair(NamedTuple):
    car: Any
    cdr: Any


class SchemeError(Exception):
    """A condition that the runtime raised: its kind, who raised it, the message, the irritants."""

    def __init__(self, kind: str, message: str, irritants: list[Any], who: str) -> None:
        super().__init__(f"{kind}: {who}: {message} {irritants}")
        self.kind, self.message, self.irritants, self.who = kind, message, irritants, who


UNSPECIFIED = Symbol("#!unspecified")
ITEMS = 16  # bytes before what a string, a vector or a bytevector holds
COLLECTION_PAUSED = 1


def word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


class Scheme:
    def __init__(self, heap_limit: int = 0) -> None:
        self.library = native()
        pointer, long, values = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Value)
        for name, result, parameters in (
            ("esk_new_context", pointer, (ctypes.c_uint64,)),
            ("esk_free_context", None, (pointer,)),
            ("esk_pause_collection", None, (pointer, long)),
            ("esk_collect", None, (pointer,)),
            ("esk_enter_primitive", ctypes.c_uint64, (pointer, pointer, values, long, values)),
            ("esk_primitive", pointer, (long,)),
            ("esk_primitive_count", long, ()),
            ("esk_string_utf8", Value, (pointer, ctypes.c_char_p, long)),
            ("esk_symbol", Value, (pointer, ctypes.c_char_p, long)),
            ("esk_cons", Value, (pointer, Value, Value)),
            ("esk_root", pointer, (pointer,)),
            ("esk_unroot", None, (pointer, pointer)),
        ):
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, parameters
        self.tag = {name.removeprefix("TAG_"): number for name, number in layout().items() if name.startswith("TAG_")}
        self.rows: dict[str, int] = {}
        for index in range(self.library.esk_primitive_count()):
            row = self.library.esk_primitive(index)
            name = ctypes.c_char_p.from_address(row).value
            assert name is not None
            self.rows[name.decode()] = row
        self.context = self.library.esk_new_context(heap_limit)
        self.pause(COLLECTION_PAUSED)

    def close(self) -> None:
        self.library.esk_free_context(self.context)

    def pause(self, change: int) -> None:
        self.library.esk_pause_collection(self.context, change)

    # ---- calls

    def raw(self, name: str, *args: Value) -> Value:
        array, result = (Value * max(1, len(args)))(*args), Value()
        if self.library.esk_enter_primitive(self.context, self.rows[name], array, len(args), ctypes.byref(result)):
            kind, message, irritants, who = (
                self.python(Value.from_address(result.bits + ITEMS + 16 * i)) for i in range(4)
            )
            raise SchemeError(kind.name, message, irritants, who and who.name)
        return result

    def call(self, name: str, *args: Any) -> Any:
        return self.python(self.raw(name, *(self.value(arg) for arg in args)))

    # ---- to Scheme

    def value(self, data: Any) -> Value:
        match data:
            case Value():
                return data
            case Char(code):
                return Value(self.tag["CHAR"], code)
            case Symbol(name):
                return self._symbol(name)
            case Pair(car, cdr):
                return self.cons(self.value(car), self.value(cdr))
            case bool():
                return Value(self.tag["BOOLEAN"], data)
            case int():
                return self._integer(data)
            case float():
                return Value(self.tag["FLONUM"], struct.unpack("<Q", struct.pack("<d", data))[0])
            case str():
                encoded = data.encode()
                return self.library.esk_string_utf8(self.context, encoded, len(encoded))  # type: ignore[no-any-return]
            case bytes():
                found = self.raw("make-bytevector", self.value(len(data)))
                ctypes.memmove(found.bits + ITEMS, data, len(data))
                return found
            case list():
                return self.list_of([self.value(item) for item in data])
            case tuple():
                found = self.raw("make-vector", self.value(len(data)))
                for i, item in enumerate(data):
                    self.set_item(found, i, self.value(item))
                return found
        raise TypeError(f"no Scheme data for {data!r}")

    def literal(self, data: Any) -> Value:
        """Data as a constant of a program: it is not to be changed."""
        found = self.value(data)
        ctypes.c_uint8.from_address(found.bits + 3).value |= layout()["FLAG_LITERAL"]
        return found

    def cons(self, car: Value, cdr: Value) -> Value:
        return self.library.esk_cons(self.context, car, cdr)  # type: ignore[no-any-return]

    def list_of(self, items: Iterable[Value], end: Value | None = None) -> Value:
        found = Value(self.tag["NULL"], 0) if end is None else end
        for item in reversed(list(items)):
            found = self.cons(item, found)
        return found

    def set_item(self, vector: Value, index: int, item: Value) -> None:
        ctypes.memmove(vector.bits + ITEMS + 16 * index, ctypes.byref(item), 16)

    def _symbol(self, name: str) -> Value:
        encoded = name.encode()
        return self.library.esk_symbol(self.context, encoded, len(encoded))  # type: ignore[no-any-return]

    def _integer(self, n: int) -> Value:
        if -(1 << 63) <= n < 1 << 63:
            return Value(self.tag["FIXNUM"], n & 0xFFFF_FFFF_FFFF_FFFF)
        high, low = divmod(n, 1 << 62)
        shifted = self.raw("*", self._integer(high), self._integer(1 << 62))
        return self.raw("+", shifted, self._integer(low))

    # ---- from Scheme

    def python(self, value: Value) -> Any:
        tag, bits = self.tag, value.bits
        match value.tag:
            case t if t == tag["NULL"] or t == tag["PAIR"]:
                return self._from_list(value)
            case t if t == tag["FIXNUM"]:
                return bits - (bits >> 63 << 64)
            case t if t == tag["FLONUM"]:
                return struct.unpack("<d", struct.pack("<Q", bits))[0]
            case t if t == tag["BOOLEAN"]:
                return bool(bits)
            case t if t == tag["CHAR"]:
                return Char(bits)
            case t if t == tag["STRING"]:
                return ctypes.string_at(bits + ITEMS, 4 * word(bits + 8)).decode("utf-32-le", "surrogatepass")
            case t if t == tag["BYTEVECTOR"]:
                return ctypes.string_at(bits + ITEMS, word(bits + 8))
            case t if t == tag["VECTOR"]:
                return tuple(self.python(Value.from_address(bits + ITEMS + 16 * i)) for i in range(word(bits + 8)))
            case t if t == tag["SYMBOL"]:
                return Symbol(ctypes.string_at(bits + ITEMS, word(bits) >> 32).decode())
            case t if t == tag["BIGNUM"]:
                count, negative = word(bits) >> 32, word(bits) >> 24 & 2
                size = int.from_bytes(ctypes.string_at(bits + 8, 8 * count), "little")
                return -size if negative else size
            case t if t == tag["SPECIAL"] and bits == 0:
                return UNSPECIFIED
        return value

    def _from_list(self, value: Value) -> Any:
        items = []
        while value.tag == self.tag["PAIR"]:
            head = word(value.bits)
            items.append(self.python(Value(head >> 8 & 255, word(value.bits + 8))))
            value = Value(head >> 16 & 255, word(value.bits + 16))
        if value.tag == self.tag["NULL"]:
            return items
        found = self.python(value)
        for item in reversed(items):
            found = Pair(item, found)
        return found
