"""Every reader with every fault of its file: the error names the file, takes no memory for what is not there, and where
it is asked to, the reader goes on with what is whole and says what it left out.

`READERS` write a good file, which then is broken, and read it; `FAULTS` break it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import shutil
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eshkol import data as ed
from eshkol.errors import DataError, MissingData

RNG = np.random.default_rng(0)
ROWS = 40
BYTES = RNG.integers(0, 256, (ROWS, 6, 6)).astype(np.uint8)
LABELS = RNG.integers(0, 10, ROWS).astype(np.uint8)
WORDS = "".join(RNG.choice(list("abcde \n"), 900))
LETTERS = ed.CharTokenizer.train(WORDS)
MOST_MEMORY = 48 << 20  # bytes that a reader of a broken file of some kilobytes may take


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def png(seed: int = 0) -> bytes:
    image = pytest.importorskip("PIL.Image")
    made = io.BytesIO()
    image.fromarray(np.random.default_rng(seed).integers(0, 256, (9, 9, 3)).astype(np.uint8)).save(made, "PNG")
    return made.getvalue()


def npy(array: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.save(made, array)
    return made.getvalue()


def npz() -> bytes:
    made = io.BytesIO()
    np.savez(made, x=BYTES, y=LABELS)
    return made.getvalue()


def parquet() -> bytes:
    arrow = pytest.importorskip("pyarrow")
    written = pytest.importorskip("pyarrow.parquet")
    made = io.BytesIO()
    table = arrow.table({"a": list(range(4000)), "b": RNG.random(4000)})
    written.write_table(table, made, row_group_size=500, write_page_checksum=True)
    return made.getvalue()


def cifar(count: int = 3) -> np.ndarray:
    pixels = RNG.integers(0, 256, (count, 3072)).astype(np.uint8)
    return np.concatenate([np.arange(count, dtype=np.uint8)[:, None], pixels], axis=1)


def cifar_pickle() -> bytes:
    records = cifar()
    return pickle.dumps({b"data": np.ascontiguousarray(records[:, 1:]), b"labels": records[:, 0].tolist()}, 2)


def hugging_face() -> bytes:
    pytest.importorskip("datasets")
    arrow = pytest.importorskip("pyarrow")
    made = io.BytesIO()
    with arrow.ipc.new_stream(made, arrow.schema([("x", arrow.int64())])) as stream:
        for k in range(20):
            stream.write_table(arrow.table({"x": [k] * 5}))
    return made.getvalue()


def table_text() -> bytes:
    return ("a,b\n" + "".join(f"{k},{k / 7!r}\n" for k in range(300))).encode()


def json_text() -> bytes:
    return "".join(json.dumps({"a": k, "b": "x" * (k % 9)}) + "\n" for k in range(200)).encode()


# --- readers ----------------------------------------------------------------------------------------


def loaded(data: Any, on_error: str) -> int:
    """How many samples a loader gets out of a data set."""
    loader = ed.DataLoader(data, 7, on_error=on_error, numpy=True, collate=len)
    return sum(loader)


def of_mnist(path: Path, on_error: str) -> int:
    return len(ed.load_mnist(path.parent, "test", on_error=on_error))


def of_cifar(path: Path, on_error: str) -> int:
    return len(ed.load_cifar10(path.parent, "test", on_error=on_error))


def of_json_lines(path: Path, on_error: str) -> int:
    return loaded(ed.load_jsonl(path, on_error=on_error), on_error)


def of_images(path: Path, on_error: str) -> int:
    return loaded(ed.load_images(path.parents[1]), on_error)


def of_imagenet(path: Path, on_error: str) -> int:
    return loaded(ed.load_imagenet(path.parents[2], size=4), on_error)


def of_hugging_face(path: Path, on_error: str) -> int:
    return loaded(ed.load_hf_dataset(path.parent), on_error)


def of_tokens(path: Path, on_error: str) -> int:
    del on_error  # a file that is made of another must be whole
    return len(ed.tokenize_file(path, LETTERS, path.with_suffix(".npy")))


@dataclass(frozen=True)
class Reader:
    """What a reader reads, and how."""

    file: str
    good: Callable[[], bytes]
    read: Callable[[Path, str], int]
    huge: Callable[[], bytes] | None = None  # a header that says more than there is
    goes_on: str = ""  # the faults that leave something whole
    notices_nothing: str = ""  # the faults that leave a file as good as any
    extras: tuple[tuple[str, Callable[[], bytes]], ...] = ()  # other files, which stay whole

    def written(self, folder: Path) -> Path:
        for name, good in (*self.extras, (self.file, self.good)):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(good(), mtime=0) if name.endswith(".gz") else good())
        return folder / self.file


def huge_png() -> bytes:
    """The header of 9000 × 9000 pixels."""
    whole = bytearray(png())
    whole[16:24] = struct.pack(">II", 9000, 9000)
    whole[29:33] = struct.pack(">I", zlib.crc32(whole[12:29]))
    return bytes(whole)


def huge_npy() -> bytes:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99999)}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)


def huge_npz() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("x.npy", huge_npy())
    return made.getvalue()


HUGE_IDX = struct.pack(">HBB3I", 0, 8, 3, *(2**32 - 1,) * 3) + bytes(99)
HUGE_PICKLE = b"\x80\x02\x8e" + struct.pack("<Q", 1 << 40) + b"abc"
HUGE_CELL = b"a,b\n1," + b"9" * (3 << 20) + b"\n"
TOKENIZER = b'{"format": "eshkol-tokenizer", "version": 1, "kind": "byte"}'
ARROW = "data-00000-of-00001.arrow"
HF_STATE = {"_fingerprint": "f", "_format_columns": None, "_format_kwargs": {}, "_format_type": None,
            "_output_all_columns": False, "_split": None}  # fmt: skip
OTHER = (("cat/1.png", lambda: png(1)), ("dog/0.png", lambda: png(2)))
READERS = {
    "idx": Reader("a", lambda: idx(BYTES), lambda p, e: len(ed.read_idx(p, on_error=e)), lambda: HUGE_IDX, "truncated"),
    "idx mapped": Reader("a", lambda: idx(BYTES), lambda p, e: len(ed.read_idx(p, True, e)), lambda: HUGE_IDX,
                         "truncated"),
    "idx.gz": Reader("a.gz", lambda: idx(BYTES), lambda p, e: len(ed.read_idx(p, on_error=e)),
                     lambda: gzip.compress(HUGE_IDX), "truncated"),
    "mnist": Reader("t10k-images-idx3-ubyte", lambda: idx(BYTES), of_mnist, lambda: HUGE_IDX, "truncated",
                    extras=(("t10k-labels-idx1-ubyte", lambda: idx(LABELS)),)),
    "cifar binary": Reader("test_batch.bin", lambda: cifar().tobytes(), of_cifar, goes_on="truncated"),
    "cifar binary.gz": Reader("test_batch.bin.gz", lambda: cifar().tobytes(), of_cifar, goes_on="truncated"),
    "cifar of several": Reader(
        "cifar-10-batches-bin/data_batch_3.bin", lambda: cifar().tobytes(),
        lambda p, e: len(ed.load_cifar10(p.parents[1], on_error=e)), goes_on="truncated empty magic unreadable",
        extras=tuple((f"cifar-10-batches-bin/data_batch_{k}.bin", lambda: cifar().tobytes()) for k in (1, 2, 4, 5)),
    ),
    "cifar pickle": Reader("test_batch", cifar_pickle, of_cifar, lambda: HUGE_PICKLE),
    "images": Reader("cat/0.png", png, of_images, huge_png, "truncated empty magic huge unreadable", extras=OTHER),
    "imagenet": Reader("train/n01/0.png", png, of_imagenet, huge_png, "truncated empty magic huge unreadable",
                       extras=(("train/n02/0.png", lambda: png(1)),)),
    "csv": Reader("a.csv", table_text, lambda p, e: len(ed.load_csv(p, on_error=e)), lambda: HUGE_CELL,
                  notices_nothing="truncated"),
    "csv.gz": Reader("a.csv.gz", table_text, lambda p, e: len(ed.load_csv(p, on_error=e)),
                     lambda: gzip.compress(HUGE_CELL), "truncated"),
    "csv stream": Reader("a.csv.gz", table_text, lambda p, e: len(list(ed.CsvStream(p, on_error=e))),
                         lambda: gzip.compress(HUGE_CELL), "truncated"),
    "parquet": Reader("a.parquet", parquet, lambda p, e: len(ed.load_parquet(p, on_error=e))),
    "parquet stream": Reader("a.parquet", parquet, lambda p, e: len(list(ed.ParquetStream(p, on_error=e)))),
    "json lines": Reader("a.jsonl", json_text, of_json_lines, goes_on="truncated"),
    "json lines.gz": Reader("a.jsonl.gz", json_text, of_json_lines, goes_on="truncated"),
    "json stream": Reader("a.jsonl.gz", json_text,
                          lambda p, e: len(list(ed.load_jsonl(p, stream=True, on_error=e))), goes_on="truncated"),
    "npy": Reader("a.npy", lambda: npy(BYTES), lambda p, e: len(ed.load_numpy(p, on_error=e)), huge_npy, "truncated"),
    "npz": Reader("a.npz", npz, lambda p, e: len(ed.load_npz(p, on_error=e)), huge_npz),
    "text": Reader("a.txt", WORDS.encode, lambda p, e: len(ed.load_text(p, LETTERS, 8, on_error=e)),
                   notices_nothing="truncated"),
    "text.gz": Reader("a.txt.gz", WORDS.encode, lambda p, e: len(ed.load_text(p, LETTERS, 8, on_error=e)),
                      goes_on="truncated"),
    "text to tokens": Reader("a.txt.gz", WORDS.encode, of_tokens, notices_nothing="empty"),
    "hugging face": Reader(f"data/{ARROW}", hugging_face, of_hugging_face, extras=(
        ("data/state.json", lambda: json.dumps({**HF_STATE, "_data_files": [{"filename": ARROW}]}).encode()),
        ("data/dataset_info.json", lambda: b"{}"),
    )),
    "tokenizer": Reader("t.json", lambda: TOKENIZER, lambda p, _: len(ed.load_tokenizer(p))),
}  # fmt: skip


# --- faults -----------------------------------------------------------------------------------------


def broken(reader: Reader, path: Path, fault: str) -> None:
    data = path.read_bytes()
    if fault == "truncated":
        path.write_bytes(data[: len(data) * 2 // 3 + 1])
    elif fault == "empty":
        path.write_bytes(b"")
    elif fault == "magic":
        path.write_bytes(b"\xfe\xed\xfa\xce" + b"\xff\x00nothing of the kind" * 9)
    elif fault == "huge":
        if reader.huge is None:
            pytest.skip("its header has no sizes")
        path.write_bytes(reader.huge())
    elif fault == "absent":
        path.unlink()
    elif fault == "folder":
        path.unlink()
        path.mkdir()


@contextlib.contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """The file is there and must not be read; root, who may read all, is somebody else meanwhile."""
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        path.chmod(0o600)


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Within it little more memory is used at any time than before."""
    status, peak = Path("/proc/self/status"), Path("/proc/self/clear_refs")  # of Linux; elsewhere nobody counts

    def now(name: str) -> int:
        return next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if line.startswith(name))

    counted = os.access(peak, os.W_OK)
    if counted:
        peak.write_text("5")  # the peak is counted from here on
    before = now("VmRSS") if counted else 0
    yield
    assert not counted or now("VmHWM") - before < MOST_MEMORY


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that others may look into, as a test's own may not be."""
    made = Path(tempfile.mkdtemp(prefix="eshkol-faults-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def attempted(reader: Reader, path: Path, on_error: str) -> tuple[int, list[str], DataError | None]:
    """What comes of reading: how many, the warnings, the error. Any other exception is the test's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ed.SkippedData)
        try:
            count, error = reader.read(path, on_error), None
        except DataError as refused:
            count, error = 0, refused
    return count, [str(w.message) for w in caught if w.category is ed.SkippedData], error


@pytest.mark.parametrize("name", READERS)
def test_what_is_whole_is_read(name, folder) -> None:
    reader = READERS[name]
    count, told, error = attempted(reader, reader.written(folder), "raise")
    assert error is None
    assert count > 1
    assert not told


@pytest.mark.parametrize("fault", ["truncated", "empty", "magic", "huge", "absent", "folder", "unreadable"])
@pytest.mark.parametrize("name", READERS)
def test_the_file_is_named_and_the_reader_goes_on_or_stops(name, fault, folder) -> None:
    reader = READERS[name]
    path = reader.written(folder)
    whole, *_ = attempted(reader, path, "raise")  # and loads what the reader needs
    broken(reader, path, fault)
    with little_memory(), unreadable(path) if fault == "unreadable" else contextlib.nullcontext():
        count, told, error = attempted(reader, path, "raise")
        going_on, told_of, still = attempted(reader, path, "skip")
    if name in ("images", "imagenet") and fault in ("absent", "folder"):
        assert count == whole - 1  # a folder of pictures with one less is as good as before
        return
    if fault in reader.notices_nothing.split():
        assert error is None
        return
    assert error is not None, count
    assert not told
    assert path.name.removesuffix(".gz") in str(error), error
    assert str(folder) in str(error), error
    if fault in ("absent", "folder"):
        if name != "hugging face":
            assert isinstance(error, MissingData)
            assert "put the file" in str(error)
            assert "nothing is downloaded" in str(error)
        return
    if fault in reader.goes_on.split():
        assert still is None, still
        assert 0 < going_on <= whole
        assert len(told_of) == 1, told_of
        assert str(path) in told_of[0]
    elif fault == "unreadable":
        assert still is not None
    else:  # either something was whole, and it is said what was not, or nothing was
        assert (still is not None and str(folder) in str(still)) or (going_on and told_of)


@pytest.mark.parametrize("name", READERS)
def test_a_flipped_bit_is_told_with_the_file_or_changes_values_alone(name, folder) -> None:
    reader = READERS[name]
    path = reader.written(folder)
    attempted(reader, path, "raise")
    data = path.read_bytes()
    refused = 0
    with little_memory():
        for k in range(24):
            flipped = bytearray(data)
            flipped[(k * 7919 if k % 2 else k) % len(data)] ^= 1 << k % 8
            path.write_bytes(flipped)
            count, _, error = attempted(reader, path, "raise")
            if error is not None:
                refused += 1
                assert path.name.removesuffix(".gz") in str(error), error
            going_on, told, still = attempted(reader, path, "skip")
            assert (still is None) or error is not None
            assert error is not None or (count == going_on and not told)
    assert refused or reader.notices_nothing or name in ("cifar binary", "cifar of several")


@pytest.mark.parametrize("read", [ed.load_parquet, ed.ParquetStream])
def test_a_damaged_group_of_rows_is_named_or_left_out(read, folder) -> None:
    path = READERS["parquet"].written(folder)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"a\.parquet, group \d \(from row \d+ on\): the file is damaged"):
        list(read(path))
    skipping = Reader(path.name, bytes, lambda p, e: len(list(read(p, on_error=e))))
    count, told, error = attempted(skipping, path, "skip")
    assert (count, error) == (3500, None)
    assert "1 groups of rows of" in told[0]


@pytest.mark.parametrize(
    ("read", "wanted"),
    [
        (ed.load_mnist, ["train-images-idx3-ubyte", "mnist", "yann.lecun.com"]),
        (ed.load_cifar10, ["data_batch_1.bin", "cifar-10-batches-bin", "cs.toronto.edu"]),
        (ed.load_cifar100, ["train.bin", "cifar-100-binary", "cs.toronto.edu"]),
        (ed.load_imagenet, ["train/n01440764", "image-net.org"]),
        (ed.load_images, ["put pictures there", "/cat/1.png"]),
        (lambda p: ed.load_text(p / "shakespeare.txt", LETTERS, 8), ["shakespeare.txt", "put the file there"]),
        (lambda p: ed.load_hf_dataset(p / "squad"), ["squad", ".save_to_disk(FOLDER)", "give the folder"]),
    ],
)
def test_what_is_not_there_is_asked_for_by_name_and_place(read, wanted, folder, monkeypatch) -> None:
    if "squad" in wanted:
        pytest.importorskip("datasets")
    monkeypatch.delenv("ESHKOL_DATA", raising=False)
    with pytest.raises(MissingData, match="nothing is downloaded") as caught:
        read(folder / "nowhere")
    for words in (str(folder / "nowhere"), *wanted):
        assert words in str(caught.value)
    if read in (ed.load_mnist, ed.load_cifar10, ed.load_cifar100, ed.load_imagenet):
        with pytest.raises(MissingData, match="give root=FOLDER, or set ESHKOL_DATA"):
            read()


def test_a_line_without_an_end_takes_no_memory(folder, monkeypatch) -> None:
    monkeypatch.setattr(ed.files, "LONGEST_LINE", 1 << 20)
    path = folder / "a.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    with little_memory():
        for read in (ed.load_csv, lambda p: list(ed.load_jsonl(p, stream=True))):
            with pytest.raises(DataError, match=r"a\.gz, line 1: the line has more than 1,048,576 characters"):
                read(path)
