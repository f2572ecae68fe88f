"""The JSON text of a kernel, and checked access to what it holds.

Comes in: text, bytes, or a mapping that is JSON already read. Goes out: a `KernelNode`, a JSON value that knows
its path; everything the translator takes from it goes through an accessor here, so that whatever is
missing, misspelt, of the wrong kind or too large becomes an `IsaError` that begins with the path.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from eshkol.atlas.types import Type
from eshkol.errors import IsaError, Span

NESTING_LIMIT = 100  # statements and expressions inside one another; keeps the translator off Python's limit
SHOWN_LENGTH = 60  # of a value quoted in a message
COMMENT = "comment"  # a key that every object may have and no one reads: JSON has no comments of its own
T = TypeVar("T")


class _Object(dict[str, Any]):
    """A JSON object that remembers a key it was given twice."""

    repeated: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    result = _Object(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        result.repeated = next(key for k, key in enumerate(keys) if key in keys[:k])
    return result


def read_kernel(source: str | bytes | Mapping[str, Any]) -> KernelNode:
    """The top level of a kernel file."""
    if isinstance(source, Mapping):
        return KernelNode(source, "", 0)
    if isinstance(source, bytes | bytearray):
        try:
            source = bytes(source).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise IsaError(f"the kernel is not UTF-8 text: byte {error.start} does not belong there") from None
    if not isinstance(source, str):
        raise IsaError(f"a kernel is JSON text, bytes or a mapping, not {describe(source)}")
    try:
        return KernelNode(json.loads(source, object_pairs_hook=_object), "", 0)
    except json.JSONDecodeError as error:
        line = source.split("\n")[error.lineno - 1].rstrip("\r")
        span = Span("<kernel>", error.lineno, error.colno, 1, line)
        raise IsaError(f"the kernel is not JSON: {error.msg}", span=span) from None
    except RecursionError:
        raise IsaError("the kernel is nested too deeply to be read") from None
    except ValueError:  # Python's own limit on the digits of an integer
        raise IsaError("the kernel holds a number of too many digits") from None


def describe(value: object) -> str:
    """A JSON value in a few words, for 'expected …, got …'."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN_LENGTH else value[:SHOWN_LENGTH] + "…")
    if isinstance(value, int):
        return f"{value}" if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else f"a Python {type(value).__name__}"


def near(name: str, known: Iterable[str]) -> str | None:
    """A hint that names what a misspelt name may have meant, or all there is where that is short."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name[:SHOWN_LENGTH], names, 3)
    if close:
        return "did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    return "known here: " + " ".join(names) if 0 < len(names) <= 24 else None


@dataclass(frozen=True, slots=True)
class KernelNode:
    """A JSON value and the path to it, such as body[3].then[0].value."""

    value: Any
    path: str
    depth: int

    def error(self, message: str, hint: str | None = None) -> IsaError:
        return IsaError(f"{self.path or 'the kernel'}: {message}", hint=hint)

    def expected(self, wanted: str, hint: str | None = None) -> IsaError:
        return self.error(f"expected {wanted}, got {describe(self.value)}", hint)

    # --- objects and lists -----------------------------------------------------------------------

    def members(self) -> Mapping[str, Any]:
        if not isinstance(self.value, dict | Mapping):  # a dict is found at once, a Mapping by a slower search
            raise self.expected("an object")
        repeated = getattr(self.value, "repeated", None)
        if repeated is not None:
            raise self.error(f"the key {describe(repeated)} stands here twice")
        return self.value

    def find(self, key: str) -> KernelNode | None:
        """The value of a key, or None."""
        members = self.members()
        if key not in members:
            return None
        if self.depth >= NESTING_LIMIT:
            raise self.error(f"nested more than {NESTING_LIMIT} deep", "bind parts of it to variables with let")
        return KernelNode(members[key], f"{self.path}.{key}" if self.path else key, self.depth + 1)

    def get(self, key: str) -> KernelNode:
        """The value of a key that must be there."""
        found = self.find(key)
        if found is None:
            raise self._missing(key)
        return found

    def _missing(self, key: str) -> IsaError:
        return self.error(f"the key '{key}' is missing", near(key, filter(_is_text, self.members())))

    def items(self) -> list[KernelNode]:
        if not isinstance(self.value, list | tuple):
            raise self.expected("a list")
        return [KernelNode(v, f"{self.path}[{k}]", self.depth) for k, v in enumerate(self.value)]

    def check_keys(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Every required key, and none that nothing would read."""
        allowed = {*required, *optional, COMMENT}
        for key in self.members():
            if key not in allowed:
                hint = near(key, allowed) if _is_text(key) else "keys are strings"
                raise self.error(f"the key {describe(key)} does not belong here", hint)
        for key in required:
            if key not in self.value:
                raise self._missing(key)

    def with_kind(self, kinds: Collection[str], what: str) -> tuple[str, KernelNode]:
        """The kind of an object, and the object with that kind under the key "kind".

        Without a "kind", a "type" that names one of the kinds is taken for it.
        """
        key = "kind" if "kind" in self.members() else "type"
        if key == "type" and self.members().get("type") not in list(kinds):
            raise self.error(f"the key 'kind' is missing: expected {what}", near("", kinds))
        kind = self.get(key).one_of({k: k for k in kinds}, what)
        if key == "type":
            return kind, replace(self, value={"kind": kind} | {k: v for k, v in self.value.items() if k != "type"})
        return kind, self

    # --- plain values ----------------------------------------------------------------------------

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.expected("a string")
        return self.value

    def identifier(self) -> str:
        name = self.text()
        if not (name.isascii() and name.isidentifier() and len(name) <= 128):
            raise self.expected("a name of letters, digits and _")
        return name

    def one_of(self, table: Mapping[str, T], what: str) -> T:
        """What the table holds under this string."""
        name = self.text()
        if name not in table:
            raise self.error(f"{describe(name)} is not {what}", near(name, table))
        return table[name]

    def type(self) -> Type:
        try:
            return Type.parse(self.text())
        except IsaError as error:
            raise self.expected("a type", error.hint) from None

    def integer(self, low: int, high: int) -> int:
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.expected("an integer")
        if not low <= value <= high:
            raise self.error(f"{describe(value)} is not between {low} and {high}")
        return value

    def number(self) -> int | float:
        """A finite number; a JSON number too large for a float reads as infinity and is refused."""
        value = self.value
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.expected("a number")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.expected("a finite number", 'write "inf", "-inf" or "nan", as a string, where you mean one')
        return value


def _is_text(key: object) -> bool:
    return isinstance(key, str)
