"""A unit as native code that is not loaded yet, and the bytes that the cache keeps of it.

It says everything that the loader (units.py) needs: the object, the outside symbols that it refers to, and its
constants as text. compiling.py makes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CompiledUnit:
    """A unit as native code, not yet loaded."""

    name: str
    code: bytes
    functions: list[str]  # outside functions that it calls
    cells: list[tuple[str, str]]  # global variables that it refers to: library and name
    constants: list[str | None]  # as text; null for those that are the expander's
    foreign: list[Any]  # constants of the expander: syntax, patterns, templates; such a unit is not kept
    scopes: str  # which procedure stands where (scopes.py)
    forms: bytes  # what it was made from (keeping.py)

    def payload(self) -> bytes:
        kept = ("name", "functions", "cells", "constants", "scopes")
        head = {name: getattr(self, name) for name in kept} | {"forms": len(self.forms)}
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "little") + text + self.forms + self.code

    @classmethod
    def read(cls, payload: bytes) -> CompiledUnit:
        size = int.from_bytes(payload[:8], "little")
        head = json.loads(payload[8 : 8 + size])
        cells = [(library, name) for library, name in head["cells"]]
        forms, code = payload[8 + size : 8 + size + head["forms"]], payload[8 + size + head["forms"] :]
        return cls(head["name"], code, head["functions"], cells, head["constants"], [], head["scopes"], forms)
