"""`ek.save` and `ek.load` by the kind of file, and what they refuse."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import CheckpointError

STATE = {
    "w": ek.ones(2, 3),
    "h": ek.ones(2).half(),
    "n": [1, -2.5, None, True, "ü", 1 << 40, -(1 << 63)],
    "t": (1, (2,)),
}


@pytest.mark.parametrize("suffix", ["pt", "pth", "eskpt"])
def test_structures_come_back(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    ek.save(STATE, path)
    found = ek.load(path)
    assert found["w"].tolist() == [[1, 1, 1]] * 2
    assert (found["h"].dtype, found["n"], found["t"]) == (ek.float16, STATE["n"], STATE["t"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "uint8", "bool", "complex64", "int64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3, 2)])
def test_tensors_of_every_dtype_and_shape_come_back_from_files_of_pytorch(tmp_path, dtype, shape):
    given = ek.ones(shape, dtype=dtype)
    ek.save([given], tmp_path / "a.pt")
    (found,) = ek.load(tmp_path / "a.pt")
    assert (found.shape, found.dtype) == (given.shape, given.dtype)
    assert found.tolist() == given.tolist()


def test_the_same_tensors_are_the_same_bytes():
    first, second = io.BytesIO(), io.BytesIO()
    ek.save(STATE, first)
    ek.save(STATE, second)
    assert first.getvalue() == second.getvalue()


def test_arrays_and_views_are_saved_as_they_are_seen(tmp_path):
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    ek.save({"a": array.T}, tmp_path / "a.pt")
    assert ek.load(tmp_path / "a.pt")["a"].tolist() == array.T.tolist()


def test_what_no_file_holds_is_refused(tmp_path):
    path = tmp_path / "a.pt"
    with pytest.raises(CheckpointError, match="state_dict"):
        ek.save(ek.nn.Linear(2, 2), path)
    with pytest.raises(CheckpointError, match="function"):
        ek.save({"f": lambda: 0}, path)
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(CheckpointError, match="holds itself"):
        ek.save(circle, path)
    with pytest.raises(CheckpointError, match="uint32"):
        ek.save(ek.ones(2, dtype=ek.uint32), path)
    with pytest.raises(CheckpointError, match="by name"):
        ek.save(ek.ones(2), tmp_path / "a.npz")
    assert not path.exists()


def test_no_code_of_a_file_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    path = tmp_path / "evil.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil(), 2))
    with pytest.raises(CheckpointError, match="nothing of a pickle is executed"):
        ek.load(path)
    with pytest.raises(CheckpointError, match="nothing of a pickle is executed"):
        ek.load(path, weights_only=False)
    np.save(tmp_path / "objects.npy", np.array([Evil()], object), allow_pickle=True)
    with pytest.raises(CheckpointError, match=r"no \.npy file"):
        ek.load(tmp_path / "objects.npy")


def test_a_file_of_scheme_is_a_module_still(tmp_path):
    (tmp_path / "m.esk").write_text("(define (twice x) (* 2 x))")
    assert ek.load(tmp_path / "m.esk").twice(4) == 8
