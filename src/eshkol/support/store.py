"""The program cache: compiled programs by the BLAKE3 hash of what they were made from.

Comes in: the named parts of a key (program digest, backend, target, compiler version, ...) and a function that builds
the payload. Goes out: the payload, from memory, from disk, from what was prepared when Eshkol was set up
(`prepared.py`), or freshly built. Backends keep their compiled programs here; nothing in this module knows what a
payload means.

Both levels are bounded in bytes and evict what was used least recently. On disk every entry is a file of its own,
checked by length and hash before use and put in place by an atomic rename, so any number of processes share a folder
without a lock. A folder that cannot be written costs one warning, never the program.

Environment: ESHKOL_CACHE_DIR (the folder), ESHKOL_CACHE_BYTES (the bound on disk; 0 keeps the disk out),
ESHKOL_EXPLAIN=1 (a line on stderr for every build: why the cache had nothing).
"""

from __future__ import annotations

import os
import re
import stat
import struct
import sys
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from eshkol.errors import CacheError
from eshkol.support import flags, prepared
from eshkol.support.keys import History, Part, cache_key
from eshkol.support.prepared import CorruptEntry, Prepared

MIB = 1 << 20
MEMORY_BYTES = 64 * MIB
DISK_BYTES = 512 * MIB
MEMORY_ENTRIES = 1 << 16  # bounds the bookkeeping of entries that are next to empty
STALE_SECONDS = 3600  # a temporary file this old was left by a process that died
TOUCH_SECONDS = 60  # how often a hit in memory is also marked on disk
MANY_SHARDS, SAMPLED_SHARDS = 200, 5  # a folder with that many is judged by some of them
WRITE_ATTEMPTS = 3

MAGIC = b"ESKC"
VERSION = 1
HEADER = struct.Struct("<4sB32sQ")  # magic, version, BLAKE3 of the payload, length of the payload

_KEY = re.compile(r"[0-9a-f]{64}\Z")
_SHARD = re.compile(r"[0-9a-f]{2}\Z")
_ENTRY = re.compile(r"[0-9a-f]{64}\.eskc\Z")
_TEMPORARY = re.compile(r"[0-9a-f]{64}\.[0-9]+\.[0-9a-f]{16}\.tmp\Z")


def default_directory() -> Path:
    """Where compiled programs are kept: ESHKOL_CACHE_DIR, else the user's cache folder of this platform."""
    try:
        if chosen := flags.text("ESHKOL_CACHE_DIR"):
            return Path(chosen).expanduser().absolute()
        xdg = os.environ.get("XDG_CACHE_HOME", "")
        if os.path.isabs(xdg):  # the XDG specification has relative paths ignored
            return Path(xdg) / "eshkol"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "eshkol"
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return (Path(local) if local else Path.home() / "AppData" / "Local") / "eshkol" / "Cache"
        return Path.home() / ".cache" / "eshkol"
    except (RuntimeError, OSError) as error:  # no home folder, or no current folder
        raise CacheError(
            f"no folder for the program cache: {error}", hint="set ESHKOL_CACHE_DIR to a folder of your own"
        ) from None


def _disk_bound(given: int) -> int:
    asked = flags.size("ESHKOL_CACHE_BYTES")
    return given if asked is None else asked


class CacheStats(NamedTuple):
    """What a cache holds now, and what happened in it since this object was made.

    Bytes are payload bytes in memory, file sizes on disk.
    """

    memory_entries: int
    memory_bytes: int
    disk_entries: int
    disk_bytes: int
    memory_hits: int
    disk_hits: int
    misses: int
    memory_evictions: int
    disk_evictions: int
    corrupt: int  # entries that were dropped, or not taken, because they could not be trusted
    prepared_hits: int = 0

    @property
    def hits(self) -> int:
        return self.memory_hits + self.disk_hits + self.prepared_hits

    @property
    def evictions(self) -> int:
        return self.memory_evictions + self.disk_evictions


class ProgramCache:
    """A two-level cache of compiled programs; safe among threads and among processes.

    >>> cache = ProgramCache(disk_bytes=0)
    >>> cache.get_or_build({"program": "r0 = 1", "backend": "cpu"}, lambda: b"code", label="one")
    b'code'

    Unless it is `durable`, nothing waits for the disk: an entry that a power failure cuts short is built again.
    """

    def __init__(
        self,
        directory: Path | None = None,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        *,
        durable: bool = True,
    ) -> None:
        if memory_bytes < 0 or disk_bytes < 0:
            raise CacheError("the bounds of a cache are numbers of bytes, 0 or more")
        self._memory = _Memory(memory_bytes)
        self._disk: _Disk | None = None
        self._disk_problem: str | None = None
        if bound := _disk_bound(disk_bytes):
            try:
                self._disk = _Disk(default_directory() if directory is None else Path(directory), bound, durable)
            except CacheError as error:
                self._disk_problem = error.message
        self._prepared: Prepared | None = prepared.standing()
        self._history = History()
        self._lock = threading.Lock()  # guards everything here but the disk
        self._builds: dict[str, _Build] = {}
        self._warned = False
        self._disk_hits = self._prepared_hits = self._misses = self._corrupt = 0

    @property
    def directory(self) -> Path | None:
        """The folder of the entries on disk; None when the disk is not used."""
        return None if self._disk is None else self._disk.root

    def get_or_build(self, parts: Mapping[str, Part], build: Callable[[], bytes], label: str = "program") -> bytes:
        """The payload for these parts; `build` is called when neither memory nor disk has it.

        Threads that ask for one key at the same time wait for one build. The label names the thing built in
        the explanations of ESHKOL_EXPLAIN.
        """
        key = cache_key(parts)
        payload = self._recall(key)
        if payload is not None:
            return payload
        with self._building(key):
            payload, fault = self._find(key)
            if payload is None:
                with self._lock:
                    reason = self._history.why(key, label, parts) if fault is None else fault
                _explain(f"building {label!r}: {reason}")
                payload = build()
                self.put(key, payload)
            with self._lock:
                self._history.remember(key, label, parts)
        return payload

    def get(self, key: str) -> bytes | None:
        """The payload under a key, or None."""
        return self._find(_check_key(key))[0]

    def put(self, key: str, payload: bytes) -> None:
        """Keep a payload under a key, in memory and on disk; one larger than a bound is not kept there."""
        _check_key(key)
        if not isinstance(payload, bytes):
            raise CacheError(f"the payload of a cache entry is bytes, not {type(payload).__name__}")
        with self._lock:
            self._memory.keep(key, payload)
        if self._disk is None:
            if self._disk_problem is not None:
                self._warn(self._disk_problem)
            return
        try:
            self._disk.write(key, payload)
        except OSError as error:
            self._warn(f"cannot write to the program cache in '{self._disk.root}': {error.strerror or error}")

    def everything(self) -> Iterator[tuple[str, bytes]]:
        """Every entry on disk that can be read, with its key."""
        for entry in [] if self._disk is None else list(self._disk.entries()):
            key = Path(entry.path).stem
            payload = self.get(key)
            if payload is not None:
                yield key, payload

    def clear(self) -> None:
        """Drop every entry, in memory and on disk; other files in the folder stay."""
        with self._lock:
            self._memory.clear()
            self._history = History()
        if self._disk is not None:
            try:
                self._disk.clear()
            except OSError as error:
                raise CacheError(
                    f"cannot clear the program cache in '{self._disk.root}': {error.strerror or error}"
                ) from None

    def stats(self) -> CacheStats:
        entries = [] if self._disk is None else list(self._disk.entries())
        with self._lock:
            return CacheStats(
                memory_entries=len(self._memory),
                memory_bytes=self._memory.size,
                disk_entries=len(entries),
                disk_bytes=sum(entry.size for entry in entries),
                memory_hits=self._memory.hits,
                disk_hits=self._disk_hits,
                prepared_hits=self._prepared_hits,
                misses=self._misses,
                memory_evictions=self._memory.evictions,
                disk_evictions=0 if self._disk is None else self._disk.evictions,
                corrupt=self._corrupt,
            )

    def _recall(self, key: str) -> bytes | None:
        """The payload from memory; what is used much in memory must not look unused on disk."""
        with self._lock:
            entry = self._memory.find(key)
            if entry is None:
                return None
            now = time.monotonic()
            due = now - entry.touched > TOUCH_SECONDS
            if due:
                entry.touched = now
        if due and self._disk is not None:
            self._disk.touch(key)
        return entry.payload

    def _find(self, key: str) -> tuple[bytes | None, str | None]:
        """The payload from wherever it is kept; or None, and what was wrong with the entry if there was one."""
        payload, fault = self._recall(key), None
        if payload is not None:
            return payload, None
        if self._disk is not None:
            try:
                payload = self._disk.read(key)
            except CorruptEntry as corrupt:
                fault = f"its entry on disk was corrupt ({corrupt})"
        from_disk = payload is not None
        if payload is None and self._prepared is not None:
            try:
                payload = self._prepared.read(key)
            except CorruptEntry as corrupt:
                fault = f"what was prepared of it is corrupt ({corrupt})"
        with self._lock:
            if payload is not None:
                self._disk_hits += from_disk
                self._prepared_hits += not from_disk
                self._corrupt += fault is not None
                self._memory.keep(key, payload)
            else:
                self._misses += 1
                self._corrupt += fault is not None
        return payload, fault

    @contextmanager
    def _building(self, key: str) -> Iterator[None]:
        """Hold the right to build a key. Re-entrant, so that a build asking for itself recurses visibly."""
        with self._lock:
            build = self._builds.setdefault(key, _Build())
            build.holders += 1
        try:
            with build.turn:
                yield
        finally:
            with self._lock:
                build.holders -= 1
                if not build.holders:
                    del self._builds[key]

    def _warn(self, problem: str) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            warnings.warn(f"{problem}; compiled programs are kept in memory only", RuntimeWarning, stacklevel=3)


def _check_key(key: str) -> str:
    if not _KEY.match(key):  # it becomes a file name
        raise CacheError(f"'{key}' is not a cache key", hint="a key is what cache_key() returns: 64 hex digits")
    return key


def _explain(line: str) -> None:
    if flags.is_on("ESHKOL_EXPLAIN") and sys.stderr is not None:
        with suppress(OSError, ValueError):  # a closed stderr is no reason to stop
            print(f"eshkol cache: {line}", file=sys.stderr)


class _Build:
    """The turn of threads at building one key."""

    __slots__ = ("holders", "turn")

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self.holders = 0


class _MemoryEntry:
    __slots__ = ("payload", "touched")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.touched = time.monotonic()  # when its file was last marked as used


class _Memory:
    """Payloads by key, least recently used first, bounded in bytes. The caller holds the lock."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[str, _MemoryEntry] = OrderedDict()
        self.size = self.hits = self.evictions = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: str) -> _MemoryEntry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            self.hits += 1
        return entry

    def keep(self, key: str, payload: bytes) -> None:
        previous = self._entries.pop(key, None)
        if previous is not None:
            self.size -= len(previous.payload)
        if len(payload) > self._limit:
            return
        self._entries[key] = _MemoryEntry(payload)
        self.size += len(payload)
        while self.size > self._limit or len(self._entries) > MEMORY_ENTRIES:
            _, oldest = self._entries.popitem(last=False)
            self.size -= len(oldest.payload)
            self.evictions += 1

    def clear(self) -> None:
        self._entries.clear()
        self.size = 0


class _DiskEntry(NamedTuple):
    used: int  # mtime in ns; first, so that sorting puts the least recently used first
    path: str
    size: int


class _Disk:
    """Entries as files `ab/abcd….eskc` under a folder, which is made on the first write."""

    def __init__(self, root: Path, limit: int, durable: bool = True) -> None:
        self.root = root
        self._durable = durable
        self.evictions = 0
        self._limit = limit
        self._lock = threading.Lock()  # guards the counts
        self._scanned: int | None = None  # bytes in the folder at the last look
        self._written = 0  # bytes since then

    def read(self, key: str) -> bytes | None:
        """The payload, None if there is no entry; an entry that cannot be trusted is removed and raises."""
        path = self._path(key)
        try:
            payload = self._read_checked(path)
        except CorruptEntry:
            with suppress(OSError):
                os.unlink(path)
            raise
        except OSError:  # not there, evicted just now, or not ours to read
            return None
        self.touch(key)
        return payload

    def _read_checked(self, path: str) -> bytes:
        if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a pipe would wait for ever
            raise CorruptEntry("not a plain file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = file.read(HEADER.size)
            if len(header) < HEADER.size:
                raise CorruptEntry("the header is cut short")
            magic, version, digest, length = HEADER.unpack(header)
            if magic != MAGIC or version != VERSION:
                raise CorruptEntry("another format")
            if length != size - HEADER.size:
                raise CorruptEntry(f"{size - HEADER.size} bytes of payload where {length} belong")
            if size > self._limit:  # no such entry is written: this keeps reading bounded, too
                raise CorruptEntry(f"{size} bytes, over the bound of the cache")
            payload = file.read(length)
        if blake3(payload).digest() != digest:
            raise CorruptEntry("the payload does not have its hash")
        return payload

    def touch(self, key: str) -> None:
        """Mark an entry as used now. The kernel's own timestamps are too coarse to order uses by."""
        now = time.time_ns()
        with suppress(OSError):
            os.utime(self._path(key), ns=(now, now))

    def write(self, key: str, payload: bytes) -> None:
        """Put an entry in place of whatever is there, then keep to the bound."""
        size = HEADER.size + len(payload)
        path = self._path(key)
        if size > self._limit:
            with suppress(OSError):  # what it would have replaced must not come back
                os.unlink(path)
            return
        for attempt in range(1, WRITE_ATTEMPTS + 1):
            try:
                self._write_atomically(path, payload)
                break
            except (FileNotFoundError, FileExistsError):  # someone removed the folder while it was made
                if attempt == WRITE_ATTEMPTS:
                    raise
        with self._lock:  # one thread looks at a time, and counts only what it could see
            self._written += size
            if self._scanned is None:
                self._scanned = self._estimate()
            # Other processes write, too: looking again every 16th of the bound limits what they add unseen.
            if self._written > self._limit // 16 or self._scanned + self._written > self._limit:
                self._trim(spare=path)

    def _estimate(self) -> int:
        """About how many bytes are in a large folder, which takes long to look at; the bound if it may be near."""
        shards = list(self._shards())
        if len(shards) < MANY_SHARDS:
            return self._limit
        step = len(shards) // SAMPLED_SHARDS
        sample = shards[time.time_ns() % step :: step]
        size = sum(entry.size for shard in sample for entry in self._entries(shard)) * len(shards) // len(sample)
        return size if size < self._limit // 2 else self._limit

    def _write_atomically(self, path: str, payload: bytes) -> None:
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds code that will be run
            Path(folder).mkdir(mode=0o700, exist_ok=True)
        temporary = f"{path.removesuffix('.eskc')}.{os.getpid()}.{os.urandom(8).hex()}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(HEADER.pack(MAGIC, VERSION, blake3(payload).digest(), len(payload)))
                file.write(payload)
                file.flush()
                now = time.time_ns()
                os.utime(temporary, ns=(now, now))
                if self._durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        if self._durable:
            _sync_folder(folder)

    def _trim(self, spare: str) -> None:
        """Look at the folder; if it is over the bound, remove the least recently used down to 90 % of it."""
        entries = sorted(self.entries())
        total = sum(entry.size for entry in entries)
        goal = self._limit * 9 // 10 if total > self._limit else total
        for entry in entries:
            if total <= goal:
                break
            if entry.path == spare:  # it fits the bound alone, and was asked for last
                continue
            try:
                os.unlink(entry.path)
                self.evictions += 1
            except FileNotFoundError:  # another process was quicker
                pass
            except OSError:
                continue
            total -= entry.size
        self._scanned, self._written = total, 0
        self._remove_stale_temporaries()

    def entries(self) -> Iterator[_DiskEntry]:
        """Every entry in the folder now; none if there is no folder."""
        for shard in self._shards():
            yield from self._entries(shard)

    def _entries(self, shard: str) -> Iterator[_DiskEntry]:
        for file in _matching(shard, _ENTRY):
            with suppress(OSError):
                info = file.stat(follow_symlinks=False)
                yield _DiskEntry(info.st_mtime_ns, file.path, info.st_size)

    def clear(self) -> None:
        for entry in list(self.entries()):
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
        self._remove_stale_temporaries()
        for shard in list(self._shards()):
            with suppress(OSError):  # another process may be writing there
                os.rmdir(shard)
        with self._lock:
            self._scanned = None

    def _remove_stale_temporaries(self) -> None:
        oldest = time.time() - STALE_SECONDS
        for shard in self._shards():
            for file in _matching(shard, _TEMPORARY):
                with suppress(OSError):
                    if file.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(file.path)

    def _shards(self) -> Iterator[str]:
        with suppress(OSError), os.scandir(self.root) as folders:
            for folder in folders:
                if _SHARD.match(folder.name) and folder.is_dir(follow_symlinks=False):
                    yield folder.path

    def _path(self, key: str) -> str:
        return os.path.join(self.root, key[:2], f"{key}.eskc")


def _matching(folder: str, pattern: re.Pattern[str]) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as files:
        yield from (file for file in files if pattern.match(file.name))


def _sync_folder(folder: str) -> None:
    """Make a rename in the folder last through a power failure, where the system can."""
    with suppress(OSError):  # Windows cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
