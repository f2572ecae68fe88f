"""Attributes of nodes as values of JSON, and back: for keys of graphs, and for plans that are kept.

Comes in: what ops have for attributes: numbers, text, tuples, dtypes, and named tuples and data classes of these. Goes
out: lists that begin with what they are, and plain values; `from_json` makes the same of them again. Whatever else
there is (functions, arrays) is refused: who holds such a thing is not kept.
"""

from __future__ import annotations

import math
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType

PACKAGE = "eshkol."
_PLAIN = frozenset({type(None), bool, int, str})
_DTYPES = {dtype.name: dtype for dtype in dtypes.ALL}


class NotKept(Exception):
    """What cannot be written down, or is not what was written down."""


def as_json(value: Any) -> Any:
    """A value of JSON for an attribute."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else ["float", value.hex()]
    if kind is tuple or kind is list:
        return [kind.__name__, *[as_json(x) for x in value]]
    if kind is DType:
        return ["dtype", value.name]
    if kind is complex:
        return ["complex", as_json(value.real), as_json(value.imag)]
    if kind is bytes:
        return ["bytes", value.hex()]
    if kind is frozenset:
        return ["frozenset", *sorted([as_json(x) for x in value], key=repr)]
    if isinstance(value, np.dtype):
        return ["numpy", value.name]
    if isinstance(value, Enum):
        return ["enum", _name(kind), value.name]
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return [_name(kind), *[as_json(x) for x in value]]
    if is_dataclass(kind):
        return [_name(kind), *[as_json(getattr(value, f.name)) for f in fields(value) if f.init]]
    raise NotKept(f"a {kind.__name__} has no value of JSON")


def _name(kind: type) -> str:
    if not kind.__module__.startswith(PACKAGE) or "." in kind.__qualname__:
        raise NotKept(f"{kind.__module__}.{kind.__qualname__} is no class of ours")
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: Any) -> Any:
    """The class of a name: only such as hold values, in modules that are loaded."""
    module, _, own = name.partition(":") if type(name) is str else ("", "", "")
    found = getattr(sys.modules.get(module), own, None) if module.startswith(PACKAGE) else None
    if not isinstance(found, type) or found.__module__ != module:
        raise NotKept(f"there is no class {name!r}")
    return found


def from_json(value: Any) -> Any:
    """The attribute that was written down as this value."""
    if type(value) in _PLAIN or type(value) is float:
        return value
    if type(value) is not list or not value or type(value[0]) is not str:
        raise NotKept("neither a plain value nor one that says what it is")
    kind, *inside = value
    try:
        return _made(kind, inside)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise NotKept(f"what should be a {kind}: {error}") from None


def _made(kind: str, inside: list[Any]) -> Any:
    match kind:
        case "tuple":
            return tuple([from_json(x) for x in inside])
        case "list":
            return [from_json(x) for x in inside]
        case "frozenset":
            return frozenset([from_json(x) for x in inside])
        case "complex":
            real, imag = map(from_json, inside)
            return complex(real, imag)
    if kind in ("float", "bytes", "dtype", "numpy"):
        (text,) = inside
        if type(text) is not str:
            raise NotKept(f"a {kind} is written as text")
        if kind == "dtype":
            return _DTYPES[text]
        return float.fromhex(text) if kind == "float" else bytes.fromhex(text) if kind == "bytes" else np.dtype(text)
    if kind == "enum":
        name, member = inside
        found = _class(name)
        if not issubclass(found, Enum):
            raise NotKept(f"{name} is no enumeration")
        return found[member]
    found = make = _class(kind)
    if issubclass(found, tuple) and hasattr(found, "_fields"):
        return make(*[from_json(x) for x in inside])
    if is_dataclass(found):
        names = [f.name for f in fields(found) if f.init]
        return make(**dict(zip(names, [from_json(x) for x in inside], strict=True)))
    raise NotKept(f"{kind} holds no values")
