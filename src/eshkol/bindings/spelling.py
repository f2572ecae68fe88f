"""Names of Scheme as Python can write them: `square-error` is `square_error`.

| in Scheme | in Python | |
|---|---|---|
| `square-error` `net/size` `a.b` | `square_error` `net_size` `a_b` | what stands between words is `_` |
| `list->tensor` | `list_to_tensor` | |
| `empty?` | `is_empty` | |
| `tensor-add!` | `tensor_add_` | as in-place operations have it in Python |
| `*rate*` | `rate` | |
| `%hidden` | `_hidden` | |
| `import` | `import_` | a word that Python keeps for itself |

A name that cannot be spelled so (`string=?`, `<point>`, `+`) is reached by `module["string=?"]` alone, as every other
one is, too.
"""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Iterable


def python_name(name: str) -> str | None:
    """How a name is spelled in Python; None where it cannot be."""
    word = name
    if len(word) > 2 and word.startswith("*") and word.endswith("*"):
        word = word[1:-1]
    if word.endswith("?"):
        word = f"is-{word[:-1]}"
    if word.endswith("!"):
        word = f"{word[:-1]}_"
    if word.startswith("%"):
        word = f"_{word[1:]}"
    word = word.replace("->", "-to-").removeprefix("-")
    for mark in "-/.:":
        word = word.replace(mark, "_")
    if keyword.iskeyword(word):
        word += "_"
    return word if word.isidentifier() and not word.startswith("__") else None


class Spelling:
    """A set of names, and which of them an attribute means."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self._spelled: dict[str, list[str]] = {}
        for name in sorted(self.names):
            word = python_name(name)
            if word is not None:
                self._spelled.setdefault(word, []).append(name)

    def find(self, attribute: str, where: str) -> str:
        """The name that is meant; AttributeError where there is none, or more than one."""
        if attribute in self.names:
            return attribute
        found = self._spelled.get(attribute, [])
        if len(found) == 1:
            return found[0]
        if found:
            ways = " or ".join(f'["{name}"]' for name in found)
            raise AttributeError(f"{where} has {' and '.join(found)}, both spelled '{attribute}'; say {ways}")
        near = difflib.get_close_matches(attribute, self.attributes(), 1)
        raise AttributeError(f"{where} has no '{attribute}'" + (f"; did you mean '{near[0]}'?" if near else ""))

    def missing(self, name: str, where: str) -> KeyError:
        """The error for an exact name that is not there."""
        near = difflib.get_close_matches(name, self.names, 1)
        return KeyError(f"{where} has no {name}" + (f"; did you mean {near[0]}?" if near else ""))

    def attributes(self) -> list[str]:
        """All that `find` finds, except where two names have one spelling."""
        return sorted(word for word, names in self._spelled.items() if len(names) == 1 or word in self.names)
