"""What Scheme does with objects of Python: modules, attributes, calls, items, iteration, context managers, exceptions.

Comes in: what `lib/eshkol/python.esk` gives, converted (native/scheme/python.c). Goes out: what Python has for it.
Names that come as symbols are spelled with hyphens there and with underscores here; strings are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module as _import_module
from typing import Any

from eshkol.errors import EshkolError
from eshkol.runtime.values import KeptObject, Symbol, Vector


class _End:
    """What stands after the last item of an iterator."""

    def __repr__(self) -> str:
        return "end of iteration"


END = _End()


def _name(name: Any, who: str) -> str:
    if not isinstance(name, str):
        raise EshkolError(
            f"the name of an attribute is a symbol or a string, and not {name!r}", hint=f"({who} x 'name)"
        )
    return name.replace("-", "_") if isinstance(name, Symbol) else name


def _key(key: Any) -> Any:
    """A key of a dictionary: what is a vector in Scheme is a tuple there."""
    return tuple(map(_key, key)) if isinstance(key, Vector) else key


def import_module(name: Any) -> Any:
    return _import_module(str(name))


def ref(thing: Any, name: Any, *default: Any) -> Any:
    return getattr(thing, _name(name, "py-ref"), *default)


def set_attribute(thing: Any, name: Any, value: Any) -> None:
    setattr(thing, _name(name, "py-set!"), value)


def call(thing: Any, /, *args: Any, **named: Any) -> Any:
    """Call a method, where the second argument is a symbol; else the thing itself."""
    if args and isinstance(args[0], Symbol):
        return getattr(thing, _name(args[0], "py-call"))(*args[1:], **named)
    return thing(*args, **named)


def kept(value: Any) -> KeptObject:
    """An object of Python that stays one, whatever it is."""
    return KeptObject(value)


def ref_kept(thing: Any, name: Any, *default: Any) -> KeptObject:
    return KeptObject(ref(thing, name, *default))


def call_kept(thing: Any, /, *args: Any, **named: Any) -> KeptObject:
    return KeptObject(call(thing, *args, **named))


def tuple_of(*parts: Any) -> KeptObject:
    return KeptObject(parts)


def value(thing: Any) -> Any:
    """What an object is in Scheme, where it has a like there."""
    return thing


def item(thing: Any, key: Any) -> Any:
    return thing[_key(key)]


def set_item(thing: Any, key: Any, value: Any) -> None:
    thing[_key(key)] = value


def delete_item(thing: Any, key: Any) -> None:
    del thing[_key(key)]


def contains(thing: Any, value: Any) -> bool:
    return _key(value) in thing


def length(thing: Any) -> int:
    return len(thing)


class _Steps:
    """An iterator that Scheme steps through; it stays an object there, whatever it iterates over."""

    def __init__(self, things: Iterator[Any]) -> None:
        self.things = things


def iterator(thing: Any) -> _Steps:
    return _Steps(iter(thing))


def advance(steps: _Steps) -> Any:
    """The next item, or END."""
    return next(steps.things, END)


def end() -> _End:
    return END


def listed(thing: Any) -> list[Any]:
    return list(thing)


# ---- context managers ------------------------------------------------------------------------------------------------


def enter(manager: Any) -> Any:
    if not hasattr(type(manager), "__enter__") or not hasattr(type(manager), "__exit__"):
        raise EshkolError(f"this is no context manager of Python: {manager!r}", hint="it has no __enter__ and __exit__")
    return type(manager).__enter__(manager)


def leave(manager: Any) -> None:
    """The body has ended, or control leaves it by a continuation."""
    type(manager).__exit__(manager, None, None, None)


def leave_by(manager: Any, raiser: Callable[[], Any]) -> bool:
    """A condition leaves the body, which `raiser` raises; whether the manager wants it to be forgotten."""
    try:
        raiser()
    except BaseException as error:
        return bool(type(manager).__exit__(manager, type(error), error, error.__traceback__))
    return False


# ---- exceptions ------------------------------------------------------------------------------------------------------


def is_exception(error: Any, kind: Any) -> bool:
    """Whether it is an exception of a class, which may be given by its name."""
    if isinstance(kind, str):
        return any(base.__name__ == kind for base in type(error).__mro__)
    return isinstance(error, kind)


def exception_type(error: Any) -> Symbol:
    return Symbol(type(error).__name__)


def raise_exception(error: Any, *args: Any) -> None:
    """Raise an exception, or a new one of a class."""
    raise error(*args) if isinstance(error, type) else error
