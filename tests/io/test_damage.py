"""Files of every format, damaged anywhere: whatever their bytes, they are read or refused, and take little memory."""

from __future__ import annotations

import io
import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import CheckpointError

REFERENCES = Path(__file__).parent / "references"
PEAK = 1 << 20  # bytes that reading these small files, or refusing them, may take
HUGE = 1 << 62


def _npz() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, a=np.arange(10.0), b=np.ones((2, 3), np.int8))
    return out.getvalue()


def _eskpt(path: Path) -> None:
    with ek.io.load_checkpoint(path) as file:
        file.verify()
        file.state()


FORMATS: dict[str, tuple[Callable[[], bytes], Callable[[Path], Any]]] = {
    "eskpt": (bytes, _eskpt),  # saved below
    "npz": (_npz, ek.io.load_npz),
    "pt": (lambda: (REFERENCES / "state.pt").read_bytes(), ek.io.load_pytorch),
    "safetensors": (lambda: (REFERENCES / "tensors.safetensors").read_bytes(), ek.io.load_safetensors),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small file of each format."""
    path = tmp_path_factory.mktemp("good") / "a"
    model = ek.nn.Sequential(ek.nn.Linear(3, 2), ek.nn.ReLU())
    ek.io.save_checkpoint(path, model, metadata={"text": "é", "deep": [[(1, 2.5)]]}, compress=True)
    return {"eskpt": path.read_bytes()} | {name: make() for name, (make, _) in FORMATS.items() if name != "eskpt"}


@contextmanager
def little_memory(peak: int = PEAK) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < peak
    finally:
        tracemalloc.stop()


def damaged(data: bytes, choose: random.Random) -> bytes:
    """The bytes cut short, or with some of them changed; most often where the structure is, at either end."""
    if choose.random() < 0.15:
        return data[: choose.randrange(len(data))]
    out = bytearray(data)
    for _ in range(choose.choice((1, 1, 1, 3))):
        near = min(len(out), 700)
        place = choose.choice(
            (choose.randrange(len(out)), choose.randrange(near), len(out) - 1 - choose.randrange(near))
        )
        out[place] = choose.choice((out[place] ^ 1 << choose.randrange(8), 0, 255, choose.randrange(256)))
    return bytes(out)


def broken(name: str, data: bytes, path: Path, count: int, seed: int) -> None:
    choose, load = random.Random(seed), FORMATS[name][1]
    with little_memory():
        for _ in range(count):
            path.write_bytes(damaged(data, choose))
            with suppress(CheckpointError):
                load(path)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_read_or_refused(name: str, good: dict[str, bytes], tmp_path: Path) -> None:
    broken(name, good[name], tmp_path / "a", 60, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_many_damaged_files_are_read_or_refused(name: str, good: dict[str, bytes], tmp_path: Path) -> None:
    broken(name, good[name], tmp_path / "a", 3000, 2)


@pytest.mark.slow
def test_every_byte_of_a_checkpoint_counts(good: dict[str, bytes], tmp_path: Path) -> None:
    data, path = good["eskpt"], tmp_path / "a"
    for place in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
            with pytest.raises(CheckpointError, match="is refused: "):
                _eskpt(path)


# --- shapes that no memory holds, though nothing is in them -----------------------------------------------------------

EMPTY = [(HUGE, 0), (0, HUGE, HUGE), (1,) * 33]


@pytest.mark.parametrize("shape", EMPTY, ids=lambda shape: str(len(shape)))
def test_shapes_that_no_array_has(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "a"
    size = 4 * int(0 not in shape)
    text = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
    with little_memory(), pytest.raises(CheckpointError, match="a shape that is none"):
        ek.io.load_safetensors(path)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(size))
    with little_memory(), pytest.raises(CheckpointError, match="which no memory holds"):
        ek.io.load_npz(path)


# --- bombs ------------------------------------------------------------------------------------------------------------


def overlapping(members: int, size: int) -> bytes:
    """An archive of PyTorch whose members are all the same bytes of the file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02].")
        archive.writestr("x/data/0", bytes(size))
        first = archive.getinfo("x/data/0")
        for k in range(1, members):
            again = zipfile.ZipInfo(f"x/data/{k}")
            again.file_size = again.compress_size = size
            again.CRC, again.header_offset = first.CRC, first.header_offset
            archive.filelist.append(again)
            archive.NameToInfo[again.filename] = again
    return out.getvalue()


def test_members_of_an_archive_that_overlap(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(overlapping(50, 10_000))
    with little_memory(), pytest.raises(CheckpointError, match="its members overlap"):
        ek.io.load_pytorch(tmp_path / "a")


def test_tensors_that_are_the_same_storage_over_and_over(tmp_path: Path) -> None:
    side, many = 256, 200
    storage = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuJ" + struct.pack("<i", side**2)
    shape = b"M" + struct.pack("<H", side)
    turned = b"(" + b"K\x01" + shape + b"t"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"tQK\x00" + shape * 2 + b"\x86" + turned + b"\x89NtR"
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x02](" + tensor * many + b"e.")
        archive.writestr("x/data/0", bytes(4 * side**2))
    with little_memory(24 << 20), pytest.raises(CheckpointError, match="more than 16 times as much memory"):
        ek.io.load_pytorch(tmp_path / "a")


def test_names_that_are_many_and_one_twice(tmp_path: Path) -> None:
    """Found in a moment, however many names there are before it."""
    names = [*(f'"{k}":0' for k in range(200_000)), '"5":0']
    text = ("{" + ",".join(names) + "}").encode()
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(CheckpointError, match="'5' twice"):
        ek.io.load_safetensors(tmp_path / "a")
