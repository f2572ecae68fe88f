"""What entries of the program cache are found by, and why one is not there.

Comes in: the named parts that something is made from. Goes out: their key; and, for ESHKOL_EXPLAIN, a few words on what
is different from the last time that something was built under the same label. `files_key` names sources, which are part
of keys.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path

from blake3 import blake3

from eshkol.errors import CacheError

REMEMBERED_LABELS, REMEMBERED_KEYS = 1024, 8192

Part = str | bytes


def cache_key(parts: Mapping[str, Part]) -> str:
    """The key of these parts: BLAKE3 over every name and value, in order of name.

    Names and values go in with their lengths, and text apart from bytes, so different parts never hash the
    same input.
    """
    pieces = [b"eshkol cache key 1\0"]
    for name in sorted(parts):
        for field in (name, parts[name]):
            kind, raw = encoded(field)
            pieces += (kind, len(raw).to_bytes(8, "little"), raw)
    return blake3(b"".join(pieces)).hexdigest()


def encoded(field: Part) -> tuple[bytes, bytes]:
    if isinstance(field, str):  # a lone surrogate, as in an undecodable file name, must not stop a build
        return b"s", field.encode("utf-8", "surrogatepass")
    if isinstance(field, bytes):
        return b"b", field
    raise CacheError(f"a cache key is made of text and bytes, not of {type(field).__name__}")


_GONE = "it was built before, and has been evicted or was too large to keep"


class History:
    """What was built under which label, to explain the next build. Bounded; the caller holds the lock."""

    def __init__(self) -> None:
        self._parts: OrderedDict[str, dict[str, bytes]] = OrderedDict()  # of each label's last build
        self._keys: OrderedDict[str, None] = OrderedDict()

    def remember(self, key: str, label: str, parts: Mapping[str, Part]) -> None:
        self._parts[label] = _digests(parts)
        self._parts.move_to_end(label)
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._parts) > REMEMBERED_LABELS:
            self._parts.popitem(last=False)
        if len(self._keys) > REMEMBERED_KEYS:
            self._keys.popitem(last=False)

    def why(self, key: str, label: str, parts: Mapping[str, Part]) -> str:
        """Why this key is not in the cache."""
        if key in self._keys:
            return _GONE
        before, now = self._parts.get(label), _digests(parts)
        if before is None:
            return "first build of this label in this process"
        differences = {
            "changed": [name for name in now if name in before and now[name] != before[name]],
            "added": [name for name in now if name not in before],
            "removed": [name for name in before if name not in now],
        }
        told = [f"{what} {', '.join(sorted(names))}" for what, names in differences.items() if names]
        return "since its last build: " + "; ".join(told) if told else _GONE


def _digests(parts: Mapping[str, Part]) -> dict[str, bytes]:
    return {name: blake3(b"".join(encoded(value))).digest() for name, value in parts.items()}


def files_key(folders: Iterable[Path], suffixes: tuple[str, ...]) -> str:
    """What names the files of some folders: their paths, sizes and times."""
    found = []
    for folder in folders:
        with os.scandir(folder) as files:
            found += [(file, file.stat()) for file in files if file.name.endswith(suffixes)]
    rows = sorted(f"{file.path} {info.st_size} {info.st_mtime_ns}" for file, info in found)
    return blake3("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()
