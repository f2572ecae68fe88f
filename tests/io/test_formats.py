"""Files of other libraries: safetensors and npz both ways, PyTorch's read; the files are of those libraries."""

from __future__ import annotations

import io
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import CheckpointError
from eshkol.ops import dtypes

REFERENCES = Path(__file__).parent / "references"
TENSORS: dict[str, Any] = {
    f"of {d.name.rstrip('_')}": np.array([0, 1]).astype(d.numpy) for d in dtypes.ALL
} | {
    "transposed": np.arange(24, dtype=np.float32).reshape(4, 6).T,
    "part": np.arange(24, dtype=np.float32).reshape(4, 6)[1:3, 2:5],
    "number": np.float32(2.5).reshape(()),
    "empty": np.zeros((0, 3), np.float32),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _small() -> Any:
    with ek.use_backend("reference"):
        yield


def same(found: Any, wanted: Any) -> None:
    array = found.numpy()
    assert found.dtype is dtypes.of(wanted.dtype)
    assert array.shape == wanted.shape
    assert array.tobytes() == np.ascontiguousarray(wanted).tobytes()


# --- PyTorch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_of_pytorch(mmap: bool) -> None:
    found = ek.io.load_pytorch(REFERENCES / "state.pt", mmap=mmap)
    for name, array in TENSORS.items():
        same(found[name], array)
    same(found["parameter"], np.ones(2, np.float32))
    assert found["epoch"] == 3
    assert found["nothing"] is None
    assert found["plain"] == [1, "a", 2.5, True, b"xy", (-1, 1 << 40)]
    assert found["size"] == (4, 6)
    model = ek.nn.Sequential(ek.nn.Linear(3, 2), ek.nn.BatchNorm1d(2))
    model.load_state_dict(found["model"])
    assert model[0].weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert model[1].num_batches_tracked.item() == 6


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model.pt", r"needs torch\.nn\.modules\.linear\.Linear, and nothing of a pickle is executed"),
        ("old.pt", r"before 1\.6"),
        ("repeated.pt", "repeats the elements"),
        ("tensors.safetensors", "no file of PyTorch"),
    ],
)
def test_files_of_pytorch_that_are_refused(name: str, said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        ek.io.load_pytorch(REFERENCES / name)


def pt(pickled: bytes, **members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("x/data.pkl", pickled)
        for name, data in members.items():
            file.writestr(f"x/data/{name.removeprefix('s')}", data)
    return out.getvalue()


class Evil:
    """What a pickle can do to its reader."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_nothing_is_executed(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "a.pt").write_bytes(pt(pickle.dumps({"a": Evil(tmp_path / "evil")}, protocol)))
    with pytest.raises(CheckpointError, match="nothing of a pickle is executed"):
        ek.io.load_pytorch(tmp_path / "a.pt")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("protocol", range(2, 6))
def test_plain_data_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    shared = [1, 2]
    value = {
        "a": [shared, shared, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        3: {"x": -(1 << 70)},
        "t": True,
        "f": 0.5,
    }
    (tmp_path / "a.pt").write_bytes(pt(pickle.dumps(value, protocol)))
    found = ek.io.load_pytorch(tmp_path / "a.pt")
    assert found == value
    assert found["a"][0] is found["a"][1]


def tensor_pickle(
    count: str = "K\x02", offset: str = "K\x00", shape: str = "K\x02\x85", strides: str = "K\x01\x85", key: str = "0"
) -> bytes:
    """The pickle of one tensor, by hand."""
    storage = f"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0{key}X\x03\0\0\0cpu{count}tQ"
    text = f"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n({storage}{offset}{shape}{strides}\x89N" + "tR."
    return text.encode("latin-1")


def test_a_tensor_by_hand(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(pt(tensor_pickle(), s0=np.array([1, 2], np.float32).tobytes()))
    assert ek.io.load_pytorch(tmp_path / "a.pt").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"count": "K\x03"}, "8 bytes instead of 3 float32s"),
        ({"key": "1"}, "no storage '1'"),
        ({"offset": "K\x01"}, "beyond its storage"),
        ({"offset": "J\xff\xff\xff\xff"}, "a tensor that is none"),
        ({"shape": "K\x03\x85"}, "beyond its storage"),
        ({"shape": "K\x03\x85", "strides": "K\x00\x85"}, "repeats the elements"),
        ({"strides": "J\xff\xff\xff\xff\x85"}, "a tensor that is none"),
        ({"strides": "K\x01K\x01\x86"}, "with strides"),
        ({"shape": "X\x01\0\0\0a\x85"}, "a tensor that is none"),
        ({"shape": "J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", "strides": "K\x00K\x00\x86"}, "a tensor of shape"),
    ],
)
def test_hostile_tensors(tmp_path: Path, options: dict[str, str], said: str) -> None:
    (tmp_path / "a.pt").write_bytes(pt(tensor_pickle(**options), s0=bytes(8)))
    with pytest.raises(CheckpointError, match=said):
        ek.io.load_pytorch(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "does not end|damaged"),
        (b"\x80\x02N", "damaged|does not end"),
        (b"\x80\x02.", "damaged"),
        (b"\x80\x02r\xff\xff\xff\x7f.", "damaged"),
        (b"\x80\x02B\xff\xff\xff\x7fabc.", "damaged"),
        (b"\x80\x02]K\x01s.", "damaged|no dict"),
        (b"\x80\x02K\x01K\x02a.", "no list"),
        (b"\x80\x02K\x01)R.", "no function"),
        (b"\x80\x02K\x01}b.", "builds an object"),
        (b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R.", "needs os.system"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02K\x01\x85Q.", "a storage that is none"),
        (b"\x80\x02h\x05.", "damaged"),
    ],
)
def test_hostile_pickles(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.pt").write_bytes(pt(data))
    with pytest.raises(CheckpointError, match=said):
        ek.io.load_pytorch(tmp_path / "a.pt")


def test_damaged_files_of_pytorch(tmp_path: Path) -> None:
    good = (REFERENCES / "state.pt").read_bytes()
    path = tmp_path / "a.pt"
    for size in range(0, len(good), 199):
        path.write_bytes(good[:size])
        with pytest.raises(CheckpointError):
            ek.io.load_pytorch(path)
    place = good.index(np.arange(24, dtype=np.float32).tobytes())
    path.write_bytes(good[:place] + b"\xff" + good[place + 1 :])
    with pytest.raises(CheckpointError, match="does not have its checksum"):
        ek.io.load_pytorch(path)
    shutil.make_archive(str(tmp_path / "b"), "zip", tmp_path)
    with pytest.raises(CheckpointError, match=r"compressed|no file of torch\.save"):
        ek.io.load_pytorch(tmp_path / "b.zip")


# --- safetensors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_of_safetensors(mmap: bool) -> None:
    found = ek.io.load_safetensors(REFERENCES / "tensors.safetensors", mmap=mmap)
    assert set(found) == set(TENSORS) - {"of complex128"}
    for name, tensor in found.items():
        same(tensor, TENSORS[name])
    assert ek.io.safetensors_metadata(REFERENCES / "tensors.safetensors") == {"by": "safetensors"}
    assert list(ek.io.load_safetensors(REFERENCES / "tensors.safetensors", "part")) == ["part"]


def test_safetensors_come_back(tmp_path: Path) -> None:
    tensors = {name: array for name, array in TENSORS.items() if name != "of complex128"}
    ek.io.save_safetensors(tmp_path / "a", tensors, metadata={"k": "é"})
    found = ek.io.load_safetensors(tmp_path / "a")
    for name, array in tensors.items():
        same(found[name], array)
    assert ek.io.safetensors_metadata(tmp_path / "a") == {"k": "é"}
    ek.io.save_safetensors(tmp_path / "again", ek.io.load_safetensors(REFERENCES / "tensors.safetensors"))
    for name, tensor in ek.io.load_safetensors(tmp_path / "again").items():
        same(tensor, TENSORS[name])


def test_what_safetensors_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="have no complex128"):
        ek.io.save_safetensors(tmp_path / "a", TENSORS)
    with pytest.raises(CheckpointError, match="strings by name"):
        ek.io.save_safetensors(tmp_path / "a", {}, metadata={"a": 1})
    with pytest.raises(CheckpointError, match="cannot be the name"):
        ek.io.save_safetensors(tmp_path / "a", {"__metadata__": np.ones(1)})
    assert not list(tmp_path.iterdir())


# --- NumPy ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [False, True])
def test_npz_both_ways(tmp_path: Path, compress: bool) -> None:
    ek.io.save_npz(tmp_path / "a.npz", TENSORS, compress=compress)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as theirs:
        for name, array in TENSORS.items():
            assert theirs[name].tobytes() == np.ascontiguousarray(array).tobytes()
    found = ek.io.load_npz(tmp_path / "a.npz")
    for name, array in TENSORS.items():
        same(found[name], array)
    assert list(ek.io.load_npz(tmp_path / "a.npz", "of int*")) == [n for n in TENSORS if n.startswith("of int")]


def test_npz_of_numpy(tmp_path: Path) -> None:
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.savez(tmp_path / "a.npz", columns, big=np.arange(3, dtype=">i4"))
    found = ek.io.load_npz(tmp_path / "a.npz")
    same(found["arr_0"], np.arange(6.0).reshape(2, 3))
    same(found["big"], np.arange(3, dtype=np.int32))


def test_an_archive_may_become_what_one_allows(tmp_path: Path) -> None:
    ek.io.save_npz(tmp_path / "a.npz", {"zeros": np.zeros(10_000)}, compress=True)
    with pytest.raises(CheckpointError, match="more than 100"):
        ek.io.load_npz(tmp_path / "a.npz", limit=100)
    assert ek.io.load_npz(tmp_path / "a.npz", limit=100_000)["zeros"].shape == (10_000,)
