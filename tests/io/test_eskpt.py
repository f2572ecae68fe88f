"""Files of tensors: what is saved is what is loaded, in every dtype; parts by name; the bytes are as the page says."""

from __future__ import annotations

import contextlib
import ctypes
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

import eshkol as ek
from eshkol.errors import CheckpointError
from eshkol.io import eskpt, layout, msgpack, zstd
from eshkol.io.crc64 import crc64
from eshkol.io.msgpack import Reference, pack, unpack
from eshkol.ops import dtypes
from eshkol.runtime.library import native

RNG = np.random.default_rng(0)


def sample(dtype: Any, shape: tuple[int, ...] = (3, 5)) -> Any:
    if dtype.is_bool:
        return RNG.integers(0, 2, shape).astype(bool)
    numbers = RNG.normal(size=shape) * 50
    if dtype.is_complex:
        numbers = numbers + 1j * RNG.normal(size=shape)
    with np.errstate(all="ignore"):
        return (np.abs(numbers) if dtype.is_integer and not dtype.signed else numbers).astype(dtype.numpy)


EVERY = {f"of.{d.name}": sample(d) for d in dtypes.ALL} | {
    "number": np.float32(2.5).reshape(()),
    "nothing": np.zeros((0, 4)),
    "größe/名": np.arange(3),
    "zeros": np.zeros(70_000, np.float32),
}


def same(found: Any, wanted: Any) -> bool:
    return bool(found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes())


@pytest.mark.parametrize("compress", [None, True, 19])
@pytest.mark.parametrize("mmap", [False, True])
def test_every_dtype_comes_back(tmp_path: Path, compress: Any, mmap: bool) -> None:
    path = tmp_path / "a.eskpt"
    ek.io.save_tensors(path, EVERY, metadata={"lr": 0.1}, compress=compress)
    with ek.io.load_checkpoint(path, mmap=mmap) as file:
        assert list(file.tensors) == list(EVERY)
        assert file.metadata == {"lr": 0.1}
        assert file.get("lr") == 0.1
        assert any(e.compressed for e in file.tensors.values()) == bool(compress)
        file.verify()
        found = file.load()
    for name, array in EVERY.items():
        assert same(found[name].numpy(), array), name
        assert found[name].dtype is dtypes.of(array.dtype)
    assert [p.name for p in tmp_path.iterdir()] == ["a.eskpt"]


def test_tensors_and_arrays_that_are_not_contiguous(tmp_path: Path) -> None:
    x = np.arange(24.0).reshape(4, 6)
    with ek.use_backend("reference"):
        computed = ek.tensor([1.0, 2.0]).requires_grad_() * 3
        ek.io.save_tensors(tmp_path / "a", {"t": x.T, "s": x[::2, 1:4], "r": computed})
    found = ek.io.load_tensors(tmp_path / "a")
    assert np.array_equal(found["t"].numpy(), x.T)
    assert np.array_equal(found["s"].numpy(), x[::2, 1:4])
    assert found["r"].tolist() == [3.0, 6.0]


def test_parts_by_name_or_pattern(tmp_path: Path) -> None:
    path = tmp_path / "a.eskpt"
    names = ("encoder.0.weight", "encoder.0.bias", "decoder.weight", "odd[1].weight")
    ek.io.save_tensors(path, {name: np.full(2, k) for k, name in enumerate(names)})
    assert list(ek.io.load_tensors(path, "encoder.*")) == list(names[:2])
    assert list(ek.io.load_tensors(path, "*.weight", "encoder.0.bias")) == list(names)
    assert list(ek.io.load_tensors(path, "odd[1].weight")) == ["odd[1].weight"]
    with ek.io.TensorFile(path) as file:
        assert "decoder.weight" in file
        assert len(file) == 4
        assert file["decoder.weight"].tolist() == [2, 2]
    with pytest.raises(CheckpointError, match=r"has no tensor 'decoder\.wieght'(?s:.*)did you mean 'decoder\.weight'"):
        ek.io.load_tensors(path, "decoder.wieght")
    with pytest.raises(CheckpointError, match="was closed"):
        file["decoder.weight"]


def test_only_what_is_asked_for_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.eskpt"
    ek.io.save_tensors(path, {f"t{k}": np.full(50_000, k, np.float32) for k in range(20)})
    read = []
    plain = layout.FileBytes.view

    def view(self: layout.FileBytes, place: int, size: int) -> Any:
        read.append(size)
        return plain(self, place, size)

    monkeypatch.setattr(layout.FileBytes, "view", view)
    with ek.io.TensorFile.open(path) as file:
        assert sum(read) < 70_000  # of 4 MB
        assert file["t3"].numpy()[0] == 3
        assert sum(read) < 280_000


def test_a_mapped_tensor_stays_when_the_file_is_closed_replaced_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.eskpt"
    ek.io.save_tensors(path, {"w": np.arange(1000.0)})
    with ek.io.TensorFile.open(path) as file:
        w = file["w"]
    ek.io.save_tensors(path, {"w": np.zeros(1000)})
    path.unlink()
    assert np.array_equal(w.numpy(), np.arange(1000.0))
    assert not w.numpy().flags.writeable


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.eskpt").symlink_to(tmp_path / "there" / "a.eskpt")
    ek.io.save_tensors(tmp_path / "link.eskpt", {"w": np.ones(2)})
    assert (tmp_path / "link.eskpt").is_symlink()
    assert ek.io.load_tensors(tmp_path / "there" / "a.eskpt")["w"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("tensors", "options", "said"),
    [
        ([1], {}, "takes a dict"),
        ({1: np.ones(1)}, {}, "name of a tensor is a string"),
        ({"": np.ones(1)}, {}, "cannot be the name"),
        ({"a\0": np.ones(1)}, {}, "cannot be the name"),
        ({"\ud800": np.ones(1)}, {}, "cannot be the name"),
        ({"n" * 70_000: np.ones(1)}, {}, "cannot be the name"),
        ({"a": np.array(["x"])}, {}, "no dtype of tensors"),
        ({"a": object()}, {}, "no dtype of tensors"),
        ({"a": np.ones(1)}, {"compress": 99}, "level from 1 to 19"),
        ({"a": np.ones(1)}, {"metadata": {"f": print}}, "which a checkpoint does not hold"),
        ({"a": np.ones(1)}, {"metadata": {(1, 2): 3}}, "keys are strings"),
    ],
)
def test_what_cannot_be_saved(tmp_path: Path, tensors: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        ek.io.save_tensors(tmp_path / "a", tensors, **options)
    assert not list(tmp_path.iterdir())


# --- the bytes --------------------------------------------------------------------------------------------------------


def read_alone(path: Path) -> tuple[dict[str, Any], bytes]:
    """A reader of the page docs/eskpt.md, with nothing of ours: tensors that are not compressed, and the metadata."""
    sizes = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16]
    kinds = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "V2", "f4", "f8", "c8", "c16"]
    data = path.read_bytes()
    magic, version, flags, count, total, metadata_at, checksum = struct.unpack_from("<8sIIQQQQ", data)
    assert magic == b"ESKPT001"
    assert version >> 16 == 1
    assert flags == 0
    assert total == len(data)
    place, tensors = 64, {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, place)
        name = data[place + 2 : place + 2 + length].decode()
        place += 2 + length
        code, axes = struct.unpack_from("<BB", data, place)
        *shape, at, size = struct.unpack_from(f"<{axes + 2}Q", data, place + 2)
        place += 2 + 8 * (axes + 2)
        assert at % 64 == 0
        assert size == int(np.prod(shape)) * sizes[code]
        tensors[name] = np.frombuffer(data[at : at + size], kinds[code]).reshape(shape)
    first = -(-place // 64) * 64
    said = data[:40] + bytes(8) + data[48:first] + data[metadata_at:]
    assert slow_crc64(said) == checksum
    return tensors, data[metadata_at:]


def slow_crc64(data: bytes) -> int:
    rest = (1 << 64) - 1
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xC96C5795D7870F42 if rest & 1 else 0)
    return rest ^ ((1 << 64) - 1)


def test_a_reader_of_its_own_reads_the_file(tmp_path: Path) -> None:
    few = {name: array for name, array in EVERY.items() if name != "zeros"}
    ek.io.save_tensors(tmp_path / "a", few, metadata={"x": 1})
    tensors, metadata = read_alone(tmp_path / "a")
    assert list(tensors) == list(few)
    for name, array in few.items():
        assert tensors[name].tobytes() == array.tobytes()
        assert tensors[name].shape == array.shape
    assert b"metadata\x81\xa1x\x01" in metadata  # {"metadata": {"x": 1}}, as MessagePack has it
    place = metadata.index(b"checksums") + len(b"checksums")
    sums = np.frombuffer(metadata[place + 2 : place + 2 + metadata[place + 1]], "<u8")
    first = next(iter(few.values())).tobytes()
    assert int(sums[0]) == slow_crc64(first + bytes(-len(first) % 64))


def test_the_checksum_is_crc_64_xz() -> None:
    assert crc64(b"123456789") == 0x995DC9BBDF1939FA
    assert crc64(b"") == 0
    assert crc64(b"456789", crc64(b"123")) == 0x995DC9BBDF1939FA
    tables = native().eshkol_crc64_by_tables
    tables.restype, tables.argtypes = ctypes.c_uint64, [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
    data = RNG.integers(0, 256, 3000, np.uint8)
    for size in (*range(0, 200, 7), 127, 128, 129, 191, 192, 1000, 2999):
        for start in (0, 1, 5):
            part = data[start : start + size]
            assert crc64(part, 12345) == tables(12345, part.ctypes.data, part.size)
    assert crc64(data[:300]) == slow_crc64(data[:300].tobytes())


def test_the_same_tensors_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ek.io.save_tensors(tmp_path / name, EVERY, compress=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- MessagePack ------------------------------------------------------------------------------------------------------

PACKED = {  # as the package `msgpack` has them
    None: "c0", True: "c3", 127: "7f", 128: "cc80", 256: "cd0100", 1 << 32: "cf0000000100000000", -32: "e0",
    -33: "d0df", -129: "d1ff7f", -(1 << 63): "d38000000000000000", 1.5: "cb3ff8000000000000", "aé": "a361c3a9",
    b"xy": "c4027879",
}  # fmt: skip


@pytest.mark.parametrize("value", PACKED, ids=repr)
def test_values_are_packed_as_the_specification_has_it(value: Any) -> None:
    assert pack(value).hex() == PACKED[value]
    assert unpack(pack(value)) == value
    assert pack([value, {"k": value}]).hex() == "92" + PACKED[value] + "81a16b" + PACKED[value]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.complex_numbers(allow_nan=False) | st.builds(Reference, st.text(min_size=1), st.booleans()),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple)
    | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@budget(max_examples=12)
@given(VALUES)
def test_values_come_back(value: Any) -> None:
    assert unpack(pack(value)) == value


@pytest.mark.parametrize("size", [15, 16, 31, 32, 255, 256])
def test_sizes_at_their_edges(size: int) -> None:
    for value in ("s" * size, b"b" * size, list(range(size)), dict.fromkeys(range(size)), (0,) * size):
        assert unpack(pack(value)) == value


@pytest.mark.parametrize("size", [65_535, 65_536])
def test_large_sizes_at_their_edges(size: int) -> None:
    for value in ("s" * size, b"b" * size, [None] * size):
        assert unpack(pack(value)) == value


@budget(max_examples=60)
@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    with contextlib.suppress(CheckpointError):
        unpack(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "asks for 1 bytes"),
        ("c1", "means nothing"),
        ("dfffffffff", "announces 4294967295 items"),
        ("ddffffffff", "announces 4294967295 items"),
        ("dbffffffff61", "asks for 4294967295 bytes"),
        ("a1ff", "not UTF-8"),
        ("91" * 70 + "c0", "nested"),
        ("82a16101a16102", "twice"),
        ("819001", "a key that is a list"),
        ("d47f00", "extension of type 127"),
        ("c0c0", "ends after 1 bytes"),
    ],
)
def test_broken_values_are_refused(data: str, said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        unpack(bytes.fromhex(data))


def test_too_many_items_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msgpack, "MOST_ITEMS", 100)
    with pytest.raises(CheckpointError, match="more than 100 items"):
        unpack(pack([[0] * 10] * 20))


# --- zstd -------------------------------------------------------------------------------------------------------------


def test_zstd_in_chunks_and_ballast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd, "CHUNK", 5000)
    for data in (RNG.integers(0, 4, 20_001, np.uint8), np.zeros(100_000, np.uint8)):
        stored = np.frombuffer(b"".join(zstd.compressed(data, 3)), np.uint8)
        assert 0 < stored.size < data.size <= zstd.EXPANSION * stored.size
        out = np.empty_like(data)
        zstd.decompressed(stored, out, "it")
        assert np.array_equal(out, data)
    assert zstd.compressed(RNG.integers(0, 256, 1000, np.uint8), 3) == []


def test_without_zstd_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    monkeypatch.setattr(zstd, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    zstd._library.cache_clear()
    try:
        with pytest.raises(CheckpointError, match="pip install zstandard"):
            zstd.compressed(np.zeros(100, np.uint8), 3)
    finally:
        zstd._library.cache_clear()


def test_the_format_knows_every_dtype() -> None:
    assert set(eskpt.DTYPES) == {d.name for d in dtypes.ALL}
