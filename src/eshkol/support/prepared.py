"""Compiled code that was made when Eshkol was set up: one file of entries for the program cache, which is only read.

Comes in: a key of the cache. Goes out: the payload that `eshkol prepare` found under it, or None. Keys are those of the
cache itself, and hold whatever a payload hangs on (sources, LLVM, processor), so a file that other sources made, or
another machine, is one in which nothing is found.

The file lies in the environment that Eshkol is installed in. What is in it is run, so it is taken only from where
nobody can put another who could not change Eshkol itself: file and folder belong to whoever owns the package, to the
user or to root, and not everyone may write to them. It is put in place by a rename; index and payloads are checked by
their hashes before use.

    header   magic, version, BLAKE3 of the index, number of entries, stamp (a name for what the entries were made by)
    index    for every entry, in order of key: key, BLAKE3 of the payload, offset, length
    payloads

Environment: ESHKOL_PREPARED (another file, or 0 for none).
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from eshkol.support import flags

MAGIC = b"ESKR"
VERSION = 1
HEADER = struct.Struct("<4sB32sQ32s")
ROW = struct.Struct("<32s32sQQ")
MOST_BYTES = 64 << 20  # of a file: what is prepared is small programs
PACKAGE = Path(__file__).parents[1]


class CorruptEntry(Exception):
    """What is in an entry's place is not that entry; the message says how it shows."""


class NotTaken(Exception):
    """A file that is not used; the message says why."""


class Prepared:
    """Entries of a file, which do not change; `NotTaken` where it is not to be used."""

    def __init__(self, path: str) -> None:
        self.path = path
        with _checked(path) as file:
            self._identity = _identity(file)
            header = file.read(HEADER.size)
            if len(header) < HEADER.size:
                raise NotTaken("it is cut short")
            magic, version, digest, count, self.stamp = HEADER.unpack(header)
            if magic != MAGIC or version != VERSION:
                raise NotTaken("it has another format")
            self.size = self._identity[1]
            if HEADER.size + count * ROW.size > self.size:
                raise NotTaken("it is cut short")
            self._index = file.read(count * ROW.size)
        if blake3(self._index).digest() != digest:
            raise NotTaken("its index is corrupt")
        self.count: int = count

    def read(self, key: str) -> bytes | None:
        """The payload under a key, None if there is none; one that cannot be trusted raises `CorruptEntry`."""
        row = self._row(bytes.fromhex(key))
        if row is None:
            return None
        _, digest, offset, length = row
        try:
            with _checked(self.path) as file:
                if _identity(file) != self._identity:  # another was put in its place since
                    return None
                file.seek(offset)
                payload = file.read(length) if offset + length <= self.size else b""
        except (OSError, NotTaken):  # it was taken away since
            return None
        if len(payload) != length:
            raise CorruptEntry("it is cut short")
        if blake3(payload).digest() != digest:
            raise CorruptEntry("the payload does not have its hash")
        return payload

    def _row(self, key: bytes) -> tuple[bytes, bytes, int, int] | None:
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            found = self._index[middle * ROW.size : middle * ROW.size + 32]
            if found == key:
                key_, digest, offset, length = ROW.unpack_from(self._index, middle * ROW.size)
                return key_, digest, offset, length
            low, high = (middle + 1, high) if found < key else (low, middle)
        return None


def _checked(path: str) -> BinaryIO:
    """A file that may be used, open at its beginning."""
    folder = os.stat(os.path.dirname(path) or ".")
    if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a pipe would wait for ever
        raise NotTaken("it is no plain file")
    file = open(path, "rb")  # noqa: SIM115 - the caller closes it
    info = os.fstat(file.fileno())
    reason = f"it has {info.st_size} bytes, more than {MOST_BYTES}" if info.st_size > MOST_BYTES else None
    if reason is None and hasattr(os, "geteuid"):
        trusted = {0, os.geteuid(), os.stat(PACKAGE).st_uid}
        for what, facts in (("it", info), ("its folder", folder)):
            if facts.st_uid not in trusted:
                reason = f"{what} belongs to another user"
            elif facts.st_mode & stat.S_IWOTH:
                reason = f"everyone may write to {'it' if facts is info else 'its folder'}"
    if reason is not None:
        file.close()
        raise NotTaken(reason)
    return file


def _identity(file: BinaryIO) -> tuple[int, int, int]:
    info = os.fstat(file.fileno())
    return info.st_ino, info.st_size, info.st_mtime_ns


# ---- where it is -----------------------------------------------------------------------------------------------------


def places() -> list[Path]:
    """Where what is prepared may lie: the file that ESHKOL_PREPARED names, else that of the environment or the user."""
    said = flags.text("ESHKOL_PREPARED")
    if said.lower() in flags.OFF:
        return []
    if said:
        return [Path(said).expanduser().absolute()]
    import site

    folders = [sys.prefix, *([site.getuserbase()] if site.ENABLE_USER_SITE else [])]
    return [Path(folder) / "share" / "eshkol" / "prepared.eskr" for folder in folders]


_opened: dict[str, Prepared] = {}


def standing() -> Prepared | None:
    """What is prepared for this process, if something is; a file is opened once."""
    for path in places():
        name = str(path)
        if name in _opened:
            return _opened[name]
        with suppress(OSError, NotTaken):
            _opened[name] = Prepared(name)
            return _opened[name]
    return None


def why_not(path: Path) -> str | None:
    """Why a file is not used; None where it is."""
    try:
        Prepared(str(path))
    except NotTaken as reason:
        return str(reason)
    except OSError as error:
        return error.strerror or str(error)
    return None


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(path: Path, entries: Iterable[tuple[str, bytes]], stamp: bytes) -> int:
    """Put a file with these entries in place of whatever is there; its size. The same entries give the same bytes."""
    ordered = sorted((bytes.fromhex(key), payload) for key, payload in entries)
    rows, offset = [], HEADER.size + len(ordered) * ROW.size
    for key, payload in ordered:
        rows.append(ROW.pack(key, blake3(payload).digest(), offset, len(payload)))
        offset += len(payload)
    index = b"".join(rows)
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(HEADER.pack(MAGIC, VERSION, blake3(index).digest(), len(ordered), stamp))
            file.write(index)
            file.writelines(payload for _, payload in ordered)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # whatever the umask says: everyone may read it, and only we write it
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return offset
