"""Values of Scheme as Python has them, where Python has no type of its own.

Symbols, keywords and characters are kinds of `str`; a vector is a kind of `list`, so that it is told from a list, and
`Values`, several values, a kind of `tuple`; a `Pair` is what ends in something else than the empty list. All other
values stay where they are, and Python has a proxy: `Procedure`, which can be called, `Record` and `RecordType`, and
`Opaque` for the rest. A proxy is a root, so the value lives as long as it does; when it goes back to Scheme, it is
the same value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eshkol.runtime.scheme import Machine, Root
from eshkol.support.watched import Watching

if TYPE_CHECKING:
    from inspect import Signature


class Symbol(str):
    """A symbol, by its name."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Symbol({str(self)!r})"


class Keyword(str):
    """A keyword, by its name without the colon."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Keyword({str(self)!r})"


class Char(str):
    """A character."""

    __slots__ = ()

    def __new__(cls, text: str) -> Char:
        if len(text) != 1:
            raise ValueError(f"a Char is one character, not {text!r}")
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


class Vector(list[Any]):
    """A vector; a `list` is a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Vector({super().__repr__()})"


class Values(tuple[Any, ...]):
    """Several values, as `(values 1 2)` gives them; a plain tuple is a vector."""

    __slots__ = ()


class Pair:
    """A pair whose second half is no list: `(1 . 2)` is `Pair(1, 2)`, `(1 2 . 3)` is `Pair(1, Pair(2, 3))`."""

    __slots__ = ("car", "cdr")

    def __init__(self, car: Any, cdr: Any) -> None:
        self.car = car
        self.cdr = cdr

    def __eq__(self, other: object) -> bool:
        mine: Any = self
        theirs: Any = other
        while isinstance(mine, Pair) and isinstance(theirs, Pair):
            if mine is not theirs and not mine.car == theirs.car:
                return False
            mine, theirs = mine.cdr, theirs.cdr
        return bool(not isinstance(mine, Pair) and not isinstance(theirs, Pair) and mine == theirs)

    def __hash__(self) -> int:
        return hash((self.car, self.cdr))

    def __repr__(self) -> str:
        parts, rest = [], self
        while isinstance(rest, Pair):
            parts.append(f"Pair({rest.car!r}, ")
            rest = rest.cdr
        return "".join(parts) + repr(rest) + ")" * len(parts)


class KeptObject:
    """What stays an object of Python in Scheme, though it has a like there, as `(py-object '(1 2))` does."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Opaque(Root):
    """A value of Scheme that Python can do nothing with but hold it and hand it back."""

    __slots__ = ("__weakref__",)

    def __init__(self, machine: Machine, address: int) -> None:
        self._machine = machine
        self.address = address

    @property
    def context(self) -> int:
        """Which machine it belongs to; 0 when that is closed."""
        return self._machine.context or 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Opaque):
            return NotImplemented
        if self._machine is not other._machine or not self.context:
            return self is other
        mine, theirs = self.get(), other.get()
        return (mine.tag, mine.bits) == (theirs.tag, theirs.bits)

    def __hash__(self) -> int:
        value = self.get() if self.context else None
        return object.__hash__(self) if value is None else hash((value.tag, value.bits))

    def __repr__(self) -> str:
        return self._machine.python.written(self) if self.context else f"<{type(self).__name__} of a closed session>"


class Procedure(Opaque):
    """A procedure of Scheme. Keyword arguments become keywords: f(1, a=2) is (f 1 :a 2)."""

    __slots__ = ("__dict__",)  # which has what Python says of functions

    __name__: str
    __qualname__: str

    def __init__(self, machine: Machine, address: int, name: str | None, doc: str | None) -> None:
        super().__init__(machine, address)
        self.__name__ = self.__qualname__ = name or "lambda"
        self.__doc__ = doc

    @property
    def __signature__(self) -> Signature:
        """What `inspect.signature` asks for."""
        from eshkol.runtime.signatures import signature

        return signature(self._machine.python.signature(self))

    def __call__(self, *args: Any, **named: Any) -> Any:
        __tracebackhide__ = True  # IPython and pytest show the caller's line, not this
        if Watching.on:
            Watching.fix("a procedure of Scheme is called")
        for name, value in named.items():
            args += (Keyword(name.replace("_", "-")), value)
        return self._machine.python.call(self, args)


class RecordType(Opaque):
    """A record type."""

    __slots__ = ()


class Record(Opaque):
    """A record, whose fields are attributes."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._machine.python.field(self, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.replace("-", "_") for name in self._machine.python.fields(self))]
