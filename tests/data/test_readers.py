"""Readers of IDX, CIFAR, NumPy's files, JSON lines and pictures: what is in files, and what is said of broken ones."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from eshkol import data as ed
from eshkol.errors import DataError, MissingData

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (7, 4, 3)).astype(np.uint8), RNG.integers(0, 10, 7).astype(np.uint8)


def idx(array: np.ndarray, code: int = 8) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.tobytes()


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# --- IDX --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("mmap", [False, True])
def test_idx(tmp_path, ending, mmap) -> None:
    path = written(tmp_path / f"a{ending}", idx(IMAGES))
    np.testing.assert_array_equal(ed.read_idx(path, mmap=mmap), IMAGES)
    path = written(tmp_path / f"b{ending}", idx(np.array([[1.5, -2]], ">f8"), 0x0E))
    found = ed.read_idx(path)
    assert found.tolist() == [[1.5, -2]]
    assert found.dtype.isnative


GOOD = idx(IMAGES)
HUGE = struct.pack(">HBB3I", 0, 8, 3, *(2**32 - 1,) * 3)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no IDX file"),
        (b"\x89PNG....", "no IDX file: it begins with 89 50 4e 47"),
        (b"\0\0\x07\x01\0\0\0\1a", "no IDX file"),
        (b"\0\0\x08\x00", "no IDX file"),
        (b"\0\0\x08\x03\0\0", "ends within the lengths of its 3 axes, after byte 6"),
        (GOOD[:-1], "ends early|cannot hold"),
        (GOOD + b"x", "more in the file than .* from byte 100 on"),
        (HUGE + b"abc", "cannot hold so many"),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_broken_idx_is_named(tmp_path, data, words, ending) -> None:
    path = written(tmp_path / f"broken{ending}", data)
    tracemalloc.start()
    with pytest.raises(DataError, match=words) as caught:
        ed.read_idx(path)
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()
    assert str(path) in str(caught.value)


def test_broken_gzip_is_named(tmp_path) -> None:
    whole = gzip.compress(idx(RNG.integers(0, 256, (50, 20, 20)).astype(np.uint8)))
    path = tmp_path / "a.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a\.gz: the compressed file ends early, after"):
        ed.read_idx(path)
    path.write_bytes(whole[:500] + bytes(200) + whole[700:])
    with pytest.raises(DataError, match=r"a\.gz: .*(damaged|ends early)"):
        ed.read_idx(path)
    flipped = bytearray(whole)
    flipped[-6] ^= 1  # of the checksum
    path.write_bytes(flipped)
    with pytest.raises(DataError, match=r"a\.gz: the compressed file is damaged"):
        ed.read_idx(path)


def test_mnist_is_found_or_asked_for(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("ESHKOL_DATA", raising=False)
    with pytest.raises(MissingData, match="root=FOLDER, or set ESHKOL_DATA"):
        ed.load_mnist()
    monkeypatch.setenv("ESHKOL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"put the file train-images-idx3-ubyte .* into {tmp_path}"):
        ed.load_mnist()
    written(tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz", idx(IMAGES))
    written(tmp_path / "mnist" / "t10k-labels-idx1-ubyte", idx(LABELS))
    data = ed.load_mnist(split="test")
    image, label = data[2]
    np.testing.assert_array_equal(image, IMAGES[2][None] * np.float32(1 / 255))
    assert label == LABELS[2]
    assert ed.load_mnist(split="test", scale=False, flat=True)[0][0].shape == (12,)
    written(tmp_path / "mnist" / "t10k-labels-idx1-ubyte", idx(LABELS[:3]))
    with pytest.raises(DataError, match="do not go together"):
        ed.load_mnist(split="test")
    with pytest.raises(DataError, match="split is one of 'train', 'test'"):
        ed.load_mnist(split="validation")


# --- CIFAR ------------------------------------------------------------------------------------------

PIXELS, CLASSES = RNG.integers(0, 256, (6, 3072)).astype(np.uint8), np.array([3, 9, 0, 1, 2, 5], np.uint8)
RECORDS = np.concatenate([CLASSES[:, None], PIXELS], axis=1).tobytes()


def test_cifar_binary(tmp_path) -> None:
    written(tmp_path / "cifar10" / "train_6.bin.gz", RECORDS)
    data = ed.load_cifar10(tmp_path, scale=False)
    assert len(data) == 6
    np.testing.assert_array_equal(data[4][0], PIXELS[4].reshape(3, 32, 32))
    assert [int(y) for _, y in data] == CLASSES.tolist()
    with pytest.raises(MissingData, match=r"put the file test_batch\.bin .* into .*cifar-10-batches-bin"):
        ed.load_cifar10(tmp_path, "test")
    for k in range(1, 5):
        written(tmp_path / "cifar-10-batches-bin" / f"data_batch_{k}.bin", RECORDS)
    with pytest.raises(MissingData, match=r"data_batch_5\.bin"):
        ed.load_cifar10(tmp_path)
    last = written(tmp_path / "cifar-10-batches-bin" / "data_batch_5.bin", RECORDS[:-100])
    with pytest.raises(DataError, match=r"data_batch_5\.bin: .* record 5 ends early, at byte 18,338"):
        ed.load_cifar10(tmp_path)
    with pytest.warns(ed.SkippedData, match=r"1 places of files of CIFAR10 .* left out; the first: .*data_batch_5"):
        assert len(ed.load_cifar10(tmp_path, on_error="skip")) == 29
    written(last, b"\x0b" + RECORDS[1:])
    with pytest.raises(DataError, match=r"data_batch_5\.bin, record 0: class 11, and there are 10"):
        ed.load_cifar10(tmp_path)
    with pytest.warns(ed.SkippedData, match="record 0: class 11"):
        assert len(ed.load_cifar10(tmp_path, on_error="skip")) == 29
    written(tmp_path / "test.bin", np.concatenate([CLASSES[:, None] * 0, CLASSES[:, None] * 9, PIXELS], 1).tobytes())
    assert [int(y) for _, y in ed.load_cifar100(tmp_path, "test")] == (CLASSES * 9).tolist()


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_cifar_pickles_are_read_without_running_them(tmp_path, protocol) -> None:
    for name in [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]:
        batch = {b"data": PIXELS, b"labels": CLASSES.tolist(), b"batch_label": b"x", b"filenames": [b"a.png"] * 6}
        written(tmp_path / "cifar-10-batches-py" / name, pickle.dumps(batch, protocol))
    if protocol == 5:
        with pytest.raises(DataError, match="_frombuffer, which is not given"):
            ed.load_cifar10(tmp_path, "test")
        return
    assert len(ed.load_cifar10(tmp_path)) == 30
    data = ed.load_cifar10(tmp_path, "test", scale=False)
    np.testing.assert_array_equal(data[1][0], PIXELS[1].reshape(3, 32, 32))


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/eshkol_was_here",)


def nested() -> list:
    inner: list = ["x"]
    for _ in range(15):
        inner = [inner] * 10
    return inner


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pickle.dumps(Evil()), "asks for (posix|nt).system, which is not given"),
        (pickle.dumps(np.array([Evil()]), 2), "not given|not read"),
        (b"cnumpy\nndarray\n((L1000000000000L\ntR.", "no pickle of plain data"),
        (
            b"cnumpy.core.multiarray\n_reconstruct\n(tR(I1\n(L99999999999L\ntcnumpy\ndtype\n(S'u1'\ntRI00\nS'a'\ntb.",
            "does not fit",
        ),
        (b"\x80\x05\x8e" + struct.pack("<Q", 1 << 62) + b"abc", "no pickle of plain data"),
        (b"not a pickle", "no pickle of plain data"),
        (b"", "no pickle of plain data"),
        (b"(" * 100000, "no pickle of plain data"),
    ],
)  # fmt: skip
def test_hostile_pickles_are_refused(tmp_path, data, words) -> None:
    path = written(tmp_path / "evil", data)
    with pytest.raises(DataError, match=words):
        ed.plain_unpickled(path)
    assert not Path("/tmp/eshkol_was_here").exists()


def test_shared_structures_do_not_explode(tmp_path) -> None:
    path = written(tmp_path / "laughs", pickle.dumps(nested(), 2))
    found = ed.plain_unpickled(path)
    assert len(found) == 10


# --- NumPy's files ----------------------------------------------------------------------------------


def test_npy_is_mapped_and_npz_is_read(tmp_path) -> None:
    array = np.asfortranarray(RNG.random((6, 3)))
    np.save(tmp_path / "a.npy", array)
    found = ed.load_npy(tmp_path / "a.npy")
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(ed.load_npy(tmp_path / "a.npy", mmap=False), array)
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    assert ed.load_npy(tmp_path / "none.npy").shape == (0, 3)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "b.npz", x=array, y=np.arange(6))
        np.testing.assert_array_equal(ed.load_npz(tmp_path / "b.npz")["x"], array)
        assert ed.load_numpy(tmp_path / "b.npz", "y", "x")[2][0] == 2
        assert set(ed.load_numpy(tmp_path / "b.npz")[2]) == {"x", "y"}
    assert ed.load_numpy(tmp_path / "a.npy")[1].tolist() == array[1].tolist()
    with pytest.raises(DataError, match="no array 'z'; there are x, y"):
        ed.load_numpy(tmp_path / "b.npz", "z")


def npy(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no .npy"),
        (b"hello, I am text", "no .npy"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999)}", b"abc"), "ends early"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", bytes(8)), "axis of length -1|no .npy"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", pickle.dumps([1])), "pickled objects"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", bytes(9)), "too long"),
        (npy("__import__('os').system('touch /tmp/eshkol_was_here')"), "no .npy"),
    ],
)
def test_broken_npy_is_named(tmp_path, data, words) -> None:
    path = written(tmp_path / "a.npy", data)
    with pytest.raises(DataError, match=words) as caught:
        ed.load_npy(path)
    assert str(path) in str(caught.value)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", data)
    with pytest.raises(DataError, match=r"a\.npz, x: .*"):
        ed.load_npz(tmp_path / "a.npz")


def test_broken_npz_is_named(tmp_path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=RNG.random(1000))
    whole = (tmp_path / "a.npz").read_bytes()
    for damaged in (whole[:500], whole[:400] + bytes(50) + whole[450:], b"PK"):
        (tmp_path / "a.npz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.npz"):
            ed.load_npz(tmp_path / "a.npz")


# --- JSON lines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_json_lines(tmp_path, ending) -> None:
    rows = [{"a": k, "b": "ü\n"} for k in range(5)]
    text = "\n".join(["", "  ", *map(json.dumps, rows[:3]), "\t", *map(json.dumps, rows[3:])])
    path = written(tmp_path / f"a.jsonl{ending}", text.encode())
    data = ed.load_jsonl(path)
    assert list(data) == rows
    assert data[-1] == rows[-1]
    assert list(ed.load_jsonl(path, stream=True)) == rows
    assert pickle.loads(pickle.dumps(data))[3] == rows[3]
    (batch, *_) = ed.DataLoader(data, 5)
    assert batch["a"].tolist() == [0, 1, 2, 3, 4]


def test_broken_lines_are_named_or_left_out(tmp_path) -> None:
    path = written(
        tmp_path / "a.jsonl", b'{"a": 1}\n{"a": \n\xff\n' + b"[" * 100000 + b'\n{"a": 5}\n' + b"1" * 5000 + b"\n"
    )
    data = ed.load_jsonl(path)
    assert data[0] == {"a": 1}
    for index, words in ((1, "line 2, column 7"), (2, "line 3: no UTF-8"), (3, "line 4: .*too deep"), (5, "line 6: ")):
        with pytest.raises(DataError, match=words):
            data[index]
    with pytest.warns(ed.SkippedData, match="4 lines of .* the first: .*line 2"):
        assert list(ed.load_jsonl(path, on_error="skip")) == [{"a": 1}, {"a": 5}]
    with pytest.warns(ed.SkippedData, match="4 lines of"):
        assert len(list(ed.load_jsonl(path, stream=True, on_error="skip"))) == 2
    with pytest.raises(DataError, match="line 2, column 7"):
        list(ed.load_jsonl(path, stream=True))
    with pytest.raises(DataError, match="no lines of JSON"):
        ed.load_jsonl(written(tmp_path / "empty", b""))
    with pytest.raises(MissingData, match="there is no file"):
        ed.load_jsonl(tmp_path / "nowhere")


# --- pictures ---------------------------------------------------------------------------------------


def pictures(root: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for label, name in enumerate(("cat", "dog")):
        (root / name).mkdir(parents=True)
        for k in range(3):
            image.fromarray(np.full((8, 6, 3), 50 * label + 10 * k, np.uint8)).save(root / name / f"{k}.png")


def test_folders_of_pictures(tmp_path) -> None:
    pictures(tmp_path)
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    data = ed.load_images(tmp_path)
    assert data.classes == ["cat", "dog"]
    assert len(data) == 6
    image, label = data[4]
    assert image.shape == (3, 8, 6)
    assert image.dtype == np.float32
    assert image.max() == np.float32(60) * np.float32(1 / 255)
    assert label == 1
    assert ed.load_images(tmp_path, (4, 5), mode="L", scale=False)[4][0].tolist() == np.full((1, 4, 5), 60).tolist()
    (x, y), *_ = ed.DataLoader(data, 6)
    assert x.shape == (6, 3, 8, 6)
    assert y.tolist() == [0, 0, 0, 1, 1, 1]


def test_broken_pictures_are_named_or_left_out(tmp_path) -> None:
    pictures(tmp_path)
    whole = (tmp_path / "cat" / "0.png").read_bytes()
    (tmp_path / "cat" / "1.png").write_bytes(whole[:40])
    (tmp_path / "dog" / "1.png").write_bytes(b"")
    data = ed.load_images(tmp_path)
    with pytest.raises(DataError, match=r"cat/1\.png: the picture cannot be read"):
        data[1]
    with pytest.warns(ed.SkippedData, match=r"2 samples of epoch 0 .*1\.png"):
        assert sum(len(y) for _, y in ed.DataLoader(data, 2, on_error="skip")) == 4
    with pytest.raises(MissingData, match="no folder"):
        ed.load_images(tmp_path / "nowhere")
    with pytest.raises(MissingData, match="no pictures"):
        ed.load_images(Path(__file__).parent)


def test_imagenet_folders(tmp_path) -> None:
    with pytest.raises(MissingData, match=r"train/n01440764"):
        ed.load_imagenet(tmp_path)
    pictures(tmp_path / "val")
    image, label = ed.load_imagenet(tmp_path, "val", size=4)[5]
    assert image.shape == (3, 4, 4)
    assert label == 1


def test_libraries_that_are_not_there_are_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    path = written(tmp_path / "a", b"x")
    for call, extra in ((ed.read_image, "images"), (ed.load_parquet, "parquet"), (ed.load_hf_dataset, "huggingface")):
        with pytest.raises(DataError, match=rf"pip install eshkol\[{extra}\]"):
            call(path)
