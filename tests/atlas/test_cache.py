"""The program cache: keys, bounds, order of eviction, corruption, processes, threads, explanations.

Run as a script, this file is one of several processes that hammer a folder together (see `hammer`).
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eshkol
from eshkol.errors import CacheError
from eshkol.support import keys as keys_module
from eshkol.support import store as cache_module
from eshkol.support.flags import FlagError
from eshkol.support.keys import cache_key
from eshkol.support.store import (
    HEADER,
    MAGIC,
    MIB,
    VERSION,
    CacheStats,
    ProgramCache,
    default_directory,
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="about POSIX files")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch, tmp_path):
    """No setting and no folder of the person who runs the tests."""
    for name in ("ESHKOL_CACHE_DIR", "ESHKOL_CACHE_BYTES", "ESHKOL_EXPLAIN", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "cache"


def key_of(number: int) -> str:
    return cache_key({"number": str(number)})


def payload_of(number: int, size: int | None = None) -> bytes:
    """Bytes that only this number has; a few hundred to a few thousand of them unless told."""
    return blake3(str(number).encode()).digest(length=200 + number * 37 % 3000 if size is None else size)


def file_of(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.eskc"


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def entry(payload: bytes) -> bytes:
    """The format, written out a second time."""
    return b"ESKC\x01" + blake3(payload).digest() + len(payload).to_bytes(8, "little") + payload


def never() -> bytes:
    raise AssertionError("built what the cache should have had")


# Keys


def test_a_key_is_a_hash_that_the_order_of_parts_does_not_change():
    key = cache_key({"program": "abc", "backend": "cpu"})
    assert key == cache_key({"backend": "cpu", "program": "abc"})
    assert len(key) == 64
    assert int(key, 16)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": "bc"}, {"ab": "c"}),
        ({"a": "b"}, {"b": "a"}),
        ({"a": "b"}, {"a": b"b"}),
        ({"a": "", "b": ""}, {"ab": ""}),
        ({"a": "", "b": ""}, {"a": "b"}),
        ({}, {"": ""}),
        ({"a": "x", "b": "y"}, {"a": "y", "b": "x"}),
        ({"a": "x\0"}, {"a": "x"}),
        ({"a": "xsbsy"}, {"a": "x", "b": "y"}),
        ({"a": "ä"}, {"a": "a\u0308"}),
    ],
)
def test_different_parts_have_different_keys(one, other):
    assert cache_key(one) != cache_key(other)


few_letters = st.text("ab\0s", max_size=4)
small_parts = st.dictionaries(few_letters, few_letters | few_letters.map(str.encode), max_size=3)


@given(st.lists(small_parts, max_size=30))
def test_keys_are_unambiguous(many):
    distinct = {frozenset(parts.items()) for parts in many}
    assert len({cache_key(parts) for parts in many}) == len(distinct)


@given(few_letters, few_letters, few_letters)
def test_a_value_cannot_pass_for_a_value_and_another_part(value, name, other):
    two = {"": value, name + "x": other}
    for prefix in (lambda _: b"", lambda text: len(text).to_bytes(8, "little")):
        tail = b"".join(b"s" + prefix(text) + text.encode() for text in (name + "x", other))
        assert cache_key(two) != cache_key({"": (value.encode() + tail).decode()})


@given(
    st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.binary(max_size=9), min_size=1, max_size=5), st.data()
)
def test_any_change_of_a_part_changes_the_key(parts, data):
    name = data.draw(st.sampled_from(sorted(parts)))
    value = parts[name]
    longer = value + ("x" if isinstance(value, str) else b"x")
    without = {other: text for other, text in parts.items() if other != name}
    assert len({cache_key(parts), cache_key(parts | {name: longer}), cache_key(without)}) == 3


def test_text_that_is_not_unicode_makes_a_key():
    assert cache_key({"file": "\udcff"}) != cache_key({"file": "\udcfe"})


@pytest.mark.parametrize("value", [1, None, 1.5, ["x"], bytearray(b"x")])
def test_a_part_is_text_or_bytes(value):
    with pytest.raises(CacheError, match="made of text and bytes"):
        cache_key({"a": value})


@pytest.mark.parametrize("key", ["", "abc", "../../etc/passwd", "A" * 64, "g" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_keys_are_keys(folder, key):
    cache = ProgramCache(folder)
    with pytest.raises(CacheError, match="not a cache key"):
        cache.get(key)
    with pytest.raises(CacheError, match="not a cache key"):
        cache.put(key, b"")


# Building and finding


def test_a_payload_is_built_once(folder):
    cache, built = ProgramCache(folder), []
    for _ in range(3):
        assert cache.get_or_build({"a": "1"}, lambda: built.append(1) or b"code") == b"code"
    assert built == [1]
    stats = cache.stats()
    assert (stats.hits, stats.memory_hits, stats.disk_hits, stats.misses) == (2, 2, 0, 1)


def test_entries_outlive_the_object(folder):
    ProgramCache(folder).get_or_build({"a": "1"}, lambda: b"code")
    again = ProgramCache(folder)
    assert again.get_or_build({"a": "1"}, never) == b"code"
    assert again.get(cache_key({"a": "1"})) == b"code"
    stats = again.stats()
    assert (stats.disk_hits, stats.memory_hits, stats.misses) == (1, 1, 0)


def test_get_and_put(folder):
    cache = ProgramCache(folder)
    assert cache.get(key_of(1)) is None
    cache.put(key_of(1), b"one")
    cache.put(key_of(1), b"two")
    assert cache.get(key_of(1)) == b"two"
    assert ProgramCache(folder).get(key_of(1)) == b"two"
    assert cache.stats().memory_bytes == 3


def test_an_empty_payload_is_a_payload(folder):
    assert ProgramCache(folder).get_or_build({"a": "1"}, lambda: b"") == b""
    assert ProgramCache(folder).get_or_build({"a": "1"}, never) == b""
    assert ProgramCache(folder, memory_bytes=0).get_or_build({"a": "1"}, never) == b""


def test_stats_tell_what_is_there_and_what_happened(folder):
    cache = ProgramCache(folder)
    assert cache.stats() == CacheStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    cache.put(key_of(1), bytes(100))
    cache.put(key_of(2), bytes(10))
    cache.get(key_of(1))
    cache.get(key_of(3))
    assert cache.stats() == CacheStats(
        memory_entries=2,
        memory_bytes=110,
        disk_entries=2,
        disk_bytes=110 + 2 * HEADER.size,
        memory_hits=1,
        disk_hits=0,
        misses=1,
        memory_evictions=0,
        disk_evictions=0,
        corrupt=0,
    )
    with pytest.raises(AttributeError):
        cache.stats().misses = 0


def test_a_build_that_fails_leaves_nothing(folder):
    cache = ProgramCache(folder)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            cache.get_or_build({"a": "1"}, lambda: 1 // 0)
    assert cache.get_or_build({"a": "1"}, lambda: b"code") == b"code"
    assert not cache._builds


@pytest.mark.parametrize("payload", ["text", bytearray(b"x"), None, 5])
def test_a_payload_is_bytes(folder, payload):
    cache = ProgramCache(folder)
    with pytest.raises(CacheError, match=f"bytes, not {type(payload).__name__}"):
        cache.get_or_build({"a": "1"}, lambda: payload)
    assert cache.get(cache_key({"a": "1"})) is None


def test_a_build_may_use_the_cache(folder):
    cache = ProgramCache(folder)
    inner = lambda: cache.get_or_build({"stage": "ir"}, lambda: b"ir", label="ir")
    assert cache.get_or_build({"stage": "object"}, lambda: inner() + b" lowered", label="object") == b"ir lowered"
    assert cache.get(cache_key({"stage": "ir"})) == b"ir"


def test_clear_drops_all_entries_and_nothing_else(folder):
    cache = ProgramCache(folder)
    cache.put(key_of(1), b"one")
    cache.put(key_of(2), b"two")
    ours, theirs = folder / "notes.txt", file_of(folder, key_of(1)).parent / "README"
    ours.write_text("mine")
    theirs.write_text("mine")
    cache.clear()
    assert cache.get(key_of(1)) is None
    assert files_in(folder) == sorted([ours, theirs])
    assert not file_of(folder, key_of(2)).parent.exists(), "empty folders go, too"
    cache.put(key_of(1), b"one")
    assert ProgramCache(folder).get(key_of(1)) == b"one"


def test_clear_says_when_it_cannot(folder, monkeypatch):
    cache = ProgramCache(folder)
    cache.put(key_of(1), b"one")

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(CacheError, match=r"cannot clear the program cache in .*: Permission denied"):
        cache.clear()


# The bound in memory


def test_memory_evicts_the_least_recently_used():
    cache = ProgramCache(memory_bytes=30, disk_bytes=0)
    for number in range(3):
        cache.put(key_of(number), bytes(10))
    assert cache.get(key_of(0)) is not None
    cache.put(key_of(3), bytes(10))
    assert [cache.get(key_of(number)) is not None for number in range(4)] == [True, False, True, True]
    assert cache.stats().evictions == 1


def test_an_entry_larger_than_the_memory_is_not_kept_and_evicts_nothing():
    cache = ProgramCache(memory_bytes=30, disk_bytes=0)
    cache.put(key_of(1), bytes(30))
    cache.put(key_of(2), bytes(31))
    assert cache.get(key_of(2)) is None
    assert cache.get(key_of(1)) == bytes(30)
    cache.put(key_of(1), bytes(31))
    assert cache.get(key_of(1)) is None, "the smaller payload it replaced must not come back"
    assert cache.stats().memory_bytes == 0


def test_the_number_of_empty_entries_is_bounded(monkeypatch):
    monkeypatch.setattr(cache_module, "MEMORY_ENTRIES", 5)
    cache = ProgramCache(disk_bytes=0)
    for number in range(9):
        cache.put(key_of(number), b"")
    assert cache.stats().memory_entries == 5


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 60),
    st.lists(st.tuples(st.sampled_from(["get", "put"]), st.integers(0, 6), st.integers(0, 40)), max_size=40),
)
def test_memory_behaves_as_the_model(limit, steps):
    cache, model = ProgramCache(memory_bytes=limit, disk_bytes=0), OrderedDict()
    for action, number, size in steps:
        if action == "get":
            expected = model.get(number)
            if expected is not None:
                model.move_to_end(number)
            assert cache.get(key_of(number)) == expected
        else:
            payload = payload_of(number, size)
            cache.put(key_of(number), payload)
            model.pop(number, None)
            if size <= limit:
                model[number] = payload
            while sum(map(len, model.values())) > limit:
                model.popitem(last=False)
        stats = cache.stats()
        assert stats.memory_bytes == sum(map(len, model.values())) <= limit
        assert stats.memory_entries == len(model)


# The bound on disk


def on_disk(folder: Path, numbers: range) -> list[int]:
    return [number for number in numbers if file_of(folder, key_of(number)).exists()]


def test_the_disk_evicts_the_least_recently_used_down_to_nine_tenths(folder):
    size = 100 - HEADER.size
    cache = ProgramCache(folder, memory_bytes=0, disk_bytes=1000)
    for number in range(10):
        cache.put(key_of(number), payload_of(number, size))
    assert on_disk(folder, range(10)) == list(range(10)), "exactly at the bound nothing goes"
    assert cache.get(key_of(0)) == payload_of(0, size), "a hit marks the file as used"
    assert ProgramCache(folder).get(key_of(2)) == payload_of(2, size), "whoever has it"
    cache.put(key_of(10), payload_of(10, size))
    assert on_disk(folder, range(11)) == [0, 2, *range(4, 11)]
    stats = cache.stats()
    assert (stats.disk_bytes, stats.disk_evictions) == (900, 2)


@posix_only
def test_the_order_of_use_is_finer_than_the_clock_of_the_file_system(folder):
    cache = ProgramCache(folder, memory_bytes=0)
    for number in range(20):
        cache.put(key_of(number), b"x")  # an empty payload would fit the memory, too
        cache.get(key_of(0))
    used = [file_of(folder, key_of(number)).stat().st_mtime_ns for number in [*range(1, 20), 0]]
    assert used == sorted(set(used))


def test_a_hit_in_memory_counts_as_use_on_disk(folder, monkeypatch):
    monkeypatch.setattr(cache_module, "TOUCH_SECONDS", -1)
    cache = ProgramCache(folder, disk_bytes=3 * (HEADER.size + 10))
    for number in range(3):
        cache.put(key_of(number), payload_of(number, 10))
    cache.get(key_of(0))
    cache.put(key_of(3), payload_of(3, 10))
    assert on_disk(folder, range(4)) == [0, 3]


def test_memory_hits_leave_the_disk_alone_most_of_the_time(folder, monkeypatch):
    cache = ProgramCache(folder)
    cache.put(key_of(1), b"one")
    monkeypatch.setattr(os, "utime", lambda *_, **__: pytest.fail("touched the disk"))
    assert cache.get(key_of(1)) == b"one"


def test_an_entry_larger_than_the_disk_bound_is_not_written(folder):
    cache = ProgramCache(folder, disk_bytes=HEADER.size + 100)
    cache.put(key_of(1), bytes(101))
    assert cache.get(key_of(1)) == bytes(101), "memory has it"
    assert files_in(folder) == []
    cache.put(key_of(2), bytes(100))
    assert len(files_in(folder)) == 1
    cache.put(key_of(2), bytes(101))
    assert files_in(folder) == [], "the smaller payload it replaced must not come back"


def test_an_entry_as_large_as_the_disk_bound_stays_alone(folder):
    cache = ProgramCache(folder, memory_bytes=0, disk_bytes=HEADER.size + 100)
    for number in range(5):
        cache.put(key_of(number), payload_of(number, 100))
        assert cache.get(key_of(number)) == payload_of(number, 100)
        assert on_disk(folder, range(5)) == [number]


def test_a_lower_bound_takes_effect_on_what_is_there(folder):
    large = ProgramCache(folder)
    for number in range(20):
        large.put(key_of(number), payload_of(number, 1000))
    small = ProgramCache(folder, disk_bytes=5000)
    small.put(key_of(99), b"")
    assert small.stats().disk_bytes <= 4500


def test_what_other_processes_add_is_seen_before_long(folder):
    cache = ProgramCache(folder, memory_bytes=0, disk_bytes=16_000)
    cache.put(key_of(0), b"")
    for number in range(1, 40):  # behind the cache's back
        path = file_of(folder, key_of(number))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(entry(payload_of(number, 955)))
    for number in range(100, 103):
        cache.put(key_of(number), payload_of(number, 455))
    assert cache.stats().disk_bytes <= 16_000


@settings(max_examples=25, deadline=None)
@given(st.integers(200, 3000), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 900)), max_size=25))
def test_the_disk_never_exceeds_its_bound(limit, steps):
    with tempfile.TemporaryDirectory() as name:
        cache = ProgramCache(Path(name), memory_bytes=0, disk_bytes=limit)
        for number, size in steps:
            cache.put(key_of(number), payload_of(number, size))
            fits = HEADER.size + size <= limit
            assert cache.get(key_of(number)) == (payload_of(number, size) if fits else None)
            assert sum(path.stat().st_size for path in files_in(Path(name))) <= limit


def test_a_large_folder_is_judged_by_a_sample_unless_the_bound_may_be_near(folder, monkeypatch):
    first = ProgramCache(folder, disk_bytes=1 << 30, durable=False)
    for number in range(2000):  # every one of the 256 folders has some
        first.put(key_of(number), bytes(100))
    held = 2000 * (HEADER.size + 100)
    looks = []
    trim = cache_module._Disk._trim
    monkeypatch.setattr(cache_module._Disk, "_trim", lambda disk, spare: (looks.append(1), trim(disk, spare)))
    for limit, expected in ((20 * held, 0), (held * 11 // 10, 1), (held // 2, 1)):
        looks.clear()
        ProgramCache(folder, disk_bytes=limit, durable=False).put(key_of(5000), b"new")
        assert len(looks) == expected, limit
    assert sum(path.stat().st_size for path in files_in(folder)) <= held // 2


def test_entries_that_are_not_durable_are_not_waited_for(folder, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: pytest.fail("waits"))
    cache = ProgramCache(folder, durable=False)
    cache.put(key_of(1), b"x")
    assert ProgramCache(folder).get(key_of(1)) == b"x"


@pytest.mark.parametrize("bounds", [{"memory_bytes": -1}, {"disk_bytes": -1}])
def test_bounds_are_not_negative(folder, bounds):
    with pytest.raises(CacheError, match="0 or more"):
        ProgramCache(folder, **bounds)


def test_with_both_bounds_zero_everything_is_built_again(folder):
    cache, built = ProgramCache(folder, memory_bytes=0, disk_bytes=0), []
    for _ in range(3):
        cache.get_or_build({"a": "1"}, lambda: built.append(1) or b"x")
    assert len(built) == 3
    assert not folder.exists()
    assert cache.directory is None


# Files


def test_the_format_of_an_entry(folder):
    ProgramCache(folder).put(key_of(1), b"payload")
    path = file_of(folder, key_of(1))
    assert files_in(folder) == [path]
    assert path.read_bytes() == entry(b"payload")
    assert (MAGIC, VERSION, HEADER.size) == (b"ESKC", 1, 45)


def test_every_entry_has_a_folder_of_its_first_two_digits(folder):
    cache = ProgramCache(folder)
    for number in range(20):
        cache.put(key_of(number), b"")
    assert {path.parent.name for path in files_in(folder)} == {key_of(number)[:2] for number in range(20)}


def test_nothing_is_touched_before_the_first_use(folder):
    cache = ProgramCache(folder)
    assert cache.directory == folder
    assert not folder.exists()
    assert cache.get(key_of(1)) is None
    assert cache.stats().disk_entries == 0
    cache.clear()
    assert not folder.exists(), "looking does not make the folder either"
    cache.put(key_of(1), b"")
    assert folder.is_dir()


@posix_only
def test_the_folder_is_private(folder):
    previous = os.umask(0)
    try:
        ProgramCache(folder).put(key_of(1), b"")
    finally:
        os.umask(previous)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_file_is_on_disk_before_it_has_its_name(folder, monkeypatch):
    steps = []

    def record(name, function):
        def recorded(*arguments, **options):
            steps.append(name)
            return function(*arguments, **options)

        monkeypatch.setattr(os, name, recorded)

    record("fsync", os.fsync)
    record("replace", os.replace)
    ProgramCache(folder).put(key_of(1), b"one")
    assert steps == (["fsync", "replace", "fsync"] if os.name == "posix" else ["fsync", "replace"])


def test_stale_temporary_files_are_removed(folder):
    cache = ProgramCache(folder)
    shard = file_of(folder, key_of(1)).parent
    shard.mkdir(parents=True)
    stale, fresh, foreign = (
        shard / f"{key_of(1)}.123.{'0' * 16}.tmp",
        shard / f"{key_of(1)}.123.{'1' * 16}.tmp",
        shard / "notes.tmp",
    )
    for path in (stale, fresh, foreign):
        path.write_bytes(b"half an ent")
    for path in (stale, foreign):
        os.utime(path, (time.time() - 3700, time.time() - 3700))
    cache.put(key_of(2), b"")
    assert not stale.exists()
    assert fresh.exists(), "another process may be writing it"
    assert foreign.exists(), "not ours"


def test_a_folder_removed_underneath_is_made_again(folder):
    cache = ProgramCache(folder, memory_bytes=0)
    cache.put(key_of(1), b"one")
    shutil.rmtree(folder)
    assert cache.get(key_of(1)) is None
    assert cache.stats().disk_entries == 0
    cache.put(key_of(1), b"one")
    assert cache.get(key_of(1)) == b"one"


def test_a_folder_removed_while_writing_is_made_again(folder, monkeypatch):
    cache, replace, removals = ProgramCache(folder, memory_bytes=0), os.replace, iter([True, True])

    def remove_first(source, target):
        if next(removals, False):
            shutil.rmtree(folder)
        return replace(source, target)

    monkeypatch.setattr(os, "replace", remove_first)
    cache.put(key_of(1), b"one")
    assert cache.get(key_of(1)) == b"one"


def test_entries_that_vanish_while_evicting_are_no_trouble(folder, monkeypatch):
    cache, unlink = ProgramCache(folder, memory_bytes=0, disk_bytes=1000), os.unlink

    def beaten(path):
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", beaten)
    for number in range(30):
        cache.put(key_of(number), payload_of(number, 55))
    assert cache.stats().disk_bytes <= 1000
    assert cache.stats().disk_evictions == 0, "the others did it"


# Corruption


def assert_dropped_and_rebuilt(folder: Path, content: bytes, payload: bytes = b"the right payload") -> None:
    """A file with this content is never returned, is removed when met, and is replaced by a build."""
    parts = {"number": "1"}
    path = file_of(folder, key_of(1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    cache = ProgramCache(folder)
    assert cache.get(key_of(1)) is None
    assert not path.exists()
    assert cache.stats().corrupt == 1
    path.write_bytes(content)
    assert cache.get_or_build(parts, lambda: payload) == payload
    assert path.read_bytes() == entry(payload)
    assert ProgramCache(folder).get_or_build(parts, never) == payload


@pytest.mark.parametrize("cut", [*range(46), -1, -10])
def test_a_truncated_entry_is_dropped(folder, cut):
    assert_dropped_and_rebuilt(folder, entry(b"the right payload")[:cut])


GOOD = entry(b"the right payload")


@pytest.mark.parametrize(
    ("place", "field"), [(0, "magic"), (4, "version"), (5, "hash"), (37, "length"), (45, "payload"), (61, "end")]
)
def test_a_flipped_byte_in_any_field_is_dropped(folder, place, field):
    assert_dropped_and_rebuilt(folder, GOOD[:place] + bytes([GOOD[place] ^ 0x10]) + GOOD[place + 1 :])


def test_every_flipped_bit_is_noticed(folder):
    path = file_of(folder, key_of(1))
    path.parent.mkdir(parents=True)
    cache = ProgramCache(folder, memory_bytes=0)
    for place in range(len(GOOD)):
        for bit in range(8):
            path.write_bytes(GOOD[:place] + bytes([GOOD[place] ^ 1 << bit]) + GOOD[place + 1 :])
            assert cache.get(key_of(1)) is None
    assert cache.stats().corrupt == 8 * len(GOOD)
    path.write_bytes(GOOD)
    assert cache.get(key_of(1)) == b"the right payload"


@pytest.mark.parametrize(
    "content",
    [GOOD + b"x", GOOD * 2, b"\x7fELF" + GOOD[4:], b"ESKC\x02" + GOOD[5:], bytes(len(GOOD)), b"ESKC"],
    ids=["longer", "twice", "foreign", "of the future", "zeros", "magic only"],
)
def test_a_foreign_entry_is_dropped(folder, content):
    assert_dropped_and_rebuilt(folder, content)


mutations = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=60).map(lambda tail: GOOD[:45] + tail),
    st.binary(max_size=60).map(lambda tail: b"ESKC\x01" + tail),
    st.tuples(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)), st.binary(max_size=20)).map(
        lambda cut: GOOD[: cut[0]] + cut[2] + GOOD[cut[1] :]
    ),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutations)
def test_random_garbage_is_never_returned(folder, content):
    path = file_of(folder, key_of(1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    found = ProgramCache(folder).get(key_of(1))
    if content == GOOD:
        assert found == b"the right payload"
    elif found is not None:  # only a well-formed entry comes back, and as itself
        assert content == entry(found)
    else:
        assert not path.exists()


@pytest.mark.parametrize("length", [1 << 30, 1 << 62, (1 << 64) - 1])
def test_a_length_that_lies_allocates_nothing(folder, length):
    path = file_of(folder, key_of(1))
    path.parent.mkdir(parents=True)
    path.write_bytes(HEADER.pack(MAGIC, VERSION, bytes(32), length) + bytes(100))
    tracemalloc.start()
    assert ProgramCache(folder).get(key_of(1)) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB


@posix_only
def test_a_file_larger_than_the_bound_is_not_read(folder):
    path = file_of(folder, key_of(1))
    path.parent.mkdir(parents=True)
    length = 1 << 34
    with path.open("wb") as file:
        file.write(HEADER.pack(MAGIC, VERSION, bytes(32), length))
        file.truncate(HEADER.size + length)  # a hole: it takes no space
    tracemalloc.start()
    assert ProgramCache(folder).get(key_of(1)) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB
    assert not path.exists()


@posix_only
def test_what_is_no_plain_file_is_dropped(folder, tmp_path):
    path = file_of(folder, key_of(1))
    path.parent.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(entry(b"planted"))
    for make in (lambda: os.mkfifo(path), lambda: path.symlink_to(elsewhere)):
        make()
        cache = ProgramCache(folder)
        assert cache.get_or_build({"number": "1"}, lambda: b"built") == b"built"
        assert path.read_bytes() == entry(b"built")
        path.unlink()
    assert elsewhere.read_bytes() == entry(b"planted")


def test_a_folder_in_the_place_of_an_entry_costs_a_warning(folder):
    file_of(folder, key_of(1)).mkdir(parents=True)
    cache = ProgramCache(folder)
    with pytest.warns(RuntimeWarning, match="in memory only"):
        assert cache.get_or_build({"number": "1"}, lambda: b"built") == b"built"
    assert cache.get(key_of(1)) == b"built"
    assert files_in(folder) == [], "no temporary file is left"


# A folder that cannot be used


def assert_works_in_memory(cache: ProgramCache, match: str) -> None:
    with pytest.warns(RuntimeWarning, match=match) as caught:
        assert cache.get_or_build({"number": "1"}, lambda: b"one") == b"one"
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it says so once
        assert cache.get_or_build({"number": "1"}, never) == b"one"
        assert cache.get_or_build({"number": "2"}, lambda: b"two") == b"two"
        cache.put(key_of(3), b"three")
    assert cache.get(key_of(3)) == b"three"
    assert cache.stats().memory_entries == 3


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "file").write_text("")
    assert_works_in_memory(ProgramCache(tmp_path / "file"), "cannot write to the program cache")
    assert_works_in_memory(ProgramCache(tmp_path / "file" / "below"), "compiled programs are kept in memory only")
    assert (tmp_path / "file").read_text() == ""


@contextmanager
def unprivileged() -> Iterator[None]:
    """Without root's right to write anywhere, so that permissions mean something."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@posix_only
def test_a_read_only_folder_serves_what_it_has():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ProgramCache(folder).put(key_of(9), b"nine")
        for path in (*folder.rglob("*"), folder):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            with unprivileged():
                cache = ProgramCache(folder)
                assert_works_in_memory(cache, "cannot write to the program cache in .*: Permission denied")
                assert cache.get(key_of(9)) == b"nine", "reading is still possible"
                assert len(files_in(folder)) == 1
        finally:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755)


@posix_only
def test_a_folder_that_cannot_even_be_entered(tmp_path):
    tmp_path.chmod(0o700)
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o000)
    with unprivileged():
        assert_works_in_memory(ProgramCache(hidden), "Permission denied")
    hidden.chmod(0o700)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_no_half_entry(folder, monkeypatch, failing):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, full)
        assert_works_in_memory(ProgramCache(folder), "No space left on device")
        assert files_in(folder) == []
    cache = ProgramCache(folder)
    cache.put(key_of(1), b"one")
    assert ProgramCache(folder).get(key_of(1)) == b"one", "and the folder is fine when there is space again"


def test_an_interrupted_write_leaves_nothing(folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ProgramCache(folder).put(key_of(1), b"one")
    assert files_in(folder) == []


def test_without_a_home_the_cache_works_in_memory(monkeypatch):
    def homeless(_cls=None):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(CacheError, match="no folder for the program cache") as caught:
        default_directory()
    assert "ESHKOL_CACHE_DIR" in str(caught.value)
    cache = ProgramCache()
    assert cache.directory is None
    assert_works_in_memory(cache, "no folder for the program cache")


# The environment


def test_the_folder_comes_from_the_environment(monkeypatch, tmp_path):
    assert ProgramCache().directory == default_directory()
    assert ProgramCache(tmp_path).directory == tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory() == tmp_path / "xdg" / "eshkol"
    monkeypatch.setenv("ESHKOL_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_directory() == tmp_path / "chosen"
    assert ProgramCache().directory == tmp_path / "chosen"
    monkeypatch.setenv("ESHKOL_CACHE_DIR", "~/mine")
    assert default_directory() == Path.home() / "mine"
    monkeypatch.setenv("ESHKOL_CACHE_DIR", "here")
    assert default_directory() == Path.cwd() / "here"
    monkeypatch.setenv("ESHKOL_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_directory() != Path("relative/eshkol"), "the XDG specification has it ignored"


@pytest.mark.parametrize(
    ("platform", "local", "expected"),
    [
        ("linux", None, ".cache/eshkol"),
        ("freebsd14", None, ".cache/eshkol"),
        ("darwin", None, "Library/Caches/eshkol"),
        ("win32", "AppHere", "AppHere/eshkol/Cache"),
        ("win32", None, "AppData/Local/eshkol/Cache"),
    ],
)
def test_the_folder_of_each_platform(monkeypatch, platform, local, expected):
    monkeypatch.setattr(sys, "platform", platform)
    if local is not None:
        monkeypatch.setenv("LOCALAPPDATA", str(Path.home() / local))
    assert default_directory() == Path.home() / expected


def test_the_bound_comes_from_the_environment(monkeypatch, folder):
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", "300")
    cache = ProgramCache(folder, disk_bytes=MIB)
    for number in range(10):
        cache.put(key_of(number), bytes(50))
    assert cache.stats().disk_bytes <= 300
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", "0")
    assert ProgramCache(folder).directory is None
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", " ")
    assert ProgramCache(folder).directory == folder


@pytest.mark.parametrize("text", ["lots", "-1", "1e9", "9" * 30])
def test_a_bad_bound_in_the_environment_is_named(monkeypatch, folder, text):
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", text)
    with pytest.raises(FlagError, match="ESHKOL_CACHE_BYTES is") as caught:
        ProgramCache(folder)
    assert text in str(caught.value)
    assert "512M" in str(caught.value)


# Explanations


@pytest.fixture
def explain(monkeypatch, capsys):
    """A function that tells what was printed since it was last asked."""
    monkeypatch.setenv("ESHKOL_EXPLAIN", "1")
    return lambda: capsys.readouterr().err


BASE = {"program": "p", "backend": "cpu", "target": "x86"}


def test_a_first_build_is_explained(folder, explain):
    cache = ProgramCache(folder)
    cache.get_or_build(BASE, lambda: b"", label="softmax")
    assert explain() == "eshkol cache: building 'softmax': first build of this label in this process\n"
    cache.get_or_build(BASE, never, label="softmax")
    ProgramCache(folder).get_or_build(BASE, never, label="softmax")
    assert explain() == "", "a hit needs no explanation"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (BASE | {"program": "q"}, "changed program"),
        (BASE | {"program": b"p"}, "changed program"),
        (BASE | {"program": "q", "target": "arm"}, "changed program, target"),
        (BASE | {"flags": "-O3"}, "added flags"),
        ({"program": "p", "backend": "cpu"}, "removed target"),
        ({"program": "q", "backend": "cpu", "opt": "3"}, "changed program; added opt; removed target"),
    ],
)
def test_a_changed_part_is_named(folder, explain, parts, reason):
    cache = ProgramCache(folder)
    cache.get_or_build(BASE, lambda: b"", label="softmax")
    cache.get_or_build({"other": "label"}, lambda: b"", label="relu")
    explain()
    cache.get_or_build(parts, lambda: b"", label="softmax")
    assert explain() == f"eshkol cache: building 'softmax': since its last build: {reason}\n"


def test_a_part_that_changed_since_a_load_from_disk_is_named(folder, explain):
    ProgramCache(folder).get_or_build(BASE, lambda: b"", label="softmax")
    cache = ProgramCache(folder)
    cache.get_or_build(BASE, never, label="softmax")
    explain()
    cache.get_or_build(BASE | {"target": "arm"}, lambda: b"", label="softmax")
    assert "since its last build: changed target" in explain()


def test_an_evicted_entry_is_explained(explain):
    cache = ProgramCache(memory_bytes=10, disk_bytes=0)
    for program in "pqp":
        cache.get_or_build(BASE | {"program": program}, lambda: bytes(8), label="softmax")
    assert explain().splitlines()[1:] == [
        "eshkol cache: building 'softmax': since its last build: changed program",
        "eshkol cache: building 'softmax': it was built before, and has been evicted or was too large to keep",
    ]


def test_a_corrupt_entry_is_explained(folder, explain):
    ProgramCache(folder).get_or_build(BASE, lambda: b"code", label="softmax")
    path = file_of(folder, cache_key(BASE))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    explain()
    ProgramCache(folder).get_or_build(BASE, lambda: b"code", label="softmax")
    reason = "its entry on disk was corrupt (the payload does not have its hash)"
    assert explain() == f"eshkol cache: building 'softmax': {reason}\n"


@pytest.mark.parametrize("value", ["", "0"])
def test_nothing_is_explained_unasked(folder, monkeypatch, capsys, value):
    monkeypatch.setenv("ESHKOL_EXPLAIN", value)
    ProgramCache(folder).get_or_build(BASE, lambda: b"")
    assert capsys.readouterr().err == ""


def test_an_explanation_is_one_line_whatever_the_label(folder, explain):
    ProgramCache(folder).get_or_build(BASE, lambda: b"", label="two\nlines")
    assert explain().count("\n") == 1


def test_no_stderr_is_no_trouble(folder, monkeypatch, capsys):
    monkeypatch.setenv("ESHKOL_EXPLAIN", "1")
    monkeypatch.setattr(sys, "stderr", None)
    assert ProgramCache(folder).get_or_build(BASE, lambda: b"code") == b"code"
    assert capsys.readouterr().out == ""


def test_what_is_remembered_for_explanations_is_bounded(monkeypatch):
    monkeypatch.setattr(keys_module, "REMEMBERED_LABELS", 10)
    monkeypatch.setattr(keys_module, "REMEMBERED_KEYS", 20)
    cache = ProgramCache(disk_bytes=0)
    for number in range(100):
        cache.get_or_build({"number": str(number)}, lambda: b"", label=str(number))
    assert len(cache._history._parts) == 10
    assert len(cache._history._keys) == 20


# Threads


def in_threads(count: int, work) -> None:
    """Run `work(number)` in threads at once and raise what any of them raised."""
    errors, gate = [], threading.Barrier(count)

    def run(number):
        try:
            gate.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_that_want_one_key_share_one_build(folder):
    cache, built = ProgramCache(folder), Counter()

    def build(number):
        built[number] += 1
        time.sleep(0.002)
        return payload_of(number)

    def work(_):
        for number in range(20):
            parts = {"number": str(number)}
            assert cache.get_or_build(parts, lambda number=number: build(number)) == payload_of(number)

    in_threads(8, work)
    assert built == dict.fromkeys(range(20), 1)
    assert not cache._builds
    stats = cache.stats()
    assert (stats.misses, stats.hits) == (20, 8 * 20 - 20)


def test_when_one_threads_build_fails_the_next_builds(folder):
    cache, attempts = ProgramCache(folder), []

    def build():
        attempts.append(1)
        time.sleep(0.01)
        if len(attempts) == 1:
            raise ValueError("first")
        return b"code"

    outcomes = []

    def work(_):
        try:
            outcomes.append(cache.get_or_build({"a": "1"}, build))
        except ValueError:
            outcomes.append("failed")

    in_threads(4, work)
    assert sorted(map(str, outcomes)) == sorted(["failed", *[str(b"code")] * 3])
    assert len(attempts) == 2


def test_threads_under_eviction_get_the_right_payloads(folder):
    cache = ProgramCache(folder, memory_bytes=4000, disk_bytes=12_000)

    def work(seed):
        choose = random.Random(seed)
        for _ in range(60):
            number = choose.randrange(25)
            parts = {"number": str(number)}
            assert cache.get_or_build(parts, lambda number=number: payload_of(number)) == payload_of(number)
            if choose.random() < 0.02:
                cache.clear()

    in_threads(6, work)
    stats = cache.stats()
    assert stats.memory_bytes <= 4000
    assert stats.disk_bytes <= 12_000
    assert stats.corrupt == 0


def test_reading_while_others_evict(folder):
    """Every read gives the right payload or nothing, while a writer keeps pushing entries out."""
    reading, found = threading.Event(), Counter()

    def work(number):
        cache = ProgramCache(folder, memory_bytes=0, disk_bytes=8000)
        if number == 0:
            for written in range(100):
                cache.put(key_of(written % 20), payload_of(written % 20))
            reading.set()
            assert cache.stats().disk_evictions > 20
            return
        choose = random.Random(number)
        while not reading.is_set():
            wanted = choose.randrange(20)
            payload = cache.get(key_of(wanted))
            assert payload in (None, payload_of(wanted))
            found[payload is not None] += 1
        assert cache.stats().corrupt == 0

    in_threads(3, work)
    assert found[True]
    assert found[False]


# Processes


def hammer(folder: Path, seed: int, first: int, count: int, rounds: int, disk_bytes: int) -> CacheStats:
    """What each process does: ask for keys of a range in its own order, always from disk, and check them."""
    warnings.simplefilter("error")  # a write that failed would only warn
    cache, choose = ProgramCache(folder, memory_bytes=0, disk_bytes=disk_bytes), random.Random(seed)
    for _ in range(rounds):
        number = first + choose.randrange(count)
        payload = cache.get_or_build({"number": str(number)}, lambda number=number: payload_of(number))
        if payload != payload_of(number):
            raise AssertionError(f"a wrong payload for {number}")
    return cache.stats()


def hammer_together(
    folder: Path, firsts: list[int], count: int, rounds: int, disk_bytes: int = 64 * MIB, meanwhile=lambda: None
) -> list[CacheStats]:
    """Run one process per entry of `firsts` on one folder at once."""
    environment = os.environ | {"PYTHONPATH": str(Path(eshkol.__file__).parents[1])}
    workers = [
        subprocess.Popen(
            [sys.executable, __file__, str(folder), *map(str, (seed, first, count, rounds, disk_bytes))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for seed, first in enumerate(firsts)
    ]
    while any(worker.poll() is None for worker in workers):
        meanwhile()
        time.sleep(0.001)
    results = []
    for worker in workers:
        out, err = worker.communicate()
        assert worker.returncode == 0, err
        results.append(CacheStats(**json.loads(out)))
    return results


def assert_whole(folder: Path) -> None:
    """Every file is a good entry; no temporary file is left."""
    for path in files_in(folder):
        assert path.suffix == ".eskc"
        content = path.read_bytes()
        assert content == entry(content[HEADER.size :])


def test_processes_on_the_same_keys(folder):
    results = hammer_together(folder, [0, 0, 0, 0], count=40, rounds=200)
    assert_whole(folder)
    assert len(files_in(folder)) == 40
    assert all(result.corrupt == 0 for result in results)
    assert 40 <= sum(result.misses for result in results) <= 4 * 40
    assert ProgramCache(folder).get_or_build({"number": "7"}, never) == payload_of(7)


def test_processes_on_overlapping_keys_with_eviction_and_damage(folder):
    """Four processes over a bound far too small, while a fifth (this one) damages entries in place."""
    choose = random.Random(5)

    def damage():
        paths = list(folder.rglob("*.eskc")) if folder.exists() else []
        if paths:
            try:
                with choose.choice(paths).open("r+b") as file:
                    file.seek(choose.randrange(60))
                    file.write(b"?")
            except OSError:  # it was evicted just now
                pass

    bound = 30_000
    results = hammer_together(folder, [0, 15, 30, 0], count=30, rounds=120, disk_bytes=bound, meanwhile=damage)
    assert sum(result.disk_evictions for result in results) > 0
    assert not list(folder.rglob("*.tmp"))
    in_flight = 4 * (bound // 16 + 3300)  # what each may add between two looks at the folder
    assert sum(path.stat().st_size for path in files_in(folder)) <= bound + in_flight
    cache = ProgramCache(folder, disk_bytes=bound)
    for number in range(60):
        parts = {"number": str(number)}
        assert cache.get_or_build(parts, lambda number=number: payload_of(number)) == payload_of(number)
    assert cache.stats().disk_bytes <= bound


if __name__ == "__main__":
    stats = hammer(Path(sys.argv[1]), *map(int, sys.argv[2:]))
    print(json.dumps({name: getattr(stats, name) for name in CacheStats._fields}))
