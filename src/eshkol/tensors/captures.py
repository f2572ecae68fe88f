"""What a function reads beside its arguments, so that `jit` notices when it changes.

Comes in: a function. Its code, and that of the user's functions that it calls, says which names it reads: variables
around it, globals, and attributes of them (`config.rate`, `self.scale`). Goes out: a `Captures`, which says at each
call what they hold now, as a key (numbers, text, lists, dicts and NumPy arrays by what they hold, anything else by
which object it is), and the nodes of the tensors among them.

It cannot see what is asked of a file, a clock or a generator, or reached in some other way than by name: by an index
that is computed, through `getattr`, inside of a library. `jit` is documented to see names only.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from inspect import getattr_static
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from blake3 import blake3

from eshkol.graph.node import PACKAGE, Node
from eshkol.runtime import front
from eshkol.tensors.arrays import is_fixed
from eshkol.tensors.value import Tensor

_LIBRARIES = {"eshkol", "numpy", "scipy", *sys.stdlib_module_names}
_SMALL = 1 << 12  # bytes of an array that are a key themselves
_DEEPEST = 8  # functions that call functions
_FIXED = (ModuleType, BuiltinFunctionType, type, np.ufunc, np.dtype)
_DATA = (Tensor, np.ndarray, np.generic, str, int, float, complex, list, tuple, dict, set)
_MISSING = object()
STANDS = 2  # as many words has a place whose value cannot become another: which is the value itself

Place: TypeAlias = tuple[Any, ...]
"""Where a value stands: whether it is found by a key first, in what, and by which key and attributes; C reads it."""


class Held(NamedTuple):
    """What the places held when they were looked at."""

    state: tuple[Any, ...]  # as a key
    nodes: list[Node]  # of the tensors among it
    values: list[Any]
    tensors: list[tuple[Tensor, Node]]  # among them, and their nodes then
    contents: list[tuple[Any, tuple[Any, ...]]]  # the lists and dicts among them, and what was in them then
    lasting: bool  # whether it holds for as long as all these are the same objects


class Captures:
    """The places that a function reads from, and what they hold."""

    def __init__(self, function: Any, without: Collection[str] = ()) -> None:
        self._where: list[Place] = []
        self._names: list[str] = []
        self._without = without
        self._arguments: list[tuple[int | None, str, tuple[str, ...]]] = []  # attributes that are read of parameters
        self._seen: set[Any] = set()
        self._places: set[Any] = set()
        self._scan(function, 0)
        self.any = bool(self._where)
        self.held = Held((), [], [], [], [], False)

    @property
    def names(self) -> list[str]:
        return self._names

    def now(self) -> tuple[tuple[Any, ...], list[Node]]:
        """What the places hold, as a key, and the nodes of tensors among it."""
        held = self.held
        same = held.lasting and front.unchanged(self._where, held.values, held.tensors, held.contents)
        if not same:  # which it is, mostly
            values = [*map(front.read_place, self._where)]
            nodes: list[Node] = []
            state = tuple([_frozen(value, nodes) for value in values])
            held = Held(state, nodes, values, [], [], True)
            held = self.held = held._replace(lasting=all(_lasts(x, held) for x in values))
        return held.state, held.nodes

    def watched(self, held: Held) -> tuple[list[Any], list[Any], list[Any], list[Any]] | None:
        """What tells whether all is as it was: places and values, then tensors, lists and dicts with what is in them.

        None: more is asked.
        """
        if self.any and not held.lasting:
            return None
        moving = [k for k, place in enumerate(self._where) if len(place) > STANDS]
        return [self._where[k] for k in moving], [held.values[k] for k in moving], held.tensors, held.contents

    def of_arguments(self, args: Sequence[Any], given: Mapping[str, Any]) -> tuple[Any, ...]:
        """What is read of arguments that are objects of the user's, as a key: they are told apart by which they are."""
        found: list[Any] = []
        for place, name, path in self._arguments:
            value = args[place] if place is not None and place < len(args) else given.get(name)
            for attribute in path:
                if isinstance(value, _DATA):
                    break
                value = vars(value).get(attribute) if hasattr(value, "__dict__") else None
            found.append(_frozen(value, []))
        return tuple(found)

    def changed(self) -> list[str]:
        """The names of what was changed since it was looked at: a function that counts its calls does so itself."""
        state = [_frozen(front.read_place(place), []) for place in self._where]
        return [name for name, now, then in zip(self._names, state, self.held.state, strict=True) if now != then]

    # --- the places -------------------------------------------------------------------------------

    def _scan(self, given: Any, deep: int) -> None:
        """Add what a callable of the user's reads."""
        this = _MISSING
        for _ in range(_DEEPEST):
            if isinstance(given, partial):
                for k, value in enumerate(given.args):
                    self._follow((False, value), f"argument {k} of {given!r}", id(given), (), deep + 1)
                for key in given.keywords:
                    self._follow((True, given.keywords, key), f"{key} of {given!r}", id(given), (), deep + 1)
                given = given.func
            elif isinstance(given, MethodType):
                given, this = given.__func__, given.__self__
            elif (inner := getattr(given, "_jitted", None)) is not None and not isinstance(given, type):
                given = inner
            elif not isinstance(given, FunctionType | type) and callable(given):
                given, this = getattr_static(type(given), "__call__"), given
            else:
                break
        if not isinstance(given, FunctionType) or deep > _DEEPEST or not _of_user(given):
            return
        if (mark := (given, id(this))) in self._seen:
            return
        self._seen.add(mark)
        if any(isinstance(x, list | dict | set | np.ndarray) for x in given.__defaults__ or ()):
            self._watch((False, given, "__defaults__"), f"the defaults of {given.__qualname__}", given)
        if any(isinstance(x, list | dict | set | np.ndarray) for x in (given.__kwdefaults__ or {}).values()):
            self._watch((False, given, "__kwdefaults__"), f"the defaults of {given.__qualname__}", given)
        code = given.__code__
        cells = dict(zip(code.co_freevars, given.__closure__ or (), strict=True))
        first = code.co_varnames[0] if code.co_argcount else None
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        for kind, name, path in _paths(code):
            if kind == "FAST" and name == first and this is not _MISSING:
                self._follow((False, this), f"{name} of {given.__qualname__}", id(this), path, deep)
            elif kind == "FAST" and name in parameters and path and deep == 0:
                number = code.co_varnames.index(name) - (this is not _MISSING)
                self._arguments.append((number if number < code.co_argcount else None, name, path))
            elif kind == "DEREF" and name in cells:
                place = (False, cells[name], "cell_contents")
                self._follow(place, f"{name} of {given.__qualname__}", id(cells[name]), path, deep)
            elif kind == "GLOBAL" and name in given.__globals__:
                self._follow((True, given.__globals__, name), name, id(given.__globals__), path, deep)

    def _follow(self, place: Place, name: str, owner: int, path: tuple[str, ...], deep: int) -> None:
        """Add what stands at the end of a path of attributes, as far as it can be known to be no more than data."""
        value = front.read_place(place)
        for k, attribute in enumerate(path):
            if isinstance(value, _DATA):
                break
            if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _LIBRARIES:
                return
            static = getattr_static(value, attribute, _MISSING)
            if isinstance(static, property):
                if static.fget is not None:
                    self._scan(MethodType(static.fget, value), deep + 1)
                return
            if static is _MISSING:  # it is found in a way of its own: the object is what is looked at
                break
            place, name = (*place, attribute), f"{name}.{attribute}"
            value = front.read_place(place)
            if k == len(path) - 1:
                break
        if isinstance(value, _FIXED) or (isinstance(value, FunctionType | MethodType) and not _of_user(value)):
            return
        if isinstance(value, MethodType):
            self._scan(value, deep + 1)
            return
        self._watch(place, name, owner)
        if callable(value) and not isinstance(value, Tensor):
            self._scan(value, deep + 1)

    def _watch(self, place: Place, name: str, owner: Any) -> None:
        if name in self._without:
            return
        if (owner, name) not in self._places:
            self._places.add((owner, name))
            self._names.append(name)
            self._where.append(place)


@lru_cache(1024)  # functions that are made again and again have the same code
def _paths(code: CodeType) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The names that code, and code within it, loads, each with the attributes that are read of it right away."""
    return tuple(_loaded(code))


def _loaded(code: CodeType) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    kind, name, path = "", "", []
    for instruction in dis.get_instructions(code):
        operation, value = instruction.opname, instruction.argval
        if operation in ("LOAD_ATTR", "LOAD_METHOD") and name:
            path.append(value)
            continue
        if operation in ("CACHE", "PUSH_NULL", "NOP", "EXTENDED_ARG"):
            continue
        if name:
            yield kind, name, tuple(path)
        kind, name, path = "", "", []
        for wanted in ("GLOBAL", "DEREF", "FAST"):
            if operation.startswith(f"LOAD_{wanted}"):
                kind, name = wanted, value[-1] if isinstance(value, tuple) else value
    if name:
        yield kind, name, tuple(path)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from (found for found in _paths(inner) if found[0] != "FAST")


def _of_user(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename.startswith(PACKAGE):
        return False
    return str(getattr(function, "__module__", "")).partition(".")[0] not in _LIBRARIES


# --- what they hold -------------------------------------------------------------------------------

_PLAIN = {int, bool, str, bytes, type(None)}


class _Same:
    """An object as a key: which one it is."""

    __slots__ = ("what",)

    def __init__(self, what: Any) -> None:
        self.what = what

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.what is other.what

    def __hash__(self) -> int:
        return id(self.what)


def _lasts(value: Any, held: Held) -> bool:
    """Whether an object holds the same for as long as it, and what is noted of it here, is the same."""
    if isinstance(value, Tensor):
        held.tensors.append((value, value._node))
        return True
    if type(value) in (list, dict):
        inside = tuple(x for pair in value.items() for x in pair) if isinstance(value, dict) else tuple(value)
        held.contents.append((value, inside))
        return all(_lasts(x, held) for x in inside)
    if isinstance(value, list | dict | set | np.ndarray):
        return isinstance(value, np.ndarray) and is_fixed(value)
    if isinstance(value, tuple):
        return all(_lasts(x, held) for x in value)
    return not hasattr(type(value), "__jit_state__")


def exactly(number: Any) -> Any:
    """A float or complex number as a key: 0.0 and -0.0 are two, and NaN is one."""
    return number if number and number == number else repr(number)


def _digest(array: np.ndarray) -> bytes:
    """What stands for the bytes of an array that is too large to be kept for comparison."""
    raw: memoryview = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return blake3(raw).digest()


def _frozen(value: Any, nodes: list[Node]) -> Any:
    """A value as a key; the nodes of tensors in it are added to a list."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is float or kind is complex:
        return kind, exactly(value)
    if isinstance(value, Tensor):
        node = value._settled()
        nodes.append(node)
        return kind, node.shape, node.dtype, bool(node.scopes)
    if kind is list or isinstance(value, tuple):
        return kind, tuple([_frozen(x, nodes) for x in value])
    if isinstance(value, Mapping):
        return kind, tuple([(_frozen(k, nodes), _frozen(x, nodes)) for k, x in value.items()])
    if isinstance(value, set | frozenset):
        return kind, frozenset([_frozen(x, nodes) for x in value])
    if isinstance(value, np.ndarray) and value.dtype != object and not is_fixed(value):
        return kind, value.shape, value.dtype, value.tobytes() if value.nbytes <= _SMALL else _digest(value)
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    state = getattr(kind, "__jit_state__", None)  # of a model: its mode and structure, parameters and buffers
    return _Same(value) if state is None else (_Same(value), _frozen(state(value), nodes))
