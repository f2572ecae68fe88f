"""Pickled data as plain values, without executing anything: what PyTorch's files are read with.

The instructions of a pickle are walked one by one. Those that make numbers, strings, lists and dicts are carried out;
a class or function is looked up in a table of what the caller knows, never imported. Whatever else is refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any

from eshkol.errors import CheckpointError

MOST_STEPS = 50_000_000
_MARK = object()

Refuse = Callable[[str], CheckpointError]


class Plain:
    """What a class of another library became: its name, and what it was made with."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self.name, self.arguments = name, arguments

    def __repr__(self) -> str:
        return f"<{self.name}{self.arguments!r}>"


class PickledFunction:
    """A function or class that may stand in the pickle, and what it does here."""

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name, self.call = name, call


class Walker:
    """Carries out the instructions of a pickle.

    `known` are the names that may stand in it, with what they mean; `persistent` is given what is kept elsewhere.
    """

    def __init__(
        self, data: bytes, known: Mapping[str, Any], persistent: Callable[[Any], Any], refused: Refuse
    ) -> None:
        self.data, self.known, self.persistent, self.refused = data, known, persistent, refused
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def value(self) -> Any:
        """What was pickled."""
        try:
            for count, (op, argument, _) in enumerate(pickletools.genops(self.data)):
                if count > MOST_STEPS:
                    raise self.refused("its pickle has too many instructions")
                if op.name == "STOP":
                    return self.stack.pop()
                self._step(op.name, argument)
        except CheckpointError:
            raise
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise self.refused(f"its pickle is damaged: {error}") from None
        raise self.refused("its pickle does not end")

    def _step(self, name: str, argument: Any) -> None:
        if name in _LITERALS:
            self.stack.append(argument)
        elif name in _MADE:
            self.stack.append(_MADE[name]())
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            self._global(name, argument)
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in ("PROTO", "FRAME"):
            raise self.refused(f"its pickle has the instruction {name}, which makes more than plain data")

    def _global(self, name: str, argument: Any) -> None:
        if name == "GLOBAL":
            found = str(argument).replace(" ", ".", 1)
        else:
            last, module = self.stack.pop(), self.stack.pop()
            found = f"{module}.{last}"
        if found not in self.known:
            raise self.refused(f"it needs {found}, and nothing of a pickle is executed")
        self.stack.append(self.known[found])

    def marked(self) -> list[Any]:
        """What stands on the stack over the last mark, taken off."""
        for k in range(len(self.stack) - 1, -1, -1):
            if self.stack[k] is _MARK:
                found = self.stack[k + 1 :]
                del self.stack[k:]
                return found
        raise ValueError("no mark")

    def put(self, where: Any) -> None:
        self.memo[int(where)] = self.stack[-1]

    def get(self, where: Any) -> None:
        self.stack.append(self.memo[int(where)])

    def memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def tuple_of(self, count: int) -> None:
        items = tuple(self.stack[len(self.stack) - count :])
        del self.stack[len(self.stack) - count :]
        self.stack.append(items)

    def append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise self.refused("its pickle appends to what is no list")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise self.refused("its pickle sets items of what is no dict")
        target.update(zip(items[::2], items[1::2], strict=True))

    def reduce(self, _: Any) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, PickledFunction) or not isinstance(arguments, tuple):
            raise self.refused("its pickle calls what is no function")
        self.stack.append(function.call(*arguments))

    def build(self, _: Any) -> None:
        """Attributes of an object: of plain data they are nothing that matters (a dict's `_metadata`)."""
        self.stack.pop()
        if not isinstance(self.stack[-1], dict):
            raise self.refused("its pickle builds an object")

    def persist(self, _: Any) -> None:
        self.stack.append(self.persistent(self.stack.pop()))

    def append_one(self, _: Any) -> None:
        self.append([self.stack.pop()])

    def update_one(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.update([key, value])

    def drop(self, _: Any) -> None:
        self.stack.pop()

    def twice(self, _: Any) -> None:
        self.stack.append(self.stack[-1])


_LITERALS = frozenset((
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "STRING", "BINSTRING",
    "SHORT_BINSTRING",
))  # fmt: skip
_MADE: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list, "EMPTY_DICT": dict, "MARK": lambda: _MARK,
}  # fmt: skip
_STEPS: dict[str, Callable[[Walker, Any], None]] = {
    "PUT": Walker.put, "BINPUT": Walker.put, "LONG_BINPUT": Walker.put, "MEMOIZE": Walker.memoize,
    "GET": Walker.get, "BINGET": Walker.get, "LONG_BINGET": Walker.get,
    "TUPLE": lambda w, _: w.stack.append(tuple(w.marked())),
    "TUPLE1": lambda w, _: w.tuple_of(1), "TUPLE2": lambda w, _: w.tuple_of(2), "TUPLE3": lambda w, _: w.tuple_of(3),
    "LIST": lambda w, _: w.stack.append(w.marked()),
    "APPENDS": lambda w, _: w.append(w.marked()), "APPEND": Walker.append_one,
    "SETITEMS": lambda w, _: w.update(w.marked()), "SETITEM": Walker.update_one,
    "REDUCE": Walker.reduce, "BUILD": Walker.build, "BINPERSID": Walker.persist,
    "POP": Walker.drop, "DUP": Walker.twice,
}  # fmt: skip
