"""Files that are cut short, damaged or made to harm: refused with the reason, and without much memory."""

from __future__ import annotations

import io
import json
import re
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import CheckpointError
from eshkol.io import layout, npz, zstd
from eshkol.io.crc64 import crc64
from eshkol.io.layout import Entry
from eshkol.io.msgpack import pack

PEAK = 1 << 20  # bytes that a refusal may take


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of all regions: raw and compressed tensors, padding, an empty tensor, metadata."""
    path = tmp_path_factory.mktemp("good") / "a.eskpt"
    tensors = {
        "weight": np.arange(12, dtype=np.float32).reshape(3, 4), "flags": np.array([True, False, True]),
        "packed": np.arange(200, dtype=np.int64) // 50, "none": np.zeros((0, 2)), "last": np.float64(1.5).reshape(()),
    }  # fmt: skip
    ek.io.save_tensors(path, tensors, metadata={"lr": 0.1, "name": "run"}, compress=True)
    return path.read_bytes()


def opened(path: Path, mapped: bool, read: bool) -> None:
    with ek.io.load_checkpoint(path, mmap=mapped) as file:
        if read:
            file.verify()


def refusal(path: Path, data: bytes, *, read: bool = True) -> str:
    """Why a file of these bytes is refused, as it must be; in both ways of reading, and with little memory."""
    path.write_bytes(data)
    said = []
    for mapped in (False, True):
        tracemalloc.start()
        try:
            with pytest.raises(CheckpointError) as found:
                opened(path, mapped, read)
            assert tracemalloc.get_traced_memory()[1] < PEAK
        finally:
            tracemalloc.stop()
        said.append(found.value.message)
    assert said[0] == said[1]
    assert str(path) in said[0]
    return said[0]


def refused_at_once(path: Path, data: bytes) -> str:
    return refusal(path, data, read=False)


def test_the_good_file_is_good(good: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(good)
    with ek.io.load_checkpoint(tmp_path / "a") as file:
        file.verify()
        assert file.tensors["packed"].compressed


def test_cut_short_anywhere(good: bytes, tmp_path: Path) -> None:
    for size in {*range(0, len(good), 64), 1, 63, 65, len(good) - 1}:
        said = refused_at_once(tmp_path / "a", good[:size])
        assert "cut short" in said if size >= 64 else "header of a checkpoint" in said
    assert "something was added" in refused_at_once(tmp_path / "a", good + b"\0")


def test_a_bit_flipped_anywhere(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    for place in range(0, len(good), 5):  # the regions are longer
        flipped = bytearray(good)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError, match="is refused: "), ek.io.load_checkpoint(path, mmap=True) as file:
            file.verify()


def test_a_damaged_tensor_harms_no_other(good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(good)
    with ek.io.load_checkpoint(path) as file:
        place = file.tensors["weight"].offset
    path.write_bytes(good[:place] + b"\xff" + good[place + 1 :])
    with ek.io.load_checkpoint(path) as file:
        assert file["last"].item() == 1.5
        with pytest.raises(CheckpointError, match="damaged: tensor 'weight'"):
            file["weight"]
    with ek.io.load_checkpoint(path, check=False) as file:
        assert file["weight"].numpy()[2, 3] == 11


# --- files that were made on purpose: the checksums fit ---------------------------------------------------------------


def made(
    rows: bytes = b"", count: int = 0, *, data: bytes = b"", metadata: Any = None, version: int = layout.VERSION,
    flags: int = 0, magic: bytes = layout.MAGIC, metadata_at: int | None = None, total: int | None = None,
) -> bytes:  # fmt: skip
    """A file with whatever is wanted in it, and with a checksum that is right."""
    rows += bytes(-(64 + len(rows)) % 64)
    data += bytes(-len(data) % 64)
    said = {"eskpt": {"checksums": bytes(8 * count)}} if metadata is None else metadata
    text = said if isinstance(said, bytes) else pack(said)
    at = 64 + len(rows) + len(data) if metadata_at is None else metadata_at
    size = 64 + len(rows) + len(data) + len(text) if total is None else total

    def header(checksum: int) -> bytes:
        return layout.HEADER.pack(magic, version, flags, count, size, at, checksum, bytes(16))

    return header(crc64(text, crc64(rows, crc64(header(0))))) + rows + data + text


def row(name: bytes = b"x", code: int = 11, shape: tuple[int, ...] = (4,), offset: int = 128, size: int = 16) -> bytes:
    begin = struct.pack("<H", len(name)) + name + struct.pack("<BB", code, len(shape))
    return begin + struct.pack(f"<{len(shape) + 2}Q", *shape, offset, size)


HUGE = 1 << 62
HOSTILE: dict[str, tuple[bytes, str]] = {
    "another magic": (made(magic=b"ESKPT002"), "format of another version"),
    "a zip file": (made(magic=b"PK\3\4abcd"), "zip file"),
    "no file of ours": (made(magic=b"\x7fELFabcd"), "no .eskpt file"),
    "newer": (made(version=2 << 16), r"version 2\.0 of the format, and this program reads 1\.x"),
    "far newer": (made(version=0xFFFFFFFF), "version 65535.65535"),
    "older": (made(version=3), "version 0.3"),
    "unknown flags": (made(flags=6), r"flags 0x6"),
    "total too large": (made(total=HUGE), "cut short"),
    "total too small": (made(total=64), "something was added"),
    "metadata beyond the end": (made(metadata_at=HUGE), "metadata would be at byte"),
    "metadata in the header": (made(metadata_at=0), "metadata would be at byte"),
    "metadata not aligned": (made(metadata_at=65), "metadata would be at byte"),
    "more tensors than bytes": (made(count=HUGE, metadata={}), "more than there is room for"),
    "directory beyond": (made(row(name=b"n" * 60_000)[:100], 1, data=bytes(64)), "directory goes beyond"),
    "bad UTF-8": (made(row(name=b"\xff\xfe"), 1, data=bytes(16)), "name of tensor 0 is not UTF-8"),
    "surrogates": (made(row(name=b"\xed\xa0\x80"), 1, data=bytes(16)), "not UTF-8"),
    "no name": (made(row(name=b"") + row(), 2, data=bytes(64)), "has the name ''"),
    "twice": (made(row() + row(offset=192), 2, data=bytes(128)), "two tensors are named 'x'"),
    "unknown dtype": (made(row(code=200), 1, data=bytes(16)), "dtype that is not known, number 200"),
    "too many axes": (made(row(shape=(1,) * 33, offset=384, size=4), 1, data=bytes(16)), "33 axes"),
    "a huge shape": (made(row(shape=(HUGE, HUGE)), 1, data=bytes(16)), "no memory holds"),
    "a huge shape with a zero": (made(row(shape=(HUGE, 0, HUGE), size=0), 1), "no memory holds"),
    "more than is stored": (made(row(shape=(1 << 40,)), 1, data=bytes(16)), "16 bytes, and its shape and dtype"),
    "less than is stored": (made(row(size=32), 1, data=bytes(32)), "32 bytes, and its shape and dtype 16"),
    "beyond the tensors": (made(row(shape=(1 << 30,), size=4 << 30), 1, data=bytes(16)), "beyond the end"),
    "an offset that wraps": (made(row(offset=(1 << 64) - 64), 1, data=bytes(16)), "beyond the end"),
    "in the header": (made(row(offset=0), 1, data=bytes(16)), "overlaps"),
    "not aligned": (made(row(offset=129), 1, data=bytes(16)), "not aligned"),
    "overlapping": (made(row() + row(name=b"y"), 2, data=bytes(16)), "overlaps|not aligned"),
    "a gap": (made(row(offset=192), 1, data=bytes(128)), "leaves a gap of 64 bytes"),
    "bytes of nobody": (made(row(), 1, data=bytes(128)), "tensors end at byte 192"),
    "a bomb": (made(row(shape=(1 << 40,)), 1, data=bytes(16), flags=1), "more than 1024 times"),
    "no metadata": (made(metadata=b""), "asks for 1 bytes"),
    "metadata that are none": (made(metadata=b"\xc1"), "means nothing"),
    "metadata that are a list": (made(metadata=[1]), "no 'eskpt'"),
    "metadata without checksums": (made(metadata={"eskpt": {}}), "checksum for each tensor"),
    "too few checksums": (made(row(), 1, data=bytes(16), metadata={"eskpt": {"checksums": b""}}), "checksum for each"),
    "huge metadata": (made(metadata=b"\xdf\xff\xff\xff\xff"), "announces 4294967295 items"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str, tmp_path: Path) -> None:
    data, said = HOSTILE[name]
    assert re.search(said, refused_at_once(tmp_path / "a", data))


def test_the_maker_makes_good_files_too(tmp_path: Path) -> None:
    data = np.arange(4, dtype=np.float32).tobytes()
    sums = struct.pack("<Q", crc64(data + bytes(48)))
    (tmp_path / "a").write_bytes(made(row(), 1, data=data, metadata={"eskpt": {"checksums": sums}, "new": 1}))
    assert ek.io.load_tensors(tmp_path / "a")["x"].tolist() == [0, 1, 2, 3]
    newer = made(row(), 1, data=data, metadata={"eskpt": {"checksums": sums, "more": []}}, version=layout.VERSION + 7)
    (tmp_path / "a").write_bytes(newer)  # what a later version of the same kind adds is not in the way
    with ek.io.load_checkpoint(tmp_path / "a") as file:
        assert file.version == "1.7"
        assert file["x"].tolist() == [0, 1, 2, 3]


def with_tensor(stored: bytes, *, code: int, shape: tuple[int, ...]) -> bytes:
    padded = stored + bytes(-len(stored) % 64)
    said = {"eskpt": {"checksums": struct.pack("<Q", crc64(padded))}}
    return made(row(code=code, shape=shape, size=len(stored)), 1, data=stored, metadata=said, flags=1)


def test_booleans_are_zero_or_one(tmp_path: Path) -> None:
    assert "neither 0 nor 1" in refusal(tmp_path / "a", with_tensor(b"\0\1\2", code=0, shape=(3,)))


FRAME = zstd.compressed(np.zeros(200, np.uint8), 3)[0] if zstd else b""
UNSIZED = bytes.fromhex("28b52ffd 00 58 010000 00".replace(" ", ""))


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (b"\0" * 20, "no zstd frame at its byte 0"),
        (FRAME[:-1], "beyond its end|does not decompress"),
        (FRAME + FRAME, "its zstd frames say that they hold 400"),
        (FRAME + b"\x50\x2a\x4d\x18\xff\xff\xff\xff", "beyond its end"),
        (UNSIZED, "must say its size"),
        (FRAME[:-2] + b"\xff\xff", "beyond its end|does not decompress|unknown kind"),
    ],
)
def test_broken_zstd_is_refused(stored: bytes, said: str, tmp_path: Path) -> None:
    assert re.search(said, refusal(tmp_path / "a", with_tensor(stored, code=5, shape=(200,))))


def test_a_zstd_frame_that_lies_about_its_size(tmp_path: Path) -> None:
    large = zstd.compressed(np.zeros(1 << 20, np.uint8), 3)[0]
    assert "frames say that they hold" in refusal(tmp_path / "a", with_tensor(large, code=5, shape=(300,)))


def test_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="it is a folder"):
        ek.io.load_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="no such file"):
        ek.io.load_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="it is no file"):
        ek.io.load_checkpoint("/dev/zero")


def test_a_reference_to_a_tensor_that_is_not_there(tmp_path: Path) -> None:
    from eshkol.io.msgpack import Reference

    (tmp_path / "a").write_bytes(made(metadata={"eskpt": {"checksums": b""}, "model": {"w": Reference("w")}}))
    with ek.io.load_checkpoint(tmp_path / "a") as file, pytest.raises(CheckpointError, match="'w' that it does not"):
        file.state("model")


# --- other formats ----------------------------------------------------------------------------------------------------


def safetensors(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def told(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "too few"),
        (safetensors({}, length=HUGE), "header would have"),
        (safetensors({}, length=1000), "cut short"),
        (safetensors(b"\xff\xfe"), "not UTF-8"),
        (safetensors(b"{"), "no JSON"),
        (safetensors(b"[" * 100_000), "no JSON"),
        (safetensors([1]), "no JSON object"),
        (safetensors(b'{"a":1,"a":2}'), "'a' twice"),
        (safetensors({"a": 1}), "not dtype, shape and data_offsets"),
        (safetensors({"a": told(dtype="F8")}, bytes(8)), "no dtype of tensors"),
        (safetensors({"a": told(dtype=[])}, bytes(8)), "no dtype of tensors"),
        (safetensors({"a": told(shape=[-2])}, bytes(8)), "shape that is none"),
        (safetensors({"a": told(shape=[HUGE])}, bytes(8)), "shape that is none"),
        (safetensors({"a": told(shape=[1 << 40])}, bytes(8)), "takes"),
        (safetensors({"a": told(offsets=[8, 0])}, bytes(8)), "data_offsets that are none"),
        (safetensors({"a": told(), "b": told()}, bytes(8)), "overlaps"),
        (safetensors({"a": told(offsets=[8, 16])}, bytes(16)), "gap"),
        (safetensors({"a": told()}, bytes(7)), "cut short"),
        (safetensors({"a": told()}, bytes(9)), "added"),
        (safetensors({"__metadata__": {"a": 1}}), "strings by name"),
        (safetensors({"a": told("BOOL", [2], [0, 2])}, b"\1\2"), "neither 0 nor 1"),
    ],
)
def test_hostile_safetensors(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(data)
    for mapped in (False, True):
        with pytest.raises(CheckpointError, match=said):
            ek.io.load_safetensors(tmp_path / "a", mmap=mapped)


def archive(*members: tuple[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as file:
        for name, data in members:
            file.writestr(name, data)
    return out.getvalue()


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def shaped(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: b"PK\3\4 nothing", "damaged, or no .npz"),
        (lambda: archive(("a.npy", b"no array")), "none of NumPy's"),
        (lambda: archive(("a.npy", npy(shaped("(2,)"), bytes(4)))), "takes 8 bytes, and there are 4"),
        (lambda: archive(("a.npy", npy(shaped("(1 << 50,)")))), "none of NumPy's"),
        (lambda: archive(("a.npy", npy(shaped(f"({HUGE}, {HUGE})")))), "which no memory holds"),
        (lambda: archive(("a.npy", npy(shaped(f"({1 << 40},)")))), "bytes, and there are 0"),
        (lambda: archive(("a.npy", npy(shaped("(-1, -2)"), bytes(8)))), "bytes, and there are"),
        (lambda: archive(("a.npy", npy(shaped("(1,)", "'|O'"), bytes(8)))), "pickled objects"),
        (lambda: archive(("a.npy", npy(shaped("(1,)", "'<U2'"), bytes(8)))), "no dtype of tensors"),
        (lambda: archive(("a.npy", npy(shaped("(1,)"), bytes(4))), how=zipfile.ZIP_BZIP2), "is not read"),
        (lambda: archive(("a.npy", npy(shaped("(1,)"), bytes(4))))[:-30], "damaged"),
        (lambda: archive(("a.npy", npy(shaped("(600000,)"), bytes(2_400_000)))), "would become"),
    ],
)
def test_hostile_npz(make: Callable[[], bytes], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "ROOM", 1 << 20)
    (tmp_path / "a.npz").write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=said):
            ek.io.load_npz(tmp_path / "a.npz")
        assert tracemalloc.get_traced_memory()[1] < PEAK
    finally:
        tracemalloc.stop()


def test_entries_say_what_they_are() -> None:
    entry = Entry("x", "bfloat16", (3, 2), 64, 12)
    assert entry.size == 12
    assert not entry.compressed
