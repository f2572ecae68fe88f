"""Pools: streaming against a model, flat addressing, limits, and a gigabyte through four kilobytes."""

from __future__ import annotations

import array
import sys
import tracemalloc
from collections import deque

import ml_dtypes
import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eshkol.atlas import pool as pool_module
from eshkol.atlas.pool import CAPACITY_LIMIT, Pool
from eshkol.errors import AllocationFailed, InvalidBuffer


def stored(pool: Pool) -> bytes:
    return pool.read(0, len(pool))


def test_a_new_pool_is_empty_and_zero():
    pool = Pool(8)
    assert (len(pool), pool.capacity, pool.head, pool.tail) == (0, 8, 0, 0)
    assert pool.read(0, 0) == b""
    assert pool.load(0, 8) == bytes(8)
    assert repr(pool) == "Pool(8, stored=0)"


def test_write_appends_and_read_counts_from_the_oldest():
    pool = Pool(8)
    pool.write(b"abc")
    pool.write(b"de")
    assert len(pool) == 5
    assert pool.read(0, 5) == b"abcde"
    assert pool.read(1, 3) == b"bcd"
    assert pool.read(0, 5) == b"abcde", "reading consumes nothing"


def test_a_full_pool_overwrites_the_oldest():
    pool = Pool(4)
    pool.write(b"abcd")
    assert (len(pool), pool.head, pool.tail) == (4, 0, 0)
    pool.write(b"e")
    assert stored(pool) == b"bcde"
    assert (pool.head, pool.tail) == (1, 1)
    pool.write(b"fgh")
    assert stored(pool) == b"efgh"


def test_data_longer_than_the_capacity_keeps_its_end():
    pool = Pool(4)
    pool.write(b"x")
    pool.write(b"abcdefghij")
    assert stored(pool) == b"ghij"


def test_an_empty_write_changes_nothing():
    pool = Pool(2)
    for data in (b"", bytearray(), memoryview(b""), np.empty((3, 0)), np.empty(0, object).astype("u1")):
        pool.write(data)
        assert len(pool) == 0
    pool.write(b"abc")
    pool.write(b"")
    assert stored(pool) == b"bc"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytearray(b"abcd"), b"abcd"),
        (memoryview(b"abcd").cast("H"), b"abcd"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (array.array("B", [1, 2, 3]), b"\1\2\3"),
        (np.array([1, 2], "<u2"), b"\1\0\2\0"),
        (np.array([1.0], ml_dtypes.bfloat16), b"\x80\x3f"),
        (np.float32(1.0), b"\0\0\x80\x3f"),
        (np.array(7, np.uint8), b"\7"),
        (np.array([[1, 2], [3, 4]], np.uint8), b"\1\2\3\4"),
        (np.array([[1, 2], [3, 4]], np.uint8).T, b"\1\3\2\4"),
        (np.arange(10, dtype=np.uint8)[::-3], b"\11\6\3\0"),
        (np.array([True, False]), b"\1\0"),
    ],
)
def test_what_can_be_written(data, expected):
    pool = Pool(64)
    pool.write(data)
    assert stored(pool) == expected
    pool.store(10, data)
    assert pool.load(10, len(expected)) == expected


@pytest.mark.parametrize("data", [5, "text", [1, 2], None])
def test_what_has_no_bytes_is_refused(data):
    pool = Pool(4)
    with pytest.raises(TypeError, match="bytes-like"):
        pool.write(data)
    with pytest.raises(TypeError, match="bytes-like"):
        pool.store(0, data)
    with pytest.raises(InvalidBuffer, match="no bytes to store"):
        pool.write(np.array([data], object))
    assert len(pool) == 0


@pytest.mark.parametrize(("offset", "length"), [(0, 6), (5, 1), (6, 0), (-1, 1), (0, -1), (2, 1 << 80)])
def test_reading_what_is_not_stored_is_an_error(offset, length):
    pool = Pool(8)
    pool.write(b"abcde")
    with pytest.raises(InvalidBuffer, match="the pool stores 5 bytes"):
        pool.read(offset, length)


def test_offsets_are_whole_numbers_of_any_kind():
    pool = Pool(300)
    pool.write(bytes(300))
    assert len(pool.read(np.uint8(200), np.uint8(100))) == 100, "the sum must not wrap in eight bits"
    with pytest.raises(TypeError):
        pool.read(0.5, 1)


@pytest.mark.parametrize("capacity", [0, -1, True, 1.0, "8", None, CAPACITY_LIMIT + 1, 1 << 100, np.float64(4)])
def test_a_bad_capacity_is_refused(capacity):
    with pytest.raises(AllocationFailed, match="capacity"):
        Pool(capacity)


def test_a_numpy_integer_is_a_capacity():
    assert Pool(np.uint8(16)).capacity == 16


def test_no_memory_is_an_allocation_failure(monkeypatch):
    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(pool_module.np, "zeros", no_memory)
    with pytest.raises(AllocationFailed, match="no memory for a pool of 16 bytes"):
        Pool(16)


def test_flat_access_reaches_all_of_the_memory_and_moves_nothing():
    pool = Pool(8)
    pool.write(b"abcdefghij")  # laid down as i j c d e f g h
    assert pool.load(0, 8) == b"ijcdefgh"
    pool.store(2, b"XY")
    assert stored(pool) == b"XYefghij", "a store inside the stored stretch shows in the stream"
    assert (len(pool), pool.head, pool.tail) == (8, 2, 2)


def test_a_store_ahead_of_the_stream_is_not_stored_by_it():
    pool = Pool(8)
    pool.write(b"ab")
    pool.store(4, b"Z")
    assert pool.load(4, 1) == b"Z"
    with pytest.raises(InvalidBuffer):
        pool.read(0, 5)
    pool.write(b"cdef")
    assert stored(pool) == b"abcdef"


@pytest.mark.parametrize(("offset", "length"), [(0, 9), (8, 1), (-1, 2), (9, 0), (1 << 70, 1)])
def test_flat_access_past_the_capacity_is_an_error(offset, length):
    pool = Pool(8)
    with pytest.raises(InvalidBuffer, match="the pool has 8 bytes"):
        pool.load(offset, length)
    with pytest.raises(InvalidBuffer, match="the pool has 8 bytes"):
        pool.store(offset, bytes([1]) * length)
    assert pool.load(0, 8) == bytes(8), "nothing was stored"


def test_memory_is_the_array_itself():
    pool = Pool(4)
    assert pool.memory.dtype == np.uint8
    assert pool.memory.shape == (4,)
    pool.memory[:] = [1, 2, 3, 4]
    assert pool.load(0, 4) == b"\1\2\3\4"
    pool.write(b"\xff")
    assert pool.memory[0] == 255


def test_clear_makes_it_as_new():
    pool = Pool(4)
    pool.write(b"abcdef")
    memory = pool.memory
    pool.clear()
    assert (len(pool), pool.head, pool.tail) == (0, 0, 0)
    assert pool.load(0, 4) == bytes(4)
    assert pool.memory is memory
    pool.write(b"xy")
    assert stored(pool) == b"xy"


@given(st.integers(1, 12), st.binary(max_size=30), st.data())
def test_a_pool_can_be_written_with_its_own_memory(capacity, before, data):
    pool = Pool(capacity)
    pool.write(before)
    start = data.draw(st.integers(0, capacity))
    stop = data.draw(st.integers(start, capacity))
    expected = (stored(pool) + pool.load(start, stop - start))[-capacity:]
    pool.write(pool.memory[start:stop])
    assert stored(pool) == expected


@given(st.integers(1, 20), st.lists(st.binary(max_size=50), max_size=12))
def test_the_layout_does_not_depend_on_how_the_stream_is_cut(capacity, chunks):
    piecewise, at_once = Pool(capacity), Pool(capacity)
    for chunk in chunks:
        piecewise.write(chunk)
    stream = b"".join(chunks)
    at_once.write(stream)
    assert piecewise.load(0, capacity) == at_once.load(0, capacity)
    expected = bytearray(capacity)
    for number, byte in enumerate(stream):
        expected[number % capacity] = byte
    assert piecewise.load(0, capacity) == expected


class PoolMachine(RuleBasedStateMachine):
    """Any sequence of operations agrees with a deque (the stream) and a bytearray (the flat memory)."""

    @initialize(capacity=st.integers(1, 24))
    def start(self, capacity):
        self.capacity = capacity
        self.pool = Pool(capacity)
        self.places: deque[int] = deque(maxlen=capacity)  # flat offsets of what is stored, oldest first
        self.flat = bytearray(capacity)
        self.next = 0

    def model_write(self, data: bytes) -> None:
        for byte in data:
            self.flat[self.next] = byte
            self.places.append(self.next)
            self.next = (self.next + 1) % self.capacity

    def model_stream(self) -> bytes:
        return bytes(self.flat[place] for place in self.places)

    @rule(data=st.binary(max_size=60), kind=st.sampled_from([bytes, bytearray, memoryview, "array"]))
    def write(self, data, kind):
        self.pool.write(np.frombuffer(data, np.uint8) if kind == "array" else kind(data))
        self.model_write(data)

    @rule(values=st.lists(st.integers(0, 65535), max_size=40), step=st.sampled_from([1, 2, -1, -3]))
    def write_strided(self, values, step):
        data = np.array(values, "<u2")[::step]
        self.pool.write(data)
        self.model_write(data.tobytes())

    @rule(offset=st.integers(-2, 26), length=st.integers(-2, 26))
    def read(self, offset, length):
        stream = self.model_stream()
        if offset < 0 or length < 0 or offset + length > len(stream):
            with pytest.raises(InvalidBuffer):
                self.pool.read(offset, length)
        else:
            assert self.pool.read(offset, length) == stream[offset : offset + length]

    @rule(offset=st.integers(-2, 26), data=st.binary(max_size=26))
    def store(self, offset, data):
        if offset < 0 or offset + len(data) > self.capacity:
            with pytest.raises(InvalidBuffer):
                self.pool.store(offset, data)
        else:
            self.pool.store(offset, data)
            self.flat[offset : offset + len(data)] = data

    @rule(offset=st.integers(-2, 26), length=st.integers(-2, 26))
    def load(self, offset, length):
        if offset < 0 or length < 0 or offset + length > self.capacity:
            with pytest.raises(InvalidBuffer):
                self.pool.load(offset, length)
        else:
            assert self.pool.load(offset, length) == self.flat[offset : offset + length]

    @rule()
    def clear(self):
        self.pool.clear()
        self.places.clear()
        self.flat = bytearray(self.capacity)
        self.next = 0

    @invariant()
    def agrees(self):
        assert len(self.pool) == len(self.places) <= self.pool.capacity == self.capacity
        assert stored(self.pool) == self.model_stream()
        assert self.pool.memory.tobytes() == self.flat
        assert self.pool.head == self.next
        assert self.pool.tail == (self.places[0] if self.places else self.next)


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def peak_resident_bytes() -> int:
    """The most memory this process had so far; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_a_gigabyte_streams_through_four_kilobytes_without_growing():
    """The seed's loop: 1 KB chunks in, the oldest 1 KB out, 2^30 bytes in all."""
    source = np.random.default_rng(7).integers(0, 256, 1 << 20, np.uint8).tobytes()
    chunks = [source[start : start + 1024] for start in range(0, len(source), 1024)]
    pool = Pool(4096)
    write, read = pool.write, pool.read
    tracemalloc.start()
    for chunk in chunks:  # the first pass warms up whatever Python keeps
        write(chunk)
        read(0, 1024)
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    for chunk in chunks:
        write(chunk)
        read(0, 1024)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()  # it makes the loop several times slower; from here on the process is watched
    assert peak - before < 8192
    assert after - before < 1024

    memory, resident = pool.memory, peak_resident_bytes()
    for _ in range(1022):
        for chunk in chunks:
            write(chunk)
            oldest = read(0, 1024)
    assert oldest == chunks[-4], "four chunks are stored; the oldest is the one before the last three"
    assert blake3(stored(pool)).digest() == blake3(source[-4096:]).digest()
    assert peak_resident_bytes() - resident < 16 << 20
    assert pool.memory is memory
    assert len(pool) == pool.capacity == memory.nbytes == 4096


def test_every_byte_of_a_long_stream_comes_out_once():
    """Chunks that do not divide the capacity, read back as they arrive, hash as the source does."""
    source = np.random.default_rng(11).integers(0, 256, 1 << 22, np.uint8).tobytes()
    pool, out = Pool(4096), blake3()
    for start in range(0, len(source), 1000):
        chunk = memoryview(source)[start : start + 1000]
        pool.write(chunk)
        out.update(pool.read(len(pool) - len(chunk), len(chunk)))
    assert out.digest() == blake3(source).digest()


@pytest.mark.parametrize("contiguous", [True, False])
def test_a_write_longer_than_the_capacity_copies_no_more_than_the_capacity(contiguous):
    pool = Pool(4096)
    data = np.arange(1 << 22, dtype=np.uint32)[:: 1 if contiguous else 2]
    pool.write(data)
    tracemalloc.start()
    pool.write(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16384
    assert stored(pool) == data[-1024:].tobytes()
